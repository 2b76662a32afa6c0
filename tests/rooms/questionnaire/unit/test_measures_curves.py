import numpy as np
import pytest

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.folds import assign_groups_to_folds, take_rows_with_judgments
from pollex.calibration.judgments import Judgments, pair_predictions_with_judgments
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import assess_predictions
from pollex.rooms.questionnaire.calibration.crossfit import (
    LearningCurvePoint,
    compute_learning_curve,
    predict_out_of_fold,
)

QUESTIONS = Questionnaire((Scale("q", (1.0, 2.0, 3.0)),), "q")


class Shares(JudgedEstimator):
    """The answers' shares in training, one more each; tells `COUNTS` how many labels it saw."""

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        counts = np.bincount(y.answer, minlength=3) + 1.0
        self.shares_ = counts / counts.sum()
        COUNTS.append(len(y))

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        return np.tile(self.shares_, (len(X), 1))


COUNTS: list[int] = []


def data(n: int = 60) -> tuple[Floats, Judgments]:
    rng = np.random.default_rng(0)
    answer = rng.integers(3, size=n)
    nobody = np.zeros(n, np.int64)
    return rng.dirichlet(np.ones(3), n), Judgments(np.arange(n), nobody, nobody, answer, ("ann",))


def curve(
    y: Judgments, shares: list[float], groups: Ints | None = None, repeats: int = 1
) -> list[LearningCurvePoint]:
    """Of five folds of the rows."""
    folds = assign_groups_to_folds(
        np.arange(60) if groups is None else groups, 5, np.random.default_rng(1)
    )
    rng = np.random.default_rng(0)
    return compute_learning_curve(
        Shares(), data()[0], y, QUESTIONS, folds, rng, shares, repeats=repeats, groups=groups
    )


def test_a_share_that_is_none_is_refused_and_one_too_small_to_fit_is_counted_as_failed() -> None:
    for share in (0.0, 1.1, -0.5):
        with pytest.raises(WrongUse, match="shares"):
            curve(data()[1], [share])
    (point,) = curve(data()[1], [0.01], repeats=3)
    assert (point.failed, point.repeats, point.labels) == (3, (), 0)
    assert point.mean("log_loss") is point.deviation("log_loss") is None


def test_all_of_the_training_texts_is_cross_fitting() -> None:
    X, y = data()
    (point,) = curve(y, [1.0])
    folds = assign_groups_to_folds(np.arange(60), 5, np.random.default_rng(1))
    held_out = predict_out_of_fold(Shares(), X, y, QUESTIONS, folds)
    expected = assess_predictions(
        pair_predictions_with_judgments(held_out, y, QUESTIONS.scale()), smooth=False
    )
    assert (point.repeats, point.labels) == ((expected,), 48)
    assert expected.smece.undefined == "not asked for"
    assert point.mean("log_loss") == pytest.approx(expected.log_loss.value)


def test_a_growing_share_sees_as_many_labels_as_it_says_in_whole_groups() -> None:
    COUNTS.clear()
    points = curve(data()[1], [0.25, 0.5, 1.0], np.arange(60) // 3, repeats=2)
    # 16 groups of 3 are left by each fold.
    assert [point.labels for point in points] == [12, 24, 48]
    assert COUNTS == [12] * 10 + [24] * 10 + [48] * 5
    assert [len(point.repeats) for point in points] == [2, 2, 1]
    values = [repeat.log_loss.value for repeat in points[0].repeats]
    assert points[0].deviation("log_loss") == pytest.approx(np.std(values, ddof=1))  # type: ignore[arg-type]


def test_what_a_judge_says_of_a_text_again_is_no_further_label_of_the_curve() -> None:
    (point,) = curve(data()[1].where(np.repeat(np.arange(60), 3)), [1.0])
    assert (point.labels, point.repeats[0].log_loss.n) == (48, 180)


def test_a_model_that_is_fitted_without_rows_does_not_see_their_texts() -> None:
    X, y = data(6)
    kept, own = take_rows_with_judgments(X, y, np.array([4, 1]))
    assert (kept == X[[4, 1]]).all()
    assert sorted(zip(own.row.tolist(), own.answer.tolist(), strict=True)) == [
        (0, y.answer[4]),
        (1, y.answer[1]),
    ]
