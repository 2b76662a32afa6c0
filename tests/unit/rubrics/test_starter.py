"""Weights of a set and its starter."""

import numpy as np

from pollex.rubrics.starter import standard, weigh


def samples(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Labels, and z of a set of one's own, of a good starter, and of one that says nothing."""
    rng = np.random.default_rng(0)
    good = np.arange(2000) % 2 == 0
    columns = [good + rng.normal(size=2000), 2 * good + rng.normal(size=2000), rng.normal(size=2000)]
    own, starter, noise = (standard(column)[:n] for column in columns)
    return good[:n], own, starter, noise


def test_ten_labels_leave_a_good_starter_its_weight_and_take_it_from_one_that_says_nothing() -> None:
    good, own, starter, noise = samples(2000)
    tens = [slice(first, first + 10) for first in range(0, 2000, 10)]
    helped, misled = (np.mean([weigh(own[n], other[n], good[n]) for n in tens], axis=0) for other in (starter, noise))
    assert helped[1] > 0.5
    assert 0 <= misled[1] < 0.35
    assert min(helped[0], misled[0]) > 0.5


def test_many_labels_move_the_weights() -> None:
    good, own, starter, noise = samples(2000)
    assert weigh(own, noise, good)[1] < 0.15
    assert weigh(own, starter, good)[1] > 1.5
    assert standard(np.ones(3)).tolist() == [0, 0, 0], "without spread nothing is divided by it"


def test_a_starter_that_points_the_wrong_way_is_left_out_and_not_turned_round() -> None:
    for n in (10, 40, 2000):
        good, own, starter, _ = samples(n)
        assert 0 <= weigh(own, -starter, good)[1] < 0.1
