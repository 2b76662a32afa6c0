"""NetSAT: the signed values of a set's rubrics, added up.

Whatever adds them, in learning and in scoring, adds by these functions: another sum in place of
NetSAT is another body of each, in this file alone. Source: Biyani et al. 2024, RUBICON.
"""

from collections.abc import Iterable

import numpy as np

from pollex.measures.arrays import Floats


def sum_rubric_values(values: Floats) -> Floats:
    """Add up signed values: `[conversation, rubric]` to `[conversation]`."""
    return np.asarray(values.sum(axis=1))


def add_candidate_values_to_scores(scores: Floats, values: Floats) -> Floats:
    """Add each candidate to the set so far: `[conversation]` and `[candidate, conversation]` to the latter's shape."""
    return values + scores


def sum_rubric_columns_in_order(columns: Iterable[Floats], conversations: int) -> Floats:
    """Add up one rubric's column after the other, so that a score is the same whatever the batch.

    Args:
        columns: Signed values, each `[conversation]`.
    """
    total = np.zeros(conversations)
    for column in columns:
        total += column

    return total
