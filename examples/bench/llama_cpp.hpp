// llama.cpp as its Python package llama-cpp-python has it, in a process of its own, so that both
// engines can be measured in turns on one file.
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "quipu/shape/error.hpp"

namespace bench {

/// What the process runs: a line of JSON in asks for a run, a line out says how long it took. The
/// positions of `before` are computed once and not counted, as long as they stay the same.
inline constexpr const char* llama_cpp_script = R"py(
import json, sys, time
import llama_cpp
file, threads, context = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
llama = llama_cpp.Llama(file, n_ctx=context, n_batch=512, n_ubatch=512, verbose=False,
                        n_threads=threads, n_threads_batch=threads)
print(json.dumps({"version": llama_cpp.__version__,
                  "system": llama_cpp.llama_print_system_info().decode()}), flush=True)
computed = None
for line in sys.stdin:
    request = json.loads(line)
    before, tokens = request["before"], request["tokens"]
    if computed != before:
        llama.reset()
        if before:
            llama.eval(before)
        computed = before
    llama.n_tokens = len(before)
    start = time.perf_counter()
    if request["at_once"]:
        llama.eval(tokens)
    else:
        for token in tokens:
            llama.eval([token])
    print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
)py";

class LlamaCpp {
 public:
  /// FileError if Python or the package is not there, or if llama.cpp does not take the file.
  LlamaCpp(const std::string& python, const std::string& file, std::size_t threads,
           std::size_t context) {
    ::signal(SIGPIPE, SIG_IGN);  // a process that died is found by what it does not answer
    std::array<int, 2> in{}, out{};
    if (::pipe(in.data()) != 0 || ::pipe(out.data()) != 0)
      quipu::raise<quipu::FileError>("llama.cpp: no pipe to its process can be made");
    const std::string t = std::to_string(threads), c = std::to_string(context);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      for (int end : {in[0], in[1], out[0], out[1]}) ::close(end);
      ::execlp(python.c_str(), python.c_str(), "-c", llama_cpp_script, file.c_str(), t.c_str(),
               c.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = ::fdopen(in[1], "w");
    from_ = ::fdopen(out[0], "r");
    const nlohmann::json hello =
        answer(python +
               " could not load the file with the package llama-cpp-python (its own message "
               "is above; --python names another interpreter)");
    version_ = hello.at("version");
    system_ = hello.at("system");
  }
  LlamaCpp(const LlamaCpp&) = delete;
  LlamaCpp& operator=(const LlamaCpp&) = delete;
  ~LlamaCpp() {
    if (to_ != nullptr) std::fclose(to_);  // the end of its input ends the process
    if (from_ != nullptr) std::fclose(from_);
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
  }

  const std::string& version() const { return version_; }
  /// What llama.cpp says of the instructions that it was built for.
  const std::string& system() const { return system_; }

  /// Seconds of computing `tokens` after the positions of `before`: in one pass, or one by one.
  double run(const std::vector<std::int32_t>& before, const std::vector<std::int32_t>& tokens,
             bool at_once) {
    const std::string line =
        nlohmann::json{{"before", before}, {"tokens", tokens}, {"at_once", at_once}}.dump() + "\n";
    std::fputs(line.c_str(), to_);
    std::fflush(to_);
    return answer("its process ended").at("seconds");
  }

 private:
  nlohmann::json answer(const std::string& failure) {
    std::string line;
    for (int c; (c = std::fgetc(from_)) != EOF && c != '\n';) line += static_cast<char>(c);
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) quipu::raise<quipu::FileError>("llama.cpp: " + failure);
    return json;
  }

  ::pid_t process_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::string version_, system_;
};

}  // namespace bench
