"""Held-out accuracy over steps as one SVG: curves.py OUT.svg LABEL=RUN,RUN,... LABEL=RUN,...   (a RUN is the folder of a run).
Of a reward model, which answers nothing: the share of pairs that it ranks right."""
import json
import sys

colours = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"]
labels = len(sys.argv) - 2
width, height, left, bottom, top, right = 760 + 100 * (labels > 4), max(360, 60 + 18 * labels), 48, 40, 16, 120 + 100 * (labels > 4)


def curve(run):
    rows = map(json.loads, open(f"{run}/metrics.jsonl"))
    points = [(r["step"], v) for r in rows for k, v in r.items() if k.startswith("val-core/") or k == "rewards/accuracies"]
    return [p for p in points if p[0] % max(1, points[-1][0] // 10) == 0]


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
for i, (label, runs) in enumerate(groups):
    colour, dash = colours[i % len(colours)], "" if i < len(colours) else f' stroke-dasharray="{2 + 3 * (i // len(colours))} 3"'
    for points in runs:
        line = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>')
    out.append(f'<text x="{width - right + 8}" y="{top + 16 + 18 * i}" fill="{colour}">{label}</text>')
open(sys.argv[1], "w").write("\n".join(out + ["</svg>"]) + "\n")
