"""Which candidate is taken, why, and that nothing is tried on what it has seen."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from pollex.calibration.folds import assign_groups_to_folds
from pollex.calibration.models.constant import Constant
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.paired import compute_clustered_standard_error_of_mean
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats
from pollex.rooms.questionnaire.calibration.model_choice import (
    CandidateFigures,
    ModelChoice,
    compute_clipped_log_losses,
    find_best_trial,
    fit_mixture_weights,
    list_trials_near_best,
    restore_choice,
    try_candidates,
)
from pollex.rooms.questionnaire.calibration.models.best import LEAST_MIXTURE_WEIGHT, Calibrator

RATING = Questionnaire(
    (Scale("clear", (1.0, 2.0, 3.0)), Scale("overall", (1.0, 2.0, 3.0), asked=False)), "overall"
)
CANDIDATES = [("constant", {}), ("judge_mean", {}), ("ordinal", {"slopes": None})]


def world(rows: int = 120) -> tuple[Floats, Floats, list[str]]:
    """Answers that say much about the ratings."""
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(3), rows)
    place = 3.0 * (X @ [1, 2, 3] - 2) + rng.logistic(size=rows)
    return X, 1.0 + (place > -1) + (place > 1), [("a", "b", "c")[row % 3] for row in range(rows)]


@pytest.mark.parametrize(
    ("settings", "groups", "message"),
    [
        ({"candidates": CANDIDATES}, ["same"] * 20, "1 group of texts"),
        ({"candidates": CANDIDATES, "shift": True}, ["same"] * 20, "of two or more origins"),
        ({"candidates": []}, None, "no candidates"),
        ({"folds": 1}, None, "folds=1"),
        (
            {"candidates": [CANDIDATES[0], ("ordinal", {"slope": 1.0})]},
            None,
            "'ordinal' has no setting 'slope' → it has .*slopes",
        ),
        ({"candidates": [CANDIDATES[0], ("ordnal", {})]}, None, "'ordnal'"),
        ({"candidates": [("as_is", {})]}, None, "was not asked 'overall'"),
    ],
)
def test_without_groups_folds_or_a_candidate_that_fits_there_is_nothing_to_choose_by(
    settings: dict[str, Any], groups: Any, message: str
) -> None:
    X, y, judges = world(20)
    with pytest.raises(WrongUse, match=message):
        Calibrator(**settings).fit(X, y, judges, RATING, groups)


def test_a_candidate_that_refuses_is_listed_with_its_reason_and_the_chosen_one_is_fitted_to_everything() -> (
    None
):
    X, y, judges = world()
    model = Calibrator([("as_is", {}), ("constant", {"smoothing": 2.0})]).fit(X, y, judges, RATING)
    choice = model.choice_
    assert choice.trials[0].loss is None
    assert "was not asked" in choice.trials[0].refused
    assert choice.trials[choice.chosen].model == "constant"
    assert choice.ranking()[-1].model == "as_is"
    alone = Constant(smoothing=2.0).fit(X, y, judges, RATING)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X))


def test_answers_that_say_something_are_used_and_others_are_not() -> None:
    X, y, judges = world()
    choice = Calibrator(CANDIDATES).fit(X, y, judges, RATING).choice_
    losses = [trial.loss or 9 for trial in choice.ranking()]
    assert all(a <= b for a, b in pairwise(losses))
    assert choice.sentence().startswith(
        f"ordinal slopes=None by 5-fold cross-validation: log-loss {losses[0]:.3f}"
    )
    assert restore_choice(choice.facts()) == choice
    noise = Calibrator(CANDIDATES).fit(X, np.random.default_rng(1).permutation(y), judges, RATING)
    assert noise.choice_.trials[noise.choice_.chosen].model != "ordinal"
    assert noise.predict(X, judges).std() < 0.1


def test_the_loss_of_a_candidate_is_that_of_fits_that_did_not_see_the_fold() -> None:
    X, y, judges = world(30)
    groups = np.arange(30) // 3
    trial = (
        Calibrator([("ordinal", {})], folds=3, seed=4)
        .fit(X, y, judges, RATING, groups)
        .choice_.trials[0]
    )
    losses = np.zeros(30)
    for rows in assign_groups_to_folds(groups, 3, np.random.default_rng(4)):
        rest = np.setdiff1d(np.arange(30), rows)
        model = OrdinalMixedEffects().fit(X[rest], y[rest], [judges[row] for row in rest], RATING)
        proba = model.predict_proba(X[rows], [judges[row] for row in rows])
        losses[rows] = compute_clipped_log_losses(proba, y[rows].astype(int) - 1)
    assert (trial.loss, trial.n) == (pytest.approx(losses.mean(), abs=1e-6), 30)


def test_under_a_shift_each_fold_is_one_group() -> None:
    """A group in which the answers mean the opposite makes the model that trusts them the worse one."""
    X, y, judges = world()
    groups = np.arange(120) % 2
    turned = np.where(groups == 1, 4 - y, y)
    inside = Calibrator(CANDIDATES).fit(X, y, judges, RATING, groups=np.arange(120)).choice_
    across = (
        Calibrator(CANDIDATES, shift=True).fit(X, turned, judges, RATING, groups=groups).choice_
    )
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
    assert (find_best_trial(trials), list_trials_near_best(trials)) == (2, [1, 2])


def test_those_averaged_have_equal_shares_and_those_stacked_the_likeliest_ones_without_the_tiny() -> (
    None
):
    X, y, judges = world()
    twins = [
        ("constant", {}),
        ("ordinal", {"slopes": None}),
        ("ordinal", {"slopes": None, "scales": None}),
    ]
    average = Calibrator(twins, rule="average").fit(X, y, judges, RATING)
    shares = average.choice_.weights
    assert set(shares.values()) == {1 / len(average.members_)}
    assert average.choice_.chosen in shares
    stacked = Calibrator([*CANDIDATES, ("isotonic", {})], rule="stacked", folds=3).fit(
        X, y, judges, RATING
    )
    weights = stacked.choice_.weights
    assert sum(weights.values()) == pytest.approx(1)
    assert min(weights.values()) >= LEAST_MIXTURE_WEIGHT
    assert max(weights, key=lambda place: weights[place]) == 2
    for model in (average, stacked):
        members = [member.predict_proba(X, judges) for member in model.members_]
        mean = np.tensordot(list(model.choice_.weights.values()), members, axes=1)
        np.testing.assert_allclose(model.predict_proba(X, judges), mean)


def test_trials_are_compared_with_the_best_worked_by_hand() -> None:
    answers = np.array([0, 1, 1])
    texts = np.array([0, 0, 1])
    half = np.full((3, 2), 0.5)
    sure = np.array([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]])
    first, second = try_candidates([("a", {}), ("b", {})], [half, sure], answers, texts)
    assert (first.loss, second.loss) == pytest.approx((np.log(2), -np.log(0.8)))
    assert (first.behind, second.behind, second.behind_error) == (pytest.approx(np.log(1.6)), 0, 0)


def test_the_standard_error_is_the_usual_one_and_judgments_of_one_text_that_agree_are_no_more_than_one() -> (
    None
):
    values = np.random.default_rng(0).normal(size=50)
    usual = pytest.approx(values.std(ddof=1) / np.sqrt(50))
    assert compute_clustered_standard_error_of_mean(values, np.arange(50)) == usual
    assert (
        compute_clustered_standard_error_of_mean(np.repeat(values, 2), np.repeat(np.arange(50), 2))
        == usual
    )


def test_mixing_weights_are_those_of_the_largest_likelihood() -> None:
    rng = np.random.default_rng(0)
    probas = [rng.dirichlet(np.ones(3), 200) for _ in range(2)]
    answers = rng.integers(0, 3, 200)
    weights = fit_mixture_weights(probas, answers, rounds=3000)

    def loss(share: Floats) -> float:
        return float(
            compute_clipped_log_losses(
                share[0] * probas[0] + (1 - share[0]) * probas[1], answers
            ).sum()
        )

    best = minimize(loss, [0.5], bounds=[(0, 1)], tol=1e-12).x[0]
    assert weights == pytest.approx([best, 1 - best], abs=1e-3)


def test_users_with_few_thumbs_each_have_an_intercept_and_no_more() -> None:
    X, y, _ = world()
    choice = (
        Calibrator(folds=2).fit(X, y, [f"user {row // 2}" for row in range(120)], RATING).choice_
    )
    ordinal = [trial.settings for trial in choice.trials if trial.model == "ordinal"]
    assert ordinal
    assert all(setting["slopes"] is None and setting["scales"] is None for setting in ordinal)


@pytest.mark.nightly
def test_a_main_question_without_order_is_learned_by_the_network() -> None:
    rng = np.random.default_rng(5)
    values = (1.0, 2.0, 3.0)
    asked = Questionnaire(
        (Scale("clear", values), Scale("kind", values, ordinal=False, asked=False)), "kind"
    )
    X = rng.dirichlet(np.full(3, 0.3), 150)
    y = np.array([2.0, 3.0, 1.0])[X.argmax(axis=1)]
    model = Calibrator(folds=3).fit(X, y, questions=asked)
    assert {model.choice_.trials[place].model for place in model.choice_.weights} == {"network"}
    assert (model.predict_proba(X).argmax(axis=1) + 1 == y).mean() > 0.9
    ordinal = Calibrator(folds=3).fit(X, y, questions=RATING).choice_
    assert "network" not in {trial.model for trial in ordinal.trials}


def tried(model: str, behind: float, **settings: float) -> CandidateFigures:
    return CandidateFigures(
        model, settings, n=90, loss=1.0 + behind, error=0.05, behind=behind, behind_error=0.02
    )


def refused(model: str, why: str, **settings: float) -> CandidateFigures:
    return CandidateFigures(model, settings, n=90, refused=why)


ORDER = [refused("ordinal", "no order", shared=float(number)) for number in range(3)]
MEAN = refused("ridge", "no mean")
TRIALS = (
    tried("constant", 0.3),
    tried("ridge", 0.01),
    *(
        tried("ordinal", behind, shared=shared)
        for behind, shared in ((0.0, 30.0), (0.015, 100.0), (0.02, 300.0))
    ),
    refused("as_is", "not asked"),
)
BEST = "ordinal shared=30.0"
LOSS = "log-loss 1.000 ± 0.050 on 90 judgments"


@pytest.mark.parametrize(
    ("rule", "chosen", "trials", "shares", "said"),
    [
        ("best", 2, TRIALS, {2: 1.0}, f"{BEST} by lot: {LOSS}, next ridge with 0.010 ± 0.020 more"),
        (
            "average", 2, TRIALS, {1: 0.5, 2: 0.5},
            f"2 together (ridge, {BEST}), which can't be told from the best, {BEST}, by lot: {LOSS}, "
            "next ordinal shared=100.0 with 0.015 ± 0.020 more",
        ),
        (
            "stacked", 2, TRIALS, {0: 0.2, 2: 0.8},
            f"2 together (constant, {BEST}), weighted; the best alone {BEST} by lot: {LOSS}, "
            "next ridge with 0.010 ± 0.020 more",
        ),
        (
            "average", 2, TRIALS, dict.fromkeys((1, 2, 3, 4), 0.25),
            f"4 together (ridge, 3 of ordinal), which can't be told from the best, {BEST}, by lot: {LOSS}, "
            "next constant with 0.300 ± 0.020 more",
        ),
        (
            "average", 0, (tried("constant", 0), MEAN, *ORDER), {0: 1.0},
            f"constant by lot: {LOSS}; not fitted: ridge, 3 of ordinal",
        ),
    ],
)  # fmt: skip
def test_a_choice_is_told_beside_the_next_that_was_left_out_or_what_could_not_be_fitted(
    rule: Any,
    chosen: int,
    trials: tuple[CandidateFigures, ...],
    shares: dict[int, float],
    said: str,
) -> None:
    assert ModelChoice("lot", rule, chosen, trials, shares).sentence() == said


def test_refusals_for_the_same_reason_stand_together() -> None:
    choice = ModelChoice(
        "lot", "average", 0, (tried("constant", 0), ORDER[0], MEAN, *ORDER[1:]), {0: 1.0}
    )
    assert choice.refusals() == {"no order": ORDER, "no mean": [MEAN]}


@pytest.mark.filterwarnings("error")
def test_answers_that_are_alike_in_one_fold_only_are_not_warned_of() -> None:
    X = world(4)[0]
    model = Calibrator([("constant", {})], folds=4).fit(X, [1, 2, 2, 2], questions=RATING)
    assert model.choice_.trials[0].n == 4
