"""What labels prove of rubrics, over halvings: by hand, beside SciPy, and on labels that mean nothing."""

import numpy as np
import pytest
from scipy.stats import fisher_exact

from pollex.selection.multi_split import (
    EVENT_RANK,
    HALVING_COUNT,
    add_unproven_rubrics_as_hints,
    adjust_p_values_by_holm,
    combine_p_values_of_halvings,
    compute_fisher_p_values_of_rubrics,
    draw_random_halvings,
    keep_one_conversation_per_block,
    keep_one_rubric_per_family,
    prove_rubrics_by_halvings,
)

N = 200
UP = np.arange(N) % 2 == 0
SAT = np.zeros(6, dtype=bool)
IDS = list("abcdef")
USERS = np.arange(N) // 4
DEEDS = np.ones(6, dtype=bool)
EVENTS = np.full(6, EVENT_RANK)


def values_of(held: np.ndarray) -> np.ndarray:
    """Terms of NetSAT of rubrics of dissatisfaction that hold or don't."""
    return np.where(held, -10.0, 0.0)


def pool(seed: int) -> np.ndarray:
    """Six rubrics, of which the first goes along with thumbs down."""
    rng = np.random.default_rng(seed)
    held = rng.random((N, 6)) < 0.3
    held[:, 0] = np.where(UP, rng.random(N) < 0.1, rng.random(N) < 0.6)
    return values_of(held)


def test_one_sided_p_is_fishers_exact_test_in_the_direction_of_the_side() -> None:
    held = np.abs(pool(0)) > 5
    for sat in (False, True):
        tables = [
            [[(h & ~UP).sum(), (h & UP).sum()], [(~h & ~UP).sum(), (~h & UP).sum()]] for h in held.T
        ]
        expected = [
            fisher_exact(table, alternative="less" if sat else "greater")[1] for table in tables
        ]
        assert compute_fisher_p_values_of_rubrics(held, UP, np.full(6, sat)) == pytest.approx(
            expected
        )


def test_p_values_of_halvings_become_one_by_the_quantile_rule_and_holms_adjustment_by_hand() -> (
    None
):
    p = np.array([[0.01, 0.2], [0.02, 0.4], [0.04, 1.0], [0.5, 1.0]])
    by_hand = [
        min(0.01 / 0.25, 0.02 / 0.5, 0.04 / 0.75, 0.5),
        min(0.2 / 0.25, 0.4 / 0.5, 1 / 0.75, 1.0),
    ]
    assert combine_p_values_of_halvings(p).tolist() == pytest.approx(
        [min(1, (1 - np.log(0.05)) * one) for one in by_hand]
    )
    assert adjust_p_values_by_holm(np.array([0.04, 0.01, 0.03])).tolist() == pytest.approx(
        [0.06, 0.03, 0.06]
    )
    assert adjust_p_values_by_holm(np.zeros(0)).tolist() == []


def test_halves_have_both_classes_evenly_and_keep_users_together_of_whom_one_conversation_is_tested() -> (
    None
):
    found = draw_random_halvings(UP, USERS, np.random.default_rng(0))
    assert len(found) == HALVING_COUNT
    for mine in found:
        by_user = mine.reshape(-1, 4)
        assert (by_user == by_user[:, :1]).all()
        assert abs(int(mine.sum()) - N // 2) <= 4
    kept = keep_one_conversation_per_block(np.arange(N) < 100, USERS, np.random.default_rng(0))
    assert np.unique(USERS[kept]).tolist() == USERS[kept].tolist() == list(range(25))


def test_what_goes_along_with_thumbs_is_proven_and_nothing_else_is() -> None:
    found = prove_rubrics_by_halvings(pool(1), UP, SAT, IDS, np.arange(N), np.random.default_rng(0))
    assert found.p[0] <= 0.05
    assert (found.p[1:] > 0.3).all()
    assert found.chosen[0] == 1.0


def test_shuffled_labels_prove_nothing() -> None:
    rng = np.random.default_rng(7)
    found = [
        prove_rubrics_by_halvings(pool(2), rng.permutation(UP), SAT, IDS, np.arange(N), rng)
        for _ in range(20)
    ]
    assert sum(bool((one.p <= 0.05).any()) for one in found) <= 2, "at most .08 of runs"


def test_a_family_has_one_entry_an_event_before_a_signal() -> None:
    values = pool(3)
    values[:, 1] = values[:, 0]  # answered alike
    p = np.array([0.01, 0.02, 0.2, 0.9, 0.9, 0.9])
    found = keep_one_rubric_per_family(
        values, UP, SAT, p, 2 * (np.arange(6) > 0), DEEDS, IDS, likely=0.3
    )
    assert found.base.tolist() == [1, 2], "surest first; the event leads for both"
    assert found.members[1].tolist() == [0, 1]
    assert not set(found.open.tolist()) & {0, 1, 2}


def test_a_narrower_form_has_an_entry_of_its_own_only_where_it_is_proven_beside_the_rest_of_its_family() -> (
    None
):
    rng = np.random.default_rng(5)
    wide = np.where(UP, rng.random(N) < 0.3, rng.random(N) < 0.6)
    worse = wide & ~UP & (rng.random(N) < 0.6)
    alike = wide & (rng.random(N) < 0.4)
    values = values_of(np.stack([wide, worse, alike, *np.zeros((3, N), dtype=bool)], axis=1))
    p = np.array([0.01, 0.01, 0.2, 1, 1, 1])
    names = ["failed"] * 3 + ["d", "e", "f"]
    found = keep_one_rubric_per_family(values, UP, SAT, p, EVENTS, DEEDS, names, likely=0.3)
    assert found.base.tolist() == [0, 1]
    assert found.members[0].tolist() == [0, 2]


def test_hints_are_added_up_to_the_maximum_behind_what_is_borne_out() -> None:
    values = pool(4)
    found = keep_one_rubric_per_family(
        values, UP, SAT, np.array([0.01, *[1.0] * 5]), EVENTS, DEEDS, IDS, likely=0.3
    )
    assert add_unproven_rubrics_as_hints(values, UP, SAT, IDS, found, 1.0, 1).tolist() == [0]
    first, *hints = add_unproven_rubrics_as_hints(values, UP, SAT, IDS, found, 1.0, 15).tolist()
    assert first == 0
    assert set(hints) <= set(found.open.tolist())


def test_a_deed_and_what_came_of_it_are_two_findings_however_alike_they_are() -> None:
    values = pool(3)
    values[:, 1] = values[:, 0]
    p = np.array([0.01, 0.02, 0.9, 0.9, 0.9, 0.9])
    deeds = np.arange(6) == 1
    narrowed = keep_one_rubric_per_family(values, UP, SAT, p, EVENTS, deeds, IDS, likely=0.3)
    assert sorted(narrowed.base.tolist()) == [0, 1]
