"""The report in a real browser: every chart has marks, nothing is clipped or sticks out, at 1280 and 390 pixels, in light and dark.
usage: report_browser.py GRPO REPORT (from the top of the tree). Skipped (77) without Chromium."""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if not browser:
    print("skipped: chromium is not installed (Debian package chromium)")
    sys.exit(77)
GRPO, REPORT = (os.path.abspath(p) for p in sys.argv[1:3])
EXPECTED = ["Reward", "Validation", "KL", "Entropy", "Response length", "Clip fraction", "Gradient norm", "Time by stage", "Throughput", "Device busy",
            "Arena fill", "Host syncs a step"]
# runs inside the page, in a frame of the wanted width; what it finds goes to the page around it
JUDGE = """<script>
setTimeout(()=>{const found=[],say=t=>found.push(t);
const charts=[...document.querySelectorAll(".chart")];
for(const c of charts){const name=c.dataset.chart,marks=[...c.querySelectorAll(".mark")],box=c.querySelector("svg").getBoundingClientRect();
 if(!marks.some(m=>{const b=m.getBoundingClientRect();return b.width+b.height>1}))say("no marks in "+name);
 for(const m of c.querySelectorAll("svg *")){const b=m.getBoundingClientRect();if(b.width+b.height===0)continue;
  if(b.left<box.left-1||b.right>box.right+1||b.top<box.top-1||b.bottom>box.bottom+1)say(`in ${name} ${m.tagName} "${m.textContent}" is clipped`)}}
const width=document.documentElement.clientWidth;
if(document.documentElement.scrollWidth>width)say("the page is wider than the window: "+document.documentElement.scrollWidth);
for(const e of document.querySelectorAll("main *")){if(e.closest("svg")||e.closest("option"))continue;const b=e.getBoundingClientRect();
 if(b.width&&(b.left<-1||b.right>width+1))say(`<${e.tagName} ${e.className}> sticks out`);
 const s=getComputedStyle(e);if(e.childNodes.length&&s.overflowX==="visible"&&e.scrollWidth>e.clientWidth+1&&e.clientWidth)say(`text of <${e.tagName} ${e.className}> "${e.textContent.slice(0,40)}" overflows`)}
const light=c=>{const[r,g,b]=c.match(/[\\d.]+/g).map(Number).map(v=>(v/=255)<=.03928?v/12.92:((v+.055)/1.055)**2.4);return.2126*r+.7152*g+.0722*b};
const ink=light(getComputedStyle(document.body).color),page=light(getComputedStyle(document.body).backgroundColor),contrast=(Math.max(ink,page)+.05)/(Math.min(ink,page)+.05);
if(contrast<7)say("contrast of text is "+contrast.toFixed(1));
for(const m of document.querySelectorAll(".chart .mark")){const c=getComputedStyle(m),v=c.stroke!=="none"?c.stroke:c.fill,l=light(v),card=light(getComputedStyle(m.closest(".card")).backgroundColor);
 const k=(Math.max(l,card)+.05)/(Math.min(l,card)+.05);if(k<2.2)say(`a mark in ${m.closest(".chart").dataset.chart} has contrast ${k.toFixed(1)}`)}
parent.postMessage({found,charts:charts.map(c=>c.dataset.chart),dark:page<.2,stages:document.querySelectorAll(".stage").length,samples:document.querySelectorAll(".sample").length,width:innerWidth},"*")},300)
</script>"""
AROUND = """<body style="margin:0"><iframe src="judged.html" style="border:0;width:%dpx;height:1400px"></iframe><pre id="verdict">nothing came back</pre>
<script>addEventListener("message",e=>document.getElementById("verdict").textContent="VERDICT"+JSON.stringify(e.data)+"END")</script>"""
failed = 0
with tempfile.TemporaryDirectory() as folder:
    def run(out, seed):
        subprocess.run([GRPO, "--config", "examples/arithmetic.yaml", "--out", os.path.join(folder, out), "--steps", "40", "--seed", str(seed), "test_freq=10",
                        "data.train_batch_size=32"], check=True, capture_output=True)
    run("first", 1)
    run("second_with_a_rather_long_name_that_must_not_push_anything_out_of_the_window", 2)
    both = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    subprocess.run([REPORT, *both, "--out", os.path.join(folder, "both.html")], check=True, capture_output=True)
    pages = {"one run": os.path.join(folder, "first", "report.html"), "two runs": os.path.join(folder, "both.html")}
    for what, page in pages.items():
        with open(os.path.join(folder, "judged.html"), "w", encoding="utf-8") as judged:
            judged.write(open(page, encoding="utf-8").read().replace("</body>", JUDGE + "</body>"))
        for width in (1280, 390):
            with open(os.path.join(folder, "around.html"), "w") as around:
                around.write(AROUND % width)
            for dark in (False, True):
                shown = subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1400,1500", "--virtual-time-budget=4000",
                                        f"--user-data-dir={folder}/profile", f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--dump-dom",
                                        "file://" + os.path.join(folder, "around.html")], capture_output=True, text=True, timeout=120).stdout
                verdict = re.search(r"VERDICT(\{.*\})END", shown)
                seen = json.loads(html.unescape(verdict[1])) if verdict else {"found": ["the browser gave no verdict: " + shown[:300]]}
                wrong = seen["found"]
                if verdict:
                    wrong += [f"no chart {name}" for name in EXPECTED if name not in seen["charts"] and not (what == "two runs" and name == "Time by stage")]
                    wrong += ["dark was asked for"] if seen["dark"] != dark else []
                    wrong += ["no stages"] if seen["stages"] < 10 else []
                    wrong += ["no samples"] if seen["samples"] < 1 else []
                    wrong += [f"the frame has {seen['width']} pixels"] if seen["width"] != width else []
                failed += bool(wrong)
                print("FAILED" if wrong else "ok    ", f"{what}, {width} pixels, {'dark' if dark else 'light'}", *wrong[:8], sep="\n       " if wrong else " ")
sys.exit(bool(failed))
