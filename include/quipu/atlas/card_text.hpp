// A card as text for a terminal and as markdown.
// Siblings: atlas/document.hpp (what is said, in which order), atlas/card_json.hpp.
#pragma once

#include "quipu/atlas/document.hpp"

namespace quipu::atlas {

namespace detail {

/// Columns that a UTF-8 text takes in a terminal; combining marks (the tilde of q̃) take none.
inline std::size_t columns(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c & 0xC0) == 0x80) continue;
    const bool combining = c == 0xCC || c == 0xCD;
    n += combining ? 0 : 1;
  }
  return n;
}

inline std::string padded(std::string_view text, std::size_t width) {
  const std::size_t n = columns(text);
  return std::string(text) + std::string(n < width ? width - n : 0, ' ');
}

/// Text wrapped at `width` columns, later lines indented; a long word stands alone.
inline std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = (std::min)(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (column > indent && column + 1 + columns(word) > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns(word);
    at = end + 1;
  }
  return out;
}

inline std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& cells : rows) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = (std::max)(widths[i], columns(cells[i]));
    }
  }
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string text = " ";
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      text += ' ';
      text += padded(rows[r][i], widths[i] + 1);
    }
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}  // namespace detail

/// The document as text of some 100 columns, a newline at the end.
inline std::string render_text(const Document& document) {
  std::string out;
  bool first = true;
  for (const Section& section : document) {
    switch (section.form) {
      case Section::Form::heading:
        out += (first ? "" : "\n") + section.text + "\n";
        if (first) out += std::string(detail::columns(section.text), '=') + "\n";
        break;
      case Section::Form::paragraph:
        if (!section.text.empty()) out += "  " + detail::wrapped(section.text, 2, 98) + "\n";
        break;
      case Section::Form::equation:
        if (out.substr(out.size() - 2) != "\n\n") out += "\n";
        out += "      " + section.text + "\n\n";
        break;
      case Section::Form::facts:
        for (const auto& [label, value] : section.facts) {
          out += "  " + detail::padded(label, 18) + detail::wrapped(value, 20, 98) + "\n";
        }
        break;
      case Section::Form::table:
        out += detail::table_text(section.table);
        break;
    }
    first = false;
  }
  return out;
}

namespace detail {

/// Markdown's own signs in a text made harmless.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '`' || c == '[' || c == ']' || c == '<') {
      out += '\\';
    }
    out += c;
  }
  return out;
}

inline bool is_code(std::string_view label) {
  return label == "id" || label == "code" || label == "header" || label == "Meta" ||
         label == "Hugging Face" || label == "GGUF" || label == "holds" || label == "computed by" ||
         label == "tested by";
}

}  // namespace detail

/// The document as markdown.
inline std::string render_markdown(const Document& document) {
  std::string out;
  bool first = true;
  for (const Section& section : document) {
    switch (section.form) {
      case Section::Form::heading:
        out += (first ? "# " : "## ") + detail::escaped(section.text) + "\n\n";
        break;
      case Section::Form::paragraph:
        if (!section.text.empty()) out += detail::escaped(section.text) + "\n\n";
        break;
      case Section::Form::equation:
        out += "> " + detail::escaped(section.text) + "\n\n";
        break;
      case Section::Form::facts:
        for (const auto& [label, value] : section.facts) {
          const std::size_t start = label.find_first_not_of(' ');
          out += "- **" + label.substr(start) + "** " +
                 (label == "link"          ? "<" + value + ">"
                  : detail::is_code(label) ? "`` " + value + " ``"
                                           : detail::escaped(value)) +
                 "\n";
        }
        out += "\n";
        break;
      case Section::Form::table:
        for (std::size_t r = 0; r < section.table.size(); ++r) {
          out += "|";
          for (const std::string& cell : section.table[r]) {
            out += ' ';
            out += detail::escaped(cell);
            out += " |";
          }
          out += "\n";
          if (r == 0) {
            out += "|";
            for (std::size_t i = 0; i < section.table[r].size(); ++i) out += " --- |";
            out += "\n";
          }
        }
        out += "\n";
        break;
    }
    first = false;
  }
  return out;
}

}  // namespace quipu::atlas
