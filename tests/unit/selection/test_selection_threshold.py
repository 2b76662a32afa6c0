"""Uncertainty windows by the plain rule and with a guarantee, and the curve of probability."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import binomtest

from pollex.errors import BadLabels
from pollex.measures.distributions import compute_platt_targets
from pollex.selection.losses import compute_midpoint_of_class_means
from pollex.selection.threshold import (
    Calibration,
    Window,
    count_labels_needed_for_precision,
    fit_guaranteed_window,
    fit_logistic_calibration_curve,
    fit_uncertainty_window,
)


def test_one_class_has_no_window_no_guarantee_and_no_curve() -> None:
    scores = np.arange(3.0)
    positive = np.ones(3, bool)
    for fit in (
        lambda: fit_uncertainty_window(scores, positive, 1.0),
        lambda: fit_guaranteed_window(scores, positive, 1.0),
    ):
        with pytest.raises(BadLabels):
            fit()
    with pytest.raises(BadLabels):
        fit_logistic_calibration_curve(scores, positive)


@pytest.mark.parametrize(
    ("scores", "labels", "theta", "precision", "ends"),
    [
        ([5.0] * 4, "++--", 5.0, 0.9, (None, None)),
        # Scores    0  1  2  3 | 4  5  6  7      θ = 3.5
        # labels    −  −  +  − | −  +  +  +
        # Prec− at 0.5, 1.5, 2.5, 3.5: 1, 1, 2/3, 3/4.  Prec+ at 3.5, 4.5: 3/4, 1.
        (range(8), "--+--+++", 3.5, 0.9, (1.5, 4.5)),
        (range(8), "--+--+++", 3.5, 0.75, (3.5, 3.5)),
        (range(8), "--+--+++", 3.5, 0.7, (3.5, 3.5)),
        # A dip of the curve below the lower end does not matter: Prec− climbs 0, ½, …, 9/10 at 9.5.
        (range(20), "+---------++++++++++", 9.5, 0.9, (9.5, 9.5)),
        # A side that never reaches the precision is none: below θ positives and negatives
        # alternate.
        (range(8), "+-+-++++", 3.5, 0.9, (None, 3.5)),
        ([0.0, 1, 8, 9], "--++", 4.5, 0.9, (4.5, 4.5)),
        # Scores that differ by rounding are on one side.
        ([0.3, 0.3 + 1e-12, 0.9, 1.0], "-+++", 0.55, 0.9, (None, 0.55)),
    ],
)
def test_windows_worked_by_hand(
    scores: list[float],
    labels: str,
    theta: float,
    precision: float,
    ends: tuple[float | None, float | None],
) -> None:
    positive = np.array([label == "+" for label in labels])
    assert fit_uncertainty_window(np.array(scores, float), positive, theta, precision) == Window(
        *ends, precision
    )


def test_confident_is_at_or_under_the_lower_end_and_over_the_upper_and_never_on_a_side_without() -> (
    None
):
    scores = np.array([1.0, 1.5, 2.0, 2.1])
    assert Window(1.0, 2.0).confident(scores).tolist() == [True, False, False, True]
    assert Window(None, 2.0).confident(scores).tolist() == [False, False, False, True]
    assert not Window(None, None).confident(scores).any()


conversations = st.lists(
    st.tuples(st.integers(-20, 20).map(lambda x: x / 2), st.booleans()), min_size=2, max_size=40
)


@given(conversations, st.sampled_from([0.6, 0.75, 0.9, 1.0]))
def test_outside_any_window_the_precision_holds_and_no_wider_window_would_do(
    pairs: list[tuple[float, bool]], precision: float
) -> None:
    scores = np.array([s for s, _ in pairs])
    positive = np.array([up for _, up in pairs])
    assume(positive.any() and not positive.all())
    theta = compute_midpoint_of_class_means(scores, positive)
    window = fit_uncertainty_window(scores, positive, theta, precision)
    lower = -np.inf if window.lower is None else window.lower
    upper = np.inf if window.upper is None else window.upper
    assert lower <= theta <= upper
    under = scores <= lower
    over = scores > upper
    assert (under.any(), over.any()) == (window.lower is not None, window.upper is not None)
    assert (~positive[under]).sum() >= precision * under.sum()
    assert positive[over].sum() >= precision * over.sum()
    # by the plain rule, no threshold nearer to θ keeps the promise
    for threshold in {*scores.tolist(), theta}:
        under = scores <= threshold
        over = scores > threshold
        if threshold <= theta and (scores[under] > lower).any():
            assert (~positive[under]).sum() < precision * under.sum()
        if threshold >= theta and over.any() and (scores[over] <= upper).any():
            assert positive[over].sum() < precision * over.sum()


def less(wrong: int, n: int, rate: float = 0.1) -> float:
    return float(binomtest(wrong, n, rate, alternative="less").pvalue)


def test_too_few_labels_have_no_threshold_and_are_told_how_many_it_takes_if_any_number_helps() -> (
    None
):
    # 20 conversations apart: without an error, each side needs 29 beyond its threshold, and half of
    # all are there.
    # An error in 11, as Jeffreys counts none in 10, leaves a gap of 0.1 − 0.5/11 to prove with
    # certainty 0.95.
    found = fit_guaranteed_window(np.arange(20.0), np.arange(20) > 9, 9.5)
    assert (found.window.lower, found.window.upper) == (None, None)
    assert (found.n, found.upper.confident, found.upper.wrong) == (20, 0, 0)
    expected = 1.6449**2 * 0.9 * 0.1 / (0.1 - 0.5 / 11) ** 2 / 0.5
    assert found.lower.needed == found.upper.needed == pytest.approx(expected, abs=1.5)
    never = fit_guaranteed_window(np.arange(400.0), np.arange(400) % 2 == 0, 199.5)
    assert (never.upper.threshold, never.upper.needed, never.lower.needed) == (None, None, None)


def test_the_least_number_of_labels_is_where_an_exact_test_first_rejects() -> None:
    assert count_labels_needed_for_precision(0.9, 0.05) == 29  # 0.9^29 = 0.047, 0.9^28 = 0.052
    assert count_labels_needed_for_precision(0.9, 0.05, wrong=1) == 46
    for wrong in (0, 1, 3):
        n = count_labels_needed_for_precision(0.8, 0.02, wrong)
        assert less(wrong, n - 1, 0.2) > 0.02 >= less(wrong, n, 0.2)


def test_the_upper_side_of_a_hundred_conversations_worked_by_hand() -> None:
    # Over θ = 99.5 are 100, and the lowest 20 of them are negative. Going inwards, 80 are right,
    # and then one after another is wrong, until the test at δ/2 = 0.05 rejects no more. Under θ all
    # are right.
    scores = np.arange(200.0)
    found = fit_guaranteed_window(scores, scores >= 120, 99.5)
    wrong = next(number for number in range(9) if less(number + 1, 81 + number) > 0.05)
    assert (found.upper.confident, found.upper.wrong) == (80 + wrong, wrong)
    assert found.upper.threshold == 119.5 - wrong
    assert (found.lower.confident, found.lower.wrong, found.lower.threshold) == (100, 0, 99.5)


def test_a_threshold_behind_one_that_failed_is_not_taken_even_where_its_own_test_passes() -> None:
    # The 50 highest have 6 wrong, and fail; with the 150 after them, all right, 6 of 200 would
    # pass.
    scores = np.arange(400.0)
    positive = scores >= 200
    positive[350:400:9] = False
    assert less(6, 200) < 0.01
    assert fit_guaranteed_window(scores, positive, 199.5).upper.threshold is None


@given(st.integers(0, 10_000), st.sampled_from([60, 200, 400]))
def test_the_sides_mirror_each_other_and_stay_on_theirs(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    positive = rng.random(n) < 1 / (1 + np.exp(-5 * scores))
    found = fit_guaranteed_window(scores, positive, 0.1)
    mirrored = fit_guaranteed_window(-scores, ~positive, -0.1)
    for one, other in ((found.upper, mirrored.lower), (found.lower, mirrored.upper)):
        assert (one.confident, one.wrong) == (other.confident, other.wrong)
        assert one.threshold == (
            None if other.threshold is None else pytest.approx(-other.threshold)
        )
        # without a threshold some may still be confident, but too few to tell how many it takes
        if one.threshold is not None:
            assert one.confident > 0
        elif one.needed is not None:
            assert one.confident == 0
    assert found.upper.threshold is None or found.upper.threshold >= 0.1
    assert found.lower.threshold is None or found.lower.threshold <= 0.1


def test_the_guarantee_is_kept_where_the_plug_in_window_fails_most_of_the_time() -> None:
    # Every threshold is right 89.5 % of the time: to name one at all is to fail. The guarantee
    # allows 20 of 200 splits, with a standard error of 4.2.
    rng = np.random.default_rng(0)
    failures = np.zeros(2, int)
    for _ in range(200):
        scores = rng.normal(size=400)
        positive = rng.random(400) < np.where(scores > 0, 0.895, 0.105)
        windows = (
            fit_uncertainty_window(scores, positive, 0.0),
            fit_guaranteed_window(scores, positive, 0.0).window,
        )
        failures += [(window.lower, window.upper) != (None, None) for window in windows]
    assert failures[0] >= 190
    assert failures[1] <= 34


def test_curves_worked_by_hand() -> None:
    # 3 positives, 1 negative at one score: targets 4/5 and 1/3, mean (12/5 + 1/3)/4 = 41/60.
    flat = fit_logistic_calibration_curve(np.full(4, 7.0), np.array([True, True, True, False]))
    assert flat.slope == 0
    assert flat.probability(np.array([-50.0, 7.0])) == pytest.approx([41 / 60, 41 / 60], abs=1e-12)
    # Two scores, two parameters: the fit goes through the mean target of each.
    # 2 positives at 1 (target ¾), 1 negative at 1 and 1 at −1 (target ¼): at 1 (¾+¾+¼)/3 = 7/12, at
    # −1 ¼.
    # logits ln(7/5) and ln(1/3): slope (ln 1.4 + ln 3)/2, intercept (ln 1.4 − ln 3)/2.
    found = fit_logistic_calibration_curve(
        np.array([1.0, 1, 1, -1]), np.array([True, True, False, False])
    )
    assert (found.slope, found.intercept) == pytest.approx(
        (np.log(4.2) / 2, np.log(1.4 / 3) / 2), abs=1e-7
    )
    # Ten of each at ±1000: the fit goes through Platt's targets, 11/12 and 1/12.
    apart = fit_logistic_calibration_curve(np.repeat([1000.0, -1000.0], 10), np.arange(20) < 10)
    assert apart.probability(np.array([1000.0, 0, -1000])) == pytest.approx(
        [11 / 12, 0.5, 1 / 12], abs=1e-6
    )


@pytest.mark.parametrize(
    ("scale", "shift"), [(1e-3, 0.0), (1.0, 2.0), (1e4, 50.0), (1e-3, 50.0), (1e4, 0.0)]
)
def test_the_fit_is_the_minimum_that_a_general_optimiser_finds(scale: float, shift: float) -> None:
    rng = np.random.default_rng(0)
    positive = rng.random(150) < 0.3
    z = rng.normal(size=150) + shift * positive
    targets = compute_platt_targets(positive.astype(np.int64), 2)[:, 1]

    def loss(weights: np.ndarray) -> float:
        logits = weights[0] * z + weights[1]
        return float(np.sum(np.logaddexp(0, logits) - targets * logits))

    expected = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-8}).x
    calibration = fit_logistic_calibration_curve(scale * z - 5, positive)
    fitted = np.array([calibration.slope * scale, calibration.intercept - 5 * calibration.slope])
    assert loss(fitted) <= loss(expected) + 1e-9
    assert fitted == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_probabilities_at_any_score_are_finite_and_without_warnings() -> None:
    probabilities = Calibration(3.0, -1.0).probability(np.array([-1e6, 1 / 3, 1e6]))
    assert probabilities.tolist() == pytest.approx([0.0, 0.5, 1.0])


def test_more_certainty_never_widens_what_is_confident() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=600)
    positive = rng.random(600) < 1 / (1 + np.exp(-6 * scores))
    counts = [
        fit_guaranteed_window(scores, positive, 0.0, delta=delta).upper.confident
        for delta in (0.3, 0.1, 0.02)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 0


def test_constant_scores_leave_everything_uncertain() -> None:
    window = fit_uncertainty_window(np.full(4, 5.0), np.array([True, True, False, False]), 5.0)
    assert window == Window(None, None, 0.9)
    assert not window.confident(np.array([-100, 5, 100])).any()
