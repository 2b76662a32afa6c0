"""The calibration network: equations, what is missing, judges, phases, state."""

import math

import numpy as np
import pytest
import torch

from pollex.calibration.judgments import AnswerMatrix
from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.network.training import (
    TrainingConfig,
    TrainingData,
    assign_answer_sheets_to_judge_slots,
    compute_log_likelihood_of_answers,
    initialize_weights,
    make_output_heads,
    train_network_weights,
)
from pollex.calibration.network.weights import Weights
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse

LIKERT = (1.0, 2.0, 3.0, 4.0)
ASKED = Questionnaire(
    (
        Scale("clear", LIKERT),
        Scale("kind", (0.0, 1.0), ordinal=False),
        Scale("thumb", (0.0, 1.0), asked=False),
        Scale("all", LIKERT),
    ),
    "all",
)
QUICK = {"h1": 4, "h2": 3, "pretraining": 5, "finetuning": 5, "seeds": 2}


def answers(rows, rng):
    """X for ASKED, and judgments of all its questions by two judges whose answers follow X."""
    parts = [rng.dirichlet(np.ones(size), rows) for size in (4, 2, 4)]
    chosen = [part.argmax(axis=1) for part in parts]
    worth = {
        "all": chosen[2] + 1,
        "kind": chosen[1],
        "thumb": chosen[2] > 1,
        "clear": chosen[0] + 1,
    }
    steps = {"all": 1, "kind": 1, "thumb": 3, "clear": 2}
    y = [
        (row, name, "ab"[row % 2], float(worth[name][row]))
        for name in worth
        for row in range(0, rows, steps[name])
    ]
    return np.concatenate(parts, axis=1), y


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def tiny(**changes):
    """One seed, one input, one unit a layer, two questions of two options, one judge."""
    arrays = {
        "W1": np.array([[[1.0], [0.5]]]),
        "W2": np.array([[[2.0], [-1.0]]]),
        "V": np.array([[[1.0, -1.0, 0.3, 0.0], [0.2, 0.4, 0.0, 0.1]]]),
        "W1a": np.array([[[[0.25], [0.0]]]]),
        "W2a": np.array([[[[0.0], [0.5]]]]),
        "Va": np.array([[[[0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]]),
        "cuts": np.array([[[0.3], [0.0]]]),
        "options": np.array([2, 2]),
        "ordinal": np.array([False, False]),
    }
    return Weights(**(arrays | changes))


def test_judgments_by_nobody_known_are_refused_by_the_authors_recipe():
    X, y = answers(30, np.random.default_rng(0))
    with pytest.raises(WrongUse, match="nobody known, and there are 1 "):
        CalibrationNetwork(recipe="authors", **QUICK).fit(
            X, [*y, (0, "all", None, 1.0)], questions=ASKED
        )


def test_equations_3_to_5_and_a_cumulative_link_head_worked_by_hand():
    own = sigmoid(2.0 * sigmoid(1.25 * 0.6 + 0.5) - 0.5)
    shared = sigmoid(2.0 * sigmoid(0.6 + 0.5) - 1.0)  # that of a judge not known
    location = shared + 0.2
    log_scale = -shared + 0.4
    cases = (
        (False, 0, sigmoid((1.5 * own + 0.2) - (-own + 0.4))),
        (False, -1, sigmoid(location - log_scale)),
        (True, -1, sigmoid((0.3 - location) * math.exp(log_scale))),
    )
    for ordinal, judge, first in cases:
        weights = tiny(ordinal=np.array([ordinal, False]))
        proba = weights.proba(np.array([[0.6, 1.0]]), np.array([judge]), 0)
        assert proba == pytest.approx(np.array([[first, 1 - first]]), abs=1e-12)


def test_training_maximises_the_likelihood_that_predictions_have():
    rng = np.random.default_rng(1)
    sheets = AnswerMatrix(np.arange(6), np.zeros(6, int), rng.integers(2, size=(6, 2)))
    begin = initialize_weights(
        (3, 4, 3),
        (2, 2),
        make_output_heads(sheets, np.array([2, 4]), np.array([False, True])),
        2,
        0,
    ).arrays()
    weights = Weights(
        **(begin | {name: rng.normal(size=begin[name].shape) for name in ("W1a", "W2a", "Va", "V")})
    )
    judges = np.array([0, 1, 1, -1, 0, 1])
    inputs = np.concatenate([rng.random((6, 3)), np.ones((6, 1))], axis=1)
    answer = np.array([[0, 3], [1, -1], [-1, 2], [1, 0], [0, 1], [-1, -1]])
    slots = assign_answer_sheets_to_judge_slots(judges, 2)
    arrays = {name: torch.tensor(array) for name, array in weights.arrays().items()}
    given = torch.where(slots.filled[..., None], torch.tensor(answer)[slots.sheet], -1)
    found = compute_log_likelihood_of_answers(
        arrays, torch.tensor(inputs)[slots.sheet].expand(2, -1, -1, -1), given, slots.judge, weights
    )
    each = [
        Weights(
            **{
                n: a[[s]] if n not in ("options", "ordinal") else a
                for n, a in weights.arrays().items()
            }
        )
        for s in (0, 1)
    ]
    expected = sum(
        math.log(one.proba(inputs, judges, question)[row, answer[row, question]])
        for one in each
        for row, question in zip(*np.nonzero(answer >= 0), strict=True)
    )
    assert float(found) == pytest.approx(expected, rel=1e-9)


def test_deltas_of_a_judge_without_answers_stay_zero_and_strong_shrinkage_holds_all():
    X, y = answers(40, np.random.default_rng(2))
    loose = CalibrationNetwork(**QUICK, shrinkage=0.0).fit(X, y, questions=ASKED)
    held = CalibrationNetwork(**QUICK, shrinkage=1e6).fit(X, y, questions=ASKED)
    assert np.abs(loose.tuned_.W1a).max() > 1e-3
    assert np.abs(held.tuned_.Va).max() < np.abs(loose.tuned_.Va).max() / 3
    sheets = AnswerMatrix(np.arange(4), np.zeros(4, int), np.array([[0], [1], [1], [0]]))
    heads = make_output_heads(sheets, np.array([2]), np.array([False]))
    data = TrainingData(np.concatenate([np.eye(4), np.ones((4, 1))], axis=1), sheets, np.arange(4))
    after = train_network_weights(
        initialize_weights((4, 3, 3), (2, 2), heads, 1, 0),
        data,
        TrainingConfig(5, 0.05, 0.0, 1.0),
        0,
    )
    assert np.abs(after.Va[:, 0]).max() > 0
    assert not after.Va[:, 1].any()
    assert not after.W1a[:, 1].any()


def test_what_follows_the_answers_is_learned_and_missing_ones_are_made_up_for():
    rng = np.random.default_rng(4)
    X, y = answers(200, rng)
    fresh, truth = answers(200, rng)
    target = np.array([value for _, question, _, value in truth if question == "all"])
    model = CalibrationNetwork(
        h1=8, h2=8, seeds=1, decay=0.01, shrinkage=1.0, pretraining=100, finetuning=60
    ).fit(X, y, questions=ASKED)
    assert np.corrcoef(model.predict(fresh), target)[0, 1] > 0.65
    without = fresh.copy()
    without[:, :6] = np.nan
    assert np.corrcoef(model.predict(without), target)[0, 1] > 0.6


@pytest.mark.parametrize("heads", ["softmax", "ordinal"])
@pytest.mark.parametrize(
    ("personal", "own"), [("all", (2, 2)), ("heads", (0, 2)), ("none", (0, 0))]
)
def test_every_question_judged_has_a_distribution_whoever_is_asked_before_and_after_it_is_kept(
    heads, personal, own
):
    X, y = answers(60, np.random.default_rng(5))
    model = CalibrationNetwork(**QUICK, heads=heads, personal=personal).fit(X, y, questions=ASKED)
    back = CalibrationNetwork.from_state(model.get_params(), ASKED, model.state())
    who = ["a", "b", None, "new"] * 15
    for scale in ASKED.scales:
        proba = model.predict_proba(X, who, question=scale.question)
        assert proba.shape == (60, len(scale.values))
        assert proba.sum(axis=1) == pytest.approx(np.ones(60))
        assert (proba > 0).all()
        assert np.array_equal(back.predict_proba(X, who, question=scale.question), proba)
    assert (model.tuned_.W1a.shape[1], model.tuned_.Va.shape[1]) == own


def test_judges_who_answer_alike_but_by_another_scale_are_told_apart():
    X, _ = answers(120, np.random.default_rng(6))
    main = X[:, 6:].argmax(axis=1)
    y = [(row, "all", "mild", float(min(main[row] + 2, 4))) for row in range(120)]
    y += [(row, "all", "harsh", float(max(main[row], 1))) for row in range(120)]
    model = CalibrationNetwork(h1=6, h2=6, seeds=2, shrinkage=0.5, dropout=0.0).fit(
        X, y, questions=ASKED
    )
    each = model.predict_each(X, ["harsh", "mild"])
    assert (each[:, 1] - each[:, 0]).mean() > 0.7


def test_the_same_seed_gives_the_same_network_and_leaves_torch_as_it_was():
    X, y = answers(40, np.random.default_rng(7))
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    before = torch.get_num_threads(), torch.get_default_dtype()
    first, second, other = (
        CalibrationNetwork(**QUICK, seed=s).fit(X, y, questions=ASKED).predict_proba(X)
        for s in (0, 0, 1)
    )
    assert np.array_equal(first, second)
    assert not np.allclose(first, other)
    assert torch.equal(torch.rand(3), expected)
    assert (torch.get_num_threads(), torch.get_default_dtype()) == before
