"""Texts to vectors: a model, and a cache on disk by content hash."""

from __future__ import annotations

import errno
import hashlib
import os
import zlib
from collections.abc import Iterable, Sequence
from fcntl import LOCK_EX, flock
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.encoders import MiniLM, SentenceTransformersEncoder
from pollex.errors import PollexError, StoreFull
from pollex.rubrics.judge_settings import DEFAULT_MODEL

Array = npt.NDArray[np.float32]
PORTION = 512
"""Texts encoded before they are written: what a kill can cost, and how long Ctrl-C may take."""


LARGEST = 1 << 29
"""Bytes of a file of vectors; a file that is larger grows no more."""


class Encoder(Protocol):
    """Any sentence-embedding model."""

    def encode(self, texts: list[str]) -> Array:
        """Encode texts as float32 vectors [text, width] of length 1."""


class Watcher(Protocol):
    """Protocol for reporting the progress of a long encoding."""

    def start(self, stage: str, total: int) -> None:
        """Report that `total` texts will be encoded."""

    def advance(self, stage: str, by: int) -> None:
        """Report that `by` more texts are encoded."""


class Embedder:
    """Embeds each text once.

    Args:
        model: `all-MiniLM-L6-v2` (bundled), or the name or path of any sentence-transformers model.
        cache: Folder of the vectors; None keeps them in memory alone.

    Attributes:
        encoded: How many texts went through the model, because the cache didn't have them.
        remembered: Vectors kept in memory after a call; None: all.
    """

    def __init__(self, model: str = DEFAULT_MODEL, cache: Path | None = None) -> None:
        self.model = model
        self.encoded = 0
        self.remembered: int | None = None
        self._progress: Watcher | None = None
        self._cache = CacheFile(cache / f"{digest_of(self.identity)[:16]}.vectors") if cache else None

    @cached_property
    def identity(self) -> str:
        """Name of the model; for a folder with a hash of its files."""
        folder = Path(self.model)
        return self.model if self.model == DEFAULT_MODEL or not folder.is_dir() else f"{self.model} {files_of(folder)}"

    def embed(self, texts: Sequence[str]) -> Array:
        """Return float32 vectors [text, width] of length 1; encode only texts not in the cache."""
        keys = [key_of(text) for text in texts]
        new = list({key: text for key, text in zip(keys, texts, strict=True) if key not in self._vectors}.items())
        watched = self._progress if len(new) > PORTION else None
        if watched:
            watched.start("embed", len(new))
        for start in range(0, len(new), PORTION):
            portion = new[start : start + PORTION]
            self._add(portion)
            if watched:
                watched.advance("embed", len(portion))
        found = np.stack([self._vectors[key] for key in keys]) if keys else np.empty((0, self._width), np.float32)
        if self.remembered is not None:
            self._forget(len(self._vectors) - self.remembered)
        return found

    def watch(self, progress: Watcher) -> None:
        """Report long encodings to `progress`, as the stage `embed`."""
        self._progress = progress

    @cached_property
    def _vectors(self) -> dict[bytes, Array]:
        """Vectors by key of the text; the cache is read when the first text is asked for."""
        return {} if self._cache is None else self._cache.load()

    @cached_property
    def encoder(self) -> Encoder:
        """The model, loaded at the first text that isn't in the cache."""
        return load_encoder(self.model)

    @property
    def _width(self) -> int:
        return len(next(iter(self._vectors.values()), ()))

    def _forget(self, count: int) -> None:
        """Drop the vectors that were encoded first."""
        for key in list(islice(self._vectors, max(0, count))):
            del self._vectors[key]

    def _add(self, new: Sequence[tuple[bytes, str]]) -> None:
        keys = [key for key, _ in new]
        vectors = self.encoder.encode([text.encode("utf-8", "replace").decode() for _, text in new])
        if self._cache is not None:
            self._cache.append(keys, vectors)
        self._vectors.update(zip(keys, vectors, strict=True))
        self.encoded += len(keys)


class CacheFile:
    """Vectors of one model on disk, one record for each text.

    A record has width, checksum, the text's SHA-256, and the numbers.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> dict[bytes, Array]:
        """Load the intact records, and truncate the file at the first damaged one.

        Lost vectors are encoded again; a damaged record would make all later ones unreadable.
        """
        if not self.path.exists():
            return {}
        try:
            content = self.path.read_bytes()
            found, whole = unpacked(content)
            if whole < len(content):
                with self.path.open("r+b") as file:
                    flock(file, LOCK_EX)  # another process may have been in the middle of adding some
                    found, whole = unpacked(file.read())
                    file.truncate(whole)
        except OSError as error:
            raise self._trouble("read", error) from error
        return found

    def append(self, keys: Iterable[bytes], vectors: Array) -> None:
        """Append records in one write, unless the file is at its largest.

        Raises:
            StoreFull: There is no room on the disk.
            PollexError: The file can't be written for another reason.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                flock(file, LOCK_EX)
                if file.tell() < LARGEST:
                    file.write(packed(keys, vectors))
        except OSError as error:
            raise self._trouble("written", error) from error

    def _trouble(self, verb: str, error: OSError) -> PollexError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreFull("disk full under the embedding cache", where=str(self.path), remedy="make room")
        return PollexError(
            f"the embedding cache can't be {verb}: {error.strerror}",
            where=str(self.path),
            remedy="correct its permissions, or delete it: it will be rebuilt",
        )


HEAD = 4 + 4 + 32


def packed(keys: Iterable[bytes], vectors: Array) -> bytes:
    """Serialize records for the cache file."""
    width = vectors.shape[1].to_bytes(4, "little")
    bodies = (key + vector.astype("<f4").tobytes() for key, vector in zip(keys, vectors, strict=True))
    return b"".join(width + zlib.crc32(body).to_bytes(4, "little") + body for body in bodies)


def unpacked(content: bytes) -> tuple[dict[bytes, Array], int]:
    """Parse records up to the first incomplete one; return the vectors and their bytes."""
    found: dict[bytes, Array] = {}
    start, size = 0, HEAD + 4 * int.from_bytes(content[:4], "little")
    while start + size <= len(content) and content[start : start + 4] == content[:4]:
        body = content[start + 8 : start + size]
        if zlib.crc32(body) != int.from_bytes(content[start + 4 : start + 8], "little"):
            break
        found[body[:32]] = np.frombuffer(body, dtype="<f4", offset=32)
        start += size
    return found, start


def key_of(text: str) -> bytes:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def digest_of(text: str) -> str:
    """SHA-256 of a text in hex."""
    return key_of(text).hex()


def files_of(folder: Path) -> str:
    """Twelve hex digits that name the files of a folder by their contents."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            digest.update(f"{path.relative_to(folder)}\0".encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def load_encoder(model: str) -> Encoder:
    """Load the bundled model, or another of sentence-transformers."""
    return MiniLM() if model == DEFAULT_MODEL else SentenceTransformersEncoder(model)
