"""Shares of good conversations: by hand, held by simulation, and no probability by a model that saw its label."""

import numpy as np
import pytest

from pollex.measures.share import (
    LabeledSample,
    bound_share_for_voting_odds,
    check_vote_dependence_on_satisfaction,
    compute_interval_half_width_of_random_labels,
    count_labels_for_difference,
    estimate_share_difference_from_random_labels,
    estimate_share_from_random_labels,
    estimate_share_from_voluntary_votes,
    estimate_wilson_share,
)
from pollex.services.share import crossfit_answers


def world(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities that they follow."""
    probability = 1 / (1 + np.exp(-(0.7 + 2 * rng.normal(size=size))))
    return rng.random(size) < probability, probability


def drawn(
    rng: np.random.Generator, good: np.ndarray, probability: np.ndarray, n: int
) -> LabeledSample:
    picked = np.zeros(len(good), bool)
    picked[rng.choice(len(good), n, replace=False)] = True
    return LabeledSample(good[picked], probability[picked], probability[~picked])


def test_a_probability_that_tells_nothing_gives_the_interval_of_the_labels_alone() -> None:
    good = np.array([True] * 30 + [False] * 10)
    found = estimate_share_from_random_labels(
        LabeledSample(good, np.full(40, 0.5), np.full(1000, 0.5))
    )
    assert (found.value, found.gain) == (0.75, 1.0)
    # Wilson's, by hand
    assert (found.low, found.high) == pytest.approx((0.5981, 0.8581), abs=1e-4)
    assert "too little" in found.note


def test_the_estimate_is_the_formula_worked_by_hand() -> None:
    good = np.array([True, True, False, False] * 5)
    probability = np.array([0.9, 0.7, 0.3, 0.1] * 5)
    rest = np.array([0.9, 0.9, 0.5, 0.1] * 10)
    found = estimate_share_from_random_labels(LabeledSample(good, probability, rest))
    weight = 0.15 / ((1 + 20 / 40) * np.concatenate([probability, rest]).var())
    assert found.value == pytest.approx(0.5 + weight * (0.6 - 0.5))


def test_intervals_hold_the_truth_and_are_narrower_than_those_of_labels_alone() -> None:
    rng = np.random.default_rng(0)
    good, probability = world(rng, 5000)
    covered = []
    widths = []
    for _ in range(200):
        side = drawn(rng, good, probability, 100)
        found = estimate_share_from_random_labels(side)
        alone = estimate_wilson_share(side.good, "")
        covered.append(found.low <= good.mean() <= found.high)
        widths.append((found.high - found.low) / (alone.high - alone.low))
    assert 0.92 <= np.mean(covered) <= 0.98
    assert np.mean(widths) < 0.88


def test_conversations_of_one_user_count_as_one() -> None:
    rng = np.random.default_rng(1)
    good = np.repeat(rng.random(40) < 0.6, 10)
    probability = np.repeat(rng.random(40), 10)
    rest = rng.random(100)
    alone = estimate_share_from_random_labels(LabeledSample(good, probability, rest))
    together = estimate_share_from_random_labels(
        LabeledSample(good, probability, rest, np.repeat(np.arange(40), 10), 100 + np.arange(100))
    )
    assert together.se > 2.5 * alone.se


def test_votes_that_depend_on_the_conversation_alone_are_adjusted_and_others_are_found_out() -> (
    None
):
    rng = np.random.default_rng(2)
    good, probability = world(rng, 20_000)
    fair = np.clip(0.01 + 0.05 * (1 - probability), 0, 1)
    voted = rng.random(len(good)) < fair
    found = estimate_share_from_voluntary_votes(voted, good, probability, fair)
    assert abs(good[voted].mean() - good.mean()) > 0.05
    assert found.low <= good.mean() <= found.high
    angry = rng.random(len(good)) < np.where(good, 0.02, 0.05)
    # what a model learns from such votes
    outcome = probability / (probability + 2.5 * (1 - probability))
    biased = estimate_share_from_voluntary_votes(
        angry, good, outcome, np.full(len(good), angry.mean())
    )
    test = check_vote_dependence_on_satisfaction(
        estimate_share_from_random_labels(drawn(rng, good, probability, 400)), biased, outcome
    )
    assert test.difference < 0
    assert test.p < 0.05
    assert test.power > 0.8


def test_bounds_with_the_true_factor_hold_the_truth() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(40):
        good, probability = world(rng, 20_000)
        voted = rng.random(len(good)) < np.where(good, 0.015, 0.03)
        # what votes tell of a conversation
        outcome = probability / (probability + 2 * (1 - probability))
        (bounds,) = bound_share_for_voting_odds(
            voted, good, outcome, np.full(len(good), voted.mean()), [2.0]
        )
        held += bounds.low <= good.mean() <= bounds.high
    assert held >= 38


def test_a_difference_of_two_sides_has_the_size_and_the_interval_that_it_says() -> None:
    rng = np.random.default_rng(4)
    rejected = []
    good, probability = world(rng, 6000)
    for _ in range(200):
        order = rng.permutation(len(good))
        found = estimate_share_difference_from_random_labels(
            *(
                drawn(rng, good[half], probability[half], 150)
                for half in (order[:3000], order[3000:])
            )
        )
        rejected.append(not found.low <= 0 <= found.high)
    assert 0.02 <= np.mean(rejected) <= 0.08


def test_the_planner_agrees_with_the_textbook() -> None:
    # two proportions, power .8
    assert count_labels_for_difference(0.05, 0.7, reserve=1.0) == pytest.approx(1248, abs=1)
    assert count_labels_for_difference(0.05, 0.7, 0.6, reserve=1.0) == pytest.approx(
        0.64 * 1248, abs=1
    )
    assert compute_interval_half_width_of_random_labels(100, 0.5) == pytest.approx(0.098, abs=1e-3)


def test_the_estimate_is_that_of_the_authors_package() -> None:
    ppi = pytest.importorskip("ppi_py", reason="pip install ppi-python")
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labeled = drawn(rng, *world(rng, 3000), 150)
        arrays = [
            column[:, None]
            for column in (labeled.good.astype(float), labeled.probability, labeled.rest)
        ]
        ours = estimate_share_from_random_labels(labeled)
        assert ours.value == pytest.approx(float(ppi.ppi_mean_pointestimate(*arrays)[0]), abs=5e-5)
        low, high = ppi.ppi_mean_ci(*arrays, alpha=0.05)
        assert ours.high - ours.low == pytest.approx(float(high[0] - low[0]), rel=0.05)


def test_features_that_tell_nothing_predict_nothing_of_known_labels() -> None:
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(120, 60))
        y = rng.random(120) < 0.7
        p = crossfit_answers(x, np.ones(120, dtype=bool), y, rng)
        found.append(np.corrcoef(p, y)[0, 1])
    assert np.mean(found) < 0.05  # a model of the same labels has over .5


def test_what_belongs_to_one_user_is_never_predicted_from_that_user() -> None:
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(30), 4)
    y = np.repeat(rng.random(30) < 0.5, 4)
    x = np.eye(30)[user]
    p = crossfit_answers(x, np.ones(120, dtype=bool), y, rng, user)
    assert np.corrcoef(p, y)[0, 1] < 0.1
    alone = crossfit_answers(x, np.ones(120, dtype=bool), y, rng)
    assert np.corrcoef(alone, y)[0, 1] > 0.9


def test_labels_that_are_all_alike_give_one_probability() -> None:
    rng = np.random.default_rng(0)
    p = crossfit_answers(rng.normal(size=(40, 5)), np.arange(40) < 20, np.ones(40, dtype=bool), rng)
    assert np.ptp(p) < 0.05
    assert p.min() > 0.8


@pytest.mark.nightly
def test_intervals_of_crossfitted_probabilities_cover_what_they_should() -> None:
    rng = np.random.default_rng(1)
    hits = []
    for _ in range(60):
        x = rng.normal(size=(300, 4))
        y = rng.random(300) < 1 / (1 + np.exp(-(x[:, 0] + np.log(1.5))))
        known = rng.permutation(300) < 60
        p = crossfit_answers(x, known, y, rng)
        found = estimate_share_from_random_labels(LabeledSample(y[known], p[known], p[~known]))
        hits.append(found.low <= 0.583 <= found.high)  # the mean of that logistic over x
    assert np.mean(hits) >= 0.88  # models that had seen the labels would cover some 70 %
