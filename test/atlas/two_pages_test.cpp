// Every fact of the two pages that the atlas is specified by, on our cards, with the slips put
// right: "Llama 3 8B · Attention update" and "Llama 3.1 8B · Vocabulary projection". The cards in
// full are golden files (test/data/atlas).
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "quipu/atlas/card_json.hpp"
#include "quipu/atlas/card_text.hpp"

namespace {

using namespace quipu;
using atlas::Card;

constexpr const atlas::ModelEntry& llama3 = atlas::model_entry<models::llama3_8b>;
constexpr const atlas::ModelEntry& llama3_1 = atlas::model_entry<models::llama3_1_8b>;

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The record of an id in one repository.
const notation::Source& record(const Card& card, std::string_view id, std::string_view repository) {
  for (const notation::Source& s : card.sources) {
    if (s.id == id && s.file.repository == repository) return s;
  }
  ADD_FAILURE() << id << " of " << repository << " is not on the card";
  return card.sources[0];
}

std::string lines(const notation::Source& s) { return atlas::lines_text(s.lines); }

TEST(AttentionUpdate, NameKindCodeAndBreadcrumb) {
  const Card& card = atlas::find_card(llama3, "layers.N.attention.update");
  EXPECT_EQ(atlas::title(llama3.facts), "Llama 3 8B");
  EXPECT_EQ(card.name, "Attention update");
  EXPECT_EQ(card.kind, notation::Kind::tensor);
  EXPECT_EQ(card.code, "self.wo(output)");
  EXPECT_EQ(atlas::breadcrumb(llama3.facts, card),
            (std::vector<std::string>{"32 independent transformer blocks", "Attention"}));
  EXPECT_NE(card.sentence.find("added to the residual stream that contains it"),
            card.sentence.npos);
}

TEST(AttentionUpdate, OneShapeForPrefillAndDecoding) {
  const Card& card = atlas::find_card(llama3, "layers.N.attention.update");
  ASSERT_EQ(card.operands.size(), 1u);
  EXPECT_EQ(atlas::detail::plain(*card.operands[0].symbol), "Δ_attn");
  EXPECT_EQ(card.operands[0].symbol->latex, "\\Delta_{\\mathrm{attn}}");
  EXPECT_EQ(atlas::shape_text(card.operands[0].shape, atlas::Phase::prefill),
            "[B batch, T positions, 4096 d]");
  EXPECT_EQ(atlas::shape_text(card.operands[0].shape, atlas::Phase::decode),
            "[B batch, 1 position, 4096 d]");
  const std::string text = atlas::render_text(atlas::document(llama3, card, {}));
  EXPECT_NE(text.find("\n  shape  "), text.npos);
  EXPECT_EQ(text.find("\n  out  "), text.npos);
}

TEST(AttentionUpdate, ThreeContextualSources) {
  const Card& card = atlas::find_card(llama3, "layers.N.attention.update");
  ASSERT_EQ(card.sources.size(), 3u);
  for (const notation::Source& s : card.sources) {
    EXPECT_EQ(s.evidence, notation::Evidence::contextual) << s.id;
  }
  const auto& residuals = record(card, "block-residuals", "meta-llama/llama3");
  EXPECT_EQ(lines(residuals), "236–248");
  EXPECT_EQ(residuals.file.path, "llama/model.py");
  EXPECT_EQ(residuals.file.revision, "a0940f9cf706");
  EXPECT_EQ(residuals.file.lines, 302);  // the page's 303 is a slip
  EXPECT_NE(residuals.claim.find("before normalisation"), residuals.claim.npos);
  EXPECT_NE(residuals.claim.find("246"), residuals.claim.npos);
  const auto& output = record(card, "attn-output", "meta-llama/llama3");
  EXPECT_EQ(lines(output), "121–127, 189–190");
  EXPECT_NE(output.claim.find("bias-free"), output.claim.npos);
  EXPECT_NE(output.claim.find("merged heads"), output.claim.npos);
  const auto& config = record(card, "config", "meta-llama/llama-models");
  EXPECT_EQ(lines(config), "19, 188–207");
  EXPECT_EQ(config.file.path, "models/sku_list.py");
  EXPECT_EQ(config.file.revision, "0e0b8c519242");
  for (const char* word : {"dimensions", "head counts", "vocabulary", "rounding", "epsilon",
                           "unscaled", "use_scaled_rope: False"}) {
    EXPECT_NE(config.claim.find(word), config.claim.npos) << word;
  }
  EXPECT_EQ(atlas::detail::code_text(card),
            "model.py 121–127, 189–190, 236–248 · sku_list.py 19, 188–207");
}

TEST(VocabularyProjection, NameKindCodeEquationAndShapes) {
  const Card& card = atlas::find_card(llama3_1, "output");
  EXPECT_EQ(atlas::title(llama3_1.facts), "Llama 3.1 8B");
  EXPECT_EQ(card.name, "Vocabulary projection");
  EXPECT_EQ(card.kind, notation::Kind::learned);
  EXPECT_EQ(card.code, "self.output(h).float()");
  EXPECT_NE(card.sentence.find("each normalised feature vector"), card.sentence.npos);
  ASSERT_EQ(card.equations->size(), 1u);
  EXPECT_EQ(atlas::equation_text((*card.equations)[0]), "L = z W_out");
  EXPECT_EQ(atlas::equation_latex((*card.equations)[0]),
            "{\\htmlData{light=logits output}{L}} = {\\htmlData{light=norm}{z}} \\, "
            "{\\htmlData{light=output}{W_{\\mathrm{out}}}}");
  EXPECT_EQ(atlas::equation_mathml((*card.equations)[0]),
            "<math display=\"block\"><mrow><mi class=\"sym\" data-light=\"logits output\">L</mi>"
            "<mo>=</mo><mrow><mi class=\"sym\" data-light=\"norm\">z</mi><mspace "
            "width=\"0.22em\"></mspace><msub class=\"sym\" data-light=\"output\"><mi>W</mi><mi "
            "mathvariant=\"normal\">out</mi></msub></mrow></mrow></math>");
  const auto* in = atlas::operand_of(card, notation::Role::input);
  const auto* out = atlas::operand_of(card, notation::Role::output);
  ASSERT_NE(in, nullptr);
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(atlas::shape_text(in->shape, atlas::Phase::prefill), "[B batch, T positions, 4096 d]");
  EXPECT_EQ(atlas::shape_text(out->shape, atlas::Phase::prefill),
            "[B batch, T positions, 128256 vocabulary]");
  EXPECT_EQ(out->carrier, notation::Carrier::f32);
  EXPECT_EQ(in->symbol->code, "h");  // the equation's z; the page leaves it open
}

TEST(VocabularyProjection, CountsLayoutAndBasis) {
  const Card& card = atlas::find_card(llama3_1, "output");
  EXPECT_EQ(card.parameters, 525'336'576u);
  EXPECT_EQ(card.instances, 1u);
  ASSERT_EQ(card.account.size(), 1u);
  EXPECT_EQ(card.account[0].label, "Weight matrix");
  EXPECT_EQ(atlas::calculation(card.account[0]), "4,096 × 128,256");
  EXPECT_EQ(notation::total(card.account), 525'336'576u);
  EXPECT_EQ(atlas::layout(card),
            "Held output by input, [out, in] = [128,256, 4,096]; the equation applies its "
            "transpose, 4,096 × 128,256.");
  EXPECT_NE(atlas::basis(card, {}).find("configured dimensions; no checkpoint"), std::string::npos);
}

TEST(VocabularyProjection, NotesAndExplanation) {
  const Card& card = atlas::find_card(llama3_1, "output");
  const std::string text = atlas::render_text(atlas::document(llama3_1, card, {}));
  EXPECT_EQ(card.notes[0].text, "Cast to float32 before it is returned.");
  EXPECT_NE(card.notes[0].where.find("llama3 model.py 301"), std::string_view::npos);
  EXPECT_EQ(card.notes[1].text,
            "This projection owns a separate matrix from the token embedding table.");
  EXPECT_NE(card.explanation.find("next token of its position"), std::string_view::npos);
  EXPECT_NE(card.explanation.find("softmax and the choice of a token happen outside the model"),
            std::string_view::npos);
  EXPECT_NE(text.find("525,336,576 per instance"), text.npos);
}

TEST(VocabularyProjection, SourcesOfThePageAndWhatItLacks) {
  const Card& card = atlas::find_card(llama3_1, "output");
  const auto& readout = record(card, "model-readout", "meta-llama/llama3");
  EXPECT_EQ(lines(readout), "266–269, 298–302");  // the page's 303 lies beyond the file
  EXPECT_EQ(readout.evidence, notation::Evidence::direct);
  for (const char* word : {"final norm", "separate", "bias-free", "float32"}) {
    EXPECT_NE(readout.claim.find(word), readout.claim.npos) << word;
  }
  const auto& config = record(card, "config", "meta-llama/llama-models");
  EXPECT_EQ(lines(config), "19, 231–248");
  EXPECT_EQ(config.evidence, notation::Evidence::direct);
  EXPECT_EQ(config.file.revision, "0e0b8c519242");
  for (const char* word : {"dimensions", "head counts", "LLAMA3_VOCAB_SIZE, line 19", "rounding",
                           "epsilon", "rope_theta", "use_scaled_rope: True"}) {
    EXPECT_NE(config.claim.find(word), config.claim.npos) << word;
  }
  const auto& storage = record(card, "linear-storage", "facebookresearch/fairscale");
  EXPECT_EQ(lines(storage), "258–262, 286–290");  // the column-parallel class, which output has
  EXPECT_EQ(storage.evidence, notation::Evidence::dependency_context);
  EXPECT_EQ(storage.file.revision, "50b06d251730");
  EXPECT_EQ(storage.file.version, "0.4.13");
  for (const char* word : {"output features first", "F.linear", "does not pin"}) {
    EXPECT_NE(storage.claim.find(word), storage.claim.npos) << word;
  }
  // llama3's file does not scale the frequencies: llama-models' comes first.
  EXPECT_EQ(card.sources[0].file.path, "models/llama3/model.py");
  EXPECT_EQ(lines(card.sources[0]), "270–271, 305–308");
  // "Separate from the embedding" needs the embedding's own lines.
  EXPECT_EQ(lines(record(card, "embedding-table", "meta-llama/llama3")), "258–260");
}

TEST(VocabularyProjection, CatalogueEntry) {
  const atlas::ModelFacts& f = llama3_1.facts;
  EXPECT_EQ(f.core_model_id, "llama3_1_8b");
  EXPECT_EQ(f.description, "Llama 3.1 8b model");
  EXPECT_EQ(f.huggingface_repo, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(f.pth_file_count, 1);
  EXPECT_EQ(f.dim, 4096u);
  EXPECT_EQ(f.n_layers, 32u);
  EXPECT_EQ(f.n_heads, 32u);
  EXPECT_EQ(f.n_kv_heads, 8u);
  EXPECT_EQ(f.vocab_size, 128256u);
  EXPECT_EQ(f.ffn_dim_multiplier, 1.3);
  EXPECT_EQ(f.multiple_of, 1024);
  EXPECT_EQ(f.norm_eps, 1e-5);
  EXPECT_EQ(f.rope_theta, 500000.0);
  EXPECT_TRUE(f.use_scaled_rope);
  EXPECT_FALSE(llama3.facts.use_scaled_rope);
  EXPECT_EQ(llama3.facts.huggingface_repo, "meta-llama/Llama-3-8B");
}

// wo and w2 cite the row-parallel class, with the addition over the ranks (382); the page cites it
// for a column-parallel layer.
TEST(Sources, ACardCitesTheClassThatItsComponentHas) {
  for (const char* id : {"layers.N.attention.wo", "layers.N.feed_forward.w2"}) {
    const auto& storage =
        record(atlas::find_card(llama3, id), "linear-storage", "facebookresearch/fairscale");
    EXPECT_EQ(lines(storage), "342–349, 373–387") << id;
    EXPECT_NE(storage.claim.find("382"), storage.claim.npos);
  }
  for (const char* id : {"layers.N.attention.wq", "layers.N.attention.wk", "layers.N.attention.wv",
                         "layers.N.feed_forward.w1", "layers.N.feed_forward.w3"}) {
    EXPECT_EQ(
        lines(record(atlas::find_card(llama3, id), "linear-storage", "facebookresearch/fairscale")),
        "258–262, 286–290")
        << id;
  }
}

/// With QUIPU_UPDATE_GOLDEN set the files are written instead; read the difference before keeping
/// it.
void compare_with_golden(const atlas::ModelEntry& entry, const char* id, const std::string& name) {
  const Card& card = atlas::find_card(entry, id);
  const atlas::Document document = atlas::document(entry, card, {});
  const std::pair<std::string, std::string> renderings[] = {
      {name + ".txt", atlas::render_text(document)},
      {name + ".md", atlas::render_markdown(document)},
      {name + ".json", atlas::card_json(entry, card, {}).dump(2) + "\n"}};
  for (const auto& [file, text] : renderings) {
    const std::string path = std::string(QUIPU_TEST_DATA) + "/atlas/" + file;
    if (std::getenv("QUIPU_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    EXPECT_EQ(text, read(path)) << path;
  }
}

TEST(GoldenCards, AttentionUpdate) {
  compare_with_golden(llama3, "layers.N.attention.update", "llama3_8b.attention_update");
}
TEST(GoldenCards, VocabularyProjection) {
  compare_with_golden(llama3_1, "output", "llama3_1_8b.vocabulary_projection");
}
TEST(GoldenCards, ScaledDotProduct) {
  compare_with_golden(llama3_1, "layers.N.attention.scaled_dot_product",
                      "llama3_1_8b.scaled_dot_product");
}

}  // namespace
