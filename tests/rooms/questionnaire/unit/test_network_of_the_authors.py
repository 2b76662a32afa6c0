"""The authors' recipe against a plain implementation."""

import numpy as np
import pytest
import torch

from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.rooms.questionnaire.calibration.network.paper_recipe import draw_batches

VALUES = (1.0, 2.0, 3.0)
ASKED = Questionnaire(
    (Scale("first", VALUES), Scale("second", VALUES), Scale("all", VALUES)), "all"
)


def judged(rows, rng):
    """X, and answers to three questions of three options by four judges, some missing, the main one never."""
    X = rng.dirichlet(np.ones(3), (rows, 3)).reshape(rows, 9)
    answers = rng.integers(3, size=(rows, 3))
    answers[rng.random((rows, 3)) < [0.3, 0.1, 0.0]] = -1
    return X, answers, rng.integers(4, size=rows)


def plain(X, judges, answers, judge_count, units, batch, rate, epochs, seed):
    """What the paper says, sample by sample, with the authors' way to draw: weights after both phases, by name."""
    torch.manual_seed(seed)
    inputs, (h1, h2) = X.shape[1] + 1, units
    questions = answers.shape[1]
    options = 3
    shapes = [(inputs, h1), (judge_count, inputs, h1), (h1 + 1, h2), (judge_count, h1 + 1, h2)]
    shapes += [(questions, h2 + 1, options), (judge_count, questions, h2 + 1, options)]
    weights = [torch.randn(shape).requires_grad_() for shape in shapes]
    adam = torch.optim.Adam(weights, lr=rate)
    for count, columns in zip(epochs, (range(questions), [questions - 1]), strict=True):
        np.random.seed(seed)
        for _ in range(count * (len(X) // batch)):
            losses = []
            for sample in np.random.choice(len(X), size=batch):
                logits = plain_logits(weights, X[sample], judges[sample])
                for question in columns:
                    answer = answers[sample, question]
                    losses.append(
                        -torch.log_softmax(logits[question], 0)[answer]
                        if answer >= 0
                        else torch.zeros(())
                    )
            adam.zero_grad()
            torch.stack(losses).mean().backward()
            adam.step()
    return weights


def plain_logits(weights, x, judge):
    W1, W1a, W2, W2a, V, Va = weights
    row = torch.cat([torch.tensor(x, dtype=torch.float32), torch.ones(1)])
    for shared, own in ((W1, W1a), (W2, W2a)):
        row = torch.cat([torch.sigmoid(row @ (shared + own[judge])), torch.ones(1)])
    return torch.einsum("h,qho->qo", row, V + Va[judge])


@pytest.fixture(autouse=True)
def numpys_old_generator():
    """The plain implementation seeds the generators that all share, as the authors do."""
    state = np.random.get_state()
    other = torch.get_rng_state()
    yield
    np.random.set_state(state)
    torch.set_rng_state(other)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("units", "rate", "epochs"), [((5, 4), 0.01, (4, 3)), ((10, 10), 0.001, (2, 0))]
)
def test_the_recipe_gives_what_the_authors_would_get(units, rate, epochs):
    X, answers, judges = judged(40, np.random.default_rng(0))
    # Judges by name as they first come, whatever their names.
    first = list(dict.fromkeys(judges.tolist()))
    names = {judge: f"{9 - place}" for place, judge in enumerate(first)}
    y = [
        (row, question, names[judges[row]], VALUES[answers[row, place]])
        for row in range(40)
        for place, question in enumerate(("first", "second", "all"))
        if answers[row, place] >= 0
    ]
    model = CalibrationNetwork(
        *units,
        recipe="authors",
        batch=8,
        rate=rate,
        pretraining=epochs[0],
        finetuning=epochs[1],
        seeds=1,
        seed=43,
    ).fit(X, y, questions=ASKED)
    numbered = np.array([first.index(judge) for judge in judges])
    weights = plain(X.astype(np.float32), numbered, answers, 4, units, 8, rate, epochs, 43)
    with torch.no_grad():
        expected = torch.stack(
            [
                torch.softmax(plain_logits(weights, x, judge)[2], 0)
                for x, judge in zip(X, numbered, strict=True)
            ]
        )
    found = model.predict_proba(X, [names[judge] for judge in judges])
    assert np.abs(found - expected.numpy()).max() < 1e-6


def test_several_seeds_are_the_mean_of_each_and_batches_those_that_numpy_draws_one_after_the_other():
    X, answers, judges = judged(30, np.random.default_rng(1))
    y = [(row, "all", str(judges[row]), VALUES[answers[row, 2]]) for row in range(30)]
    settings = {
        "h1": 4,
        "h2": 3,
        "recipe": "authors",
        "batch": 8,
        "pretraining": 2,
        "finetuning": 1,
    }
    both, *each = (
        CalibrationNetwork(**settings, seeds=seeds, seed=seed)
        .fit(X, y, questions=ASKED)
        .predict_proba(X, judges.astype(str))
        for seeds, seed in ((2, 5), (1, 5), (1, 6))
    )
    assert both == pytest.approx(np.mean(each, axis=0), abs=1e-12)
    np.random.seed(43)
    one_by_one = [np.random.choice(20, size=6).tolist() for _ in range(5)]
    assert draw_batches(20, 6, 5, 43).tolist() == one_by_one
