"""Bounds for several looks at growing data, so that all looks together are wrong as seldom as one.

Sources: O'Brien and Fleming 1979, doi:10.2307/2530245, for the bounds at equal steps; Jennison and
Turnbull 2000, "Group Sequential Methods", sections 2.4 and 19.2, for constants and the recursive
integration.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from pollex.measures.arrays import Bools, Floats, Ints

GRID = 1000
"""Means that are tried, evenly over 0 … 1; ends are rounded outwards to the next one."""


@dataclass
class ConfidenceSequence:
    """Running interval of the mean of values in 0 … 1, valid at every look.

    Attributes:
        alpha: Chance that the interval ever misses the mean.
        n: Values seen.
        low, high: The interval; low > high where no mean fits all values: the mean has drifted.
    """

    alpha: float = 0.05
    n: int = 0
    low: float = 0.0
    high: float = 1.0
    _sum: float = 0.0
    _squares: float = 0.25
    _variance: float = 0.25
    _above: Floats = field(default_factory=lambda: np.zeros(GRID + 1), repr=False)
    _below: Floats = field(default_factory=lambda: np.zeros(GRID + 1), repr=False)
    _possible: Floats = field(default_factory=lambda: np.ones(GRID + 1, dtype=float), repr=False)

    def add(self, values: Floats) -> ConfidenceSequence:
        """Add values `[n]`, 0 … 1, in their order; return the sequence itself."""
        for value in values:
            self._bet(float(value))
        # the interval spans all means that were never ruled out; empty: low over high
        possible = np.flatnonzero(self._possible)
        self.low = 1.0
        self.high = 0.0
        if len(possible):
            self.low = max(0.0, (possible[0] - 1) / GRID)
            self.high = min(1.0, (possible[-1] + 1) / GRID)
        return self

    @property
    def empty(self) -> bool:
        """Whether no mean fits all values: an alarm of drift."""
        return self.low > self.high

    def _bet(self, value: float) -> None:
        self.n += 1
        # each mean is bet against, from both sides; the stake is small where values vary
        means = np.linspace(0.0, 1.0, GRID + 1)
        stake = np.sqrt(2 * np.log(2 / self.alpha) / (self._variance * self.n * np.log1p(self.n)))
        with np.errstate(divide="ignore"):
            up = np.minimum(stake, 0.5 / means)
            down = np.minimum(stake, 0.5 / (1 - means))
        # At a mean of 0 or 1 the cap is infinite, and the bet is the stake: it can lose everything,
        # not more.
        self._above += np.log(np.maximum(1 + up * (value - means), 1e-300))
        self._below += np.log(np.maximum(1 - down * (value - means), 1e-300))
        # running mean and variance, by which the next bet is sized
        self._sum += value
        mean = (0.5 + self._sum) / (self.n + 1)
        self._squares += (value - mean) ** 2
        self._variance = self._squares / (self.n + 1)
        # half of the capital on either side: a mean that made it grow 1/α-fold is ruled out
        capital = np.maximum(self._above, self._below) + np.log(0.5)
        self._possible[capital >= np.log(1 / self.alpha)] = 0.0


def difference_interval(differences: Floats) -> tuple[float, float]:
    """Bound the mean of differences in −1 … 1 `[n]`, valid at every look.

    low > high if the mean has drifted.
    """
    sequence = ConfidenceSequence().add((np.asarray(differences, dtype=float) + 1) / 2)
    return 2 * sequence.low - 1, 2 * sequence.high - 1


LOOKS = 4
ALPHA = 0.05
FUTILE = 0.10
"""Conditional power below which going on is futile."""
_GRID = 801


@lru_cache(maxsize=32)
def bounds_at_equal_steps(looks: int = LOOKS, alpha: float = ALPHA) -> tuple[float, ...]:
    """Compute the bounds on |z| at equal steps: c √(K/k), whatever is true crossed with probability `alpha` at most."""
    fractions = np.arange(1, looks + 1) / looks

    def excess(constant: float) -> float:
        return crossing_probability(constant / np.sqrt(fractions), fractions) - alpha

    constant = brentq(excess, 0.5, 8.0, xtol=1e-6)
    return tuple(float(bound) for bound in constant / np.sqrt(fractions))


@lru_cache(maxsize=32)
def bounds_to(look: int, fraction: float, alpha: float = ALPHA) -> tuple[float, ...]:
    """Compute the bounds on |z| of a proof that ends unplanned: those of the looks taken, and the last one's.

    The last one spends what the function α(t) = 2 − 2Φ(z/√t) leaves at that fraction.

    Args:
        look: Looks that were taken.
        fraction: Of all users that are seen; more than at the last of these looks.

    Source: Lan and DeMets 1983, doi:10.1093/biomet/70.3.659.
    """
    earlier_bounds = bounds_at_equal_steps(LOOKS, alpha)[:look]
    # what the earlier looks spent, and what is left for the last one
    steps = np.arange(1, look + 1) / LOOKS
    spent = 2 * float(norm.sf(norm.isf(alpha / 2) / np.sqrt(fraction)))

    def excess(bound: float) -> float:
        return (
            crossing_probability(np.array([*earlier_bounds, bound]), np.array([*steps, fraction]))
            - spent
        )

    return (*earlier_bounds, float(brentq(excess, 0.5, 40.0, xtol=1e-6)))


def crossing_probability(bounds: Floats, fractions: Floats) -> float:
    """Compute the probability that |z| is beyond its bound at any look, where nothing is true.

    Args:
        bounds: `[look]`.
        fractions: Share of all users seen at each look, rising `[look]`.
    """
    # density of z·√t at the look before, on a grid between its bounds
    inside = 0.0
    density = np.ones(1)
    points = np.zeros(1)
    before = 0.0
    for bound, fraction in zip(bounds, fractions, strict=True):
        # propagate the density to this look by independent increments
        reach = bound * np.sqrt(fraction)
        grid = np.linspace(-reach, reach, _GRID)
        steps = norm.pdf(grid[:, None], points[None, :], np.sqrt(fraction - before))
        density = steps @ density
        weights = np.full(_GRID, grid[1] - grid[0])
        weights[[0, -1]] /= 2
        inside = float(density @ weights)
        density = density * weights
        points = grid
        before = float(fraction)
    return 1 - inside


GOING, BETTER, WORSE, NOTHING = 0, 1, -1, 2
"""What a look decides: go on, an effect above zero, one below, or that going on is futile."""


def decide(
    z: Floats,
    look: int,
    bounds: Sequence[float],
    clear: Bools,
    harm_bounds: Sequence[float] | None = None,
) -> Ints:
    """Decide at a look.

    An effect ends the proof early only where all guardrails are cleared; harm always does. From
    half on it ends where neither a gain nor harm is likely to be shown any more: a proof that seems
    to do harm goes on until it is known.

    Args:
        z: Of any shape.
        look: From 0.
        bounds: On |z|, of all looks.
        clear: Whether all guardrails are cleared, of the shape of `z`.
        harm_bounds: On −z, of all looks; None: those on |z|.
    """
    # with harm's own bounds, if there are any
    harm_bounds = bounds if harm_bounds is None else harm_bounds
    decisions: Ints = np.full(np.shape(z), GOING)
    last = look == len(bounds) - 1
    # nothing likely to be shown any more, in either direction
    if not last and look >= 1:
        fraction = (look + 1) / len(bounds)
        gain = conditional_power(np.asarray(z), fraction, bounds[-1])
        harm = conditional_power(-np.asarray(z), fraction, harm_bounds[-1])
        decisions[(gain < FUTILE) & (harm < FUTILE)] = NOTHING
    # harm comes last, since it overrides all others
    decisions[(z > bounds[look]) & (clear | last)] = BETTER
    decisions[z < -harm_bounds[look]] = WORSE
    return np.where(decisions == GOING, NOTHING, decisions) if last else decisions


def conditional_power(z: Floats, fraction: float, bound: float) -> Floats:
    """Compute the chance that z is above the last bound in the end, if what was seen goes on.

    Args:
        z: What was seen up to `fraction`, of any shape.
        bound: Of the last look.
    """
    drift = np.asarray(z) / np.sqrt(fraction)
    distance = bound - np.asarray(z) * np.sqrt(fraction) - drift * (1 - fraction)
    ahead = distance / np.sqrt(1 - fraction)
    return np.asarray(norm.sf(ahead))


def alpha_of(times: int, alpha: float = ALPHA) -> float:
    """Return the level of the j-th proof on the same conversations: halved each time, so that all stay under `alpha`.

    Args:
        times: j, from 1.
    """
    return float(alpha * 2.0 ** (1 - times))
