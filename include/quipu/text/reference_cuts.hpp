// The cutting of very long texts before tokenization, as Meta's tokenizer of Llama 3 does it.
//
// Merges never cross a cut, so the cuts decide ids. Reference: llama/tokenizer.py of
// meta-llama/llama3, Tokenizer.encode.
#pragma once

#include <cstddef>
#include <string_view>

#include "quipu/text/utf8.hpp"

namespace quipu::detail {

/// Code points in a piece, at most; and code points in a run of white space or of anything else.
inline constexpr std::size_t reference_piece_length = 400'000;
inline constexpr std::size_t reference_run_length = 25'000;

/// Calls part(std::string_view) for the parts of `text`, in order. A part ends after 400000 code
/// points of the text, and within those where a run of more than 25000 consecutive code points
/// that are white space, or are not, would go on. Ill-formed bytes count one code point for each
/// maximal ill-formed prefix, not white space.
template <class Part>
void for_each_reference_cut(std::string_view text, Part&& part) {
  // A text with fewer bytes than a run may have code points is never cut.
  if (text.size() <= reference_run_length) {
    if (!text.empty()) part(text);
    return;
  }
  std::size_t begin = 0;  // of the part
  std::size_t piece = 0;  // code points since the last multiple of 400000
  std::size_t run = 0;    // code points of the run
  bool run_is_space = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_code_point(text.substr(at));
    const bool space = c.valid && is_python_space(c.value);
    if (piece == reference_piece_length) {
      part(text.substr(begin, at - begin));
      begin = at;
      piece = 0;
      run = 0;
    }
    if (run != 0 && space == run_is_space) {
      if (++run > reference_run_length) {
        part(text.substr(begin, at - begin));
        begin = at;
        run = 1;
      }
    } else {
      run = 1;
      run_is_space = space;
    }
    ++piece;
    at += c.length;
  }
  part(text.substr(begin));
}

}  // namespace quipu::detail
