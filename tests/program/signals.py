"""What a run does when it is told to end, and what it shows meanwhile. usage: signals.py GRPO (from the top of the tree)
Ctrl-C once: the step is finished and saved, exit code 130. Twice: it ends at once. SIGTERM: saved, 143. A run that goes on ends with the same
bits as one that was never stopped. On a terminal one line rewrites itself, elsewhere whole lines come."""
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
STEPS = 12
folder = tempfile.TemporaryDirectory()
failed = 0


def command(out, *more):
    return [PROGRAM, "--config", "examples/arithmetic.yaml", "--out", os.path.join(folder.name, out), "--steps", str(STEPS),
            "data.train_batch_size=32", "test_freq=-1", "val_before_train=false", "threads=1", *more]


def lines(out):
    file = os.path.join(folder.name, out, "metrics.jsonl")
    return open(file).read().count("\n") if os.path.exists(file) else 0


def check(what, holds, *shown):
    global failed
    failed += not holds
    print(("ok    " if holds else "FAILED ") + what, *(shown if not holds else ()))


def weights(out):
    return open(os.path.join(folder.name, out, "model", "model.safetensors"), "rb").read()


def start(out, *more):
    run = subprocess.Popen(command(out, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while lines(out) < 2 and run.poll() is None:
        time.sleep(0.002)
    return run


def steps_saved(out):
    return sorted(int(name.split("_")[-1]) for name in os.listdir(os.path.join(folder.name, out)) if name.startswith("global_step_"))


began = time.monotonic()
whole = subprocess.run(command("whole"), capture_output=True, text=True)
seconds = time.monotonic() - began
check("a run that nobody stops ends with 0", whole.returncode == 0, whole.stderr)

for name, number in (("SIGINT", signal.SIGINT), ("SIGTERM", signal.SIGTERM)):
    for pause in (0, 0.013, 0.04):
        out = f"{name}-{pause}"
        run = start(out)
        time.sleep(pause)
        run.send_signal(number)
        text, errors = run.communicate(timeout=120)
        code = 128 + number
        if run.returncode == 0:
            continue  # it was over before the signal came
        check(f"{out}: exit code {code}", run.returncode == code, run.returncode, text, errors)
        saved = steps_saved(out)
        check(f"{out}: the last finished step is saved", saved and saved[-1] == lines(out), saved, lines(out))
        again = subprocess.run(command(out), capture_output=True, text=True)
        check(f"{out}: goes on to the same bits", again.returncode == 0 and weights(out) == weights("whole"), again.stderr)

run = start("twice")
run.send_signal(signal.SIGSTOP)  # both are there when it looks
run.send_signal(signal.SIGINT)
run.send_signal(signal.SIGCONT)
time.sleep(0.005)
run.send_signal(signal.SIGINT)
run.communicate(timeout=120)
check("Ctrl-C twice ends at once, or the step was over in between", run.returncode in (-signal.SIGINT, 130), run.returncode)

main, side = pty.openpty()
run = subprocess.Popen(command("terminal"), stdout=subprocess.DEVNULL, stderr=side)
os.close(side)
shown = b""
while True:
    try:
        part = os.read(main, 65536)
    except OSError:
        break
    if not part:
        break
    shown += part
run.wait()
status = re.compile(rb"\r\x1b\[Kstep \d+/12 \w+( \d+/256)? \| \d+ tokens/s \| reward \d\.\d+ \| ETA (\?|\d+:\d\d)")
check("a terminal gets one line that rewrites itself", status.search(shown), shown[:600])
check("with the sequences that are done", re.search(rb"generate \d+/256", shown), shown[:600])
check("and what the step waited for", re.search(rb"\| (straggler|reward|data|link|memory|generation|update): ", shown), shown[:600])
plain = re.findall(r"^step \d+/12 .*$", whole.stderr, re.M)
check("elsewhere whole lines come, at most one in ten seconds", 1 <= len(plain) <= 2 + seconds / 10 and "\r" not in whole.stderr, whole.stderr)
sys.exit(bool(failed))
