"""The bundled model against what sentence-transformers does by itself, and against itself in other company."""

import subprocess
import sys

import numpy as np
import pytest

from pollex.agents.embedded.embedder import (
    BATCH_TOKENS,
    Embedder,
    MiniLM,
    SentenceTransformersEncoder,
    batches,
    model_folder,
)

SAMPLES = [
    "",
    " ",
    ".",
    "ok",
    "Thanks, that did it!",
    "I'm sorry, I could not find a table for 4 at 7 pm.",
    "```csharp\nvar x = await client.GetAsync(url).ConfigureAwait(false);\n```",
    "😀😀 👍🏽 🇩🇪",
    "你好，请帮我查找这个错误。谢谢！",
    "こんにちは。エラーが出ます。",
    "Ünïcödé ﬁ ligature ½ ① \u200b zero width",
    "a" * 5_000,
    "word " * 600,
    "the stack trace at line 12 says null reference exception " * 60,
    "<script>alert(1)</script> [MASK] [SEP] [CLS] ##ing",
]


@pytest.fixture
def model(embedder: Embedder) -> MiniLM:
    assert isinstance(embedder.encoder, MiniLM)
    return embedder.encoder


def test_cosines_agree_with_sentence_transformers_and_torch_keeps_its_threads(model: MiniLM) -> None:
    import torch

    theirs = SentenceTransformersEncoder(str(model_folder())).encode(SAMPLES)
    before = torch.get_num_threads()
    ours = model.encode(SAMPLES)
    assert torch.get_num_threads() == before
    assert ((ours * theirs).sum(axis=1) >= 1 - 1e-5).all()
    assert abs(ours @ ours.T - theirs @ theirs.T).max() <= 1e-5
    assert model.encode([]).shape == (0, 384)


def test_a_text_has_the_same_bits_alone_and_in_any_batch(model: MiniLM) -> None:
    rng = np.random.default_rng(0)
    vocabulary = ["hotel", "train", "exception", "please", "null", "danke", "😀", "谢谢"]
    texts = SAMPLES[:11] + [" ".join(rng.choice(vocabulary, size=n)) for n in rng.integers(1, 60, size=3)]
    together = model.encode(texts)
    order = rng.permutation(len(texts))
    assert (model.encode([texts[i] for i in order]) == together[order]).all()
    assert all((model.encode([text])[0] == row).all() for text, row in zip(texts, together, strict=True))


def test_batches_hold_every_row_once_with_one_length_and_few_tokens() -> None:
    padded = np.array([8] * 300 + [256] * 9 + [48] * 50)
    found = list(batches(padded))
    assert sorted(np.concatenate(found)) == list(range(len(padded)))
    assert all(len(set(padded[rows])) == 1 for rows in found)
    assert max(padded[rows].sum() for rows in found) <= BATCH_TOKENS


@pytest.mark.nightly
def test_a_program_that_ends_right_after_embedding_ends_well() -> None:
    program = "from pollex.agents.embedded.embedder import Embedder; Embedder().embed(['a', 'b c d'] * 20)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
