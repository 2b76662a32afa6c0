"""Whether two models differ by more than chance, on the same judgments.

Source: Good 2005, "Permutation, Parametric, and Bootstrap Tests of Hypotheses",
    doi:10.1007/b138696; Phipson and Smyth
2010, doi:10.2202/1544-6115.1585, for counting the actual sample among the random ones.

If two models are as good as each other, then it is chance which of the two gave which prediction of
a text. So the two are swapped text by text, a text's judgments together, in every way that there
is, or in many at random.
"""

from dataclasses import dataclass

import numpy as np

from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints
from pollex.measures.correlations import make_pearson_statistic
from pollex.measures.intervals import MAX_RESAMPLE_WEIGHTS_PER_BLOCK

DRAWS = 10_000
SAME = 1e-9
"""Differences that are so close, in proportion, count as equal: sums in another order differ by rounding."""


@dataclass(frozen=True)
class Tested:
    """A difference and how often chance alone gives one as large.

    Attributes:
        difference: Of the first less the second; None when it is undefined.
        p: Two-sided; None when it is undefined.
        texts: Texts on which the two differ at all.
        exact: Whether all ways to swap were tried.
        undefined: Why there is no difference.
    """

    difference: float | None
    p: float | None
    texts: int
    exact: bool
    undefined: str = ""


def compared_losses(
    first: Floats, second: Floats, text: Ints, rng: np.random.Generator, draws: int = DRAWS
) -> Tested:
    """Tests the mean difference of two losses `[judgment]` by flipping the sign of each text's difference.

    Args:
        first: Loss of each judgment: squared errors, −log p; finite.
        text: Which text each judgment is of `[judgment]`.
        draws: Random flips; all flips are tried when they are no more than that.
    """
    _refuse_unequal(first, second, text)
    if not len(first):
        return Tested(None, None, 0, True, "no judgments")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return Tested(None, None, 0, True, "a loss is infinite")
    codes = np.unique(text, return_inverse=True)[1]
    differences = np.bincount(codes, first - second) / len(first)
    differences = differences[differences != 0]
    actual = float(differences.sum())
    signs, exact = _signs(len(differences), draws, rng)
    found = np.concatenate([block @ differences for block in signs])
    return Tested(actual, _p(np.abs(found), abs(actual), exact), len(differences), exact)


def compared_correlations(
    first: Floats,
    second: Floats,
    given: Floats,
    text: Ints,
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> Tested:
    """Tests the difference of Pearson's correlations with the given answers by swapping the two text by text.

    Args:
        first: Expected answer of each judgment `[judgment]`.
        given: `[judgment]`.
    """
    _refuse_unequal(first, second, text)
    for name, numbers in (("answers", given), ("predictions", first), ("predictions", second)):
        if len(numbers) < 2 or np.ptp(numbers) <= 1e-12 * np.abs(numbers).max():
            return Tested(None, None, 0, True, f"all {name} are alike")
    # Both models' predictions below each other; a swap is then a choice of weights, 1 or 0.
    numbers = np.concatenate([first, second])
    answers = np.concatenate([given, given])
    pearson = make_pearson_statistic(numbers, answers)
    codes = np.unique(text, return_inverse=True)[1]
    differing = np.flatnonzero(np.bincount(codes, np.abs(first - second)) > 0)
    signs, exact = _signs(len(differing), draws, rng, width=2 * len(first))
    found = []
    for block in signs:
        kept = np.ones((len(block), codes.max() + 1))
        kept[:, differing] = (1 + block) / 2
        mine = kept[:, codes]
        found.append(pearson(np.hstack([mine, 1 - mine])) - pearson(np.hstack([1 - mine, mine])))
    ones = np.ones((1, len(first)))
    actual = float((pearson(np.hstack([ones, 0 * ones])) - pearson(np.hstack([0 * ones, ones])))[0])
    return Tested(
        actual, _p(np.abs(np.concatenate(found)), abs(actual), exact), len(differing), exact
    )


def _refuse_unequal(first: Floats, second: Floats, text: Ints) -> None:
    if not len(first) == len(second) == len(text):
        raise WrongUse(
            f"{len(first)} and {len(second)} figures of {len(text)} judgments",
            hint="compare two models on the same judgments",
        )


def _signs(
    texts: int, draws: int, rng: np.random.Generator, width: int = 0
) -> tuple[list[Floats], bool]:
    """+1 and −1 in blocks `[draw, text]`, and whether they are all that there are.

    Args:
        width: Columns of what the caller makes of them, if more.
    """
    step = max(1, MAX_RESAMPLE_WEIGHTS_PER_BLOCK // max(1, texts, width))
    exact = 2**texts <= draws
    if exact:
        bits = (np.arange(2**texts)[:, None] >> np.arange(texts)) & 1
        every: Floats = (1 - 2 * bits).astype(np.float64)
    else:
        every = (1 - 2 * rng.integers(2, size=(draws, texts))).astype(np.float64)
    return [every[start : start + step] for start in range(0, len(every), step)], exact


def _p(found: Floats, actual: float, exact: bool) -> float:
    """Share of differences at least as large as the actual one."""
    extreme = int((found >= actual * (1 - SAME)).sum())
    return extreme / len(found) if exact else (extreme + 1) / (len(found) + 1)
