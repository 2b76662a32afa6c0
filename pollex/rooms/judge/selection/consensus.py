"""Votes of an ensemble against the truth: entropy, coverage, score, and fitted τ.

Source: Goldman, Vasilevski 2024, "RoboRater: Automating Ratings of Task-Oriented Conversations
using LLMs", AAAI Spring Symposium.
"""

from dataclasses import dataclass

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.distributions import compute_entropy_of_distributions
from pollex.measures.intervals import Figure, make_share_with_exact_interval
from pollex.text import JsonDict

TIE_MODE = -1
"""In an array of modes: two options have as many votes, or none has any."""

ENTROPY_TOLERANCE = 1e-9


def compute_entropies(votes: Ints) -> Floats:
    """Compute the diversity entropy in nats of votes [..., option]; NaN without votes."""
    total = votes.sum(axis=-1, keepdims=True)
    p = np.divide(votes, total, out=np.full(votes.shape, np.nan), where=total > 0)
    return compute_entropy_of_distributions(p)


def find_modes(votes: Ints) -> Ints:
    """Return the option with the most votes, of votes [..., option]; `TIE_MODE` for ties."""
    most = votes.max(axis=-1, keepdims=True)
    single = ((votes == most).sum(axis=-1) == 1) & (most[..., 0] > 0)
    return np.where(single, votes.argmax(axis=-1), TIE_MODE)


def get_interval_ends(figure: Figure) -> tuple[float, float] | None:
    """Return both ends of a figure's interval; None where it has none."""
    if figure.low is None or figure.high is None:
        return None
    return (figure.low, figure.high)


@dataclass(frozen=True)
class TauSide:
    """Conversations on one side of τ.

    Attributes:
        n: How many have a truth.
        right: Those among them whose mode is the truth; a tie is not.
        tied: Those without a mode; they count as −1.
        units: How many they are if those that go together count as one; None: each is alone.
    """

    n: int
    right: int
    tied: int
    units: int | None = None

    @property
    def precision(self) -> Figure:
        """Share that is right."""
        return make_share_with_exact_interval(self.right, self.n, self.units)

    @property
    def as_json(self) -> JsonDict:
        """All of it as JSON values, with the score: the mean of +1 for right and −1 for wrong."""
        share = self.precision
        ends = get_interval_ends(self.precision)
        # from a share of right answers in 0–1 to a mean of ±1
        score = (2 * self.right - self.n) / self.n if self.n else None
        figures = {
            "precision": share.value,
            "precision_interval": ends,
            "score": score,
        }
        interval = ends and (2 * ends[0] - 1, 2 * ends[1] - 1)

        return (
            {"n": self.n, "right": self.right, "tied": self.tied} | figures | {"interval": interval}
        )


@dataclass(frozen=True)
class TauSplit:
    """Conversations with a truth that pass τ, and those that don't."""

    passed: TauSide
    left: TauSide
    units: int | None = None

    @property
    def coverage(self) -> Figure:
        """Share that passes."""
        return make_share_with_exact_interval(
            self.passed.n, self.passed.n + self.left.n, self.units
        )

    @property
    def as_json(self) -> JsonDict:
        """Coverage and both sides as JSON values."""
        about = {
            "coverage": self.coverage.value,
            "coverage_interval": get_interval_ends(self.coverage),
        }
        return about | {"passed": self.passed.as_json, "left": self.left.as_json}


def split_at(
    entropy: Floats,
    mode: Ints,
    truth: Ints,
    tau: float,
    together: Ints | None = None,
) -> TauSplit:
    """Split conversations at τ; ties have no rating and never pass.

    Args:
        entropy: [conversation]; NaN doesn't pass.
        mode: [conversation], `TIE_MODE` for none.
        truth: [conversation].
        together: Number of each conversation's block [conversation]; None if each is independent.
    """
    return split_by_mask(_mask_passing(entropy, mode, tau), mode, truth, together)


@dataclass(frozen=True)
class TauPoint:
    """Both sides of one τ where only the first n runs are counted."""

    n: int
    tau: float
    sides: TauSplit

    @property
    def as_json(self) -> JsonDict:
        """All of it as JSON values."""
        return {
            "n": self.n,
            "tau": self.tau,
            **self.sides.as_json,
        }


def count_first_runs(
    picks: Ints,
    n: int,
    options: int,
    fewest: int = 1,
) -> tuple[Floats, Ints]:
    """Compute entropy and mode of the first n runs, each `[conversation]`.

    Args:
        picks: Option that each run chose [conversation, run], negative for none.
        fewest: With fewer answers a conversation has no entropy, so that it passes nowhere.
    """
    # [conversation, option]; negative picks match no option
    votes = np.asarray(
        (picks[:, :n, None] == np.arange(options)).sum(axis=1),
        dtype=np.int64,
    )
    return np.where(votes.sum(axis=1) < fewest, np.nan, compute_entropies(votes)), find_modes(votes)


def compute_tau_points(
    entropy: Floats,
    mode: Ints,
    truth: Ints,
    n: int,
    together: Ints | None = None,
) -> list[TauPoint]:
    """Split conversations at every τ that entropies of n runs have; arguments as for `split_at`."""
    # rounded, so that equal entropies computed in another order are one τ
    taus = np.unique(np.round(entropy[~np.isnan(entropy)], 9)).tolist()
    tau_points: list[TauPoint] = []
    for tau in taus:
        tau_points.append(
            TauPoint(
                n,
                tau,
                split_at(entropy, mode, truth, tau, together),
            )
        )

    return tau_points


def _mask_passing(entropy: Floats, mode: Ints, tau: float) -> Bools:
    return np.asarray((entropy <= tau + ENTROPY_TOLERANCE) & (mode != TIE_MODE))


def split_by_mask(
    passes: Bools,
    mode: Ints,
    truth: Ints,
    together: Ints | None = None,
) -> TauSplit:
    """Count what passes and what is left `[conversation]`; see `split_at`."""
    return TauSplit(
        _count_side(passes, mode, truth, together),
        _count_side(~passes, mode, truth, together),
        None if together is None else len(np.unique(together)),
    )


def _count_side(
    on_it: Bools,
    mode: Ints,
    truth: Ints,
    together: Ints | None,
) -> TauSide:
    mode = mode[on_it]
    truth = truth[on_it]
    # conversations that belong together count once in the interval
    units = None
    if together is not None:
        units = len(np.unique(together[on_it]))

    return TauSide(
        len(mode),
        int((mode == truth).sum()),
        int((mode == TIE_MODE).sum()),
        units,
    )


@dataclass(frozen=True)
class FittedTau:
    """A τ fitted to labeled conversations.

    Attributes:
        tau: The highest at which the ratings are as precise as wanted; None where there is none.
        n: Labeled conversations that it was fitted to.
        passed: Those among them that pass.
        right: Those of these that are right.
        best: The highest precision that any τ has on them; None where none of them has a mode.
        units: How many those that pass are if those that go together count as one; None: each is
            alone.
    """

    tau: float | None
    n: int
    passed: int
    right: int
    best: float | None = None
    units: int | None = None

    @property
    def precision(self) -> Figure:
        """On the conversations that it was fitted to, and so too good by a little."""
        return make_share_with_exact_interval(self.right, self.passed, self.units)

    @property
    def as_json(self) -> JsonDict:
        """All of it as JSON values."""
        share = self.precision
        counts = {"tau": self.tau, "n": self.n, "passed": self.passed, "right": self.right}
        return counts | {
            "precision": share.value,
            "interval": get_interval_ends(share),
            "best": self.best,
        }


def fit_tau(
    entropy: Floats,
    mode: Ints,
    truth: Ints,
    precision: float,
    together: Ints | None = None,
) -> FittedTau:
    """Find the highest τ at which at least `precision` of the ratings are right.

    Args:
        entropy: [conversation]; NaN for one without votes.
        mode: [conversation], `TIE_MODE` for none.
        truth: [conversation].
        together: Number of each conversation's block [conversation]; None if each is independent.
    """
    rated = (mode != TIE_MODE) & ~np.isnan(entropy)
    # rated conversations in order of entropy, with how many so far are right
    order = np.argsort(entropy[rated], kind="stable")
    sorted_entropy = entropy[rated][order]
    right = np.cumsum((mode == truth)[rated][order])
    count = np.arange(1, len(right) + 1)
    # all of one entropy pass together
    last = np.append(np.diff(sorted_entropy) > ENTROPY_TOLERANCE, True)[: len(right)]
    best = None
    if len(right):
        best = float((right / count)[last].max())

    # last places of an entropy at which the precision is reached; the highest one is τ
    good = np.flatnonzero(last & (right >= precision * count - ENTROPY_TOLERANCE))
    if not len(good):
        return FittedTau(None, len(truth), 0, 0, best)

    at = good[-1]
    # those that belong together count as one in the interval
    units = None
    if together is not None:
        units = len(np.unique(together[rated][order][: at + 1]))

    return FittedTau(
        float(sorted_entropy[at]),
        len(truth),
        int(count[at]),
        int(right[at]),
        best,
        units,
    )


def crossfit_tau(
    entropy: Floats,
    mode: Ints,
    truth: Ints,
    precision: float,
    folds: Ints,
    together: Ints | None = None,
) -> TauSplit:
    """Measure a fitted τ by cross-fitting: each fold uses the others' τ.

    Its precision is an honest estimate for τ fitted to nearly as many conversations; nothing passes
    in a fold where the others have no such τ.

    Args:
        folds: Fold of each conversation [conversation].
        entropy: As for `fit_tau`; so with the others.
    """
    # each fold is judged by the τ of the others
    passes = np.zeros(len(truth), dtype=bool)
    for fold in np.unique(folds):
        inside = folds == fold
        tau = fit_tau(entropy[~inside], mode[~inside], truth[~inside], precision).tau
        if tau is not None:
            passes[inside] = _mask_passing(entropy[inside], mode[inside], tau)

    return split_by_mask(passes, mode, truth, together)
