"""Trains the two small tokenizers of tests/data/tokenizers and computes what Hugging Face's `tokenizers` makes of some texts, and what Jinja
makes of some messages with the templates of tests/data/chat_templates.
usage: python3 -m venv V && V/bin/pip install tokenizers jinja2 && V/bin/python tests/tools/train_tokenizer.py tests/data"""
import glob
import json
import os
import random
import sys
import unicodedata

import jinja2.sandbox
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

WORDS = """the a model learns from reward and policy gradient each step samples tokens prompt response weights update loss of to in is we it's don't I'll
you're they've I'd he'd WE'LL x = f(x) + 1; return [0, 42, 3.14159, 2026] def for if else naïve café résumé über Straße Привет мир как дела 你好 世界 今天 天气
怎么样 こんにちは 世界 한국어 텍스트 مرحبا بالعالم नमस्ते दुनिया 🙂 👩‍👩‍👧‍👦 🇨🇭 \\frac{1}{2} https://example.org/a?b=c&d=%20 <b>bold</b> snake_case camelCase""".split()
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
EDGES = ["", " ", "   ", "\n", " \n ", "\r\n\r\n  \r  x", "a\u00a0b\u2003c\u200bd\u180ee \u180e f\u0085g\ufeffh", "e\u0301 vs \u00e9", "q\u0307\u0323 q\u0323\u0307",
         "\u1100\u1161\u11a8 \uac00\u11a8", "\u212b \u2126 \ufb01 \u0344 \u0958", "'ſ 'S it's IT'S don't", "1234567890 ٣٤ Ⅷ ½ ²", "\x00\x01\x7f", "\U0010ffff\uffff\ue000",
         "a" * 100, " " * 300 + "x", "ab" * 60, "😀" * 40, "<|endoftext|>", "x<|im_start|>user\nhi<|im_end|>\n", "<|im_<|im_end|>|>", "<|endoftext|><|endoftext|> ",
         "  <mask>  x", "a <mask>b", "tool tools tool. _tool tool", " tool  ", "u\u0308\u0301ber \u01d8ber u\u0308\u0301bers", "left  <l>  x", "a<r>   \n b", "<l><l> <r> <r><l>"]


def texts(seed):
    r = random.Random(seed)
    out = list(EDGES)
    for _ in range(60):
        words = [r.choice(WORDS) for _ in range(r.randrange(1, 14))]
        out.append("".join(w + r.choice([" ", " ", " ", "", "  ", "\n", "\t", ", ", ".\n\n"]) for w in words))
    for _ in range(60):
        kinds = ["az AZ", "09 .,", "\u00c0\u024f  ", "\u0300\u036f ea", "\u0400\u04ff", "\u4e00\u4fff", "\uac00\ud7a3\u1100\u11ff", "\u0900\u097f", "\u0600\u06ff", "\U0001f300\U0001f64f"]
        kind = r.choice(kinds)
        text = ""
        for _ in range(r.randrange(1, 40)):
            i = 2 * r.randrange(len(kind) // 2)
            c = chr(r.randint(*sorted((ord(kind[i]), ord(kind[i + 1]))))) if r.random() < 0.8 else r.choice(" \n'e\u0301<")
            text += c if unicodedata.category(c) != "Cn" else " "
        out.append(text)
    return out


def train(form):
    t = Tokenizer(models.BPE(ignore_merges=form == "strings"))
    if form == "pairs":
        t.normalizer = normalizers.NFC()
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        t.post_processor = processors.ByteLevel(trim_offsets=False)
    else:
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    r = random.Random(7)
    corpus = [" ".join(r.choice(WORDS) for _ in range(200)) for _ in range(40)]
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=256 + 400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens(SPECIALS)
    t.add_tokens([AddedToken("<mask>", lstrip=True), AddedToken("tool", single_word=True), AddedToken("ǘber", normalized=True),
                  AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=False)])
    if form == "strings":
        t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
            single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", t.token_to_id("<|begin_of_text|>"))])])
    return t


def conversations():
    system, user, answer = ({"role": "system", "content": " Be terse.\n"}, {"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": "4"})
    thought = {"role": "assistant", "content": "<think>\nWell.\n\nHm.\n</think>\n\n4"}
    apart = {"role": "assistant", "content": "\n\n4", "reasoning_content": "\nWell.\n"}
    odd = {"role": "assistant", "content": "a</think>b<think>c</think>\n\nd"}
    tool, wrapped = {"role": "tool", "content": "{\"x\": 1}"}, {"role": "user", "content": "<tool_response>\n1\n</tool_response>"}
    blank = {"role": "user", "content": "\t\u3000Grüße, 世界 \u00a0\n"}
    yield from ([user], [system, user], [user, answer], [system, user, answer, user], [user, thought, user], [user, thought], [user, apart, user, apart], [user, odd, odd],
                [user, thought, wrapped], [user, answer, tool, tool, answer], [user, system, blank], [system], [wrapped, thought], [blank, thought, blank, answer])


def main(data):
    for form in ("pairs", "strings"):
        folder = os.path.join(data, "tokenizers", form)
        os.makedirs(folder, exist_ok=True)
        t = train(form)
        root = json.loads(t.to_str())
        if form == "strings":
            root["model"]["merges"] = [" ".join(m) for m in root["model"]["merges"]]
        with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
            json.dump(root, f, ensure_ascii=False, indent=1)
        t = Tokenizer.from_file(f.name)
        with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
            json.dump({"eos_token": "<|im_end|>" if form == "pairs" else {"content": "<|eot_id|>"}, "bos_token": None if form == "pairs" else "<|begin_of_text|>",
                       "model_max_length": 1000000000000000019884624838656, "tokenizer_class": "PreTrainedTokenizerFast"}, f, indent=1)
        with open(os.path.join(data, "tokenizers", form + ".jsonl"), "w", encoding="utf-8") as f:
            for text in texts(len(form)):
                ids = t.encode(text, add_special_tokens=False).ids
                print(json.dumps({"text": text, "ids": ids, "decoded": t.decode(ids, skip_special_tokens=False)}), file=f)
            r = random.Random(3)
            for _ in range(20):  # ids that no text gives: broken characters
                ids = [r.randrange(t.get_vocab_size()) for _ in range(12)]
                print(json.dumps({"ids": ids, "decoded": t.decode(ids, skip_special_tokens=False)}), file=f)
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    for file in sorted(glob.glob(os.path.join(data, "chat_templates", "*.jinja"))):
        template = env.from_string(open(file, encoding="utf-8").read())
        with open(file[:-len("jinja")] + "jsonl", "w", encoding="utf-8") as f:
            for messages in conversations():
                if "llama3_" in file and any(m["role"] == "tool" for m in messages):
                    continue
                for more in ({"add_generation_prompt": True}, {"add_generation_prompt": False}, {"add_generation_prompt": True, "enable_thinking": False}):
                    print(json.dumps({"messages": messages, **more, "rendered": template.render(messages=messages, bos_token="<|begin_of_text|>", **more)}), file=f)


main(sys.argv[1])
