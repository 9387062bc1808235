"""doctor's lines and its exit code. usage: doctor.py DOCTOR"""
import json
import os
import subprocess
import sys

DOCTOR = os.path.abspath(sys.argv[1])
failed = 0


def check(what, holds, *shown):
    global failed
    failed += not holds
    print(("ok    " if holds else "FAILED ") + what, *(shown if not holds else ()))


def doctor(*arguments, **variables):
    clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "MASTER_ADDR")}
    return subprocess.run([DOCTOR, *arguments], capture_output=True, text=True, env={**clean, **variables})


run = doctor("--megabytes", "8", "--stress", "0.01", "--json")
lines = json.loads(run.stdout)
check("--json is a list of findings", all(set(f) == {"level", "what", "is", "remedy"} and f["level"] in ("ok", "warning", "failure") for f in lines), lines[:2])
check("what is not ok has a remedy, what is ok has none", all((f["level"] == "ok") == (f["remedy"] == "") for f in lines))
for what in ("built with", "GPU", "processors", "memory", "shared memory", "pinned memory", "network", "storage", "storage rate", "clock", "launcher", "stress"):
    check(f"it looks at {what}", any(f["what"] == what for f in lines))
check("one interface is the one that rendezvous would use", sum("rendezvous would use it" in f["is"] for f in lines) <= 1)
check("moves come to the right sums", any(f["what"] == "stress" and f["level"] == "ok" for f in lines))
check("it ends with 0 without failures", run.returncode == any(f["level"] == "failure" for f in lines), run.returncode)

text = doctor("--megabytes", "0")
check("text ends with the counts", text.stdout.splitlines()[-1].endswith("failures") and "storage rate" not in text.stdout, text.stdout[-200:])
half = doctor("--megabytes", "0", RANK="1")
check("half of a launcher's variables is a failure that names both", half.returncode == 1 and "RANK without WORLD_SIZE" in half.stdout, half.stdout)
whole = doctor("--megabytes", "0", RANK="1", WORLD_SIZE="4")
check("all of them are read", "torchrun: rank 1 of 4" in whole.stdout, whole.stdout)
wrong = doctor("--megabytes", "-1")
check("wrong use ends with 2", wrong.returncode == 2 and wrong.stderr.count("\n") == 1, wrong.stderr)
sys.exit(bool(failed))
