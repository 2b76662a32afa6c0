"""Writes a language model of 20,000 random weights as a GGUF file: `python tiny_model.py PATH`. Needs `gguf` and NumPy.

It knows bytes and the letters A to E, and leans towards those letters: an answer of one token is
then one of them, and which, and how likely, depends on weights and prompt as in any model. After a
letter or a quotation mark it wants to end, or to close what a grammar made it open.
"""

import sys
from importlib import import_module

import numpy as np

# not among what developers install: the test that needs it says so and is skipped
gguf = import_module("gguf")

WIDTH = 32
HEADS = 2
HIDDEN = 64
CONTEXT = 8192
LETTERS = "ABCDE"
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
QUOTE = 3 + ord('"')
END = 2

WORDS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *LETTERS]


def write(path: str) -> None:
    """The model, always the same."""
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(WORDS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(WORDS)
    writer.add_token_scores([0.0] * len(WORDS))
    writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * len(LETTERS)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)
    for name, array in weights(rng).items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def weights(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random ones. Of a state the first number is always the same and the second tells letters: so it leans."""

    def random(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    embedding = random(len(WORDS), WIDTH)
    output = random(len(WORDS), WIDTH)
    attention = {part: random(WIDTH, WIDTH) for part in ("q", "k", "v", "output")}
    attention["output"][:2] = 0.0
    embedding[:, :2] = 1.0, 0.0
    embedding[[QUOTE, *range(len(WORDS) - len(LETTERS), len(WORDS))], 1] = 1.0
    output[:, :2] = 0.0
    output[-len(LETTERS) :, 0] = 5.0
    output[QUOTE, :2] = 3.0, 7.0
    output[END, :2] = 0.0, 12.0
    down = random(WIDTH, HIDDEN)
    ones = np.ones(WIDTH, np.float32)
    down[:2] = 0.0
    return {
        "token_embd.weight": embedding,
        "output.weight": output,
        "output_norm.weight": ones,
        "blk.0.attn_norm.weight": ones,
        "blk.0.ffn_norm.weight": ones,
        **{f"blk.0.attn_{part}.weight": matrix for part, matrix in attention.items()},
        "blk.0.ffn_gate.weight": random(HIDDEN, WIDTH),
        "blk.0.ffn_up.weight": random(HIDDEN, WIDTH),
        "blk.0.ffn_down.weight": down,
    }


if __name__ == "__main__":
    write(sys.argv[1])
