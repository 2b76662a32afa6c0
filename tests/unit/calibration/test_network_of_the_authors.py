"""The authors' recipe against a plain implementation, and the batched sweep against the recipe."""

import numpy as np
import pytest
import torch

from pollex.calibration.judgments import AnswerMatrix
from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.network.batched import (
    NetworkBatch,
    Penalty,
    batches_of,
    flat,
    table_of,
    with_bias_unit,
    without_bias_unit,
)
from pollex.calibration.network.paper_recipe import Settings, batches, fitted, initial_weights
from pollex.calibration.network.sweep import SettingsGroup, Sweep
from pollex.calibration.questionnaire import Questionnaire, Scale

VALUES = (1.0, 2.0, 3.0)
ASKED = Questionnaire((Scale("first", VALUES), Scale("second", VALUES), Scale("all", VALUES)), "all")


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
    questions, options = answers.shape[1], 3
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
                    losses.append(-torch.log_softmax(logits[question], 0)[answer] if answer >= 0 else torch.zeros(()))
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
    state, other = np.random.get_state(), torch.get_rng_state()
    yield
    np.random.set_state(state)
    torch.set_rng_state(other)


@pytest.mark.nightly
@pytest.mark.parametrize(("units", "rate", "epochs"), [((5, 4), 0.01, (4, 3)), ((10, 10), 0.001, (2, 0))])
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
        *units, recipe="authors", batch=8, rate=rate, pretraining=epochs[0], finetuning=epochs[1], seeds=1, seed=43
    ).fit(X, y, questions=ASKED)
    numbered = np.array([first.index(judge) for judge in judges])
    weights = plain(X.astype(np.float32), numbered, answers, 4, units, 8, rate, epochs, 43)
    with torch.no_grad():
        expected = torch.stack(
            [torch.softmax(plain_logits(weights, x, judge)[2], 0) for x, judge in zip(X, numbered, strict=True)]
        )
    found = model.predict_proba(X, [names[judge] for judge in judges])
    assert np.abs(found - expected.numpy()).max() < 1e-6


def test_several_seeds_are_the_mean_of_each():
    X, answers, judges = judged(30, np.random.default_rng(1))
    y = [(row, "all", str(judges[row]), VALUES[answers[row, 2]]) for row in range(30)]
    settings = {"h1": 4, "h2": 3, "recipe": "authors", "batch": 8, "pretraining": 2, "finetuning": 1}
    both = (
        CalibrationNetwork(**settings, seeds=2, seed=5).fit(X, y, questions=ASKED).predict_proba(X, judges.astype(str))
    )
    each = [
        CalibrationNetwork(**settings, seeds=1, seed=seed)
        .fit(X, y, questions=ASKED)
        .predict_proba(X, judges.astype(str))
        for seed in (5, 6)
    ]
    assert both == pytest.approx(np.mean(each, axis=0), abs=1e-12)


def test_batches_are_those_that_numpy_draws_one_after_the_other():
    np.random.seed(43)
    one_by_one = [np.random.choice(20, size=6) for _ in range(5)]
    assert batches(np.arange(20) * 3, 6, 5, 43).tolist() == (np.array(one_by_one) * 3).tolist()


def sweep_on(rows, rng, *, nobody=False):
    X, answers, judges = judged(rows, rng)
    if nobody:
        judges = np.where(judges == 3, -1, judges)
    sheets = AnswerMatrix(np.arange(rows), judges, answers)
    inputs = np.concatenate([X, np.ones((rows, 1))], axis=1)
    parts = np.array_split(rng.permutation(rows), 3)
    train = [np.setdiff1d(np.arange(rows), part) for part in parts]
    table = table_of(inputs, sheets, 3 if nobody else 4, 3)
    return Sweep(table, 2, train, parts, rows, 7), inputs, sheets


@pytest.mark.nightly
def test_the_sweep_gives_for_every_setting_what_one_network_at_a_time_gives():
    sweep, inputs, sheets = sweep_on(50, np.random.default_rng(2))
    family = SettingsGroup(6, 5, 8, (0.001, 0.01), (1, 3), (2, 4))
    found = sweep.proba(family)
    for fold, rate, pre, fine in np.ndindex(3, 2, 2, 2):
        settings = Settings(6, 5, 8, family.rates[rate], family.pretraining[pre], family.finetuning[fine], 7, epoch=50)
        network = fitted(inputs, sheets, sweep.train[fold], 4, 3, 2, settings, torch.float64)
        test = sweep.test[fold]
        with torch.no_grad():
            logits = network(torch.from_numpy(inputs[test]), torch.from_numpy(sheets.judge[test]))[:, 2]
        assert np.abs(found[fold][rate, pre, fine] - torch.softmax(logits, 1).numpy()).max() < 1e-9


def test_a_sweep_in_small_parts_is_the_same_as_in_one(monkeypatch):
    sweep, _, _ = sweep_on(50, np.random.default_rng(3))
    family = SettingsGroup(4, 3, 16, (0.001, 0.01, 0.005), (1, 2, 4), (1, 2))
    whole = sweep.proba(family)
    monkeypatch.setattr("pollex.calibration.network.sweep.WORKING_SET", 1)
    for one, other in zip(whole, sweep.proba(family), strict=True):
        assert one == pytest.approx(other, abs=1e-12)


def test_slopes_by_hand_are_those_of_autograd():
    sweep, inputs, sheets = sweep_on(30, np.random.default_rng(4))
    weights = {name: array.double() for name, array in initial_weights((9, 4, 3), (3, 3), 4, 0).items()}
    stack = NetworkBatch.begun([array[None] for array in with_bias_unit(flat(weights))], [0.01], Penalty())
    rows = np.arange(12)[None]
    stack._learn(sweep.table, batches_of(sweep.table, rows), 1.0 / 36)
    for array in weights.values():
        array.requires_grad_()
    x = torch.from_numpy(inputs[:12])
    judges = torch.from_numpy(sheets.judge[:12])
    for name in ("W1", "W2"):
        x = torch.sigmoid(torch.einsum("si,sih->sh", x, weights[name] + weights[f"{name}a"][judges]))
        x = torch.cat([x, torch.ones((12, 1), dtype=x.dtype)], 1)
    logs = torch.log_softmax(torch.einsum("si,sqio->sqo", x, weights["V"] + weights["Va"][judges]), -1)
    answer = torch.from_numpy(sheets.answer[:12])
    loss = -(logs.gather(2, answer.clamp(min=0)[..., None])[..., 0] * (answer >= 0)).mean()
    names = list(weights)
    slopes = dict(zip(names, torch.autograd.grad(loss, [weights[name] for name in names]), strict=True))
    for found, expected in zip(without_bias_unit(stack.slopes), flat(slopes), strict=True):
        assert found[0].numpy() == pytest.approx(expected.numpy(), abs=1e-14)


def test_nobody_has_no_deltas():
    sweep, _, _ = sweep_on(30, np.random.default_rng(5), nobody=True)
    first = with_bias_unit(flat(initial_weights((9, 4, 3), (3, 3), 4, 0)))
    arrays = [array.double()[None].clone() for array in first]
    for array in arrays[3:]:
        array[:, -1] = 0.0
    stack = NetworkBatch.begun(arrays, [0.01], Penalty())
    for _ in range(3):
        stack.step(sweep.table, batches_of(sweep.table, np.arange(30)[None]), 0.01)
    for array in stack.weights[3:]:
        assert not array[:, -1].any()
    assert not torch.equal(stack.weights[3][:, 0], first[3][0].double())


def test_sheets_are_laid_out_by_judge():
    sheets = AnswerMatrix(np.arange(4), np.array([1, 0, 1, 1]), np.zeros((4, 1), dtype=int))
    table = table_of(np.ones((4, 2)), sheets, 2, 2)
    layout = batches_of(table, np.array([[0, 1, 2], [3, 3, 0]]))
    assert layout.padded.view(2, 2, 3).tolist() == [[[1, 4, 4], [0, 2, 4]], [[4, 4, 4], [3, 3, 0]]]
    assert layout.padded[layout.place].tolist() == [0, 1, 2, 3, 3, 0]
