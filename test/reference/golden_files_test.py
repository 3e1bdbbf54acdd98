#!/usr/bin/env python3
"""The golden files themselves: whole, the same wherever there are two copies, consistent with their
indexes, and each used by a test that test/README.md names.

    python3 golden_files_test.py REPOSITORY

The full set is looked for where the other tests look (QUIPU_GOLDEN_DIR, or shared/golden beside the
checkout). Without it only what the repository has is checked, and the test says so. Needs Python only.
"""
import csv
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import struct
import sys
import unittest

REPOSITORY = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
OURS = REPOSITORY / "test/data/golden"
FULL = next((f for f in (pathlib.Path(os.environ.get("QUIPU_GOLDEN_DIR", "/nowhere")),
                         REPOSITORY.parent / "shared/golden") if f.is_dir()), None)
needs_full = unittest.skipIf(FULL is None, "the full golden data is not here (QUIPU_GOLDEN_DIR)")

# The tolerances of golden_test.cpp for float32, relative rms.
FLOAT32_LIMITS = {"T1": 3e-6, "T2": 1e-5, "T3": 3e-6, "T4": 3e-6}


def folders():
    return [OURS] + ([FULL] if FULL else [])


def header(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        records = json.loads(file.read(length))
    records.pop("__metadata__", None)
    return {name: {"shape": r["shape"], "dtype": r["dtype"]} for name, r in records.items()}


class GoldenFiles(unittest.TestCase):
    @needs_full
    def test_every_file_has_the_sum_that_is_listed(self):
        sums = json.loads((FULL / "SHA256SUMS.json").read_text())
        self.assertGreater(len(sums), 50)
        for name, entry in sums.items():
            if name != "README.md":  # prose, which may be edited later
                data = (FULL / name).read_bytes()
                self.assertEqual(len(data), entry["bytes"], name)
                self.assertEqual(hashlib.sha256(data).hexdigest(), entry["sha256"], name)

    @needs_full
    def test_the_copies_in_the_repository_are_copies(self):
        pairs = [(p, FULL / p.relative_to(OURS)) for p in OURS.rglob("*")]
        pairs += [(REPOSITORY / "test/data/text" / p.name, p) for p in (FULL / "tokenizer").iterdir()]
        pairs += [(p, FULL / "models" / p.relative_to(REPOSITORY / "test/data/checkpoint"))
                  for p in (REPOSITORY / "test/data/checkpoint").rglob("*")]
        compared = 0
        for ours, full in pairs:
            if ours.is_file() and ours.name != "README.md":
                self.assertEqual(ours.read_bytes(), full.read_bytes(), ours)
                compared += 1
        self.assertGreater(compared, 30)

    def test_indexes_say_what_the_files_hold(self):
        for folder in folders():
            for path in sorted(folder.rglob("*.safetensors")):
                index = path.with_suffix(".json")
                if path.parent.name == "acts" and index.exists():
                    self.assertEqual(json.loads(index.read_text()), header(path), index)
        if FULL:
            tables = json.loads((FULL / "rope/rope_tables.json").read_text())
            self.assertEqual(tables["tensors"], header(FULL / "rope/rope_tables.safetensors"))
            # The recipe of the angle is worth following: the golden tables themselves are within it.
            for kind, seen in tables["observed"].items():
                self.assertLess(seen["max_error_given_float32_angle"], 1e-6, kind)

    @needs_full
    def test_parameter_counts_are_the_same_in_both_forms(self):
        entries = json.loads((FULL / "params/parameter_counts.json").read_text())["architectures"]
        with open(FULL / "params/parameter_counts.tsv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        self.assertEqual(len(rows), len(entries))
        totals = {(e["counts"]["total_untied"], e["counts"]["total_tied"]) for e in entries}
        self.assertEqual({(int(r["total_untied"]), int(r["total_tied"])) for r in rows}, totals)

    @needs_full
    def test_float32_tolerances_follow_from_what_was_observed(self):
        """The reference is this far from float64, and so may be whoever is compared with it: the
        limit holds two such errors, and is not above ten."""
        for model, limit in FLOAT32_LIMITS.items():
            observed = json.loads((FULL / "models" / model / "acts/observed.json").read_text())
            worst = max(kind["rel_rms"] for kind in observed["f32_vs_float64"].values())
            self.assertLess(2 * worst, limit, model)
            self.assertLess(limit, 10 * worst, model)
            if "mp2_vs_mp1_f32" in observed:
                ranks = max(kind["rel_rms"] for kind in observed["mp2_vs_mp1_f32"].values())
                self.assertLess(ranks, limit, model)

    @needs_full
    def test_the_table_of_uses_has_every_file(self):
        text = (REPOSITORY / "test/README.md").read_text(encoding="utf-8")
        section = text.split("\n## Which test uses which golden file\n")[1].split("\n## ")[0]
        rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|$", section, re.M)
        uses = {p: used for patterns, used in rows for p in re.findall(r"`([^`]+)`", patterns)}
        for name in sorted(p.relative_to(FULL).as_posix() for p in FULL.rglob("*") if p.is_file()):
            self.assertTrue([p for p in uses if fnmatch.fnmatchcase(name, p)],
                            f"{name}: no row of test/README.md has it")
        # And a row names tests that exist.
        for used in uses.values():
            for test in re.findall(r"`([^` ]+/[^` ]+\.(?:cpp|py))`", used):
                self.assertTrue((REPOSITORY / "test" / test).is_file(), test)


if __name__ == "__main__":
    if FULL is None:
        print("the full golden data is not here (QUIPU_GOLDEN_DIR): checked in parts")
    unittest.main(verbosity=2)
