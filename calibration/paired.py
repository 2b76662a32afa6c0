"""Errors and intervals of means over rows that belong together, for comparisons on the same rows."""

import numpy as np

from pollex.measures.arrays import Floats, Ints

SIGN_FLIP_DRAWS = 2000
"""Of signs, for intervals that allow for several comparisons."""

MIN_STANDARD_ERROR = 1e-12


def compute_clustered_standard_error_of_mean(values: Floats, texts: Ints) -> float:
    """Compute the cluster-robust standard error of a mean over judgments; clusters are texts.

    The sum over texts of the squared summed deviations, over the squared count; 0 with one text
    only.
    """
    # sums of the deviations, by text
    _, places = np.unique(texts, return_inverse=True)
    sums = np.bincount(places, values - values.mean())
    count = len(sums)
    return float(np.sqrt((sums**2).sum() * count / max(count - 1, 1)) / len(values))


def compute_joint_intervals_of_mean_gains(
    gains: Floats,
    blocks: Ints,
    rng: np.random.Generator,
) -> Floats:
    """Return 95 % intervals of mean gains that hold all at once `[comparison, end]`: low and high.

    The largest studentised mean is drawn anew by turning the signs of whole blocks. Sources: Romano
    and Wolf 2005, "Exact and approximate stepdown methods for multiple hypothesis testing",
    doi:10.1198/016214504000000539, for the maximum; Wu 1986, doi:10.1214/aos/1176350142, for the
    signs.

    Args:
        gains: Paired differences `[row, comparison]`.
        blocks: What goes together bears one number `[row]`.
    """
    # deviations from the mean, summed by block `[block, comparison]`
    mean = gains.mean(axis=0)
    _, places = np.unique(blocks, return_inverse=True)
    sums = np.zeros((places.max() + 1, gains.shape[1]))
    np.add.at(sums, places, gains - mean)
    errors = np.array(
        [compute_clustered_standard_error_of_mean(column, blocks) for column in gains.T]
    )

    # A comparison without any spread is what it is: it widens nothing.
    signs = rng.choice((-1.0, 1.0), size=(SIGN_FLIP_DRAWS, len(sums)))
    drawn = signs @ sums
    spread = np.sqrt(np.maximum((sums**2).sum(axis=0) - drawn**2 / len(sums), 0.0))
    # the largest |t| of all comparisons in each draw; its 95 % point widens every interval
    t = np.divide(
        np.abs(drawn),
        spread,
        out=np.zeros_like(drawn),
        where=spread > MIN_STANDARD_ERROR,
    )
    widths = float(np.quantile(t.max(axis=1), 0.95)) * errors

    return np.stack([mean - widths, mean + widths], axis=1)
