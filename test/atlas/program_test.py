"""The command line of quipu-atlas: formats, lists, figures and exit codes.

usage: program_test.py PROGRAM
"""
import pathlib
import subprocess
import sys
import tempfile


def run(*arguments, code=0):
    done = subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stdout if code == 0 else done.stderr


def has(text, *parts):
    for part in parts:
        assert part in text, (part, text)


has(run("--models"), "llama3_1_8b", "8,030,261,248")
has(run("--model", "llama3_8b", "--list"), "layers.N.attention.update", "tensor", "4,194,304")
has(run("--model", "llama3_8b", "--find", "14336"), "layers.N.feed_forward.w2", "[4096 out, 14336 in]")
has(run("--model", "llama3_1_8b", "--component", "output"), "L = z W_out", "525,336,576")
has(run("--model", "llama3_1_8b", "--component", "output", "--format", "markdown"), "# Llama 3.1 8B")
# 4096 cached positions of 131,072 bytes; a block reads one 32nd.
has(run("--model", "llama3_8b", "--component", "layers.3", "--at", "4095"), "16,777,216", "[536,870,912]")
has(run("--model", "llama3_8b", "--component", "output", "--dtype", "q8_0", "--positions", "512"),
    "558,170,112", "537,944,653,824")
has(run("--help"), "Examples:", "Exit codes")

has(run("--model", "llama9", code=2), "llama9", "llama3_8b")
has(run("--component", "layers.32.h", code=2), "32 blocks")
has(run("--component", "nothing", code=2), "nothing")
has(run("--find", "7", code=2), "no tensor")
has(run("--component", "output", "--dtype", "q3", code=2), "q3", "q8_0")
has(run("--component", "output", "--batch", "0", code=2), "expected 1 or more")
run("--format", "pdf", code=2)
has(run("--component", "output", "--checkpoint", "missing.gguf", code=1), "missing.gguf")
has(run("--component", "output", "--out", "missing/folder/x", code=1), "missing/folder/x")
for arguments in (["--format", "html"], ["--format", "json"], ["--list"], ["--find", "14336"]):
    has(run(*arguments, "--checkpoint", "missing.gguf", code=2), "--checkpoint")
has(run("--list", "--component", "output", code=2), "--list with --component")
has(run("--find", "14336", "--component", "output", code=2), "--find with --component")
with tempfile.TemporaryDirectory() as folder:
    # An error leaves a former file as it was, and nothing beside it.
    out = pathlib.Path(folder) / "out.txt"
    out.write_text("former")
    run("--find", "7", "--out", str(out), code=2)
    assert [p.name for p in out.parent.iterdir()] == ["out.txt"] and out.read_text() == "former"
    run("--component", "output", "--out", str(out))
    assert out.read_text() == run("--component", "output")
assert subprocess.run([sys.argv[1], "verify", "--model", "llama3_8b"], capture_output=True).returncode == 1
has(run("verify", "--source", "llama3", code=2), "OWNER/REPOSITORY=DIR")
