// Equations as Unicode text, LaTeX and MathML. In the last two every symbol is marked with the ids
// that light up with it (LaTeX: \htmlData{light=...}, MathML: data-light).
// Siblings: notation/tree.hpp; atlas/card_text.hpp, atlas/page.hpp use it.
#pragma once

#include <string>

#include "quipu/notation/tree.hpp"

namespace quipu::atlas {

namespace detail {

using notation::Node;
using notation::Operator;
using notation::Tree;

/// How tightly an operator binds; a looser part inside a tighter one stands in parentheses.
constexpr int binding_of(const Node& node) {
  switch (node.op) {
    case Operator::equals:
      return 0;
    case Operator::sum:
      return 1;
    case Operator::product:
    case Operator::hadamard:
    case Operator::outer:
    case Operator::quotient:
      return 2;
    default:
      return 3;
  }
}

inline bool is_postfix(const Node& node) {
  return node.op == Operator::call && (node.text == "²" || node.text == "ᵀ");
}

inline std::string links_of(const notation::SymbolFacts& symbol) {
  std::string out;
  for (std::string_view link : symbol.links) {
    if (!link.empty()) out += (out.empty() ? "" : " ") + std::string(link);
  }
  return out;
}

inline std::string plain(const notation::SymbolFacts& symbol) {
  return std::string(symbol.base) +
         (symbol.subscript.empty() ? "" : "_" + std::string(symbol.subscript));
}

inline std::string text_of(const Tree& tree, int at);

inline std::string text_inside(const Tree& tree, int at, int outer) {
  const std::string inner = text_of(tree, at);
  return binding_of(tree[static_cast<std::size_t>(at)]) < outer ? "(" + inner + ")" : inner;
}

inline std::string text_of(const Tree& tree, int at) {
  const Node& n = tree[static_cast<std::size_t>(at)];
  auto binary = [&](const char* sign) {
    const int b = binding_of(n);
    // Both sides of a product of products stand without parentheses: it is associative. A quotient
    // on the right would not be, and no equation has one.
    return text_inside(tree, n.left, b) + sign + text_inside(tree, n.right, b);
  };
  switch (n.op) {
    case Operator::name:
      return plain(*n.symbol);
    case Operator::equals:
      return binary(" = ");
    case Operator::product:
      return binary(" ");
    case Operator::sum:
      return binary(" + ");
    case Operator::hadamard:
      return binary(" ⊙ ");
    case Operator::outer:
      return binary(" ⊗ ");
    case Operator::quotient:
      return binary(" / ");
    case Operator::lookup:
      return text_of(tree, n.left) + "[" + text_of(tree, n.right) + "]";
    case Operator::call:
      if (is_postfix(n)) return text_inside(tree, n.left, 3) + std::string(n.text);
      return std::string(n.text) + "(" + text_of(tree, n.left) + ")";
    case Operator::at:
      return text_of(tree, n.left) + "_" + std::string(n.text);
    case Operator::concat:
      return "concat(" + text_of(tree, n.left) + " over " + std::string(n.text) + ")";
  }
  return {};
}

inline std::string latex_of(const Tree& tree, int at);

inline std::string latex_inside(const Tree& tree, int at, int outer) {
  const std::string inner = latex_of(tree, at);
  return binding_of(tree[static_cast<std::size_t>(at)]) < outer ? "\\left(" + inner + "\\right)"
                                                                : inner;
}

inline std::string latex_of(const Tree& tree, int at) {
  const Node& n = tree[static_cast<std::size_t>(at)];
  auto binary = [&](const char* sign) {
    const int b = binding_of(n);
    return latex_inside(tree, n.left, b) + sign + latex_inside(tree, n.right, b);
  };
  switch (n.op) {
    case Operator::name:
      return "{\\htmlData{light=" + links_of(*n.symbol) + "}{" + std::string(n.symbol->latex) +
             "}}";
    case Operator::equals:
      return binary(" = ");
    case Operator::product:
      return binary(" \\, ");
    case Operator::sum:
      return binary(" + ");
    case Operator::hadamard:
      return binary(" \\odot ");
    case Operator::outer:
      return binary(" \\otimes ");
    case Operator::quotient:
      return "\\frac{" + latex_of(tree, n.left) + "}{" + latex_of(tree, n.right) + "}";
    case Operator::lookup:
      return latex_of(tree, n.left) + "\\left[" + latex_of(tree, n.right) + "\\right]";
    case Operator::call:
      if (is_postfix(n)) return latex_inside(tree, n.left, 3) + std::string(n.latex);
      if (n.text == "√") return "\\sqrt{" + latex_of(tree, n.left) + "}";
      return std::string(n.latex) + "\\left(" + latex_of(tree, n.left) + "\\right)";
    case Operator::at:
      return latex_of(tree, n.left) + "_{" +
             (n.text == "i" ? std::string("i") : "\\operatorname{kv}(i)") + "}";
    case Operator::concat:
      return "\\operatorname{concat}_{i}\\left(" + latex_of(tree, n.left) + "\\right)";
  }
  return {};
}

inline std::string mathml_of(const Tree& tree, int at);

inline std::string row(const std::string& inner) { return "<mrow>" + inner + "</mrow>"; }

inline std::string parenthesised(const std::string& inner) {
  return row("<mo>(</mo>" + inner + "<mo>)</mo>");
}

inline std::string mathml_inside(const Tree& tree, int at, int outer) {
  const std::string inner = mathml_of(tree, at);
  return binding_of(tree[static_cast<std::size_t>(at)]) < outer ? parenthesised(inner) : inner;
}

inline std::string mathml_of(const Tree& tree, int at) {
  const Node& n = tree[static_cast<std::size_t>(at)];
  auto binary = [&](const char* sign) {
    const int b = binding_of(n);
    return row(mathml_inside(tree, n.left, b) + sign + mathml_inside(tree, n.right, b));
  };
  switch (n.op) {
    case Operator::name: {
      const std::string mark = " class=\"sym\" data-light=\"" + links_of(*n.symbol) + "\"";
      // A combining tilde would make a word of the letter, written upright: an accent instead.
      constexpr std::string_view tilde = "\u0303";
      if (const std::size_t at_tilde = n.symbol->base.find(tilde); at_tilde != tilde.npos) {
        return "<mover accent=\"true\"" + mark + "><mi>" +
               std::string(n.symbol->base.substr(0, at_tilde)) + "</mi><mo>~</mo></mover>";
      }
      if (n.symbol->subscript.empty()) {
        return "<mi" + mark + ">" + std::string(n.symbol->base) + "</mi>";
      }
      return "<msub" + mark + "><mi>" + std::string(n.symbol->base) +
             "</mi><mi mathvariant=\"normal\">" + std::string(n.symbol->subscript) + "</mi></msub>";
    }
    case Operator::equals:
      return binary("<mo>=</mo>");
    case Operator::product:
      return binary("<mspace width=\"0.22em\"></mspace>");
    case Operator::sum:
      return binary("<mo>+</mo>");
    case Operator::hadamard:
      return binary("<mo>⊙</mo>");
    case Operator::outer:
      return binary("<mo>⊗</mo>");
    case Operator::quotient:
      return "<mfrac>" + mathml_of(tree, n.left) + mathml_of(tree, n.right) + "</mfrac>";
    case Operator::lookup:
      return row(mathml_of(tree, n.left) + "<mo>[</mo>" + mathml_of(tree, n.right) + "<mo>]</mo>");
    case Operator::call:
      if (is_postfix(n)) {
        return "<msup>" + mathml_inside(tree, n.left, 3) +
               (n.text == "²" ? "<mn>2</mn>" : "<mo>⊤</mo>") + "</msup>";
      }
      if (n.text == "√") return "<msqrt>" + mathml_of(tree, n.left) + "</msqrt>";
      return row("<mi mathvariant=\"normal\">" + std::string(n.text) + "</mi><mo>(</mo>" +
                 mathml_of(tree, n.left) + "<mo>)</mo>");
    case Operator::at:
      return "<msub>" + mathml_of(tree, n.left) + "<mi>" + std::string(n.text) + "</mi></msub>";
    case Operator::concat:
      return row("<msub><mi mathvariant=\"normal\">concat</mi><mi>i</mi></msub><mo>(</mo>" +
                 mathml_of(tree, n.left) + "<mo>)</mo>");
  }
  return {};
}

inline int root(const Tree& tree) { return static_cast<int>(tree.size()) - 1; }

}  // namespace detail

/// The equation in one line of Unicode: `L = z W_out`.
inline std::string equation_text(const notation::Tree& tree) {
  return detail::text_of(tree, detail::root(tree));
}

/// The equation as LaTeX, symbols marked for KaTeX's \htmlData.
inline std::string equation_latex(const notation::Tree& tree) {
  return detail::latex_of(tree, detail::root(tree));
}

/// The equation as a MathML element, symbols marked with data-light.
inline std::string equation_mathml(const notation::Tree& tree) {
  return "<math display=\"block\">" + detail::mathml_of(tree, detail::root(tree)) + "</math>";
}

}  // namespace quipu::atlas
