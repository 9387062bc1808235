"""Does a kernel keep registers in memory? usage: spills.py LOG..., each what `ptxas -v` said. One that may is named below, with the reason."""
import re
import sys

MAY = {"rmsnorm_backward_kernelILi256ELi8": "rows of more than 8,192 elements: no model here has them"}

kernels, failed = {}, 0
for log in sys.argv[1:]:
    name = None
    for line in open(log, encoding="utf-8"):
        if found := re.search(r"(?:Compiling entry function '|Function properties for )(\w+)", line):
            name = found.group(1)
        if name and (found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)):
            kernels[name] = max(kernels.get(name, 0), int(found.group(1)) + int(found.group(2)))
for name, spilled in sorted(kernels.items()):
    if spilled and not any(part in name for part in MAY):
        failed += 1
        print(f"{name}: {spilled} bytes of spilled registers stored and loaded")
print(f"{len(kernels)} kernels, {failed} with spilled registers")
sys.exit(failed > 0 or len(kernels) < 50)
