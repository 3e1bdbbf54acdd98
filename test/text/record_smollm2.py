"""Record ids of SmolLM2's tokenizer as llama.cpp computes them, as test data for quipu.

    pip install llama-cpp-python jinja2
    python test/text/record_smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf

writes test/data/text/smollm2_ids.jsonl (text, special, ids) and smollm2_chat.jsonl (messages, ids:
the file's own chat template run by Jinja, then encoded with special tokens). Texts that llama.cpp
changes before tokenizing (bytes that are not UTF-8) are left out: there is no reference for them.
"""
import json
import pathlib
import sys

import jinja2.sandbox
import llama_cpp

from record_texts import texts

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "text"

CHATS = [
    [("user", "Hello!")],
    [("system", "Be brief."), ("user", "What is 2+2?")],
    [("user", "What is 2+2?"), ("assistant", "4"), ("user", " and 3+3? ")],
    [("user", "")],
    [("user", "Gravity <keeps> us|here\n\n"), ("assistant", " \u00e9\u00df \U0001f642")],
    [("system", ""), ("user", "x")],
    [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "1 2\n3")],
]


def write(name, rows):
    with open(OUT / name, "w", encoding="utf-8", newline="\n") as f:
        for row in rows:
            f.write(json.dumps(row, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    llama = llama_cpp.Llama(sys.argv[1], vocab_only=True, verbose=False)
    encode = lambda text, special: llama.tokenize(text.encode("utf-8"), add_bos=False, special=special)
    rows = []
    for text in texts():
        for special in (False, True) if "<" in text else (False,):
            rows.append({"text": text, "special": special, "ids": encode(text, special)})
    write("smollm2_ids.jsonl", rows)

    template = jinja2.sandbox.ImmutableSandboxedEnvironment().from_string(llama.metadata["tokenizer.chat_template"])
    rows = []
    for chat in CHATS:
        messages = [{"role": role, "content": content} for role, content in chat]
        for prompt in (True, False):
            text = template.render(messages=messages, add_generation_prompt=prompt)
            rows.append({"messages": messages, "add_generation_prompt": prompt, "ids": encode(text, True)})
    write("smollm2_chat.jsonl", rows)


main()
