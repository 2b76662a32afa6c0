"""Which candidate is taken, why, and that nothing is tried on what it has seen."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from pollex.calibration.crossfit import assign_folds
from pollex.calibration.model_choice import (
    CandidateFigures,
    best_of,
    choice_from,
    clipped_log_losses,
    close_to_best,
    compared,
    mixed,
    standard_error,
)
from pollex.calibration.models.baselines import Constant
from pollex.calibration.models.best import LEAST_WEIGHT, Calibrator
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats

RATING = Questionnaire((Scale("clear", (1.0, 2.0, 3.0)), Scale("overall", (1.0, 2.0, 3.0), asked=False)), "overall")
CANDIDATES = [("constant", {}), ("judge_mean", {}), ("ordinal", {"slopes": None})]


def world(rows: int = 120, use: float = 3.0, seed: int = 0) -> tuple[Floats, Floats, list[str]]:
    """`use`: how much the answers say about the ratings."""
    rng = np.random.default_rng(seed)
    X = rng.dirichlet(np.ones(3), rows)
    place = use * (X @ [1, 2, 3] - 2) + rng.logistic(size=rows)
    return X, 1.0 + (place > -1) + (place > 1), [("a", "b", "c")[row % 3] for row in range(rows)]


def test_one_group_is_none_to_choose_by() -> None:
    X, y, judges = world(20)
    with pytest.raises(WrongUse, match="1 group of texts"):
        Calibrator(CANDIDATES).fit(X, y, judges, RATING, groups=["same"] * 20)
    with pytest.raises(WrongUse, match="of two or more origins"):
        Calibrator(CANDIDATES, shift=True).fit(X, y, judges, RATING, groups=["same"] * 20)


@pytest.mark.parametrize(("settings", "message"), [({"candidates": []}, "no candidates"), ({"folds": 1}, "folds=1")])
def test_without_candidates_or_folds_there_is_nothing_to_choose_by(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        Calibrator(**settings).fit(np.full((4, 2), 0.5), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("candidate", "message"),
    [(("ordinal", {"slope": 1.0}), "'ordinal' has no setting 'slope' → it has .*slopes"), (("ordnal", {}), "'ordnal'")],
)
def test_a_candidate_that_there_is_not_is_no_candidate_that_refused(candidate: Any, message: str) -> None:
    X, y, judges = world(20)
    with pytest.raises(WrongUse, match=message):
        Calibrator([("constant", {}), candidate]).fit(X, y, judges, RATING)


def test_candidates_that_all_refuse_are_an_error_that_says_why() -> None:
    X, y, judges = world(20)
    with pytest.raises(WrongUse, match="was not asked 'overall'"):
        Calibrator([("as_is", {})]).fit(X, y, judges, RATING)


def test_a_candidate_that_refuses_is_listed_with_its_reason() -> None:
    X, y, judges = world()
    choice = Calibrator([("as_is", {}), ("constant", {})]).fit(X, y, judges, RATING).choice_
    assert choice.trials[0].loss is None
    assert "was not asked" in choice.trials[0].refused
    assert choice.trials[choice.chosen].model == "constant"
    assert choice.ranking()[-1].model == "as_is"


def test_answers_that_say_something_are_used_and_others_are_not() -> None:
    X, y, judges = world()
    assert (
        Calibrator(CANDIDATES).fit(X, y, judges, RATING).choice_.sentence().startswith("ordinal slopes=None by 5-fold")
    )
    rng = np.random.default_rng(1)
    noise = Calibrator(CANDIDATES).fit(X, rng.permutation(y), judges, RATING)
    assert noise.choice_.trials[noise.choice_.chosen].model != "ordinal"
    assert noise.predict(X, judges).std() < 0.1


def test_the_loss_of_a_candidate_is_that_of_fits_that_did_not_see_the_fold() -> None:
    X, y, judges = world(30)
    groups = np.arange(30) // 3
    trial = Calibrator([("ordinal", {})], folds=3, seed=4).fit(X, y, judges, RATING, groups).choice_.trials[0]
    losses = np.zeros(30)
    for rows in assign_folds(groups, 3, np.random.default_rng(4)):
        rest = np.setdiff1d(np.arange(30), rows)
        model = OrdinalMixedEffects().fit(X[rest], y[rest], [judges[row] for row in rest], RATING)
        proba = model.predict_proba(X[rows], [judges[row] for row in rows])
        losses[rows] = clipped_log_losses(proba, y[rows].astype(int) - 1)
    assert trial.loss == pytest.approx(losses.mean(), abs=1e-6)
    assert trial.n == 30


def test_the_chosen_one_is_fitted_to_everything() -> None:
    X, y, judges = world()
    model = Calibrator([("constant", {"smoothing": 2.0})]).fit(X, y, judges, RATING)
    alone = Constant(smoothing=2.0).fit(X, y, judges, RATING)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X))


def test_under_a_shift_each_fold_is_one_group() -> None:
    """A group in which the answers mean the opposite makes the model that trusts them the worse one."""
    X, y, judges = world()
    groups = np.arange(120) % 2
    turned = np.where(groups == 1, 4 - y, y)
    inside = Calibrator(CANDIDATES).fit(X, y, judges, RATING, groups=np.arange(120)).choice_
    across = Calibrator(CANDIDATES, shift=True).fit(X, turned, judges, RATING, groups=groups).choice_
    assert inside.trials[inside.chosen].model == "ordinal"
    assert across.trials[across.chosen].model == "constant"
    assert across.how == "leaving out one of 2 groups in turn"
    assert (inside.rule, across.rule) == ("average", "stacked")


def test_the_best_has_the_smallest_loss_and_is_averaged_with_those_within_an_error() -> None:
    trials = [
        CandidateFigures("far", {}, 9, 1.05, 0.1, 0.05, 0.03),
        CandidateFigures("close", {}, 9, 1.02, 0.1, 0.02, 0.03),
        CandidateFigures("best", {}, 9, 1.00, 0.1, 0.00, 0.00),
        CandidateFigures("refused", {}, 9, refused="no"),
    ]
    assert best_of(trials) == 2
    assert close_to_best(trials) == [1, 2]


def test_what_is_averaged_has_equal_shares() -> None:
    X, y, judges = world()
    twins = [("constant", {}), ("ordinal", {"slopes": None}), ("ordinal", {"slopes": None, "scales": None})]
    model = Calibrator(twins, rule="average").fit(X, y, judges, RATING)
    members = [member.predict_proba(X, judges) for member in model.members_]
    assert set(model.choice_.weights.values()) == {1 / len(members)}
    assert model.choice_.chosen in model.choice_.weights
    np.testing.assert_allclose(model.predict_proba(X, judges), np.mean(members, axis=0))


def test_trials_are_compared_with_the_best_worked_by_hand() -> None:
    answers, texts = np.array([0, 1, 1]), np.array([0, 0, 1])
    half, sure = np.full((3, 2), 0.5), np.array([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]])
    first, second = compared([("a", {}), ("b", {})], [half, sure], answers, texts)
    assert first.loss == pytest.approx(np.log(2))
    assert second.loss == pytest.approx(-np.log(0.8))
    assert first.behind == pytest.approx(np.log(1.6))
    assert (second.behind, second.behind_error) == (0, 0)


def test_the_standard_error_is_the_usual_one_where_each_text_has_one_judgment() -> None:
    values = np.random.default_rng(0).normal(size=50)
    assert standard_error(values, np.arange(50)) == pytest.approx(values.std(ddof=1) / np.sqrt(50))


def test_judgments_of_one_text_that_agree_are_no_more_than_one() -> None:
    values = np.random.default_rng(0).normal(size=50)
    doubled = standard_error(np.repeat(values, 2), np.repeat(np.arange(50), 2))
    assert doubled == pytest.approx(standard_error(values, np.arange(50)))


def test_mixing_weights_are_those_of_the_largest_likelihood() -> None:
    rng = np.random.default_rng(0)
    probas = [rng.dirichlet(np.ones(3), 200) for _ in range(2)]
    answers = rng.integers(0, 3, 200)
    weights = mixed(probas, answers, rounds=3000)

    def loss(share: Floats) -> float:
        return float(clipped_log_losses(share[0] * probas[0] + (1 - share[0]) * probas[1], answers).sum())

    best = minimize(loss, [0.5], bounds=[(0, 1)], tol=1e-12).x[0]
    assert weights[0] == pytest.approx(best, abs=1e-3)
    assert weights.sum() == pytest.approx(1)


def test_the_choice_says_by_how_much_and_survives_json() -> None:
    X, y, judges = world()
    choice = Calibrator(CANDIDATES).fit(X, y, judges, RATING).choice_
    assert choice_from(choice.facts()) == choice
    losses = [trial.loss or 9 for trial in choice.ranking()]
    assert all(a <= b for a, b in pairwise(losses))
    assert f"{losses[0]:.3f}" in choice.sentence()


def test_users_with_few_thumbs_each_have_an_intercept_and_no_more() -> None:
    X, y, _ = world()
    many = [f"user {row // 2}" for row in range(120)]
    choice = Calibrator().fit(X, y, many, RATING).choice_
    ordinal = [trial.settings for trial in choice.trials if trial.model == "ordinal"]
    assert ordinal
    assert all(setting["slopes"] is None and setting["scales"] is None for setting in ordinal)


@pytest.mark.nightly
def test_a_main_question_without_order_is_learned_by_the_network() -> None:
    rng = np.random.default_rng(5)
    values = (1.0, 2.0, 3.0)
    asked = Questionnaire((Scale("clear", values), Scale("kind", values, ordinal=False, asked=False)), "kind")
    X = rng.dirichlet(np.full(3, 0.3), 150)
    y = np.array([2.0, 3.0, 1.0])[X.argmax(axis=1)]
    model = Calibrator(folds=3).fit(X, y, questions=asked)
    assert {model.choice_.trials[place].model for place in model.choice_.weights} == {"network"}
    assert (model.predict_proba(X).argmax(axis=1) + 1 == y).mean() > 0.9
    ordinal = Calibrator(folds=3).fit(X, y, questions=RATING).choice_
    assert "network" not in {trial.model for trial in ordinal.trials}


def test_stacked_shares_are_those_of_the_likeliest_mixture_without_the_tiny_ones() -> None:
    X, y, judges = world(200)
    model = Calibrator([*CANDIDATES, ("isotonic", {})], rule="stacked", folds=3).fit(X, y, judges, RATING)
    weights = model.choice_.weights
    assert sum(weights.values()) == pytest.approx(1)
    assert min(weights.values()) >= LEAST_WEIGHT
    assert max(weights, key=lambda place: weights[place]) == 2
    mean = np.tensordot(list(weights.values()), [m.predict_proba(X, judges) for m in model.members_], axes=1)
    np.testing.assert_allclose(model.predict_proba(X, judges), mean)
