// A strict reader of the pickles that torch.save writes for a state dict: names and tensors.
//
// A pickle is a program for a stack machine that may call any function of Python. This reader knows
// no functions. It has the opcodes that a state dict needs, a list of globals that it recognises as
// words, and gives back a description of the tensors; everything else is refused by name. Nesting
// is held in an arena of nodes, so neither reading nor destroying recurses, and the size of the
// arena is bounded by the pickle's length. Sibling: torch_pth.hpp gives the storages their bytes.
// Source of the opcodes: the list at the top of Python's pickle.py and PEP 307, PEP 3154.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quipu/checkpoint/byte_reader.hpp"
#include "quipu/shape/element_type.hpp"

namespace quipu {

/// A torch storage class: its name in the pickle and what it holds.
struct TorchStorageType {
  std::string_view global;     ///< "torch FloatStorage"
  std::string_view type_name;  ///< "float32"
  std::size_t element_bytes;
  std::optional<ElementType> type;
};

/// A tensor as the pickle describes it; extents and strides in elements, outermost first.
struct PickledTensor {
  std::string name;
  std::string storage_key;
  const TorchStorageType* storage_type = nullptr;
  std::uint64_t storage_elements = 0;
  std::uint64_t offset = 0;
  std::vector<std::uint64_t> extents;
  std::vector<std::uint64_t> strides;
};

namespace detail {

inline constexpr TorchStorageType torch_storage_types[] = {
    {"torch FloatStorage", "float32", 4, ElementType::f32},
    {"torch BFloat16Storage", "bfloat16", 2, ElementType::bf16},
    {"torch HalfStorage", "float16", 2, ElementType::f16},
    {"torch DoubleStorage", "float64", 8, {}},
    {"torch LongStorage", "int64", 8, {}},
    {"torch IntStorage", "int32", 4, {}},
    {"torch ShortStorage", "int16", 2, {}},
    {"torch CharStorage", "int8", 1, {}},
    {"torch ByteStorage", "uint8", 1, {}},
    {"torch BoolStorage", "bool", 1, {}},
};

inline constexpr std::string_view ordered_dict_global = "collections OrderedDict";
inline constexpr std::string_view rebuild_tensor_global = "torch._utils _rebuild_tensor_v2";
inline constexpr std::string_view rebuild_parameter_global = "torch._utils _rebuild_parameter";

inline std::string pickle_allow_list() {
  std::string out;
  const auto add = [&out](std::string_view global) {
    std::string dotted(global);
    std::replace(dotted.begin(), dotted.end(), ' ', '.');
    out += (out.empty() ? "" : ", ") + dotted;
  };
  add(ordered_dict_global);
  add(rebuild_tensor_global);
  add(rebuild_parameter_global);
  for (const TorchStorageType& type : torch_storage_types) add(type.global);
  return out;
}

/// Python's name of an opcode that is not supported, for messages.
inline std::string pickle_opcode_name(std::uint8_t code) {
  struct Name {
    char code;
    std::string_view name;
  };
  static constexpr Name names[] = {
      {'0', "POP"},
      {'1', "POP_MARK"},
      {'2', "DUP"},
      {'F', "FLOAT"},
      {'I', "INT"},
      {'L', "LONG"},
      {'P', "PERSID"},
      {'S', "STRING"},
      {'T', "BINSTRING"},
      {'U', "SHORT_BINSTRING"},
      {'V', "UNICODE"},
      {'d', "DICT"},
      {'g', "GET"},
      {'i', "INST"},
      {'l', "LIST"},
      {'o', "OBJ"},
      {'p', "PUT"},
      {'B', "BINBYTES"},
      {'C', "SHORT_BINBYTES"},
      {'\x81', "NEWOBJ"},
      {'\x82', "EXT1"},
      {'\x83', "EXT2"},
      {'\x84', "EXT4"},
      {'\x8b', "LONG4"},
      {'\x8e', "BINBYTES8"},
      {'\x8f', "EMPTY_SET"},
      {'\x90', "ADDITEMS"},
      {'\x91', "FROZENSET"},
      {'\x92', "NEWOBJ_EX"},
      {'\x96', "BYTEARRAY8"},
      {'\x97', "NEXT_BUFFER"},
      {'\x98', "READONLY_BUFFER"},
  };
  for (const Name& entry : names) {
    if (static_cast<std::uint8_t>(entry.code) == code) return std::string(entry.name);
  }
  return "of number " + decimal(code);
}

class Unpickler {
 public:
  Unpickler(std::string_view pickle, std::string_view file)
      : reader_({reinterpret_cast<const std::byte*>(pickle.data()), pickle.size()}, file),
        file_(file) {}

  std::vector<PickledTensor> run();

 private:
  using Id = std::uint32_t;

  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,
    list,
    dict,
    global,
    storage,
    tensor,
    mark
  };
  struct Node {
    Kind kind = Kind::none;
    std::int64_t integer = 0;  ///< also a boolean's value, a storage's or tensor's index
    std::string_view text;     ///< a view into the pickle; of a global: "module name"
    std::vector<Id> items;     ///< of a dict: key, value, key, value, ...
  };
  struct Storage {
    std::string_view key;
    const TorchStorageType* type;
    std::uint64_t elements;
  };

  static const char* kind_name(Kind kind) {
    static constexpr const char* names[] = {"None",     "a bool",    "an int",   "a float",
                                            "a string", "a tuple",   "a list",   "a dict",
                                            "a global", "a storage", "a tensor", "a mark"};
    return names[static_cast<std::size_t>(kind)];
  }

  [[noreturn]] void fail(const Words& why) const {
    bad_format(file_, "pickle, byte " + decimal(opcode_at_) + ": " + why);
  }

  Id make(Kind kind) {
    nodes_.emplace_back().kind = kind;
    return static_cast<Id>(nodes_.size() - 1);
  }
  void push(Kind kind) { stack_.push_back(make(kind)); }
  void push_integer(Kind kind, std::int64_t value) {
    push(kind);
    nodes_.back().integer = value;
  }
  void push_text(Kind kind, std::string_view value) {
    push(kind);
    nodes_.back().text = value;
  }
  void push_tuple(std::size_t count) {
    std::vector<Id> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push(Kind::tuple);
    nodes_.back().items = std::move(items);
  }

  Node& top() {
    if (stack_.empty()) fail("the stack is empty");
    return nodes_[stack_.back()];
  }
  Id pop() {
    if (stack_.empty()) fail("the stack is empty");
    const Id id = stack_.back();
    stack_.pop_back();
    if (nodes_[id].kind == Kind::mark) fail("a mark where a value is needed");
    return id;
  }
  std::vector<Id> pop_to_mark() {
    std::size_t at = stack_.size();
    while (at > 0 && nodes_[stack_[at - 1]].kind != Kind::mark) --at;
    if (at == 0) fail("no mark on the stack");
    std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(at), stack_.end());
    stack_.resize(at - 1);
    return items;
  }

  void remember(std::uint64_t index) {
    if (stack_.empty() || top().kind == Kind::mark) fail("nothing to put into the memo");
    memo_[index] = stack_.back();
  }
  void recall(std::uint64_t index) {
    const auto at = memo_.find(index);
    if (at == memo_.end()) fail("memo entry " + decimal(index) + " does not exist");
    stack_.push_back(at->second);
  }

  const Node& expect(Id id, Kind kind, const char* what) const {
    const Node& node = nodes_[id];
    if (node.kind != kind) {
      fail(Words(what) + ": expected " + kind_name(kind) + ", found " + kind_name(node.kind));
    }
    return node;
  }
  std::uint64_t size_of(Id id, const char* what) const {
    const Node& node = expect(id, Kind::integer, what);
    if (node.integer < 0) fail(Words(what) + " is negative: " + decimal(node.integer));
    return static_cast<std::uint64_t>(node.integer);
  }

  std::string_view line(const char* what) {
    // GLOBAL's two words end with a newline each; the longest allowed word is short.
    constexpr std::size_t limit = 256;
    detail::ByteReader ahead = reader_;
    std::size_t length = 0;
    while (ahead.read<char>(what) != '\n') {
      if (++length > limit) fail(Words(what) + " is longer than 256 bytes");
    }
    const std::string_view word = reader_.text(length, what);
    reader_.read<char>(what);
    return word;
  }

  void push_global(std::string_view module, std::string_view global_name);
  void persistent_storage();
  void reduce();
  void rebuild_tensor(const std::vector<Id>& arguments);
  void set_items(const std::vector<Id>& items);
  std::vector<PickledTensor> state_dict();

  ByteReader reader_;
  std::string_view file_;
  std::size_t opcode_at_ = 0;
  std::vector<Node> nodes_;
  std::vector<Id> stack_;
  std::unordered_map<std::uint64_t, Id> memo_;
  std::vector<Storage> storages_;
  std::vector<PickledTensor> tensors_;
};

inline void Unpickler::push_global(std::string_view module, std::string_view global_name) {
  const auto is = [&](std::string_view global) {
    return global.size() == module.size() + 1 + global_name.size() &&
           global.substr(0, module.size()) == module && global[module.size()] == ' ' &&
           global.substr(module.size() + 1) == global_name;
  };
  for (const std::string_view global :
       {ordered_dict_global, rebuild_tensor_global, rebuild_parameter_global}) {
    if (is(global)) return push_text(Kind::global, global);
  }
  for (const TorchStorageType& type : torch_storage_types) {
    if (is(type.global)) return push_text(Kind::global, type.global);
  }
  fail("the global " + in_quotes(std::string(module) + "." + std::string(global_name)) +
       " is not allowed (nothing of a pickle is ever executed); known are " + pickle_allow_list());
}

// ('storage', storage class, key, location, number of elements)
inline void Unpickler::persistent_storage() {
  const Node& id = expect(pop(), Kind::tuple, "persistent id");
  if (id.items.size() != 5) {
    fail("persistent id: expected 5 parts, found " + decimal(id.items.size()));
  }
  const Node& word = expect(id.items[0], Kind::text, "persistent id, kind");
  if (word.text != "storage")
    fail("persistent id: expected \"storage\", found " + in_quotes(word.text));
  const Node& global = expect(id.items[1], Kind::global, "persistent id, class of the storage");
  Storage storage{};
  for (const TorchStorageType& type : torch_storage_types) {
    if (type.global == global.text) storage.type = &type;
  }
  if (storage.type == nullptr) fail(in_quotes(global.text) + " is no storage class");
  storage.key = expect(id.items[2], Kind::text, "persistent id, key of the storage").text;
  storage.elements = size_of(id.items[4], "persistent id, elements of the storage");
  storages_.push_back(storage);
  push_integer(Kind::storage, static_cast<std::int64_t>(storages_.size() - 1));
}

inline void Unpickler::reduce() {
  const std::vector<Id> arguments = expect(pop(), Kind::tuple, "arguments of a call").items;
  const std::string_view function = expect(pop(), Kind::global, "function of a call").text;
  if (function == ordered_dict_global) {
    if (!arguments.empty()) fail("OrderedDict with arguments");
    return push(Kind::dict);
  }
  if (function == rebuild_tensor_global) return rebuild_tensor(arguments);
  if (function == rebuild_parameter_global) {  // (tensor, requires_grad, hooks): the tensor itself
    if (arguments.size() != 3) fail("_rebuild_parameter: expected 3 arguments");
    expect(arguments[0], Kind::tensor, "_rebuild_parameter, data");
    stack_.push_back(arguments[0]);
    return;
  }
  fail("a call of " + in_quotes(function) + ", which is not a function of tensors");
}

// (storage, offset, extents, strides, requires_grad, hooks[, metadata])
inline void Unpickler::rebuild_tensor(const std::vector<Id>& arguments) {
  if (arguments.size() != 6 && arguments.size() != 7) {
    fail("_rebuild_tensor_v2: expected 6 or 7 arguments, found " + decimal(arguments.size()));
  }
  PickledTensor tensor;
  const Node& node = expect(arguments[0], Kind::storage, "_rebuild_tensor_v2, storage");
  const Storage& storage = storages_[static_cast<std::size_t>(node.integer)];
  tensor.storage_key = storage.key;
  tensor.storage_type = storage.type;
  tensor.storage_elements = storage.elements;
  tensor.offset = size_of(arguments[1], "_rebuild_tensor_v2, offset");
  const Node& extents = expect(arguments[2], Kind::tuple, "_rebuild_tensor_v2, extents");
  const Node& strides = expect(arguments[3], Kind::tuple, "_rebuild_tensor_v2, strides");
  // No tensor of a model has more; without a limit one long tuple could be copied many times.
  constexpr std::size_t most = 8;
  if (extents.items.size() > most) fail("_rebuild_tensor_v2: more than 8 extents");
  if (extents.items.size() != strides.items.size()) {
    fail("_rebuild_tensor_v2: " + decimal(extents.items.size()) + " extents, but " +
         decimal(strides.items.size()) + " strides");
  }
  for (const Id id : extents.items) tensor.extents.push_back(size_of(id, "an extent"));
  for (const Id id : strides.items) tensor.strides.push_back(size_of(id, "a stride"));
  tensors_.push_back(std::move(tensor));
  push_integer(Kind::tensor, static_cast<std::int64_t>(tensors_.size() - 1));
}

inline void Unpickler::set_items(const std::vector<Id>& items) {
  if (items.size() % 2 != 0) fail("a key without a value");
  Node& dict = top();
  if (dict.kind != Kind::dict) {
    fail(Words("items are set in ") + kind_name(dict.kind) + ", not in a dict");
  }
  dict.items.insert(dict.items.end(), items.begin(), items.end());
}

inline std::vector<PickledTensor> Unpickler::state_dict() {
  opcode_at_ = reader_.position();
  const Id root = pop();
  if (!stack_.empty()) fail("values are left on the stack");
  if (reader_.left() != 0) fail(decimal(reader_.left()) + " bytes follow the end");
  const Node& dict = expect(root, Kind::dict, "what the file holds");
  std::vector<PickledTensor> out;
  std::unordered_map<std::string_view, bool> seen;
  for (std::size_t i = 0; i < dict.items.size(); i += 2) {
    const std::string_view key = expect(dict.items[i], Kind::text, "a key of the state dict").text;
    const Node& value = nodes_[dict.items[i + 1]];
    const Words what = "tensor " + in_quotes(key);
    if (value.kind != Kind::tensor) {
      fail(what + ": expected a tensor, found " + kind_name(value.kind) +
           " (a state dict of tensors is wanted)");
    }
    if (!seen.emplace(key, true).second) fail(what + " stands twice");
    out.push_back(tensors_[static_cast<std::size_t>(value.integer)]);
    out.back().name = key;
  }
  return out;
}

inline std::vector<PickledTensor> Unpickler::run() {
  opcode_at_ = reader_.position();
  if (reader_.read<std::uint8_t>("pickle, first opcode") != 0x80) {
    fail("expected the opcode PROTO (a pickle of protocol 2 to 4)");
  }
  const auto protocol = reader_.read<std::uint8_t>("pickle, protocol");
  if (protocol < 2 || protocol > 4) {
    fail("protocol: expected 2 to 4, found " + decimal(protocol));
  }
  for (;;) {
    opcode_at_ = reader_.position();
    const auto code = reader_.read<std::uint8_t>("pickle, opcode");
    switch (code) {
      case '.':
        return state_dict();
      case '(':
        push(Kind::mark);
        break;
      case ')':
        push(Kind::tuple);
        break;
      case 't': {
        std::vector<Id> items = pop_to_mark();
        push(Kind::tuple);
        nodes_.back().items = std::move(items);
        break;
      }
      case 0x85:
        push_tuple(1);
        break;
      case 0x86:
        push_tuple(2);
        break;
      case 0x87:
        push_tuple(3);
        break;
      case ']':
        push(Kind::list);
        break;
      case '}':
        push(Kind::dict);
        break;
      case 'a':
      case 'e': {  // APPEND, APPENDS
        const std::vector<Id> items = code == 'a' ? std::vector<Id>{pop()} : pop_to_mark();
        Node& list = top();
        if (list.kind != Kind::list) fail("values are appended to what is no list");
        list.items.insert(list.items.end(), items.begin(), items.end());
        break;
      }
      case 's': {  // SETITEM
        const Id value = pop();
        const Id key = pop();
        set_items({key, value});
        break;
      }
      case 'u':
        set_items(pop_to_mark());
        break;
      case 'N':
        push(Kind::none);
        break;
      case 0x88:
        push_integer(Kind::boolean, 1);
        break;
      case 0x89:
        push_integer(Kind::boolean, 0);
        break;
      case 'K':
        push_integer(Kind::integer, reader_.read<std::uint8_t>("BININT1"));
        break;
      case 'M':
        push_integer(Kind::integer, reader_.read<std::uint16_t>("BININT2"));
        break;
      case 'J':
        push_integer(Kind::integer, reader_.read<std::int32_t>("BININT"));
        break;
      case 0x8a: {  // LONG1: little-endian two's complement of the given length
        const auto length = reader_.read<std::uint8_t>("LONG1, length");
        if (length > 8) fail("an integer of " + decimal(length) + " bytes");
        const std::string_view bytes = reader_.text(length, "LONG1");
        const bool negative = length > 0 && (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
        std::int64_t value = negative ? -1 : 0;
        std::memcpy(&value, bytes.data(), bytes.size());
        push_integer(Kind::integer, value);
        break;
      }
      case 'G':  // a float of eight bytes; none is needed for a tensor
        reader_.take(8, "BINFLOAT");
        push(Kind::real);
        break;
      case 'X':
        push_text(Kind::text,
                  reader_.text(reader_.read<std::uint32_t>("BINUNICODE, length"), "BINUNICODE"));
        break;
      case 0x8c:
        push_text(Kind::text, reader_.text(reader_.read<std::uint8_t>("SHORT_BINUNICODE, length"),
                                           "SHORT_BINUNICODE"));
        break;
      case 0x8d:
        push_text(Kind::text,
                  reader_.text(reader_.read<std::uint64_t>("BINUNICODE8, length"), "BINUNICODE8"));
        break;
      case 'q':
        remember(reader_.read<std::uint8_t>("BINPUT"));
        break;
      case 'r':
        remember(reader_.read<std::uint32_t>("LONG_BINPUT"));
        break;
      case 0x94:
        remember(memo_.size());
        break;  // MEMOIZE
      case 'h':
        recall(reader_.read<std::uint8_t>("BINGET"));
        break;
      case 'j':
        recall(reader_.read<std::uint32_t>("LONG_BINGET"));
        break;
      case 0x95:
        reader_.need(reader_.read<std::uint64_t>("FRAME"), "frame");
        break;
      case 'c': {
        const std::string_view module = line("GLOBAL, module");
        push_global(module, line("GLOBAL, name"));
        break;
      }
      case 0x93: {  // STACK_GLOBAL
        const std::string_view global_name = expect(pop(), Kind::text, "name of a global").text;
        const std::string_view module = expect(pop(), Kind::text, "module of a global").text;
        push_global(module, global_name);
        break;
      }
      case 'Q':
        persistent_storage();
        break;
      case 'R':
        reduce();
        break;
      case 'b': {  // BUILD: a state dict's own attributes (`_metadata`), which hold no tensors
        pop();
        if (top().kind != Kind::dict) {
          fail(Words("BUILD on ") + kind_name(top().kind) + ", allowed on a dict only");
        }
        break;
      }
      default:
        fail("the opcode " + pickle_opcode_name(code) +
             " is not allowed in a state dict (nothing of a pickle is ever executed)");
    }
  }
}

}  // namespace detail

/// Longest pickle accepted. A tensor takes some 150 bytes of pickle, and the largest Llama has 1137
/// tensors; a byte may cost 64 bytes of memory, so this bounds that too.
inline constexpr std::size_t most_pickle_bytes = std::size_t{16} << 20;

/// The tensors that the pickle of a state dict describes, in its order. FormatError that names the
/// opcode or global which a state dict does not need. `file` is the name in messages.
inline std::vector<PickledTensor> read_state_dict_pickle(std::string_view pickle,
                                                         std::string_view file) {
  if (pickle.size() > most_pickle_bytes) {
    detail::bad_field(file, "size of the pickle", "at most " + detail::decimal(most_pickle_bytes),
                      detail::decimal(pickle.size()));
  }
  return detail::Unpickler(pickle, file).run();
}

}  // namespace quipu
