// A model of which each process holds a part: greedy text by as many ranks as mpiexec starts.
//   mpiexec -n 3 generate_mpi SmolLM2-135M-Instruct.Q4_1.gguf "The capital of France is"
#include <iostream>
#include <mpi_engine.hpp>

#include "quipu/generate/generator.hpp"
#include "quipu/parallel/mpi.hpp"

namespace {

int generate(const char* file, const char* prompt) {
  quipu::MpiCommunicator communicator;
  quipu::LoadOptions options;
  options.communicator = communicator;  // this process loads its part only
  options.threads = 1;
  const quipu::Model model = mpi_engine::engine().load(file, options);
  const quipu::Tokenizer& tokenizer = model.tokenizer();
  std::cerr << "rank " + std::to_string(communicator.rank()) + " of " +
                   std::to_string(communicator.ranks()) + ": " +
                   std::to_string(model.weights().weight_bytes) + " bytes of weights\n";

  // Every rank makes the same calls and gets the same logits, so each chooses the same tokens.
  quipu::Session session(model, {.capacity = 512});
  quipu::Generator generator(
      session,
      {.sampling = {.temperature = 0}, .max_tokens = 48, .stop_ids = tokenizer.stop_ids()});
  generator.feed(tokenizer.encode(prompt, tokenizer.prompt_options()));
  quipu::Utf8Stream text;
  while (const auto token = generator.next()) {
    const std::string part = text.push(tokenizer.piece(*token));
    if (communicator.rank() == 0) std::cout << part << std::flush;
  }
  if (communicator.rank() == 0) std::cout << text.flush() << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = 2;
  if (argc == 3) {
    try {
      code = generate(argv[1], argv[2]);
    } catch (const std::exception& error) {
      std::cerr << "generate_mpi: " << error.what() << std::endl;
      MPI_Abort(MPI_COMM_WORLD, 1);  // the other ranks would wait for this one
    }
  } else {
    std::cerr << "usage: mpiexec -n RANKS generate_mpi MODEL PROMPT\n";
  }
  MPI_Finalize();
  return code;
}
