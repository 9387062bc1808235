"""Files below a folder that match a pattern, sorted, separated by semicolons: what meson.build builds is what is there."""
import glob
import sys

print(*sorted(glob.glob(sys.argv[2], root_dir=sys.argv[1], recursive=True)), sep=";")
