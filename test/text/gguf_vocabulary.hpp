// Just enough of GGUF's key-value section to get a vocabulary out of a file that a test trusts.
// The library's own reader, which trusts nothing, is in checkpoint/.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "quipu/text/vocabulary.hpp"

namespace text_test {

class GgufVocabulary {
 public:
  explicit GgufVocabulary(std::string_view bytes) : rest_(bytes) {
    take(8);  // magic and version
    read<std::uint64_t>();
    const auto pairs = read<std::uint64_t>();
    for (std::uint64_t i = 0; i < pairs; ++i) {
      const std::string_view key = text();
      value(key, read<std::uint32_t>());
    }
  }

  quipu::VocabularyData data;

 private:
  std::string_view take(std::size_t size) {
    const std::string_view head = rest_.substr(0, size);
    rest_.remove_prefix(head.size());
    return head;
  }
  template <class T>
  T read() {
    T out{};
    const std::string_view raw = take(sizeof(T));
    std::memcpy(&out, raw.data(), raw.size());
    return out;
  }
  std::string_view text() { return take(read<std::uint64_t>()); }

  void value(std::string_view key, std::uint32_t type) {
    constexpr std::uint32_t string = 8;
    constexpr std::uint32_t array = 9;
    constexpr std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == array) {
      const auto item = read<std::uint32_t>();
      const auto count = read<std::uint64_t>();
      for (std::uint64_t i = 0; i < count; ++i) {
        if (key == "tokenizer.ggml.tokens") {
          data.tokens.emplace_back(text());
        } else if (key == "tokenizer.ggml.merges") {
          data.merges.emplace_back(text());
        } else if (key == "tokenizer.ggml.token_type") {
          data.token_types.push_back(read<std::int32_t>());
        } else {
          value({}, item);
        }
      }
    } else if (type == string) {
      const std::string_view found = text();
      if (key == "tokenizer.ggml.model") data.model = found;
      if (key == "tokenizer.ggml.pre") data.pre = found;
      if (key == "tokenizer.chat_template") data.chat_template = found;
    } else if (key == "tokenizer.ggml.bos_token_id") {
      data.bos = read<std::int32_t>();
    } else if (key == "tokenizer.ggml.eos_token_id") {
      data.eos = read<std::int32_t>();
    } else if (key == "tokenizer.ggml.add_bos_token") {
      data.add_bos = read<std::uint8_t>() != 0;
    } else {
      take(sizes[type]);
    }
  }

  std::string_view rest_;
};

}  // namespace text_test
