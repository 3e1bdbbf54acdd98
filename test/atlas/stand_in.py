"""A checkpoint of stories15m for tests: the right names and shapes, zeros but for the norms before attention,
whose elements are 1 in block 0, 2 in block 1, and so on. Nearly all of it is a hole in the file."""
import json
import os
import struct

DIM, LAYERS, FFN, VOCABULARY, HEADS = 288, 6, 768, 32000, 6


def shapes():
    yield "model.embed_tokens.weight", [VOCABULARY, DIM]
    for layer in range(LAYERS):
        block = f"model.layers.{layer}."
        yield block + "input_layernorm.weight", [DIM]
        yield block + "post_attention_layernorm.weight", [DIM]
        for name in "qkvo":
            yield f"{block}self_attn.{name}_proj.weight", [DIM, DIM]
        for name, shape in (("gate", [FFN, DIM]), ("up", [FFN, DIM]), ("down", [DIM, FFN])):
            yield f"{block}mlp.{name}_proj.weight", shape
    yield "model.norm.weight", [DIM]


def write(folder, leave_out=None):
    """Writes config.json and model.safetensors into a new folder; `leave_out` names a tensor to forget."""
    os.makedirs(folder)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump({"model_type": "llama", "hidden_size": DIM, "num_hidden_layers": LAYERS,
                   "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "intermediate_size": FFN,
                   "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
                   "tie_word_embeddings": True}, file)
    header, end = {}, 0
    for name, shape in shapes():
        if name == leave_out:
            continue
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{folder}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        start = file.tell()
        file.truncate(start + end)
        for layer in range(LAYERS):
            file.seek(start + header[f"model.layers.{layer}.input_layernorm.weight"]["data_offsets"][0])
            # bfloat16 is the upper half of a float32.
            file.write(struct.pack("<f", layer + 1)[2:] * DIM)
    return folder
