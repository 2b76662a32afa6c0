"""What a regression sees: columns that vary, by the scale, and what is expected where an answer is missing."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from pollex.calibration.features import MAX_STANDARD_SCORE, FittedGaussian, fit_model_inputs
from pollex.calibration.models import get_model_class
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Floats

QUESTIONS = Questionnaire(
    (Scale("overall", (1.0, 2.0, 3.0)), Scale("clear", (0.0, 100.0))), "overall"
)
YES_NO = Questionnaire((Scale("clear", (0.0, 1.0)), Scale("kind", (0.0, 1.0))), "kind")


def rounded(digits: int) -> Floats:
    """Probabilities as a table has them."""
    rng = np.random.default_rng(0)
    first = rng.dirichlet([1, 1, 1], 60)
    second = rng.dirichlet([1, 1], 60)
    return np.round(0.95 * np.concatenate([first, second], axis=1), digits)


def scored(upper: Floats) -> Floats:
    """Rows whose score on `clear` is given as the probability of 0."""
    return np.concatenate([rounded(16)[:, :3], upper[:, None], 1 - upper[:, None]], axis=1)


def test_masses_that_differ_by_more_than_rounding_and_scores_by_over_a_thousandth_of_their_scale_are_inputs() -> (
    None
):
    for digits in (16, 4):
        assert fit_model_inputs(rounded(digits), QUESTIONS).names() == ("overall", "clear")
    X = rounded(16)
    X[::2] *= 0.9
    assert fit_model_inputs(X, QUESTIONS).names() == ("overall", "clear", "overall", "clear")
    rows = np.random.default_rng(1).uniform(size=60)
    # 100 · 1e-3 · 0.29 is under 0.1
    assert fit_model_inputs(scored(0.5 + 1e-3 * rows), QUESTIONS).names() == ("overall",)
    assert fit_model_inputs(scored(0.5 + 1e-2 * rows), QUESTIONS).names() == ("overall", "clear")


def test_a_text_is_no_further_from_the_mean_than_the_limit() -> None:
    inputs = fit_model_inputs(
        scored(np.random.default_rng(2).uniform(0.495, 0.505, size=60)), QUESTIONS
    )
    far = np.array([[0.2, 0.3, 0.4, 0.0, 1.0], [0.2, 0.3, 0.4, 1.0, 0.0]])
    assert inputs.of(far).rows[:, 1].tolist() == [MAX_STANDARD_SCORE, -MAX_STANDARD_SCORE]


@pytest.mark.parametrize("name", ["ordinal", "ridge"])
def test_predictions_of_rounded_tables_don_t_hang_on_the_mass(name: str) -> None:
    X = rounded(5)
    y = np.array([1.0, 2.0, 3.0])[np.random.default_rng(3).integers(3, size=60)]
    model = get_model_class(name)().fit(X, y, questions=QUESTIONS)
    np.testing.assert_allclose(model.predict(X * 0.9), model.predict(X), atol=1e-9)


def test_what_does_not_apply_is_no_gap_but_has_an_indicator() -> None:
    X = np.array(
        [[0.2, 0.8, 0.5, 0.5], [0.7, 0.3, 0.0, 0.0], [0.4, 0.6, 0.1, 0.9], [0.1, 0.9, 0.9, 0.1]]
    )
    inputs = fit_model_inputs(X, YES_NO)
    assert inputs.names() == ("clear", "kind", "kind")
    full = inputs.of(X)
    assert full.rows[1, 1] == 0
    assert full.rows[1, 2] > 0 > full.rows[0, 2]
    assert not full.unsure.any()


def test_a_question_without_order_enters_by_its_options() -> None:
    questions = Questionnaire(
        (Scale("kind", (0.0, 1.0, 2.0), ordinal=False), Scale("thumb", (0.0, 1.0))), "thumb"
    )
    X = np.array([[0.2, 0.3, 0.5, 0.4, 0.6], [0.5, 0.4, 0.1, 0.2, 0.8]])
    np.testing.assert_allclose(fit_model_inputs(X, questions).mean, [0.35, 0.35, 0.3, 0.7])


def test_gaps_are_filled_with_the_conditional_mean_worked_by_hand() -> None:
    found = FittedGaussian(np.array([1.0, 2.0]), np.array([[4.0, 1.0], [1.0, 2.0]]))
    full = found.filled(np.array([[3.0, np.nan], [np.nan, np.nan], [5.0, 6.0]]))
    # 2 + 1/4·(3 − 1), variance 2 − 1/4
    np.testing.assert_allclose(full.rows, [[3, 2.5], [1, 2], [5, 6]])
    np.testing.assert_allclose(
        full.variance(np.array([[7.0, 2.0], [1.0, 1.0], [1.0, 1.0]])), [4 * 1.75, 8, 0]
    )


def test_no_other_gaussian_makes_rows_with_gaps_likelier() -> None:
    rng = np.random.default_rng(4)
    rows = rng.multivariate_normal([0, 1], [[1, 0.7], [0.7, 1]], 200)
    rows[:80, 1] = np.nan

    def likelihood(mean: Floats, covariance: Floats) -> float:
        both = multivariate_normal(mean, covariance).logpdf(rows[80:]).sum()
        return float(
            both + multivariate_normal(mean[0], covariance[0, 0]).logpdf(rows[:80, 0]).sum()
        )

    found = FittedGaussian.learned(rows, shrinkage=0)
    best = likelihood(found.mean, found.covariance)
    for step in (-0.02, 0.02):
        for place in range(2):
            assert likelihood(found.mean + step * np.eye(2)[place], found.covariance) < best
        assert likelihood(found.mean, found.covariance + step * (1 - np.eye(2))) < best


def test_rows_are_filled_among_others_as_alone_and_share_a_pattern_exactly_where_their_gaps_are_the_same() -> (
    None
):
    width = 19
    rng = np.random.default_rng(1)
    drawn = rng.normal(size=(width, width))
    found = FittedGaussian(np.arange(width) / 10.0, drawn @ drawn.T + np.eye(width))
    gaps = rng.uniform(size=(20, width)) < 0.3
    # some rows have none, some differ in the last column alone, and every pattern comes twice
    gaps[:3] = False
    gaps[1, -1] = gaps[4, -1] = True
    gaps[5] = gaps[4]
    gaps[5, -1] = False
    gaps = np.concatenate([gaps, gaps[::-1]])
    rows = np.where(gaps, np.nan, rng.normal(size=gaps.shape))
    together = found.filled(rows)
    assert not np.isnan(together.rows).any()
    np.testing.assert_allclose(
        together.rows, np.concatenate([found.filled(row[None]).rows for row in rows]), rtol=1e-9
    )
    np.testing.assert_array_equal(
        together.pattern[:, None] == together.pattern, (gaps[:, None] == gaps).all(axis=2)
    )


@pytest.mark.parametrize("shape", [(3, 0), (0, 3)])
def test_no_rows_and_no_columns_have_nothing_to_fill(shape: tuple[int, int]) -> None:
    filled = FittedGaussian(np.zeros(shape[1]), np.eye(shape[1])).filled(np.zeros(shape))
    assert (filled.rows.shape, filled.pattern.shape) == (shape, shape[:1])
