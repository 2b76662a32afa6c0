"""What a difference is worth that was told because it was large: the estimate, given that it passed its test.

Of many rubrics those are proven whose thumbs differ most in this log, by what is so and by luck.
The luck goes with the next log. Both are told apart by the normal distribution that is cut off
where the test begins to pass. Sources: Zollner and Pritchard 2007, doi:10.1086/512821, for the
conditional likelihood; Zhong and Prentice 2008, doi:10.1093/biostatistics/kxn001, for its
intervals.
"""

from dataclasses import dataclass

import numpy as np

CONFIDENCE_LEVEL = 0.95
MAX_MEAN_DISTANCE, MEAN_GRID_STEPS = 6.0, 2000
"""Standard errors above the value up to which means are tried, and how many of them."""


@dataclass(frozen=True)
class SelectedEstimate:
    """A mean in standard errors, with its interval, given that its estimate passed a threshold."""

    value: float
    low: float
    high: float


def estimate_mean_given_passed_threshold(z: float, threshold: float) -> SelectedEstimate:
    """Estimate the mean of a normal value that is known only because it passed a threshold.

    The conditional likelihood of means from 0 on, normalized, gives the mean of it and its
    quantiles: its maximum would be 0 for whatever has just passed.

    Args:
        z: The value, in standard errors; at least the threshold.
        threshold: The smallest value that would have been told.
    """
    from scipy.stats import norm  # half a second; only learning needs it

    # likelihood of each mean, given that the value passed `[mean]`
    means = np.linspace(0.0, max(z, threshold) + MAX_MEAN_DISTANCE, MEAN_GRID_STEPS)
    log_likelihood = norm.logpdf(max(z, threshold) - means) - norm.logsf(threshold - means)
    weights = np.exp(log_likelihood - log_likelihood.max())
    weights /= weights.sum()
    tails = ((1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2)
    low, high = (float(means[np.searchsorted(weights.cumsum(), tail)]) for tail in tails)

    return SelectedEstimate(float(weights @ means), low, high)


def find_threshold_passed_by_p_value(z: float, p: float, passed: float) -> float:
    """Return how large a value would just have passed, by the p-value that was adjusted for all that was looked at.

    Half of the conversations test what the other half chose, so that a test sees `z / √2`; what the
    adjustment multiplies its p-value by is taken to be the same at the threshold.

    Args:
        p: Adjusted p-value of `z`.
        passed: The largest adjusted p-value that passes.
    """
    from scipy.stats import norm  # as above

    # the adjustment's factor is the same at the threshold as at the value
    alone = float(norm.sf(z / SQUARE_ROOT_OF_TWO))
    if p <= 0 or alone <= 0:
        return 0.0
    return min(z, SQUARE_ROOT_OF_TWO * float(norm.isf(min(passed * alone / p, 0.5))))


SQUARE_ROOT_OF_TWO = 2**0.5
