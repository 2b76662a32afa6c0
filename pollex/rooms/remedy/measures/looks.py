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

DEFAULT_LOOKS = 4
DEFAULT_ALPHA = 0.05
FUTILE_POWER = 0.10
"""Conditional power below which going on is futile."""
MAX_BOUND_CONSTANT = 7.0
MAX_BOUND = 37.0
"""On |z|: beyond it a normal tail is no number any more."""
_GRID_POINTS = 801


@lru_cache(maxsize=32)
def compute_equal_step_bounds(
    looks: int = DEFAULT_LOOKS, alpha: float = DEFAULT_ALPHA
) -> tuple[float, ...]:
    """Compute the bounds on |z| at equal steps: c √(K/k), whatever is true crossed with probability `alpha` at most."""
    # share of all users at each look
    fractions = np.arange(1, looks + 1) / looks

    def excess(constant: float) -> float:
        return compute_crossing_probability(constant / np.sqrt(fractions), fractions) - alpha

    # A level that sums over the grid don't hold any more is shared by the looks (Bonferroni).
    if excess(MAX_BOUND_CONSTANT) >= 0:
        alone = float(min(norm.isf(alpha / (2 * looks)), MAX_BOUND))
        return (alone,) * looks

    # the constant at which all looks together are crossed with `alpha`
    constant = brentq(excess, 0.5, MAX_BOUND_CONSTANT, xtol=1e-6)
    return tuple(float(bound) for bound in constant / np.sqrt(fractions))


@lru_cache(maxsize=32)
def compute_early_end_bounds(
    look: int, fraction: float, alpha: float = DEFAULT_ALPHA
) -> tuple[float, ...]:
    """Compute the bounds on |z| of a proof that ends unplanned: those of the looks taken, and the last one's.

    The last one spends what the function α(t) = 2 − 2Φ(z/√t) leaves at that fraction.

    Args:
        look: Looks that were taken.
        fraction: Of all users that are seen; more than at the last of these looks.

    Source: Lan and DeMets 1983, doi:10.1093/biomet/70.3.659.
    """
    earlier_bounds = compute_equal_step_bounds(DEFAULT_LOOKS, alpha)[:look]
    steps = np.arange(1, look + 1) / DEFAULT_LOOKS
    # what may be spent by this fraction, over all looks
    spent = 2 * float(norm.sf(norm.isf(alpha / 2) / np.sqrt(fraction)))

    def excess(bound: float) -> float:
        return (
            compute_crossing_probability(
                np.array([*earlier_bounds, bound]), np.array([*steps, fraction])
            )
            - spent
        )

    # Of a proof that has hardly begun so little may be spent that sums over the grid don't hold it:
    # that look alone then has the bound at which one test spends as much.
    if excess(MAX_BOUND) >= 0:
        alone = norm.isf(alpha / 2) / np.sqrt(fraction)
        return (*earlier_bounds, float(min(alone, MAX_BOUND)))
    return (*earlier_bounds, float(brentq(excess, 0.5, MAX_BOUND, xtol=1e-6)))


def compute_crossing_probability(bounds: Floats, fractions: Floats) -> float:
    """Compute the probability that |z| is beyond its bound at any look, where nothing is true.

    Args:
        bounds: `[look]`.
        fractions: Share of all users seen at each look, rising `[look]`.
    """
    # density of the path that stayed within the bounds so far, on a grid `[point]`
    inside = 0.0
    density = np.ones(1)
    points = np.zeros(1)
    before = 0.0
    for bound, fraction in zip(bounds, fractions, strict=True):
        # bounds on the score scale: z times the root of the fraction
        reach = bound * np.sqrt(fraction)
        grid = np.linspace(-reach, reach, _GRID_POINTS)
        # steps between looks are normal; their variance is the difference of the fractions
        steps = norm.pdf(
            grid[:, None],
            points[None, :],
            np.sqrt(fraction - before),
        )
        density = steps @ density
        # trapezoid rule: ends count half
        weights = np.full(_GRID_POINTS, grid[1] - grid[0])
        weights[[0, -1]] /= 2
        inside = float(density @ weights)
        # the next look begins from the points of this one
        density = density * weights
        points = grid
        before = float(fraction)

    return 1 - inside


GOING, BETTER, WORSE, NOTHING = 0, 1, -1, 2
"""What a look decides: go on, an effect above zero, one below, or that going on is futile."""


def decide_at_look(
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
    # harm may have bounds of its own
    harm_bounds = bounds if harm_bounds is None else harm_bounds
    decisions: Ints = np.full(np.shape(z), GOING)
    last = look == len(bounds) - 1
    # no sooner than half: before that too little is known to give up
    if not last and look >= 1:
        fraction = (look + 1) / len(bounds)
        gain = compute_conditional_power(np.asarray(z), fraction, bounds[-1])
        harm = compute_conditional_power(-np.asarray(z), fraction, harm_bounds[-1])
        decisions[(gain < FUTILE_POWER) & (harm < FUTILE_POWER)] = NOTHING

    # gain over futility, and harm over both: the later line stands
    decisions[(z > bounds[look]) & (clear | last)] = BETTER
    decisions[z < -harm_bounds[look]] = WORSE
    if last:
        return np.where(decisions == GOING, NOTHING, decisions)
    return decisions


def compute_conditional_power(z: Floats, fraction: float, bound: float) -> Floats:
    """Compute the chance that z is above the last bound in the end, if what was seen goes on.

    Args:
        z: What was seen up to `fraction`, of any shape.
        bound: Of the last look.
    """
    drift = np.asarray(z) / np.sqrt(fraction)
    ahead = (bound - np.asarray(z) * np.sqrt(fraction) - drift * (1 - fraction)) / np.sqrt(
        1 - fraction
    )
    return np.asarray(norm.sf(ahead))


def compute_alpha_of_proof(times: int, alpha: float = DEFAULT_ALPHA) -> float:
    """Return the level of the j-th proof on the same conversations: halved each time, so that all stay under `alpha`.

    Args:
        times: j, from 1.
    """
    return float(alpha * 2.0 ** (1 - times))
