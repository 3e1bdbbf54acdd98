#include "quipu/checkpoint/open_checkpoint.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include "damage.hpp"

namespace quipu {
namespace {

using test::expect_error;

const std::string data_folder = QUIPU_TEST_DATA "/checkpoint/";

// The names and cuts of a block, as the tests need them; the library's are in model/.
struct Kind {
  std::string meta, hugging_face;
  ShardAxis axis;
  int heads;  ///< 0: not rotary; 1: n_heads; 2: n_kv_heads
};
std::vector<Kind> kinds(std::size_t layers) {
  std::vector<Kind> out = {
      {"tok_embeddings.weight", "model.embed_tokens.weight", ShardAxis::rows, 0},
      {"norm.weight", "model.norm.weight", ShardAxis::none, 0},
      {"output.weight", "lm_head.weight", ShardAxis::rows, 0}};
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string m = "layers." + std::to_string(i) + ".";
    const std::string h = "model." + m;
    out.push_back({m + "attention.wq.weight", h + "self_attn.q_proj.weight", ShardAxis::rows, 1});
    out.push_back({m + "attention.wk.weight", h + "self_attn.k_proj.weight", ShardAxis::rows, 2});
    out.push_back({m + "attention.wv.weight", h + "self_attn.v_proj.weight", ShardAxis::rows, 0});
    out.push_back(
        {m + "attention.wo.weight", h + "self_attn.o_proj.weight", ShardAxis::columns, 0});
    out.push_back({m + "feed_forward.w1.weight", h + "mlp.gate_proj.weight", ShardAxis::rows, 0});
    out.push_back(
        {m + "feed_forward.w2.weight", h + "mlp.down_proj.weight", ShardAxis::columns, 0});
    out.push_back({m + "feed_forward.w3.weight", h + "mlp.up_proj.weight", ShardAxis::rows, 0});
    out.push_back({m + "attention_norm.weight", h + "input_layernorm.weight", ShardAxis::none, 0});
    out.push_back(
        {m + "ffn_norm.weight", h + "post_attention_layernorm.weight", ShardAxis::none, 0});
  }
  return out;
}

std::string all_rows(const TensorSource& source) {
  std::string out(source.rows() * source.row_bytes(), '\0');
  source.read_rows(0, source.rows(), reinterpret_cast<std::byte*>(out.data()));
  return out;
}

TensorSource source_of(const Checkpoint& checkpoint, const Kind& kind) {
  const bool hf = checkpoint.naming == NamingScheme::hugging_face;
  std::string tensor = hf ? kind.hugging_face : kind.meta;
  if (checkpoint.find(tensor) == nullptr && checkpoint.facts.tied.value_or(false)) {
    tensor = "model.embed_tokens.weight";
  }
  const TensorSource source = checkpoint.source(tensor, kind.axis);
  return hf && kind.heads != 0
             ? source.reordered(RowOrder::meta_from_hugging_face, *checkpoint.facts.head_dim)
             : source;
}

void expect_layouts_agree(const std::string& folder, const std::string& type,
                          std::initializer_list<const char*> others) {
  const Checkpoint meta = open_checkpoint(folder + "meta-" + type);
  EXPECT_EQ(meta.naming, NamingScheme::meta);
  for (const std::string other : others) {
    SCOPED_TRACE(folder + other + type);
    const Checkpoint checkpoint = open_checkpoint(folder + other + type);
    EXPECT_TRUE(checkpoint.notes.empty());
    EXPECT_EQ(checkpoint.facts.dim, meta.facts.dim);
    EXPECT_EQ(checkpoint.facts.n_layers, meta.facts.n_layers);
    EXPECT_EQ(checkpoint.facts.n_heads, meta.facts.n_heads);
    EXPECT_EQ(checkpoint.facts.n_kv_heads, meta.facts.n_kv_heads);
    EXPECT_EQ(checkpoint.facts.head_dim, meta.facts.head_dim);
    EXPECT_EQ(checkpoint.facts.ffn, meta.facts.ffn);
    EXPECT_EQ(checkpoint.facts.vocab_size, meta.facts.vocab_size);
    EXPECT_EQ(checkpoint.facts.norm_eps, meta.facts.norm_eps);
    EXPECT_EQ(checkpoint.facts.rope_theta, meta.facts.rope_theta);
    EXPECT_EQ(checkpoint.facts.rope_scaled, meta.facts.rope_scaled);
    for (const Kind& kind : kinds(*meta.facts.n_layers)) {
      const std::string expected = all_rows(source_of(meta, kind));
      EXPECT_EQ(all_rows(source_of(checkpoint, kind)), expected) << kind.meta;
      if (checkpoint.naming == NamingScheme::hugging_face && kind.heads != 0) {
        // The permutation is not the identity: forgetting it would show.
        EXPECT_NE(all_rows(checkpoint.source(kind.hugging_face, kind.axis)), expected);
      }
    }
  }
}

TEST(OpenCheckpoint, AllLayoutsHoldTheSameBits) {
  expect_layouts_agree(data_folder + "T3/", "bf16", {"hf-", "hf-sharded-", "meta-mp2-"});
}

TEST(OpenCheckpoint, AllLayoutsOfTheGoldenModels) {
  const char* variable = std::getenv("QUIPU_GOLDEN_DIR");
  const std::string golden =
      variable != nullptr ? variable : QUIPU_TEST_DATA "/../../../shared/golden";
  if (!std::filesystem::is_directory(golden + "/models")) {
    GTEST_SKIP() << "no golden models (set QUIPU_GOLDEN_DIR)";
  }
  const std::string models = golden + "/models/";
  for (const char* type : {"f32", "bf16"}) {
    expect_layouts_agree(models + "T1/", type, {"hf-", "hf-sharded-", "meta-mp2-"});
    expect_layouts_agree(models + "T2/", type, {"hf-", "meta-mp2-"});
    expect_layouts_agree(models + "T3/", type, {"hf-", "hf-sharded-", "meta-mp2-"});
    expect_layouts_agree(models + "T4/", type, {"hf-"});  // tied, with an odd-sized head
  }
  expect_layouts_agree(models + "T2/", "bf16", {"hf-sharded-"});
}

// The two-rank files cut again: each part equals the part of the single file.
TEST(OpenCheckpoint, ResplitsModelParallelShards) {
  const Checkpoint one = open_checkpoint(data_folder + "T3/meta-bf16");
  const Checkpoint two = open_checkpoint(data_folder + "T3/meta-mp2-bf16");
  EXPECT_EQ(two.parts, 2U);
  for (const Kind& kind : kinds(2)) {
    for (const std::size_t ranks : std::initializer_list<std::size_t>{1, 2, 4}) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(all_rows(source_of(two, kind).slice(kind.axis, rank, ranks)),
                  all_rows(source_of(one, kind).slice(kind.axis, rank, ranks)))
            << kind.meta << " " << rank << "/" << ranks;
      }
    }
    // And rank r of two is what the second layout has in part r.
    for (std::size_t rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(all_rows(source_of(one, kind).slice(kind.axis, rank, 2)),
                all_rows(TensorSource::whole(*two.find(kind.meta, rank))));
    }
  }
  expect_error<FormatError>([&] { (void)two.source("nope", ShardAxis::rows); },
                            {"consolidated.00.pth", "\"nope\" is missing"});
}

TEST(OpenCheckpoint, ReleasedTensorsCanBeReadAgain) {
  const Checkpoint checkpoint = open_checkpoint(data_folder + "T3/hf-bf16");
  const TensorSource source = checkpoint.source("lm_head.weight", ShardAxis::rows);
  const std::string before = all_rows(source);
  source.for_each_range(0, source.rows(), [&](const std::byte* begin, std::size_t bytes) {
    checkpoint.release(begin, bytes);
  });
  EXPECT_EQ(all_rows(source), before);
}

TEST(OpenCheckpoint, TakesFilesAndTheirSiblings) {
  EXPECT_EQ(open_checkpoint(data_folder + "T3/hf-bf16/model.safetensors").facts.dim, 32U);
  EXPECT_EQ(open_checkpoint(data_folder + "T3/meta-mp2-bf16/consolidated.01.pth").parts, 2U);
  for (const char* file : {"model-00001-of-00002.safetensors", "model.safetensors.index.json"}) {
    const Checkpoint whole = open_checkpoint(data_folder + "T3/hf-sharded-bf16/" + file);
    EXPECT_EQ(whole.tensors().size(), 21U);
    EXPECT_EQ(whole.facts.dim, 32U);
  }
}

TEST(OpenCheckpoint, NeedsNoFileSystem) {
  const std::string weights = test::contents(data_folder + "T3/hf-bf16/model.safetensors");
  const std::string config = test::contents(data_folder + "T3/hf-bf16/config.json");
  const Checkpoint held = checkpoint_from_bytes(test::as_bytes(weights), "memory", config);
  EXPECT_EQ(held.facts.n_heads, 4U);
  EXPECT_EQ(held.naming, NamingScheme::hugging_face);
  EXPECT_EQ(held.find("model.norm.weight")->extents, (std::vector<std::size_t>{32}));
  expect_error<FormatError>([&] { checkpoint_from_bytes(test::as_bytes(weights), "memory", "[]"); },
                            {"memory, config.json", "an object"});
}

// A copy of a test folder that a test may damage.
class Copy : public test::Folder {
 public:
  explicit Copy(const std::string& name) {
    std::filesystem::copy(data_folder + name, path(), std::filesystem::copy_options::recursive);
  }
  std::string read(std::string_view file) const { return test::contents(*this / file); }
  void replace(std::string_view file, std::string_view from, std::string_view to) const {
    std::string text = read(file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    write(file, text);
  }
  Checkpoint open() const { return open_checkpoint(path().string()); }
};

TEST(OpenCheckpoint, BelievesTheIndex) {
  const Copy folder("T3/hf-sharded-bf16");
  const std::string index = "model.safetensors.index.json";
  const std::string first = "model-00001-of-00002.safetensors";
  const std::string second = "model-00002-of-00002.safetensors";
  const Checkpoint good = folder.open();
  // A stray whole file and a stale copy: the second shard's norm, renamed as a tensor of the first.
  folder.write("model.safetensors", "not even a file of weights");
  folder.replace(second, "\"model.norm.weight\"", "\"model.nope.weight\"");
  expect_error<FormatError>([&] { folder.open(); },
                            {second, "\"model.norm.weight\" is missing", index});
  folder.replace(second, "\"model.nope.weight\"", "\"model.norm.weight\"");
  folder.replace(second, "\"model.layers.1.mlp.up_proj.weight\"",
                 "\"model.layers.0.mlp.up_proj.weight\"");
  expect_error<FormatError>([&] { folder.open(); },
                            {second, "\"model.layers.1.mlp.up_proj.weight\" is missing"});
  folder.replace(index, "\"model.layers.1.mlp.up_proj.weight\": \"" + second + "\"",
                 "\"unused\": \"" + first + "\"");
  expect_error<FormatError>([&] { folder.open(); }, {first, "\"unused\" is missing"});
  folder.replace(index, "\"unused\": \"" + first + "\",", "");
  const Checkpoint stale = folder.open();
  ASSERT_EQ(stale.notes.size(), 2U);
  EXPECT_NE(stale.notes[0].find("model.layers.0.mlp.up_proj.weight"), std::string::npos);
  EXPECT_NE(stale.notes[1].find("model.safetensors is left aside"), std::string::npos);
  const auto bytes = [](const Checkpoint& checkpoint) {
    return all_rows(checkpoint.source("model.layers.0.mlp.up_proj.weight", ShardAxis::rows));
  };
  EXPECT_EQ(bytes(stale), bytes(good));

  std::filesystem::remove(folder / second);
  expect_error<FileError>([&] { folder.open(); }, {second, "shard is missing", index});
}

TEST(OpenCheckpoint, RefusesBadIndexes) {
  const auto refused = [](std::string_view text, std::initializer_list<std::string_view> words) {
    const test::Folder folder;
    folder.write("model.safetensors.index.json", text);
    expect_error<FormatError>([&] { open_checkpoint(folder.path().string()); }, words);
  };
  refused("{}", {"index.json", "weight_map", "nothing"});
  refused(R"({"weight_map":[]})", {"weight_map", "an array"});
  refused(R"({"weight_map":{}})", {"weight_map is empty"});
  refused(R"({"weight_map":{"a":1}})", {"\"a\"", "a file name"});
  refused(R"({"weight_map":{"a":"../x.safetensors"}})", {"\"a\"", "../x.safetensors"});
  refused(R"({"weight_map":{"a":"/etc/passwd"}})", {"\"a\"", "/etc/passwd"});
  refused(R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})", {"\"a\" twice"});
  refused("{", {"index.json", "not valid JSON"});
}

TEST(OpenCheckpoint, RefusesBrokenMetaFolders) {
  const Copy folder("T3/meta-mp2-bf16");
  std::filesystem::copy_file(folder / "consolidated.01.pth", folder / "consolidated.03.pth");
  expect_error<FormatError>([&] { folder.open(); }, {"part 2", "missing", "consolidated.03.pth"});
  std::filesystem::rename(folder / "consolidated.03.pth", folder / "consolidated.02.pth");
  // Three parts of which the third repeats the second: no model is cut so, and the extents tell.
  const Checkpoint three = folder.open();
  EXPECT_EQ(three.source("output.weight", ShardAxis::rows).rows(), 384U);
  std::filesystem::copy_file(data_folder + "T3/meta-bf16/consolidated.00.pth",
                             folder / "consolidated.02.pth",
                             std::filesystem::copy_options::overwrite_existing);
  const Checkpoint mixed = folder.open();
  expect_error<FormatError>([&] { (void)mixed.source("output.weight", ShardAxis::rows); },
                            {"\"output.weight\"", "shard 2", "[128, 32]", "[256, 32]"});
  std::filesystem::remove(folder / "consolidated.02.pth");
  std::filesystem::remove(folder / "params.json");
  expect_error<FileError>([&] { folder.open(); }, {"params.json", "No such file"});
  folder.write("model.safetensors", "x");
  expect_error<FormatError>([&] { folder.open(); },
                            {"both consolidated.NN.pth and model.safetensors"});
}

TEST(OpenCheckpoint, NamesFoldersWithoutACheckpoint) {
  const test::Folder folder;
  const auto open = [&] { open_checkpoint(folder.path().string()); };
  expect_error<FormatError>(open, {folder.path().string(), "consolidated.00.pth", "config.json"});
  folder.write("m.gguf", "x");
  expect_error<FormatError>(open, {"m.gguf", "give that file's path"});
  folder.write("pytorch_model.bin", "x");
  expect_error<FormatError>(open, {"pytorch_model.bin", "safetensors"});
  folder.write("a.safetensors", "x");
  folder.write("b.safetensors", "x");
  expect_error<FormatError>(open, {"2 .safetensors files", "index.json"});
  expect_error<FileError>([&] { open_checkpoint(folder / "none"); }, {"none", "No such file"});
}

TEST(OpenCheckpoint, NamesOtherKindsOfFiles) {
  const test::Folder folder;
  const auto refused = [&](const char* file, std::string_view bytes,
                           std::initializer_list<std::string_view> words) {
    const std::string path = folder.write(file, bytes);
    expect_error<FormatError>([&] { open_checkpoint(path); }, words);
  };
  refused("w.h5", "\x89HDF\r\n\x1a\n....", {"w.h5", "HDF5"});
  refused("w.gguf", "\x89HDF\r\n\x1a\n....", {"HDF5"});
  refused("w.bin", "lmgg....", {"GGML"});
  refused("w.safetensors", "version https://git-lfs.github.com/spec/v1\n", {"Git LFS"});
  refused("w.pth", "<!DOCTYPE html><html>", {"HTML"});
  refused("config.json", "{\"a\": 1}", {"JSON", "folder"});
  refused("notes.txt", "hello, world", {"notes.txt", "hello, world", "GGUF"});
  refused("w.npy", "\x93NUMPY.", {"NumPy"});
  refused("x.gguf", "x", {"GGUF"});
}

// ---- Configurations ----

ModelFacts config(std::string_view text) {
  return facts_from_config_json(parse_json(text, "config.json"), "config.json");
}
std::string llama(std::string_view more) {
  return "{\"model_type\":\"llama\"," + std::string(more) + "}";
}

TEST(ConfigJson, ReadsRopeScalingUnderEitherName) {
  const std::string numbers = R"("factor":32.0,"low_freq_factor":1.0,"high_freq_factor":4.0,)"
                              R"("original_max_position_embeddings":8192,"unknown_key":[1])";
  for (const char* kind : {R"("rope_type":"llama3")", R"("type":"llama3")",
                           R"("rope_type":"llama3","type":"llama3")"}) {
    const ModelFacts facts =
        config(llama("\"rope_scaling\":{" + std::string(kind) + "," + numbers + "}"));
    ASSERT_TRUE(facts.rope_scaling.has_value());
    EXPECT_EQ(facts.rope_scaling->factor, 32.0);
    EXPECT_EQ(facts.rope_scaling->original_positions, 8192U);
    EXPECT_EQ(facts.rope_scaled, true);
  }
  EXPECT_EQ(config(llama(R"("rope_scaling":null)")).rope_scaled, false);
  EXPECT_EQ(config(llama(R"("rope_scaling":{"rope_type":"default"})")).rope_scaled, false);
  EXPECT_EQ(
      config(llama(R"("rope_parameters":{"rope_type":"default","rope_theta":5e5})")).rope_theta,
      500000.0);
  const auto refused = [](std::string_view scaling, std::initializer_list<std::string_view> words) {
    expect_error<FormatError>([&] { config(llama("\"rope_scaling\":" + std::string(scaling))); },
                              words);
  };
  refused(R"({"rope_type":"yarn","factor":8})", {"rope_scaling.rope_type", "llama3", "\"yarn\""});
  refused(R"({"type":"linear","factor":8})", {"rope_scaling.type", "\"linear\""});
  refused(R"({"rope_type":"llama3","type":"linear"})", {"rope_scaling.type", "llama3", "linear"});
  refused(R"({"factor":8})", {"rope_scaling.rope_type is missing"});
  refused(R"({"rope_type":"llama3"})", {"rope_scaling.factor is missing"});
  refused(R"({"rope_type":"llama3","factor":0})", {"rope_scaling.factor", "positive"});
  refused("[]", {"rope_scaling", "an object"});
}

TEST(ConfigJson, NamesWrongFields) {
  const auto refused = [](std::string_view more, std::initializer_list<std::string_view> words) {
    expect_error<FormatError>([&] { config(llama(more)); }, words);
  };
  refused(R"("hidden_size":"big")", {"config.json", "hidden_size", "positive integer", "\"big\""});
  refused(R"("hidden_size":0)", {"hidden_size", "0"});
  refused(R"("num_hidden_layers":-3)", {"num_hidden_layers", "-3"});
  refused(R"("rms_norm_eps":-1e-5)", {"rms_norm_eps"});
  refused(R"("tie_word_embeddings":1)", {"tie_word_embeddings", "true or false"});
  refused(R"("hidden_act":"gelu")", {"hidden_act", "silu", "gelu"});
  refused(R"("attention_bias":true)", {"attention_bias", "false"});
  refused(R"("hidden_size":1,"hidden_size":2)", {"\"hidden_size\" twice"});
  const ModelFacts other = config(R"({"model_type":"gpt2","hidden_size":"x"})");
  EXPECT_EQ(other.architecture, "gpt2");
  EXPECT_FALSE(other.dim.has_value());
}

TEST(ParamsJson, ComputesTheFeedForwardWidth) {
  const auto params = [](std::string_view text) {
    return facts_from_params_json(parse_json(text, "params.json"), "params.json");
  };
  const auto width = [&](std::string_view text) { return params(text).ffn; };
  EXPECT_EQ(width(R"({"dim":4096,"multiple_of":1024,"ffn_dim_multiplier":1.3})"), 14336U);
  EXPECT_EQ(width(R"({"dim":8192,"multiple_of":4096,"ffn_dim_multiplier":1.3})"), 28672U);
  EXPECT_EQ(width(R"({"dim":16384,"multiple_of":4096,"ffn_dim_multiplier":1.2})"), 53248U);
  EXPECT_EQ(width(R"({"dim":4096,"multiple_of":256})"), 11008U);
  EXPECT_EQ(width(R"({"dim":4096})"), 11008U);
  EXPECT_EQ(width(R"({"dim":2048,"multiple_of":256,"ffn_dim_multiplier":1.5})"), 8192U);
  const ModelFacts old = params(R"({"dim":4096,"n_heads":32,"vocab_size":-1,"norm_eps":1e-05})");
  EXPECT_FALSE(old.vocab_size.has_value());
  EXPECT_FALSE(old.rope_theta.has_value());
  EXPECT_EQ(old.n_kv_heads, 32U);
  EXPECT_EQ(old.head_dim, 128U);
  EXPECT_EQ(params(R"({"use_scaled_rope":true})").rope_scaled, true);
  expect_error<FormatError>([&] { params(R"({"dim":64,"ffn_dim_multiplier":1e300})"); },
                            {"params.json", "ffn_dim_multiplier"});
  expect_error<FormatError>([&] { params(R"({"dim":64,"multiple_of":0})"); }, {"multiple_of"});
}

}  // namespace
}  // namespace quipu
