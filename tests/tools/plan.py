"""The plan and the picture in README.md are those that the program prints: plan.py README.md PROGRAM ARGUMENTS..."""
import subprocess
import sys


def printed(*more):
    return subprocess.run([*sys.argv[2:], *more], capture_output=True, text=True, check=True).stdout


readme = open(sys.argv[1]).read()
plan = printed()
plan = plan[plan.index("\norder\n") + 1 : plan.index("\nbatch\n")].rstrip()
picture = printed("plan=stages").rstrip()
for what, shown in ((plan, readme.split("<!-- plan -->\n```\n")[1]), (picture, readme.split("<!-- picture -->\n```mermaid\n")[1])):
    shown = shown.split("\n```\n")[0].rstrip()
    if what != shown:
        pairs = zip(what.splitlines() + [""], shown.splitlines() + [""])
        print("first line that differs:", *next(((a, b) for a, b in pairs if a != b), ("", "")), sep="\n  ")
        sys.exit(1)
