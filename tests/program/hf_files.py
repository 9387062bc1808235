"""Weights of Hugging Face folders, read and cut apart for tests."""
import json
import os
import shutil
import struct


def tensors(file):  # name -> (dtype, shape, bytes)
    whole = open(file, "rb").read()
    size = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8:8 + size])
    header.pop("__metadata__", None)
    return {n: (t["dtype"], t["shape"], whole[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]) for n, t in header.items()}


def shard(folder, to, parts):
    shutil.copytree(folder, to)
    all_tensors = sorted(tensors(os.path.join(folder, "model.safetensors")).items())
    os.remove(os.path.join(to, "model.safetensors"))
    index = {"metadata": {"total_size": sum(len(t[2]) for _, t in all_tensors)}, "weight_map": {}}
    for part in range(parts):
        name, header, data = f"model-{part + 1:05}-of-{parts:05}.safetensors", {}, b""
        for tensor, (kind, shape, values_of) in all_tensors[part::parts]:
            header[tensor] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(values_of)]}
            data += values_of
            index["weight_map"][tensor] = name
        text = json.dumps(header).encode()
        open(os.path.join(to, name), "wb").write(struct.pack("<Q", len(text)) + text + data)
    json.dump(index, open(os.path.join(to, "model.safetensors.index.json"), "w"))
