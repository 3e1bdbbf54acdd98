#!/usr/bin/env python3
"""Checks the rules that every header keeps: layers, who may name what, no printing, length.

    python3 test/headers/check_rules.py include/quipu

Prints each offence as file:line: reason; exit code 1 if there is one.
"""
import pathlib
import re
import sys

# A folder may include itself and those before it.
LAYERS = ["shape", "config", "reflect", "notation", "model", "runtime", "parallel", "simd",
          "checkpoint", "text", "engine", "generate", "atlas"]
TYPED = LAYERS[: LAYERS.index("model") + 1]
MOST_LINES = 700

# What only some places may include: pattern of the include, places (a folder or a file).
INCLUDES = [
    (r"boost/hana", ["reflect"], "only reflect/ names Boost.Hana"),
    (r"filesystem$", ["checkpoint", "engine"], "<filesystem> costs half a second"),
    (r"mpi\.h$", ["parallel/mpi.hpp"], "only parallel/mpi.hpp includes MPI"),
    (r"regex$", [], "std::regex overflows the stack on long texts"),
    (r"(iostream|print|syncstream)$", [], "nothing in include/ prints"),
]
CODE = [
    (r"\bstd::(cout|cerr|clog)\b|\b(std::)?(printf|fprintf|puts|fputs|putchar|perror)\s*\(",
     "nothing in include/ prints"),
    (r"\bdynamic_cast\b|\btypeid\b", "the library works without RTTI"),
    (r"(?<![\w(.])(std::)?(min|max)\s*\(", "write (std::min)(a, b): min and max may be macros"),
]


def without_comments_and_strings(text):
    """The text with comments and literals blanked out, line by line the same."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"'

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(pattern, blank, text, flags=re.S)


def offences_of(path, text):
    """(line, reason) of each offence in a header whose path is relative to include/quipu."""
    parts = pathlib.PurePosixPath(path).parts
    folder = parts[0] if len(parts) > 1 else ""
    lines = text.split("\n")
    if len(parts) > 1 and folder not in LAYERS:
        yield 1, f"{folder}/ is not a layer of the design"
        return
    if folder:
        allowed = LAYERS[: LAYERS.index(folder) + 1]
    else:
        allowed = TYPED if path == "quipu.hpp" else LAYERS
    if len(lines) - 1 > MOST_LINES:
        yield len(lines), f"{len(lines) - 1} lines, {MOST_LINES} are allowed"
    if path.endswith("-inl.hpp"):
        code = [line for line in without_comments_and_strings(text).split("\n") if line.strip()]
        if "HWY_TARGET_TOGGLE" not in text and not all(line.startswith("#") for line in code):
            yield 1, "an -inl.hpp needs the guard that HWY_TARGET_TOGGLE turns"
    elif "#pragma once" not in lines:
        yield 1, "no #pragma once"
    for number, line in enumerate(lines, 1):
        include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if not include:
            continue
        name = include.group(1)
        for pattern, places, reason in INCLUDES:
            if re.search(pattern, name) and folder not in places and path not in places:
                yield number, reason
        ours = re.match(r"quipu/([^/]+)(/.*)?$", name)
        if ours and not ours.group(2) and folder:
            yield number, "a header of a layer may not include an umbrella header"
        elif ours and ours.group(2) and ours.group(1) not in allowed:
            yield number, f"{folder or path} may not include {ours.group(1)}/"
    for number, line in enumerate(without_comments_and_strings(text).split("\n"), 1):
        for pattern, reason in CODE:
            if re.search(pattern, line):
                yield number, reason


def self_test():
    """The rules can be broken: each line here must be an offence."""
    bad = {
        "shape/a.hpp": ['#include "quipu/config/dims.hpp"', "#include <boost/hana/tuple.hpp>",
                        "#include <filesystem>", "#include <iostream>", "#include <mpi.h>",
                        "int x = std::min(1, 2);", "int y = max(1, 2);", 'void f() { printf("x"); }',
                        "auto d = dynamic_cast<A*>(b);", '#include "quipu/quipu.hpp"'],
    }
    for path, lines in bad.items():
        for line in lines:
            assert list(offences_of(path, "#pragma once\n" + line + "\n")), line
    good = ['#include "quipu/shape/axis.hpp"', "int x = (std::min)(1, 2); // printf(1)", "snprintf(b);",
            'const char* s = "std::cout";', "n = (std::numeric_limits<int>::max)();", "d.max(1);"]
    for line in good:
        assert not list(offences_of("shape/a.hpp", "#pragma once\n" + line + "\n")), line
    assert list(offences_of("config/a.hpp", "#pragma once\n" + "\n" * MOST_LINES))
    assert list(offences_of("config/a.hpp", "int x;\n"))


def main(root):
    self_test()
    count = found = 0
    for file in sorted(root.rglob("*.hpp")):
        count += 1
        path = file.relative_to(root).as_posix()
        for number, reason in offences_of(path, file.read_text(encoding="utf-8")):
            found += 1
            print(f"{file}:{number}: {reason}")
    if count == 0:
        print(f"{root}: no header found")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
