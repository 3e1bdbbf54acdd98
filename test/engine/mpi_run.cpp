// Run by mpiexec, one rank a process: the same bits as by ranks that are threads of one process,
// with a part of the weights each. Exit code 0 if all is well; says on stderr what is not.
//   mpiexec -n 2 engine_mpi_run HUGGING_FACE_FOLDER_OF_T1
#include <cstdio>
#include <cstring>

#include "quipu/engine/session.hpp"
#include "quipu/parallel/mpi.hpp"
#include "test_engine.hpp"

namespace {

using quipu::TokenId;

int failures = 0;
void expect(bool good, const char* what) {
  if (good) return;
  ++failures;
  std::fprintf(stderr, "engine_mpi_run: %s\n", what);
}

/// Traced tensors of two passes, and their logits, one after the other.
std::vector<float> run(const quipu::Model& model, quipu::NumericMode mode) {
  std::vector<float> all;
  quipu::TraceHook hook;
  hook.context = &all;
  hook.call = [](void* context, const quipu::TracedTensor& tensor) {
    auto& values = *static_cast<std::vector<float>*>(context);
    values.insert(values.end(), tensor.data, tensor.data + tensor.elements());
  };
  quipu::Session session(model, {.batch = 2, .capacity = 64, .mode = mode});
  session.set_trace(hook);
  const std::vector<TokenId> prompt{5, 17, 3, 511, 0, 127, 64}, next{31};
  std::vector<float> logits(2 * prompt.size() * 512);
  const quipu::Feed first[] = {{0, prompt, {}}, {1, prompt, {}}}, second[] = {{0, next, {}}};
  session.forward(first, quipu::LogitsWanted::all, logits);
  all.insert(all.end(), logits.begin(), logits.end());
  session.forward(second, quipu::LogitsWanted::last, logits);
  all.insert(all.end(), logits.begin(), logits.begin() + 512);
  return all;
}

void compare(const std::string& folder, const quipu::MpiCommunicator& communicator,
             const quipu::Model& part) {
  quipu::LoadOptions options;
  options.threads = 1;
  options.ranks = communicator.ranks();
  const quipu::Model whole = test_engine::engine().load(folder, options);
  expect(part.ranks() == communicator.ranks() && part.local_ranks() == 1, "ranks of the model");
  // The matrices are cut, the norms (a few thousand values) are not.
  expect(
      part.weights().weight_bytes * communicator.ranks() < whole.weights().weight_bytes + 4 * 4096,
      "a rank holds more than its part");
  for (const auto mode : {quipu::NumericMode::f32, quipu::NumericMode::bf16}) {
    const std::vector<float> mine = run(part, mode), expected = run(whole, mode);
    // Only rank 0 is shown tensors; everybody gets the logits, which end the list.
    constexpr std::size_t last = 512;
    if (communicator.rank() == 0) {
      expect(mine.size() == expected.size() && mine.size() > 15 * last, "number of values");
      expect(std::memcmp(mine.data(), expected.data(), mine.size() * sizeof(float)) == 0,
             "other bits than with threads");
    } else {
      expect(mine.size() == 15 * last, "number of logits");
    }
    expect(std::memcmp(mine.data() + mine.size() - last, expected.data() + expected.size() - last,
                       last * sizeof(float)) == 0,
           "other logits than with threads");
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  try {
    quipu::MpiCommunicator communicator;
    quipu::LoadOptions options;
    options.threads = 1;
    options.communicator = communicator;
    compare(argv[1], communicator, test_engine::engine().load(argv[1], options));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine_mpi_run: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
