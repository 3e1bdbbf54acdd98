// The style of a page: light and dark, phone, print. Siblings: page.hpp, page_body.hpp,
// page_js.hpp.
#pragma once

#include <string_view>

namespace quipu::atlas {

inline constexpr std::string_view page_css = R"css(
:root {
  color-scheme: light;
  --paper: #fbfaf6; --sheet: #ffffff; --ink: #23211d; --soft: #5f5a50; --line: #ddd7ca;
  --learned: #9a3b1b; --learned-fill: #f9e9e1; --operation: #27497d; --operation-fill: #e6edf7;
  --tensor: #3f5d38; --tensor-fill: #e9f0e4; --lit: #c98a00; --lit-fill: #ffeebd; --focus: #1a56c4; --heat: #f2a65a; --good: #2f6b2a; --bad: #b3261e;
  --serif: "Iowan Old Style", "Palatino Linotype", Palatino, "Book Antiqua", Georgia, serif;
  --sans: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media screen { :root[data-theme="dark"] {
  color-scheme: dark;
  --paper: #171613; --sheet: #1f1d1a; --ink: #ece7dc; --soft: #b0a898; --line: #3a362f;
  --learned: #f0a184; --learned-fill: #3b241b; --operation: #9dbdf0; --operation-fill: #1d2a40;
  --tensor: #a9cf9c; --tensor-fill: #222e1e; --lit: #f2c14a; --lit-fill: #54431a; --focus: #8ab4ff; --heat: #8a4a12; --good: #a9cf9c; --bad: #ff9c8f;
} }
* { box-sizing: border-box; }
html { scroll-padding-top: 7.5rem; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 var(--serif); }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; z-index: 9; background: var(--sheet); padding: .3rem .6rem; }
button, input, select { font: inherit; color: inherit; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 3px; }
.top { position: sticky; top: 0; z-index: 5; display: flex; gap: 1.1rem; align-items: center; flex-wrap: wrap;
  padding: .6rem 1.4rem; background: var(--paper); border-bottom: 1px solid var(--line); font: 14px/1.4 var(--sans); }
.brand { display: flex; align-items: baseline; gap: .65rem; margin-right: auto; }
.brand h1 { font: 600 1.25rem/1.2 var(--serif); margin: 0; letter-spacing: .005em; }
.brand #subtitle { color: var(--soft); font-variant-numeric: tabular-nums; }
.knot { width: .7rem; height: .7rem; border-radius: 50%; align-self: center;
  background: radial-gradient(circle at 50% 50%, var(--paper) 22%, var(--learned) 26%); }
.find { position: relative; }
.find input { width: 17.5rem; max-width: 60vw; padding: .35rem .7rem; border: 1px solid var(--line); border-radius: 999px; background: var(--sheet); }
.find input::placeholder { color: var(--soft); opacity: 1; }
#results { position: absolute; right: 0; top: 2.3rem; width: 25rem; max-width: 92vw; max-height: 60vh; overflow: auto; margin: 0; padding: .3rem;
  list-style: none; background: var(--sheet); border: 1px solid var(--line); border-radius: 8px; box-shadow: 0 8px 30px #0003; }
#results li { padding: .35rem .6rem; border-radius: 5px; cursor: pointer; }
#results li[aria-selected="true"], #results li:hover { background: var(--operation-fill); }
#results small { display: block; color: var(--soft); font: 12px/1.4 var(--mono); overflow-wrap: anywhere; }
.pick select, .work select { padding: .25rem .4rem; border: 1px solid var(--line); border-radius: 6px; background: var(--sheet); max-width: 13rem; }
#theme { border: 1px solid var(--line); background: var(--sheet); border-radius: 999px; width: 2.1rem; height: 2.1rem; cursor: pointer; }
.work { display: flex; gap: .5rem 1.15rem; align-items: center; flex-wrap: wrap; padding: .55rem 1.4rem;
  border-bottom: 1px solid var(--line); font: 13px/1.4 var(--sans); }
.work p { margin: 0 0 0 auto; color: var(--soft); font-variant-numeric: tabular-nums; }
.switch { display: inline-flex; border: 1px solid var(--line); border-radius: 999px; overflow: hidden; background: var(--sheet); }
.switch button { border: 0; background: none; padding: .28rem .9rem; cursor: pointer; }
.switch button[aria-checked="true"] { background: var(--ink); color: var(--paper); }
.slide { display: inline-flex; align-items: center; gap: .5rem; }
.slide input { width: 4.6rem; accent-color: var(--learned); }
.slide output { min-width: 2.7rem; font-variant-numeric: tabular-nums; }
.slide.off { opacity: .55; }
.columns { display: grid; grid-template-columns: minmax(20rem, 30rem) minmax(0, 1fr); max-width: 96rem; margin: 0 auto; }
/* On a wide screen bars and columns keep one axis, and the sheet goes on to the right edge. */
@media (min-width: 96rem) {
  .top, .work, .foot { padding-inline: calc((100% - 96rem) / 2 + 1.4rem); }
  main { box-shadow: 25vw 0 0 var(--sheet), 50vw 0 0 var(--sheet); clip-path: inset(0 -50vw 0 0); }
}
.map { position: sticky; top: 3.4rem; align-self: start; max-height: calc(100vh - 3.4rem); overflow: auto; padding: 1rem 1rem 2rem 1.4rem; font: 13px/1.4 var(--sans); }
.mapbar { display: flex; justify-content: flex-end; gap: .9rem; }
.mapbar [hidden] { display: none; } .mapbar [aria-pressed="false"] { text-decoration: line-through; }
.mapbar button { border: 0; background: none; color: var(--soft); text-decoration: underline; text-underline-offset: 3px; cursor: pointer; padding: .2rem; }
.map svg { width: 100%; height: auto; display: block; overflow: visible; }
.map text { font: 12px var(--sans); fill: var(--ink); pointer-events: none; }
.map text.small { font-size: 10.5px; fill: var(--soft); }
.map .node { cursor: pointer; outline: none; }
.map .node rect, .map .node circle { fill: var(--sheet); stroke: var(--line); stroke-width: 1.2; }
.map .learned > rect { stroke: var(--learned); fill: var(--learned-fill); }
.map .operation > rect, .map .operation > circle { stroke: var(--operation); fill: var(--operation-fill); }
.map .tensor > rect { stroke: var(--tensor); fill: var(--tensor-fill); }
.map .frame > rect { fill: none; stroke: var(--line); stroke-dasharray: none; }
.map .frame.learned > rect { fill: var(--paper); stroke: var(--line); }
.map .node.shaded > :is(rect, circle):not(.heat) { fill: var(--sheet); } .map .node .heat { fill: var(--heat); stroke: none; pointer-events: none; }
.map .edge path { fill: none; stroke: var(--soft); stroke-width: 1.3; }
.map .edge path.hit { stroke: transparent; stroke-width: 13; pointer-events: stroke; cursor: pointer; }
.map .edge.stream path.draw { stroke: var(--tensor); stroke-width: 4.5; }
.map .edge.aside path.draw { stroke-dasharray: 3 3; }
.map .node:focus-visible > rect, .map .node:focus-visible > circle { stroke: var(--focus); stroke-width: 3; }
.map .lit > rect, .map .lit > circle { stroke: var(--lit); fill: var(--lit-fill); stroke-width: 2.4; }
.map .edge.lit path.draw { stroke: var(--lit); stroke-width: 5; }
.map .here > rect, .map .here > circle { stroke-width: 3; }
.map .edge.here path.draw { stroke-width: 6; }
.all { margin-top: 1rem; } .all summary { cursor: pointer; color: var(--soft); }
.all ol { list-style: none; margin: .4rem 0 0; padding: 0; }
.all a { display: block; padding: .12rem .3rem; color: inherit; text-decoration: none; border-radius: 4px; }
.all a:hover, .all a[aria-current] { background: var(--operation-fill); }
main { padding: 1.6rem clamp(1rem, 4vw, 3.5rem) 4rem; background: var(--sheet); border-left: 1px solid var(--line); min-height: 80vh; outline: none; }
main > * { max-width: 50rem; }
.crumbs { font: 13px/1.4 var(--sans); color: var(--soft); margin: 0 0 .3rem; }
main h2 { font: 600 2rem/1.15 var(--serif); margin: 0 0 .5rem; letter-spacing: -.01em; }
main h3 { font: 600 .82rem/1.3 var(--sans); letter-spacing: .06em; text-transform: uppercase; color: var(--soft); margin: 2.2rem 0 .6rem; }
.tags { display: flex; gap: .7rem; align-items: baseline; flex-wrap: wrap; margin: 0 0 .9rem; }
.kind { font: 600 12px/1 var(--sans); padding: .34rem .6rem; border-radius: 999px; border: 1px solid currentColor; }
.kind.learned { color: var(--learned); background: var(--learned-fill); }
.kind.operation { color: var(--operation); background: var(--operation-fill); }
.kind.tensor { color: var(--tensor); background: var(--tensor-fill); }
code, .mono { font: .86em/1.5 var(--mono); overflow-wrap: anywhere; }
.lead { font-size: 1.14rem; margin: .2rem 0 0; }
.lead + .facts { margin-top: 1.4rem; }
.equations { margin: 1.5rem 0 1.3rem; font-size: 1.35rem; overflow-x: auto; padding: .2rem 0; }
.equations math { margin: .75rem 0; width: max-content; }
math .sym { cursor: pointer; border-radius: 4px; }
.sym.lit, .symbol.lit { background: var(--lit-fill); }
.facts { display: grid; grid-template-columns: 7.5rem minmax(0, 1fr); gap: .22rem 1rem; margin: 0; font-variant-numeric: tabular-nums; }
.facts dt { color: var(--soft); font: 13px/1.85 var(--sans); } .facts dd { margin: 0; overflow-wrap: anywhere; }
.axis { white-space: nowrap; } .axis b { font-weight: 600; } .axis i { color: var(--soft); font-style: normal; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
th { font: 600 12px/1.4 var(--sans); color: var(--soft); text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); }
td { padding: .34rem .9rem .34rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th.n, td.n { text-align: right; padding-right: 0; padding-left: .9rem; white-space: nowrap; }
.n + :not(.n) { padding-left: 1.1rem; }
td code { white-space: nowrap; overflow-wrap: normal; }
tr.sum td { font-weight: 600; border-bottom: 0; }
.symbol sub { font-style: normal; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
.sparkline { margin: .6rem 0 .9rem; display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .3rem .8rem; max-width: 44rem; }
.sparkline .scale { display: flex; flex-direction: column; justify-content: space-between; text-align: right; font: 12px/1 var(--sans); color: var(--soft); font-variant-numeric: tabular-nums; }
.spark { width: 100%; height: 5rem; display: block; } .spark .range { fill: var(--operation-fill); } .spark .middle { fill: var(--operation); fill-opacity: .35; }
.spark .mean { fill: none; stroke: var(--operation); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.sparkline figcaption { grid-column: 2; font: 12px/1.4 var(--sans); color: var(--soft); }
.bar { display: inline-block; margin-left: .9rem; height: .5rem; background: var(--learned); border-radius: 2px; min-width: 1px; vertical-align: middle; }
p.note { margin: .35rem 0; } .where { color: var(--soft); font-size: .9em; }
.mistake { border-left: 3px solid var(--learned); padding-left: 1rem; margin: 0; }
.mistake strong { font-variant-numeric: tabular-nums; } .mistake s { color: var(--soft); }
.source { border-top: 1px solid var(--line); padding: .8rem 0; }
.source p { margin: .15rem 0; } .source .evidence { font: 600 12px/1.4 var(--sans); color: var(--operation); }
a { color: var(--operation); text-underline-offset: 3px; }
pre { background: var(--paper); border: 1px solid var(--line); border-radius: 6px; padding: .7rem .9rem; overflow-x: auto; font: 12.5px/1.5 var(--mono); }
pre .left-out { color: var(--soft); font-style: italic; }
.symbol { border: 0; background: none; padding: 0 .2rem; margin-left: -.2rem; border-radius: 4px; cursor: pointer; font: italic 1.06em var(--serif); }
.diff { background: var(--lit-fill); }
.pager { display: flex; justify-content: space-between; gap: 1rem; margin-top: 2.6rem; font: 14px/1.4 var(--sans); }
.foot { border-top: 1px solid var(--line); padding: .9rem 1.4rem; color: var(--soft); font: 13px/1.5 var(--sans); }
kbd { font: 12px var(--mono); border: 1px solid var(--line); border-radius: 4px; padding: 0 .3rem; background: var(--sheet); }
@media (max-width: 60rem) {
  .columns { grid-template-columns: minmax(0, 1fr); }
  .map { position: static; max-height: none; padding: .8rem 1rem 1rem; max-width: 30rem; margin: 0 auto; width: 100%; }
  main { border-left: 0; border-top: 1px solid var(--line); }
  .top { position: static; padding: .6rem 1rem; } .work { padding: .55rem 1rem; } .work p { margin-left: 0; }
  html { scroll-padding-top: 1rem; }
}
@media (max-width: 34rem) {
  body { font-size: 15px; } main h2 { font-size: 1.6rem; }
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; } .facts dd { margin-bottom: .35rem; }
  .find, .find input { width: 100%; max-width: none; } .slide { width: 100%; } .slide span { min-width: 7rem; } .slide input { flex: 1; }
  .map { padding-inline: .8rem; } .map text { font-size: 14px; } .map text.small { font-size: 12.5px; }
  .axis { white-space: normal; } .equations { font-size: 1.15rem; }
}
@media (prefers-reduced-motion: no-preference) { .map rect, .map circle, .map path, .sym { transition: fill .12s, stroke .12s, background .12s; } }
@media print {
  .top .find, .top .pick, #theme, .work .switch, .work label, .map, .pager, .foot, .skip { display: none !important; }
  .top, .work { position: static; padding-inline: 0; background: none; } .columns { display: block; } main { border: 0; padding: 1rem 0; } body, main { background: #fff; color: #000; }
  .source, tr, .mistake, .equations, .sparkline { break-inside: avoid; } main h3 { break-after: avoid; margin-top: 1.4rem; } a { color: inherit; }
  body { font-size: 11pt; } main > * { max-width: none; } details > summary { display: none; } .work { border: 0; }
}
)css";

}  // namespace quipu::atlas
