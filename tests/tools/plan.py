"""The plan in README.md is the one that the program prints: plan.py README.md PROGRAM ARGUMENTS..."""
import subprocess
import sys

printed = subprocess.run(sys.argv[2:], capture_output=True, text=True, check=True).stdout
plan = printed[printed.index("\norder\n") + 1 : printed.index("\nbatch\n")].rstrip()
shown = open(sys.argv[1]).read().split("<!-- plan -->\n```\n")[1].split("\n```\n")[0].rstrip()
if plan != shown:
    pairs = zip(plan.splitlines() + [""], shown.splitlines() + [""])
    print("first line that differs:", *next(((a, b) for a, b in pairs if a != b), ("", "")), sep="\n  ")
    sys.exit(1)
