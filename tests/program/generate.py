"""generate and score on the tiny golden models, in one file and sharded. usage: generate.py GENERATE SCORE"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

from hf_files import shard, tensors

GENERATE, SCORE = (os.path.abspath(p) for p in sys.argv[1:3])
failed = 0


def check(what, holds, *shown):
    global failed
    failed += not holds
    print(("ok    " if holds else "FAILED ") + what, *(shown if not holds else ()))


def run(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)


def write(name, rows):
    with open(name, "w", encoding="utf-8") as to:
        to.writelines((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def read(name):
    return [json.loads(line) for line in open(name, encoding="utf-8")]


def values(tensor):
    kind = {"I64": "q", "I32": "i", "F32": "f"}[tensor[0]]
    flat = list(struct.unpack(f"<{len(tensor[2]) // struct.calcsize(kind)}{kind}", tensor[2]))
    width = tensor[1][-1]
    return [flat[i:i + width] for i in range(0, len(flat), width)]


place = tempfile.mkdtemp()
out = os.path.join(place, "out.jsonl")
rows_file = os.path.join(place, "in.jsonl")
for name in sorted(os.listdir("tests/data/hf")):
    folder, sharded = os.path.join("tests/data/hf", name), os.path.join(place, name)
    shard(folder, sharded, 3)
    golden = tensors(os.path.join(folder, "golden.safetensors"))
    ids, lengths = values(golden["input_ids"]), values(golden["lengths"])[0]
    wanted = values(golden["log_prob"])
    texts = [row[:n] for row, n in zip(ids, lengths)]
    write(rows_file, [{"ids": t} for t in texts])
    answers = []
    for model in (folder, sharded):
        done = run(SCORE, "--model", model, "--input", rows_file, "--output", out)
        check(f"{name}: score ends with 0", done.returncode == 0, done.stderr)
        answers.append(read(out))
    check(f"{name}: T - 1 values", all(len(a[k]) == len(t) - 1 for a, t in zip(answers[0], texts) for k in ("log_probs", "entropy")))
    worst = max(abs(x - y) for a, w in zip(answers[0], wanted) for x, y in zip(a["log_probs"], w))
    check(f"{name}: log-probs of transformers", worst < 2e-4, worst)
    check(f"{name}: shards score the same", answers[0] == answers[1])
    if "greedy" in golden:
        whole, prompt = values(golden["greedy"])[0], values(golden["greedy_prompt"])[0]
        write(rows_file, [{"prompt_ids": prompt}, {"prompt_ids": prompt[:2]}])
        arguments = ["--input", rows_file, "--output", out, "--max-new-tokens", len(whole) - len(prompt), "--temperature", 0]
        run(GENERATE, "--model", sharded, *arguments)
        answer = read(out)[0]
        check(f"{name}: greedy ids of transformers", answer["ids"] == whole[len(prompt):] and answer["prompt_ids"] == prompt, answer)
        check(f"{name}: it ended for length", answer["finish_reason"] == "length", answer)
        scored = os.path.join(place, "scored.jsonl")
        write(rows_file, [{"ids": whole}])
        run(SCORE, "--model", folder, "--input", rows_file, "--output", scored)
        check(f"{name}: score finds the log-probs that generate wrote", read(scored)[0]["log_probs"][len(prompt) - 1:] == answer["log_probs"])

model = "examples/arithmetic/model"
write(rows_file, [{"prompt": "3+4="}, {"prompt": "12+5="}, {"prompt_ids": [1, 2, 3]}])


def generate(seed, *more):
    done = run(GENERATE, "--model", model, "--input", rows_file, "--output", out, "--max-new-tokens", 8, "--seed", seed, *more)
    check("generate ends with 0", done.returncode == 0, done.stderr)
    return read(out)


first = generate(1)
check("a row each, with its fields", len(first) == 3 and all(set(a) == {"prompt_ids", "ids", "text", "log_probs", "finish_reason"} for a in first), first)
check("a log-prob for each id", all(len(a["ids"]) == len(a["log_probs"]) for a in first))
check("the same seed gives the same answers", generate(1) == first)
check("another seed gives others", generate(2) != first)
check("none ends before --min-new-tokens", all(len(a["ids"]) >= 8 for a in generate(1, "--min-new-tokens", 8)))
check("what is drawn does not depend on room", generate(1, "--kv-tokens", 64) == first)
text = run(GENERATE, "--model", model, "--prompt", "3+4=", "--temperature", "0", "--max-new-tokens", "8")
check("--prompt prints a text", text.returncode == 0 and text.stdout == generate(1, "--temperature", 0)[0]["text"] + "\n", text)

positions = json.load(open(os.path.join(model, "config.json")))["max_position_embeddings"]
write(rows_file, [{"prompt_ids": [1] * positions}, {"prompt_ids": [1]}])
done = run(GENERATE, "--model", model, "--input", rows_file, "--output", out, "--max-new-tokens", 4)
check("a prompt that is too long is told by row and counted", "in.jsonl:1: the prompt has" in done.stderr and "2 rows, 1 with a prompt that is too long" in done.stdout, done)
check("its row says so, the others are answered", [a["finish_reason"] == "prompt_too_long" for a in read(out)] == [True, False])
write(rows_file, [{"ids": [1] * (positions + 1)}, {"ids": [1, 2]}])
done = run(SCORE, "--model", model, "--input", rows_file, "--output", out)
check("score tells and counts rows that are too long", "2 rows, 1 too long" in done.stdout and "error" in read(out)[0] and "log_probs" in read(out)[1], done)

before = open(out).read()
for program, bad, message in ((GENERATE, '{"prompt": 3}', "string or a list of messages"), (GENERATE, "{}", "neither prompt nor messages"),
                              (GENERATE, "[", "not valid JSON"), (GENERATE, '{"prompt_ids": [100000]}', "the vocabulary has"),
                              (GENERATE, '{"prompt_ids": []}', "the prompt is empty"), (SCORE, '{"ids": "x"}', "list of token ids"),
                              (SCORE, "{}", "ids is missing"), (SCORE, '{"ids": []}', "ids is empty"), (SCORE, '{"ids": [-1]}', "the vocabulary has")):
    write(rows_file, [{"prompt_ids": [1], "ids": [1]}, bad])
    done = run(program, "--model", model, "--input", rows_file, "--output", out)
    name = os.path.basename(program)
    check(f"{name} refuses {bad}", done.returncode == 2 and "in.jsonl:2" in done.stderr and message in done.stderr and done.stderr.count("\n") == 1, done)
check("a refused file leaves the older output", open(out).read() == before and not [f for f in os.listdir(place) if ".tmp" in f])
shutil.rmtree(place)
print("failed" if failed else "all passed")
sys.exit(failed > 0)
