"""What flipped thumbs leave of a choice."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from pollex.rubrics.learning.crossfit import WeighedPool
from pollex.rubrics.learning.noise import (
    LABEL_NOISE_DRAWS,
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
    assert len(strong) == LABEL_NOISE_DRAWS
    assert np.mean(strong) > 0.95
    assert np.mean(weak) < np.mean(strong)
    (told,) = describe_stability_under_label_noise(strong)
    assert told.startswith("If 5% of the thumbs were wrong, ")
    assert describe_stability_under_label_noise([]) == []


def test_the_same_seed_gives_the_same_figure() -> None:
    assert measure_rubric_choice_under_label_noise(
        weighed(0.1), 1.0, hints=False
    ) == measure_rubric_choice_under_label_noise(weighed(0.1), 1.0, hints=False)
