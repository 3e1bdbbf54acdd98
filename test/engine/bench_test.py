"""quipu-bench as a user runs it: tables, CSV, JSON, pictures, a profile, exit codes. On a file with the
dimensions of stories15m and made-up weights (test/generate/program_test.py writes it).

    bench_test.py PATH_OF_QUIPU_BENCH PATH_OF_QUIPU_GENERATE
"""

import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BENCH, GENERATE = sys.argv[1], sys.argv[2]
del sys.argv[1]  # the other test takes the first argument that is left
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "generate"))
import program_test  # noqa: E402

LAYERS = program_test.LAYERS
KINDS = 15  # components of a block


def run(*arguments, code=0, program=BENCH):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stdout, done.stderr


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.model = cls.path / "model.gguf"
        program_test.write_model(cls.model)
        cls.quick = ("-m", cls.model, "-p", "16", "-n", "3", "-r", "2", "-t", "1")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_json_has_every_combination(self):
        out, _ = run(*self.quick, "-d", "0,40", "-b", "1,3", "--activations", "f32,int8", "--cache",
                     "f32,bf16", "-o", "json")
        report = json.loads(out)
        self.assertEqual(report["model"], "stories15m")
        self.assertEqual([c["threads"] for c in report["ceilings"]], [1])
        # Per depth: a prompt, and decoding of 1 and of 3 sequences; each in four kinds of numbers.
        self.assertEqual(len(report["results"]), 2 * 3 * 4)
        names = {r["test"] for r in report["results"]}
        self.assertEqual(names, {"pp16", "tg3", "tg3 b3", "pp16 @ d40", "tg3 @ d40", "tg3 b3 @ d40"})
        for r in report["results"]:
            self.assertEqual(len(r["samples"]), 2)
            self.assertGreater(r["tokens_per_second"], 0)
            self.assertGreaterEqual(r["cv"], 0)
            self.assertEqual(r["rough"], r["cv"] > 0.05)
            self.assertGreater(r["part_of_ceiling"], 0)

    def test_csv_has_plain_numbers(self):
        out, err = run(*self.quick, "-o", "csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual([r["test"] for r in rows], ["pp16", "tg3"])
        for r in rows:
            self.assertGreater(float(r["tokens_per_second"]), 0)
            self.assertEqual(int(r["repetitions"]), 2)
        self.assertIn("load", err)

    def test_markdown_says_load_and_spread(self):
        out, _ = run(*self.quick)
        lines = out.splitlines()
        self.assertIn("load", lines[0])
        table = [line for line in lines if line.startswith("|")]
        self.assertEqual(len(table), 4)
        self.assertEqual({line.count("|") for line in table}, {10})
        self.assertIn("CV", table[0])
        self.check_note(out)

    def check_note(self, out):
        """Above 100 % of a ceiling there is a note below the table, once; else none."""
        rows = [line.split("|") for line in out.splitlines() if line.startswith("| ")]
        column = next(i for i, name in enumerate(rows[0]) if name.strip() in ("of ceiling", "of roof"))
        shares = [float(row[column].split()[0]) for row in rows[1:] if row[column].strip()]
        self.assertGreater(min(shares), 0)
        self.assertEqual(out.count("more than 100 %: "), int(max(shares) > 100), out)

    def test_numbers_are_refused_as_typed(self):
        for command, option, values in (
            ((), "-t", ("4097", str(2**64 + 1), "-1", "two")), ((), "-p", (str(2**64), "1,-1")),
            ((), "-n", ("2147483648",)), ((), "-d", ("0,99999999999",)), ((), "-b", ("0", "1,0")),
            ((), "-r", ("0", str(2**64 + 1))), ((), "--chunk", ("0",)),
            (("profile",), "--depth", (str(2**64 - 1), str(2**64), "-1")), (("profile",), "-t", ("-1",)),
            (("profile",), "-p", ("0",)), (("profile",), "-b", (str(2**64 + 1),)),
            (("profile",), "-r", ("0",)), (("accuracy", "-f", "x"), "-c", ("0", str(2**64 - 1))),
            (("accuracy", "-f", "x"), "-t", ("1e3",)),
        ):
            for value in values:
                _, err = run(*command, "-m", self.model, f"{option}={value}" if option[1] == "-" else
                             f"{option}{value}", code=2)
                self.assertIn("expected an integer from", err, (option, value))
                self.assertIn(f"found {value.split(',')[-1]}", err)
        for option in ("--rows", "-t", "-r"):
            _, err = run("roofline", "--model", "stories15m", option, str(2**64 + 1), code=2)
            self.assertIn("expected an integer from", err)
        # A cache that nobody has memory for.
        _, err = run("profile", "-m", self.model, "--depth", "2147483647", code=1)
        self.assertIn("cannot be had", err)

    def check_svg(self, path, points):
        root = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        tips = root.findall(".//{http://www.w3.org/2000/svg}circle/{http://www.w3.org/2000/svg}title")
        self.assertEqual(len(tips), points)
        width, height = (float(v) for v in root.get("viewBox").split()[2:])
        for circle in root.findall(".//{http://www.w3.org/2000/svg}circle"):
            self.assertTrue(0 < float(circle.get("cx")) < width)
            self.assertTrue(0 < float(circle.get("cy")) < height)

    def test_plot_of_batches(self):
        svg = self.path / "batch.svg"
        run(*self.quick, "-p", "0", "-b", "1,2,4", "--plot", svg)
        self.check_svg(svg, 3)

    def test_roofline(self):
        svg = self.path / "roofline.svg"
        out, _ = run("roofline", "--model", "stories15m", "--types", "f32,q8_0", "--rows", "1,64", "-t",
                     "1", "-r", "2", "--matrices", "wk", "--plot", svg, "-o", "json")
        report = json.loads(out)
        found = {(p["weights"], p["activations"], p["rows"]) for p in report["points"]}
        self.assertEqual(found, {(w, a, r) for w, a in (("f32", "f32"), ("q8_0", "f32"), ("q8_0", "int8"))
                                 for r in (1, 64)})
        for p in report["points"]:
            self.assertEqual(p["flops"], 2 * 288 * 288 * p["rows"])
        self.check_svg(svg, 6)

    def check_profile(self, profile, at):
        self.assertEqual(profile["format"], "quipu-profile-1")
        self.assertEqual(len(profile["components"]), 4 + KINDS * LAYERS)
        self.assertEqual(profile["at"], at)
        sum_of_parts = sum(c["seconds"] for c in profile["components"])
        # Medians of the parts of passes that a busy machine interrupts add up to less than the median
        # of the whole (test/engine/profile_test.cpp judges the sum, pass by pass).
        self.assertTrue(0 < sum_of_parts < 1.1 * profile["seconds"])

    def test_profile(self):
        file = self.path / "profile.json"
        out, _ = run("profile", "-m", self.model, "--depth", "64", "-t", "1", "-r", "15", "--out", file)
        self.check_profile(json.loads(file.read_text()), 64)
        for component in ("attention.scaled_dot_product", "feed_forward.w1", "output", "unaccounted"):
            self.assertIn(f"| {component} ", out)
        self.check_note(out)  # a model that a cache holds: parts of it are read faster

    def test_generate_writes_a_profile(self):
        file = self.path / "generated.json"
        run("-m", self.model, "-p", "a", "-n", "21", "-t", "1", "--temp", "0", "--ignore-eos", "--profile",
            file, "--json", program=GENERATE)
        profile = json.loads(file.read_text())
        self.assertEqual(profile["passes"], 20)
        self.check_profile(profile, profile["at"])

    def test_accuracy(self):
        text = self.path / "text.txt"
        text.write_text("a quipu is a cord with knots " * 8)
        out, _ = run("accuracy", "-m", self.model, "-f", text, "-c", "50", "-t", "1", "-o", "json")
        variants = {v["name"]: v for v in json.loads(out)}
        self.assertEqual(set(variants), {"int8 activations", "bf16 cache", "int8 activations, bf16 cache",
                                         "bf16 mode"})
        # A window longer than the text is the text.
        whole, _ = run("accuracy", "-m", self.model, "-f", text, "-c", "2147483647", "-t", "1", "-o", "json")
        self.assertEqual({v["positions"] for v in json.loads(whole)},
                         {v["positions"] for v in variants.values()})
        for v in variants.values():
            self.assertGreater(v["positions"], 100)
            self.assertGreater(v["mean_divergence"], 0)
            self.assertGreaterEqual(v["divergence_99"], v["mean_divergence"] / 10)
            self.assertTrue(0 <= v["same_top"] <= 1)

    def test_exit_codes(self):
        self.assertIn("Examples", run("--help")[0])
        for arguments in ([], ["-m", self.model, "-p", "x"], ["-m", self.model, "--cache", "f16"],
                          ["-m", self.model, "-o", "xml"], ["roofline"],
                          ["roofline", "--model", "no_such_model"],
                          ["roofline", "--model", "stories15m", "--types", "q3"],
                          ["-m", self.model, "-p", "0", "-n", "0"], ["profile"]):
            run(*arguments, code=2)
        run("-m", self.path / "none.gguf", code=1)
        _, err = run(*self.quick, "--against", "llama.cpp", "--python", "/no/such/python", code=1)
        self.assertIn("llama-cpp-python", err)


if __name__ == "__main__":
    unittest.main()
