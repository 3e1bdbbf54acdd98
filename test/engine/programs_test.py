#!/usr/bin/env python3
"""quipu-trace, quipu-convert and quipu-inspect as a user meets them: exit codes, stdout and stderr, the
files.

    python3 programs_test.py QUIPU_TRACE QUIPU_CONVERT QUIPU_INSPECT

The command line is judged always, the rest on SmolLM2 (QUIPU_SMOLLM2_GGUF, or
~/.cache/quipu/SmolLM2-135M-Instruct.Q4_1.gguf); without that file it is skipped by name.
"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TRACE, CONVERT, INSPECT = sys.argv[1:4]
MODEL = pathlib.Path(
    os.environ.get("QUIPU_SMOLLM2_GGUF")
    or pathlib.Path.home() / ".cache/quipu/SmolLM2-135M-Instruct.Q4_1.gguf")
needs_model = unittest.skipUnless(MODEL.is_file(), f"{MODEL} is not there")


def run(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def read_header(path):
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    ends = [r["data_offsets"][1] for n, r in header.items() if n != "__metadata__"]
    assert 8 + length + max(ends) == len(data)
    return header


class CommandLine(unittest.TestCase):
    def test_help_is_on_stdout_and_no_error(self):
        for program in (TRACE, CONVERT):
            code, out, err = run(program, "--help")
            self.assertEqual((code, err), (0, ""))
            self.assertIn("Examples:", out)
        self.assertIn("pytorch_parity.py", run(TRACE, "--help")[1])

    def test_wrong_command_lines_are_two(self):
        for arguments in (
            [TRACE],
            [TRACE, "-m", "x.gguf", "--tokens", "1,2"],  # neither --out nor --stats
            [TRACE, "-m", "x.gguf", "--stats"],  # nothing to run
            [TRACE, "-m", "x.gguf", "--stats", "--tokens", "1,b"],
            [TRACE, "-m", "x.gguf", "--stats", "--tokens", "1", "--mode", "f64"],
            [TRACE, "-m", "x.gguf", "--stats", "--tokens", "1", "--start-pos", "-1"],
            [TRACE, "-m", "x.gguf", "--stats", "--phases", "x.json", "--start-pos", "0"],
            [CONVERT, "x.gguf"],
            [CONVERT, "x.gguf", "y.gguf", "--type", "q3"],
            [CONVERT, "x.gguf", "y.quipu", "--pack", "--to", "gguf"],
            [CONVERT, "--generate", "stories15m"],
            [CONVERT, "--generate", "stories15m", "x.gguf", "y.gguf"],
            [CONVERT, "--generate", "stories14m", "no/such/y.gguf"],
            [CONVERT, "--generate", "stories15m", "--as", "stories15m", "no/such/y.gguf"],
            [CONVERT, "x.gguf", "y.gguf", "--seed", "2"],
            [INSPECT],
        ):
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertNotEqual(err, "")

    def test_what_would_change_nothing_is_named(self):
        err = run(CONVERT, "--generate", "stories15m", "--as", "stories15m", "no/such/y.gguf")[2]
        self.assertIn("--as excludes --generate", err)
        err = run(CONVERT, "x.gguf", "y.gguf", "--seed", "2")[2]
        self.assertIn("--seed requires --generate", err)

    def test_numbers_are_refused_as_typed(self):
        trace = (TRACE, "-m", "x.gguf", "--stats", "--tokens", "1")
        for program, option, values in (
            (trace, "--start-pos", ("-1", "2147483648", str(2**64), "1.5", "1e3")),
            (trace, "--ranks", ("0", str(2**64 + 1))),
            ((CONVERT, "x.gguf", "y.gguf"), "--parts", ("0", "-8", str(2**64 + 8))),
            ((CONVERT, "--generate", "stories15m", "y.gguf"), "--seed", ("-1", str(2**64))),
        ):
            for value in values:
                code, _, err = run(*program, f"{option}={value}")
                self.assertEqual(code, 2, (option, value))
                self.assertIn(f"{option}: expected an integer from", err)
                self.assertIn(f"found {value}", err)

    def test_help_names_every_form_of_a_tokenizer(self):
        out = run(CONVERT, "--help")[1]
        for form in ("tokenizer.model", "tokenizer.json", "SentencePiece"):
            self.assertIn(form, out)

    def test_phases_are_refused_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            phases = pathlib.Path(folder) / "phases.json"
            for phase, words in (
                ({"tokens": [[1, 4294967297]]}, ('phase "p": tokens', "4294967297")),
                ({"tokens": [[2**63 + 1]]}, ('phase "p": tokens', str(2**63 + 1))),
                ({"tokens": [[-1]]}, ('phase "p": tokens', "-1")),
                ({"tokens": [[1.5]]}, ('phase "p": tokens', "1.5")),
                ({"tokens": [1]}, ("expected [{",)),
                ({"tokens": [[1]], "start_pos": -3}, ('phase "p": start_pos', "-3")),
            ):
                phases.write_text(json.dumps([{"name": "p", **phase}]))
                code, out, err = run(TRACE, "-m", "x.gguf", "--stats", "--phases", phases)
                self.assertEqual((code, out), (1, ""), phase)
                for word in words:
                    self.assertIn(word, err)

    def test_versions_and_directories(self):
        for program in (TRACE, CONVERT):
            self.assertRegex(run(program, "--version")[1], r"^quipu \d+\.\d+")
        code, _, err = run(TRACE, "-m", "x.gguf", "--stats", "--phases", tempfile.gettempdir())
        self.assertEqual(code, 1)
        self.assertIn(tempfile.gettempdir() + ": is a directory", err)
        for wrong in (["--chunk", "0"], ["-t", "-1"]):
            code, _, err = run(TRACE, "-m", "x.gguf", "--stats", "--tokens", "1", *wrong)
            self.assertEqual(code, 2)
            self.assertIn("expected an integer from", err)

    def test_missing_files_are_one_and_named(self):
        for arguments in ([TRACE, "-m", "no/such.gguf", "--stats", "--tokens", "1"],
                          [CONVERT, "no/such.gguf", "y.gguf"]):
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (1, ""), arguments)
            self.assertIn("no/such.gguf", err)


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()


class Names(InFolder):
    """A file may call its tensors anything."""

    def test_no_escape_sequence_of_a_file_reaches_the_terminal(self):
        name = "\x1b[2J\x1b]0;title\x07\u009b31m"
        header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                             "n" * 100_000: {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}).encode()
        file = self.path / "model.safetensors"
        file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
        phases = self.path / "phases.json"
        phases.write_text(json.dumps([{"name": name, "tokens": [[1.5]]}]))
        for arguments in ((INSPECT, file), (INSPECT, file, "--as", "stories15m"),
                          (CONVERT, file, self.path / "x.gguf"),
                          (CONVERT, file, self.path / "x.gguf", "--as", "stories15m"),
                          (TRACE, "-m", file, "--stats", "--phases", phases)):
            code, out, err = run(*arguments)
            self.assertEqual(code, 1, arguments)
            self.assertFalse({"\x1b", "\x07", "\u009b"} & set(out + err), arguments)
            self.assertLess(max(map(len, (out + err).splitlines())), 400, arguments)
        code, out, _ = run(INSPECT, file, "--json")
        self.assertTrue(out.isascii())
        self.assertEqual(code, 1)
        self.assertIn(name, [t["name"] for t in json.loads(out)["tensors"]])
        self.assertIn("\\x1b[2J\\x1b]0;title\\x07\\xc2\\x9b31m", run(INSPECT, file)[1])


class GeneratedModel(InFolder):
    """Made-up weights of stories15m (15 million), so that no file is needed."""

    def test_a_packed_file_is_traced_the_same(self):
        plain, packed = self.path / "m.gguf", self.path / "m.quipu"
        code, out, err = run(CONVERT, "--generate", "stories15m", "--type", "q8_0", plain)
        self.assertEqual((code, out), (0, ""), err)
        code, _, err = run(CONVERT, "--pack", plain, packed)
        self.assertEqual(code, 0, err)
        self.assertIn("every value kept", err)
        stats = []
        for file in (plain, packed):
            code, text, err = run(TRACE, "--model", file, "--tokens", "1,2,3", "--stats")
            self.assertEqual(code, 0, err)
            self.assertGreater(len(text.splitlines()), 50)
            stats.append(text)
        self.assertEqual(stats[0], stats[1])

        # What is there is replaced only by request, the checkpoint never.
        trace = [TRACE, "-m", plain, "--tokens", "1", "--select", "norm", "--out"]
        out = self.path / "t.safetensors"
        self.assertEqual(run(*trace, out)[0], 0)
        code, _, err = run(*trace, out)
        self.assertEqual(code, 2)
        self.assertIn("there is a file of this name already", err)
        self.assertEqual(run(*trace, out, "--force")[0], 0)
        before = plain.read_bytes()
        code, _, err = run(*trace, plain, "--force")
        self.assertEqual(code, 2)
        self.assertIn("is the checkpoint", err)
        self.assertEqual(plain.read_bytes(), before)

        # A pattern that fits nothing is refused before the weights are loaded.
        code, _, err = run(TRACE, "-m", plain, "--tokens", "1", "--stats", "--select", "layers.9.h")
        self.assertEqual(code, 2)
        self.assertIn('no tensor has an id like "layers.9.h"', err)
        self.assertNotIn("running", err)
        with open("/dev/full", "w") as full:
            done = subprocess.run([TRACE, "-m", plain, "--tokens", "1", "--stats"], stdout=full,
                                  stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)

    def test_an_interrupted_conversion_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for to in ("m.gguf", "m"):
                # The signals' default, also where the test itself runs with SIGINT ignored.
                process = subprocess.Popen(
                    [CONVERT, "--generate", "llama3_2_1b", "--type", "f32", self.path / to],
                    stderr=subprocess.PIPE, text=True,
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
                self.addCleanup(process.kill)
                deadline = time.monotonic() + 60
                while not any(self.path.iterdir()) and time.monotonic() < deadline:
                    time.sleep(0.01)
                self.assertIn(".partial-", next(self.path.iterdir()).name)
                process.send_signal(number)
                _, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, -number)
                self.assertIn("interrupted", err)
                self.assertEqual(list(self.path.iterdir()), [])

    def test_torch_reads_the_parts(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not there")
        parts = []
        for count in (1, 2):
            folder = self.path / str(count)
            code, _, err = run(CONVERT, "--generate", "stories15m", "--type", "bf16", "--to",
                               "meta", "--parts", count, folder)
            self.assertEqual(code, 0, err)
            files = sorted(folder.glob("consolidated.*.pth"))
            self.assertEqual([f.name for f in files],
                             [f"consolidated.{i:02}.pth" for i in range(count)])
            for mmap in (False, True):
                loaded = [torch.load(f, weights_only=True, mmap=mmap) for f in files]
            parts.append(loaded)
        (whole,), (first, second) = parts
        self.assertEqual(list(whole), list(first))
        for name, tensor in whole.items():
            self.assertEqual(tensor.dtype, torch.bfloat16)
            if tensor.dim() == 1:
                merged = first[name]
                self.assertTrue(torch.equal(merged, second[name]), name)
            else:
                axis = 1 if name.endswith(("wo.weight", "w2.weight")) else 0
                merged = torch.cat([first[name], second[name]], axis)
            self.assertTrue(torch.equal(tensor, merged), name)


@needs_model
class RealModel(InFolder):
    def test_trace_writes_what_was_selected(self):
        out = self.path / "t.safetensors"
        code, text, err = run(TRACE, "-m", MODEL, "--tokens", "504,3575;282,4649", "--select",
                              "layers.2?.attention.update,logits", "--stats", "--out", out)
        self.assertEqual(code, 0, err)
        header = read_header(out)
        self.assertEqual(header["logits"]["shape"], [2, 2, 49152])
        self.assertEqual(header["layers.29.attention.wo"]["shape"], [2, 2, 576])
        self.assertEqual(len(header), 1 + 2 + 10 + 1)
        self.assertEqual(len(text.splitlines()), 1 + 11)

    def test_a_converted_file_is_traced_the_same(self):
        phases = self.path / "phases.json"
        phases.write_text(json.dumps([{"name": "prefill", "tokens": [[504, 3575, 282]]},
                                      {"name": "decode", "tokens": [[4649]]}]))
        copy = self.path / "copy.gguf"
        code, out, err = run(CONVERT, MODEL, copy)
        self.assertEqual((code, out), (0, ""), err)
        self.assertIn("every value kept", err)
        self.assertEqual(run(CONVERT, MODEL, copy)[0], 2)  # the name is taken
        traces = []
        for file in (MODEL, copy):
            trace = self.path / "t.safetensors"
            code, _, err = run(TRACE, "-m", file, "--phases", phases, "--select", "logits",
                               "--out", trace, "--force")
            self.assertEqual(code, 0, err)
            header = read_header(trace)
            self.assertEqual(header["decode/start_pos"]["shape"], [1])
            raw = trace.read_bytes()
            begin, end = header["decode/logits"]["data_offsets"]
            traces.append(raw[len(raw) - max(r["data_offsets"][1] for n, r in header.items()
                                             if n != "__metadata__"):][begin:end])
        self.assertEqual(traces[0], traces[1])
        self.assertEqual(sorted(p.name for p in self.path.iterdir()),
                         ["copy.gguf", "phases.json", "t.safetensors"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
