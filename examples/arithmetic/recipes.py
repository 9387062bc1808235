"""Learning curves of every recipe on arithmetic, in one plot: recipes.py OUT.svg [STEPS]     (from the top of the tree, after a build)

Runs lie in runs/curves; one that is there already is not run again. DPO, the reward model and hybrid learn from pairs of the same generator, the
right answer over one that forgets a carry or invents one; distillation from a larger model that is taught right answers first."""
import json
import pathlib
import subprocess
import sys

picture, steps = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "40"
runs, data, build = pathlib.Path("runs/curves"), pathlib.Path("runs/arithmetic"), pathlib.Path("build/examples")


def train(name, config, *knobs, steps=steps):
    out = runs / name
    if not (out / "model").exists():
        print(name, flush=True)
        subprocess.run([build / "train", "--config", f"examples/{config}.yaml", "--out", out, "--steps", steps, f"test_freq={max(1, int(steps) // 10)}",
                        *knobs], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return str(out)


subprocess.run([build / "arithmetic", "--out", data], check=True, stdout=subprocess.DEVNULL)
sampled = ["grpo", "dr_grpo", "dapo", "gspo", "reinforce", "rloo", "opo", "grpo_passk", "gpg", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "remax"]
losses = ["cispo", "sapo", "geo_mean", "clip_cov", "kl_cov"]
curves = {name: train(name, "arithmetic", f"algorithm={name}") for name in sampled}
curves |= {name: train(name, "arithmetic", f"loss_mode={name}") for name in losses}
curves["ppo"] = train("ppo", "arithmetic_ppo")
curves["sft"] = train("sft", "arithmetic_sft", f"train_files={data}/right.jsonl", "actor_rollout_ref.model.path=examples/arithmetic/model",
                      "actor.optim.lr=5e-5", "actor.optim.lr_warmup_steps=0")
curves["dpo"] = train("dpo", "arithmetic_dpo")
curves["hybrid"] = train("hybrid", "arithmetic_hybrid")

teacher = runs / "new_teacher"  # twice as wide
teacher.mkdir(parents=True, exist_ok=True)
for file in pathlib.Path("examples/arithmetic/new").iterdir():
    (teacher / file.name).write_bytes(file.read_bytes())
config = json.loads((teacher / "config.json").read_text())
for key in ["hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"]:
    config[key] *= 2
(teacher / "config.json").write_text(json.dumps(config, indent=2))
taught = train("teacher", "arithmetic_sft", f"train_files={data}/right.jsonl", f"actor_rollout_ref.model.path={teacher}", steps=str(30 * int(steps)))
curves["distill"] = train("distill", "arithmetic", "algorithm=distill", f"teacher.model.path={taught}/model")
# the share of pairs that it ranks right, before it learns them
curves["reward_model"] = train("reward_model", "arithmetic_dpo", "algorithm=reward_model", "val_files=[]", "actor.optim.lr=3e-4")

subprocess.run([sys.executable, "examples/arithmetic/curves.py", picture, *(f"{label}={run}" for label, run in curves.items())], check=True)
