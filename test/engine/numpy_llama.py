"""Llama's forward pass in float64 NumPy over a GGUF file: a judge that shares nothing with quipu.

Weights are dequantized by the `gguf` package, everything after that is float64, so what it computes
is exact as far as float32 and 8-bit activations are concerned. Sibling: record_smollm2.py.
"""
import gguf
import numpy


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        field = lambda key: reader.fields["llama." + key].contents()
        self.layers = field("block_count")
        self.heads = field("attention.head_count")
        self.kv_heads = field("attention.head_count_kv")
        self.head_dim = field("embedding_length") // self.heads
        self.epsilon = field("attention.layer_norm_rms_epsilon")
        self.theta = field("rope.freq_base")

    def tensor(self, name):
        t = self._tensors[name]
        return gguf.dequantize(t.data, t.tensor_type).astype(numpy.float64)

    def has(self, name):
        return name in self._tensors

    def product(self, x, name):
        """y = x W^T; a file's matrices are [out, in]."""
        return x @ self.tensor(name).T

    def norm(self, x, name):
        return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * self.tensor(name)

    def rotate(self, x):
        """Pairs of neighbours (2i, 2i+1) turned by position * theta^(-2i / head_dim)."""
        positions = numpy.arange(x.shape[0])[:, None, None]
        angles = positions * self.theta ** (-numpy.arange(0, self.head_dim, 2) / self.head_dim)
        even, odd = x[..., 0::2], x[..., 1::2]
        out = numpy.empty_like(x)
        out[..., 0::2] = even * numpy.cos(angles) - odd * numpy.sin(angles)
        out[..., 1::2] = even * numpy.sin(angles) + odd * numpy.cos(angles)
        return out

    def attend(self, q, k, v):
        """One sequence: q [T, heads * head_dim], k and v [T, kv_heads * head_dim]."""
        count = q.shape[0]
        q = self.rotate(q.reshape(count, self.heads, self.head_dim))
        k = self.rotate(k.reshape(count, self.kv_heads, self.head_dim))
        v = v.reshape(count, self.kv_heads, self.head_dim)
        share = self.heads // self.kv_heads
        out = numpy.empty_like(q)
        future = numpy.triu(numpy.ones((count, count), bool), 1)
        for head in range(self.heads):
            scores = q[:, head] @ k[:, head // share].T / numpy.sqrt(self.head_dim)
            scores[future] = -numpy.inf
            weights = numpy.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = weights / weights.sum(-1, keepdims=True) @ v[:, head // share]
        return out.reshape(count, -1)

    def forward(self, sequences):
        """Logits [T, vocabulary] of each token sequence; all sequences go through a layer together,
        so that each matrix is dequantized once."""
        cuts = numpy.cumsum([len(s) for s in sequences])[:-1]
        x = self.tensor("token_embd.weight")[numpy.concatenate(sequences)]
        for layer in range(self.layers):
            block = f"blk.{layer}."
            z = self.norm(x, block + "attn_norm.weight")
            q, k, v = (numpy.split(self.product(z, f"{block}attn_{part}.weight"), cuts) for part in "qkv")
            merged = numpy.concatenate([self.attend(*one) for one in zip(q, k, v)])
            x = x + self.product(merged, block + "attn_output.weight")
            z = self.norm(x, block + "ffn_norm.weight")
            gate = self.product(z, block + "ffn_gate.weight")
            up = self.product(z, block + "ffn_up.weight")
            x = x + self.product(gate / (1 + numpy.exp(-gate)) * up, block + "ffn_down.weight")
        output = "output.weight" if self.has("output.weight") else "token_embd.weight"
        return numpy.split(self.product(self.norm(x, "output_norm.weight"), output), cuts)
