// Chat formats: a dialog to the exact ids that a model was taught on.
//
// A closed set of formats, each tested id by id. Which one a checkpoint wants is read off markers
// in its own chat template; the template itself is never run. Special tokens come from the format
// alone: the contents of messages are encoded as plain text, whatever they look like.
// Siblings: text/tokenizer.hpp, text/tool_call.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/shape/error.hpp"
#include "quipu/text/tokenizer.hpp"
#include "quipu/text/tool_call.hpp"
#include "quipu/text/utf8.hpp"

namespace quipu {

enum class ChatRole { system, user, assistant, tool };

/// How a message of the model ended: its turn is over, or it waits for a tool's result.
enum class StopReason { end_of_turn, end_of_message };

/// A message of a dialog.
struct ChatMessage {
  ChatRole role = ChatRole::user;
  std::vector<std::string> content{};  ///< mostly one item; several are encoded one by one
  std::string context{};               ///< user, Llama 3.1: retrieved text, put after the content
  StopReason stop_reason = StopReason::end_of_turn;  ///< assistant, Llama 3.1
  std::vector<ToolCall> tool_calls{};                ///< assistant, Llama 3.1
};

/// The formats.
enum class ChatStyle {
  llama2,    ///< [INST] <<SYS>> ... (Llama 2 chat); contents stripped
  llama3,    ///< headers, contents stripped (Llama 3, meta-llama/llama3)
  llama3_1,  ///< headers, contents as they are, tools (Llama 3.1 and later, llama-models)
  chatml,    ///< <|im_start|>role ... <|im_end|> (SmolLM2 and others)
};

struct ChatOptions {
  /// End with the header of the assistant's next message, so that the model answers.
  bool add_generation_prompt = true;
  ToolPromptFormat tool_prompt_format = ToolPromptFormat::json;
};

/// A chat format.
class ChatFormat {
 public:
  /// The format `style`. `default_system` is said to the model if a ChatML dialog has no system
  /// message of its own; empty: nothing is.
  explicit ChatFormat(ChatStyle style, std::string default_system = {})
      : style_(style), default_system_(std::move(default_system)) {}

  /// The format that a chat template (Jinja text) belongs to, by markers in it:
  ///   <|start_header_id|> and one of <|eom_id|>, <|python_tag|>, ipython   Llama 3.1 and later
  ///   <|start_header_id|>                                                  Llama 3
  ///   <|im_start|>                                                         ChatML
  ///   [INST] and <<SYS>>                                                   Llama 2
  /// FormatError, naming `source` and these, for any other. A system prompt that a ChatML template
  /// says of its own accord is taken over. What a Llama 3.1 template adds beyond the reference's
  /// dialog format (dates, descriptions of tools) is not: put it into the system message.
  static ChatFormat from_template(std::string_view text, const std::string& source) {
    const auto has = [text](std::string_view marker) {
      return text.find(marker) != std::string_view::npos;
    };
    if (has("<|start_header_id|>")) {
      const bool newer = has("<|eom_id|>") || has("<|python_tag|>") || has("ipython");
      return ChatFormat(newer ? ChatStyle::llama3_1 : ChatStyle::llama3);
    }
    if (has("<|im_start|>")) return ChatFormat(ChatStyle::chatml, default_system_of(text));
    if (has("[INST]") && has("<<SYS>>")) return ChatFormat(ChatStyle::llama2);
    raise<FormatError>(
        source + ": chat template: " +
        (text.empty() ? "there is none" : "unknown: \"" + std::string(text.substr(0, 120)) + "\"") +
        "; known are those with <|start_header_id|> (Llama 3), <|im_start|> (ChatML), or [INST] "
        "and <<SYS>> (Llama 2)");
  }

  ChatStyle style() const { return style_; }
  const std::string& default_system() const { return default_system_; }

  /// The ids of a dialog. ArgumentError if the tokenizer lacks a special token of the format, or
  /// the dialog is none that the format can write.
  std::vector<TokenId> encode(const Tokenizer& tokenizer, const std::vector<ChatMessage>& dialog,
                              const ChatOptions& options = {}) const {
    Writer writer{tokenizer, {}};
    switch (style_) {
      case ChatStyle::llama2:
        write_llama2(writer, dialog);
        break;
      case ChatStyle::llama3:
      case ChatStyle::llama3_1:
        write_llama3(writer, dialog, options);
        break;
      case ChatStyle::chatml:
        write_chatml(writer, dialog, options);
        break;
    }
    return std::move(writer.ids);
  }

 private:
  /// Appends to the ids: text as plain text, special tokens by name.
  struct Writer {
    const Tokenizer& tokenizer;
    std::vector<TokenId> ids;

    void text(std::string_view plain) {
      const std::vector<TokenId> more = tokenizer.encode(plain);
      ids.insert(ids.end(), more.begin(), more.end());
    }
    void special(std::string_view name) {
      const std::optional<TokenId> id = tokenizer.special(name);
      if (!id.has_value()) {
        raise<ArgumentError>(tokenizer.source() + ": the chat format needs the special token \"" +
                             std::string(name) + "\", which the vocabulary has not");
      }
      ids.push_back(*id);
    }
  };

  static std::string_view name_of(ChatRole role) {
    switch (role) {
      case ChatRole::system:
        return "system";
      case ChatRole::user:
        return "user";
      case ChatRole::assistant:
        return "assistant";
      case ChatRole::tool:
        return "tool";
    }
    raise<ArgumentError>("chat: unknown role");
  }

  static std::string joined(const ChatMessage& message) {
    std::string all;
    for (const std::string& item : message.content) all += item;
    return all;
  }

  [[noreturn]] static void refuse(std::size_t index, const std::string& what) {
    raise<ArgumentError>("chat: message " + std::to_string(index) + ": " + what);
  }

  static void refuse_tools(std::size_t index, const ChatMessage& message, const char* format) {
    if (message.role == ChatRole::tool || !message.tool_calls.empty()) {
      refuse(index, std::string("the ") + format + " format has no tools");
    }
  }

  // Reference: ChatFormat of meta-llama/llama3 and of meta-llama/llama-models.
  void write_llama3(Writer& writer, const std::vector<ChatMessage>& dialog,
                    const ChatOptions& options) const {
    const bool newer = style_ == ChatStyle::llama3_1;
    const auto header = [&writer](std::string_view role) {
      writer.special("<|start_header_id|>");
      writer.text(role);
      writer.special("<|end_header_id|>");
      writer.text("\n\n");
    };
    writer.special("<|begin_of_text|>");
    for (std::size_t i = 0; i < dialog.size(); ++i) {
      const ChatMessage& message = dialog[i];
      if (!newer) {
        refuse_tools(i, message, "Llama 3");
        header(name_of(message.role));
        writer.text(python_strip(joined(message)));
        writer.special("<|eot_id|>");
        continue;
      }
      header(message.role == ChatRole::tool ? "ipython" : name_of(message.role));
      const bool model = message.role == ChatRole::assistant;
      if (!model && !message.tool_calls.empty()) {
        refuse(i, "only the assistant calls tools");
      }
      if (!message.tool_calls.empty() && message.tool_calls.front().tool_name == code_interpreter) {
        writer.special("<|python_tag|>");
      }
      for (const std::string& item : message.content) writer.text(item);
      if (message.role == ChatRole::user && !message.context.empty()) {
        writer.text("\n\n");
        writer.text(message.context);
      }
      for (const ToolCall& call : message.tool_calls) {
        writer.text(write_tool_call(call, options.tool_prompt_format));
      }
      const bool waits = model && message.stop_reason == StopReason::end_of_message;
      writer.special(waits ? "<|eom_id|>" : "<|eot_id|>");
    }
    if (options.add_generation_prompt) header(name_of(ChatRole::assistant));
  }

  // What the templates of ChatML models write; between special tokens the text is encoded whole.
  void write_chatml(Writer& writer, const std::vector<ChatMessage>& dialog,
                    const ChatOptions& options) const {
    const auto say = [&writer](std::string_view role, const std::string& content) {
      writer.special("<|im_start|>");
      writer.text(std::string(role) + "\n" + content);
      writer.special("<|im_end|>");
      writer.text("\n");
    };
    if (!default_system_.empty() && !dialog.empty() && dialog.front().role != ChatRole::system) {
      say(name_of(ChatRole::system), default_system_);
    }
    for (std::size_t i = 0; i < dialog.size(); ++i) {
      if (!dialog[i].tool_calls.empty()) refuse(i, "the ChatML format has no calls of tools");
      say(name_of(dialog[i].role), joined(dialog[i]));
    }
    if (options.add_generation_prompt) {
      writer.special("<|im_start|>");
      writer.text("assistant\n");
    }
  }

  // Reference: Llama.chat_completion in llama/generation.py of meta-llama/llama (Llama 2): the
  // system message goes into the user's first one, questions and answers alternate, and each pair
  // is a text of its own.
  static void write_llama2(Writer& writer, const std::vector<ChatMessage>& dialog) {
    const Tokenizer& tokenizer = writer.tokenizer;
    if (!tokenizer.bos().has_value() || !tokenizer.eos().has_value()) {
      raise<ArgumentError>(tokenizer.source() +
                           ": the Llama 2 chat format needs tokens for begin and end of text");
    }
    std::string system;
    std::size_t first = 0;
    if (!dialog.empty() && dialog.front().role == ChatRole::system) {
      system = "<<SYS>>\n" + joined(dialog.front()) + "\n<</SYS>>\n\n";
      first = 1;
    }
    if ((dialog.size() - first) % 2 != 1) {
      refuse(dialog.size(), "a Llama 2 dialog ends with a message of the user");
    }
    for (std::size_t i = first; i < dialog.size(); i += 2) {
      for (const std::size_t j : {i, i + 1}) {
        if (j >= dialog.size()) break;
        const ChatRole expected = j == i ? ChatRole::user : ChatRole::assistant;
        refuse_tools(j, dialog[j], "Llama 2");
        if (dialog[j].role != expected) {
          refuse(j, "expected the role " + std::string(name_of(expected)) + ", found " +
                        std::string(name_of(dialog[j].role)));
        }
      }
      const std::string question = (i == first ? system : std::string()) + joined(dialog[i]);
      std::string text = "[INST] " + std::string(python_strip(question)) + " [/INST]";
      writer.ids.push_back(*tokenizer.bos());
      if (i + 1 < dialog.size()) {
        text += " " + std::string(python_strip(joined(dialog[i + 1]))) + " ";
        writer.text(text);
        writer.ids.push_back(*tokenizer.eos());
      } else {
        writer.text(text);
      }
    }
  }

  // The system prompt that a ChatML template says when the dialog has none: the literal after the
  // test of the first role.
  static std::string default_system_of(std::string_view text) {
    for (const std::string_view test :
         {"messages[0]['role'] != 'system'", "messages[0][\"role\"] != \"system\"",
          "messages[0].role != 'system'", "messages[0].role != \"system\""}) {
      const std::size_t at = text.find(test);
      if (at == std::string_view::npos) continue;
      text.remove_prefix(at);
      // The line break is itself in the file, or escaped as Jinja text has it.
      for (const std::string_view open : {"<|im_start|>system\n", "<|im_start|>system\\n"}) {
        const std::size_t begin = text.find(open);
        if (begin == std::string_view::npos) continue;
        const std::size_t from = begin + open.size();
        const std::size_t end = text.find("<|im_end|>", from);
        const std::size_t block = text.find("{% endif", 0);
        if (end == std::string_view::npos || begin > block) continue;
        return std::string(text.substr(from, end - from));
      }
    }
    return {};
  }

  ChatStyle style_;
  std::string default_system_;
};

}  // namespace quipu
