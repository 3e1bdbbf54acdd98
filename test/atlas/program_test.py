"""The command line of quipu-atlas: formats, lists, figures and exit codes.

usage: program_test.py PROGRAM
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import stand_in


def run(*arguments, code=0):
    done = subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, errors="replace")
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
for number in ("0", "-1", "99999999999", str(2**64 + 1), "1.5"):
    has(run("--component", "output", "--batch", number, code=2), "--batch: expected an integer from 1 to", number)
has(run("--component", "output", "--at", str(2**64), code=2), "--at: expected an integer from 0 to 2147483647")
run("--format", "pdf", code=2)
has(run("--component", "output", "--checkpoint", "missing.gguf", code=1), "missing.gguf")
has(run("--component", "output", "--out", "missing/folder/x", code=1), "missing/folder/x")
has(run("--component", "output", "--profile", "missing.json", code=1), "missing.json")

# Lists for machines.
has(run("--models", "--format", "json"), '"name": "llama3_1_8b"', '"parameters": 8030261248')
has(run("--model", "llama3_8b", "--list", "--format", "json"), '"id": "layers.N.attention.update"')
has(run("--model", "llama3_8b", "--find", "14336", "--format", "json"), '"shape": "[4096 out, 14336 in]"')
assert run("--component", "output", "--out", "-") == run("--component", "output")

# What would change nothing is refused, by name.
explaining = [["--component", "output"], ["--batch", "2"], ["--positions", "2"], ["--at", "2"], ["--dtype", "f32"],
              ["--checkpoint", "x.gguf"], ["--profile", "x.json"], ["--source", "meta-llama/llama3=x"]]
for task in (["--list"], ["--find", "14336"], ["--models"]):
    for arguments in explaining:
        has(run(*task, *arguments, code=2), arguments[0] + " with " + task[0])
    for format in ("html", "markdown"):
        has(run(*task, "--format", format, code=2), "--format " + format)
for arguments in explaining[1:-1] + [["--format", "json"], ["--list"], ["--find", "1"], ["--models"]]:
    has(run(*arguments, "verify", code=2), arguments[0] + " with verify")
for format in ("text", "markdown"):
    has(run("--source", "meta-llama/llama3=x", "--format", format, code=2), "--source with --format text and markdown")
has(run("--models", "--model", "llama3_8b", code=2), "--model with --models")
has(run("--models", "--list", code=2), "--list with --models")
has(run("--list", "--find", "7", code=2), "--find with --list")
has(run("--find", "0", code=2), "--find: expected an integer from 1 to")
for option in ("--model", "--component", "--checkpoint", "--profile", "--out"):
    has(run(option, "", code=2), option + ": expected a name")

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

# A measured run.
SAMPLE = str(pathlib.Path(__file__).parent.parent / "data" / "atlas" / "stories15m.profile.json")
has(run("--model", "stories15m", "--component", "transformer", "--profile", SAMPLE), "Measured", "20 passes on AVX2")
has(run("--model", "stories15m", "--component", "output", "--profile", SAMPLE, "--format", "markdown"), "## Measured")
measured = json.loads(run("--model", "stories15m", "--component", "layers.N.attention.wq", "--profile", SAMPLE,
                          "--format", "json"))["measured"]
assert measured["blocks"] == 6 and abs(measured["seconds_of_block"]["median"] - 12.5e-6) < 1e-12, measured
assert measured["predicted"] == {"bytes": 528768.0, "flops": 995328.0, "least_seconds": 528768 / 1.5e10,
                                 "bound": "reading"}, measured
has(run("--model", "llama3_8b", "--profile", SAMPLE, code=1), "a profile of \"stories15m\", not of llama3_8b")
# A path may be any bytes; what a file says of itself may not.
with tempfile.TemporaryDirectory() as folder:
    odd = os.fsencode(folder) + b"/caf\xe9.json"
    pathlib.Path(os.fsdecode(odd)).write_text(pathlib.Path(SAMPLE).read_text())
    for form in ("text", "json", "html"):
        has(run("--model", "stories15m", "--component", "output", "--profile", odd, "--format", form), "20 passes", ".json")
    for old, new, words in (("AVX2", "</script>", "target: expected the name of a SIMD target"),
                            ("stories15m", "\\u001b[2J", "a profile of \"\\x1b[2J\"")):
        pathlib.Path(os.fsdecode(odd)).write_text(pathlib.Path(SAMPLE).read_text().replace(old, new, 1))
        has(run("--model", "stories15m", "--component", "output", "--profile", odd, code=1), words)

# A checkpoint: the independent count, statistics, another model's file, a file that lacks a tensor.
with tempfile.TemporaryDirectory() as folder:
    file = stand_in.write(folder + "/good")
    text = run("--model", "stories15m", "--checkpoint", file)
    has(" ".join(text.split()), f"Checked against {file}: 15,191,712 parameters counted from its tensors, as the type says.")
    norm = json.loads(run("--model", "stories15m", "--component", "layers.N.attention_norm", "--checkpoint", file,
                          "--format", "json"))
    assert [s["mean"] for s in norm["layer_statistics"]] == [1, 2, 3, 4, 5, 6], norm["layer_statistics"]
    assert norm["checked"] == {"file": file, "parameters": 6 * 288, "agrees": True}
    has(run("--model", "llama3_8b", "--checkpoint", file, code=1), "holds stories15m, not llama3_8b", "dim: the file has 288")
    short = stand_in.write(folder + "/short", leave_out="model.layers.3.mlp.up_proj.weight")
    for format in ("text", "json", "html"):
        has(run("--model", "stories15m", "--checkpoint", short, "--format", format, code=1),
            "layers.N.feed_forward.w3: Checked against", "1,105,920 parameters", "but the type says 1,327,104")
