"""Compile time of the graph language, as ratios to a fixed file compiled in the same run (user time, best of several).
usage: compile_budget.py [--nvcc NVCC] include-folder compiler [flags]"""
import os
import subprocess
import sys
import tempfile

REFERENCE = "#include <algorithm>\n#include <string>\n#include <vector>\n"
LIMITS = {  # times the reference; measured on g++ 12: 0.3, 1.6, 6
    "weft.hpp alone": 1.0,
    "16 stages with bind": 4.0,
    "64 stages with bind": 12.0,
}
NVCC_LIMIT = 7.0  # what 16 stages with bind add to an empty file


def graph(stages):
    """A chain with branches: every stage reads two edges and state, has a setting and scratch; half of them in a loop in a pool."""
    lines = [
        "#include <weft/engine/cpu.hpp>",
        "using namespace weft;",
        "struct sample : dim {}; struct width : dim {}; struct mini : part<sample> {}; struct data : axis {};",
        "struct trainer : pool<split<data, sample>> {};",
        "struct options { float rate; }; struct room : port<f32, width> {};",
        "template <int> struct p : port<f32, sample> {}; template <int> struct w : port<f32, width> {};",
        "template <int I> struct stage {",
        "  static void run(in<p<I>> a, in<p<I + 1>> b, state<w<I % 8>> s, setting<options> o, scratch<room> r, out<p<I + 2>> c) {",
        "    r(0) = s(0);",
        "    for (size_t i = 0; i < c.count(); ++i) c(i) = a(i) + b(i) * o->rate;",
        "  }",
        "};",
    ]
    half = stages // 2
    first = ", ".join(f"stage<{i}>" for i in range(half))
    second = ", ".join(f"stage<{i}>" for i in range(half, stages))
    lines += [
        f"using g = graph<feed<p<0>>, feed<p<1>>, {first}, at<trainer, each<mini, {second}>>, keep<p<{stages}>>, keep<p<{stages + 1}>>>;",
        "void f() { bind<g>(cpu{}, sample{8}, width{8}, mini{2}, data{2}, options{1}).step(); }",
    ]
    return "\n".join(lines) + "\n"


def seconds(command, text, suffix, tries=5):
    with tempfile.NamedTemporaryFile("w", suffix=suffix) as file:
        file.write(text)
        file.flush()
        best = float("inf")
        for _ in range(tries):
            before = os.times()
            subprocess.run([*command, file.name], check=True)
            after = os.times()
            best = min(best, after.children_user - before.children_user)
        return best


os.environ["CCACHE_DISABLE"] = "1"
arguments = sys.argv[1:]
nvcc = None
if arguments[0] == "--nvcc":
    nvcc, arguments = arguments[1], arguments[2:]
include, compiler = "-I" + arguments[0], [*arguments[1:], "-std=c++20", "-c", "-o", os.devnull]
sources = {"weft.hpp alone": "#include <weft/weft.hpp>\n", "16 stages with bind": graph(16), "64 stages with bind": graph(64)}
reference = seconds(compiler, REFERENCE, ".cpp")
failed = False
print(f"reference: {reference:.2f} s")
for name, text in sources.items():
    ratio = seconds([*compiler, include], text, ".cpp") / reference
    failed = failed or ratio > LIMITS[name]
    print(f"{name}: {ratio:.2f} of at most {LIMITS[name]} times the reference")
if nvcc:
    command = [nvcc, "-std=c++20", "-arch", "sm_90", include, "-c", "-o", os.devnull]
    more = seconds(command, graph(16), ".cu", 3) - seconds(command, "", ".cu", 3)
    failed = failed or more / reference > NVCC_LIMIT
    print(f"nvcc, 16 stages with bind over an empty file: {more / reference:.2f} of at most {NVCC_LIMIT} times the reference")
sys.exit(failed)
