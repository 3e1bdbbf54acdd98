// The drawing of a model: embedding, the stack of blocks that unfolds, the residual stream with its
// two additions, final norm, projection. Siblings: page_js.hpp (whose names it uses), page.hpp.
#pragma once

#include <string_view>

namespace quipu::atlas {

inline constexpr std::string_view page_map_js = R"js(
const svgNamespace = 'http://www.w3.org/2000/svg';
function svg(tag, attributes, ...children) {
  const e = document.createElementNS(svgNamespace, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}
// What is said of a node where the pointer or the focus is.
function said(card) {
  const m = card.measured;
  return card.name + ', ' + card.kind + (m ? ', ' + m.lines[0][1] + ', ' + (100 * m.share).toFixed(1) + ' % of the measured time' : '');
}
// Makes an element of the drawing lead to its card and light with its symbols.
function mapped(group, id) {
  group.dataset.light = id;
  group.setAttribute('tabindex', '-1');  // what listens for focus is a tab stop in Chromium, unless told otherwise
  group.append(svg('title', {}, document.createTextNode(said(byId.get(id)))));
  lightable(group);
  group.addEventListener('click', e => { e.stopPropagation(); go(id); });
  return group;
}
function focusable(group) {
  group.setAttribute('tabindex', '0');
  group.setAttribute('role', 'link');
  group.setAttribute('aria-label', said(byId.get(group.dataset.light)));
  group.addEventListener('keydown', e => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); go(group.dataset.light); } });
  return group;
}
// The measured share of the time as a shade inside a node: the slowest component is darkest.
const mostShare = Math.max(0, ...cards.filter(c => c.measured && single(c)).map(c => c.measured.share));
function shade(group, card) {
  if (!state.heat || !card.measured || !single(card)) return;
  const over = group.firstElementChild.cloneNode();
  over.setAttribute('class', 'heat');
  over.setAttribute('fill-opacity', (card.measured.share / mostShare).toFixed(3));
  group.firstElementChild.after(over);
  group.classList.add('shaded');
}
function box(id, x, y, w, h, text, small) {
  const card = byId.get(id);
  const g = svg('g', { class: 'node ' + card.kind });
  g.append(svg('rect', { x, y, width: w, height: h, rx: card.kind === 'tensor' ? h / 2 : 5 }),
    svg('text', { x: x + w / 2, y: y + h / 2 + 4, 'text-anchor': 'middle', class: small ? 'small' : '' }, document.createTextNode(text)));
  shade(g, card);
  return focusable(mapped(g, id));
}
function frame(id, x, y, w, h, text) {
  const card = byId.get(id);
  const g = svg('g', { class: 'node frame ' + card.kind });
  g.append(svg('rect', { x, y, width: w, height: h, rx: 8 }), svg('text', { x: x + w - 10, y: y + 16, 'text-anchor': 'end', class: 'small' }, document.createTextNode(text)));
  return focusable(mapped(g, id));
}
function edge(id, points, kind = '') {
  const d = 'M' + points.map(p => p.join(' ')).join('L');
  const g = svg('g', { class: 'edge ' + kind });
  g.append(svg('path', { d, class: 'draw', 'marker-end': kind.includes('stream') || kind.includes('plain') ? '' : 'url(#arrow)' }), svg('path', { d, class: 'hit' }));
  return mapped(g, id);
}
function plus(id, x, y) {
  const card = byId.get(id);
  const g = svg('g', { class: 'node ' + card.kind });
  g.append(svg('circle', { cx: x, cy: y, r: 12 }), svg('path', { d: `M${x - 6} ${y}H${x + 6}M${x} ${y - 6}V${y + 6}`, stroke: 'currentColor', 'stroke-width': 1.6 }));
  shade(g, card);
  return focusable(mapped(g, id));
}
function drawMap() {
  const open = !state.folded, left = 60, end = open ? 676 : 182;
  const root = svg('svg', { viewBox: `0 0 480 ${end + 164}`, role: 'group', 'aria-label': 'The model, from tokens to logits' });
  root.append(svg('defs', {}, svg('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: 'userSpaceOnUse', orient: 'auto-start-reverse' }, svg('path', { d: 'M0 0L8 4L0 8z', fill: 'currentColor', style: 'color:var(--soft)' }))));
  const add = (...parts) => root.append(...parts);
  // The stack behind the block.
  for (const shift of [8, 4]) add(svg('rect', { x: 6 + shift, y: 106 - shift, width: 462, height: end - 106, rx: 8, fill: 'var(--paper)', stroke: 'var(--line)' }));
  add(frame('layers.N', 6, 106, 462, end - 106, grouped(model.n_layers) + ' × transformer block'));
  if (!open) {
    add(edge('layers.N.x', [[left, 86], [left, 144]], 'stream'), edge('layers.N.out', [[left, 144], [left, end + 24]], 'stream'));
    add(svg('text', { x: 104, y: 150 }, document.createTextNode('norm · attention · + · norm · feed-forward · +')));
  } else {
    add(frame('layers.N.attention', 104, 172, 356, 226, 'attention'), frame('layers.N.feed_forward', 104, 486, 356, 140, 'feed-forward'));
    add(edge('layers.N.x', [[left, 86], [left, 410]], 'stream'), edge('layers.N.h', [[left, 410], [left, 644]], 'stream'), edge('layers.N.out', [[left, 644], [left, end + 24]], 'stream'));
    // Attention.
    add(edge('layers.N.x', [[left, 142], [108, 142]]));
    add(edge('layers.N.attention_norm', [[154, 155], [154, 196]]), edge('layers.N.attention_norm', [[154, 180], [252, 180], [252, 196]]), edge('layers.N.attention_norm', [[154, 180], [348, 180], [348, 196]]));
    add(edge('layers.N.attention.xq', [[156, 222], [156, 238]]), edge('layers.N.attention.xk', [[252, 222], [252, 238]]), edge('layers.N.attention.xv', [[348, 222], [348, 280]]));
    add(edge('freqs_cis', [[404, 250], [294, 250]], 'aside'), edge('layers.N.attention.xq_rope', [[156, 262], [156, 322]]), edge('layers.N.attention.xk_rope', [[252, 262], [252, 280]]));
    add(edge('layers.N.attention.cache_k', [[252, 302], [252, 322]]), edge('layers.N.attention.cache_v', [[348, 302], [348, 322]]), edge('mask', [[404, 335], [390, 335]], 'aside'));
    add(edge('layers.N.attention.merged', [[252, 348], [252, 364]]), edge('layers.N.attention.update', [[252, 390], [252, 410], [74, 410]]));
    add(box('layers.N.attention_norm', 110, 129, 90, 26, 'RMSNorm'));
    add(box('layers.N.attention.wq', 116, 196, 80, 26, 'wq'), box('layers.N.attention.wk', 212, 196, 80, 26, 'wk'), box('layers.N.attention.wv', 308, 196, 80, 26, 'wv'));
    add(box('layers.N.attention.rope', 116, 238, 176, 24, 'rotary'), box('freqs_cis', 404, 239, 50, 22, 'table', true));
    add(box('layers.N.attention.cache_k', 212, 280, 80, 22, 'keys', true), box('layers.N.attention.cache_v', 308, 280, 80, 22, 'values', true));
    add(box('layers.N.attention.scaled_dot_product', 116, 322, 272, 26, 'scaled dot product'), box('layers.N.attention.probs', 332, 325, 50, 20, 'probs', true), box('mask', 404, 325, 50, 20, 'mask', true));
    add(box('layers.N.attention.wo', 212, 364, 80, 26, 'wo'), plus('layers.N.attention_residual', left, 410));
    // Feed-forward.
    add(edge('layers.N.h', [[left, 456], [108, 456]]));
    add(edge('layers.N.ffn_norm', [[154, 469], [154, 506]]), edge('layers.N.ffn_norm', [[154, 494], [324, 494], [324, 506]]));
    add(edge('layers.N.feed_forward.w1', [[180, 532], [180, 546]]), edge('layers.N.feed_forward.w3', [[324, 532], [324, 546]]), edge('layers.N.feed_forward.act', [[252, 572], [252, 586]]), edge('layers.N.feed_forward.update', [[252, 612], [252, 644], [74, 644]]));
    add(box('layers.N.ffn_norm', 110, 443, 90, 26, 'RMSNorm'));
    add(box('layers.N.feed_forward.w1', 130, 506, 100, 26, 'w1 gate'), box('layers.N.feed_forward.w3', 274, 506, 100, 26, 'w3 up'), box('layers.N.feed_forward.silu_gate', 130, 546, 244, 26, 'silu(gate) ⊙ up'), box('layers.N.feed_forward.w2', 202, 586, 100, 26, 'w2 down'));
    add(plus('layers.N.feed_forward_residual', left, 644));
  }
  add(edge('tokens', [[left, 32], [left, 54]]), box('tokens', 10, 10, 100, 22, 'tokens', true), box('tok_embeddings', 10, 56, 100, 30, 'embedding'));
  add(box('layers.N.x', 150, 60, 110, 22, 'residual stream', true), edge('layers.N.x', [[150, 71], [112, 71]], 'aside plain'));
  add(edge('norm', [[left, end + 54], [left, end + 76]]), box('norm', 10, end + 26, 100, 28, 'RMSNorm'));
  add(edge('logits', [[left, end + 108], [left, end + 128]]), box('output', 10, end + 78, 100, 30, model.tied_output ? 'output (tied)' : 'output'), box('logits', 10, end + 130, 100, 22, 'logits', true));
  add(box('transformer', 330, end + 78, 130, 30, 'the whole model', false));
  $('drawing').replaceChildren(root);
  $('unfold').textContent = open ? 'Fold the blocks' : 'Unfold the blocks';
  $('unfold').setAttribute('aria-expanded', String(open));
  $('heat').setAttribute('aria-pressed', String(state.heat));
}
$('unfold').addEventListener('click', () => { state.folded = !state.folded; drawMap(); draw(); });
$('heat').addEventListener('click', () => { state.heat = !state.heat; drawMap(); draw(); });

// --- start ---------------------------------------------------------------------------------------
$('title').textContent = model.title;
$('subtitle').textContent = grouped(model.parameters) + ' parameters';
if (matchMedia('(prefers-color-scheme: dark)').matches) document.documentElement.dataset.theme = 'dark';
$('dtype').append(...data.element_types.map(t => el('option', { value: t }, t)));
$('compare').append(el('option', { value: '' }, 'nothing'), ...data.others.filter(o => o.model.name !== model.name).map(o => el('option', { value: o.model.name }, o.model.title)));
$('all').append(...cards.map(c => el('li', {}, el('a', { 'data-id': c.id, href: '#' + c.id }, c.name))));
$('heat').hidden = !data.profile;
const asked = data.work;
Object.assign(state, { ranks: mostRanks, batch: asked.batch, start: asked.start, dtype: asked.weights, phase: asked.positions > 1 ? 'prefill' : 'decode', prefill: asked.positions > 1 ? asked.positions : 512 });
drawMap();
function arrive(first) {
  if (location.hash.length > 1) readAddress();
  refresh();
  if (!first) { scrollTo(0, matchMedia('(max-width: 60rem)').matches ? $('card').offsetTop : 0); }
}
addEventListener('hashchange', () => arrive(false));
arrive(true);
)js";

}  // namespace quipu::atlas
