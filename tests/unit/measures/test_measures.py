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

from pollex.calibration.judgments import Judgments, predictions_beside
from pollex.calibration.questionnaire import Scale
from pollex.measures.correlations import kappa_statistic, kendall_statistic, pearson_statistic, spearman_statistic
from pollex.measures.distributions import (
    NAMES,
    Predictions,
    Quality,
    assess,
    assess_each,
    briers,
    difference,
    log_losses,
)
from pollex.measures.intervals import Figure, Measure, Support, mean_of, measured, resampled

FOUR = (1.0, 2.0, 3.0, 4.0)


def predictions(n: int, seed: int = 0, values: tuple[float, ...] = FOUR, texts: int | None = None) -> Predictions:
    """Distributions, and answers drawn from them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(len(values)), n)
    answer = np.array([rng.choice(len(values), p=row) for row in proba], dtype=np.int64)
    return Predictions(proba, answer, rng.integers(texts or n, size=n), values)


def figures(found: Quality) -> dict[str, Figure]:
    return {name: getattr(found, name) for name in NAMES}


def test_no_judgments_leave_every_figure_undefined() -> None:
    nothing = Predictions(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0, np.int64), FOUR)
    found = assess(nothing, np.random.default_rng(0))
    assert {*figures(found).values(), *found.smece_of.values()} == {Figure(None, undefined="no judgments", units=0)}


def test_one_judgment_has_errors_but_no_correlation_and_no_interval() -> None:
    found = assess(predictions(1), np.random.default_rng(0))
    assert {f.undefined for f in (found.pearson, found.spearman, found.kendall)} == {"fewer than two judgments"}
    assert found.smece.undefined == "fewer than two judgments"
    assert found.rmse.value is not None
    assert found.rmse.low is found.rmse.high is None


def test_answers_that_are_all_alike_leave_correlations_undefined() -> None:
    varied = predictions(20)
    found = assess(Predictions(varied.proba, np.full(20, 2), varied.text, FOUR), np.random.default_rng(0), 50, 5)
    assert {f.undefined for f in (found.pearson, found.spearman, found.kendall)} == {"all answers are alike"}
    assert found.log_loss.value is not None


def test_predictions_that_differ_by_rounding_only_are_a_constant() -> None:
    proba = np.tile([0.1, 0.2, 0.3, 0.4], (20, 1))
    proba[::2] = proba[::2] * (1 + 1e-15)
    found = assess(Predictions(proba, np.arange(20) % 4, np.arange(20), FOUR), None)
    assert {f.undefined for f in (found.pearson, found.spearman, found.kendall)} == {"all predictions are alike"}
    # Everybody is predicted a 3 and a quarter of the people gives it: agreement is what chance gives.
    assert found.kappa.value == pytest.approx(0)


def test_kappa_of_one_and_the_same_option_is_undefined() -> None:
    same = Predictions(np.tile([0.0, 0.0, 1.0, 0.0], (5, 1)), np.full(5, 2), np.arange(5), FOUR)
    assert assess(same).kappa.undefined == "all predictions and answers are one and the same"


def test_an_answer_that_was_called_impossible_leaves_the_log_loss_undefined() -> None:
    proba = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    found = assess(Predictions(proba, np.array([1, 0, 1]), np.arange(3), (0.0, 1.0)), np.random.default_rng(0), 20, 5)
    assert found.log_loss.undefined == "1 of 3 given answers had probability 0"
    assert found.brier.value == pytest.approx((2 + 0.5 + 0) / 3)


def test_figures_that_need_an_order_are_undefined_without_one() -> None:
    ordered = predictions(30)
    found = assess(Predictions(ordered.proba, ordered.answer, ordered.text, FOUR, ordinal=False))
    undefined = {name for name, figure in figures(found).items() if figure.undefined == "its answers have no order"}
    assert undefined == {"rmse", "pearson", "spearman", "kendall", "kappa"}
    assert found.log_loss == assess(ordered).log_loss


def test_figures_of_three_judgments_worked_by_hand() -> None:
    # Expected answers 1.5, 2, 3; given 1, 3, 3. Squared errors ¼, 1, 0. Pearson: deviations −⅔ −⅙ ⅚ and −4/3 ⅔ ⅔:
    # (8/9 − 1/9 + 5/9) / √((4/9 + 1/36 + 25/36)·(16/9 + 4/9 + 4/9)) = (4/3) / √(7/6 · 8/3).
    # Ranks 1 2 3 and 1 2.5 2.5: Spearman 1.5/√(2·1.5). Pairs: two agree, one tied in the answers: 2/√(3·2).
    # Nearest options 1 (2 is as near), 2, 3 beside 1, 3, 3: E(x−y)² = ⅓; by chance Σ over 9 pairs: 4·4 of (1,3)…:
    # (0+4+4 + 1+1+1 + 4+0+0)/9 = 15/9. Kappa = 1 − ⅓/(15/9) = 0.8.
    proba = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]])
    found = assess(Predictions(proba, np.array([0, 2, 2]), np.arange(3), (1.0, 2.0, 3.0)))
    values = {name: figure.value for name, figure in figures(found).items()}
    values.pop("smece")
    assert values == pytest.approx(
        {
            "rmse": np.sqrt(1.25 / 3),
            "pearson": (4 / 3) / np.sqrt(7 / 6 * 8 / 3),
            "spearman": 1.5 / np.sqrt(3),
            "kendall": 2 / np.sqrt(6),
            "log_loss": (np.log(2) + np.log(4)) / 3,
            "brier": (0.5 + (1 / 16 + 1 / 4 + 9 / 16)) / 3,
            "kappa": 0.8,
        },
        abs=1e-12,
    )
    assert (found.n, found.texts) == (3, 3)


@given(st.integers(5, 40), st.integers(0, 1000), st.sampled_from([(0.0, 1.0), FOUR, (-1.0, 0.5, 7.0)]))
def test_any_predictions_agree_with_scipy_and_scikit_learn(n: int, seed: int, values: tuple[float, ...]) -> None:
    made = predictions(n, seed, values)
    # Rounded, so that there are ties.
    proba = np.round(made.proba * 5 + 0.5) + 0.5
    tied = Predictions(proba / proba.sum(axis=1, keepdims=True), made.answer, made.text, values)
    found = {name: figure.value for name, figure in figures(assess(tied, smooth=False)).items()}
    labels = np.arange(len(values))
    expected = {
        "rmse": root_mean_squared_error(tied.given, tied.expected),
        "log_loss": log_loss(tied.answer, tied.proba, labels=labels),
        "brier": brier_score_loss(tied.answer, tied.proba, labels=labels, scale_by_half=False),
    }
    if np.ptp(tied.given) > 0 and np.ptp(tied.expected) > 1e-9:
        x, y = np.round(tied.expected, 9), tied.given
        assert pearson_statistic(x, y)(np.ones((1, n)))[0] == pytest.approx(pearsonr(x, y)[0], abs=1e-9)
        assert spearman_statistic(x, y)(np.ones((1, n)))[0] == pytest.approx(spearmanr(x, y)[0], abs=1e-9)
        assert kendall_statistic(x, y)(np.ones((1, n)))[0] == pytest.approx(kendalltau(x, y)[0], abs=1e-9)
        expected["pearson"] = pearsonr(tied.expected, y)[0]
    if len({*tied.nearest.tolist(), *tied.answer.tolist()}) > 1:
        expected["kappa"] = cohen_kappa_score(tied.nearest, tied.answer, labels=labels, weights="quadratic")
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("statistic", "trusted"),
    [
        (pearson_statistic, lambda x, y: pearsonr(x, y)[0]),
        (spearman_statistic, lambda x, y: spearmanr(x, y)[0]),
        (kendall_statistic, lambda x, y: kendalltau(x, y)[0]),
        (kappa_statistic, lambda x, y: cohen_kappa_score(x, y, weights="quadratic", labels=np.arange(9))),
    ],
)
def test_weights_count_as_copies(statistic, trusted) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    x, y = rng.integers(9, size=50), rng.integers(5, size=50)
    weights = np.concatenate(list(resampled(np.arange(50) // 2, 20, rng)))
    copied = [trusted(np.repeat(x, row.astype(int)), np.repeat(y, row.astype(int))) for row in weights]
    assert statistic(x, y)(weights) == pytest.approx(copied, abs=1e-9)


def test_a_resample_without_variation_has_no_correlation() -> None:
    x, y = np.array([1e6, 2e6, 3e6]), np.array([1.0, 2.0, 1.0])
    weights = np.array([[3.0, 0.0, 0.0], [1.0, 0.0, 2.0], [1.0, 1.0, 1.0]])
    for statistic in (pearson_statistic, spearman_statistic, kendall_statistic):
        assert np.isnan(statistic(x, y)(weights)).tolist() == [True, True, False]


def test_rounding_takes_no_correlation_beyond_one() -> None:
    rng = np.random.default_rng(0)
    pairs = [rng.random((2, 3)) for _ in range(200)]
    found = [pearson_statistic(x, sign * x)(np.ones((1, 3)))[0] for x, _ in pairs for sign in (-1.0, 0.3)]
    assert np.abs(found).max() == 1.0
    np.testing.assert_allclose(np.abs(found), 1.0)


def test_a_large_offset_costs_a_correlation_no_digits() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=30), rng.normal(size=30)
    found = pearson_statistic(x + 1e7, y - 1e7)(np.ones((1, 30)))[0]
    assert found == pytest.approx(pearsonr(x, y)[0], abs=1e-7)


def test_resamples_draw_texts_with_all_their_judgments() -> None:
    codes = np.array([0, 0, 1, 2, 2, 2, 3, 4])
    weights = np.concatenate(list(resampled(codes, 500, np.random.default_rng(0))))
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 3] == weights[:, 5]).all()
    assert (weights[:, [0, 2, 3, 6, 7]].sum(axis=1) == 5).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(8), abs=0.12)


def test_the_interval_is_that_of_all_possible_resamples() -> None:
    every = [np.mean(picks) for picks in itertools.product([0.0, 0.0, 0.0, 1.0, 1.0], repeat=5)]
    # Student's t of 4 degrees of freedom is 2.776; times √(5/4) that is 3.104, and Φ(−3.104) = .00096.
    low, high = np.quantile(every, [0.00096, 0.99904])
    values, texts = np.array([0.0, 0.0, 0.0, 1.0, 1.0]), np.array([7, 3, 4, 5, 6])
    found = measured({"mean": Measure(mean_of(values))}, texts, np.random.default_rng(0))
    assert found["mean"] == Figure(0.4, pytest.approx(low), pytest.approx(high), 5, units=5)


def test_of_fewer_than_five_texts_there_is_no_interval_however_many_judgments() -> None:
    values, texts = np.arange(40.0), np.repeat(np.arange(4), 10)
    found = measured({"mean": Measure(mean_of(values))}, texts, np.random.default_rng(0))
    assert found["mean"] == Figure(19.5, None, None, 40, units=4)


def test_the_interval_of_a_mean_has_the_textbook_width() -> None:
    values = np.random.default_rng(3).normal(2, 5, 400)
    found = measured({"mean": Measure(mean_of(values))}, np.arange(400), np.random.default_rng(0), 4000)["mean"]
    assert found.low is not None
    assert found.high is not None
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.05)


@pytest.mark.parametrize("texts", [7, 10, 20])
def test_intervals_hold_a_mean_nineteen_times_of_twenty_on_few_texts_too(texts: int) -> None:
    draw, held = np.random.default_rng(0), []
    for _ in range(400):
        values = draw.normal(size=texts) + draw.normal(size=(2, texts))  # two judgments a text
        found = measured({"mean": Measure(mean_of(values.ravel()))}, np.tile(np.arange(texts), 2), draw, 1000)["mean"]
        held.append(found.low <= 0 <= found.high)  # type: ignore[operator]
    assert 0.92 < np.mean(held) < 0.98


def test_judgments_of_one_text_widen_the_interval() -> None:
    # Four copies of each text are no more than one.
    made = predictions(60)
    copied = np.tile(np.arange(60), 4)
    four = Predictions(made.proba[copied], made.answer[copied], copied, FOUR)
    one = Predictions(made.proba, made.answer, np.arange(60), FOUR)
    alone, together = (assess(p, np.random.default_rng(0), 500, 2).log_loss for p in (one, four))
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))


def test_every_interval_holds_its_value_and_a_repeated_seed_changes_nothing() -> None:
    made = predictions(120, texts=50)
    found = assess(made, np.random.default_rng(5), 300, 10)
    assert found == assess(made, np.random.default_rng(5), 300, 10)
    for name, figure in figures(found).items():
        assert figure.low < figure.value < figure.high or name == "smece", name  # type: ignore[operator]
        assert figure.low <= figure.value <= figure.high, name  # type: ignore[operator]


def test_each_judge_is_measured_by_their_own_judgments() -> None:
    made = predictions(40)
    found = assess_each(made, ["ann", "bob"] * 20)
    assert list(found) == ["ann", "bob"]
    assert found["bob"] == assess(made.where(np.arange(40) % 2 == 1))
    assert found["ann"].n == 20


def test_a_difference_is_measured_on_the_same_resamples() -> None:
    made, other = predictions(80), predictions(80, 1)
    same = difference(made, made, "pearson", np.random.default_rng(0), 100)
    made_texts = len(np.unique(made.text))
    assert same == Figure(0.0, 0.0, 0.0, 80, units=made_texts)
    second = Predictions(other.proba, made.answer, made.text, FOUR)
    found = difference(made, second, "log_loss", np.random.default_rng(0), 500)
    assert found.value == pytest.approx(assess(made).log_loss.value - assess(second).log_loss.value)  # type: ignore[operator]
    assert found.low < found.value < found.high < 0  # type: ignore[operator]
    assert found.units == made_texts


def test_predictions_are_made_of_judgments_in_their_order() -> None:
    given_ = Judgments(np.array([5, 2]), np.zeros(2, np.int64), np.zeros(2, np.int64), np.array([1, 0]), ("ann",))
    made = predictions_beside(np.array([[0.2, 0.8], [0.9, 0.1]]), given_, Scale("q", (0.0, 10.0)))
    assert made.expected == pytest.approx([8, 1])
    assert made.given.tolist() == [10, 0]
    assert made.text.tolist() == [5, 2]
    assert made.nearest.tolist() == [1, 0]


def test_losses_of_single_judgments_worked_by_hand() -> None:
    proba = np.array([[0.2, 0.8], [1.0, 0.0]])
    assert log_losses(proba, np.array([1, 1])) == pytest.approx([-np.log(0.8), np.inf])
    assert briers(proba, np.array([1, 1])) == pytest.approx([0.08, 2])


def test_the_word_calibrated_needs_fifty_labels() -> None:
    assert (Support(0).missing, Support(49).missing, Support(50).missing) == (50, 1, 0)
    assert not Support(49).enough
    assert Support(50).enough
    assert str(Support(49)) == "not yet calibrated: 49 of 50 labels, 1 is missing"
    assert str(Support(50)) == "calibrated on 50 labels"


def test_an_average_over_runs_is_of_the_figures_and_its_interval_of_the_same_resamples() -> None:
    first = predictions(90, texts=40)
    second = Predictions(predictions(90, 1).proba, first.answer, first.text, FOUR)
    found = averaged([first, second], ["pearson", "log_loss"], np.random.default_rng(0), 200)
    one, other = (assess(p, smooth=False) for p in (first, second))
    for name, figure in found.items():
        assert figure.value == pytest.approx((getattr(one, name).value + getattr(other, name).value) / 2)
        assert figure.low < figure.value < figure.high  # type: ignore[operator]
    alone = assess(first, np.random.default_rng(0), 200, smooth=False).pearson
    assert averaged([first, first], ["pearson"], np.random.default_rng(0), 200)["pearson"] == alone


def test_an_average_with_an_undefined_run_is_undefined() -> None:
    first = predictions(9)
    flat = Predictions(np.full((9, 4), 0.25), first.answer, first.text, FOUR)
    assert averaged([first, flat], ["pearson"])["pearson"].undefined == "all predictions are alike"


def test_measuring_without_smece_loads_nothing_heavy() -> None:
    code = (
        "import sys, numpy as np; from pollex.measures.distributions import Predictions, assess;"
        "p = Predictions(np.full((3, 2), 0.5), np.array([0, 1, 1]), np.arange(3), (0.0, 1.0));"
        "assess(p, np.random.default_rng(0), 10, smooth=False);"
        "print(*{'matplotlib', 'torch', 'sklearn', 'scipy', 'krippendorff'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
