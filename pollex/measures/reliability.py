"""Calibration of probabilities: smECE, and reliability diagrams.

Source: Błasiok and Nakkiran 2024, "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing",
arXiv:2309.12236; the error is computed by relplot, the authors' package, without its half that draws: imported whole,
it takes seconds, for matplotlib, which writes a cache of fonts into the home folder.

A question with several answers is looked at one answer against the rest.

How often an answer was given at a probability, in a bin or smoothed, has Wilson's interval (Wilson 1927,
doi:10.1080/01621459.1927.10502953), with texts for its n, as if each had one judgment: that is exact where it has, and
too wide where those of a text don't all agree. To a bootstrap an answer that none of ten gave is beyond doubt.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import Figure, resampled, unit_codes, with_interval

SMECE_RESAMPLES = 200
MESH = 101
FEWEST_IN_BIN, MOST_BINS = 10, 8
Z = 1.959964
"""Half width of the 95 % interval of a standard normal variable."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """The content of a reliability diagram of one answer.

    Attributes:
        mesh: Predicted probabilities `[mesh]` from 0 to 1.
        curve: How often the answer was given at them, smoothed `[mesh]`.
        low: Lower end of the curve's 95 % band `[mesh]`. What smoothing itself bends is not in it.
        high: Upper end.
        density: How many predictions there are at them, of mean 1 `[mesh]`. Where it is near 0 the curve says nothing.
        width: Standard deviation of the kernel.
        bins: The same without smoothing.
    """

    value: float
    mesh: Floats
    curve: Floats
    low: Floats
    high: Floats
    density: Floats
    width: float
    smece: Figure
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class Bin:
    """Judgments whose predicted probabilities are next to each other.

    Attributes:
        predicted: Mean predicted probability.
        share: How often the answer was given, with its interval.
    """

    predicted: float
    share: Figure


def smece(
    proba: Floats, answer: Ints, text: Ints, rng: np.random.Generator | None = None, resamples: int = SMECE_RESAMPLES
) -> tuple[Figure, list[Figure]]:
    """Compute the smoothed calibration error, as mean over answers and for each answer.

    Resampling adds noise to every smoothed share and so drives the error up, by about as much as the sample itself did:
    the interval is the basic one, drawn out to the value where it would end under it. It is no test of calibration:
    where there is no error at all, it reaches down to 0 in about half of the samples of 60 and a third of those of 200.

    Args:
        proba: `[judgment, option]`.
        answer: Place of the option that was chosen `[judgment]`.
        text: Which text each judgment is of `[judgment]`.
    """
    options = proba.shape[1]
    if len(answer) < 2:
        reason = "fewer than two judgments" if len(answer) else "no judgments"
        nothing = Figure(None, n=len(answer), undefined=reason, units=len(answer))
        return nothing, [nothing] * options
    hits, codes = np.eye(options)[answer], unit_codes(text)
    values = _errors(proba, hits, np.ones((1, len(answer))))[0]
    draws = np.concatenate(
        [np.zeros((0, options)), *(_errors(proba, hits, weights) for weights in resampled(codes, resamples, rng))]
    )
    n, texts = len(answer), int(codes.max()) + 1
    each = [
        with_interval(float(value), draw, n, texts, kind="basic") for value, draw in zip(values, draws.T, strict=True)
    ]
    return with_interval(float(values.mean()), draws.mean(axis=1), n, texts, kind="basic"), each


def _errors(proba: Floats, hits: Floats, weights: Floats) -> Floats:
    copies = [np.repeat(np.arange(len(proba)), row.astype(int)) for row in weights]
    options = proba.shape[1]
    apart = 1 if options == 2 else options  # of two answers, one is the mirror image of the other
    errors = np.array([[smooth_error(proba[rows, o], hits[rows, o]) for o in range(apart)] for rows in copies])
    return np.broadcast_to(errors, (len(copies), options))


def reliability(proba: Floats, answer: Ints, text: Ints, values: tuple[float, ...]) -> list[Reliability]:
    """Return a diagram for each answer, its smECE without an interval; none when there are fewer than two judgments.

    Args:
        proba: `[judgment, option]`.
        answer: Place of the option that was chosen `[judgment]`.
        text: Which text each judgment is of `[judgment]`.
        values: What each option is worth.
    """
    if len(answer) < 2:
        return []
    errors = smece(proba, answer, text)[1]
    hits = np.eye(len(values))[answer]
    return [
        Reliability(
            value=value,
            smece=error,
            bins=tuple(bin_predictions(probability, hit, text)),
            **_curve(probability, hit, text),
        )
        for value, error, probability, hit in zip(values, errors, proba.T, hits.T, strict=True)
    ]


def smoothed(probability: Floats, hit: Floats, weights: Floats, mesh: Floats, width: float) -> Floats:
    """Smooth hits over probabilities by kernel regression `[resample, mesh]`.

    The kernel is a normal density that is reflected at 0 and 1, where a plain one would lose mass.

    Args:
        probability: `[judgment]`.
        hit: `[judgment]`.
        weights: `[resample, judgment]`.
    """
    kernel, _ = _kernel(probability, mesh, width)
    below = weights @ kernel
    shares: Floats = np.divide((weights * hit) @ kernel, below, out=np.full(below.shape, np.nan), where=below > 0)
    return shares


def _kernel(probability: Floats, mesh: Floats, width: float) -> tuple[Floats, Floats]:
    """Evaluate the reflected normal density of mesh points around probabilities, without norm.

    Five images on either side: farther ones contribute less than e⁻⁷ of the nearest, even at width 1.

    Returns:
        `[judgment, mesh]`, divided by the largest of each mesh point, which a narrow kernel would round to 0; and
            these `[mesh]`.
    """
    images = np.concatenate([shift + sign * mesh for shift in (-4, -2, 0, 2, 4) for sign in (1, -1)])
    logs = -(((probability[:, None] - images) / width) ** 2) / 2
    logs = logs.reshape(len(probability), -1, len(mesh))
    top = logs.max(axis=(0, 1))
    return np.exp(logs - top).sum(axis=1), np.exp(top)


def _curve(probability: Floats, hit: Floats, text: Ints) -> dict[str, Any]:
    width = float(smooth_error(probability, hit, return_width=True)[1])
    mesh = np.linspace(0, 1, MESH)
    kernel, scale = _kernel(probability, mesh, width)
    density = kernel.sum(axis=0) * scale
    curve = smoothed(probability, hit, np.ones((1, len(hit))), mesh, width)[0]
    low, high = wilson(curve, _texts_behind(kernel, unit_codes(text)))
    return {"mesh": mesh, "curve": curve, "low": low, "high": high, "density": density / density.mean(), "width": width}


def _texts_behind(kernel: Floats, codes: Ints) -> Floats:
    """Return the effective number of texts behind a smoothed share `[mesh]`.

    Source: Kish 1965, "Survey Sampling", on the effective size of a sample with weights.

    Args:
        kernel: `[judgment, mesh]`.
        codes: The text of each judgment, from 0 on without gaps `[judgment]`.
    """
    weights = np.zeros((int(codes.max()) + 1, kernel.shape[1]))
    np.add.at(weights, codes, kernel)
    return np.asarray(weights.sum(axis=0) ** 2 / (weights**2).sum(axis=0))


def wilson(share: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """Return both ends of the 95 % score interval of shares of n, any shape."""
    p, size = np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64)
    below = 1 + Z * Z / size
    center = (p + Z * Z / (2 * size)) / below
    half = Z * np.sqrt(p * (1 - p) / size + Z * Z / (4 * size * size)) / below
    return np.maximum(center - half, 0.0), np.minimum(center + half, 1.0)


def bin_predictions(probability: Floats, hit: Floats | Bools, text: Ints) -> list[Bin]:
    """Bin predictions by probability into at most 8 bins of at least 10.

    Equal probabilities stay in one bin.

    Args:
        probability: `[judgment]`.
        hit: Whether what was predicted came true `[judgment]`.
        text: Judgments with the same number count as one in the intervals `[judgment]`.
    """
    wanted = min(max(len(probability) // FEWEST_IN_BIN, 1), MOST_BINS)
    cuts = np.quantile(probability, np.arange(1, wanted) / wanted, method="lower") if len(probability) else np.zeros(0)
    numbers = np.searchsorted(np.unique(cuts), probability, side="left")
    bins = []
    for part in (np.flatnonzero(numbers == each) for each in np.unique(numbers)):
        share, texts = float(hit[part].mean()), len(np.unique(text[part]))
        low, high = map(float, wilson(share, texts))
        bins.append(Bin(float(probability[part].mean()), Figure(share, low, high, len(part), units=texts)))
    return bins


_PACKAGE = "relplot"


def smooth_error(probability: Any, hit: Any, *, return_width: bool = False) -> Any:
    """Compute smECE of probabilities `[judgment]` and hits `[judgment]`; with the kernel's width where asked for."""
    return _metrics().smECE(probability, hit, return_width=return_width)


@cache
def _metrics() -> ModuleType:
    if _PACKAGE in sys.modules:
        return import_module(f"{_PACKAGE}.metrics")
    spec = find_spec(_PACKAGE)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {_PACKAGE!r}")
    sys.modules[_PACKAGE] = module_from_spec(spec)
    try:
        return import_module(f"{_PACKAGE}.metrics")  # scipy comes with it
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            del sys.modules[name]
