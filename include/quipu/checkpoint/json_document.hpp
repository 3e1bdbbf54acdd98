// JSON from files that nobody has checked yet: config.json, params.json, shard indexes and the
// headers of safetensors files.
//
// The syntax is nlohmann/json's, used as an event parser; the tree is our own, because a document
// object model that keeps the last of two equal keys, or that descends as deep as a file asks,
// would hide damage. (JSON that quipu writes is nlohmann/json's tree.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "quipu/checkpoint/messages.hpp"

namespace quipu {

/// Bounds on a document, so that memory and time follow from them and not from the file's wish.
struct JsonLimits {
  std::size_t depth = 32;           ///< nested arrays and objects
  std::size_t values = 32'000'000;  ///< values in all (about 40 bytes each)
};

struct JsonMember;

/// One value. Objects keep the file's order; keys are unique (the reader refuses others).
class JsonValue {
 public:
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;

  JsonValue() = default;
  template <class T>
  explicit JsonValue(T value) : value_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  Array* array() { return std::get_if<Array>(&value_); }
  Object* object() { return std::get_if<Object>(&value_); }

  /// The value as an unsigned integer, if it is one.
  std::optional<std::uint64_t> unsigned_integer() const {
    if (const auto* n = std::get_if<std::uint64_t>(&value_)) return *n;
    if (const auto* n = std::get_if<std::int64_t>(&value_); n != nullptr && *n >= 0) {
      return static_cast<std::uint64_t>(*n);
    }
    return std::nullopt;
  }
  /// The value as a number, if it is one.
  std::optional<double> number() const {
    if (const auto* n = std::get_if<double>(&value_)) return *n;
    if (const auto* n = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*n);
    if (const auto* n = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*n);
    return std::nullopt;
  }
  /// The member of that name of an object; null if there is none or this is no object.
  const JsonValue* find(std::string_view key) const;

  /// What the value is, for messages: "12", "an array of 3", "the string "llama"" and no more of a
  /// string than shows which it is.
  std::string describe() const {
    if (is_null()) return "null";
    if (const bool* b = boolean()) return *b ? "true" : "false";
    if (const std::string* s = text()) return "the string " + detail::in_quotes(*s, 40);
    if (array() != nullptr) return "an array of " + detail::decimal(array()->size());
    if (object() != nullptr) return "an object";
    if (const auto* n = std::get_if<std::uint64_t>(&value_)) return detail::decimal(*n);
    if (const auto* n = std::get_if<std::int64_t>(&value_)) return detail::decimal(*n);
    return std::to_string(*std::get_if<double>(&value_));
  }

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value_;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

inline const JsonValue* JsonValue::find(std::string_view key) const {
  if (const Object* members = object()) {
    for (const JsonMember& member : *members) {
      if (member.key == key) return &member.value;
    }
  }
  return nullptr;
}

namespace detail {

// Receives nlohmann's events and builds the tree; `false` stops the parser, and `error` says why.
class JsonBuilder {
 public:
  explicit JsonBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool null() { return add(JsonValue()); }
  bool boolean(bool value) { return add(JsonValue(value)); }
  bool number_integer(std::int64_t value) { return add(JsonValue(value)); }
  bool number_unsigned(std::uint64_t value) { return add(JsonValue(value)); }
  bool number_float(double value, const std::string&) { return add(JsonValue(value)); }
  bool string(std::string& value) { return add(JsonValue(std::move(value))); }
  bool binary(std::vector<std::uint8_t>&) { return fail("binary data in JSON text"); }
  bool start_object(std::size_t) { return open(JsonValue(JsonValue::Object())); }
  bool start_array(std::size_t) { return open(JsonValue(JsonValue::Array())); }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool end_object() {
    // The tree under construction grows only at its last elements, so these views stay good.
    const JsonValue::Object& members = *open_.back()->object();
    std::unordered_set<std::string_view> keys;
    for (const JsonMember& member : members) {
      if (!keys.insert(member.key).second)
        return fail("the key " + in_quotes(member.key) + " twice");
    }
    open_.pop_back();
    return true;
  }
  bool key(std::string& value) {
    key_ = std::move(value);
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t position, const std::string&, const Exception&) {
    return fail("not valid JSON near byte " + detail::decimal(position));
  }

  JsonValue root;
  std::string error;

 private:
  bool fail(std::string why) {
    error = std::move(why);
    return false;
  }
  JsonValue* place(JsonValue&& value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    if (JsonValue::Object* members = open_.back()->object()) {
      members->push_back({std::move(key_), std::move(value)});
      return &members->back().value;
    }
    open_.back()->array()->push_back(std::move(value));
    return &open_.back()->array()->back();
  }
  bool add(JsonValue&& value) {
    if (++values_ > limits_.values) {
      return fail("more than " + detail::decimal(limits_.values) + " JSON values");
    }
    place(std::move(value));
    return true;
  }
  bool open(JsonValue&& value) {
    if (open_.size() == limits_.depth) {
      return fail("JSON nested deeper than " + detail::decimal(limits_.depth));
    }
    if (++values_ > limits_.values) {
      return fail("more than " + detail::decimal(limits_.values) + " JSON values");
    }
    open_.push_back(place(std::move(value)));
    return true;
  }

  JsonLimits limits_;
  // The open containers, outermost first. Only the last one grows while it is the last, so the
  // pointers to the others (each the last element of its parent) do not move.
  std::vector<JsonValue*> open_;
  std::string key_;
  std::size_t values_ = 0;
};

}  // namespace detail

/// Parses a whole JSON document. FormatError that names `file` (and `field`, if given) on invalid
/// JSON, a repeated key, or a document beyond the limits.
inline JsonValue parse_json(std::string_view text, std::string_view file,
                            std::string_view field = {}, const JsonLimits& limits = {}) {
  detail::JsonBuilder builder(limits);
  const bool good = nlohmann::json::sax_parse(text.begin(), text.end(), &builder,
                                              nlohmann::json::input_format_t::json,
                                              /*strict=*/true);
  if (!good) {
    const std::string where = field.empty() ? "" : std::string(field) + ": ";
    detail::bad_format(file, where + builder.error);
  }
  return std::move(builder.root);
}

/// The text as a JSON string, in quotes. Bytes above 0x7f are passed on: names are UTF-8.
inline std::string json_quoted(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

}  // namespace quipu
