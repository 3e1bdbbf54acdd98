// quipu-inspect: what is in a checkpoint, counted independently of the type, and whether both
// agree.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "quipu/checkpoint/open_checkpoint.hpp"
#include "quipu/engine/model_choice.hpp"
#include "quipu/engine/weight_loader.hpp"
#include QUIPU_ENGINE_HEADER

namespace {

struct Row {
  std::string name;  // as the file has it, any bytes
  std::string shape, type;
  std::size_t elements = 0, bytes = 0;
  std::string verdict;  // "ok", or how it differs from the type
  bool panels = false;  // of a packed file
  bool disagrees = false;
};

std::string shape_text(const std::vector<std::size_t>& extents) {
  std::string text;
  for (std::size_t e : extents) text += (text.empty() ? "" : ", ") + std::to_string(e);
  return "[" + text + "]";
}

/// What a file says, for a terminal: escape sequences shown, and a name not longer than a line.
std::string shown(std::string_view text) {
  const std::string_view first = quipu::first_bytes(text, 120);
  return quipu::printable(first) + (first.size() < text.size() ? "..." : "");
}

// Compares one record with its slot, tensor by tensor: merged extents where there are several
// shards.
std::string verdict(const quipu::Checkpoint& file, const quipu::TensorSlot& slot,
                    const quipu::TensorRecord& record) {
  try {
    const quipu::TensorSource source =
        file.source(record.name, quipu::detail::shard_of(file, slot, record.name));
    if (source.rows() == slot.out && source.cols() == slot.in) return "ok";
    return fmt::format("the type has {}",
                       quipu::detail::shape_text(slot.out, slot.in, slot.vector));
  } catch (const quipu::Error& error) {
    return error.what();
  }
}

int inspect(const std::string& path, const std::string& wanted, bool as_json) {
  const quipu::Checkpoint file = quipu::open_checkpoint(path);
  const quipu::ModelEntry* entry = nullptr;
  std::string choice_error;
  try {
    entry = &quipu::choose_model(QUIPU_ENGINE::engine().models(), file.facts, path, wanted);
  } catch (const quipu::MismatchError& error) {
    choice_error = error.what();
  }
  quipu::WeightsHolder holder;
  std::map<std::string, const quipu::TensorSlot*> slots;
  if (entry != nullptr) {
    holder = entry->make_weights();
    for (const quipu::TensorSlot& slot : holder.slots) slots[slot.name_in(file.naming)] = &slot;
  }

  std::vector<Row> rows;
  std::size_t counted = 0, bytes = 0, auxiliary = 0;
  bool agree = entry != nullptr;
  std::map<std::string, bool> seen;
  for (const quipu::TensorRecord& record : file.tensors()) {
    Row row{record.name,
            shape_text(record.extents),
            record.type_name,
            record.elements(),
            record.bytes,
            "",
            record.layout == quipu::Layout::panels};
    bytes += record.bytes;
    const auto slot = slots.find(record.name);
    if (quipu::detail::is_auxiliary(record.name)) {
      row.verdict = "auxiliary";
      auxiliary += row.elements;
    } else {
      // A copy that every model-parallel part has counts once.
      const bool copy =
          seen[record.name] && slot != slots.end() && slot->second->shard == quipu::ShardAxis::none;
      const bool shared = slot != slots.end() && slot->second->shares_embedding;
      if (!copy && !shared) counted += row.elements;
      row.verdict = slot != slots.end() ? (shared ? "shared with the embedding"
                                                  : verdict(file, *slot->second, record))
                    : entry != nullptr  ? "the type has no such tensor"
                                        : "";
    }
    row.disagrees = (entry != nullptr && row.verdict != "ok" && row.verdict != "auxiliary" &&
                     slot == slots.end()) ||
                    (slot != slots.end() && row.verdict != "ok" && !slot->second->shares_embedding);
    agree = agree && !row.disagrees;
    seen[record.name] = true;
    rows.push_back(std::move(row));
  }
  for (const auto& [name, slot] : slots) {
    if (seen.contains(name) || slot->shares_embedding) continue;
    rows.push_back({name, quipu::detail::shape_text(slot->out, slot->in, slot->vector), "", 0, 0,
                    "missing in the file", false, true});
    agree = false;
  }
  if (entry != nullptr && counted != entry->parameters) agree = false;
  // The loader's own judgement, which knows more: element types, factors of the frequencies, a
  // repeated matrix that is another one.
  std::string refusal;
  if (entry != nullptr) {
    try {
      quipu::verify_tensors(file, *entry, holder.slots);
    } catch (const quipu::Error& error) {
      refusal = error.what();
      agree = false;
    }
  }

  if (as_json) {
    nlohmann::ordered_json out;
    out["file"] = path;
    out["format"] = quipu::name(file.format);
    out["naming"] = quipu::name(file.naming);
    out["parts"] = file.parts;
    out["name"] = file.facts.name;
    out["model"] =
        entry != nullptr ? nlohmann::ordered_json(entry->name) : nlohmann::ordered_json();
    if (entry == nullptr) out["model_error"] = choice_error;
    out["tensors"] = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
      out["tensors"].push_back({{"name", row.name},
                                {"shape", row.shape},
                                {"type", row.type},
                                {"elements", row.elements},
                                {"bytes", row.bytes},
                                {"layout", row.panels ? "panels" : "rows"},
                                {"verdict", row.verdict}});
    }
    out["bytes"] = bytes;
    out["auxiliary_elements"] = auxiliary;
    out["parameters_in_file"] = counted;
    if (entry != nullptr) out["parameters_of_type"] = entry->parameters;
    out["agree"] = agree;
    if (!refusal.empty()) out["refusal"] = refusal;
    out["notes"] = file.notes;
    // In ASCII: among the control characters are some that JSON does not escape by itself.
    std::cout << out.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) << '\n';
    return agree ? program::success : program::failure;
  }

  fmt::print("{}: {}, {} names{}{}\n\n", path, quipu::name(file.format), quipu::name(file.naming),
             file.parts > 1 ? fmt::format(", {} parts", file.parts) : "",
             file.facts.name.empty() ? "" : ", \"" + shown(file.facts.name) + "\"");
  std::size_t width = 6;
  for (const Row& row : rows) width = (std::max)(width, shown(row.name).size());
  fmt::print("{:{}}  {:>16}  {:>6}  {:>14}  {:>14}  against the type\n", "tensor", width, "shape",
             "type", "elements", "bytes");
  const auto print_row = [width](const Row& row) {
    fmt::print("{:{}}  {:>16}  {:>6}  {:>14}  {:>14}  {}\n", shown(row.name), width, row.shape,
               shown(row.type), program::grouped(row.elements), program::grouped(row.bytes),
               row.verdict);
  };
  for (const Row& row : rows) print_row(row);
  fmt::print("\n{} tensors, {}\n", rows.size(), program::bytes_text(bytes));
  if (file.format == quipu::FileFormat::packed) {
    fmt::print("packed for the kernels: layout {}, panels of {} outputs\n",
               quipu::packed_layout_version, quipu::panel_outputs);
  }
  for (const std::string& note : file.notes) fmt::print("note: {}\n", quipu::printable(note));
  if (auxiliary > 0)
    fmt::print("{} auxiliary elements are not counted\n", program::grouped(auxiliary));
  if (entry == nullptr) {
    fmt::print("parameters in the file: {}\n{}\n", program::grouped(counted), choice_error);
  } else {
    fmt::print("parameters in the file: {}\nparameters of {}: {}\n{}\n", program::grouped(counted),
               entry->name, program::grouped(entry->parameters),
               agree ? "file and type agree, tensor by tensor" : "file and type DISAGREE");
    if (!refusal.empty()) fmt::print("it would not be loaded: {}\n", refusal);
    // Once more, where they are seen without searching hundreds of rows.
    if (!agree)
      fmt::print(
          "\n{} tensors disagree\n",
          std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.disagrees; }));
    for (const Row& row : rows) {
      if (row.disagrees) print_row(row);
    }
  }
  return agree ? program::success : program::failure;
}

}  // namespace

int main(int argc, char** argv) {
  std::string path, wanted;
  bool as_json = false;
  CLI::App app{
      "Lists the tensors of a checkpoint, counts its parameters and compares with the type.",
      QUIPU_PROGRAM_NAME};
  app.footer(
      "Examples:\n"
      "  " QUIPU_PROGRAM_NAME
      " model.gguf\n"
      "  " QUIPU_PROGRAM_NAME
      " Llama3.1-8B/ --json\n"
      "Exit codes: 0 file and type agree, 1 they do not or the file is not usable, 2 the command "
      "line is not.");
  app.add_option("file", path, "Checkpoint: a .gguf, .safetensors or .pth file, or a directory")
      ->required()
      ->type_name("FILE");
  app.add_option("--as", wanted,
                 "Name of the compiled-in model [chosen by the file's configuration]");
  app.add_flag("--json", as_json, "JSON on stdout");
  if (const auto code = program::parse(app, argc, argv)) return *code;
  return program::run(QUIPU_PROGRAM_NAME, [&] { return inspect(path, wanted, as_json); });
}
