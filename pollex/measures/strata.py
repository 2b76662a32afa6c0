"""Differences within strata: whether what goes along with a thumb does so for itself, or for what it comes with.

Sources: Mantel and Haenszel 1959, doi:10.1093/jnci/22.4.719; Greenland and Robins 1985,
doi:10.2307/2530643, for the difference of shares and its error; Simpson 1951 for what can turn
over.
"""

from dataclasses import dataclass

import numpy as np

from pollex.measures.arrays import Bools, Ints

NORMAL_QUANTILE_OF_95_INTERVAL = 1.96
MIN_SHARE_COMPARABLE_WITHIN_STRATA = 0.2
"""Share of the comparison that is left within strata, below which they can't be told apart."""
MAX_P_VALUE_OF_TELLING_CIRCUMSTANCE = 0.01
"""P-value up to which a circumstance tells of thumbs beside a rubric."""
MAX_P_VALUE_OF_CIRCUMSTANCE_BESIDE_ALL_FINDINGS = 0.05
"""P-value beyond which a circumstance tells nothing beside all findings of a side together."""


@dataclass(frozen=True)
class StratifiedDifference:
    """A difference of shares over all, and within strata.

    Attributes:
        over_all: Share of hits where something holds, minus that elsewhere.
        value: The same within strata, on average; with its 95 % interval.
        overlap: Share of the comparison's weight that is left within strata.
        beside: P-value that strata tell of hits among those where it holds, and among the others,
            by chance.
    """

    over_all: float
    value: float
    low: float
    high: float
    overlap: float
    beside: float

    @property
    def explained(self) -> bool:
        """Whether strata explain the difference: it falls by half or turns over, and strata tell more than it does."""
        falls = self.value * np.sign(self.over_all) <= abs(self.over_all) / 2
        return bool(
            self.over_all
            and self.overlap >= MIN_SHARE_COMPARABLE_WITHIN_STRATA
            and falls
            and self.beside <= MAX_P_VALUE_OF_TELLING_CIRCUMSTANCE
        )

    @property
    def strata_tell_nothing(self) -> bool:
        """Whether strata aren't known to tell of hits beside what holds."""
        return self.beside > MAX_P_VALUE_OF_CIRCUMSTANCE_BESIDE_ALL_FINDINGS

    @property
    def turned(self) -> bool:
        """Whether it goes the other way within strata, by more than chance."""
        return bool(self.explained and (self.high < 0 if self.over_all > 0 else self.low > 0))


def compare_hit_shares_within_strata(
    held: Bools, hit: Bools, stratum: Ints
) -> StratifiedDifference | None:
    """Compare shares of hits where something holds and elsewhere, over all and within strata.

    Args:
        held: `[conversation]`.
        hit: `[conversation]`.
        stratum: Number of each conversation's stratum, from 0 `[conversation]`.

    Returns:
        None where it holds everywhere or nowhere.
    """
    if held.all() or not held.any():
        return None

    strata = int(stratum.max()) + 1
    cells = (
        np.bincount(stratum * 4 + held * 2 + hit, minlength=4 * strata)
        .reshape(strata, 2, 2)
        .astype(float)
    )
    n = cells.sum(axis=2)  # [stratum, elsewhere or there]
    both = n.all(axis=1)
    n0, n1 = n[both].T
    hits0, hits1 = cells[both, :, 1].T
    size = n0 + n1
    weights = n0 * n1 / size
    over_all = float(hit[held].mean() - hit[~held].mean())
    overlap = float(weights.sum() / (n[:, 0].sum() * n[:, 1].sum() / n.sum()))
    if not len(weights):
        return StratifiedDifference(over_all, over_all, -1.0, 1.0, 0.0, 1.0)

    value = float(((hits1 * n0 - hits0 * n1) / size).sum() / weights.sum())
    spread = (hits1 * (n1 - hits1) * n0**3 + hits0 * (n0 - hits0) * n1**3) / (n1 * n0 * size**2)
    half = NORMAL_QUANTILE_OF_95_INTERVAL * float(np.sqrt(spread.sum()) / weights.sum())

    return StratifiedDifference(
        over_all,
        value,
        value - half,
        value + half,
        overlap,
        _compute_p_value_of_strata(cells),
    )


def _compute_p_value_of_strata(cells: np.ndarray) -> float:
    """Test whether strata tell of hits on each side of what holds: a chi-square of both tables together."""
    from scipy.stats import chi2  # half a second; only learning needs it

    statistic = 0.0
    freedom = 0
    for side in (0, 1):
        table = cells[cells[:, side].sum(axis=1) > 0, side]
        share = table[:, 1].sum() / max(table.sum(), 1.0)
        if len(table) > 1 and 0 < share < 1:
            sizes = table.sum(axis=1)
            statistic += float(
                (np.square(table[:, 1] - sizes * share) / (sizes * share * (1 - share))).sum()
            )
            freedom += len(table) - 1

    if freedom:
        return float(chi2.sf(statistic, freedom))
    return 1.0
