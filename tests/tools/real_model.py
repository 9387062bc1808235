"""SmolLM2-135M-Instruct in transformers and in weft: answers, log-probs, speed, and the model that weft saved. Prints what docs/real_model.md shows.
usage: real_model.py FOLDER BUILD   FOLDER: made by convert_smollm2.py (golden.jsonl is added); BUILD: weft's build folder
       real_model.py FOLDER         only makes golden.jsonl"""
import json
import os
import subprocess
import sys
import tempfile
import time

import torch
import transformers

MOST = 64  # tokens of an answer
QUESTIONS = [
    "What is the capital of France?", "Write a haiku about the sea.", "What is 17 plus 25?", "Explain photosynthesis in one sentence.",
    "Name three primary colors.", "Translate 'good morning' into Spanish.", "Who wrote Romeo and Juliet?", "Give me a recipe for pancakes.",
    "Why is the sky blue?", "List the days of the week.", "Write a Python function that reverses a string.", "What does HTTP stand for?",
    "Is 91 a prime number?", "Tell me a short story about a dragon who's afraid of fire.", "How many continents are there?",
    "What's the difference between a list and a tuple?", "Summarize: The quick brown fox jumps over the lazy dog.", "Count from 1 to 10.",
]
CHATS = [[{"role": "user", "content": question}] for question in QUESTIONS] + [
    [{"role": "system", "content": "You answer like a pirate."}, {"role": "user", "content": "Where is the treasure?"}],
    [{"role": "user", "content": "Hi! I'm Ana."}, {"role": "assistant", "content": "Hello Ana! How can I help you today?"},
     {"role": "user", "content": "What's my name?"}],
]


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def ids_of(words, chats):  # [chats, longest], padding on the left; and where there is none
    return words([words.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats], padding=True, padding_side="left",
                 add_special_tokens=False, return_tensors="pt")


@torch.inference_mode()
def golden(folder, model, words):
    with open(os.path.join(folder, "golden.jsonl"), "w", encoding="utf-8") as out:
        for chat in CHATS:
            prompt = ids_of(words, [chat])
            whole = model.generate(**prompt, max_new_tokens=MOST, do_sample=False)[0]
            first = prompt["input_ids"].shape[1]
            logits = model(whole[None]).logits[0]
            log_probs = torch.log_softmax(logits[:-1].double(), -1).gather(1, whole[1:, None])[:, 0]
            best = logits[first - 1:-1].topk(2)
            out.write(json.dumps({
                "messages": chat, "text": words.apply_chat_template(chat, tokenize=False, add_generation_prompt=True),
                "prompt_ids": whole[:first].tolist(), "response_ids": whole[first:].tolist(), "log_probs": log_probs.tolist(),
                "runner_up": best.indices[:, 1].tolist(), "margins": (best.values[:, 0] - best.values[:, 1]).tolist()}) + "\n")


@torch.inference_mode()
def speed(model, words, chats, at_once):
    begun, tokens = time.perf_counter(), 0
    for first in range(0, chats, at_once):
        prompt = ids_of(words, CHATS[first:first + at_once])
        whole = model.generate(**prompt, max_new_tokens=MOST, min_new_tokens=MOST, do_sample=False)
        tokens += whole.shape[0] * (whole.shape[1] - prompt["input_ids"].shape[1])
    return tokens / (time.perf_counter() - begun)


def weft_speed(program, folder, chats, at_once):
    command = [program, folder, "--speed", str(at_once), "--chats", str(chats)]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result["tokens"] / result["seconds"]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = sys.argv[1]
    model, words = load(folder), transformers.AutoTokenizer.from_pretrained(folder)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {torch.get_num_threads()} threads", flush=True)
    if not os.path.exists(os.path.join(folder, "golden.jsonl")):
        golden(folder, model, words)
    if len(sys.argv) == 2:
        return 0
    program = os.path.join(sys.argv[2], "tests", "real_model")
    failed = 0
    with tempfile.TemporaryDirectory() as saved:
        failed += subprocess.run([program, folder, "--save", saved]).returncode != 0
        again, words_again = load(saved), transformers.AutoTokenizer.from_pretrained(saved)
        ids = ids_of(words_again, CHATS[:1])
        with torch.inference_mode():
            same = torch.equal(model(**ids).logits, again(**ids).logits) and torch.equal(ids["input_ids"], ids_of(words, CHATS[:1])["input_ids"])
        print(f"transformers loads what weft saved: {'the same logits' if same else 'OTHER LOGITS'}", flush=True)
        failed += not same
        del again
    for chats, at_once in ((len(CHATS), len(CHATS)), (4, 1)):
        theirs, ours = [], []
        for _ in range(3):  # in turns, so that both see the same machine
            theirs.append(speed(model, words, chats, at_once))
            ours.append(weft_speed(program, folder, chats, at_once))
        print(f"{chats} answers of {MOST} tokens, {at_once} at once: weft {max(ours):.1f} tokens/s, transformers {max(theirs):.1f}, "
              f"ratio {max(ours) / max(theirs):.2f}", flush=True)
        failed += max(ours) <= max(theirs)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
