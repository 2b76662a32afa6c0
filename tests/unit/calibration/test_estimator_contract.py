"""What every calibrator promises, asked of each file in `models/`."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from linear_stand_in import fitted as fitted_by_hand
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from pollex.calibration.estimator import ConstantLabelsWarning, JudgedEstimator
from pollex.calibration.models import NAMES, model_named, name_of
from pollex.calibration.models.best import Calibrator
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.calibration.storage import packed, unpacked
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats

QUICK: dict[str, dict[str, Any]] = {
    "network": {"h1": 4, "h2": 4, "pretraining": 5, "finetuning": 5, "seeds": 2},
    "best": {"candidates": [["constant", {}], ["ordinal", {"slopes": None}]], "folds": 3},
}
"""Settings under which a test is quick; everything promised holds under any."""

QUESTIONS = Questionnaire(
    (
        Scale("overall", (1.0, 2.0, 3.0, 4.0)),
        Scale("clear", (1.0, 2.0, 3.0, 4.0, 5.0)),
        Scale("length", (0.0, 1.0, 2.0), ordinal=False),
        Scale("kind", (0.0, 1.0), asked=False),
    ),
    main="overall",
)


def world(rows: int = 60, seed: int = 0) -> tuple[Floats, Floats, list[str]]:
    """X, answers to the main question and judges; judges answer what the text deserves, and differ in severity."""
    rng = np.random.default_rng(seed)
    good = rng.normal(size=rows)
    blocks = []
    for scale in QUESTIONS.asked:
        slope = good[:, None] * np.linspace(-1, 1, len(scale.values)) + rng.normal(0, 0.5, (rows, len(scale.values)))
        p = np.exp(slope)
        blocks.append(0.95 * p / p.sum(axis=1, keepdims=True))
    judges = [("ann", "bob", "cy")[place % 3] for place in range(rows)]
    severity = np.array([{"ann": -1.0, "bob": 0.0, "cy": 1.0}[judge] for judge in judges])
    y = np.clip(np.round(2.5 + good + severity + rng.normal(0, 0.3, rows)), 1, 4)
    return np.concatenate(blocks, axis=1), y, judges


def made(name: str) -> JudgedEstimator:
    return model_named(name)(**QUICK.get(name, {}))


@pytest.fixture(scope="module", params=NAMES)
def fitted(request: pytest.FixtureRequest) -> JudgedEstimator:
    X, y, judges = world()
    return made(request.param).fit(X, y, judges, QUESTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_one_that_was_not_fitted_says_so(name: str) -> None:
    with pytest.raises(NotFittedError):
        made(name).predict_proba(world()[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("place", "value"), [(0, -0.1), (1, 1.5), (2, np.nan), (3, np.inf)])
def test_probabilities_that_are_none_are_refused_with_their_row(name: str, place: int, value: float) -> None:
    X, y, judges = world()
    X[7, place] = value
    with pytest.raises(WrongUse, match="row 7"):
        made(name).fit(X, y, judges, QUESTIONS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("X", [[["much"] * 12] * 60, [[0.1] * 12] * 59 + [[0.1]]])
def test_words_and_rows_of_different_lengths_are_no_probabilities(name: str, X: list[list[Any]]) -> None:
    with pytest.raises(WrongUse, match="X is no table of numbers"):
        made(name).fit(X, world()[1], None, QUESTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(name: str) -> None:
    X, y, judges = world()
    model = made(name)
    with pytest.raises(WrongUse):
        model.fit(-X, y, judges, QUESTIONS)
    with pytest.raises(NotFittedError):
        model.predict(X)
    before = model.fit(X, y, judges, QUESTIONS).predict_proba(X, judges)
    with pytest.raises(WrongUse):
        model.fit(X, y, judges, Questionnaire(QUESTIONS.scales, main="kind"))
    np.testing.assert_array_equal(model.predict_proba(X, judges), before)


@pytest.mark.parametrize(
    ("name", "setting"),
    [("network", "recipe"), ("network", "heads"), ("network", "personal"), ("network", "search"), ("best", "rule")],
)  # fmt: skip
def test_a_setting_that_is_no_word_it_knows_is_refused_and_not_passed_over(name: str, setting: str) -> None:
    X, y, judges = world()
    with pytest.raises(WrongUse, match=f"no {setting}='autors' → use one of '"):
        made(name).set_params(**{setting: "autors"}).fit(X, y, judges, QUESTIONS)


@pytest.mark.parametrize(
    ("name", "settings", "remedy"),
    [("network", {"seeds": 0}, "1 or more"), ("network", {"h2": 0}, "1 or more"),
     ("network", {"seed": -1}, "0 or more"), ("network", {"dropout": 1.0}, "less than 1"),
     ("network", {"rate": float("nan")}, "0 or more"),
     ("ordinal", {"intercepts": -1.0}, "0 or more"), ("ridge", {"shared": float("nan")}, "0 or more"),
     ("judge_mean", {"strength": -0.5}, "0 or more")],
)  # fmt: skip
def test_numbers_that_make_no_sense_are_refused_before_learning(
    name: str, settings: dict[str, float], remedy: str
) -> None:
    X, y, judges = world()
    ((setting, number),) = settings.items()
    for same in (number, np.asarray(number)[()]):  # of Python, and of NumPy
        with pytest.raises(WrongUse, match=f"{setting}=.* → give {remedy}"):
            made(name).set_params(**{setting: same}).fit(X, y, judges, QUESTIONS)


def test_questions_in_the_place_of_judges_are_told() -> None:
    X, y, judges = world()
    with pytest.raises(WrongUse, match=r"questions are a list, no Questionnaire → .*X, y, judges, questions"):
        made("constant").fit(X, y, QUESTIONS, judges)  # type: ignore[arg-type]


@pytest.mark.parametrize("X", [None, 0.5, [0.5, 0.5], np.full((2, 2, 2), 0.5)])
def test_without_a_questionnaire_x_has_one_column_an_option(X: Any) -> None:
    with pytest.raises(WrongUse, match=r"X has shape \("):
        made("constant").fit(X, [0, 1])


def test_a_rows_group_that_is_missing_is_refused() -> None:
    X, y, judges = world()
    with pytest.raises(WrongUse, match="row 1: rows without a group: 2 of "):
        made("best").fit(X, y, judges, QUESTIONS, groups=["a", None, float("nan"), *"b" * 57])


@pytest.mark.parametrize("groups", [[("ann", 1)] * 60, np.zeros((60, 2)), iter("ab" * 30), 5])
def test_groups_that_are_no_names_one_a_row_are_refused(groups: Any) -> None:
    X, y, judges = world()
    with pytest.raises(WrongUse, match=r"groups of shape \("):
        made("best").fit(X, y, judges, QUESTIONS, groups=groups)


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_that_the_question_does_not_allow_is_refused(name: str) -> None:
    X, y, judges = world()
    y[3] = 9
    with pytest.raises(WrongUse, match="row 3"):
        made(name).fit(X, y, judges, QUESTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_judgments_of_other_questions_only_are_refused(name: str) -> None:
    with pytest.raises(WrongUse, match="main question"):
        made(name).fit(world()[0], [(0, "clear", "ann", 3)], None, QUESTIONS)


def test_rows_of_another_width_are_refused(fitted: JudgedEstimator) -> None:
    with pytest.raises(WrongUse, match="shape"):
        fitted.predict_proba(world()[0][:, :-1])


def test_as_many_judges_as_rows_are_asked_for(fitted: JudgedEstimator) -> None:
    with pytest.raises(WrongUse, match="2 judges for 60 rows"):
        fitted.predict_proba(world()[0], ["ann", "bob"])


def test_one_name_is_no_set_of_judges(fitted: JudgedEstimator) -> None:
    with pytest.raises(WrongUse, match="one name, 'ann', for a set"):
        fitted.predict_for(world()[0], "ann")
    with pytest.raises(WrongUse, match="one name, 'ann', for 60 rows"):
        fitted.predict(world()[0], "ann")


def test_a_question_that_there_is_not_is_refused(fitted: JudgedEstimator) -> None:
    with pytest.raises(WrongUse, match="shoe size"):
        fitted.predict_proba(world()[0], question="shoe size")


def test_a_question_without_judgments_is_refused_unless_the_block_is_the_answer(fitted: JudgedEstimator) -> None:
    with pytest.raises(WrongUse, match="kind"):
        fitted.predict_proba(world()[0], question="kind")


@pytest.mark.parametrize("name", NAMES)
def test_fit_returns_the_estimator_and_changes_no_setting(name: str) -> None:
    X, y, judges = world()
    model = made(name)
    before = model.get_params(deep=False)
    assert model.fit(X, y, judges, QUESTIONS) is model
    assert model.get_params(deep=False) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_clone_has_the_settings_and_nothing_learned(name: str) -> None:
    X, y, judges = world()
    copy = clone(made(name).fit(X, y, judges, QUESTIONS))
    assert copy.get_params(deep=False) == made(name).get_params(deep=False)
    with pytest.raises(NotFittedError):
        copy.predict(X)


def test_a_model_is_found_under_its_file_and_has_a_title(fitted: JudgedEstimator) -> None:
    assert model_named(name_of(fitted)) is type(fitted)
    assert fitted.title


def test_probabilities_sum_to_1_for_known_and_unknown_judges(fitted: JudgedEstimator) -> None:
    X, _, judges = world(seed=1)
    for who in (judges, ["nobody of these"] * len(X), None):
        proba = fitted.predict_proba(X, who)
        assert proba.shape == (60, 4)
        assert (proba >= 0).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)


def test_the_prediction_is_the_expected_value(fitted: JudgedEstimator) -> None:
    X, _, judges = world(seed=1)
    np.testing.assert_allclose(fitted.predict(X, judges), fitted.predict_proba(X, judges) @ [1, 2, 3, 4], atol=1e-12)


@pytest.mark.parametrize("name", ["constant", "judge_mean", "network", "best"])
def test_an_answer_without_order_is_predicted_by_the_most_probable_one_and_has_no_mean_over_judges(name: str) -> None:
    X, y, judges = world()
    loose = Questionnaire((Scale("overall", (1.0, 2.0, 3.0, 4.0), ordinal=False), *QUESTIONS.scales[1:]), "overall")
    model = made(name).fit(X, y, judges, loose)
    likeliest = model.predict_proba(X, judges).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X, judges), np.array([1, 2, 3, 4])[likeliest])
    np.testing.assert_array_equal(model.predict_each(X)[:, 0], model.predict(X, ["ann"] * 60))
    with pytest.raises(WrongUse, match="no order"):
        model.predict_for(X)


def test_the_answers_of_many_judges_take_no_copy_of_x_for_each() -> None:
    X, y, _ = world(400)
    model = made("judge_mean").fit(X, y, range(400), QUESTIONS)
    tracemalloc.start()
    try:
        each = model.predict_each(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert each.shape == (400, 400)
    np.testing.assert_array_equal(each[:, model.judges_.index("7")], model.predict(X, ["7"] * 400))
    assert peak < 400 * X.nbytes / 2


def test_strangers_get_what_nobody_gets(fitted: JudgedEstimator) -> None:
    X, _, _ = world(seed=1)
    np.testing.assert_array_equal(fitted.predict_proba(X, ["zoe"] * len(X)), fitted.predict_proba(X))


def test_a_row_is_predicted_alike_alone_and_among_others(fitted: JudgedEstimator) -> None:
    X, _, judges = world(seed=1)
    X[::3, 4:9] = np.nan
    together = fitted.predict_proba(X, judges)
    alone = np.concatenate([fitted.predict_proba(X[[row]], [judges[row]]) for row in range(0, 60, 7)])
    np.testing.assert_allclose(together[::7], alone, atol=1e-6)


@pytest.mark.parametrize("columns", [slice(0, 4), slice(4, 9), slice(9, 12), slice(4, 12), slice(0, 12)])
def test_any_subset_of_questions_may_be_given(fitted: JudgedEstimator, columns: slice) -> None:
    X, _, judges = world(seed=1)
    X[:, columns] = np.nan
    proba = fitted.predict_proba(X, judges)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)


def test_a_question_may_not_apply(fitted: JudgedEstimator) -> None:
    X, _, judges = world(seed=1)
    X[:30, 0:9] = 0
    assert np.isfinite(fitted.predict_proba(X, judges)).all()


@pytest.mark.parametrize("name", NAMES)
def test_training_rows_may_have_gaps_and_questions_that_do_not_apply(name: str) -> None:
    X, y, judges = world()
    X[::4, 4:9] = np.nan
    X[1::5, 9:12] = 0
    X[5] = np.nan
    y[9] = np.nan
    proba = made(name).fit(X, y, judges, QUESTIONS).predict_proba(X, judges)
    assert np.isfinite(proba).all()


@pytest.mark.parametrize("name", NAMES)
def test_labels_without_judges_are_enough(name: str) -> None:
    X, y, _ = world()
    model = made(name).fit(X, y, questions=QUESTIONS)
    assert model.judges_ == ()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_judge_with_one_label_and_an_answer_that_never_comes_are_no_obstacle(name: str) -> None:
    X, y, judges = world()
    y = np.minimum(y, 3)
    model = made(name).fit(X, y, ["dee", *judges[1:]], QUESTIONS)
    assert np.isfinite(model.predict_proba(X, ["dee"] * 60)).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_question_that_was_always_answered_alike_is_predicted_so(name: str) -> None:
    X, _, judges = world()
    with pytest.warns(ConstantLabelsWarning, match="all 60 judgments of the main question 'overall' are 3") as warned:
        model = made(name).fit(X, np.full(60, 3.0), judges, QUESTIONS)
    assert len(warned) == 1
    proba = model.predict_proba(X, judges)
    assert np.isfinite(proba).all()
    if model.uses_labels:
        assert proba.mean(axis=0).argmax() == 2


@pytest.mark.parametrize("name", NAMES)
def test_what_is_given_stays_as_it_is(name: str) -> None:
    X, y, judges = world()
    X[::4, 4:9] = np.nan
    given = X.copy(), y.copy(), list(judges)
    model = made(name).fit(X, y, judges, QUESTIONS)
    model.predict_proba(X, judges)
    np.testing.assert_array_equal(X, given[0])
    np.testing.assert_array_equal(y, given[1])
    assert judges == given[2]


@pytest.mark.filterwarnings("error")
def test_answers_that_are_alike_in_one_fold_only_are_not_warned_of() -> None:
    X, y, _ = world(4)
    y[:] = [1, 2, 2, 2]
    model = Calibrator([("constant", {})], folds=4).fit(X, y, questions=QUESTIONS)
    assert model.choice_.trials[0].n == 4


def test_an_estimator_without_its_own_learning_can_not_be_made() -> None:
    with pytest.raises(TypeError, match=r"_distribution.*_learn"):
        JudgedEstimator()  # type: ignore[abstract]


def test_an_estimator_without_a_state_can_not_be_kept() -> None:
    model = fitted_by_hand({"main": [0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]})
    with pytest.raises(WrongUse, match="Linear can't be kept"):
        packed(model)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_input_gives_the_same_bits(name: str) -> None:
    X, y, judges = world()
    once, again = (made(name).fit(X, y, judges, QUESTIONS).predict_proba(X, judges) for _ in range(2))
    np.testing.assert_array_equal(once, again)


def test_a_state_makes_the_same_estimator(fitted: JudgedEstimator) -> None:
    X, _, judges = world(seed=1)
    again = type(fitted).from_state(fitted.get_params(deep=False), QUESTIONS, fitted.state())
    np.testing.assert_array_equal(again.predict_proba(X, judges), fitted.predict_proba(X, judges))
    assert again.judges_ == fitted.judges_


def test_one_that_was_kept_predicts_the_same(fitted: JudgedEstimator) -> None:
    X, _, judges = world(seed=1)
    pack = packed(fitted)
    again = unpacked(pack.facts, pack.arrays)
    np.testing.assert_array_equal(again.predict_proba(X, judges), fitted.predict_proba(X, judges))
