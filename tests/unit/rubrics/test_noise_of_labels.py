"""What flipped thumbs leave of a choice."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from pollex.rubrics.learning.crossfit import WeighedPool
from pollex.rubrics.learning.noise import (
    LABEL_NOISE_DRAWS,
    ChoiceUnderNoise,
    describe_stability_under_label_noise,
    measure_rubric_choice_under_label_noise,
)
from pollex.selection.losses import MAX_EVAL_DIFFERENCE


def weighed(strength: float, n: int = 400) -> WeighedPool:
    """A pool of 40 rubrics, five of which hold with thumbs down at that strength."""
    rng = np.random.default_rng(7)
    up = rng.random(n) < 0.6
    held = rng.random((n, 40)) < 0.25
    held[:, :5] = rng.random((n, 5)) < np.where(up, 0.25 - strength, 0.25 + strength)[:, None]
    values = np.where(held, -MAX_EVAL_DIFFERENCE, 0.0)
    pool: Any = SimpleNamespace(
        values=values, held=held, came_up=None, labels=up, ids=[f"r{n}" for n in range(40)]
    )
    sat = np.zeros(40, dtype=bool)
    mined = np.zeros(40, dtype=bool)
    events = np.ones(40, dtype=bool)
    deeds = np.zeros(40, dtype=bool)
    return WeighedPool(
        pool, sat, mined, events, deeds, pool.ids, pool.ids, np.arange(n), (15, 15), 15, "greedy", 0
    )


def test_a_strong_choice_stands_under_noise_and_a_weak_one_falls() -> None:
    strong, weak = (
        measure_rubric_choice_under_label_noise(weighed(strength), 1.0, hints=False)
        for strength in (0.2, 0.085)
    )
    assert len(strong.again) == LABEL_NOISE_DRAWS
    assert np.mean(strong.again) > 0.95 * strong.rubrics
    assert np.mean(weak.again) / weak.rubrics < np.mean(strong.again) / strong.rubrics
    (told,) = describe_stability_under_label_noise(strong)
    assert told.startswith("If 5% of the thumbs were wrong, ")
    assert describe_stability_under_label_noise(ChoiceUnderNoise([], 0)) == []


def test_a_share_of_one_or_two_rubrics_is_told_as_a_count_of_trials() -> None:
    (single,) = describe_stability_under_label_noise(ChoiceUnderNoise([1, 1, 0], 1))
    assert single == (
        "If 5% of the thumbs were wrong: 2 of 3 trials with thumbs turned round at random "
        "chose the one rubric again."
    )
    (both,) = describe_stability_under_label_noise(ChoiceUnderNoise([2, 1, 1], 2))
    assert "1 of 3 trials" in both
    assert "both rubrics again" in both
    (three,) = describe_stability_under_label_noise(ChoiceUnderNoise([3, 3], 3))
    assert ", 100% of these rubrics would be chosen again" in three


def test_the_same_seed_gives_the_same_figure() -> None:
    assert measure_rubric_choice_under_label_noise(
        weighed(0.1), 1.0, hints=False
    ) == measure_rubric_choice_under_label_noise(weighed(0.1), 1.0, hints=False)
