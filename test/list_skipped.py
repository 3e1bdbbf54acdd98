#!/usr/bin/env python3
"""Lists the tests that were skipped in runs of ctest, by name and with the reason of each.

    python3 test/list_skipped.py build/test/Testing/Temporary/LastTest.log ...

ctest itself names the executables in which every test was skipped; one skipped test among others passes
there unseen. Reads what GoogleTest, Python's unittest (verbosity 2) and lines "skipped: REASON" say.
"""
import pathlib
import re
import sys

BLOCK = re.compile(r'^\d+/\d+ Test: (?P<name>\S+)\n.*?^Output:\n-+\n(?P<output>.*?)<end of output>\n', re.M | re.S)
GTEST = re.compile(r"^\[ RUN      \] (?P<test>\S+)\n(?P<said>(?:(?!\[ RUN ).*\n)*?)\[  SKIPPED \] (?P=test) \(", re.M)
UNITTEST = re.compile(
    r"^(?P<test>\w+) \(.*\)(?:\n.*)? \.\.\. skipped (?P<quote>['\"])(?P<reason>.*)(?P=quote)$", re.M)
LINE = re.compile(r"^skipped: (?P<reason>.*)$", re.M)


def skipped(log):
    """(name of the ctest test, test in it or "", reason) of each skipped test in a log's text."""
    for block in BLOCK.finditer(log):
        name, output = block["name"], block["output"]
        for test in GTEST.finditer(output):
            reason = re.sub(r"\A.*: Skipped\n", "", test["said"]).strip().replace("\n", " ")
            yield name, test["test"], reason
        for test in UNITTEST.finditer(output):
            yield name, test["test"], test["reason"]
        for line in LINE.finditer(output):
            yield name, "", line["reason"]


def grouped(rows):
    """One line for the tests of an executable that were skipped for one reason."""
    groups = {}
    for name, test, reason in rows:
        groups.setdefault((name, reason), []).append(test)
    return [f"{name}: {', '.join(tests)}{': ' if any(tests) else ''}{reason}"
            for (name, reason), tests in groups.items()]


def self_test():
    """Every form of the three, and nothing of what passed."""
    head = "1/2 Testing: {0}\n1/2 Test: {0}\nCommand: x\nOutput:\n-----\n"
    log = (head.format("a_test")
           + "[ RUN      ] A.Passes\n[       OK ] A.Passes (0 ms)\n"
           + "[ RUN      ] A.Skips\n/a.cpp:2: Skipped\nno file\nat all\n[  SKIPPED ] A.Skips (0 ms)\n"
           + "[ RUN      ] A.Too\n/a.cpp:3: Skipped\nno file at all\n[  SKIPPED ] A.Too (0 ms)\n"
           + "[  SKIPPED ] 2 tests, listed below:\n[  SKIPPED ] A.Skips\n[  SKIPPED ] A.Too\n<end of output>\n"
           + head.format("b_program")
           + "test_one (b.B) ... ok\ntest_two (b.B) ... skipped \"torch isn't there\"\n"
           + "test_three (b.B)\nWhat it judges. ... skipped 'no file'\n<end of output>\n"
           + head.format("c") + "skipped: no browser\n<end of output>\n"
           + head.format("d") + "[ RUN      ] D.Passes\n[       OK ] D.Passes (0 ms)\n<end of output>\n")
    expected = ["a_test: A.Skips, A.Too: no file at all", "b_program: test_two: torch isn't there",
                "b_program: test_three: no file", "c: no browser"]
    assert grouped(skipped(log)) == expected, grouped(skipped(log))


def main(paths):
    self_test()
    for path in map(pathlib.Path, paths):
        for line in grouped(skipped(path.read_text(errors="replace"))):
            print(f"  {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
