"""Record SmolLM2's greedy continuations by llama.cpp, and its exact logits by NumPy, as test data.

    pip install llama-cpp-python gguf
    python test/engine/record_smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf

writes test/data/engine/smollm2_llama_cpp.json: per prompt the ids of its text, and for each step the
ids and logits of llama.cpp's best candidates (the first is the one chosen; first minus second is the
gap) with the `exact` logits of the same ids by numpy_llama.py; and smollm2_float64.json: for two of
the prompts the exact best candidates of the same steps, with llama.cpp's logits beside them.
llama.cpp rounds activations to 8 bits and keys and values to float16, so its logits are not exact:
the pairs of numbers show how far it is off, and where that decides between two candidates.
"""
import json
import pathlib
import sys

import llama_cpp
import numpy

import numpy_llama

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "engine"
STEPS = 32
SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
PROMPTS = [
    "The knotted cords of the Inca were used to",
    "Once upon a time, in a village at the foot of a mountain, there lived",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    SYSTEM + "<|im_start|>user\nWhat is the capital of Peru?<|im_end|>\n<|im_start|>assistant\n",
    SYSTEM + "<|im_start|>user\nExplain in two sentences why the sky is blue.<|im_end|>\n<|im_start|>assistant\n",
]
EXACT = [0, 3]  # prompts whose exact logits are recorded


def best(logits, count):
    ids = numpy.argsort(-logits, kind="stable")[:count]
    return {"ids": ids.tolist(), "logits": rounded(logits[ids])}


def rounded(logits):
    return [float(f"{x:.7g}") for x in logits]


def beside(step, name, others):
    """The step with another computation's logits of the same ids."""
    return step | {name: rounded(others[step["ids"]])}


def greedy(llama, ids):
    """Tokens by the largest logit alone (no sampler, no stop token) and the logits of each step."""
    llama.reset()
    llama.eval(ids)
    rows = []
    for step in range(STEPS):
        rows.append(numpy.array(llama.scores[llama.n_tokens - 1], numpy.float64))
        if step + 1 < STEPS:
            llama.eval([int(rows[-1].argmax())])
    return numpy.stack(rows)


def write(name, value):
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for opening in ('{"text"', '{"prompt"', '{"ids"'):
        text = text.replace(opening, "\n" + opening)
    (OUT / name).write_text(text + "\n", encoding="utf-8", newline="\n")


def main():
    llama = llama_cpp.Llama(sys.argv[1], n_ctx=256, n_threads=1, n_threads_batch=1, logits_all=True, verbose=False)
    prompts = [llama.tokenize(p.encode(), add_bos=False, special=True) for p in PROMPTS]
    theirs = [greedy(llama, ids) for ids in prompts]
    chosen = [rows.argmax(-1).tolist() for rows in theirs]

    exact = numpy_llama.Model(sys.argv[1]).forward([p + c[:-1] for p, c in zip(prompts, chosen)])
    exact = [rows[-STEPS:] for rows in exact]

    write("smollm2_llama_cpp.json", [
        {"text": text, "prompt": ids, "steps": [beside(best(row, 4), "exact", other) for row, other in zip(rows, truth)]}
        for text, ids, rows, truth in zip(PROMPTS, prompts, theirs, exact)])
    write("smollm2_float64.json", [
        {"prompt": prompts[i], "fed": chosen[i][:-1], "steps": [beside(best(row, 20), "llama_cpp", other) for row, other in zip(exact[i], theirs[i])]}
        for i in EXACT])
    for text, ids, rows, truth in zip(PROMPTS, chosen, theirs, exact):
        two = numpy.sort(rows, -1)[:, -2:]
        print(repr(llama.detokenize(ids).decode(errors="replace")), "least gap", (two[:, 1] - two[:, 0]).min(),
              "largest error", abs(rows - truth).max(), "agree", (truth.argmax(-1) == rows.argmax(-1)).sum())


main()
