"""What may include what, over all headers. usage: include_rules.py project-root"""
import os
import re
import sys

LANGUAGE = "element name error dim port access stage place graph program foreign memory bind weft".split()
CHEAP = {"array", "concepts", "cstddef", "cstdint", "new", "type_traits", "utility"}
FMT = ("include/weft/plan.hpp", "include/weft/io/", "include/weft/train/")
CUDA = ("include/weft/engine/cuda.hpp", "include/weft/comm/nccl.hpp", "kernels/cuda/")
GRAPH = re.compile(r"(weft/|\.\./|^)(graph|place|stage|access|port|bind|program|plan|step)\.hpp$|/graph/|/stages/|/recipes/|engine/")

root = sys.argv[1]
wrong = []
for top in ("include/weft", "kernels"):
    for folder, _, files in os.walk(os.path.join(root, top)):
        for file in files:
            path = os.path.relpath(os.path.join(folder, file), root)
            language = path.startswith("include/weft/graph/") or path in [f"include/weft/{w}.hpp" for w in LANGUAGE]
            for line in open(os.path.join(root, path), encoding="utf-8"):
                found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
                if not found:
                    continue
                system, name = found[1] == "<", found[2]
                if language and system and name not in CHEAP:
                    wrong.append(f"{path} includes <{name}>: the language stays cheap to include")
                if re.match(r"(cuda|nccl|cublas)", name) and not path.startswith(CUDA):
                    wrong.append(f"{path} includes {name}: no toolkit outside its own files")
                if name.startswith("fmt/") and not path.startswith(FMT):
                    wrong.append(f"{path} includes {name}: fmt takes a second to include")
                if path.startswith("kernels/") and GRAPH.search(name):
                    wrong.append(f"{path} includes {name}: a kernel knows no graph")
                if "engine/" in name and path.startswith("include/weft/") and not path.startswith(("include/weft/engine/", "include/weft/train/")):
                    wrong.append(f"{path} includes {name}: nothing depends on an engine")
print(*wrong, sep="\n")
sys.exit(bool(wrong))
