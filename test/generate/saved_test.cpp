// Saved sequences and generations: they continue bit-equal, they are refused by name where they do
// not belong, and damaged bytes are refused, never read past.
#include <gtest/gtest.h>

#include <cstdio>

#include "quipu/generate/generator.hpp"
#include "support/compare.hpp"
#include "tiny_session.hpp"

namespace quipu_test {
namespace {

using quipu::Generator;
using quipu::Session;
using quipu::TokenId;
using Bytes = std::vector<std::byte>;
using Tokens = std::vector<TokenId>;

const quipu::SamplingSettings warm{.temperature = 0.9f, .top_k = 60, .top_p = 0.95f, .seed = 21};

TEST(SavedSession, ContinuesBitEqual) {
  const quipu::Model model = load_tiny(), again = load_tiny(1);
  for (const quipu::ElementType cache : {quipu::ElementType::f32, quipu::ElementType::bf16}) {
    for (const std::size_t length : {0u, 1u, 15u, 16u, 17u, 40u}) {  // around the blocks of keys
      Session session(model, {.capacity = 64, .cache = cache});
      if (length > 0) session.forward(some_tokens(length, 1));
      const Bytes saved = session.save();
      EXPECT_EQ(session.saved_length(saved), length);
      const auto expected = session.forward(some_tokens(5, 2));
      // Another batch, row, capacity, chunk and number of threads; the row was used before.
      Session other(again, {.batch = 3, .capacity = 47, .chunk = 3, .cache = cache});
      other.forward(some_tokens(47, 3), 2);
      other.restore(saved, 2);
      EXPECT_EQ(other.length(2), length);
      EXPECT_EQ(other.save(2), saved);
      EXPECT_TRUE(same_bits("continued", other.forward(some_tokens(5, 2), 2), expected));
      EXPECT_EQ(other.length(0), 0u);
    }
  }
}

TEST(SavedSession, IsRefusedWhereItDoesNotBelong) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 32});
  session.forward(some_tokens(20, 1));
  const Bytes saved = session.save();
  const auto refusal = [&](const quipu::Model& m, const quipu::SessionOptions& options) {
    Session other(m, options);
    other.forward(Tokens{1, 2});
    const std::string message =
        message_of<quipu::MismatchError>([&] { other.restore(saved, 0, "talk.quipu"); });
    EXPECT_EQ(other.length(), 2u);
    return message;
  };
  EXPECT_EQ(refusal(load_tiny(2, "T3"), {}), "talk.quipu: dim: it was saved with 64, here is 32");
  EXPECT_EQ(refusal(model, {.cache = quipu::ElementType::bf16}),
            "talk.quipu: cache: it was saved with f32, here is bf16");
  EXPECT_EQ(refusal(model, {.mode = quipu::NumericMode::bf16}),
            "talk.quipu: mode: it was saved with f32, here is bf16");
  EXPECT_EQ(refusal(model, {.activations = quipu::ActivationMode::int8}),
            "talk.quipu: activations: it was saved with f32, here is int8");
  EXPECT_EQ(refusal(load_tiny(2, "T1", false), {}),
            "talk.quipu: layout of the weights: it was saved with packed, here is in place");
  Session small(model, {.capacity = 19});
  EXPECT_EQ(message_of<quipu::ArgumentError>([&] { small.restore(saved); }),
            "saved session: 20 positions do not fit the capacity of 19");
  EXPECT_THROW(small.restore(saved, 1), quipu::ArgumentError);
  EXPECT_THROW(small.save(1), quipu::ArgumentError);
}

TEST(SavedSession, OfOtherWeightsOfTheSameDimensionsIsRefused) {
  const quipu::Model model = load_tiny();
  // The same file with one norm's weight changed in the last bit.
  const std::string path = ::testing::TempDir() + "quipu_saved_test_model";
  const std::string from = find_golden("models/T1/hf-f32");
  std::filesystem::create_directories(path);
  std::filesystem::copy_file(from + "/config.json", path + "/config.json",
                             std::filesystem::copy_options::overwrite_existing);
  Bytes file = quipu::read_state(from + "/model.safetensors");
  file.back() ^= std::byte{1} << 0;
  file[file.size() - 4] ^= std::byte{1};
  quipu::write_state(path + "/model.safetensors", file);
  const quipu::Model changed = test_engine::engine().load(path);
  Session session(model, {.capacity = 8}), other(changed, {.capacity = 8});
  const std::string message =
      message_of<quipu::MismatchError>([&] { other.restore(session.save()); });
  EXPECT_TRUE(message.starts_with("saved session: weights: it was saved with ")) << message;
  std::filesystem::remove_all(path);
}

/// Every byte changed in turn, every length cut: refused, and nothing was changed.
template <class Restore>
void expect_damage_refused(const Bytes& saved, std::size_t step, Restore restore) {
  const auto refused = [&](const Bytes& bytes) {
    return message_of<quipu::FormatError>([&] { restore(bytes); }) != "not refused";
  };
  for (std::size_t i = 0; i < saved.size(); i += i < 600 ? 1 : step) {
    Bytes damaged = saved;
    damaged[i] ^= std::byte{0x40};
    EXPECT_TRUE(refused(damaged)) << "byte " << i;
    EXPECT_TRUE(refused(Bytes(saved.begin(), saved.begin() + static_cast<std::ptrdiff_t>(i))))
        << "cut to " << i;
  }
  Bytes longer = saved;
  longer.push_back(std::byte{0});
  EXPECT_TRUE(refused(longer));
}

TEST(SavedSession, IsRefusedIfDamaged) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 32}), other(model, {.capacity = 32});
  session.forward(some_tokens(20, 1));
  expect_damage_refused(session.save(), 97, [&](const Bytes& bytes) { other.restore(bytes); });
  EXPECT_EQ(other.length(), 0u);
  EXPECT_NE(message_of<quipu::FormatError>([&] { other.restore({}); }).find("is it cut short?"),
            std::string::npos);
}

/// A payload of our own under a right checksum: what a hostile file would bring.
Bytes forged(std::string_view kind, const Bytes& saved, std::size_t at, std::uint64_t value) {
  quipu::detail::StateWriter writer(kind);
  Bytes payload(saved.begin() + quipu::detail::saved_header_bytes, saved.end());
  std::memcpy(payload.data() + at, &value, sizeof value);
  writer.bytes(payload.data(), payload.size());
  return writer.finish();
}

TEST(SavedState, IsRefusedIfForged) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 32});
  Generator generator(session, {.sampling = warm, .max_tokens = 4});
  generator.feed(some_tokens(3, 1));
  generator.next();
  const Bytes sequence = session.save(), generation = generator.save();
  // Every count and length, wherever it stands: absurd values at all offsets.
  const std::uint64_t absurd[] = {
      0, 4, 33, std::uint64_t{1} << 32, std::uint64_t{1} << 63, ~std::uint64_t{0}};
  std::size_t refused = 0, tried = 0;
  const auto attempt = [&](auto&& restore) {
    ++tried;
    try {
      restore();
    } catch (const quipu::Error&) {
      ++refused;
    }
  };
  for (const std::uint64_t value : absurd) {
    for (std::size_t at = 0; at < 700; ++at) {
      attempt([&] { session.restore(forged("quipuseq", sequence, at, value)); });
      attempt([&] { generator.restore(forged("quipugen", generation, at, value)); });
    }
  }
  EXPECT_GT(refused, tried / 3) << "the rest fell on keys, values, logits and counts of draws";
  generator.restore(generation);
  EXPECT_EQ(generator.tokens().size(), 4u);
}

TEST(SavedGeneration, ContinuesBitEqual) {
  const quipu::Model model = load_tiny(), again = load_tiny(1);
  const Tokens prompt = some_tokens(9, 4);
  Session session(model, {.batch = 2, .capacity = 64});
  Generator whole(session, {.sampling = warm, .max_tokens = 24}, 1);
  whole.feed(prompt);
  std::vector<Bytes> states;
  Tokens tokens;
  for (;;) {
    states.push_back(whole.save());
    const auto token = whole.next();
    if (!token) break;
    tokens.push_back(*token);
  }
  ASSERT_EQ(tokens.size(), 24u);
  states.push_back(whole.save());
  for (std::size_t n = 0; n < states.size(); n += 5) {
    // Another row: the stream of draws is the saved one.
    Session other(again, {.capacity = 48});
    Generator generator(other, {.sampling = warm, .max_tokens = 24});
    generator.feed(Tokens{1, 2, 3, 4});
    generator.next();
    generator.restore(states[n]);
    EXPECT_EQ(generator.generated(), (std::min)(n, tokens.size()));
    while (generator.next()) {
    }
    EXPECT_EQ(Tokens(generator.tokens().begin() + 9, generator.tokens().end()), tokens) << n;
    EXPECT_TRUE(same_bits("logits", generator.logits(), whole.logits()));
    EXPECT_EQ(generator.finish_reason(), quipu::FinishReason::max_tokens);
    EXPECT_EQ(generator.save(), states.back());
  }
}

TEST(SavedGeneration, IsRefusedForOtherSettingsAndIfDamaged) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 32}), other(model, {.capacity = 32});
  Generator generator(session, {.sampling = warm});
  generator.feed(some_tokens(5, 1));
  generator.next();
  const Bytes saved = generator.save();
  const auto refusal = [&](const quipu::SamplingSettings& sampling) {
    Generator g(other, {.sampling = sampling});
    return message_of<quipu::MismatchError>([&] { g.restore(saved); });
  };
  quipu::SamplingSettings settings = warm;
  settings.seed = 3;
  EXPECT_EQ(refusal(settings), "saved generation: seed: it was saved with 21, here is 3");
  settings = warm;
  settings.temperature = 0.5f;
  EXPECT_EQ(refusal(settings),
            "saved generation: temperature: it was saved with 0.899999976, here is 0.5");
  Session bf16(model, {.capacity = 32, .cache = quipu::ElementType::bf16});
  Generator g(bf16, {.sampling = warm});
  EXPECT_EQ(message_of<quipu::MismatchError>([&] { g.restore(saved); }),
            "saved generation: cache: it was saved with f32, here is bf16");
  Generator same(other, {.sampling = warm});
  EXPECT_NE(message_of<quipu::FormatError>([&] { same.restore(session.save()); }).find("kind"),
            std::string::npos);
  expect_damage_refused(saved, 97, [&](const Bytes& bytes) { same.restore(bytes); });
  EXPECT_TRUE(same.tokens().empty());
  EXPECT_EQ(other.length(), 0u);
}

TEST(SavedState, GoesThroughAFile) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 32}), other(model, {.capacity = 32});
  session.forward(some_tokens(20, 1));
  const std::string path = ::testing::TempDir() + "quipu_saved_test_state";
  quipu::write_state(path, session.save());
  other.restore(quipu::read_state(path), 0, path);
  std::remove(path.c_str());
  EXPECT_TRUE(same_bits("continued", other.forward(Tokens{7}), session.forward(Tokens{7})));
  EXPECT_NE(message_of<quipu::FileError>([&] { quipu::read_state(path); }).find(path),
            std::string::npos);
  EXPECT_THROW(quipu::write_state("/no/such/folder/state", session.save()), quipu::FileError);
}

}  // namespace
}  // namespace quipu_test
