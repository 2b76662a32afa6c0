"""Effects of one arm against another on the same conversations, with users as units.

Arrays have users last, and may have any axes before: replicates of a simulation, or guardrails.
Sources: Student's t over clusters, Miller 2024, arXiv:2411.00640; sign flips of whole units, Fisher 1935, "The Design
of Experiments", section 21; Benjamini and Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import brentq
from scipy.stats import false_discovery_control, norm, t

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import LEVEL

FEW = 20
"""Users below which signs of whole users are flipped in place of Student's t."""
ALL_FLIPS, FLIPS = 12, 4095
MARGIN = 0.10
"""Of the scale 0 … 1: a guardrail is cleared where a drop of so much is ruled out."""
ACCUSED = 0.10
"""Rate of false accusations among guardrails that are called worse."""
LONGEST = 1.5
"""Growth of replies, or of what they cost, from which on it counts against a change."""
NORMAL, ONE_SIDED = 1.96, 1.645


@dataclass(frozen=True)
class PairedEffect:
    """The mean difference of two arms, with its interval.

    Attributes:
        value: New minus old, in units of the scale 0 … 1; better is higher.
        z: The effect in standard errors, as a normal deviate.
        n: Contexts behind it.
        users: Units.
    """

    value: float
    low: float
    high: float
    z: float
    n: int
    users: int


def of_users(difference: Floats, user: Ints) -> Floats:
    """Return the mean difference of each user `[user]` from that of each context `[context]`; NaN is left out.

    Args:
        user: Number of each context's user `[context]`.
    """
    known = ~np.isnan(difference)
    _, codes = np.unique(user[known], return_inverse=True)
    return np.asarray(np.bincount(codes, difference[known]) / np.bincount(codes))


def z_of(values: Floats) -> Floats:
    """Compute the deviate of the mean over users `[...]`, from Student's t over users; few users go by `flipped_p`."""
    n = values.shape[-1]
    error = np.maximum(values.std(axis=-1, ddof=1), 1e-9) / np.sqrt(n)
    ratio = values.mean(axis=-1) / error
    return np.asarray(np.sign(ratio) * norm.isf(np.maximum(t.sf(np.abs(ratio), n - 1), 1e-300)))


def effect(values: Floats, bound: float = NORMAL, n: int = 0) -> PairedEffect:
    """Estimate the effect from each user's mean difference, with the interval of a look's bound.

    Args:
        values: `[user]`; at least two.
        bound: On |z|.
        n: Contexts behind it.
    """
    mean, users = float(values.mean()), len(values)
    if users < FEW:
        flips = flips_of(users, np.random.default_rng(0))
        level = float(2 * norm.sf(bound))
        low, high = (flipped_end(values, flips, level, side) for side in (-1, 1))
        z = float(np.sign(mean) * norm.isf(flipped_p(values, flips) / 2))
        return PairedEffect(mean, low, high, z, n, users)
    half = float(t.isf(norm.sf(bound), users - 1) * values.std(ddof=1) / np.sqrt(users))
    return PairedEffect(mean, mean - half, mean + half, float(z_of(values)), n, users)


def flips_of(users: int, rng: np.random.Generator) -> Floats:
    """Return signs of users `[flip, user]`: all of them for few users, else drawn; the first is as it is."""
    if users <= ALL_FLIPS:
        return np.array(list(product((1.0, -1.0), repeat=users)))
    drawn = rng.choice((1.0, -1.0), (FLIPS, users))
    return np.concatenate([np.ones((1, users)), drawn])


def flipped_p(values: Floats, flips: Floats) -> float:
    """Compute the two-sided p-value of the mean by flipped signs."""
    means = np.abs(flips @ values)
    return float((means >= means[0] - 1e-12).mean())


def flipped_end(values: Floats, flips: Floats, level: float, side: int) -> float:
    """Return an end of the interval of all effects that flipped signs don't rule out.

    Args:
        side: −1 for the lower end, 1 for the upper.
    """
    mean = float(values.mean())
    reach = float(np.abs(values - mean).max()) * 20 + 1e-6

    def kept(shift: float) -> float:
        return flipped_p(values - mean - shift, flips) - level

    if kept(side * reach) >= 0:  # so few users that nothing is ruled out at this level
        return side * 1.0
    return mean + float(brentq(kept, 0.0, side * reach, xtol=1e-6))


def p_of_drop(values: Floats) -> Floats:
    """Compute the one-sided p-value of a drop `[...]` over users."""
    return np.asarray(norm.cdf(z_of(values)))


def called_worse(p: Floats) -> Bools:
    """Tell which guardrails are worse `[..., guardrail]`, by Benjamini and Hochberg over the last axis."""
    return np.asarray(false_discovery_control(p, axis=-1) <= ACCUSED)


def cleared(values: Floats, margin: float = MARGIN) -> Bools:
    """Tell whether the lower one-sided bound of an effect is above minus the margin `[...]`, over users."""
    return np.asarray(upper_bound(-values) < margin)


def upper_bound(values: Floats) -> Floats:
    """Compute the upper one-sided bound of a mean `[...]` over users."""
    n = values.shape[-1]
    return np.asarray(values.mean(axis=-1) + t.ppf(LEVEL, n - 1) * values.std(axis=-1, ddof=1) / np.sqrt(n))


def upper_bound_of_difference(one: Floats, other: Floats) -> Floats:
    """Compute the upper one-sided bound of `one`'s mean minus `other`'s `[...]`; their users are different ones."""
    n, m = one.shape[-1], other.shape[-1]
    error = np.sqrt(one.var(axis=-1, ddof=1) / n + other.var(axis=-1, ddof=1) / m)
    return np.asarray(one.mean(axis=-1) - other.mean(axis=-1) + t.ppf(LEVEL, n + m - 2) * error)


def at_equal_length(difference: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """Compute the effect at replies of equal length `[...]`, and its deviate.

    It is the intercept of the difference on the logarithm of the ratio of lengths.

    Args:
        difference: `[..., user]`.
        ratio: ln(new length / old length) `[..., user]`.

    Source: Dubois et al. 2024, arXiv:2404.04475.
    """
    n, mean = difference.shape[-1], ratio.mean(axis=-1)
    centered = ratio - mean[..., None]
    spread = np.maximum((centered**2).sum(axis=-1), 1e-12)
    slope = (centered * difference).sum(axis=-1) / spread
    value = difference.mean(axis=-1) - slope * mean
    rest = difference - value[..., None] - slope[..., None] * ratio
    error = np.sqrt(np.maximum((rest**2).sum(axis=-1) / (n - 2) * (1 / n + mean**2 / spread), 1e-18))
    return np.asarray(value), np.asarray(value / error)


def by_length(difference: Floats, ratio: Floats) -> Bools:
    """Tell whether an effect may be one of length alone `[...]`.

    It is where replies grow by more than half, or where at equal length less than half of it is left, or nothing
    that is above zero by more than chance.
    """
    value, z = at_equal_length(difference, ratio)
    longer = np.exp(ratio).mean(axis=-1) > LONGEST
    return np.asarray(longer | (value < difference.mean(axis=-1) / 2) | (z < ONE_SIDED))


def smallest_effect(spread: float, users: int, bound: float = NORMAL) -> float:
    """Compute the smallest effect that so many users show with a power of .8.

    Args:
        spread: Standard deviation of a user's difference.
    """
    return float((bound + norm.ppf(0.8)) * spread / np.sqrt(users))
