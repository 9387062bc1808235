"""What a run's folder holds, read by others than weft. usage: folder.py GRPO REPORT (from the top of the tree)"""
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

GRPO, REPORT = (os.path.abspath(p) for p in sys.argv[1:3])
folder = tempfile.TemporaryDirectory()
failed = 0


def check(what, holds, *shown):
    global failed
    failed += not holds
    print(("ok    " if holds else "FAILED ") + what, *(shown if not holds else ()))


TABLE = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
    TABLE.append(i)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def run(out, steps, *more):
    return subprocess.run([GRPO, "--config", "examples/arithmetic.yaml", "--out", os.path.join(folder.name, out), "--steps", str(steps),
                           "data.train_batch_size=32", "test_freq=2", "threads=1", *more], capture_output=True, text=True)


def jsonl(out, name):
    return [json.loads(line) for line in open(os.path.join(folder.name, out, name), encoding="utf-8")]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):  # of a protobuf message
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif key & 7 == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def mask(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events(file):
    data, at = open(file, "rb").read(), 0
    while at < len(data):
        size, of_size = struct.unpack_from("<QI", data, at)
        payload = data[at + 12:at + 12 + size]
        assert of_size == mask(crc32c(data[at:at + 8])), "checksum of a length"
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == mask(crc32c(payload)), "checksum of an event"
        at += 16 + size
        yield list(fields(payload))


done = run("a", 4, "trainer.profile_steps=[2]", "trainer.log_samples=5")
check("the run ends well", done.returncode == 0, done.stderr)
at = os.path.join(folder.name, "a")
metrics, samples = jsonl("a", "metrics.jsonl"), jsonl("a", "samples.jsonl")
check("a line a step, validation first", [m["step"] for m in metrics] == [0, 1, 2, 3, 4])
check("each step names what it waited for and the knob", all(m["perf/bottleneck"] and m["perf/knob"] for m in metrics[1:]))
shares = [sum(v for k, v in m.items() if k.startswith("perf/share/")) for m in metrics[1:]]
check("the shares of a step are its whole", all(abs(s - 1) < 1e-6 for s in shares), shares)

info = json.load(open(os.path.join(at, "run.json")))
check("run.json: seed, versions", info["seed"] == 1 and all(info[k] for k in ("weft", "compiler", "CUDA", "NCCL", "BLAS", "machine", "started")), info)
for file in ("examples/arithmetic/val.jsonl", "examples/arithmetic/model/config.json"):
    kind = info["data"] if file.endswith("l") else info["actor"]
    data = open(file, "rb").read()
    check(f"run.json: hash of {file}", kind.get(file) == f"crc32c {crc32c(data):08x}, {len(data)} bytes", kind)
config = open(os.path.join(at, "config.yaml")).read()
check("config.yaml is resolved", "train_batch_size: 32" in config and "clip_ratio: 0.2" in config)

check("five samples a step", [s["step"] for s in samples] == [k for k in range(1, 5) for _ in range(5)])
check("a sample is a question with its answer", all(s["prompt"].endswith("=") and (s["response"].strip() == s["truth"]) == (s["reward"] == 1) for s in samples),
      samples[:2])

files = glob.glob(os.path.join(at, "events.out.tfevents.*"))
check("one TensorBoard file", len(files) == 1, files)
seen = {}
for number, event in enumerate(events(files[0])):
    f = dict(event)
    if number == 0:
        check("it begins with its version", f[3] == b"brain.Event:2", f)
    for field, value in event:
        if field == 5:
            for _, v in fields(value):
                tag = dict(fields(v))
                seen[f[2], tag[1].decode()] = tag[2]
wrong = [(m["step"], k) for m in metrics for k, v in m.items()
         if k != "step" and not isinstance(v, str) and struct.unpack("f", struct.pack("f", v))[0] != seen.get((m["step"], k))]
check("TensorBoard reads the numbers of metrics.jsonl", not wrong and len(seen) > 100, wrong[:5], len(seen))

trace = json.load(open(os.path.join(at, "trace.json")))["traceEvents"]
slices = [e for e in trace if e["ph"] == "X"]
check("the trace shows step 2 alone", {e["args"]["step"] for e in slices} == {2})
check("its stages lie within the step", all(0 <= e["ts"] and e["dur"] >= 0 for e in slices)
      and sum(e["dur"] for e in slices if e["tid"] != 0) <= 1.001 * sum(e["dur"] for e in slices if e["tid"] == 0))
graph = json.load(open(os.path.join(at, "graph.json")))
names = [n["name"] for n in graph["nodes"]]
check("graph.json: stages, edges, time", "generate<actor, training>" in names and all(a < len(names) and b < len(names) for a, b, _ in graph["edges"])
      and graph["steps"] == 4 and max(n["seconds"] for n in graph["nodes"]) > 0)

page = open(os.path.join(at, "report.html"), encoding="utf-8").read()
data = json.loads(page.split('<script id="data" type="application/json">')[1].split("</script>")[0])
check("the report holds the numbers", [row[0] for row in data["runs"][0]["rows"]] == [0, 1, 2, 3, 4])
check("the report needs no network", "http://" not in page.replace("http://www.w3.org/", "") and "https://" not in page and "src=" not in page)

# a run that goes on cuts what it repeats
run("b", 6, "save_freq=4", "--seed", "2")
shutil.rmtree(os.path.join(folder.name, "b", "global_step_6"))  # as if it had been killed before it could save
again = run("b", 8, "save_freq=4", "--seed", "2")
check("a run that goes on has every step once", again.returncode == 0 and [m["step"] for m in jsonl("b", "metrics.jsonl")] == list(range(9)), again.stderr,
      [m["step"] for m in jsonl("b", "metrics.jsonl")])
check("and its samples too", [s["step"] for s in jsonl("b", "samples.jsonl")] == [k for k in range(1, 9) for _ in range(4)])

out = os.path.join(folder.name, "both.html")
both = subprocess.run([REPORT, at, os.path.join(folder.name, "b"), "--out", out], capture_output=True, text=True)
data = json.loads(open(out, encoding="utf-8").read().split('type="application/json">')[1].split("</script>")[0])
check("report lays runs side by side", both.returncode == 0 and len(data["runs"]) == 2, both.stderr)
none = subprocess.run([REPORT, folder.name], capture_output=True, text=True)
check("report refuses a folder that is none of a run", none.returncode == 2 and "there is no metrics.jsonl" in none.stderr, none.stderr)
sys.exit(bool(failed))
