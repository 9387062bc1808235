"""A recipe learns: the held-out accuracy that a run ends with is at least LEAST, and above what it began with.
usage: learns.py LEAST PROGRAM ARGUMENTS... (the run's folder is made and removed here)"""
import re
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as out:
    run = subprocess.run([*sys.argv[2:], "--out", out], capture_output=True, text=True)
    print(run.stdout[-3000:], run.stderr[-1000:])
    found = re.search(r"val accuracy ([\d.]+) -> ([\d.]+)", run.stdout)
    assert run.returncode == 0 and found, "the run failed"
    first, last = map(float, found.groups())
    assert last >= float(sys.argv[1]) and last > first, f"{first} -> {last}, wanted at least {sys.argv[1]}"
