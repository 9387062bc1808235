"""Does transformers compute the same with what weft saved? usage: transformers_loads.py SAVER FOLDER...
SAVER is build/tests/save_model: it writes FOLDER as weft saves it, in one file and sharded. Skipped (77) without torch or transformers."""
import os
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
except ImportError as why:
    print("skipped:", why)
    sys.exit(77)

saver, folders = os.path.abspath(sys.argv[1]), sys.argv[2:]
ids = torch.arange(3, 40)[None]
failed = 0


@torch.inference_mode()
def logits(folder, kind):
    model, found = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    return model.eval()(ids).logits, {k: v for k, v in found.items() if v}


for folder in folders:
    for how, most in (("one file", "5000000000"), ("sharded", "40000")):
        with tempfile.TemporaryDirectory() as place:
            to = os.path.join(place, "saved")
            subprocess.run([saver, folder, to, most, "0"], check=True)
            files = sorted(f for f in os.listdir(to) if f.endswith(".safetensors"))
            ours, loading = logits(to, transformers.AutoModelForCausalLM)
            theirs, _ = logits(folder, transformers.AutoModelForCausalLM)
            same = torch.equal(ours, theirs) and not loading and (len(files) > 1) == (how == "sharded")
            failed += not same
            print("ok" if same else "FAILED", folder, how, len(files), "files, largest difference", float((ours - theirs).abs().max()), loading)
            critic = os.path.join(place, "critic")
            subprocess.run([saver, folder, critic, most, "1"], check=True)
            scores, loading = logits(critic, transformers.AutoModelForSequenceClassification)
            good = tuple(scores.shape) == (1, 1) and not loading
            failed += not good
            print("ok" if good else "FAILED", folder, how, "as a critic", loading)
print("transformers", transformers.__version__, "failed" if failed else "all equal")
sys.exit(failed > 0)
