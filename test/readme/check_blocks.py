#!/usr/bin/env python3
"""The README's code is what a reader copies first: its blocks are compiled as a project of their own.

    check_blocks.py --cmake CMAKE --source DIR --build DIR --work DIR --compiler CXX [PROGRAM ...]

A block of C++ whose first line is a comment with a name (// main.cpp) is that file, any other is a file that
stands alone; the block of CMake is the project's, after the library was installed from --build. Everything
is parsed by the compiler (-fsyntax-only) with the options that CMake chose, nothing is built. Of the command
lines in blocks of sh, those of the PROGRAMs have only options that the program's --help knows.
"""
import argparse
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


def blocks(markdown, language):
    """(line, text) of each block in a language."""
    return [(markdown.count("\n", 0, m.start()) + 2, m["text"]) for m in BLOCK.finditer(markdown)
            if m["language"] == language]


def run(what, *command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{what} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def write_project(document, markdown, folder):
    """The blocks as files, with a #line so that the compiler names the document's lines."""
    sources = []
    for line, text in blocks(markdown, "cpp"):
        named = re.match(r"// (\S+\.[ch]pp)\n", text)
        name = named[1] if named else f"block_{line}.cpp"
        (folder / name).write_text(f'#line {line} "{document}"\n{text}')
        if name.endswith(".hpp"):
            name = f"block_{line}.cpp"
            (folder / name).write_text(f'#include "{named[1]}"\n')
        sources.append(name)
    # Targets that the README's lines speak of, before them.
    app = [name for name in sources if not name.startswith("block_")]
    alone = [name for name in sources if name.startswith("block_")]
    assert app and alone, sources
    lists = ["cmake_minimum_required(VERSION 3.22)", "project(readme LANGUAGES CXX)",
             f"add_executable(app {' '.join(app)})"]
    lists += [text for _, text in blocks(markdown, "cmake")]
    lists += [f"add_library(alone OBJECT {' '.join(alone)})", "target_link_libraries(alone PRIVATE quipu::quipu)"]
    (folder / "CMakeLists.txt").write_text("\n".join(lists) + "\n")
    return sources


def parse_sources(folder, names):
    """What the compiler says of each source; exits with all of it if anything is wrong."""
    commands = {pathlib.Path(c["file"]).name: c
                for c in json.loads((folder / "build/compile_commands.json").read_text())}
    said = ""
    for name in names:
        command = shlex.split(commands[name]["command"])
        del command[command.index("-o") : command.index("-o") + 2]
        done = subprocess.run([*command, "-fsyntax-only", "-Wall", "-Wextra", "-Werror"], text=True,
                              cwd=commands[name]["directory"], capture_output=True)
        if done.returncode != 0:
            said += done.stderr or f"{name}: the compiler failed\n"
    if said:
        sys.exit(said)


def check_commands(document, markdown, programs):
    """Each option of a program's command line stands in its help."""
    subcommands = re.compile(r"roofline|profile|accuracy|verify")
    faults, seen = [], set()
    for line, text in blocks(markdown, "sh"):
        for number, row in enumerate(text.splitlines(), line):
            words = shlex.split(row, comments=True)
            if not words or words[0] not in programs:
                continue
            seen.add(words[0])
            sub = [w for w in words[1:2] if subcommands.fullmatch(w)]
            known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", run("--help", programs[words[0]], *sub, "--help")))
            faults += [f"{document}:{number}: {words[0]} has no option {word}"
                       for word in words[1:] if re.match(r"--?[a-zA-Z]", word) and word not in known]
    if programs and not seen:
        faults.append(f"{document}: no command line of {', '.join(programs)} was found")
    if faults:
        sys.exit("\n".join(faults))


def main():
    parser = argparse.ArgumentParser()
    for name in ("cmake", "source", "build", "work", "compiler", "generator"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path if name != "generator" else str)
    parser.add_argument("programs", nargs="*", type=pathlib.Path)
    a = parser.parse_args()
    document = a.source / "README.md"
    markdown = document.read_text(encoding="utf-8")
    check_commands(document, markdown, {p.name: p for p in a.programs})
    shutil.rmtree(a.work, ignore_errors=True)
    a.work.mkdir(parents=True)
    sources = write_project(document, markdown, a.work)
    run("installing", a.cmake, "--install", a.build, "--component", "development", "--prefix", a.work / "prefix")
    run("configuring", a.cmake, "-S", a.work, "-B", a.work / "build", "-G", a.generator,
        f"-DCMAKE_CXX_COMPILER={a.compiler}", f"-DCMAKE_PREFIX_PATH={a.work / 'prefix'}",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    parse_sources(a.work, sources)


if __name__ == "__main__":
    main()
