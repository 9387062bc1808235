// report_page.hpp — the page of a report: style and script around the data of the runs, which stand in place of @DATA@. No network, no library.
#pragma once

namespace weft::io {
inline constexpr char report_page[] = R"page(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>weft: run report</title>
<style>
:root{--page:#f6f7f9;--card:#fff;--ink:#14181f;--soft:#5b6472;--faint:#8a93a1;--line:#e3e7ec;--grid:#eceff3;--shade:#f1f4f8;
--a:#2563c9;--b:#d9602b;--c:#18926b;--d:#8a4fc7;--e:#b8860b;--f:#c2377a;--g:#4d7f9e;--h:#6b7280;--good:#18803f;--bad:#c0392b;color-scheme:light}
@media (prefers-color-scheme:dark){:root{--page:#0e1116;--card:#161b22;--ink:#e7ebf0;--soft:#a0a9b6;--faint:#758090;--line:#272e38;--grid:#20262f;--shade:#1d232c;
--a:#6ea5ff;--b:#ff9a66;--c:#45c99b;--d:#bd8bf5;--e:#e0b64a;--f:#f27fb2;--g:#7fb4d6;--h:#9aa4b2;--good:#4cc38a;--bad:#ff7b72;color-scheme:dark}}
*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
main{overflow-wrap:anywhere;max-width:1240px;margin:0 auto;padding:28px 20px 64px}
h1{font-size:26px;line-height:1.2;margin:0;letter-spacing:-.02em;overflow-wrap:anywhere}h2{font-size:18px;margin:40px 0 12px;letter-spacing:-.01em}
h3{font-size:14px;margin:0;font-weight:600}p{margin:0}.soft{color:var(--soft)}.small{font-size:13px}
.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12.5px}
.runs{display:flex;flex-wrap:wrap;gap:6px 18px;margin-top:10px}.runs span{display:inline-flex;align-items:center;gap:7px;overflow-wrap:anywhere}
.dot{flex:none;width:10px;height:10px;border-radius:50%;display:inline-block}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(170px,1fr));gap:12px;margin-top:22px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;min-width:0}
.tile b{display:block;font-size:22px;letter-spacing:-.02em;font-weight:650;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}.tile span{font-size:12.5px;color:var(--soft);overflow-wrap:anywhere}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,350px),1fr));gap:14px}
.chart .head{display:flex;justify-content:space-between;gap:10px;align-items:baseline}.chart .now{font-variant-numeric:tabular-nums;font-size:13px;color:var(--soft);white-space:nowrap}
.chart svg{display:block;width:100%;margin-top:8px;touch-action:pan-y}.legend{display:flex;flex-wrap:wrap;gap:3px 12px;margin-top:8px;font-size:12px;color:var(--soft)}
.legend span{display:inline-flex;gap:5px;align-items:center;overflow-wrap:anywhere}.swatch{flex:none;width:10px;height:3px;border-radius:2px;display:inline-block}.swatch.box{height:10px}
.tick{font-size:11px;fill:var(--faint);font-variant-numeric:tabular-nums}.gridline{stroke:var(--grid)}.axis{stroke:var(--line)}.cursor{stroke:var(--faint);stroke-dasharray:3 3}
.tip{position:fixed;z-index:9;pointer-events:none;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:7px 10px;font-size:12px;box-shadow:0 6px 24px #0003;max-width:min(320px,90vw)}
.tip div{display:flex;gap:8px;justify-content:space-between;font-variant-numeric:tabular-nums}
.stage{display:grid;grid-template-columns:var(--gutter) minmax(0,1fr) minmax(90px,34%);align-items:center;height:30px;font-size:13px;gap:0 10px}
.stage .name{white-space:nowrap;overflow:hidden;text-overflow:ellipsis;min-width:0}.stage .place{color:var(--faint);font-size:11.5px;margin-left:6px}
.bar{position:relative;height:16px;background:var(--shade);border-radius:4px}.bar i{position:absolute;left:0;top:0;bottom:0;border-radius:4px;background:var(--a);min-width:1px}
.stage .time{display:grid;grid-template-columns:minmax(0,1fr) 76px;gap:8px;align-items:center;font-variant-numeric:tabular-nums;text-align:right;color:var(--soft);font-size:12px}
.graph{position:relative}.graph svg{position:absolute;left:0;top:0}.stage.quiet .name{color:var(--soft)}
.samples{display:grid;gap:12px;grid-template-columns:repeat(auto-fill,minmax(min(100%,350px),1fr))}.sample{display:flex;flex-direction:column;gap:8px}
.sample pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;max-height:15em;overflow:auto;background:var(--shade);border-radius:7px;padding:8px 10px}
.sample .meta{display:flex;justify-content:space-between;gap:8px;font-size:12.5px;color:var(--soft);flex-wrap:wrap}.reward{font-weight:650;font-variant-numeric:tabular-nums}
.pick{display:flex;flex-wrap:wrap;gap:10px 16px;align-items:center;margin-bottom:12px}.pick input[type=range]{flex:1 1 160px;min-width:120px;accent-color:var(--a)}
select,button{font:inherit;font-size:13px;background:var(--card);color:var(--ink);border:1px solid var(--line);border-radius:7px;padding:4px 9px;max-width:100%}
table{border-collapse:collapse;font-size:13px;width:100%;table-layout:fixed}td,th{text-align:left;padding:5px 12px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
th{color:var(--soft);font-weight:500}details>summary{cursor:pointer;font-weight:600;font-size:14px}details pre{white-space:pre-wrap;overflow-wrap:anywhere}details{margin-top:12px}
@media (max-width:520px){main{padding:18px 12px 48px}.tiles{grid-template-columns:repeat(2,minmax(0,1fr));gap:8px}.card{padding:12px}.tile b{font-size:18px}.stage{grid-template-columns:var(--gutter) minmax(0,1fr) 104px;gap:0 6px}.stage .time{grid-template-columns:minmax(0,1fr) 58px}}
</style></head><body><main id="main"></main>
<script id="data" type="application/json">@DATA@</script>
<script>
"use strict";
const runs=JSON.parse(document.getElementById("data").textContent).runs,main=document.getElementById("main"),several=runs.length>1;
const colours=["a","b","c","d","e","f","g","h"].map(c=>`var(--${c})`),colour=i=>colours[i%colours.length];
const el=(tag,attributes={},...inside)=>{const e=document.createElement(tag);for(const[k,v]of Object.entries(attributes))e.setAttribute(k,v);e.append(...inside);return e};
const draw=(tag,attributes={},text)=>{const e=document.createElementNS("http://www.w3.org/2000/svg",tag);for(const[k,v]of Object.entries(attributes))e.setAttribute(k,v);if(text!==undefined)e.textContent=text;return e};
const short=v=>{if(v===null||v===undefined||!isFinite(v))return"–";const m=Math.abs(v);if(m===0)return"0";if(m>=1e9)return(v/1e9).toPrecision(3)+"G";if(m>=1e6)return(v/1e6).toPrecision(3)+"M";if(m>=1e4)return(v/1e3).toPrecision(3)+"k";if(m<1e-3)return v.toExponential(1);return String(+v.toPrecision(m>=100?4:3))};
const soften=t=>t.replace(/[._]/g,"$&\u200b");
const time=s=>s>=3600?`${Math.floor(s/3600)} h ${Math.round(s%3600/60)} min`:s>=60?`${Math.floor(s/60)} min ${Math.round(s%60)} s`:s>=1?`${s.toFixed(1)} s`:`${short(s*1e3)} ms`;
for(const r of runs){r.at={};r.names.forEach((n,i)=>r.at[n]=i);r.steps=r.rows.map(row=>row[0]);r.get=n=>r.at[n]===undefined?null:r.rows.map(row=>row[r.at[n]])}
const points=(r,name)=>{const v=r.get(name);return v?r.steps.map((s,i)=>[s,v[i]]).filter(p=>p[1]!==null):[]};
const last=p=>p.length?p[p.length-1][1]:undefined,mid=p=>{const v=p.map(q=>q[1]).sort((x,y)=>x-y);return v[v.length>>1]};
const first_of=(r,names)=>names.find(n=>points(r,n).length);
const nice=(low,high,count)=>{const raw=(high-low||1)/count,p=10**Math.floor(Math.log10(raw)),step=[1,2,2.5,5,10].find(m=>m*p>=raw)*p,t=[];for(let v=Math.ceil(low/step-1e-9)*step;v<=high+step*1e-9;v+=step)t.push(Math.abs(v)<step*1e-9?0:v);return t};
const smooth=p=>{if(p.length<24)return null;const w=Math.min(.92,1-6/p.length);let m=0,k=0;return p.map(([x,y])=>(k=k*w+1-w,m=m*w+y*(1-w),[x,m/k]))};
const tip=el("div",{class:"tip",style:"display:none"});document.body.append(tip);
const charts=[];
function chart(into,title,series,{unit="",stacked=false,zero=false,one=false,note=""}={}){
 series=series.filter(s=>s.points.length);
 if(!series.length)return false;
 const card=el("section",{class:"card chart","data-chart":title}),now=el("span",{class:"now"}),names=el("div",{class:"legend"});
 card.append(el("div",{class:"head"},el("h3",{},title),now));
 const svg=draw("svg",{role:"img","aria-label":title});card.append(svg);
 if(series.length>1||series[0].shown)for(const s of series)names.append(el("span",{},el("span",{class:"swatch"+(stacked?" box":""),style:`background:${s.dash?`repeating-linear-gradient(90deg,${s.colour} 0 3px,transparent 3px 5px)`:s.colour}`}),s.name));
 if(names.childNodes.length)card.append(names);
 if(note)card.append(el("p",{class:"small soft"},note));
 const value=v=>short(v)+(unit?" "+unit:"");
 now.textContent=stacked?"":series.length===1?value(last(series[0].points)):"";
 into.append(card);
 const paint=()=>{
  const width=Math.max(200,Math.floor(svg.getBoundingClientRect().width||svg.parentNode.clientWidth-32)),height=190,left=46,right=10,top=8,bottom=22;
  svg.setAttribute("viewBox",`0 0 ${width} ${height}`);svg.style.height=height+"px";svg.replaceChildren();
  let shapes=series.map(s=>({...s}));
  if(stacked){const under=new Map();for(const s of shapes){s.base=[];s.points=s.points.map(([x,y])=>{const b=under.get(x)||0;under.set(x,b+y);s.base.push([x,b]);return[x,b+y]})}}
  const xs=shapes.flatMap(s=>s.points.map(p=>p[0])),ys=shapes.flatMap(s=>s.points.map(p=>p[1]));
  let x0=Math.min(...xs),x1=Math.max(...xs),y0=stacked||zero?Math.min(0,...ys):Math.min(...ys),y1=Math.max(...ys);
  if(one)y0=Math.min(0,y0),y1=Math.max(1,y1);
  if(y0===y1){const pad=Math.abs(y0)*.1||1;y0=zero&&y0>=0?Math.min(0,y0):y0-pad;y1+=pad}else if(!stacked&&!one){const pad=(y1-y0)*.06;y1+=pad;if(!(zero&&y0===0))y0-=pad}
  if(x0===x1){x0-=1;x1+=1}
  const X=x=>left+(x-x0)/(x1-x0)*(width-left-right),Y=y=>height-bottom-(y-y0)/(y1-y0)*(height-top-bottom);
  for(const t of nice(y0,y1,4)){svg.append(draw("line",{x1:left,x2:width-right,y1:Y(t),y2:Y(t),class:"gridline"}),draw("text",{x:left-7,y:Y(t)+3.5,"text-anchor":"end",class:"tick"},short(t)))}
  for(const t of nice(x0,x1,Math.max(2,Math.floor(width/90))).filter(t=>Number.isInteger(t)&&t>=0)){const x=X(t);if(x<left-1||x>width-right+1)continue;svg.append(draw("text",{x,y:height-6,"text-anchor":x>width-30?"end":"middle",class:"tick"},short(t)))}
  svg.append(draw("line",{x1:left,x2:width-right,y1:height-bottom,y2:height-bottom,class:"axis"}));
  const path=p=>p.map(([x,y],i)=>`${i?"L":"M"}${X(x).toFixed(1)} ${Y(y).toFixed(1)}`).join("");
  for(const s of stacked?shapes.slice().reverse():shapes){
   if(stacked){const p=s.points.length>1?s.points:[[x0,s.points[0][1]],[x1,s.points[0][1]]],b=s.points.length>1?s.base:[[x0,s.base[0][1]],[x1,s.base[0][1]]];
    svg.append(draw("path",{d:path(p)+path(b.slice().reverse()).replace("M","L")+"Z",fill:s.colour,"fill-opacity":.82,class:"mark"}));continue}
   const calm=s.dots?null:smooth(s.points);
   if(s.points.length===1||s.dots)for(const[x,y]of s.points)svg.append(draw("circle",{cx:X(x),cy:Y(y),r:s.points.length>60?2:3.2,fill:s.colour,class:"mark"}));
   if(s.points.length>1){
    if(calm)svg.append(draw("path",{d:path(s.points),fill:"none",stroke:s.colour,"stroke-opacity":.28,"stroke-width":1,"stroke-linejoin":"round"}));
    svg.append(draw("path",{d:path(calm||s.points),fill:"none",stroke:s.colour,"stroke-width":1.9,"stroke-dasharray":s.dash?"5 3":"none","stroke-linejoin":"round","stroke-linecap":"round",class:"mark"}))}
  }
  const cursor=draw("line",{y1:top,y2:height-bottom,class:"cursor",visibility:"hidden"});svg.append(cursor);
  svg.onpointermove=e=>{
   const box=svg.getBoundingClientRect(),x=x0+((e.clientX-box.left)*width/box.width-left)/(width-left-right)*(x1-x0);
   let best=null;for(const s of series)for(const p of s.points)if(best===null||Math.abs(p[0]-x)<Math.abs(best-x))best=p[0];
   cursor.setAttribute("x1",X(best));cursor.setAttribute("x2",X(best));cursor.setAttribute("visibility","visible");
   tip.replaceChildren(el("b",{},`step ${best}`));
   for(const s of series){const p=s.points.find(p=>p[0]===best);if(p)tip.append(el("div",{},el("span",{},s.name),el("b",{style:`color:${s.colour}`},value(p[1]))))}
   tip.style.display="block";const w=tip.offsetWidth,h=tip.offsetHeight;
   tip.style.left=Math.max(4,Math.min(innerWidth-w-4,e.clientX+14))+"px";tip.style.top=Math.max(4,Math.min(innerHeight-h-4,e.clientY-h-10))+"px"};
  svg.onpointerleave=()=>{tip.style.display="none";cursor.setAttribute("visibility","hidden")};
 };
 charts.push(paint);return true}
const each_run=(names,rename)=>runs.flatMap((r,i)=>names.flatMap((n,j)=>{const p=points(r,n);return p.length?[{name:(several?r.name+" ":"")+(names.length>1||!several?(rename&&rename[n])||n.split("/").slice(1).join("/"):""),points:p,colour:colour(several?i:j),dash:several&&j>0}]:[]}));
const missing=[];
function plot(into,title,names,options={}){const s=each_run(names,options.rename);if(options.shown)s.forEach(x=>x.shown=true);if(options.dots)s.forEach(x=>x.dots=true);if(!chart(into,title,s,options))missing.push(title)}

// ---- head
const r0=runs[0],info=r0.info||{},config=(r,key)=>{const v=(r.config||"").split("\n"),path=key.split(".");let depth=0;for(const l of v){const m=/^( *)([^:]+): ?(.*)$/.exec(l);if(!m)continue;const d=m[1].length/2;if(d<depth)depth=d;if(d===depth&&m[2]===path[depth]){if(depth===path.length-1)return m[3].replace(/^"|"$/g,"");depth++}}return""};
main.append(el("h1",{},several?`${runs.length} runs side by side`:r0.name));
const line=[config(r0,"algorithm.name"),config(r0,"actor_rollout_ref.model.path").split("/").filter(Boolean).slice(-2).join("/"),info.machine,info.started].filter(Boolean).join("  ·  ");
if(!several)main.append(el("p",{class:"soft small",style:"margin-top:6px;overflow-wrap:anywhere"},line));
else main.append(el("div",{class:"runs"},...runs.map((r,i)=>el("span",{},el("span",{class:"dot",style:`background:${colour(i)}`}),r.name))));
const val_names=[...new Set(runs.flatMap(r=>r.names.filter(n=>n.startsWith("val-core/"))))],reward=["critic/score/mean","critic/rewards/mean"];
const tiles=el("div",{class:"tiles"}),tile=(label,value,more="")=>tiles.append(el("div",{class:"card tile"},el("span",{},label),el("b",{},value),el("span",{},more)));
if(!several){
 const steps=r0.steps.filter(s=>s>0),seconds=points(r0,"timing_s/step"),total=seconds.reduce((s,p)=>s+p[1],0)*(r0.every||1);
 for(const n of val_names){const p=points(r0,n);if(p.length)tile("validation "+n.split("/")[1],short(last(p)),p.length>1?`from ${short(p[0][1])} at step ${p[0][0]}`:"")}
 const rn=first_of(r0,reward);if(rn){const p=points(r0,rn);tile("reward",short(last(p)),`first step ${short(p[0][1])}`)}
 tile("steps",String(steps.length?steps[steps.length-1]:0),info.steps?`of ${info.steps}`:"");
 if(seconds.length)tile("a step takes",time(mid(seconds)),`${time(total)} in all steps`);
 if(points(r0,"perf/throughput").length)tile("tokens/s",short(mid(points(r0,"perf/throughput"))),"median");
 const waits=r0.get("perf/bottleneck");if(waits){const count={};waits.filter(Boolean).forEach(w=>count[w]=(count[w]||0)+1);const most=Object.entries(count).sort((a,b)=>b[1]-a[1])[0];
  if(most){const knobs=r0.get("perf/knob")||[];tile("waits most for",most[0],"turn "+soften(knobs[waits.lastIndexOf(most[0])]||""))}}
 main.append(tiles);
}else{
 const t=el("table");t.append(el("tr",{},...["run","validation","reward","steps","time a step","tokens/s"].map(h=>el("th",{},h))));
 runs.forEach((r,i)=>{const v=val_names.map(n=>points(r,n)).find(p=>p.length)||[],rn=first_of(r,reward),s=points(r,"timing_s/step");
  t.append(el("tr",{},el("td",{},el("span",{class:"dot",style:`background:${colour(i)};margin-right:6px`}),r.name),el("td",{},v.length?`${short(v[0][1])} → ${short(last(v))}`:"–"),el("td",{},rn?short(last(points(r,rn))):"–"),el("td",{},String(r.steps[r.steps.length-1]||0)),el("td",{},s.length?time(mid(s)):"–"),el("td",{},short(mid(points(r,"perf/throughput"))))))});
 main.append(el("div",{class:"card",style:"margin-top:18px"},t))}

// ---- learning
const section=title=>{main.append(el("h2",{},title));const g=el("div",{class:"charts"});main.append(g);return g};
const learning=section("Learning");
plot(learning,"Reward",[reward.find(n=>runs.some(r=>points(r,n).length))||reward[0]]);
plot(learning,"Validation",val_names,{dots:true,shown:val_names.length>1,rename:Object.fromEntries(val_names.map(n=>[n,n.split("/")[1]]))});
plot(learning,"KL",["actor/ppo_kl","actor/kl_loss","actor/reward_kl_penalty"]);
plot(learning,"Entropy",["actor/entropy"]);
plot(learning,"Response length",["response_length/mean","response_length/max"],{unit:"tokens",zero:true});
plot(learning,"Clip fraction",["actor/pg_clipfrac","actor/pg_clipfrac_lower","critic/vf_clipfrac"],{zero:true});
plot(learning,"Gradient norm",["actor/grad_norm","critic/grad_norm"],{zero:true,rename:{"actor/grad_norm":"actor","critic/grad_norm":"critic"}});
plot(learning,"Loss",["actor/loss","critic/loss"],{rename:{"actor/loss":"actor","critic/loss":"critic"}});
plot(learning,"Learning rate",["actor/lr","critic/lr"],{zero:true,rename:{"actor/lr":"actor","critic/lr":"critic"}});

// ---- machine
const machine=section("Time and memory");
const parts=[...new Set(runs.flatMap(r=>r.names.filter(n=>n.startsWith("timing_s/")&&n!=="timing_s/step")))];
const filled=(name,steps)=>{const at=new Map(points(r0,name));return steps.map(s=>[s,at.get(s)||0])};  // in a stack a step without it counts as 0
const trained=r0.steps.filter(s=>s>0),sum=p=>p.reduce((t,q)=>t+q[1],0);
if(!several){const all=parts.map(n=>({name:n.slice(9),points:filled(n,trained)})),whole=all.reduce((t,s)=>t+sum(s.points),0)||1,big=all.filter(s=>sum(s.points)/whole>=.004),small=all.filter(s=>sum(s.points)/whole<.004);
 if(small.length&&big.length)big.push({name:"rest",points:trained.map((s,i)=>[s,small.reduce((t,x)=>t+x.points[i][1],0)])});
 big.forEach((s,i)=>{s.colour=s.name==="rest"?"var(--h)":colour(i);s.shown=true});
 chart(machine,"Time by stage",big,{unit:"s",stacked:true})||missing.push("Time by stage")}
else plot(machine,"Time a step",["timing_s/step"],{unit:"s",zero:true});
plot(machine,"Throughput",["perf/throughput"],{unit:"tokens/s",zero:true});
const kinds=["straggler","reward","data","link","memory","generation","update"];
if(!several)chart(machine,"What a step waits for",kinds.map((k,i)=>({name:k,points:points(r0,"perf/share/"+k).length?filled("perf/share/"+k,trained):[],colour:colour(i),shown:true})).filter(s=>s.points.some(p=>p[1]>.002)),{stacked:true})||missing.push("What a step waits for");
plot(machine,"Device busy",["perf/device_busy"],{zero:true,one:true});
plot(machine,"Arena fill",["perf/arena_fill"],{zero:true,one:true});
plot(machine,"Host syncs a step",["perf/host_syncs"],{zero:true});
plot(machine,"Memory of the process",["perf/cpu_memory_used_gb","perf/max_memory_reserved_gb"],{unit:"GB",zero:true,rename:{"perf/cpu_memory_used_gb":"resident","perf/max_memory_reserved_gb":"planned"}});
if(missing.length)main.append(el("p",{class:"small soft",style:"margin-top:10px"},"Not recorded in "+(several?"these runs":"this run")+": "+missing.join(", ")+"."));

// ---- stages: the order of the plan from top to bottom, edges as arcs, time as bars
function stages(r,i){
 if(!r.graph)return;const g=r.graph;main.append(el("h2",{},"Stages"+(several?": "+r.name:"")));
 const shown=g.nodes.map((n,k)=>k).filter(k=>!["feed","keep"].includes(g.nodes[k].kind)),row={};shown.forEach((k,j)=>row[k]=j);
 const total=shown.reduce((s,k)=>s+(g.nodes[k].kind==="loop"?0:g.nodes[k].seconds),0)||1,card=el("div",{class:"card"}),box=el("div",{class:"graph"});
 const edges=g.edges.filter(e=>row[e[0]]!==undefined&&row[e[1]]!==undefined&&row[e[0]]<row[e[1]]),fed=g.nodes.filter(n=>n.kind==="feed").length,kept=g.nodes.filter(n=>n.kind==="keep").length;
 card.append(el("p",{class:"small soft",style:"margin-bottom:10px"},`In the order of the plan; arcs are edges, bars the share of ${time(total)} that a stage took over ${g.steps} steps. ${fed} ports are fed before a step, ${kept} kept after it.`));
 const paint=()=>{const gutter=innerWidth<520?48:110;box.style.setProperty("--gutter",gutter+"px");box.replaceChildren();
  const svg=draw("svg",{width:gutter,height:shown.length*30});box.append(svg);
  for(const[a,b,port]of edges){const y1=row[a]*30+15,y2=row[b]*30+15,d=Math.min(gutter-8,8+(row[b]-row[a])*7);
   const p=draw("path",{d:`M${gutter-3} ${y1}C${gutter-3-d} ${y1} ${gutter-3-d} ${y2} ${gutter-3} ${y2}`,fill:"none",stroke:colour(i),"stroke-opacity":.45,"stroke-width":1.3,class:"mark"});p.append(draw("title",{},port));svg.append(p)}
  for(const k of shown){const n=g.nodes[k],share=n.seconds/total,loop=n.kind==="loop";svg.append(draw("circle",{cx:gutter-3,cy:row[k]*30+15,r:2.6,fill:colour(i)}));
   const name=el("div",{class:"name",style:`padding-left:${n.depth*(innerWidth<520?7:14)}px`,title:n.name+(n.place?" @ "+n.place:"")},loop?"↻ "+n.name:n.name);
   if(n.count)name.append(el("span",{class:"place"},n.count));if(n.place&&innerWidth>=520)name.append(el("span",{class:"place"},"@ "+n.place));
   const when=el("div",{class:"time"});if(!loop)when.append(el("div",{class:"bar"},el("i",{style:`width:${(share*100).toFixed(2)}%;background:${n.kind==="move"?"var(--b)":n.place==="host"?"var(--e)":colour(i)}`})),el("span",{},n.seconds>0?(share>=.0005?(share*100).toFixed(1)+" %":"< 0.1 %"):"–"));
   box.append(el("div",{class:"stage"+(loop||share<.001?" quiet":"")},el("span"),name,when))}};
 charts.push(paint);card.append(box);main.append(card)}
runs.forEach(stages);

// ---- samples
const with_samples=runs.filter(r=>r.samples&&r.samples.length);
if(with_samples.length){main.append(el("h2",{},"Samples"));const pick=el("div",{class:"pick"}),list=el("div",{class:"samples"}),which=el("select",{"aria-label":"run"}),range=el("input",{type:"range","aria-label":"step"}),label=el("span",{class:"small soft",style:"min-width:6.5em"}),order=el("select",{"aria-label":"order"});
 with_samples.forEach((r,i)=>which.append(el("option",{value:i},r.name)));["as drawn","best first","worst first"].forEach((t,i)=>order.append(el("option",{value:i},t)));
 let steps=[];const show=()=>{const r=with_samples[+which.value],s=steps[+range.value];label.textContent=`step ${s}`;let all=r.samples.filter(x=>x.step===s);if(+order.value)all=all.slice().sort((a,b)=>((b.reward??-1e9)-(a.reward??-1e9))*(+order.value===1?1:-1));
  const rewards=r.samples.map(x=>x.reward).filter(x=>x!==null),most=Math.max(...rewards),least=Math.min(...rewards);
  list.replaceChildren(...all.map(x=>{const good=x.reward!==null&&most>least?(x.reward-least)/(most-least):.5;
   return el("article",{class:"card sample"},el("div",{class:"meta"},el("span",{},`row ${x.row}, sample ${x.sample}`),el("span",{class:"reward",style:`color:${x.reward===null?"var(--faint)":good>.66?"var(--good)":good<.34?"var(--bad)":"var(--ink)"}`},x.reward===null?"no score":"reward "+short(x.reward))),el("pre",{class:"mono"},x.prompt),el("pre",{class:"mono"},x.response),el("div",{class:"meta"},el("span",{},`${x.tokens} tokens, ${x.finish}`),x.truth?el("span",{},"wanted: "+x.truth):""))}))};
 const choose=()=>{steps=[...new Set(with_samples[+which.value].samples.map(x=>x.step))];range.max=steps.length-1;range.value=steps.length-1;show()};
 which.onchange=choose;range.oninput=show;order.onchange=show;if(with_samples.length>1)pick.append(which);pick.append(label,range,order);main.append(pick,list);choose()}

// ---- what the run was
main.append(el("h2",{},several?"What differs":"The run"));
if(several){const all=runs.map(r=>(r.config||"").split("\n")),paths=all.map(lines=>{const at=[],out={};for(const l of lines){const m=/^( *)([^:]+): ?(.*)$/.exec(l);if(!m)continue;const d=m[1].length/2;at.length=d;at[d]=m[2];if(m[3])out[at.join(".")]=m[3]}return out}),keys=[...new Set(paths.flatMap(p=>Object.keys(p)))].filter(k=>new Set(paths.map(p=>p[k]??"")).size>1);
 const t=el("table");t.append(el("tr",{},el("th",{},"knob"),...runs.map(r=>el("th",{},r.name))));for(const k of keys)t.append(el("tr",{},el("td",{},k),...paths.map(p=>el("td",{class:"mono"},p[k]??"–"))));main.append(el("div",{class:"card"},keys.length?t:el("p",{class:"soft"},"Their configurations are the same.")))}
for(const r of runs){const t=el("table");for(const[k,v]of Object.entries(r.info||{}))t.append(el("tr",{},el("th",{},k),el("td",{class:"mono"},typeof v==="object"&&v!==null?Object.entries(v).map(([a,b])=>`${a}  ${b}`).join("\n"):String(v))));
 t.querySelectorAll("td").forEach(d=>d.style.whiteSpace="pre-wrap");
 const d=el("details",{class:"card"},el("summary",{},several?`${r.name}: versions and hashes`:"Seed, versions, hashes"),t);if(!several)d.open=true;main.append(d);
 main.append(el("details",{class:"card"},el("summary",{},several?`${r.name}: configuration`:"Configuration"),el("pre",{class:"mono"},r.config||"")))}
if(runs.some(r=>r.every>1))main.append(el("p",{class:"small soft",style:"margin-top:12px"},"Long runs are thinned: "+runs.filter(r=>r.every>1).map(r=>`${r.name} shows every ${r.every}th step`).join(", ")+"."));
const all=()=>charts.forEach(p=>p());let wait;addEventListener("resize",()=>{clearTimeout(wait);wait=setTimeout(all,80)});all();
</script></body></html>
)page";
}  // namespace weft::io
