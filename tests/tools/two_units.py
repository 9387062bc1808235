"""Two translation units that include every public header link: nothing is defined twice. usage: two_units.py "h h ..." "libraries" compiler flags..."""
import os
import shutil
import subprocess
import sys
import tempfile

headers, libraries, compiler = sys.argv[1].split(), sys.argv[2].split(), sys.argv[3:]
with tempfile.TemporaryDirectory() as folder:
    at = lambda name: os.path.join(folder, name)
    with open(at("unit.cpp"), "w") as unit:
        unit.writelines(f"#include <{h}>\n" for h in headers)
    with open(at("main.cpp"), "w") as main:
        main.write("int main() {}\n")
    subprocess.run([*compiler, "-O0", "-c", at("unit.cpp"), "-o", at("one.o")], check=True)
    shutil.copy(at("one.o"), at("two.o"))  # the same code again, as another unit would have it
    subprocess.run([*compiler, at("main.cpp"), at("one.o"), at("two.o"), "-o", at("program"), *libraries, "-pthread"], check=True)
