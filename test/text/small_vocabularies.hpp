// Our own small vocabularies (record_small.py) as VocabularyData.
#pragma once

#include <string>

#include "quipu/text/vocabulary.hpp"
#include "support.hpp"

namespace text_test {

inline quipu::VocabularyData small_vocabulary(const std::string& file,
                                              const std::string& pre = {}) {
  const Json json = rows(file).at(0);
  quipu::VocabularyData data;
  data.source = file;
  data.model = json["model"];
  data.pre = pre;
  data.tokens = json["tokens"].get<std::vector<std::string>>();
  data.token_types = json["token_types"].get<std::vector<std::int32_t>>();
  if (json.contains("merges")) data.merges = json["merges"].get<std::vector<std::string>>();
  if (json.contains("scores")) data.scores = json["scores"].get<std::vector<float>>();
  data.bos = json["bos"].get<quipu::TokenId>();
  data.eos = json["eos"].get<quipu::TokenId>();
  data.unknown = json["unknown"].get<quipu::TokenId>();
  return data;
}

}  // namespace text_test
