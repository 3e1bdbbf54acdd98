// Hugging Face's tokenizer.json with a byte-level BPE vocabulary (Llama 3, SmolLM2, GPT-2), and the
// tokenizer_config.json beside it.
//
// Such a file describes a pipeline of steps, each with options, of which any could change the ids.
// Only those pipelines are read that the library computes the same way; a step or an option that is
// not among them is refused by name, never ignored. Makes a VocabularyData (text/vocabulary.hpp).
// Siblings: text/pretokenizer.hpp, checkpoint/json_document.hpp, engine/vocabulary_loader.hpp.
// Tests: test/text/hugging_face_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quipu/checkpoint/json_document.hpp"
#include "quipu/shape/error.hpp"
#include "quipu/text/vocabulary.hpp"

namespace quipu {

namespace detail {

/// Reads one tokenizer.json; every complaint names the file and the field.
class TokenizerJson {
 public:
  TokenizerJson(std::string_view text, std::string source)
      : source_(std::move(source)), root_(parse_json(text, source_)) {
    data_.source = source_;
    data_.model = "gpt2";
  }

  VocabularyData read() {
    nothing(root_.find("normalizer"), "normalizer");
    read_pretokenizer();
    read_model();
    read_added_tokens();
    read_post_processor();
    if (const JsonValue* decoder = root_.find("decoder"); is_set(decoder)) {
      one_of(text_of(decoder->find("type"), "decoder.type"), {"ByteLevel"}, "decoder.type");
    }
    for (std::size_t id = 0; id < data_.tokens.size(); ++id) {
      if (data_.token_types[id] == absent) {
        refuse("model.vocab", "no token has the id " + std::to_string(id) + " of " +
                                  std::to_string(data_.tokens.size()));
      }
    }
    return std::move(data_);
  }

 private:
  static constexpr std::int32_t absent = -1;

  [[noreturn]] void refuse(const std::string& field, const std::string& what) const {
    raise<FormatError>(source_ + ": " + field + ": " + what);
  }
  static bool is_set(const JsonValue* value) { return value != nullptr && !value->is_null(); }

  // Absent, null, false or the empty string: the step or option is not used.
  void nothing(const JsonValue* value, const std::string& field) const {
    if (!is_set(value)) return;
    if (const bool* b = value->boolean(); b != nullptr && !*b) return;
    if (const std::string* s = value->text(); s != nullptr && s->empty()) return;
    refuse(field, "quipu computes without it only, found " + value->describe());
  }

  bool flag(const JsonValue* value, const std::string& field, bool otherwise) const {
    if (!is_set(value)) return otherwise;
    if (value->boolean() == nullptr)
      refuse(field, "expected true or false, found " + value->describe());
    return *value->boolean();
  }

  const std::string& text_of(const JsonValue* value, const std::string& field) const {
    if (!is_set(value) || value->text() == nullptr) {
      refuse(field, "expected a string, found " +
                        (value == nullptr ? std::string("nothing") : value->describe()));
    }
    return *value->text();
  }

  void one_of(const std::string& found, std::initializer_list<std::string_view> known,
              const std::string& field) const {
    std::string all;
    for (const std::string_view name : known) {
      if (found == name) return;
      all += (all.empty() ? "" : ", ") + std::string(name);
    }
    refuse(field, "known is " + all + ", found \"" + found + "\"");
  }

  // The steps of a part that may be one step or a Sequence of them, named `list` there.
  std::vector<const JsonValue*> steps(const std::string& part, const char* list) const {
    const JsonValue* value = root_.find(part);
    if (!is_set(value)) return {};
    if (text_of(value->find("type"), part + ".type") != "Sequence") return {value};
    std::vector<const JsonValue*> out;
    const JsonValue* inner = value->find(list);
    if (inner == nullptr || inner->array() == nullptr)
      refuse(part, std::string("a Sequence without ") + list);
    for (const JsonValue& step : *inner->array()) out.push_back(&step);
    return out;
  }

  // The pre-tokenizers that there are, by what they consist of.
  void read_pretokenizer() {
    // As the reference of Llama 3 states it, and the same with single digits.
    static constexpr std::array<std::array<std::string_view, 2>, 2> patterns{
        {{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
          "llama-bpe"},
         {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
          "qwen2"}}};
    const std::string part = "pre_tokenizer";
    bool digits = false, byte_level = false, own_pattern = false;
    for (const JsonValue* step : steps(part, "pretokenizers")) {
      const std::string& type = text_of(step->find("type"), part + ".type");
      if (byte_level) refuse(part, "a step after ByteLevel, \"" + type + "\"");
      if (type == "Digits" && !digits && data_.pre.empty()) {
        if (!flag(step->find("individual_digits"), part + ".individual_digits", false)) {
          refuse(part + ".individual_digits", "expected true, found false");
        }
        digits = true;
      } else if (type == "Split" && !digits && data_.pre.empty()) {
        const JsonValue* pattern = step->find("pattern");
        const std::string& regex =
            text_of(pattern == nullptr ? nullptr : pattern->find("Regex"), part + ".pattern.Regex");
        for (const auto& [known, name] : patterns) {
          if (regex == known) data_.pre = name;
        }
        if (data_.pre.empty()) {
          refuse(part + ".pattern.Regex",
                 "known are those of Llama 3 and Qwen 2, found \"" + regex + "\"");
        }
        one_of(text_of(step->find("behavior"), part + ".behavior"), {"Isolated"},
               part + ".behavior");
        nothing(step->find("invert"), part + ".invert");
      } else if (type == "ByteLevel") {
        nothing(step->find("add_prefix_space"), part + ".add_prefix_space");
        own_pattern = flag(step->find("use_regex"), part + ".use_regex", true);
        byte_level = true;
      } else {
        refuse(part,
               "known are Digits, ByteLevel, and Split with ByteLevel, found \"" + type + "\"");
      }
    }
    if (!byte_level) refuse(part, "expected a ByteLevel step, found none");
    if (own_pattern != data_.pre.empty()) {
      refuse(part + ".use_regex", own_pattern ? "ByteLevel's own pattern after a Split is not known"
                                              : "ByteLevel without any pattern is not known");
    }
    if (data_.pre.empty()) data_.pre = digits ? "smollm" : "gpt-2";
  }

  void put(std::uint64_t id, const std::string& token, std::int32_t type,
           const std::string& field) {
    // Ids have no gaps, so they are below the number of tokens that the file can hold.
    if (id >= most_tokens_)
      refuse(field, "the id " + std::to_string(id) + " of \"" + token + "\" leaves a gap");
    if (id >= data_.tokens.size()) {
      data_.tokens.resize(static_cast<std::size_t>(id) + 1);
      data_.token_types.resize(data_.tokens.size(), absent);
    }
    const auto at = static_cast<std::size_t>(id);
    if (data_.token_types[at] != absent && data_.tokens[at] != token) {
      refuse(field, "the id " + std::to_string(id) + " belongs to \"" + data_.tokens[at] +
                        "\" and to \"" + token + "\"");
    }
    data_.tokens[at] = token;
    data_.token_types[at] = type;
  }

  std::uint64_t id_of(const JsonValue* value, const std::string& field) const {
    const auto id = is_set(value) ? value->unsigned_integer() : std::nullopt;
    if (!id)
      refuse(field, "expected an id, found " +
                        (value == nullptr ? std::string("nothing") : value->describe()));
    return *id;
  }

  void read_model() {
    const JsonValue* model = root_.find("model");
    if (!is_set(model)) refuse("model", "there is none");
    // Early files do not name it.
    if (const JsonValue* type = model->find("type"); is_set(type)) {
      one_of(text_of(type, "model.type"), {"BPE"}, "model.type");
    }
    for (const char* option : {"dropout", "unk_token", "continuing_subword_prefix",
                               "end_of_word_suffix", "byte_fallback"}) {
      nothing(model->find(option), std::string("model.") + option);
    }
    // A word that is a token is that token before any merging: so it is with Llama 3's only.
    const bool whole_words = data_.pre == "llama-bpe";
    if (flag(model->find("ignore_merges"), "model.ignore_merges", false) != whole_words) {
      refuse("model.ignore_merges", std::string("expected ") + (whole_words ? "true" : "false") +
                                        " with the pre-tokenizer of " + data_.pre);
    }
    const JsonValue* vocabulary = model->find("vocab");
    const JsonValue* merges = model->find("merges");
    if (!is_set(vocabulary) || vocabulary->object() == nullptr)
      refuse("model.vocab", "expected an object");
    if (!is_set(merges) || merges->array() == nullptr) refuse("model.merges", "expected an array");
    const JsonValue* added = root_.find("added_tokens");
    most_tokens_ = vocabulary->object()->size() +
                   (is_set(added) && added->array() != nullptr ? added->array()->size() : 0);
    for (const JsonMember& token : *vocabulary->object()) {
      const std::uint64_t id = id_of(&token.value, "model.vocab: \"" + token.key + "\"");
      if (id < data_.tokens.size() && data_.token_types[static_cast<std::size_t>(id)] != absent) {
        refuse("model.vocab", "the id " + std::to_string(id) + " is given twice");
      }
      put(id, token.key, static_cast<std::int32_t>(TokenKind::normal), "model.vocab");
    }
    for (const JsonValue& merge : *merges->array()) {
      // "left right", or from version 0.20 of the library on ["left", "right"].
      const JsonValue::Array* pair = merge.array();
      if (pair != nullptr && pair->size() == 2 && (*pair)[0].text() != nullptr &&
          (*pair)[1].text() != nullptr) {
        data_.merges.push_back(*(*pair)[0].text() + " " + *(*pair)[1].text());
      } else {
        data_.merges.push_back(
            text_of(&merge, "model.merges[" + std::to_string(data_.merges.size()) + "]"));
      }
    }
  }

  void read_added_tokens() {
    const JsonValue* added = root_.find("added_tokens");
    if (!is_set(added)) return;
    if (added->array() == nullptr) refuse("added_tokens", "expected an array");
    std::unordered_map<std::string_view, std::uint64_t> vocabulary;
    for (const JsonMember& token : *root_.find("model")->find("vocab")->object()) {
      vocabulary.emplace(token.key, token.value.unsigned_integer().value_or(0));
    }
    for (const JsonValue& token : *added->array()) {
      const std::string& content = text_of(token.find("content"), "added_tokens: content");
      const std::string field = "added_tokens: \"" + content + "\"";
      for (const char* option : {"single_word", "lstrip", "rstrip"}) {
        nothing(token.find(option), field + ": " + option);
      }
      const std::uint64_t id = id_of(token.find("id"), field + ": id");
      // Of two ids for one text the vocabulary's would win, which no file of these models has.
      if (const auto other = vocabulary.find(content);
          other != vocabulary.end() && other->second != id) {
        refuse(field, "it has the id " + std::to_string(other->second) + " in model.vocab and " +
                          std::to_string(id) + " here");
      }
      const bool special = flag(token.find("special"), field + ": special", false);
      put(id, content,
          static_cast<std::int32_t>(special ? TokenKind::control : TokenKind::user_defined), field);
    }
  }

  std::optional<TokenId> find(const std::string& token) const {
    const auto at = std::find(data_.tokens.begin(), data_.tokens.end(), token);
    if (at == data_.tokens.end()) return std::nullopt;
    return static_cast<TokenId>(at - data_.tokens.begin());
  }

  // What is put around a text: nothing, or special tokens before and after it.
  void read_post_processor() {
    const std::string part = "post_processor";
    data_.add_bos = false;
    for (const JsonValue* step : steps(part, "processors")) {
      const std::string& type = text_of(step->find("type"), part + ".type");
      if (type == "ByteLevel") continue;  // concerns offsets only
      one_of(type, {"ByteLevel", "TemplateProcessing"}, part + ".type");
      const JsonValue* single = step->find("single");
      if (single == nullptr || single->array() == nullptr)
        refuse(part + ".single", "expected an array");
      bool text_seen = false;
      for (const JsonValue& piece : *single->array()) {
        if (piece.find("Sequence") != nullptr) {
          text_seen = true;
          continue;
        }
        const JsonValue* special = piece.find("SpecialToken");
        const std::string& token = text_of(special == nullptr ? nullptr : special->find("id"),
                                           part + ".single: SpecialToken.id");
        const auto id = find(token);
        if (!id) refuse(part + ".single", "\"" + token + "\" is no token");
        std::optional<bool>& adds = text_seen ? data_.add_eos : data_.add_bos;
        if (adds.value_or(false))
          refuse(part + ".single", "more than one token before or after the text");
        adds = true;
        (text_seen ? data_.eos : data_.bos) = id;
      }
    }
  }

  std::string source_;
  JsonValue root_;
  VocabularyData data_;
  std::uint64_t most_tokens_ = 0;
};

}  // namespace detail

/// The vocabulary of a tokenizer.json given as text. FormatError names the field of whatever is not
/// a byte-level BPE that the library computes the same way. `source` names the file in messages.
inline VocabularyData read_tokenizer_json(std::string_view text,
                                          const std::string& source = "tokenizer.json") {
  return detail::TokenizerJson(text, source).read();
}

/// Takes what tokenizer_config.json says beside: the begin, end and padding tokens and the chat
/// template. FormatError names the field of a token that does not exist.
inline void read_tokenizer_config(std::string_view text, VocabularyData& data,
                                  const std::string& source = "tokenizer_config.json") {
  const JsonValue root = parse_json(text, source);
  const auto token = [&](const char* key) -> std::optional<TokenId> {
    const JsonValue* value = root.find(key);
    // A string, or an added token as an object.
    if (value != nullptr && value->object() != nullptr) value = value->find("content");
    if (value == nullptr || value->text() == nullptr) return std::nullopt;
    const auto at = std::find(data.tokens.begin(), data.tokens.end(), *value->text());
    if (at == data.tokens.end()) {
      raise<FormatError>(source + ": " + key + ": \"" + *value->text() + "\" is no token of " +
                         data.source);
    }
    return static_cast<TokenId>(at - data.tokens.begin());
  };
  if (const auto bos = token("bos_token")) data.bos = bos;
  if (const auto eos = token("eos_token")) data.eos = eos;
  if (const auto padding = token("pad_token")) data.padding = padding;
  const JsonValue* chat = root.find("chat_template");
  if (chat == nullptr) return;
  if (chat->text() != nullptr) data.chat_template = *chat->text();
  if (chat->array() == nullptr) return;
  for (const JsonValue& entry : *chat->array()) {  // several, by name
    const JsonValue* name = entry.find("name");
    const JsonValue* content = entry.find("template");
    if (name == nullptr || content == nullptr || content->text() == nullptr) continue;
    if (name->text() != nullptr && *name->text() == "default")
      data.chat_template = *content->text();
  }
}

}  // namespace quipu
