"""Whether a difference is a rubric's own, or that of what it comes with."""

import numpy as np
import pytest

from pollex.measures.arrays import Bools, Ints
from pollex.measures.strata import compare_hit_shares_within_strata
from pollex.rubrics.learning.circumstances import (
    Circumstance,
    assign_numbers_to_equal_bins,
    does_field_restate_thumb,
    find_explaining_circumstance,
)

N = 400


def world(
    seed: int, down_of: tuple[float, float], held_of: tuple[float, float]
) -> tuple[Bools, Bools, Ints]:
    """Draw two strata: the share of thumbs down in each, whatever holds, and how often a rubric holds there."""
    rng = np.random.default_rng(seed)
    stratum = rng.integers(0, 2, N)
    held = rng.random(N) < np.array(held_of)[stratum]
    return held, rng.random(N) >= np.array(down_of)[stratum], stratum


def test_what_a_tariff_alone_decides_is_no_rubrics_doing() -> None:
    found = [explained(*world(seed, (0.7, 0.2), (0.6, 0.15))) for seed in range(40)]

    assert np.mean(found) >= 0.9


def test_what_a_rubric_decides_is_left_to_it_though_a_circumstance_comes_with_it() -> None:
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        stratum = rng.integers(0, 2, N)
        held = rng.random(N) < np.array([0.6, 0.15])[stratum]
        found.append(explained(held, rng.random(N) >= np.where(held, 0.7, 0.25), stratum))

    assert np.mean(found) <= 0.02


def test_a_paradox_is_told_as_the_other_way_round_within_each() -> None:
    """Where it holds there are fewer thumbs down in each stratum, and more over all."""
    rng = np.random.default_rng(1)
    stratum = np.repeat([0, 1], N)
    held = rng.random(2 * N) < np.array([0.8, 0.15])[stratum]
    down = rng.random(2 * N) < np.array([0.85, 0.25])[stratum] - 0.15 * held

    within = compare_hit_shares_within_strata(held, down, stratum)

    assert within is not None
    assert within.over_all > 0.1
    assert within.turned


def test_a_difference_of_shares_within_strata_is_that_of_mantel_and_haenszel_by_hand() -> None:
    held = np.array([True, True, False, False, True, False, False, False])
    hit = np.array([True, False, False, False, True, True, False, False])
    stratum = np.array([0, 0, 0, 0, 1, 1, 1, 1])

    within = compare_hit_shares_within_strata(held, hit, stratum)

    # Strata: ½ − 0 with weight 2·2/4 = 1, and 1 − ⅓ with weight 1·3/4.
    assert within is not None
    assert within.value == pytest.approx((0.5 * 1 + 2 / 3 * 0.75) / 1.75)
    assert within.overlap == pytest.approx(1.75 / (5 * 3 / 8))


def test_what_holds_in_one_stratum_alone_can_not_be_told_from_it() -> None:
    held, up, stratum = world(3, (0.7, 0.2), (1.0, 0.0))

    assert not explained(held, up, stratum)


def test_a_field_that_says_what_the_thumb_says_is_no_circumstance() -> None:
    up = np.random.default_rng(2).random(N) < 0.6

    assert does_field_restate_thumb(up.astype(int), up)
    assert not does_field_restate_thumb(np.arange(N) % 5, up)


def test_numbers_are_cut_into_strata_of_about_as_many() -> None:
    sizes = np.bincount(assign_numbers_to_equal_bins(np.random.default_rng(4).lognormal(size=N)))

    assert len(sizes) == 10
    assert sizes.min() >= 30


def explained(held: Bools, up: Bools, stratum: Ints) -> bool:
    """Tell whether a circumstance is found that explains a rubric."""
    return find_explaining_circumstance(held, up, [Circumstance("tariff", stratum)]) is not None


def test_a_length_that_an_act_makes_doesnt_explain_the_rubrics_that_tell_of_it_by_parts() -> None:
    """The act makes conversations long; each of two rubrics holds in half of its conversations."""
    named_alone, named_beside_the_other = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        act = rng.random(N) < 0.33
        length = Circumstance(
            "length", assign_numbers_to_equal_bins(rng.normal(100, 15, N) + 60 * act)
        )
        up = rng.random(N) >= np.where(act, 0.82, 0.3)
        first = act & (rng.random(N) < 0.5)
        named_alone.append(find_explaining_circumstance(first, up, [length]) is not None)
        second = act & ~first
        named_beside_the_other.append(
            find_explaining_circumstance(first, up, [length], second) is not None
        )

    assert np.mean(named_alone) >= 0.8, (
        "without the other rubric its conversations are the long ones"
    )
    assert np.mean(named_beside_the_other) <= 0.1


def test_a_length_that_decides_thumbs_explains_rubrics_though_several_go_along_with_it() -> None:
    named = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sizes = rng.lognormal(5, 0.6, N)
        length = Circumstance("length", assign_numbers_to_equal_bins(sizes))
        longer = sizes.argsort().argsort() / N
        up = rng.random(N) >= 0.1 + 0.7 * longer
        first, second = (rng.random(N) < 0.6 * longer**2 for _ in range(2))
        named.append(find_explaining_circumstance(first, up, [length], second) is not None)

    assert np.mean(named) >= 0.9
