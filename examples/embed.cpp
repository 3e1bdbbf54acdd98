// The smallest application that loads a model and generates: link the engine that CMake's
// quipu_add_programs or quipu_add_engine made, and include its header.
//   embed model.gguf "Once upon a time"
#include <cstdio>
#include <quipu/generate/generator.hpp>
#include <quipu_engine.hpp>

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL PROMPT\n", argv[0]);
    return 2;
  }
  const quipu::Model model = quipu_engine::engine().load(argv[1]);
  const quipu::Tokenizer& tokenizer = model.tokenizer();
  quipu::Session session(model, {.capacity = 512});
  quipu::Generator generator(session, {.max_tokens = 48, .stop_ids = tokenizer.stop_ids()});
  generator.feed(tokenizer.encode(argv[2], tokenizer.prompt_options()));
  quipu::Utf8Stream text;
  while (const auto token = generator.next()) {
    std::fputs(text.push(tokenizer.piece(*token)).c_str(), stdout);
    std::fflush(stdout);
  }
  std::puts(text.flush().c_str());
} catch (const quipu::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
