"""quipu-generate as a user runs it: what goes to stdout and what to stderr, JSON, seeds, ends, exit
codes. On a model with the dimensions of stories15m and weights made up here, so that no file is
needed; and once on SmolLM2 (QUIPU_SMOLLM2_GGUF, or
~/.cache/quipu/SmolLM2-135M-Instruct.Q4_1.gguf), skipped by name without that file.

    program_test.py PATH_OF_QUIPU_GENERATE
"""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
SMOLLM2 = os.environ.get("QUIPU_SMOLLM2_GGUF") or os.path.expanduser(
    "~/.cache/quipu/SmolLM2-135M-Instruct.Q4_1.gguf")
DIM, LAYERS, HEADS, FFN, VOCABULARY, CONTEXT = 288, 6, 6, 768, 32000, 4000
SPACE = "\u2581"


def write_model(path):
    """A GGUF file of stories15m: Q8_0 matrices of random weights, norms of ones."""
    def text(s):
        data = s if isinstance(s, bytes) else s.encode()
        return struct.pack("<Q", len(data)) + data

    def uint(v):
        return struct.pack("<II", 4, v)

    def real(v):
        return struct.pack("<If", 6, v)

    def array(kind, items):
        return struct.pack("<IIQ", 9, kind, len(items)) + b"".join(items)

    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    tokens += [SPACE] + [chr(c) for c in range(ord("a"), ord("z") + 1)]
    tokens += [f"{SPACE}w{i}" for i in range(VOCABULARY - len(tokens))]
    kinds += [1] * (VOCABULARY - len(kinds))
    metadata = {
        "general.architecture": struct.pack("<I", 8) + text("llama"),
        "general.name": struct.pack("<I", 8) + text("stories15m"),
        "llama.embedding_length": uint(DIM), "llama.block_count": uint(LAYERS),
        "llama.feed_forward_length": uint(FFN), "llama.attention.head_count": uint(HEADS),
        "llama.attention.head_count_kv": uint(HEADS), "llama.context_length": uint(CONTEXT),
        "llama.attention.layer_norm_rms_epsilon": real(1e-5), "llama.rope.freq_base": real(10000),
        "tokenizer.ggml.model": struct.pack("<I", 8) + text("llama"),
        "tokenizer.ggml.tokens": array(8, [text(t) for t in tokens]),
        "tokenizer.ggml.scores": array(6, [struct.pack("<f", -i) for i in range(VOCABULARY)]),
        "tokenizer.ggml.token_type": array(5, [struct.pack("<i", k) for k in kinds]),
        "tokenizer.ggml.bos_token_id": uint(1), "tokenizer.ggml.eos_token_id": uint(2),
    }
    matrices = {"token_embd": (DIM, VOCABULARY)}
    vectors = ["output_norm"]
    for n in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrices[f"blk.{n}.{name}"] = (DIM, DIM)
        matrices[f"blk.{n}.ffn_gate"] = matrices[f"blk.{n}.ffn_up"] = (DIM, FFN)
        matrices[f"blk.{n}.ffn_down"] = (FFN, DIM)
        vectors += [f"blk.{n}.attn_norm", f"blk.{n}.ffn_norm"]
    rng = random.Random(1)
    # Blocks of Q8_0: scale 2^-9 as float16, 32 integers; a prime number of blocks, over and over.
    blocks = b"".join(b"\x00\x18" + rng.randbytes(32) for _ in range(10007))
    infos, data = b"", []
    offset = 0
    for name, extents in list(matrices.items()) + [(v, (DIM,)) for v in vectors]:
        matrix = len(extents) == 2
        size = extents[0] * extents[1] // 32 * 34 if matrix else DIM * 4
        infos += text(name + ".weight") + struct.pack("<I", len(extents))
        infos += b"".join(struct.pack("<Q", e) for e in extents)
        infos += struct.pack("<IQ", 8 if matrix else 0, offset)
        start = offset % len(blocks) // 34 * 34
        content = ((blocks * (size // len(blocks) + 2))[start:start + size] if matrix
                   else struct.pack("<f", 1) * DIM)
        data.append(content + bytes(-size % 32))
        offset += len(data[-1])
    head = b"GGUF" + struct.pack("<IQQ", 3, len(matrices) + len(vectors), len(metadata))
    head += b"".join(text(k) + v for k, v in metadata.items()) + infos
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + b"".join(data))


class Generate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = os.path.join(cls.folder.name, "model.gguf")
        write_model(cls.model)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_program(self, *arguments, stdin="", code=0, model=True):
        command = [PROGRAM] + (["-m", self.model] if model else []) + list(arguments)
        done = subprocess.run(command, input=stdin.encode(), capture_output=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def run_json(self, *arguments, **others):
        return json.loads(self.run_program("--json", *arguments, **others)[0])

    def refused(self, code, words, *arguments, **others):
        out, err = self.run_program(*arguments, code=code, **others)
        self.assertEqual(out, "")
        self.assertIn(words, err)

    def file(self, name, data):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_help_names_every_flag_and_the_exit_codes(self):
        out, err = self.run_program("--help", model=False)
        for word in ("-m", "-p", "-f", "-n", "-c", "-t", "-s", "--temp", "--top-k", "--top-p",
                     "--chat", "--json", "--logprobs", "--stop", "--stop-id", "Exit codes", "Ctrl-C"):
            self.assertIn(word, out)
        self.assertEqual(err, "")
        self.assertRegex(self.run_program("--version", model=False)[0], r"^quipu \d+\.\d+")

    def test_a_wrong_command_line_is_code_2_and_one_message(self):
        self.refused(2, "--model is required", model=False)
        self.refused(2, "--no-such-flag", "-p", "a", "--no-such-flag")
        for option, value, least in (("-n", "-2", -1), ("-c", "-1", 0), ("-c", "9" * 30, 0), ("-b", "0", 1),
                                     ("-t", "-1", 0), ("-s", "18446744073709551616", -1),
                                     ("-s", "-2", -1), ("-s", "4x", -1), ("--stop-id", "-1", 0)):
            self.refused(2, f"expected an integer from {least} to", "-m", "none", "-p", "a", option, value,
                         model=False)
        self.refused(2, "-c: a context of 2000000000 positions cannot be had: KV cache", "-p", "a", "-c",
                     "2000000000")
        self.refused(2, "--save: " + self.model + " is the checkpoint", "-p", "a", "--save", self.model)
        self.refused(2, "--resume", "--resume", "none", "--chat")
        self.refused(2, "temperature: expected a finite number >= 0", "-p", "a", "--temp", "nan")
        self.refused(2, "temperature: expected", "-p", "a", "--temp", "-1")
        self.refused(2, "top_p: expected a number from 0 to 1", "-p", "a", "--top-p", "1.5")
        self.refused(2, "--top-k: expected an integer", "-p", "a", "--top-k", "-1")
        self.refused(2, "--file", "-p", "a", "-f", "b")
        self.refused(2, "--cache", "-p", "a", "--cache", "f64")
        self.refused(2, "--logprobs", "-p", "a", "--logprobs")
        self.refused(2, "stop string", "-p", "a", "--stop", "")
        self.refused(2, "the prompt is empty")
        self.refused(2, "model 'gpt2' is not compiled in", "-p", "a", "--as", "gpt2")
        out, err = self.run_program("-p", "a b c d e f", "-c", "5", code=2)
        self.assertEqual(out, "")
        self.assertRegex(err, r"the prompt has \d+ tokens, the context 5 positions \(-c\)")

    def test_an_unusable_file_is_code_1_and_named(self):
        missing = os.path.join(self.folder.name, "missing")
        self.refused(1, missing, "-m", missing, "-p", "a", model=False)
        self.refused(1, missing, "-f", missing)
        self.refused(1, self.folder.name + ": is a directory", "-f", self.folder.name)
        self.refused(1, missing, "--resume", missing)
        garbage = self.file("garbage.gguf", b"GGUF" + bytes(range(256)))
        self.refused(1, garbage, "-m", garbage, "-p", "a", model=False)
        with open(self.model, "rb") as whole:
            cut = self.file("cut.gguf", whole.read()[:-1000])
        self.refused(1, cut, "-m", cut, "-p", "a", model=False)

    def test_text_goes_to_stdout_and_all_else_to_stderr(self):
        arguments = ("-p", "a story", "-n", "8", "--temp", "0", "-s", "5")
        out, err = self.run_program(*arguments)
        self.assertEqual(out, self.run_json(*arguments)["text"] + "\n")
        for word in ("model    stories15m (15,191,712 parameters)", "KV cache", "seed     5\n",
                     "threads", "prompt   ", "generate 8 tokens", "max tokens"):
            self.assertIn(word, err)
            self.assertNotIn(word, out)
        self.assertNotIn("\033", err, "no bar where stderr is no terminal")
        self.assertNotIn("\r", err)

    def test_json_has_the_run(self):
        run = self.run_json("-p", "a story", "-n", "6", "-s", "9", "--logprobs", "-c", "100")
        self.assertEqual(run["model"], "stories15m")
        self.assertEqual(run["parameters"], 15191712)
        self.assertEqual(run["context"], 100)
        self.assertEqual(run["kv_cache_bytes"], LAYERS * DIM * 4 * (112 + 100))
        self.assertEqual((run["seed"], len(run["ids"]), len(run["logprobs"])), (9, 6, 6))
        self.assertEqual(run["finish_reason"], "max tokens")
        self.assertEqual(run["prompt_ids"][0], 1)
        self.assertTrue(all(p <= 0 for p in run["logprobs"]))
        self.assertNotIn("logprobs", self.run_json("-p", "a", "-n", "1"))
        none = self.run_json("-p", "a story", "-n", "0")
        self.assertEqual((none["ids"], none["text"]), ([], ""))

    def test_a_seed_fixes_the_tokens_for_any_number_of_threads(self):
        arguments = ("-p", "once", "-n", "12", "--temp", "1.2")
        first = self.run_json(*arguments)
        seed = str(first["seed"])
        self.assertEqual(self.run_json(*arguments, "-s", seed, "-t", "1")["ids"], first["ids"])
        self.assertEqual(self.run_json(*arguments, "--seed", seed, "-t", "3", "-b", "2")["ids"],
                         first["ids"])
        other = str(int(seed) ^ 1)
        self.assertNotEqual(self.run_json(*arguments, "-s", other)["ids"], first["ids"])

    def test_minus_one_is_a_random_seed_and_model_is_a_file(self):
        arguments = ("--model", self.model, "-p", "a", "-n", "1", "-s")
        seeds = {self.run_json(*arguments, "-1", model=False)["seed"] for _ in range(2)}
        self.assertEqual(len(seeds), 2)
        self.assertNotIn(2**64 - 1, seeds)
        most = self.run_json(*arguments, str(2**64 - 1), model=False)
        self.assertEqual(most["seed"], 2**64 - 1)

    def test_a_saved_generation_goes_on_bit_equal(self):
        state = os.path.join(self.folder.name, "state")
        arguments = ("-p", "a story", "--temp", "1.1", "--top-k", "0", "-s", "77", "--logprobs", "--ignore-eos")
        whole = self.run_json(*arguments, "-n", "12")
        first = self.run_json(*arguments, "-n", "5", "--save", state)
        rest = self.run_json("--resume", state, "-n", "12", "--logprobs", "--ignore-eos", "-t", "1")
        self.assertEqual(first["ids"], whole["ids"][:5])
        self.assertEqual(rest["ids"], whole["ids"][5:])
        self.assertEqual(rest["logprobs"], whole["logprobs"][5:])
        self.assertEqual((rest["seed"], rest["resumed_tokens"]), (77, len(whole["prompt_ids"]) + 5))
        more = self.run_json("--resume", state, "-p", " and so", "-n", "2")
        self.assertNotIn(1, more["prompt_ids"], "no second begin-of-text")
        self.refused(1, "temperature: it was saved with", "--resume", state, "--temp", "0.5")
        self.refused(1, "cache: it was saved with f32, here is bf16", "--resume", state, "--cache", "bf16")
        with open(self.model, "rb") as file:
            data = bytearray(file.read())
        data[-8] ^= 1  # of the last norm
        self.refused(1, "weights: it was saved with", "-m", self.file("other.gguf", data), "--resume", state,
                     model=False)
        with open(state, "rb") as file:
            data = bytearray(file.read())
        data[-1] ^= 1
        self.refused(1, "the checksum does not fit", "--resume", self.file("damaged", data))

    def test_the_prompt_comes_from_an_argument_a_file_or_standard_input(self):
        story = "a story\n"
        path = self.file("prompt.txt", story.encode())
        expected = self.run_json("-p", story, "-n", "0")["prompt_ids"]
        self.assertEqual(self.run_json("-f", path, "-n", "0")["prompt_ids"], expected)
        self.assertEqual(self.run_json("-f", "-", "-n", "0", stdin=story)["prompt_ids"], expected)
        self.assertEqual(self.run_json("-n", "0", stdin=story)["prompt_ids"], expected)

    def test_it_ends_at_the_capacity_at_stop_tokens_and_at_stop_texts(self):
        run = self.run_json("-p", "a", "-n", "-1", "-c", "24", "--temp", "0", "--ignore-eos")
        self.assertEqual(run["finish_reason"], "capacity")
        self.assertEqual(len(run["prompt_ids"]) + len(run["ids"]), 24)
        self.assertEqual(self.run_json("-p", "a", "-n", "1", "-c", "0")["context"], CONTEXT)
        self.assertEqual(self.run_json("-p", "a", "-n", "1")["context"], CONTEXT)
        arguments = ("-p", "a", "-n", "16", "-s", "3", "--temp", "1")
        free = self.run_json(*arguments)
        stop = free["ids"][5]
        stopped = self.run_json(*arguments, "--stop-id", "31999", "--stop-id", str(stop))
        self.assertEqual(stopped["finish_reason"], "stop token")
        self.assertEqual(stopped["ids"], free["ids"][:free["ids"].index(stop)])
        words = free["text"][9:14]
        for extra in ([], ["--stop", "never met"]):
            stopped = self.run_json(*arguments, "-r", words, *extra)
            self.assertEqual(stopped["finish_reason"], "stop string")
            self.assertEqual(stopped["text"], free["text"][:free["text"].index(words)])
        out, _ = self.run_program(*arguments, "--stop", words)
        self.assertEqual(out, free["text"][:free["text"].index(words)] + "\n")

    def test_ctrl_c_ends_the_generation_and_keeps_what_there_is(self):
        process = subprocess.Popen(
            [PROGRAM, "-m", self.model, "-p", "a", "-n", "-1", "-c", "0", "--ignore-eos"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 130)
        self.assertTrue((first + out).endswith(b"\n"))
        self.assertIn(b"(cancelled)", err)

    def test_ctrl_c_ends_a_long_prompt_at_once(self):
        prompt = self.file("long.txt", b"a story and " * 300)
        process = subprocess.Popen(
            [PROGRAM, "-m", self.model, "-f", prompt, "-b", "4000", "-c", "0", "-t", "1"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stderr:
            if line.startswith(b"seed"):
                break
        time.sleep(0.3)  # the pass of the whole prompt takes many seconds
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"prompt   0 tokens", err)

    @unittest.skipUnless(os.path.exists("/dev/full"), "/dev/full is not on this system")
    def test_an_output_that_cannot_be_written_is_code_1(self):
        for extra in ([], ["--json"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, "-m", self.model, "-p", "a", "-n", "4", *extra],
                                      stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                                      timeout=300)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"standard output", done.stderr)

    @unittest.skipUnless(os.path.exists(SMOLLM2), f"{SMOLLM2} is not on this machine")
    def test_smollm2_answers_and_stops(self):
        run = self.run_json("-m", SMOLLM2, "--chat", "-p", "What is the capital of France?", "--temp",
                            "0", "-n", "100", model=False)
        self.assertIn("Paris", run["text"])
        self.assertEqual(run["finish_reason"], "stop token")


if __name__ == "__main__":
    unittest.main(verbosity=2)
