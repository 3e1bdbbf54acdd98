#!/usr/bin/env python3
"""The Llama 3 forward pass restated in plain PyTorch, to compare tensors with.

It shares no code with the library or with Meta's. It reads a checkpoint in Hugging Face's layout,
runs it, and compares every named tensor with a safetensors file: golden activations, or what
quipu-trace wrote. The file says what to run: `tokens` and `start_pos`, or several phases
`<phase>/tokens`, `<phase>/start_pos`, `<phase>/<tensor>` in order through one cache.

  python3 pytorch_parity.py --golden ../data/golden    all activations of all tiny models, those of
                                                       two ranks too, and the rotary tables
  python3 pytorch_parity.py --model DIR --mode bf16 --compare FILE.safetensors
  quipu-trace -m DIR --tokens 1,2,3 --out t.safetensors &&
    python3 pytorch_parity.py --model DIR --compare t.safetensors

Modes: f32; bf16w-f32c (weights rounded to bfloat16, computing in float32); bf16 (rounded where the
reference rounds). --ranks N sums the updates of wo and w2 as N model-parallel ranks do. Exit status 1
if a tensor is over the limit. Needs PyTorch (any CPU build).
"""
import argparse
import json
import math
import pathlib
import struct
import sys

try:
    import torch
except ImportError:  # --help works without it
    torch = None

TYPES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "I64": "int64"}


def read_safetensors(path):
    data = bytearray(pathlib.Path(path).read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, record in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = record["data_offsets"]
            raw = data[8 + length + begin : 8 + length + end]
            flat = torch.frombuffer(raw, dtype=getattr(torch, TYPES[record["dtype"]]))
            tensors[name] = flat.reshape(record["shape"])
    return tensors


class Llama:
    """Every tensor is float32; `bf16` rounds its values where the reference does."""

    def __init__(self, folder, mode, batch, capacity, ranks=1):
        folder = pathlib.Path(folder)
        c = json.loads((folder / "config.json").read_text())
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        self.layers, self.eps = c["num_hidden_layers"], c["rms_norm_eps"]
        self.head_dim = c.get("head_dim") or c["hidden_size"] // self.heads
        self.bf16, self.ranks = mode == "bf16", ranks
        weights = {}
        for shard in sorted(folder.glob("*.safetensors")):
            weights.update(read_safetensors(shard))
        if mode != "f32":
            weights = {name: w.to(torch.bfloat16) for name, w in weights.items()}
        self.w = {name: w.float() for name, w in weights.items()}
        cache = (self.layers, batch, capacity, self.kv_heads, self.head_dim)
        self.keys, self.values = torch.zeros(cache), torch.zeros(cache)
        self.frequencies = self.inverse_frequencies(
            self.head_dim, c["rope_theta"], c.get("rope_scaling"))

    @staticmethod
    def inverse_frequencies(head_dim, theta, scaling):
        exponents = torch.arange(0, head_dim, 2).float() / head_dim
        f = 1 / (float(theta) ** exponents.double()).float()
        if not scaling:
            return f
        factor, low, high = (scaling[k] for k in ("factor", "low_freq_factor", "high_freq_factor"))
        original = scaling["original_max_position_embeddings"]
        wavelength = 2 * math.pi / f
        smooth = (original / wavelength - low) / (high - low)
        between = (1 - smooth) * f / factor + smooth * f
        scaled = torch.where(wavelength > original / low, f / factor, between)
        return torch.where(wavelength < original / high, f, scaled)

    def round(self, x):
        return x.bfloat16().float() if self.bf16 else x

    def linear(self, x, name):
        return self.round(x @ self.w[name].T)

    def linear_of_parts(self, x, name):
        """Each rank multiplies its share of the inputs; the results are added in order of ranks."""
        parts = zip(x.chunk(self.ranks, -1), self.w[name].chunk(self.ranks, -1))
        total = 0
        for part, weight in parts:
            total = total + self.round(part @ weight.T)
        return self.round(total)

    def norm(self, x, name):
        normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.round(self.round(normed) * self.w[name])

    def rotate(self, x, start):
        """Hugging Face's q and k: pair i of a head is (i, i + head_dim / 2)."""
        position = torch.arange(start, start + x.shape[1]).float()
        angle = torch.outer(position, self.frequencies)[None, :, None, :]
        cos, sin = angle.double().cos().float(), angle.double().sin().float()
        a, b = x.chunk(2, -1)
        return self.round(torch.cat((a * cos - b * sin, a * sin + b * cos), -1))

    def pairs(self, x):
        """From Hugging Face's halves to Meta's neighbouring pairs, the order of the named tensors."""
        return torch.stack(x.chunk(2, -1), -1).flatten(-2)

    def forward(self, tokens, start, see):
        batch, count = tokens.shape
        length, group = start + count, self.heads // self.kv_heads
        x = self.w["model.embed_tokens.weight"][tokens]
        see("tok_embeddings", x)
        causal = torch.arange(length)[None, :] > torch.arange(start, length)[:, None]
        for n in range(self.layers):
            hf, id = f"model.layers.{n}.", f"layers.{n}."
            z = self.norm(x, hf + "input_layernorm.weight")
            see(id + "attention_norm", z)
            project = lambda p, heads: self.linear(z, f"{hf}self_attn.{p}_proj.weight").view(
                batch, count, heads, self.head_dim)
            q, k, v = project("q", self.heads), project("k", self.kv_heads), project("v", self.kv_heads)
            see(id + "attention.xq", self.pairs(q).flatten(-2))
            see(id + "attention.xk", self.pairs(k).flatten(-2))
            see(id + "attention.xv", v.flatten(-2))
            q, k = self.rotate(q, start), self.rotate(k, start)
            see(id + "attention.xq_rope", self.pairs(q))
            see(id + "attention.xk_rope", self.pairs(k))
            self.keys[n, :, start:length], self.values[n, :, start:length] = k, v
            keys = self.keys[n, :, :length].repeat_interleave(group, 2)
            values = self.values[n, :, :length].repeat_interleave(group, 2)
            scores = self.round(torch.einsum("bthd,bshd->bhts", q, keys))
            scores = self.round(scores / math.sqrt(self.head_dim)).masked_fill(causal, -math.inf)
            probs = scores.softmax(-1)
            see(id + "attention.probs_f32", probs)
            probs = self.round(probs)
            see(id + "attention.probs", probs)
            merged = self.round(torch.einsum("bhts,bshd->bthd", probs, values)).flatten(-2)
            see(id + "attention.merged", merged)
            update = self.linear_of_parts(merged, hf + "self_attn.o_proj.weight")
            see(id + "attention.wo", update)
            x = self.round(x + update)
            see(id + "h", x)
            z = self.norm(x, hf + "post_attention_layernorm.weight")
            see(id + "ffn_norm", z)
            gate = self.linear(z, hf + "mlp.gate_proj.weight")
            up = self.linear(z, hf + "mlp.up_proj.weight")
            act = self.round(self.round(torch.nn.functional.silu(gate)) * up)
            for name, value in (("w1", gate), ("w3", up), ("act", act)):
                see(id + "feed_forward." + name, value)
            update = self.linear_of_parts(act, hf + "mlp.down_proj.weight")
            see(id + "feed_forward.w2", update)
            x = self.round(x + update)
            see(id + "out", x)
        x = self.norm(x, "model.norm.weight")
        see("norm", x)
        output = "lm_head.weight" if "lm_head.weight" in self.w else "model.embed_tokens.weight"
        see("logits", self.linear(x, output))


def golden_name(id):
    """layers.0.attention.wo to the golden files' layers.0/attention/wo."""
    parts = id.split(".")
    return "/".join([".".join(parts[:2])] + parts[2:]) if parts[0] == "layers" else id


def compare(model, mode, expected, ranks=1):
    """Prints the worst tensor and the share of equal elements; returns whether all are close."""
    prefixes = [n[: -len("tokens")] for n in expected if n == "tokens" or n.endswith("/tokens")]
    if not prefixes:
        sys.exit("the file to compare with has no tokens")
    phases = [(p, expected[p + "tokens"], int(expected[p + "start_pos"])) for p in prefixes]
    capacity = max(s + t.shape[1] for _, t, s in phases)
    llama = Llama(model, mode, phases[0][1].shape[0], capacity, ranks)
    # As argued in scalar_forward_test.cpp: float32 rounding, tenfold where attention is peaked; in
    # bf16 what flipped roundings spread to.
    limit = 3e-2 if mode == "bf16" else 1e-5
    seen, equal, elements, worst = 0, 0, 0, (0.0, "none")
    for phase, ids, first in phases:

        def see(id, actual):
            nonlocal seen, equal, elements, worst
            name = next((n for n in (phase + golden_name(id), phase + id) if n in expected), None)
            if name is None:
                return
            golden = expected[name].float().reshape(actual.shape)
            error = (actual - golden).double().pow(2).mean().sqrt().item()
            scale = golden.double().pow(2).mean().sqrt().item()
            relative = error / scale if error > 0 and scale > 0 else error
            worst = max(worst, (math.inf if math.isnan(relative) else relative, name))
            equal += (actual == golden).sum().item()
            elements += golden.numel()
            seen += 1

        llama.forward(ids, first, see)
    ok = seen > 0 and worst[0] <= limit
    share = 100 * equal / max(elements, 1)
    of_ranks = f" {ranks} ranks" if ranks > 1 else ""
    print(f"{model} {mode}{of_ranks}: {seen} tensors, equal {share:.4f} %, worst rel_rms {worst[0]:.2e} "
          f"({worst[1]}), limit {limit:.0e}: {'ok' if ok else 'FAILED'}")
    return ok


def compare_tables(folder):
    """The rotary tables; returns whether frequencies have the same bits and cosines and sines are
    within the rounding of one function of a given float32 angle."""
    golden, ok = read_safetensors(folder / "rope_tables.safetensors"), True
    positions = golden["positions"].float()
    for head_dim in (64, 128):
        for kind, factor in (("unscaled", None), ("scaled", 8), ("scaled32_derived", 32)):
            scaling = factor and {"factor": factor, "low_freq_factor": 1, "high_freq_factor": 4,
                                  "original_max_position_embeddings": 8192}
            name = f"hd{head_dim}/{kind}/"
            f = Llama.inverse_frequencies(head_dim, 500000, scaling)
            angle = torch.outer(positions, f).double()
            same = torch.equal(f, golden[name + "inv_freq"])
            error = max((table.float() - golden[name + n]).abs().max().item()
                        for n, table in (("cos", angle.cos()), ("sin", angle.sin())))
            good = same and error <= 1e-6
            ok = ok and good
            print(f"{folder} {name}: frequencies {'equal' if same else 'DIFFER'}, worst error of a "
                  f"cosine or sine {error:.1e}: {'ok' if good else 'FAILED'}")
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--golden", metavar="DIR", help="compare all activations under DIR/models")
    parser.add_argument("--model", metavar="DIR", help="checkpoint in Hugging Face's layout")
    parser.add_argument("--compare", metavar="FILE", help="safetensors file to compare with")
    parser.add_argument("--ranks", type=int, default=1, help="model-parallel ranks [1]")
    parser.add_argument("--mode", choices=("f32", "bf16w-f32c", "bf16"), default="f32")
    options = parser.parse_args()
    if torch is None:
        parser.error("PyTorch was not found: python3 -m pip install torch")
    torch.set_grad_enabled(False)
    if options.golden:
        ok, files = True, 0
        for folder in sorted(pathlib.Path(options.golden, "models").iterdir()):
            for name, mode, ranks in (("f32", "f32", 1), ("bf16w-f32c", "bf16w-f32c", 1),
                                      ("bf16", "bf16", 1), ("mp2-f32", "f32", 2),
                                      ("mp2-bf16", "bf16", 2)):
                file = folder / "acts" / (name + ".safetensors")
                if file.exists():
                    files += 1
                    ok = compare(folder / "hf-f32", mode, read_safetensors(file), ranks) and ok
        if pathlib.Path(options.golden, "rope").exists():
            ok = compare_tables(pathlib.Path(options.golden, "rope")) and ok
        if files == 0:
            parser.error(f"no activations under {options.golden}/models")
    elif options.model and options.compare:
        ok = compare(options.model, options.mode, read_safetensors(options.compare), options.ranks)
    else:
        parser.error("give --golden, or --model and --compare")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
