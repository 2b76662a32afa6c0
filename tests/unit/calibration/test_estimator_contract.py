"""What every calibrator promises, asked of each file in `models/`."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from pollex.calibration.estimator import ConstantLabelsWarning, JudgedEstimator
from pollex.calibration.models import get_model_class, get_model_name, list_model_names
from pollex.calibration.models.constant import Constant
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.calibration.storage import deserialize_calibrator, serialize_calibrator
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats

QUICK: dict[str, dict[str, Any]] = {
    "network": {"h1": 4, "h2": 4, "pretraining": 5, "finetuning": 5, "seeds": 2},
    "best": {"candidates": [["constant", {}], ["ordinal", {"slopes": None}]], "folds": 3},
}
"""Settings under which a test is quick; everything promised holds under any."""

OTHERS = (
    Scale("clear", (1.0, 2.0, 3.0, 4.0, 5.0)),
    Scale("length", (0.0, 1.0, 2.0), ordinal=False),
    Scale("kind", (0.0, 1.0), asked=False),
)
QUESTIONS = Questionnaire((Scale("overall", (1.0, 2.0, 3.0, 4.0)), *OTHERS), main="overall")

every_model = pytest.mark.parametrize("name", list_model_names())


def world(rows: int = 60, seed: int = 0) -> tuple[Floats, Floats, list[str]]:
    """X, answers to the main question and judges; judges answer what the text deserves, and differ in severity."""
    rng = np.random.default_rng(seed)
    good = rng.normal(size=rows)
    blocks = []
    for scale in QUESTIONS.asked:
        slope = good[:, None] * np.linspace(-1, 1, len(scale.values)) + rng.normal(
            0, 0.5, (rows, len(scale.values))
        )
        p = np.exp(slope)
        blocks.append(0.95 * p / p.sum(axis=1, keepdims=True))
    judges = [("ann", "bob", "cy")[place % 3] for place in range(rows)]
    y = np.clip(np.round(2.5 + good + np.arange(rows) % 3 - 1 + rng.normal(0, 0.3, rows)), 1, 4)
    return np.concatenate(blocks, axis=1), y, judges


def made(name: str) -> JudgedEstimator:
    return get_model_class(name)(**QUICK.get(name, {}))


@pytest.fixture(scope="module", params=list_model_names())
def fitted(request: pytest.FixtureRequest) -> JudgedEstimator:
    X, y, judges = world()
    return made(request.param).fit(X, y, judges, QUESTIONS)


@every_model
def test_what_is_no_input_is_refused_and_leaves_the_estimator_as_it_was(name: str) -> None:
    X, y, judges = world()
    model = made(name)
    for place, odd in enumerate((-0.1, 1.5, np.nan, np.inf)):
        bad = X.copy()
        bad[7, place] = odd
        with pytest.raises(WrongUse, match="row 7"):
            model.fit(bad, y, judges, QUESTIONS)
    for words in ([["much"] * 12] * 60, [[0.1] * 12] * 59 + [[0.1]]):
        with pytest.raises(WrongUse, match="X is no table of numbers"):
            model.fit(words, y, None, QUESTIONS)
    with pytest.raises(WrongUse, match="row 3"):
        model.fit(X, np.where(np.arange(60) == 3, 9, y), judges, QUESTIONS)
    with pytest.raises(WrongUse, match="main question"):
        model.fit(X, [(0, "clear", "ann", 3)], None, QUESTIONS)
    with pytest.raises(NotFittedError):
        model.predict(X)
    before = model.fit(X, y, judges, QUESTIONS).predict_proba(X, judges)
    with pytest.raises(WrongUse):
        model.fit(X, y, judges, Questionnaire(QUESTIONS.scales, main="kind"))
    np.testing.assert_array_equal(model.predict_proba(X, judges), before)


@pytest.mark.parametrize(
    ("name", "setting", "value", "message"),
    [
        *(
            ("network", word, "autors", "use one of '")
            for word in ("recipe", "heads", "personal", "search")
        ),
        ("best", "rule", "autors", "use one of '"),
        ("network", "seeds", 0, "give 1 or more"),
        ("network", "h2", 0, "give 1 or more"),
        ("network", "seed", -1, "give 0 or more"),
        ("network", "dropout", 1.0, "give less than 1"),
        ("network", "rate", float("nan"), "give 0 or more"),
        ("ordinal", "intercepts", -1.0, "give 0 or more"),
        ("ridge", "shared", float("nan"), "give 0 or more"),
        ("judge_mean", "strength", -0.5, "give 0 or more"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_learning(
    name: str, setting: str, value: Any, message: str
) -> None:
    X, y, judges = world()
    for same in (value, np.asarray(value)[()]):  # of Python, and of NumPy
        with pytest.raises(WrongUse, match=f"{setting}=.* → {message}"):
            made(name).set_params(**{setting: same}).fit(X, y, judges, QUESTIONS)


def test_questions_x_and_groups_that_are_none_are_refused() -> None:
    X, y, judges = world()
    with pytest.raises(
        WrongUse, match=r"questions are a list, no Questionnaire → .*X, y, judges, questions"
    ):
        made("constant").fit(X, y, QUESTIONS, judges)  # type: ignore[arg-type]
    for given in (None, 0.5, [0.5, 0.5], np.full((2, 2, 2), 0.5)):
        with pytest.raises(WrongUse, match=r"X has shape \("):
            made("constant").fit(given, [0, 1])
    odd: list[tuple[Any, str]] = [
        (["a", None, float("nan"), *"b" * 57], "row 1: rows without a group: 2 of "),
        (["a", "b", "c"], "3 groups for 60 rows"),
        *(
            (groups, r"groups of shape \(")
            for groups in ([("ann", 1)] * 60, np.zeros((60, 2)), iter("ab" * 30), 5)
        ),
    ]
    for groups, message in odd:
        with pytest.raises(WrongUse, match=message):
            made("best").fit(X, y, judges, QUESTIONS, groups=groups)


def test_predictions_that_make_no_sense_are_refused(fitted: JudgedEstimator) -> None:
    X = world()[0]
    with pytest.raises(WrongUse, match="shape"):
        fitted.predict_proba(X[:, :-1])
    with pytest.raises(WrongUse, match="2 judges for 60 rows"):
        fitted.predict_proba(X, ["ann", "bob"])
    with pytest.raises(WrongUse, match="one name, 'ann', for a set"):
        fitted.predict_for(X, "ann")
    with pytest.raises(WrongUse, match="one name, 'ann', for 60 rows"):
        fitted.predict(X, "ann")
    for question in ("shoe size", "kind"):  # there is none, and there are no judgments of it
        with pytest.raises(WrongUse, match=question):
            fitted.predict_proba(X, question=question)


@every_model
def test_fit_returns_the_estimator_learns_the_same_bits_again_and_changes_nothing_else(
    name: str,
) -> None:
    X, y, judges = world()
    X[::4, 4:9] = np.nan
    given = X.copy(), y.copy(), list(judges)
    model = made(name)
    before = model.get_params(deep=False)
    assert model.fit(X, y, judges, QUESTIONS) is model
    proba = model.predict_proba(X, judges)
    np.testing.assert_array_equal(X, given[0])
    np.testing.assert_array_equal(y, given[1])
    assert (judges, model.get_params(deep=False)) == (given[2], before)
    copy = clone(model)
    assert copy.get_params(deep=False) == before
    with pytest.raises(NotFittedError):
        copy.predict_proba(X)
    np.testing.assert_array_equal(copy.fit(X, y, judges, QUESTIONS).predict_proba(X, judges), proba)


def test_probabilities_sum_to_1_whoever_is_asked_and_strangers_get_what_nobody_gets(
    fitted: JudgedEstimator,
) -> None:
    X, _, judges = world(seed=1)
    nobody = fitted.predict_proba(X)
    np.testing.assert_array_equal(fitted.predict_proba(X, ["zoe"] * len(X)), nobody)
    for proba in (fitted.predict_proba(X, judges), nobody):
        assert proba.shape == (60, 4)
        assert (proba >= 0).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(fitted.predict(X), nobody @ [1, 2, 3, 4], atol=1e-12)


@pytest.mark.parametrize("name", ["constant", "judge_mean", "network", "best"])
def test_an_answer_without_order_is_predicted_by_the_most_probable_one_and_has_no_mean_over_judges(
    name: str,
) -> None:
    X, y, judges = world()
    loose = Questionnaire(
        (Scale("overall", (1.0, 2.0, 3.0, 4.0), ordinal=False), *OTHERS), "overall"
    )
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
    np.testing.assert_array_equal(each[:, model.judges_.index("7")], model.predict(X, ["7"] * 400))
    assert peak < 400 * X.nbytes / 2


def test_a_row_is_predicted_alike_alone_and_among_others_whichever_questions_were_answered(
    fitted: JudgedEstimator,
) -> None:
    X, _, judges = world(seed=1)
    gaps = [slice(0, 4), slice(4, 9), slice(9, 12), slice(4, 12), slice(0, 12)]
    for start, columns in enumerate(gaps):
        X[start::7, columns] = np.nan
    X[5::7, 0:9] = 0  # doesn't apply
    together = fitted.predict_proba(X, judges)
    assert np.isfinite(together).all()
    np.testing.assert_allclose(together.sum(axis=1), 1, atol=1e-9)
    alone = np.concatenate([fitted.predict_proba(X[[row]], [judges[row]]) for row in range(10)])
    np.testing.assert_allclose(together[:10], alone, atol=1e-6)


@every_model
def test_gaps_missing_answers_rare_judges_and_answers_that_never_come_are_no_obstacle(
    name: str,
) -> None:
    X, y, judges = world()
    X[::4, 4:9] = np.nan
    X[1::5, 9:12] = 0
    X[5] = np.nan
    y = np.minimum(y, 3)
    y[9] = np.nan
    model = made(name).fit(X, y, ["dee", *judges[1:]], QUESTIONS)
    assert np.isfinite(model.predict_proba(X, ["dee"] * 60)).all()


@every_model
def test_labels_that_are_all_alike_and_without_judges_are_enough(name: str) -> None:
    X = world()[0]
    with pytest.warns(
        ConstantLabelsWarning, match="all 60 judgments of the main question 'overall' are 3"
    ) as warned:
        model = made(name).fit(X, np.full(60, 3.0), questions=QUESTIONS)
    assert (len(warned), model.judges_) == (1, ())
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    if model.uses_labels:
        assert proba.mean(axis=0).argmax() == 2


class Stateless(Constant):
    _state = JudgedEstimator._state


def test_an_estimator_without_its_own_learning_can_not_be_made_and_one_without_a_state_can_not_be_kept() -> (
    None
):
    with pytest.raises(TypeError, match=r"_distribution.*_learn"):
        JudgedEstimator()  # type: ignore[abstract]
    X, y, judges = world()
    with pytest.raises(WrongUse, match="Stateless can't be kept"):
        serialize_calibrator(Stateless().fit(X, y, judges, QUESTIONS))


def test_one_that_was_kept_is_found_under_its_file_has_a_title_and_predicts_the_same(
    fitted: JudgedEstimator,
) -> None:
    assert get_model_class(get_model_name(fitted)) is type(fitted)
    assert fitted.title
    X, _, judges = world(seed=1)
    pack = serialize_calibrator(fitted)
    again = deserialize_calibrator(pack.facts, pack.arrays)
    np.testing.assert_array_equal(again.predict_proba(X, judges), fitted.predict_proba(X, judges))
    assert again.judges_ == fitted.judges_


CLEAR = Scale("clear", (1.0, 2.0))


@pytest.mark.parametrize(
    ("values", "ordinal", "message"),
    [
        ((1.0,), True, "has 1 options"),
        ((2.0, 1.0), True, "don't ascend"),
        ((1.0, float("nan")), True, "can't have the value nan"),
        ((-1e300, 1.0), True, r"can't have the value -1e\+300 → .*none beyond ±1e"),
        ((1.0, 2.0, 1.0), False, "can't have the value 1.0 → .*of its own"),
        (("bad", "good"), False, "can't have the value 'bad'"),
    ],
)
def test_what_is_no_question_is_refused_by_its_name(
    values: Any, ordinal: bool, message: str
) -> None:
    with pytest.raises(WrongUse, match=f"'clear'.* {message}"):
        Scale("clear", values, ordinal)


def test_what_is_no_questionnaire_is_refused_and_classes_need_no_order() -> None:
    with pytest.raises(WrongUse, match="two questions are called 'clear'"):
        Questionnaire((CLEAR, CLEAR), "clear")
    with pytest.raises(WrongUse, match="none of clear"):
        Questionnaire((CLEAR,), "overall")
    assert Scale("length", (2.0, 0.0, 1.0), ordinal=False).values == (2.0, 0.0, 1.0)
