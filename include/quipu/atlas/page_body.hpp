// The body of a page before its cards are drawn. Siblings: page.hpp, page_css.hpp, page_js.hpp.
#pragma once

#include <string_view>

namespace quipu::atlas {

inline constexpr std::string_view page_body = R"html(<body>
<a class="skip" href="#card">Skip to the card</a>
<header class="top">
  <div class="brand"><span class="knot" aria-hidden="true"></span><h1 id="title"></h1><span id="subtitle"></span></div>
  <div class="find">
    <label class="hidden" for="search">Search cards by name, id or extent</label>
    <input id="search" type="search" placeholder="Search a name, an id, an extent" autocomplete="off" role="combobox" aria-expanded="false" aria-controls="results" aria-autocomplete="list">
    <ul id="results" role="listbox" aria-label="Search results" hidden></ul>
  </div>
  <label class="pick">Compare with <select id="compare"></select></label>
  <button id="theme" type="button" aria-label="Light or dark"><span aria-hidden="true">◐</span></button>
</header>
<section class="work" aria-label="Work of one call">
  <div class="switch" role="radiogroup" aria-label="Phase">
    <button type="button" role="radio" id="prefill" aria-checked="false">Prefill</button>
    <button type="button" role="radio" id="decode" aria-checked="true">Decode</button>
  </div>
  <label class="slide"><span>Batch <var>B</var></span><input id="batch" type="range" min="0" max="8" step="1"><output id="batch-out" for="batch"></output></label>
  <label class="slide" id="positions-label"><span>Positions <var>T</var></span><input id="positions" type="range" min="0" max="17" step="1"><output id="positions-out" for="positions"></output></label>
  <label class="slide"><span>Cached<span class="hidden"> positions</span></span><input id="start" type="range" min="0" max="18" step="1"><output id="start-out" for="start"></output></label>
  <label class="slide pick"><span>Weights</span><select id="dtype"></select></label>
  <p id="totals" aria-live="polite"></p>
</section>
<div class="columns">
  <nav class="map" aria-label="Map of the model">
    <div class="mapbar"><button id="heat" type="button" aria-pressed="true">Shade by measured time</button> <button id="unfold" type="button" aria-expanded="true">Fold the blocks</button></div>
    <div id="drawing"></div>
    <details class="all"><summary>All cards</summary><ol id="all"></ol></details>
  </nav>
  <main id="card" tabindex="-1"></main>
</div>
<footer class="foot">Made from the types by quipu-atlas. Keys: <kbd>/</kbd> search, <kbd>j</kbd> <kbd>k</kbd> next and previous card, <kbd>p</kbd> prefill or decode.</footer>
<noscript><p>This page draws its cards with JavaScript, from the data that stands in it.</p></noscript>
)html";

}  // namespace quipu::atlas
