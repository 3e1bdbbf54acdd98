// Calls of tools in the messages of Llama 3.1 and later, written as the reference writes them.
//
// Reference: ToolUtils.encode_tool_call in models/llama3/tool_utils.py of meta-llama/llama-models,
// whose texts come from Python: json.dumps with its blanks and ASCII escapes, str() of numbers.
// Used by text/chat.hpp.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "quipu/shape/error.hpp"

namespace quipu {

/// A call of a tool by the model.
struct ToolCall {
  std::string tool_name;       ///< "brave_search", "code_interpreter", or the user's own
  std::string arguments_json;  ///< a JSON object, its members in their order
};

/// How calls of tools other than the built-in ones are written.
enum class ToolPromptFormat { json, function_tag, python_list };

/// The tool whose call is plain code after <|python_tag|>.
inline constexpr std::string_view code_interpreter = "code_interpreter";

namespace detail {

using ToolJson = nlohmann::ordered_json;

/// A finite number as Python's repr(float): the shortest digits that give it back, an exponent
/// below 1e-4 and from 1e16 on.
inline std::string python_float(double value) {
  std::array<char, 40> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific);
  const std::string_view all(text.data(), static_cast<std::size_t>(end.ptr - text.data()));
  const std::size_t mark = all.find('e');
  const int exponent = std::atoi(std::string(all.substr(mark + 1)).c_str());
  std::string digits;
  for (const char c : all.substr(0, mark)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  std::string out = all.front() == '-' ? "-" : "";
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (count > 1) out += "." + digits.substr(1);
    const std::string power = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) {
    return out + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  }
  const auto whole = static_cast<std::size_t>(exponent + 1);
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

/// Writes a JSON value in one of Python's two ways.
class PythonWriter {
 public:
  enum class Style {
    json,  ///< json.dumps: {"a": true, "b": null}
    call,  ///< arguments of a call: {a=True, b=None}
  };
  explicit PythonWriter(Style style) : style_(style) {}

  std::string value(const ToolJson& json, unsigned depth = 0) const {
    // Deeper than any real call, and far from the end of a small stack.
    if (depth > 64) raise<ArgumentError>("tool call: arguments are nested deeper than 64");
    const bool call = style_ == Style::call;
    if (json.is_object()) return "{" + members(json, depth) + "}";
    if (json.is_array()) {
      std::string out;
      for (const ToolJson& item : json) {
        if (!out.empty()) out += ", ";
        out += value(item, depth + 1);
      }
      return "[" + out + "]";
    }
    if (json.is_string()) {
      return call ? "\"" + json.get<std::string>() + "\"" : json.dump(-1, ' ', true);
    }
    if (json.is_boolean()) {
      return json.get<bool>() ? (call ? "True" : "true") : (call ? "False" : "false");
    }
    if (json.is_null()) return call ? "None" : "null";
    if (json.is_number_float()) return python_float(json.get<double>());
    return json.dump();
  }

  /// The members of an object without its braces.
  std::string members(const ToolJson& object, unsigned depth = 0) const {
    std::string out;
    for (auto member = object.begin(); member != object.end(); ++member) {
      if (!out.empty()) out += ", ";
      out += style_ == Style::call ? member.key() + "="
                                   : ToolJson(member.key()).dump(-1, ' ', true) + ": ";
      out += value(member.value(), depth + 1);
    }
    return out;
  }

 private:
  Style style_;
};

}  // namespace detail

/// The text of a call. ArgumentError names the tool if its arguments are no JSON object, or lack
/// what a built-in tool needs.
inline std::string write_tool_call(const ToolCall& call, ToolPromptFormat format) {
  using detail::PythonWriter;
  const auto arguments = detail::ToolJson::parse(call.arguments_json, nullptr, false);
  if (!arguments.is_object()) {
    raise<ArgumentError>(
        "tool call \"" + call.tool_name +
        "\": the arguments are no JSON object: " + call.arguments_json.substr(0, 200));
  }
  const auto built_in = [&](const char* name) {
    const auto found = arguments.find(name);
    if (found == arguments.end() || !found->is_string()) {
      raise<ArgumentError>("tool call \"" + call.tool_name + "\": expected a string argument \"" +
                           name + "\", found " + call.arguments_json.substr(0, 200));
    }
    return found->get<std::string>();
  };
  if (call.tool_name == code_interpreter) return built_in("code");
  for (const std::string_view search : {"brave_search", "wolfram_alpha", "photogen"}) {
    if (call.tool_name == search)
      return call.tool_name + ".call(query=\"" + built_in("query") + "\")";
  }
  const PythonWriter json(PythonWriter::Style::json);
  switch (format) {
    case ToolPromptFormat::json:
      return R"({"type": "function", "name": )" + json.value(call.tool_name) +
             R"(, "parameters": )" + json.value(arguments) + "}";
    case ToolPromptFormat::function_tag:
      return "<function=" + call.tool_name + ">" + json.value(arguments) + "</function>";
    case ToolPromptFormat::python_list:
      return "[" + call.tool_name + "(" +
             PythonWriter(PythonWriter::Style::call).members(arguments) + ")]";
  }
  raise<ArgumentError>("tool call \"" + call.tool_name + "\": unknown format");
}

}  // namespace quipu
