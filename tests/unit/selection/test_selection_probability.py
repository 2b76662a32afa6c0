import numpy as np
import pytest
from scipy.optimize import minimize

from pollex.errors import BadLabels
from pollex.measures.distributions import platt_targets
from pollex.selection.threshold import Calibration, fit_calibration


def test_one_class_has_no_curve() -> None:
    with pytest.raises(BadLabels):
        fit_calibration(np.arange(3.0), np.ones(3, bool))


def test_constant_scores_give_the_mean_target() -> None:
    # 3 positives, 1 negative: targets 4/5 and 1/3, mean (12/5 + 1/3)/4 = 41/60.
    calibration = fit_calibration(np.full(4, 7.0), np.array([True, True, True, False]))
    assert calibration.slope == 0
    assert calibration.probability(np.array([-50.0, 7.0])) == pytest.approx([41 / 60, 41 / 60], abs=1e-12)


def test_the_curve_through_two_scores_worked_by_hand() -> None:
    # Two scores, two parameters: the fit goes through the mean target of each.
    # 2 positives at 1 (target ¾), 1 negative at 1 and 1 at −1 (target ¼): at 1 (¾+¾+¼)/3 = 7/12, at −1 ¼.
    # logits ln(7/5) and ln(1/3): slope (ln 1.4 + ln 3)/2, intercept (ln 1.4 − ln 3)/2.
    positive = np.array([True, True, False, False])
    assert platt_targets(positive.astype(np.int64), 2)[:, 1].tolist() == [0.75, 0.75, 0.25, 0.25]
    calibration = fit_calibration(np.array([1.0, 1, 1, -1]), positive)
    assert calibration.slope == pytest.approx(np.log(4.2) / 2, abs=1e-7)
    assert calibration.intercept == pytest.approx(np.log(1.4 / 3) / 2, abs=1e-7)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("shift", [0.0, 2.0, 50.0])
def test_the_fit_is_the_minimum_that_a_general_optimiser_finds(scale: float, shift: float) -> None:
    rng = np.random.default_rng(0)
    positive = rng.random(150) < 0.3
    z = rng.normal(size=150) + shift * positive
    targets = platt_targets(positive.astype(np.int64), 2)[:, 1]

    def loss(weights: np.ndarray) -> float:
        logits = weights[0] * z + weights[1]
        return float(np.sum(np.logaddexp(0, logits) - targets * logits))

    expected = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-8}).x
    calibration = fit_calibration(scale * z - 5, positive)
    fitted = np.array([calibration.slope * scale, calibration.intercept - 5 * calibration.slope])
    assert loss(fitted) <= loss(expected) + 1e-9
    assert fitted == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_classes_far_apart_keep_probabilities_off_zero_and_one() -> None:
    # Ten of each at ±1000: the fit goes through Platt's targets, 11/12 and 1/12.
    scores, positive = np.repeat([1000.0, -1000.0], 10), np.repeat([True, False], 10)
    calibration = fit_calibration(scores, positive)
    assert calibration.probability(np.array([1000.0, 0, -1000])) == pytest.approx([11 / 12, 0.5, 1 / 12], abs=1e-6)


def test_probabilities_at_any_score_are_finite_and_without_warnings() -> None:
    probabilities = Calibration(3.0, -1.0).probability(np.array([-1e6, 1 / 3, 1e6]))
    assert probabilities.tolist() == pytest.approx([0.0, 0.5, 1.0])
