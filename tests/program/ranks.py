"""Processes that meet: weft's own supervisor, hand-set variables, mpirun and torchrun where they are installed. usage: ranks.py HELLO_RANKS (77: built without Gloo)"""
import os
import shutil
import socket
import subprocess
import sys

PROGRAM = os.path.abspath(sys.argv[1])
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "PMI_", "OMPI_", "SLURM_"))}
failed = 0


def check(what, holds, *shown):
    global failed
    failed += not holds
    print(("ok    " if holds else "FAILED ") + what, *(shown if not holds else ()))


def run(*command, **variables):
    return subprocess.run(command, env=CLEAN | variables, capture_output=True, text=True, timeout=120)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(rank, size, at, *more):
    return subprocess.Popen([PROGRAM, "--rendezvous", at, *more], env=CLEAN | {"RANK": str(rank), "WORLD_SIZE": str(size)},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def all_added(text, size):
    return all(f"rank {r} of {size} " in text for r in range(size)) and text.count(f"add up to {size * (size - 1) // 2}\n") == size


alone = run(PROGRAM)
if "without Gloo" in alone.stderr:
    sys.exit(77)
check("one rank without a launcher", all_added(alone.stdout, 1), alone)
for n in (1, 2, 5):
    r = run(PROGRAM, "--nproc", str(n))
    check(f"--nproc {n}", r.returncode == 0 and all_added(r.stdout, n), r)

r = run(PROGRAM, RANK="0")
check("half-set variables", r.returncode == 2 and r.stderr.startswith("hello_ranks: WORLD_SIZE is not set") and r.stderr.count("\n") == 1, r)
r = run(PROGRAM, "--nproc", "2", RANK="0", WORLD_SIZE="2")
check("two launchers", r.returncode == 2 and "one launcher, not two" in r.stderr, r)

at = f"127.0.0.1:{free_port()}"
ranks = [start(0, 2, at, "--identity", "a"), start(1, 2, at, "--identity", "b")]
said = [p.communicate(timeout=60) for p in ranks]
check("another model", all(p.returncode == 2 for p in ranks) and all("rank 1 has model b, rank 0 has a" in e for _, e in said), said)
at = f"127.0.0.1:{free_port()}"
ranks = [start(0, 2, at), start(1, 3, at)]
said = [p.communicate(timeout=60) for p in ranks]
check("another world size", all(p.returncode == 2 for p in ranks) and all("rank 1 has world size 3, rank 0 has 2" in e for _, e in said), said)

waiting = start(0, 2, f"127.0.0.1:{free_port()}", "--timeout", "1")
_, e = waiting.communicate(timeout=60)
check("a rank that does not come", waiting.returncode == 2 and "ranks that did not come: 1" in e, e)

for launcher, more in (("mpirun", ["-n", "3"]), ("torchrun", ["--no-python", "--nproc-per-node", "3", "--master-port", str(free_port())])):
    if shutil.which(launcher) is None:
        print(f"skipped {launcher}: not installed")
        continue
    given = ["--rendezvous", f"127.0.0.1:{free_port()}"] if launcher == "mpirun" else []
    r = run(launcher, *more, PROGRAM, *given)
    check(launcher, r.returncode == 0 and all_added(r.stdout, 3), r)
sys.exit(failed != 0)
