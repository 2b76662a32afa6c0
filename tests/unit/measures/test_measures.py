import itertools
import subprocess
import sys

import numpy as np
import pytest
from averages import averaged
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr
from sklearn.metrics import brier_score_loss, cohen_kappa_score, log_loss, root_mean_squared_error

from pollex.calibration.judgments import Judgments, pair_predictions_with_judgments
from pollex.calibration.questionnaire import Scale
from pollex.measures.correlations import (
    make_kendall_statistic,
    make_pearson_statistic,
    make_spearman_statistic,
    make_weighted_kappa_statistic,
)
from pollex.measures.distributions import (
    PREDICTION_MEASURE_NAMES,
    PredictionQuality,
    Predictions,
    assess_predictions,
    assess_predictions_by_group,
    compute_answer_log_losses,
    compute_brier_scores,
    estimate_difference_of_prediction_measure,
)
from pollex.measures.intervals import (
    Figure,
    LabelSupport,
    Measure,
    draw_resample_weights,
    estimate_figures_on_same_resamples,
    make_weighted_mean_statistic,
)

FOUR = (1.0, 2.0, 3.0, 4.0)
CORRELATIONS = {
    "pearson": make_pearson_statistic,
    "spearman": make_spearman_statistic,
    "kendall": make_kendall_statistic,
}
TRUSTED = {"pearson": pearsonr, "spearman": spearmanr, "kendall": kendalltau}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def predictions(
    n: int, seed: int = 0, values: tuple[float, ...] = FOUR, texts: int | None = None
) -> Predictions:
    """Distributions, and answers drawn from them."""
    draw = rng(seed)
    proba = draw.dirichlet(np.ones(len(values)), n)
    answer = np.array([draw.choice(len(values), p=row) for row in proba], dtype=np.int64)
    return Predictions(proba, answer, draw.integers(texts or n, size=n), values)


def figures(found: PredictionQuality) -> dict[str, Figure]:
    return {name: getattr(found, name) for name in PREDICTION_MEASURE_NAMES}


def reasons(found: PredictionQuality) -> dict[str, str]:
    return {name: figure.undefined for name, figure in figures(found).items() if figure.undefined}


def test_no_judgments_leave_every_figure_undefined_and_one_has_no_correlation_and_no_interval() -> (
    None
):
    nothing = Predictions(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0, np.int64), FOUR)
    found = assess_predictions(nothing, rng())
    assert {*figures(found).values(), *found.smece_of.values()} == {
        Figure(None, undefined="no judgments", units=0)
    }
    one = assess_predictions(predictions(1), rng())
    assert (
        reasons(one).items()
        >= dict.fromkeys([*CORRELATIONS, "smece"], "fewer than two judgments").items()
    )
    assert (one.rmse.value is None, one.rmse.low, one.rmse.high) == (False, None, None)


def test_answers_or_predictions_that_are_alike_but_for_rounding_leave_correlations_undefined() -> (
    None
):
    varied = predictions(20)
    found = assess_predictions(
        Predictions(varied.proba, np.full(20, 2), varied.text, FOUR), rng(), 50, 5
    )
    assert reasons(found) == dict.fromkeys(CORRELATIONS, "all answers are alike")
    proba = np.tile([0.1, 0.2, 0.3, 0.4], (20, 1))
    proba[::2] = proba[::2] * (1 + 1e-15)
    constant = assess_predictions(Predictions(proba, np.arange(20) % 4, np.arange(20), FOUR), None)
    assert reasons(constant) == dict.fromkeys(CORRELATIONS, "all predictions are alike")
    # Everybody is predicted a 3 and a quarter of the people gives it: agreement is what chance
    # gives.
    assert constant.kappa.value == pytest.approx(0)
    same = Predictions(np.tile([0.0, 0.0, 1.0, 0.0], (5, 1)), np.full(5, 2), np.arange(5), FOUR)
    assert (
        assess_predictions(same).kappa.undefined
        == "all predictions and answers are one and the same"
    )


def test_an_answer_that_was_called_impossible_leaves_the_log_loss_undefined() -> None:
    proba = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    found = assess_predictions(
        Predictions(proba, np.array([1, 0, 1]), np.arange(3), (0.0, 1.0)), rng(), 20, 5
    )
    assert found.log_loss.undefined == "1 of 3 given answers had probability 0"
    assert found.brier.value == pytest.approx((2 + 0.5 + 0) / 3)


def test_figures_that_need_an_order_are_undefined_without_one() -> None:
    ordered = predictions(30)
    found = assess_predictions(
        Predictions(ordered.proba, ordered.answer, ordered.text, FOUR, ordinal=False)
    )
    assert reasons(found) == dict.fromkeys(
        ["rmse", *CORRELATIONS, "kappa"], "its answers have no order"
    )
    assert found.log_loss == assess_predictions(ordered).log_loss


@given(
    st.integers(5, 40), st.integers(0, 1000), st.sampled_from([(0.0, 1.0), FOUR, (-1.0, 0.5, 7.0)])
)
def test_any_predictions_agree_with_scipy_and_scikit_learn(
    n: int, seed: int, values: tuple[float, ...]
) -> None:
    made = predictions(n, seed, values)
    # Rounded, so that there are ties.
    proba = np.round(made.proba * 5 + 0.5) + 0.5
    tied = Predictions(proba / proba.sum(axis=1, keepdims=True), made.answer, made.text, values)
    found = {
        name: figure.value
        for name, figure in figures(assess_predictions(tied, smooth=False)).items()
    }
    labels = np.arange(len(values))
    expected = {
        "rmse": root_mean_squared_error(tied.given, tied.expected),
        "log_loss": log_loss(tied.answer, tied.proba, labels=labels),
        "brier": brier_score_loss(tied.answer, tied.proba, labels=labels, scale_by_half=False),
    }
    if np.ptp(tied.given) > 0 and np.ptp(tied.expected) > 1e-9:
        x = np.round(tied.expected, 9)
        y = tied.given
        for name, statistic in CORRELATIONS.items():
            assert statistic(x, y)(np.ones((1, n)))[0] == pytest.approx(
                TRUSTED[name](x, y)[0], abs=1e-9
            )
        expected["pearson"] = pearsonr(tied.expected, y)[0]
    if len({*tied.nearest.tolist(), *tied.answer.tolist()}) > 1:
        expected["kappa"] = cohen_kappa_score(
            tied.nearest, tied.answer, labels=labels, weights="quadratic"
        )
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-9)


def test_weights_count_as_copies() -> None:
    draw = rng(1)
    x = draw.integers(9, size=50)
    y = draw.integers(5, size=50)
    weights = np.concatenate(list(draw_resample_weights(np.arange(50) // 2, 20, draw)))
    copies = [(np.repeat(x, row), np.repeat(y, row)) for row in weights.astype(int)]
    for name, statistic in CORRELATIONS.items():
        assert statistic(x, y)(weights) == pytest.approx(
            [TRUSTED[name](*copy)[0] for copy in copies], abs=1e-9
        ), name
    kappas = [cohen_kappa_score(*copy, weights="quadratic", labels=np.arange(9)) for copy in copies]
    assert make_weighted_kappa_statistic(x, y)(weights) == pytest.approx(kappas, abs=1e-9)


def test_rounding_and_a_large_offset_cost_a_correlation_nothing_and_no_variation_leaves_none() -> (
    None
):
    x = np.array([1e6, 2e6, 3e6])
    y = np.array([1.0, 2.0, 1.0])
    weights = np.array([[3.0, 0.0, 0.0], [1.0, 0.0, 2.0], [1.0, 1.0, 1.0]])
    for statistic in CORRELATIONS.values():
        assert np.isnan(statistic(x, y)(weights)).tolist() == [True, True, False]
    draw = rng()
    pairs = [draw.random((2, 3)) for _ in range(200)]
    found = [
        make_pearson_statistic(x, sign * x)(np.ones((1, 3)))[0]
        for x, _ in pairs
        for sign in (-1.0, 0.3)
    ]
    assert np.abs(found).max() == 1.0
    np.testing.assert_allclose(np.abs(found), 1.0)
    x, y = draw.normal(size=(2, 30))
    far = make_pearson_statistic(x + 1e7, y - 1e7)(np.ones((1, 30)))[0]
    assert far == pytest.approx(pearsonr(x, y)[0], abs=1e-7)


def mean(
    values: np.ndarray, texts: np.ndarray, draw: np.random.Generator, count: int = 2000
) -> Figure:
    return estimate_figures_on_same_resamples(
        {"mean": Measure(make_weighted_mean_statistic(values))}, texts, draw, count
    )["mean"]


def test_the_interval_is_that_of_all_possible_resamples_and_of_fewer_than_five_texts_there_is_none() -> (
    None
):
    every = [np.mean(picks) for picks in itertools.product([0.0, 0.0, 0.0, 1.0, 1.0], repeat=5)]
    # Student's t of 4 degrees of freedom is 2.776; times √(5/4) that is 3.104, and Φ(−3.104) =
    # .00096.
    low, high = np.quantile(every, [0.00096, 0.99904])
    found = mean(np.array([0.0, 0.0, 0.0, 1.0, 1.0]), np.array([7, 3, 4, 5, 6]), rng())
    assert found == Figure(0.4, pytest.approx(low), pytest.approx(high), 5, units=5)
    assert mean(np.arange(40.0), np.repeat(np.arange(4), 10), rng()) == Figure(
        19.5, None, None, 40, units=4
    )


@pytest.mark.parametrize("texts", [7, 20])
def test_intervals_hold_a_mean_nineteen_times_of_twenty_on_few_texts_too(texts: int) -> None:
    draw = rng()
    held = []
    for _ in range(300):
        values = draw.normal(size=texts) + draw.normal(size=(2, texts))  # two judgments a text
        found = mean(values.ravel(), np.tile(np.arange(texts), 2), draw, 500)
        held.append(found.low <= 0 <= found.high)  # type: ignore[operator]
    assert 0.92 < np.mean(held) < 0.98


def test_judgments_of_one_text_widen_the_interval() -> None:
    # Four copies of each text are no more than one.
    made = predictions(60)
    copied = np.tile(np.arange(60), 4)
    four = Predictions(made.proba[copied], made.answer[copied], copied, FOUR)
    one = Predictions(made.proba, made.answer, np.arange(60), FOUR)
    alone, together = (
        assess_predictions(p, rng(), 500, smooth=False).log_loss for p in (one, four)
    )
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))


def test_every_interval_holds_its_value_and_a_repeated_seed_changes_nothing() -> None:
    made = predictions(60, texts=30)
    found = assess_predictions(made, rng(5), 300, 3)
    assert found == assess_predictions(made, rng(5), 300, 3)
    for name, figure in figures(found).items():
        assert figure.low < figure.value < figure.high or name == "smece", name  # type: ignore[operator]
        assert figure.low <= figure.value <= figure.high, name  # type: ignore[operator]


def test_each_judge_is_measured_by_their_own_judgments() -> None:
    made = predictions(40)
    found = assess_predictions_by_group(made, ["ann", "bob"] * 20)
    assert list(found) == ["ann", "bob"]
    assert found["bob"] == assess_predictions(made.where(np.arange(40) % 2 == 1))


def test_a_difference_is_measured_on_the_same_resamples() -> None:
    made = predictions(80)
    second = Predictions(predictions(80, 1).proba, made.answer, made.text, FOUR)
    texts = len(np.unique(made.text))
    assert estimate_difference_of_prediction_measure(made, made, "pearson", rng(), 100) == Figure(
        0.0, 0.0, 0.0, 80, units=texts
    )
    found = estimate_difference_of_prediction_measure(made, second, "log_loss", rng(), 500)
    assert found.value == pytest.approx(
        assess_predictions(made).log_loss.value - assess_predictions(second).log_loss.value
    )  # type: ignore[operator]
    assert found.low < found.value < found.high < 0  # type: ignore[operator]
    assert found.units == texts


def test_predictions_are_made_of_judgments_in_their_order_and_their_losses_by_hand() -> None:
    proba = np.array([[0.2, 0.8], [1.0, 0.0]])
    ann = Judgments(
        np.array([5, 2]), np.zeros(2, np.int64), np.zeros(2, np.int64), np.array([1, 1]), ("ann",)
    )
    made = pair_predictions_with_judgments(proba, ann, Scale("q", (0.0, 10.0)))
    assert made.expected == pytest.approx([8, 0])
    assert (made.given.tolist(), made.text.tolist(), made.nearest.tolist()) == (
        [10, 10],
        [5, 2],
        [1, 0],
    )
    assert compute_answer_log_losses(proba, made.answer) == pytest.approx([-np.log(0.8), np.inf])
    assert compute_brier_scores(proba, made.answer) == pytest.approx([0.08, 2])


def test_the_word_calibrated_needs_fifty_labels() -> None:
    assert [(LabelSupport(n).missing, LabelSupport(n).enough) for n in (0, 49, 50)] == [
        (50, False),
        (1, False),
        (0, True),
    ]
    assert str(LabelSupport(49)) == "not yet calibrated: 49 of 50 labels, 1 is missing"
    assert str(LabelSupport(50)) == "calibrated on 50 labels"


def test_an_average_over_runs_is_of_the_figures_and_its_interval_of_the_same_resamples() -> None:
    first = predictions(90, texts=40)
    second, flat = (
        Predictions(proba, first.answer, first.text, FOUR)
        for proba in (predictions(90, 1).proba, np.full((90, 4), 0.25))
    )
    found = averaged([first, second], ["pearson", "log_loss"], rng(), 200)
    one, other = (assess_predictions(p, smooth=False) for p in (first, second))
    for name, figure in found.items():
        assert figure.value == pytest.approx(
            (getattr(one, name).value + getattr(other, name).value) / 2
        )
        assert figure.low < figure.value < figure.high  # type: ignore[operator]
    alone = assess_predictions(first, rng(), 200, smooth=False).pearson
    assert averaged([first, first], ["pearson"], rng(), 200)["pearson"] == alone
    assert averaged([first, flat], ["pearson"])["pearson"].undefined == "all predictions are alike"


def test_measuring_without_smece_loads_nothing_heavy() -> None:
    code = (
        "import sys, numpy as np; from pollex.measures.distributions import Predictions, assess_predictions;"
        "p = Predictions(np.full((3, 2), 0.5), np.array([0, 1, 1]), np.arange(3), (0.0, 1.0));"
        "assess_predictions(p, np.random.default_rng(0), 10, smooth=False);"
        "print(*{'matplotlib', 'torch', 'sklearn', 'scipy', 'krippendorff'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
