#!/usr/bin/env python3
"""Writes rope_golden.hpp: the inverse frequencies of test/data/golden/rope as float32 bit patterns.

    python3 test/static/make_rope_golden.py
"""
import json
import pathlib
import struct

here = pathlib.Path(__file__).resolve().parent
data = (here.parent / "data/golden/rope/rope_tables.safetensors").read_bytes()
(header_bytes,) = struct.unpack_from("<Q", data)
header = json.loads(data[8 : 8 + header_bytes])

out = [
    "// The reference's rotary inverse frequencies, theta 500000, as bits of float32. Made by",
    "// make_rope_golden.py from test/data/golden/rope; scaled: factor 8, scaled32: factor 32.",
    "#pragma once",
    "",
    "#include <cstdint>",
    "",
    "namespace quipu_test {",
    "",
]
for head_dim in (128, 64):
    for kind, golden in (("unscaled", "unscaled"), ("scaled", "scaled"), ("scaled32", "scaled32_derived")):
        begin, end = header[f"hd{head_dim}/{golden}/inv_freq"]["data_offsets"]
        bits = struct.unpack_from(f"<{(end - begin) // 4}I", data, 8 + header_bytes + begin)
        assert len(bits) == head_dim // 2
        out.append(f"inline constexpr std::uint32_t {kind}_{head_dim}[] = {{")
        for i in range(0, len(bits), 8):
            out.append("    " + ", ".join(f"0x{b:08x}" for b in bits[i : i + 8]) + ",")
        out[-1] = out[-1].removesuffix(",") + "};"
        out.append("")
out.append("}  // namespace quipu_test")
(here / "rope_golden.hpp").write_text("\n".join(out) + "\n")
