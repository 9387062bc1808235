"""A recipe learns: the held-out accuracy that a run ends with is at least LEAST, and above what it began with.
usage: learns.py [--metric NAME] LEAST PROGRAM ARGUMENTS...
The run's folder is made and removed here. {data} in an argument stands for a folder with what `arithmetic` beside PROGRAM writes. With --metric
that number of the first and the last step is compared in place of the accuracy."""
import json
import os
import re
import subprocess
import sys
import tempfile

arguments, metric = sys.argv[1:], None
if arguments[0] == "--metric":
    metric, arguments = arguments[1], arguments[2:]
least, program = float(arguments[0]), arguments[1]
with tempfile.TemporaryDirectory() as out, tempfile.TemporaryDirectory() as data:
    command = [a.replace("{data}", data) for a in arguments[1:]]
    if command != arguments[1:]:
        subprocess.run([os.path.join(os.path.dirname(program), "arithmetic"), "--out", data, "--repeats", "0"], check=True)
    run = subprocess.run([*command, "--out", out], capture_output=True, text=True)
    print(run.stdout[-3000:], run.stderr[-1000:])
    assert run.returncode == 0, "the run failed"
    if metric:
        steps = [json.loads(line)[metric] for line in open(os.path.join(out, "metrics.jsonl")) if metric in line]
        first, last = steps[0], steps[-1]
        print(f"result: {metric} {first} -> {last}")
    else:
        first, last = map(float, re.search(r"val accuracy ([\d.]+) -> ([\d.]+)", run.stdout).groups())
    assert last >= least and last > first, f"{first} -> {last}, wanted at least {least}"
