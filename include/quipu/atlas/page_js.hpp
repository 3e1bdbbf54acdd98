// The behaviour of a page: plain JavaScript, no library, no request. It computes FLOPs and bytes
// with the constants of CostModel (card_json.hpp) in BigInt, so that its numbers equal the
// library's. Siblings: page.hpp, page_figures_js.hpp (ranks, statistics, measurements),
// page_map_js.hpp (the drawing), page_body.hpp, page_css.hpp.
#pragma once

#include <string_view>

namespace quipu::atlas {

inline constexpr std::string_view page_js = R"js(
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const model = data.model, cards = data.cards;
const $ = id => document.getElementById(id);
const byId = new Map(cards.map(c => [c.id, c]));
for (const c of cards) if (c.alias && !byId.has(c.alias)) byId.set(c.alias, c);
const state = { id: data.first, phase: 'decode', batch: 1, prefill: 512, start: 0, dtype: 'bf16', compare: '', ranks: 0, folded: false, heat: true };

// --- small helpers ---------------------------------------------------------------------------
function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (k === 'on') for (const [event, f] of Object.entries(v)) e.addEventListener(event, f);
    else if (v !== null && v !== false) e.setAttribute(k, v);
  }
  e.append(...children.flat().filter(x => x !== null && x !== ''));
  return e;
}
const grouped = n => { const s = String(n); return s.replace(/\B(?=(\d{3})+(?!\d))/g, ','); };
function scaled(n, base, units) {
  let value = Number(n), unit = 0;
  while (value >= base && unit < units.length - 1) { value /= base; ++unit; }
  return (unit === 0 ? value.toFixed(0) : value.toFixed(2)) + ' ' + units[unit];
}
const bytesText = n => scaled(n, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
const flopsText = n => scaled(n, 1000, ['FLOP', 'kFLOP', 'MFLOP', 'GFLOP', 'TFLOP', 'PFLOP']);
const positions = () => state.phase === 'decode' ? 1 : state.prefill;
const cacheBytes = () => state.dtype === 'f32' ? 4 : 2;

// --- cost --------------------------------------------------------------------------------------
function cost(card) {
  const m = card.cost_model;
  if (!m) return null;
  const B = BigInt(state.batch), T = BigInt(positions()), S = BigInt(state.start), rows = B * T;
  const visible = B * (T * S + T * (T + 1n) / 2n), e = BigInt(cacheBytes());
  return {
    flops: BigInt(m.flops_row) * rows + BigInt(m.flops_visible_key) * visible,
    weights: BigInt(m.weight_fixed[state.dtype]) + BigInt(m.weight_row[state.dtype]) * rows,
    read: BigInt(m.cache_position) * B * (S + T) * e,
    written: BigInt(m.cache_position) * rows * e,
  };
}
const moved = c => c.weights + c.read + c.written;

// --- light: a symbol, the map, other places where it stands --------------------------------------
function light(ids) {
  const wanted = new Set(ids);
  for (const c of cards) if (wanted.has(c.id) && c.alias) wanted.add(c.alias);
  for (const e of document.querySelectorAll('[data-light]')) {
    e.classList.toggle('lit', e.dataset.light.split(' ').some(id => wanted.has(id)));
  }
}
function lightable(e) {
  const ids = e.dataset.light.split(' ');
  for (const on of ['mouseenter', 'focus']) e.addEventListener(on, () => light(ids));
  for (const off of ['mouseleave', 'blur']) e.addEventListener(off, () => light([]));
}
function go(id) { location.hash = '#' + id + settings(); }

// Without parts of its own; attention, say, costs what its parts cost.
const single = c => c.id !== 'transformer' && !cards.some(o => o.cost_model && o.id.startsWith(c.id + '.'));

// --- addresses: #id;b=1;t=512;at=0;w=bf16;phase=decode;mp=8;with=model ---------------------------------
const mostRanks = Math.max(...byId.get('transformer').model_parallel.map(r => r.ranks));
function settings() {
  let s = '';
  if (state.batch !== 1) s += ';b=' + state.batch;
  if (state.start !== 0) s += ';at=' + state.start;
  if (state.prefill !== 512) s += ';t=' + state.prefill;
  if (state.dtype !== 'bf16') s += ';w=' + state.dtype;
  if (state.phase !== 'decode') s += ';phase=' + state.phase;
  if (state.ranks !== mostRanks) s += ';mp=' + state.ranks;
  if (state.compare) s += ';with=' + state.compare;
  return s;
}
const whole = (text, least, most, otherwise) => /^\d{1,7}$/.test(text) ? Math.min(most, Math.max(least, +text)) : otherwise;
function readAddress() {
  const [id, ...rest] = decodeURIComponent(location.hash.slice(1)).split(';');
  const at = Object.fromEntries(rest.map(r => r.split('=')));
  state.batch = whole(at.b, 1, 256, 1);
  state.start = whole(at.at, 0, 131072, 0);
  state.prefill = whole(at.t, 1, 131072, 512);
  state.dtype = data.element_types.includes(at.w) ? at.w : 'bf16';
  state.phase = at.phase === 'prefill' ? 'prefill' : 'decode';
  state.ranks = byId.get('transformer').model_parallel.some(r => String(r.ranks) === at.mp) ? +at.mp : mostRanks;
  state.compare = data.others.some(o => o.model.name === at.with) ? at.with : '';
  state.id = id.replace(/^layers\.(\d+)(?=\.|$)/, (whole, n) => +n < model.n_layers ? 'layers.N' : whole);
}

// --- the card --------------------------------------------------------------------------------------
function axes(operand, other) {
  const span = el('span', { class: 'shape' });
  span.append('[');
  operand.shape.forEach((a, i) => {
    const one = a.extent === 'T' && state.phase === 'decode';
    const word = operand[state.phase].slice(1, -1).split(', ')[i];
    const [extent, ...name] = word.split(' ');
    span.append(i ? ', ' : '', el('span', { class: 'axis' }, el('b', {}, one ? '1' : extent), ' ', el('i', {}, name.join(' '))));
  });
  span.append(']');
  if (operand.dtype !== 'activation type') span.append(' ', el('span', { class: 'where' }, operand.dtype));
  return span;
}
function symbolButton(symbol) {
  const b = el('button', { type: 'button', class: 'symbol', 'data-light': symbol.links.join(' '), 'aria-label': symbol.text + ': ' + symbol.meaning });
  const [base, ...rest] = symbol.text.split('_');
  b.append(base);
  if (rest.length) b.append(el('sub', {}, rest.join('_')));
  lightable(b);
  b.addEventListener('click', () => { const id = symbol.links.find(l => byId.has(l)); if (id) go(id); });
  return b;
}
function factList(pairs) {
  const dl = el('dl', { class: 'facts' });
  for (const [k, v] of pairs) dl.append(el('dt', {}, k), el('dd', {}, v));
  return dl;
}
function table(head, rows, numeric = []) {
  const t = el('table', {}, el('thead', {}, el('tr', {}, head.map((h, i) => el('th', { scope: 'col', class: numeric.includes(i) ? 'n' : null }, h)))));
  const body = el('tbody');
  for (const row of rows) body.append(el('tr', { class: row.sum ? 'sum' : null }, row.cells.map((c, i) => el('td', { class: numeric.includes(i) ? 'n' : null }, c))));
  t.append(body);
  return el('div', { class: 'scroll' }, t);
}
const section = (title, ...content) => content.some(c => c) ? [el('h3', {}, title), ...content.filter(c => c)] : [];

function equations(card) {
  if (!card.equations.length) return null;
  const div = el('div', { class: 'equations' });
  for (const e of card.equations) {
    const holder = el('div', { role: 'group', 'aria-label': e.text });
    holder.innerHTML = e.mathml;
    for (const s of holder.querySelectorAll('.sym')) {
      const [base, mark] = [...s.children].map(c => c.textContent);
      const text = s.localName === 'msub' ? base + '_' + mark : s.localName === 'mover' ? base + '\u0303' : s.textContent;
      const operand = card.operands.find(o => o.symbol.text === text);
      s.setAttribute('tabindex', '0');
      if (operand) s.setAttribute('aria-label', text + ': ' + operand.symbol.meaning);
      lightable(s);
      const open = () => { const id = s.dataset.light.split(' ').find(l => byId.has(l)); if (id) go(id); };
      s.addEventListener('click', open);
      s.addEventListener('keydown', event => { if (event.key === 'Enter') open(); });
    }
    div.append(holder);
  }
  return div;
}
function counts(card) {
  const p = card.parameters;
  if (!p.per_instance) return [['parameters', card.kind === 'tensor' ? 'none: a tensor' : 'none'], ['instances', grouped(p.instances)]];
  return [['parameters', grouped(p.per_instance) + ' per instance'], ['instances', grouped(p.instances)], ['in total', grouped(p.total)]];
}
function accounting(card) {
  if (!card.accounting.length) return null;
  const rows = card.accounting.map(l => ({ cells: [l.component, l.calculation, grouped(l.parameters)] }));
  rows.push({ sum: true, cells: ['Per-instance total', '', grouped(card.parameters.per_instance)] });
  if (card.parameters.instances > 1) rows.push({ sum: true, cells: ['All instances', grouped(card.parameters.per_instance) + ' × ' + grouped(card.parameters.instances), grouped(card.parameters.total)] });
  return table(['Component', 'Calculation', 'Parameters'], rows, [2]);
}
function workText() {
  const T = positions();
  return 'Batch ' + grouped(state.batch) + ', ' + grouped(T) + (T === 1 ? ' position' : ' positions') + ' from position ' + grouped(state.start) + ', weights in ' + state.dtype + ', cached elements of ' + cacheBytes() + ' bytes.';
}
function costTable(card) {
  const c = cost(card), n = BigInt(card.parameters.instances);
  const rows = [['FLOPs', c.flops, flopsText], ['Weight bytes read', c.weights, bytesText], ['KV bytes read', c.read, bytesText], ['KV bytes written', c.written, bytesText]]
    .map(([label, v, text]) => [label, grouped(v), text(v), grouped(v * n)]);
  const bytes = moved(c);
  rows.push(['Arithmetic intensity', bytes ? (Number(c.flops) / Number(bytes)).toPrecision(3) + ' FLOPs a byte' : 'nothing moved', '', '']);
  const columns = n > 1n ? 4 : 3;
  return table(['', 'One instance', '', 'All ' + grouped(n)].slice(0, columns), rows.map(r => ({ cells: r.slice(0, columns) })), [1, 2, 3]);
}
function tensorTable(card) {
  const rows = card.operands.map(o => {
    let n = 1n;
    for (const a of o.shape) n *= BigInt(a.extent === 'B' ? state.batch : a.extent === 'T' ? positions() : a.extent === 'S' ? state.start + positions() : a.extent);
    const wide = o.dtype === 'complex64' ? 8n : 4n;
    return { cells: [o.symbol.text, grouped(n), grouped(n * wide), o.dtype === 'activation type' ? grouped(n * 2n) : ''] };
  });
  return table(['', 'Elements', 'Bytes in float32', 'Bytes in bf16'], rows, [1, 2, 3]);
}
function ranking() {
  const rows = cards.filter(c => c.cost_model && single(c)).map(c => {
    const one = cost(c);
    return { c, bytes: moved(one) * BigInt(c.parameters.instances), flops: one.flops * BigInt(c.parameters.instances) };
  }).filter(r => r.bytes > 0n).sort((a, b) => (b.bytes > a.bytes ? 1 : -1));
  const all = rows.reduce((s, r) => s + r.bytes, 0n);
  return table(['Operation', 'Bytes moved', 'Share', ''], rows.map(r => {
    const share = Number(r.bytes * 10000n / all) / 100;
    return { cells: [el('a', { href: '#' + r.c.id + settings() }, r.c.name), grouped(r.bytes), share.toFixed(1) + ' %', bar(share / 60)] };
  }), [1, 2]);
}
const bar = part => el('span', { class: 'bar', style: 'width:' + (Math.min(1, part) * 6).toFixed(2) + 'rem', 'aria-hidden': 'true' });
// The KV cache of the model after so many positions.
function cacheTable() {
  const position = BigInt(model.kv_elements_per_position) * BigInt(state.batch);
  return table(['Positions', 'Bytes in bf16', '', 'Bytes in float32'], [1, 1024, 4096, 8192, 32768, 131072].map(n => {
    const bytes = position * BigInt(n) * 2n;
    return { cells: [grouped(n), grouped(bytes), bytesText(bytes), grouped(bytes * 2n)] };
  }), [0, 1, 2, 3]);
}

function source(s) {
  const lines = s.lines.map(([a, b]) => a === b ? a : a + '–' + b).join(', ');
  const name = { direct: 'Direct evidence', contextual: 'Contextual evidence' }[s.evidence] || 'Operation context of a dependency';
  const div = el('div', { class: 'source' },
    el('p', { class: 'evidence' }, name), el('p', {}, s.claim),
    el('p', { class: 'mono' }, s.id + ' · ' + s.repository + ' / ' + s.file),
    el('p', {}, 'Pinned revision ', el('a', { href: s.url, rel: 'noreferrer' }, s.revision + ' ↗'), s.version ? ' (' + s.version + ')' : '', ' · lines ' + lines),
    el('p', { class: 'where' }, 'Symbols there: ', el('code', {}, s.symbols.join(', '))));
  const excerpt = data.excerpts[s.url + ' ' + lines];
  if (excerpt) {
    const pre = el('pre');
    let before = 0;
    for (const range of excerpt.ranges) {
      if (before && range.first > before + 1) pre.append(el('span', { class: 'left-out' }, '… lines ' + (before + 1) + '–' + (range.first - 1) + ' left out …\n'));
      range.lines.forEach((l, i) => pre.append(String(range.first + i).padStart(4) + '  ' + l + '\n'));
      before = range.first + range.lines.length - 1;
    }
    div.append(el('details', {}, el('summary', {}, excerpt.state === 'confirmed' ? 'Read the code (from your checkout; symbols confirmed)' : 'Not confirmed: ' + excerpt.reason), pre));
  }
  return div;
}
const configuration = m => [
  ['core_model_id', m.core_model_id], ['description', m.description], ['huggingface_repo', m.huggingface_repo], ['pth_file_count', m.pth_file_count],
  ['dim', m.dim], ['n_layers', m.n_layers], ['n_heads', m.n_heads], ['n_kv_heads', m.n_kv_heads], ['head_dim', m.head_dim], ['vocab_size', m.vocab_size],
  ['hidden width', m.ffn], ['ffn_dim_multiplier', m.multiple_of ? m.ffn_dim_multiplier : '—'], ['multiple_of', m.multiple_of || '—'],
  ['norm_eps', m.norm_eps], ['rope_theta', m.rope_theta], ['use_scaled_rope', m.use_scaled_rope ? 'True: factor ' + m.rope_scaling.factor + ', bands ' + m.rope_scaling.low + ' and ' + m.rope_scaling.high + ', original positions ' + grouped(m.rope_scaling.original_positions) : 'False'],
  ['output matrix', m.tied_output ? 'the embedding table (tied)' : 'separate'], ['parameters', grouped(m.parameters)],
  ['KV bytes a position', grouped(2 * m.kv_elements_per_position) + ' in bf16'],
].map(([k, v]) => [k, v === '' ? '—' : String(v)]);
function comparison(card) {
  const other = data.others.find(o => o.model.name === state.compare);
  if (!other) return [];
  const mine = configuration(model), theirs = configuration(other.model);
  const rows = mine.map(([k, v], i) => [k, v, theirs[i][1]]).filter(([, a, b]) => a !== b);
  const there = other.cards[card.id];
  const here = [];
  if (there) {
    if (card.parameters.per_instance !== there.parameters) here.push(['parameters of one', grouped(card.parameters.per_instance), grouped(there.parameters)]);
    if (card.parameters.instances !== there.instances) here.push(['instances', grouped(card.parameters.instances), grouped(there.instances)]);
    const shapes = card.operands.map(o => o.symbol.text + ' ' + o.prefill);
    shapes.forEach((s, i) => { if (s !== there.shapes[i]) here.push(['shape', s, there.shapes[i]]); });
    const notes = card.notes.map(n => n.text);
    notes.forEach((s, i) => { if (s !== there.notes[i]) here.push(['note', s, there.notes[i] || '—']); });
  }
  const changed = cards.filter(c => { const o = other.cards[c.id]; return o && (o.parameters !== c.parameters.per_instance || o.instances !== c.parameters.instances || c.operands.some((p, i) => p.symbol.text + ' ' + p.prefill !== o.shapes[i]) || c.notes.some((n, i) => n.text !== o.notes[i])); });
  const head = ['', model.title, other.model.title], cells = r => ({ cells: r });
  return section('Compared with ' + other.model.title,
    here.length ? table(['This card', model.title, other.model.title], here.map(cells)) : el('p', {}, 'This card is the same in both.'),
    rows.length ? table(['Configuration', model.title, other.model.title], rows.map(cells)) : el('p', {}, 'The configurations are the same.'),
    changed.length ? el('p', { id: 'changed' }, 'Cards that differ: ', ...changed.flatMap((c, i) => [i ? ', ' : '', el('a', { href: '#' + c.id + settings() }, c.name)]), '.')
      : el('p', { id: 'changed' }, 'No card differs in counts, shapes or notes.'));
}
function draw() {
  const main = $('card'), card = byId.get(state.id);
  main.replaceChildren();
  if (!card) {
    main.append(el('h2', {}, 'No such card'), el('p', {}, 'There is no component or tensor ', el('code', {}, state.id), ' in ' + model.title + '. '), el('p', {}, el('a', { href: '#transformer' }, 'The whole model')));
    return;
  }
  document.title = model.title + ' · ' + card.name;
  const index = cards.indexOf(card), before = cards[index - 1], after = cards[index + 1];
  const ins = card.operands.filter(o => o.role === 'in'), outs = card.operands.filter(o => o.role === 'out');
  const row = (label, o) => [label, el('span', {}, symbolButton(o.symbol), ' ', axes(o))];
  const m = card.usual_mistake;
  main.append(...[
    card.breadcrumb.length ? el('p', { class: 'crumbs' }, card.breadcrumb.join(' › ')) : null,
    el('h2', {}, card.name),
    el('p', { class: 'tags' }, el('span', { class: 'kind ' + card.kind }, card.kind), el('code', {}, card.code), el('code', { class: 'where' }, card.id)),
    el('p', { class: 'lead' }, card.description),
    equations(card),
    factList([...ins.map(o => row('in', o)), ...outs.map(o => row(card.kind === 'tensor' ? 'shape' : 'out', o)), ...counts(card)]),
    ...section('Notes', ...card.notes.map(n => el('p', { class: 'note' }, n.text, n.where ? el('span', { class: 'where' }, ' (' + n.where + ')') : ''))),
    ...section('Exact accounting', accounting(card), card.weight ? el('p', { class: 'note' }, card.weight.layout) : null, card.basis ? el('p', { class: 'note ' + (!card.checked ? 'where' : card.checked.agrees ? 'good' : 'bad') }, card.basis) : null),
    ...statistics(card),
    ...section('Explanation', card.explanation ? el('p', {}, card.explanation) : null),
    ...section('Cost', el('p', { class: 'note where', id: 'work-text' }, workText()), card.cost_model ? costTable(card) : tensorTable(card)),
    ...measuredSection(card),
    ...(card.id === 'transformer' ? [...section('Bytes moved, by operation', ranking()), ...section('KV cache, by positions', cacheTable())] : []),
    ...(m && (!m.unit || m.wrong_figure !== m.right_figure) ? section('The usual mistake', el('div', { class: 'mistake' }, el('p', {}, m.wrong + ': ' + m.right + '.'), m.unit ? el('p', {}, el('strong', {}, grouped(m.right_figure)), ' ' + m.unit + ', not ', el('s', {}, grouped(m.wrong_figure)), '.') : null)) : []),
    ...ranksSection(card),
    ...section('Symbols', table(['Symbol', 'Meaning', 'In the code', 'Shape'], card.operands.map(o => ({ cells: [symbolButton(o.symbol), o.symbol.meaning, el('code', {}, o.symbol.code), o.shape.length ? axes(o) : 'a number'] })))),
    ...(card.weight ? section('Names in files', factList([['Meta', card.weight.names.meta], ['Hugging Face', card.weight.names.hugging_face], ['GGUF', card.weight.names.gguf]].map(([k, v]) => [k, v ? el('code', {}, v) : 'none: the embedding table is applied']))) : []),
    ...comparison(card),
    ...section('Code', factList([['reference', card.code_lines], ['header', el('code', {}, card.header)], ['computed by', el('code', {}, card.kernel)], ['tested by', el('code', {}, card.test)]])),
    ...section('Sources ' + card.sources.length, ...card.sources.map(source)),
    ...section('Configuration', factList(configuration(model))),
    el('div', { class: 'pager' }, before ? el('a', { href: '#' + before.id + settings(), rel: 'prev' }, '← ' + before.name) : el('span'), after ? el('a', { href: '#' + after.id + settings(), rel: 'next' }, after.name + ' →') : el('span')),
  ].filter(x => x));
  for (const a of document.querySelectorAll('#all a')) {
    a.href = '#' + a.dataset.id + settings();
    if (a.dataset.id === card.id) a.setAttribute('aria-current', 'page'); else a.removeAttribute('aria-current');
  }
  for (const e of document.querySelectorAll('#drawing [data-light]')) e.classList.toggle('here', e.dataset.light === card.id || e.dataset.light === card.alias);
}

// --- the controls --------------------------------------------------------------------------------
// A slider's step n is 2^n (batch, positions), or 0 and then 2^(n-1) (cached positions).
function controls() {
  $('prefill').setAttribute('aria-checked', state.phase === 'prefill');
  $('decode').setAttribute('aria-checked', state.phase === 'decode');
  $('prefill').tabIndex = state.phase === 'prefill' ? 0 : -1;
  $('decode').tabIndex = state.phase === 'decode' ? 0 : -1;
  $('batch').value = Math.round(Math.log2(state.batch));
  $('positions').value = Math.round(Math.log2(state.prefill));
  $('positions').disabled = state.phase === 'decode';
  $('positions-label').classList.toggle('off', state.phase === 'decode');
  $('start').value = state.start === 0 ? 0 : Math.round(Math.log2(state.start)) + 1;
  $('batch-out').textContent = grouped(state.batch);
  $('positions-out').textContent = grouped(positions());
  $('start-out').textContent = grouped(state.start);
  for (const [id, value] of [['batch', state.batch], ['positions', positions()], ['start', state.start]]) $(id).setAttribute('aria-valuetext', grouped(value));
  $('dtype').value = state.dtype;
  $('compare').value = state.compare;
  const kv = BigInt(model.kv_elements_per_position) * BigInt(cacheBytes()) * BigInt(state.batch) * BigInt(state.start + positions());
  const c = cost(byId.get('transformer'));
  $('totals').replaceChildren(el('span', { class: 'hidden' }, 'Whole model: '), flopsText(c.flops) + ' · ' + bytesText(moved(c)) + ' moved · KV cache ' + grouped(kv) + ' bytes');
}
function changed() { history.replaceState(null, '', '#' + state.id + settings()); refresh(); }
function refresh() { controls(); draw(); }
function setPhase(phase) { state.phase = phase; changed(); }
$('prefill').addEventListener('click', () => setPhase('prefill'));
$('decode').addEventListener('click', () => setPhase('decode'));
for (const id of ['prefill', 'decode']) $(id).addEventListener('keydown', e => {
  if (e.key.startsWith('Arrow')) { setPhase(state.phase === 'decode' ? 'prefill' : 'decode'); $(state.phase).focus(); e.preventDefault(); e.stopPropagation(); }
});
$('batch').addEventListener('input', e => { state.batch = 2 ** +e.target.value; changed(); });
$('positions').addEventListener('input', e => { state.prefill = 2 ** +e.target.value; changed(); });
$('start').addEventListener('input', e => { state.start = +e.target.value === 0 ? 0 : 2 ** (+e.target.value - 1); changed(); });
$('dtype').addEventListener('change', e => { state.dtype = e.target.value; changed(); });
$('compare').addEventListener('change', e => { state.compare = e.target.value; changed(); });
$('theme').addEventListener('click', () => {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
});

// --- search ----------------------------------------------------------------------------------------
function hits(query) {
  const q = query.trim().toLowerCase().replace(/,/g, '');
  if (!q) return [];
  if (/^\d+$/.test(q)) {
    return cards.flatMap(c => {
      const places = c.operands.filter(o => o.role === 'out' && o.shape.some(a => String(a.extent) === q)).map(o => o.symbol.text + ' ' + o.prefill);
      if (c.weight && c.weight.shape.some(n => String(n) === q)) places.unshift('weight [' + c.weight.shape.join(', ') + ']');
      return places.length ? [{ card: c, why: places.join(' · ') }] : [];
    });
  }
  const rank = c => c.id.toLowerCase() === q ? 0 : c.name.toLowerCase().startsWith(q) ? 1 : c.id.toLowerCase().split('.').includes(q) ? 2 : c.name.toLowerCase().includes(q) ? 3 : c.id.toLowerCase().includes(q) ? 4 : (c.description + ' ' + c.code + ' ' + c.explanation + ' ' + c.notes.map(n => n.text).join(' ') + ' ' + (c.usual_mistake ? c.usual_mistake.wrong + ' ' + c.usual_mistake.unit : '') + ' ' + (c.weight ? Object.values(c.weight.names).join(' ') : '')).toLowerCase().includes(q) ? 5 : 9;
  return cards.map(c => ({ card: c, why: c.id, rank: rank(c) })).filter(h => h.rank < 9).sort((a, b) => a.rank - b.rank);
}
let chosen = 0, found = [];
function showHits() {
  found = hits($('search').value);
  chosen = 0;
  $('results').replaceChildren(...found.map((h, i) => el('li', { role: 'option', id: 'hit-' + i, 'aria-selected': String(i === 0), on: { mousedown: e => { e.preventDefault(); take(i); } } }, h.card.name, el('small', {}, h.why))));
  if ($('search').value.trim() && !found.length) $('results').append(el('li', { role: 'option', 'aria-selected': 'false' }, 'Nothing found'));
  $('results').hidden = !$('results').children.length;
  $('search').setAttribute('aria-expanded', String(!$('results').hidden));
  if (found.length) $('search').setAttribute('aria-activedescendant', 'hit-0'); else $('search').removeAttribute('aria-activedescendant');
}
function take(i) { if (!found[i]) return; $('search').value = ''; showHits(); go(found.length ? found[i].card.id : state.id); }
$('search').addEventListener('input', showHits);
$('search').addEventListener('keydown', e => {
  if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
    e.preventDefault();
    if (!found.length) return;
    chosen = (chosen + (e.key === 'ArrowDown' ? 1 : found.length - 1)) % found.length;
    [...$('results').children].forEach((li, i) => li.setAttribute('aria-selected', String(i === chosen)));
    $('results').children[chosen].scrollIntoView({ block: 'nearest' });
    $('search').setAttribute('aria-activedescendant', 'hit-' + chosen);
  } else if (e.key === 'Enter' && found.length) {
    const id = found[chosen].card.id;
    $('search').value = ''; showHits(); go(id); $('card').focus();
  } else if (e.key === 'Escape') { $('search').value = ''; showHits(); }
});
$('search').addEventListener('blur', () => { $('results').hidden = true; $('search').setAttribute('aria-expanded', 'false'); });
document.addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
  const index = cards.indexOf(byId.get(state.id));
  if (e.key === '/') { e.preventDefault(); $('search').focus(); }
  else if (e.key === 'j' && cards[index + 1]) go(cards[index + 1].id);
  else if (e.key === 'k' && cards[index - 1]) go(cards[index - 1].id);
  else if (e.key === 'p') setPhase(state.phase === 'decode' ? 'prefill' : 'decode');
});
)js";

}  // namespace quipu::atlas
