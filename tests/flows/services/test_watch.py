"""Drift without labels: of a rubric over its answers, not over means that crowd at the middle."""

import numpy as np
from rubric_set_by_hand import rubric_set

from pollex.services.compare import Arm, watch


def arm(rng: np.random.Generator, *means: float) -> Arm:
    values = np.array(means) + rng.normal(0, 0.01, (200, len(means)))
    return Arm("of a test", [], rng.random(200), rng.normal(0, 1, 200), values)


def test_means_that_crowd_at_the_middle_move_a_rubrics_index_only_where_the_answer_moves() -> None:
    rng, found = np.random.default_rng(0), rubric_set()
    before, after = arm(rng, 4.9, 4.9), arm(rng, 4.8, 7.4)
    still, moved = (watch(before, after, found, rng).stability[one.id] for one in found.rubrics)
    assert (still.value, still.marked) == (0.0, False)
    assert moved.marked
    after.values[:, 1] = np.nan
    assert found.rubrics[1].id not in watch(before, after, found, rng).stability, "no answer is no drift"
