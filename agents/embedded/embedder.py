"""Texts to vectors: a model, and a cache on disk by content hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pollex.errors import ModelUnavailable

Array = npt.NDArray[np.float32]
DEFAULT_MODEL = "all-MiniLM-L6-v2"


class Encoder(Protocol):
    """Any sentence-embedding model."""

    def encode(self, texts: list[str]) -> Array:
        """Vectors [text, width] of length 1, float32."""


class Watcher(Protocol):
    """Who is told how far a long encoding is."""

    def start(self, stage: str, total: int) -> None:
        """So many texts are to be encoded."""

    def advance(self, stage: str, by: int) -> None:
        """So many more are."""


PORTION = 512


class Embedder:
    """Embeds each text once.

    Args:
        model: `all-MiniLM-L6-v2` (bundled), or the name or path of any sentence-transformers model.
        cache: Folder of the vectors; None keeps them in memory alone.
    """

    def __init__(self, model: str = DEFAULT_MODEL, cache: Path | None = None) -> None:
        self.model = model
        self.vectors: dict[bytes, Array] = {}
        self.encoded = 0
        self._encoder: Encoder | None = None
        self._progress: Watcher | None = None
        self._file = cache / f"{hashlib.sha256(model.encode()).hexdigest()[:16]}.vectors" if cache else None
        self._width = 0
        if self._file is not None and self._file.exists():
            self._load(self._file)

    def embed(self, texts: Sequence[str]) -> Array:
        """Vectors [text, width] of length 1, float32; only texts never seen before are encoded."""
        keys = [key_of(text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self.vectors}
        self._encode(new)
        return np.stack([self.vectors[key] for key in keys]) if keys else np.empty((0, self._width), np.float32)

    def watch(self, progress: Watcher) -> None:
        """Tells `progress` of long work, as the stage `embed`."""
        self._progress = progress

    def _encode(self, new: dict[bytes, str]) -> None:
        """Encodes in portions, each cached when it is done: a kill costs one of them at most."""
        keys = list(new)
        watched = self._progress if len(keys) > PORTION else None
        if watched:
            watched.start("embed", len(keys))
        for start in range(0, len(keys), PORTION):
            portion = keys[start : start + PORTION]
            texts = [new[key].encode("utf-8", "replace").decode() for key in portion]
            self._add(portion, self.encoder.encode(texts))
            if watched:
                watched.advance("embed", len(portion))

    @property
    def encoder(self) -> Encoder:
        """The model, loaded at the first text that isn't in the cache."""
        if self._encoder is None:
            self._encoder = load_encoder(self.model)
        return self._encoder

    def _add(self, keys: list[bytes], vectors: Array) -> None:
        self.vectors.update(zip(keys, vectors, strict=True))
        self.encoded += len(keys)
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("ab") as out:
                out.write(packed(keys, vectors))

    def _load(self, file: Path) -> None:
        """Reads what is whole; a record cut short by a crash is cut off, or later ones would be misread."""
        content = file.read_bytes()
        width = int.from_bytes(content[:4], "little") if len(content) >= 4 else 0
        size = RECORD_HEAD + 4 * width
        whole = len(content) // size * size if width else 0
        if whole < len(content):
            with file.open("r+b") as out:
                out.truncate(whole)
        records = np.frombuffer(content[:whole], dtype=record_type(width)) if whole else []
        self.vectors.update((bytes(row["key"]), row["vector"]) for row in records)


RECORD_HEAD = 4 + 32


def record_type(width: int) -> np.dtype[np.void]:
    """One cached vector: its width, the text's SHA-256, the numbers."""
    return np.dtype([("width", "<u4"), ("key", "V32"), ("vector", "<f4", (width,))])


def packed(keys: Iterable[bytes], vectors: Array) -> bytes:
    """Records as they lie in the cache file."""
    width = vectors.shape[1]
    head = width.to_bytes(4, "little")
    return b"".join(head + key + vector.astype("<f4").tobytes() for key, vector in zip(keys, vectors, strict=True))


def key_of(text: str) -> bytes:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def load_encoder(model: str) -> Encoder:
    """The bundled model, or one of sentence-transformers."""
    if model == DEFAULT_MODEL:
        from pollex.agents.embedded.minilm import MiniLM  # OpenVINO: not needed where all vectors are cached

        return MiniLM()
    return SentenceTransformersEncoder(model)


class SentenceTransformersEncoder:
    """Any model that sentence-transformers can load, by name or path."""

    def __init__(self, model: str) -> None:
        from sentence_transformers import SentenceTransformer  # five seconds, so only when asked for

        try:
            self.model = SentenceTransformer(model, device="cpu")
        except Exception as error:
            raise ModelUnavailable(
                f"the embedding model {model!r} can't be loaded ({type(error).__name__})",
                remedy=f"give the path of a downloaded sentence-transformers model, or leave it out to use {DEFAULT_MODEL}",
            ) from error

    def encode(self, texts: list[str]) -> Array:
        """Vectors [text, width] of length 1, float32."""
        return np.asarray(self.model.encode(texts, normalize_embeddings=True, show_progress_bar=False), np.float32)
