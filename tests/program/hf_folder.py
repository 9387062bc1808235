"""Programs on folders as Hugging Face has them: training from sharded weights, prompts as messages, a tokenizer with begin-of-text.
usage: hf_folder.py GRPO PPO GENERATE TOKENIZE (from the top of the tree)"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from hf_files import shard, tensors

GRPO, PPO, GENERATE, TOKENIZE = (os.path.abspath(p) for p in sys.argv[1:5])
MODEL = "examples/arithmetic/model"
place = tempfile.mkdtemp()
failed = 0


def check(what, holds, *shown):
    global failed
    failed += not holds
    print(("ok    " if holds else "FAILED ") + what, *(shown if not holds else ()))


def train(program, model, out):
    config = "examples/arithmetic_ppo.yaml" if program == PPO else "examples/arithmetic.yaml"
    more = ["trainer.critic_warmup=0", "actor.ppo_mini_batch_size=8", "critic.ppo_mini_batch_size=8", "actor.optim.lr_warmup_steps=0"] if program == PPO else []
    done = subprocess.run([program, "--config", config, "--out", out, "--model", model, "--steps", "2",
                           "data.train_batch_size=16", "test_freq=2", "threads=1", *more], capture_output=True, text=True)
    check(f"{os.path.basename(program)} trains on {os.path.basename(model)}", done.returncode == 0, done.stdout, done.stderr)
    times = ("timing", "perf/", "time", "tokens_per")
    return [{k: v for k, v in json.loads(line).items() if not any(t in k for t in times)} for line in open(os.path.join(out, "metrics.jsonl"))]


cut = os.path.join(place, "sharded")
shard(MODEL, cut, 3)
for program in (GRPO, PPO):
    name = os.path.basename(program)
    if name == "ppo":
        whole_out, cut_out = os.path.join(place, "p1"), os.path.join(place, "p2")
    else:
        whole_out, cut_out = os.path.join(place, "g1"), os.path.join(place, "g2")
    whole, sharded = train(program, MODEL, whole_out), train(program, cut, cut_out)
    check(f"{name}: two steps and their rewards", len(whole) >= 2 and any("score" in k or "reward" in k for k in whole[-1]), whole)
    check(f"{name}: the same steps from shards", whole == sharded, whole, sharded)
    same = {k: t[2] for k, t in tensors(os.path.join(whole_out, "model", "model.safetensors")).items()}
    check(f"{name}: the same weights afterwards", same == {k: t[2] for k, t in tensors(os.path.join(cut_out, "model", "model.safetensors")).items()})
    check(f"{name}: they moved", same != {k: t[2] for k, t in tensors(os.path.join(MODEL, "model.safetensors")).items()})


def answers(model, rows):
    inputs, out = os.path.join(place, "in.jsonl"), os.path.join(place, "out.jsonl")
    with open(inputs, "w", encoding="utf-8") as to:
        to.writelines(json.dumps(row) + "\n" for row in rows)
    done = subprocess.run([GENERATE, "--model", model, "--input", inputs, "--output", out, "--max-new-tokens", "4"], capture_output=True, text=True)
    check("generate ends with 0", done.returncode == 0, done.stderr)
    return [json.loads(line) for line in open(out, encoding="utf-8")] if done.returncode == 0 else []


def tokenized(model, row, *more):
    done = subprocess.run([TOKENIZE, "--tokenizer", model, *more], input=json.dumps(row) + "\n", capture_output=True, text=True)
    check("tokenize ends with 0", done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


# messages: a folder with a chat template
chat = os.path.join(place, "chat")
shutil.copytree(MODEL, chat)
shutil.copy("tests/data/chat_templates/chatml.jinja", os.path.join(chat, "chat_template.jinja"))
config = json.load(open(os.path.join(chat, "config.json")))
config["max_position_embeddings"] = 512
json.dump(config, open(os.path.join(chat, "config.json"), "w"))
messages = [{"role": "user", "content": "3+4="}]
expected = tokenized(chat, {"messages": messages, "add_generation_prompt": True})
for row in ({"messages": messages}, {"prompt": messages}):
    got = answers(chat, [row])
    check(f"generate renders {list(row)[0]} with the generation prompt", [g["prompt_ids"] for g in got] == [expected["ids"]], got, expected)
check("and the text says so", expected["rendered"].endswith("<|im_start|>assistant\n") and "3+4=" in expected["rendered"], expected)

# begin-of-text, as Llama 3 has it: around plain texts, not around ids
begin = os.path.join(place, "begin")
shutil.copytree(MODEL, begin)
words = json.load(open(os.path.join(begin, "tokenizer.json")))
symbols = {ids: token for token, ids in words["model"]["vocab"].items()}
words["model"]["vocab"][symbols[ord("Q")] * 2] = 258
words["model"]["merges"] = [[symbols[ord("Q")], symbols[ord("Q")]]]
words["post_processor"] = {"type": "TemplateProcessing", "pair": [], "single": [{"SpecialToken": {"id": "<|pad|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                           "special_tokens": {"<|pad|>": {"id": "<|pad|>", "ids": [257], "tokens": ["<|pad|>"]}}}
json.dump(words, open(os.path.join(begin, "tokenizer.json"), "w"))
got = answers(begin, [{"prompt": "3+4="}, {"prompt_ids": [51, 43]}])
check("a text begins with begin-of-text, ids stay as they are", [g["prompt_ids"] for g in got] == [[257] + list(b"3+4="), [51, 43]], got)
check("as tokenize adds it when asked", tokenized(begin, {"text": "3+4="}, "--add-special-tokens")["ids"] == [257] + list(b"3+4="))
shutil.rmtree(place)
print("failed" if failed else "all passed")
sys.exit(failed > 0)
