"""Make two small vocabularies of our own, and record what llama.cpp's tokenizer makes of them.

    pip install llama-cpp-python gguf
    python test/text/record_small.py

writes test/data/text/small_bpe.json and small_spm.json (the fields of VocabularyData) and the ids
small_bpe_ids.jsonl (for each pre-tokenizer) and small_spm_ids.jsonl. So every pre-tokenizer and both
ways of merging are tested against another implementation without any file of others.
"""
import collections
import json
import pathlib
import re
import tempfile

import gguf
import llama_cpp

from record_texts import PLAIN, WORDS, texts

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "text"
PRE = ["llama-bpe", "smollm", "gpt-2", "qwen2", "default"]
MARK = "\u2581"

CORPUS = " ".join(WORDS) + " " + " ".join(PLAIN) + """
A quipu keeps its numbers as knots on cords. The place of a knot says what it counts: ones near the end of the cord, tens above
them, hundreds above those. A cord without a knot is a nought. Cords hang from a main cord, and one that sums the others is tied
to the other side. The keepers of the cords read them with their fingers, and their accounts were exact.
the there then these others other mother weather whether together gather rather father feather
"""


def merge(symbols, left, right):
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and symbols[i] == left and symbols[i + 1] == right:
            out.append(left + right)
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)


def learn(words, merges):
    """The most frequent pair first, ties by text, so that every run makes the same list."""
    learnt = []
    for _ in range(merges):
        pairs = collections.Counter()
        for word, n in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += n
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        if pairs[best] < 2:
            break
        learnt.append(best)
        joined = collections.Counter()
        for word, n in words.items():
            joined[merge(word, *best)] += n
        words = joined
    return learnt


def byte_alphabet():
    shown = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or 0xAE <= b]
    letters, more = {b: chr(b) for b in shown}, 0
    for b in range(256):
        if b not in letters:
            letters[b] = chr(0x100 + more)
            more += 1
    return letters


def small_bpe():
    letters = byte_alphabet()
    words = collections.Counter()
    for word in re.findall(r" ?\w+| ?[^\w\s]+|\s+", CORPUS):
        words[tuple(letters[b] for b in word.encode())] += 1
    merges = learn(words, 700)
    tokens = ["<|begin|>", "<|end|>", "<unk>"] + [letters[b] for b in range(256)]
    types = [3, 3, 2] + [1] * 256
    for left, right in merges:
        if left + right not in tokens:
            tokens.append(left + right)
            types.append(1)
    tokens += ["<knot>", "<|im_end|>"]
    types += [4, 3]
    return {"model": "gpt2", "tokens": tokens, "token_types": types, "merges": [" ".join(m) for m in merges],
            "bos": 0, "eos": 1, "unknown": 2}


def small_spm():
    # Without texts in angle brackets: llama.cpp takes a normal token "<|im_end|>" for a control token.
    words = collections.Counter()
    for word in re.findall(r" *[^ ]+| +", " " + re.sub(r"<\S*", "", CORPUS)):
        words[tuple(word.replace(" ", MARK))] += 1
    merges = learn(words, 700)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    scores = [0.0] * len(tokens)
    types = [2, 3, 3] + [6] * 256
    for i, (left, right) in enumerate(merges):
        if left + right not in tokens:
            tokens.append(left + right)
            scores.append(float(-i))
            types.append(1)
    # All single characters but a few, which are left to the byte tokens.
    for c in sorted(set(CORPUS.replace(" ", MARK)) - set("\n\U0001f642\u6c34\u0000\u03c0")):
        tokens.append(c)
        scores.append(float(-len(tokens)))
        types.append(1)
    tokens.append("<knot>")
    scores.append(0.0)
    types.append(4)
    return {"model": "llama", "tokens": tokens, "scores": scores, "token_types": types,
            "bos": 1, "eos": 2, "unknown": 0, "add_space_prefix": True}


def load(vocabulary, pre):
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "vocabulary.gguf")
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_tokenizer_model(vocabulary["model"])
        if pre:
            writer.add_tokenizer_pre(pre)
        writer.add_token_list(vocabulary["tokens"])
        writer.add_token_types(vocabulary["token_types"])
        if "scores" in vocabulary:
            writer.add_token_scores(vocabulary["scores"])
            writer.add_add_space_prefix(vocabulary["add_space_prefix"])
        if "merges" in vocabulary:
            writer.add_token_merges(vocabulary["merges"])
        writer.add_bos_token_id(vocabulary["bos"])
        writer.add_eos_token_id(vocabulary["eos"])
        writer.add_unk_token_id(vocabulary["unknown"])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return llama_cpp.Llama(path, vocab_only=True, verbose=False)


def dump(name, rows):
    with open(OUT / name, "w", encoding="utf-8", newline="\n") as f:
        for row in rows:
            f.write(json.dumps(row, ensure_ascii=True, separators=(",", ":")) + "\n")


def record(llama, special_texts):
    for text in list(texts())[:: 1 if special_texts else 2] + special_texts:
        for special in (False, True) if "<" in text else (False,):
            yield text, special, llama.tokenize(text.encode(), add_bos=False, special=special)


def main():
    special = ["a <knot> b", "<knot><knot>", "<|begin|>x<|end|>", "<unk>", "x<s>y</s> z", " <s> a", "<s><s>a", "<|im_end|> a", "<0x41>"]
    bpe, spm = small_bpe(), small_spm()
    dump("small_bpe.json", [bpe])
    dump("small_spm.json", [spm])
    rows = collections.defaultdict(list)
    for pre in PRE:
        for text, parse, ids in record(load(bpe, pre), special):
            rows[text, parse].append(ids)
    dump("small_bpe_ids.jsonl", [{"text": text, "special": parse, "ids": dict(zip(PRE, ids))} for (text, parse), ids in rows.items()])
    dump("small_spm_ids.jsonl", [{"text": t, "special": s, "ids": ids} for t, s, ids in record(load(spm, None), special)])


main()
