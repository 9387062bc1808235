"""--dry-run and --explain: what they print, and that it is true. usage: dry_run.py GRPO (from the top of the tree)"""
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
failed = 0
folder = tempfile.TemporaryDirectory()
out = os.path.join(folder.name, "none")


def check(what, holds, *shown):
    global failed
    failed += not holds
    print(("ok    " if holds else "FAILED ") + what, *(shown if not holds else ()))


def grpo(*more):
    return subprocess.run([PROGRAM, "--config", "examples/arithmetic.yaml", "--out", out, "--dry-run", *more], capture_output=True, text=True)


def taken(text):  # bytes that the plan takes, as it says them
    return sum(count * (int(arena) + int(state)) for arena, state, count in
               ((int(a), int(s), int(n)) for a, s, n in re.findall(r"^arena on \w+: (\d+) bytes \(at least \d+\) and (\d+) of state, on each of (\d+)", text, re.M)))


def bytes_of(shown):
    number, unit = shown.split()
    return float(number) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


plain = grpo()
check("it ends with 0 and writes nothing", plain.returncode == 0 and not os.path.exists(out), plain.stderr)
for part in ("\ndata:\n", "\norder\n", "\nsegments\n", "\narena on ", "\nbatch\n", "\nmemory\n"):
    check("it prints " + part.strip(), part in plain.stdout)
lines = dict(re.findall(r"^  ([\w ]+?) +(\d[\d.]* \w?B)$", plain.stdout[plain.stdout.index("\nmemory\n"):], re.M))
together = re.search(r"together ([\d.]+ \wB), of which ([\d.]+ \wB) are taken", plain.stdout)
check("parts add up", abs(sum(map(bytes_of, lines.values())) - bytes_of(together[1])) < 2e-3 * bytes_of(together[1]), lines, together[0])
check("weights, moments and gradients are those of the model", lines["weights"] == lines["gradients"] and bytes_of(lines["optimizer"]) > 1.9 * bytes_of(lines["weights"]), lines)

explained = grpo("--explain").stdout
now = taken(explained)
turned = re.findall(r"^  (\S+) +(\S+) -> (\S+) +(same|[+-][\d.]+ \w?B) +(same|[+-]\S+ s)$", explained, re.M)
check("--explain turns knobs of batch, rollout and update", len(turned) >= 8, explained[-1500:])
for knob, before, after, more, seconds in turned:
    then = grpo(f"{knob}={after}")
    said = 0 if more == "same" else bytes_of(more[1:]) * (1 if more[0] == "+" else -1)
    # batch and arena of validation are in both, so that what is left is the knob's
    check(f"{knob}={after} costs what it says", then.returncode == 0 and abs(taken(then.stdout) - now - said) <= 0.006 * abs(said) + 512, taken(then.stdout) - now, said, then.stderr)
check("more answers take longer", any(knob == "rollout.n" and seconds.startswith("+") for knob, _, _, _, seconds in turned), turned)

check("plan=dot is DOT alone", grpo("plan=dot").stdout.startswith("digraph plan {"))
check("plan=mermaid is Mermaid alone", grpo("plan=mermaid").stdout.startswith("flowchart TD\n"))
picture = grpo("plan=stages").stdout
check("plan=stages leaves out feeds, keeps and moves", "generate&lt;" in picture and not re.search(r"feed|keep|send|\[\(", picture), picture)
check("a program without plan= says which there are", grpo("plan=tree").returncode == 2)
sys.exit(bool(failed))
