// Sections of a page that show figures of ranks, of a checkpoint's tensors and of a measured run.
// Siblings: page_js.hpp (whose names it uses), page.hpp.
#pragma once

#include <string_view>

namespace quipu::atlas {

inline constexpr std::string_view page_figures_js = R"js(
// --- over several ranks ----------------------------------------------------------------------------
const cutText = { none: 'whole on every rank', rows: 'by output rows', columns: 'by input columns' };
function rankShape(w) {
  if (w.model_parallel_cut === 'none' || w.shape.length === 1) return w.shape;
  const [out, within] = w.shape;
  return w.model_parallel_cut === 'rows' ? [out / state.ranks, within] : [out, within / state.ranks];
}
function ranksSection(card) {
  if (!card.model_parallel.length) return [];
  const parts = [el('p', { class: 'note' }, card.model_parallel_text)];
  if (card.model_parallel.length > 1) {
    parts.push(table(['Ranks', 'Parameters a rank'], card.model_parallel.map(r => ({ cells: [String(r.ranks), grouped(r.parameters_of_rank)] })), [1]));
  }
  if (card.id === 'transformer' && mostRanks > 1) {
    const choice = el('select', { id: 'ranks', 'aria-label': 'Ranks', on: { change: e => { state.ranks = +e.target.value; changed(); $('ranks').focus(); } } },
      card.model_parallel.map(r => el('option', { value: r.ranks, selected: r.ranks === state.ranks ? '' : null }, String(r.ranks))));
    const kv = BigInt(model.kv_elements_per_position) * 2n / BigInt(state.ranks);
    parts.push(el('p', { class: 'note pick' }, 'What each of ', choice, ' ranks holds:'),
      table(['Tensor', 'Whole', 'Split', 'On a rank'], cards.filter(c => c.weight).map(c => ({ cells: [el('a', { href: '#' + c.id + settings() }, c.id.replace('layers.N.', '')), '[' + c.weight.shape.map(grouped).join(', ') + ']', cutText[c.weight.model_parallel_cut], '[' + rankShape(c.weight).map(grouped).join(', ') + ']'] }))),
      el('p', { class: 'note' }, 'Heads: ' + grouped(model.n_heads / state.ranks) + ' of ' + grouped(model.n_heads) + ' for queries, ' + grouped(model.n_kv_heads / state.ranks) + ' of ' + grouped(model.n_kv_heads) + ' for keys and values; the KV cache takes ' + grouped(kv) + ' bytes a position on a rank in bf16.'),
      el('p', { class: 'note' }, 'The ranks meet in four places: the embedding adds its parts, each block adds those of wo and of w2, and output gathers its logits.'));
  }
  return section('Over several ranks', ...parts);
}

// --- a checkpoint's numbers, a measured run --------------------------------------------------------
const digits = x => Number(x.toPrecision(4)).toString();
// By block: the span from least to greatest, the deviation about the mean, the mean.
function sparkline(all) {
  const w = 480, h = 72, low = Math.min(...all.map(s => s.least)), high = Math.max(...all.map(s => s.greatest));
  const x = i => all.length === 1 ? w / 2 : i * w / (all.length - 1), y = v => high === low ? h / 2 : h - (v - low) / (high - low) * h;
  const path = (top, bottom) => 'M' + all.map((s, i) => x(i).toFixed(1) + ' ' + y(top(s)).toFixed(1)).join('L') + 'L' + all.map((s, i) => x(i).toFixed(1) + ' ' + y(bottom(s)).toFixed(1)).reverse().join('L') + 'z';
  const picture = svg('svg', { class: 'spark', viewBox: `0 -2 ${w} ${h + 4}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'By block: elements from ' + digits(low) + ' to ' + digits(high) + ', means from ' + digits(Math.min(...all.map(s => s.mean))) + ' to ' + digits(Math.max(...all.map(s => s.mean))) },
    svg('path', { class: 'range', d: path(s => s.greatest, s => s.least) }), svg('path', { class: 'middle', d: path(s => s.mean + s.deviation, s => s.mean - s.deviation) }),
    svg('path', { class: 'mean', d: 'M' + all.map((s, i) => x(i).toFixed(1) + ' ' + y(s.mean).toFixed(1)).join('L') }));
  return el('figure', { class: 'sparkline' }, el('div', { class: 'scale', 'aria-hidden': 'true' }, el('span', {}, digits(high)), el('span', {}, digits(low))), picture,
    el('figcaption', {}, 'Block 0 to ' + (all.length - 1) + ': least to greatest element (pale), mean ± deviation (darker), mean (line).'));
}
function statistics(card) {
  const all = card.layer_statistics;
  if (!all || !all.length) return [];
  const rows = table(['Tensor', 'Type', 'Least', 'Greatest', 'Mean', 'Deviation', 'Not finite'], all.map(s => ({ cells: [el('code', {}, s.tensor), s.type, digits(s.least), digits(s.greatest), digits(s.mean), digits(s.deviation), grouped(s.not_finite)] })), [2, 3, 4, 5, 6]);
  return section('In the checkpoint', ...(all.length > 1 ? [sparkline(all), el('details', {}, el('summary', {}, 'The numbers of all ' + grouped(all.length) + ' tensors'), rows)] : [rows]));
}
function measuredSection(card) {
  if (!card.measured) return [];
  return section('Measured', el('p', { class: 'note where' }, data.profile.text),
    table(['', 'Measured', 'Beside it', ''], card.measured.lines.map(([label, figure, beside]) => ({ cells: [label, figure, beside, label === 'of the ceiling' ? bar(card.measured.efficiency) : ''] })), [1]),
    card.id === 'transformer' ? timeRanking() : null);
}
function timeRanking() {
  const rows = cards.filter(c => c.measured && single(c)).sort((a, b) => b.measured.share - a.measured.share);
  const figure = (m, label) => (m.lines.find(l => l[0] === label) || ['', ''])[1];
  return table(['Operation', 'Time', 'Share', 'Bytes', 'FLOPs', 'Of the ceiling', ''], rows.map(c => ({ cells: [el('a', { href: '#' + c.id + settings() }, c.name), figure(c.measured, 'time'), (100 * c.measured.share).toFixed(1) + ' %', figure(c.measured, 'bytes'), figure(c.measured, 'FLOPs'), figure(c.measured, 'of the ceiling'), bar(c.measured.share / rows[0].measured.share)] })), [1, 2, 3, 4, 5]);
}
)js";

}  // namespace quipu::atlas
