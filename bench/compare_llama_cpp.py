"""Compare quipu-generate with llama.cpp on the same GGUF file, prompt and number of threads.

    pip install llama-cpp-python
    python bench/compare_llama_cpp.py --quipu build/examples/quipu-generate -m model.gguf -t 2

The two take turns, so that a change of the machine's pace meets both; figures are medians over the
repetitions with the coefficient of variation, of wall time without loading: prefill is the whole
prompt in one pass, decoding is one token after the other, greedy. The load of the machine before and
after stands with the figures: threads that wait for each other in a busy loop, as llama.cpp's do,
lose more than theirs of a processor they must share.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import llama_cpp
import numpy

TEXT = ("A quipu keeps its numbers as knots on cords. The place of a knot says what it counts: ones near the end of the "
        "cord, tens above them, hundreds above those. A cord without a knot is a nought. ")


class LlamaCpp:
    def __init__(self, arguments, context):
        self.model = llama_cpp.Llama(arguments.model, n_ctx=context, n_batch=context, n_ubatch=512, verbose=False,
                                     n_threads=arguments.threads, n_threads_batch=arguments.threads)
        self.vocabulary = self.model.n_vocab()

    def likeliest(self):
        logits = llama_cpp.llama_get_logits_ith(self.model.ctx, -1)
        return int(numpy.ctypeslib.as_array(ctypes.cast(logits, ctypes.POINTER(ctypes.c_float)),
                                            (self.vocabulary,)).argmax())

    def run(self, prompt, count):
        self.model.reset()
        start = time.perf_counter()
        self.model.eval(prompt)
        ids = [self.likeliest()]
        prefilled = time.perf_counter()
        for _ in range(count):
            self.model.eval(ids[-1:])
            ids.append(self.likeliest())
        done = time.perf_counter()
        return {"prefill": len(prompt) / (prefilled - start), "decode": count / (done - prefilled)}, ids


class Quipu:
    def __init__(self, arguments, context, activations, prompt_file):
        self.command = [arguments.quipu, "-m", arguments.model, "-f", prompt_file, "-c", str(context), "-b", "512",
                        "-t", str(arguments.threads), "--temp", "0", "--ignore-eos", "--json",
                        "--activations", activations]

    def run(self, prompt, count):
        # The first token comes from the prompt's logits: `count` passes make one more.
        found = subprocess.run(self.command + ["-n", str(count + 1)], capture_output=True, text=True)
        if found.returncode != 0:
            sys.exit(found.stderr)
        result = json.loads(found.stdout)
        if result["prompt_ids"] != prompt:
            sys.exit("the two tokenizers give different ids for the prompt")
        return {"prefill": result["prompt_tokens_per_second"],
                "decode": result["generate_tokens_per_second"]}, result["ids"]


def summary(values):
    return {"median": statistics.median(values), "cv": statistics.stdev(values) / statistics.mean(values),
            "values": values}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quipu", required=True, help="the program quipu-generate")
    parser.add_argument("-m", "--model", required=True, help="a GGUF file")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-p", "--prompt-tokens", type=int, default=256, help="about as many tokens of prompt")
    parser.add_argument("-n", "--predict", type=int, default=64, help="tokens decoded")
    parser.add_argument("-r", "--repetitions", type=int, default=7, help="at least 5")
    parser.add_argument("--activations", nargs="+", choices=["f32", "int8"], default=["f32", "int8"])
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    arguments = parser.parse_args()
    if arguments.repetitions < 5:
        parser.error("at least 5 repetitions")

    context = arguments.prompt_tokens + 64 + arguments.predict
    llama = LlamaCpp(arguments, context)
    text = TEXT
    encode = lambda text: llama.model.tokenize(text.encode(), add_bos=True, special=False)
    while len(encode(text)) < arguments.prompt_tokens:
        text += TEXT
    while len(encode(text)) > arguments.prompt_tokens:
        text = text[:text.rstrip().rfind(" ")]
    prompt = encode(text)

    with tempfile.NamedTemporaryFile("w", suffix=".txt") as prompt_file:
        prompt_file.write(text)
        prompt_file.flush()
        engines = {"llama.cpp": llama}
        for activations in arguments.activations:
            engines[f"quipu, {activations} activations"] = Quipu(arguments, context, activations, prompt_file.name)
        rates = {name: {"prefill": [], "decode": []} for name in engines}
        load = [os.getloadavg()[0]]
        for repetition in range(arguments.repetitions + 1):
            for name, engine in engines.items():
                rate, _ = engine.run(prompt, arguments.predict)
                if repetition > 0:  # the first round warms up
                    for what, value in rate.items():
                        rates[name][what].append(value)
        load.append(os.getloadavg()[0])

    figures = {name: {what: summary(values) for what, values in rate.items()} for name, rate in rates.items()}
    for figure in figures.values():
        for what in figure:
            figure[what]["ratio"] = figure[what]["median"] / figures["llama.cpp"][what]["median"]
    report = {"model": os.path.basename(arguments.model), "threads": arguments.threads, "prompt_tokens": len(prompt),
              "decoded_tokens": arguments.predict, "repetitions": arguments.repetitions,
              "processors": len(os.sched_getaffinity(0)), "load_before": load[0], "load_after": load[1],
              "llama_cpp_python": llama_cpp.__version__,
              "llama_cpp_system": llama_cpp.llama_print_system_info().decode(), "figures": figures}
    print(f"{report['model']}, {report['threads']} threads, prompt of {len(prompt)} tokens, {arguments.predict} tokens "
          f"decoded, medians of {arguments.repetitions}; load of the machine {load[0]:.1f} before, {load[1]:.1f} after, "
          f"on {report['processors']} processors\n")
    print("| engine | prefill tokens/s | cv | to llama.cpp | decode tokens/s | cv | to llama.cpp |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, figure in figures.items():
        cells = [f"{figure[w]['median']:.1f} | {figure[w]['cv']:.1%} | {figure[w]['ratio']:.2f}" for w in ("prefill", "decode")]
        print(f"| {name} | {' | '.join(cells)} |")
    # Other programs' share of the processors: our own threads make up the load of a quiet machine.
    if max(load) > report["processors"] + 0.5:
        print("\nThe machine was busy with other work: these figures are no measure of either engine.")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump(report, out, indent=1)


main()
