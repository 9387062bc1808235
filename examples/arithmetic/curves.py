"""Held-out accuracy over steps as one SVG: curves.py OUT.svg LABEL=RUN,RUN,... LABEL=RUN,...   (a RUN is the folder of a run)"""
import json
import sys

width, height, left, bottom, top, right = 760, 360, 48, 40, 16, 120
colours = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd"]


def curve(run):
    rows = map(json.loads, open(f"{run}/metrics.jsonl"))
    return [(r["step"], v) for r in rows for k, v in r.items() if k.startswith("val-core/")]


groups = [(g.split("=")[0], [curve(r) for r in g.split("=")[1].split(",")]) for g in sys.argv[2:]]
most = max(p[-1][0] for _, runs in groups for p in runs)
x = lambda step: left + (width - left - right) * step / most
y = lambda share: height - bottom - (height - bottom - top) * share
out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
       f'<rect width="{width}" height="{height}" fill="white"/>']
for tick in [0, 0.2, 0.4, 0.6, 0.8, 1]:
    out.append(f'<path d="M{left} {y(tick):.1f}H{width - right}" stroke="#ddd"/><text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.1f}</text>')
for step in range(0, most + 1, max(1, most // 5)):
    out.append(f'<text x="{x(step):.1f}" y="{height - bottom + 18}" text-anchor="middle">{step}</text>')
out.append(f'<text x="{(left + width - right) / 2:.0f}" y="{height - 6}" text-anchor="middle">step</text>')
for (label, runs), colour in zip(groups, colours):
    for points in runs:
        line = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    out.append(f'<text x="{width - right + 8}" y="{top + 16 + 18 * [g[0] for g in groups].index(label)}" fill="{colour}">{label}</text>')
open(sys.argv[1], "w").write("\n".join(out + ["</svg>"]) + "\n")
