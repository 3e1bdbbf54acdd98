// Reading a profile: the file that quipu-generate --profile and quipu-bench write of a measured
// run.
//
// The format is JSON, "format": "quipu-profile-1": what was run (model, target, threads, batch,
// positions, at, weights, cache, activations, mode), the machine's ceilings as measured in the same
// process, and a time for each component by its id, one entry a block. Bytes and FLOPs stand in the
// file too; the prediction is the component's own cost function, so that the two can differ and the
// card says so. Siblings: atlas/measured.hpp; test/data/atlas/stories15m.profile.json is a
// hand-made one.
#pragma once

#include "quipu/atlas/measured.hpp"
#include "quipu/checkpoint/json_document.hpp"
#include "quipu/checkpoint/mapped_file.hpp"

namespace quipu::atlas {

namespace detail {

/// Reads the members of one object of a profile; what is wrong is a FormatError that names the file
/// and the field.
class ProfileReader {
 public:
  ProfileReader(const JsonValue& object, std::string_view file, std::string place)
      : object_(object), file_(file), place_(std::move(place)) {
    if (object.object() == nullptr) wrong("", "an object", object);
  }
  const JsonValue& member(std::string_view key) const {
    const JsonValue* value = object_.find(key);
    if (value == nullptr) {
      raise<FormatError>(std::string(file_) + ": profile field " + place_ + std::string(key) +
                         " is missing");
    }
    return *value;
  }
  std::string text(std::string_view key) const {
    const std::string* value = member(key).text();
    if (value == nullptr || value->empty()) wrong(key, "a text", member(key));
    return *value;
  }
  /// One of a few words.
  std::string word(std::string_view key, std::initializer_list<std::string_view> known) const {
    std::string value = text(key), expected;
    for (const std::string_view one : known) {
      if (value == one) return value;
      expected += (expected.empty() ? "" : " or ") + std::string(one);
    }
    wrong(key, expected, member(key));
  }
  /// The name of a SIMD target. Highway's list grows, so that a file may name one that this library
  /// does not know: letters, digits and underscores, 32 at most.
  std::string target(std::string_view key) const {
    std::string value = text(key);
    const bool harmless =
        value.size() <= 32 && value.find_first_not_of(
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvw"
                                  "xyz0123456789_") == value.npos;
    if (!harmless) {
      wrong(key, "the name of a SIMD target, such as AVX2 (at most 32 letters, digits and _)",
            member(key));
    }
    return value;
  }
  std::size_t count(std::string_view key, std::size_t least) const {
    const auto value = member(key).unsigned_integer();
    if (!value || *value < least) {
      wrong(key, "a whole number, " + std::to_string(least) + " or more", member(key));
    }
    return static_cast<std::size_t>(*value);
  }
  /// A finite number that is not negative; `positive` refuses 0 too.
  double number(std::string_view key, bool positive) const {
    const auto value = member(key).number();
    if (!value || !(*value < 1e300) || *value < 0 || (positive && *value == 0)) {
      wrong(key, positive ? "a number above 0" : "a number, 0 or more", member(key));
    }
    return *value;
  }
  /// The same, 0 where there is none.
  double number_if_any(std::string_view key) const {
    return object_.find(key) == nullptr ? 0.0 : number(key, false);
  }
  const JsonValue::Array& list(std::string_view key) const {
    const JsonValue::Array* value = member(key).array();
    if (value == nullptr || value->empty()) wrong(key, "a list that is not empty", member(key));
    return *value;
  }
  [[noreturn]] void wrong(std::string_view key, const std::string& expected,
                          const JsonValue& found) const {
    std::string field = place_ + std::string(key);
    if (field.ends_with('.')) field.pop_back();  // the object itself
    raise<FormatError>(std::string(file_) + ": profile" + (field.empty() ? "" : " field ") + field +
                       ": expected " + expected + ", found " + found.describe());
  }

 private:
  const JsonValue& object_;
  std::string_view file_;
  std::string place_;
};

/// The card that a time belongs to, or null. Appending to the cache has no card of its own:
/// attention's accounting holds the bytes written.
inline const Card* card_of_time(const ModelEntry& entry, std::string_view id) {
  return card_with_id(entry, id == "layers.N.attention.cache"
                                 ? std::string_view("layers.N.attention.scaled_dot_product")
                                 : id);
}

inline void add_times(Profile& profile, const ModelEntry& entry, const ProfileReader& reader) {
  std::map<std::string, std::size_t, std::less<>> seen;
  const JsonValue::Array& list = reader.list("components");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const ProfileReader one(list[i], profile.file, "components[" + std::to_string(i) + "].");
    const std::string id = one.text("id");
    if (!seen.emplace(id, i).second) one.wrong("id", "each component once", one.member("id"));
    const CardId split = split_id(id);
    const Card* card = card_of_time(entry, split.id);
    if (card == nullptr || has_parts(entry, *card)) {
      one.wrong("id",
                "a component or tensor of " + std::string(entry.facts.name) + " without parts",
                one.member("id"));
    }
    const bool in_block = split.id.substr(0, 7) == "layers.";
    if (in_block && split.layer >= entry.facts.n_layers) {
      one.wrong("id", "a block's number below " + std::to_string(entry.facts.n_layers),
                one.member("id"));
    }
    const std::size_t layer = in_block ? split.layer : 0;
    std::vector<ProfileEntry>& entries = profile.entries[card->id];
    auto place = std::find_if(entries.begin(), entries.end(),
                              [&](const ProfileEntry& e) { return e.layer == layer; });
    if (place == entries.end()) place = entries.insert(place, {layer});
    place->seconds += one.number("seconds", true);
    place->bytes += one.number("bytes", false);
    place->flops += one.number("flops", false);
  }
}

}  // namespace detail

/// The profile in `text`, whose file is called `file`. FormatError that names the field if it is
/// not a profile of components that the model has; MismatchError that names both models if it is
/// one of another model.
inline Profile read_profile(const ModelEntry& entry, std::string_view text, std::string file) {
  Profile p;
  p.file = std::move(file);
  const JsonValue root = parse_json(text, p.file);
  const detail::ProfileReader reader(root, p.file, "");
  reader.word("format", {"quipu-profile-1"});
  if (const std::string model = reader.text("model"); model != entry.facts.name) {
    raise<MismatchError>(p.file + ": a profile of " + quipu::detail::in_quotes(model) +
                         ", not of " + std::string(entry.facts.name));
  }
  p.target = reader.target("target");
  p.cache = reader.word("cache", {"f32", "bf16", "f16"});
  p.activations = reader.word("activations", {"f32", "int8"});
  p.mode = reader.word("mode", {"f32", "bf16"});
  p.threads = reader.count("threads", 1);
  p.passes = reader.count("passes", 1);
  p.seconds = reader.number("seconds", true);
  p.work.batch = reader.count("batch", 1);
  p.work.positions = reader.count("positions", 1);
  p.work.start = reader.count("at", 0);
  p.work.cache_element_bytes = p.cache == "f32" ? 4 : 2;
  for (const JsonValue& type : reader.list("weights")) {
    const std::string* written = type.text();
    const std::optional<ElementType> known =
        written == nullptr ? std::nullopt : element_type_named(*written);
    if (!known) reader.wrong("weights", "names of element types", type);
    p.weights.push_back(*known);
  }
  const detail::ProfileReader ceilings(reader.member("ceilings"), p.file, "ceilings.");
  p.ceilings = {ceilings.number("read_bytes_per_second", true),
                ceilings.number("fma_flops_per_second", true),
                ceilings.number("int8_ops_per_second", false),
                ceilings.number_if_any("signed_int8_ops_per_second")};
  detail::add_times(p, entry, reader);
  return p;
}

/// The profile of a file: FileError if it cannot be read, else as read_profile().
inline Profile open_profile(const ModelEntry& entry, const std::string& path) {
  const MappedFile file(path);
  return read_profile(entry, {reinterpret_cast<const char*>(file.bytes().data()), file.size()},
                      path);
}

}  // namespace quipu::atlas
