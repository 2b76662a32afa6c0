import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from plain_loops import plain_loss, plain_terms

from pollex.errors import BadLabels
from pollex.selection.losses import (
    MAX_SCORES_A_BLOCK,
    PrecisionCurves,
    compute_losses_with_each_candidate,
    compute_midpoint_of_class_means,
    compute_precision_curves,
    split_rubric_values_by_class,
)

UP = True
DOWN = False


def curves_of(scores: np.ndarray, positive: np.ndarray, grid: int = 101) -> PrecisionCurves:
    return compute_precision_curves(scores[None, positive], scores[None, ~positive], grid)


def terms(scores: np.ndarray, positive: np.ndarray, grid: int = 101) -> tuple[float, float]:
    curves = curves_of(scores, positive, grid)
    return float(curves.correctness[0]), float(curves.sharpness[0])


def candidate_losses(
    base: np.ndarray,
    values: np.ndarray,
    positive: np.ndarray,
    alpha: float | np.ndarray,
    size: int,
    grid: int = 101,
) -> np.ndarray:
    """The loss of a set that scores `base` with each candidate added in turn: `[rubric]`, or `[alpha, rubric]`."""
    sides = (base[positive], base[~positive])
    every = np.arange(values.shape[1])
    return compute_losses_with_each_candidate(
        sides, split_rubric_values_by_class(values, positive), every, grid
    ).loss(alpha, size)


@pytest.mark.parametrize("labels", [[], [UP, UP], [DOWN]])
def test_labels_that_are_all_alike_are_refused(labels: list[bool]) -> None:
    with pytest.raises(BadLabels, match="conversations are positive"):
        compute_midpoint_of_class_means(np.zeros(len(labels)), np.array(labels, dtype=bool))


def test_losses_of_four_conversations_worked_by_hand() -> None:
    # Positives score 4 and 2, negatives 0 and 2. Three thresholds: 0, 2, 4.
    # LC = 3 − 1 = 2, θ_c = 2, s = √((1+1+1+1)/(4−2)) = √2.
    # Prec+: over 0: 2 of 3; over 2: 1 of 1; over 4 none, carries 1.
    # Prec−: at or under 0: 1 of 1; at or under 2: 2 of 3; at or under 4: 2 of 4.
    scores = np.array([4.0, 2, 0, 2])
    positive = np.array([UP, UP, DOWN, DOWN])
    curves = curves_of(scores, positive, grid=3)
    assert curves.thresholds[0].tolist() == [0, 2, 4]
    assert curves.correctness[0] == 2
    assert curves.theta[0] == compute_midpoint_of_class_means(scores, positive) == 2
    assert curves.spread[0] == pytest.approx(math.sqrt(2), abs=1e-12)
    assert curves.plus[0] == pytest.approx([2 / 3, 1, 1], abs=1e-12)
    assert curves.minus[0] == pytest.approx([1, 2 / 3, 1 / 2], abs=1e-12)
    # tanh(−√2, 0, √2) = −0.8883856, 0, 0.8883856; base rates ½:
    # target+ = ½ + ½·(1 + tanh)/2 = 0.5279036, 0.75, 0.9720964; target− is its mirror image.
    assert curves.target_plus[0] == pytest.approx([0.5279036, 0.75, 0.9720964], abs=1e-7)
    assert curves.target_minus[0] == pytest.approx([0.9720964, 0.75, 0.5279036], abs=1e-7)
    # LS = (0.1387631² + 0.25² + 0.0279036²)/3 + (0.0279036² + 0.0833333² + 0.0279036²)/3
    #    = (0.0192552 + 0.0625 + 0.0007786)/3 + (0.0007786 + 0.0069444 + 0.0007786)/3 = 0.0275112 +
    # 0.0028339
    assert curves.sharpness[0] == pytest.approx(0.0303451, abs=1e-7)
    # Minus LC over the set's range, plus α times LS: one candidate for a set that scores 1
    # everywhere, |R| = 2, α = 3.
    base = np.ones(4)
    values = scores[:, None].copy()
    assert candidate_losses(base, values, positive, 3.0, 2, grid=3) == pytest.approx(
        [-2 / 20 + 3 * 0.0303451], abs=1e-6
    )
    assert (base.tolist(), values[:, 0].tolist()) == ([1] * 4, scores.tolist())  # as they were


def test_constant_scores_keep_the_base_rate_and_have_no_slope() -> None:
    # b = ⅔: Prec+ carries ⅔, target ⅔ + ⅓·½; Prec− is ⅓, target ⅓ + ⅔·½. LS = (1/6)² + (1/3)².
    for scores in (np.full(3, 5.0), np.array([0.3, 0.1 + 0.2, 0.3])):
        assert terms(scores, np.array([UP, UP, DOWN])) == pytest.approx(
            (0, 1 / 36 + 1 / 9), abs=1e-9
        )


def test_a_score_on_a_threshold_is_at_or_under_it_whatever_rounding_made_of_it() -> None:
    # 0.1+0.2 > 0.3 in floating point; the threshold in the middle of 0 … 0.6 is 0.3.
    exact = np.array([0.6, 0.3, 0.3, 0.0])
    rounded = np.array([0.6, 0.1 + 0.2, 0.3, 0.0])
    positive = np.array([UP, UP, DOWN, DOWN])
    assert terms(rounded, positive, grid=3) == pytest.approx(
        terms(exact, positive, grid=3), abs=1e-12
    )
    curves = curves_of(rounded, positive, grid=3)
    assert (curves.plus[0].tolist(), curves.minus[0].tolist()) == ([2 / 3, 1, 1], [1, 2 / 3, 1 / 2])


@pytest.mark.parametrize(("share", "likert"), [(0.05, True), (0.5, False), (0.9, True)])
def test_all_candidates_agree_with_the_plain_loop(share: float, likert: bool) -> None:
    rng = np.random.default_rng(7)
    positive = rng.random(60) < share
    values = rng.integers(0, 5, (60, 8)) * 2.5 if likert else rng.uniform(0, 10, (60, 8))
    base = rng.integers(-8, 9, 60) * 2.5 if likert else rng.normal(0, 20, 60)
    alphas = np.array([0.0, 0.5, 4.0])
    expected = [
        [plain_loss((base + column).tolist(), positive.tolist(), alpha, 3) for column in values.T]
        for alpha in alphas
    ]
    assert candidate_losses(base, values, positive, alphas, 3) == pytest.approx(
        np.array(expected), abs=1e-9
    )
    assert candidate_losses(base, values, positive, 4.0, 3) == pytest.approx(expected[2], abs=1e-9)


likert_scores = st.integers(-80, 80).map(lambda x: x / 8)
any_scores = st.floats(-200, 200, allow_subnormal=False).map(lambda x: round(x, 6))


@given(
    st.one_of(
        st.lists(st.tuples(likert_scores, st.booleans()), min_size=2, max_size=30),
        st.lists(st.tuples(any_scores, st.booleans()), min_size=2, max_size=30),
    ),
    st.sampled_from([2, 3, 11, 101]),
)
def test_any_scores_agree_with_the_plain_loop(pairs: list[tuple[float, bool]], grid: int) -> None:
    scores = np.array([s for s, _ in pairs])
    positive = np.array([up for _, up in pairs])
    assume(positive.any() and not positive.all())
    expected = plain_terms(scores.tolist(), positive.tolist(), grid)
    assert terms(scores, positive, grid) == pytest.approx(expected, abs=1e-9)


def test_many_candidates_are_the_same_in_blocks_as_one_by_one() -> None:
    positive = np.arange(2000) % 3 == 0
    values = np.random.default_rng(3).uniform(0, 10, (2000, 300))
    assert values.size > 2 * MAX_SCORES_A_BLOCK
    together = candidate_losses(np.zeros(2000), values, positive, 1.0, 1)
    for column in (0, 130, 131, 132, 262, 299):
        alone = candidate_losses(np.zeros(2000), values[:, [column]], positive, 1.0, 1)
        assert together[column] == pytest.approx(alone[0], abs=1e-12)
