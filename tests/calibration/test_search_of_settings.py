"""Random search over the paper's grid."""

import math

import numpy as np
import pytest

from pollex.calibration.grid import BATCHES, EPOCHS, RATES, UNITS
from pollex.calibration.layout import table_of
from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.calibration.search import Limits, draws, folds_of, random_search, thinned, tried
from pollex.calibration.sheets import Sheets
from pollex.calibration.sweep import Family, Sweep
from pollex.calibration.training import Lesson
from pollex.errors import WrongUse

VALUES = (0.0, 1.0)
ASKED = Questionnaire((Scale("kind", VALUES), Scale("thumb", VALUES, asked=False)), "thumb")
TINY = Family(3, 3, 8, (0.01,), (1, 2), (1, 3))


def sweep_on(rows, rng):
    answers = rng.integers(2, size=(rows, 2))
    answers[rng.random(rows) < 0.3, 1] = -1
    sheets = Sheets(np.arange(rows), rng.integers(2, size=rows), answers)
    train, test = folds_of(sheets, np.arange(rows) // 2, rng)
    inputs = np.concatenate([rng.dirichlet([1, 1], rows), np.ones((rows, 1))], axis=1)
    return Sweep(table_of(inputs, sheets, 2, 2), 1, train, test, rows, 0), answers[:, 1]


def thumbs(rows, rng):
    X = rng.dirichlet([1, 1], rows)
    return X, [(row, "thumb", "ab"[row % 2], float(X[row, 1] > 0.5)) for row in range(rows)]


def test_fewer_sheets_than_any_batch_are_refused():
    X, y = thumbs(20, np.random.default_rng(0))
    with pytest.raises(WrongUse, match="20 filled-in sheets"):
        CalibrationNetwork(search="random").fit(X, y, questions=ASKED)


@pytest.mark.parametrize("other", [{"recipe": "authors"}, {"heads": "ordinal"}, {"personal": "none"}])
def test_what_a_search_does_not_know_is_refused(other):
    X, y = thumbs(40, np.random.default_rng(0))
    with pytest.raises(WrongUse, match="search"):
        CalibrationNetwork(search="random", **other).fit(X, y, questions=ASKED)


def test_draws_are_of_the_grid_none_twice_and_no_batch_larger_than_the_data():
    found = draws(60, 100, np.random.default_rng(1))
    assert len(found) == len({(f.h1, f.h2, f.batch, f.rates) for f in found}) == 60
    assert {f.batch for f in found} == {32, 64}
    assert all(f.h1 in UNITS and f.h2 in UNITS and f.rates[0] in RATES and f.pretraining == EPOCHS for f in found)
    assert {f.batch for f in draws(400, 660, np.random.default_rng(1))} == set(BATCHES)


def test_folds_keep_groups_together_and_cover_every_sheet_once():
    sheets = Sheets(np.array([0, 0, 1, 2, 3, 4, 5, 5]), np.zeros(8, dtype=int), np.zeros((8, 1), dtype=int))
    groups = np.array([0, 0, 1, 1, 2, 2])
    train, test = folds_of(sheets, groups, np.random.default_rng(2))
    assert sorted(np.concatenate(test).tolist()) == list(range(8))
    for inside, outside in zip(train, test, strict=True):
        assert not set(groups[sheets.row[inside]]) & set(groups[sheets.row[outside]])
        assert len(inside) + len(outside) == 8


def test_a_trial_has_the_mean_log_likelihood_of_the_answers_held_out():
    sweep, answers = sweep_on(30, np.random.default_rng(3))
    trials = list(tried(sweep, answers, TINY))
    assert [(t.family.pretraining, t.family.finetuning) for t in trials] == [
        ((1,), (1,)), ((1,), (3,)), ((2,), (1,)), ((2,), (3,))
    ]  # fmt: skip
    logs = [
        math.log(proba[0, 1, 0, place, answers[sheet]])
        for proba, test in zip(sweep.proba(TINY), sweep.test, strict=True)
        for place, sheet in enumerate(test)
        if answers[sheet] >= 0
    ]
    assert len(logs) == (answers >= 0).sum()
    assert trials[2].log_likelihood == pytest.approx(np.mean(logs))


def test_the_best_trial_wins_and_what_takes_too_long_is_passed_over():
    sweep, answers = sweep_on(40, np.random.default_rng(4))
    found = random_search(sweep, answers, Limits(4, 1e-9, 1.0), np.random.default_rng(5))
    assert found.passed_over == 3
    assert len(found.trials) == len(EPOCHS) ** 2
    assert found.best.log_likelihood == max(trial.log_likelihood for trial in found.trials)


def test_thinned_inputs_hide_whole_questions_and_say_so():
    blocks = np.array([0, 0, 1, 1])
    inputs = np.concatenate([np.full((200, 4), 0.5), np.zeros((200, 2)), np.ones((200, 1))], axis=1)
    found = thinned(Lesson(inputs, Sheets(*(np.zeros(1, dtype=int),) * 3), blocks), 1.0, np.random.default_rng(6))
    assert np.array_equal(found[:, :4] == 0, found[:, 4:6][:, blocks] == 1)
    assert 0.3 < found[:, 4:6].mean() < 0.7
    assert (found[:, 6] == 1).all()
    assert not inputs[:, 4:6].any()


def test_a_network_with_settings_that_were_searched_predicts_and_keeps_its_state():
    rng = np.random.default_rng(7)
    X, y = thumbs(64, rng)
    model = CalibrationNetwork(search="random", draws=2, search_seconds=2.0, seeds=2, seed=3).fit(X, y, questions=ASKED)
    tried_rates = {trial.family.rates for trial in model.search_.trials}
    assert model.search_.best.family.rates in tried_rates
    assert len(model.tuned_.V) == 2
    proba = model.predict_proba(X, ["a", None] * 32)
    assert proba.sum(axis=1) == pytest.approx(np.ones(64))
    back = CalibrationNetwork.from_state(model.get_params(), ASKED, model.state())
    assert np.array_equal(back.predict_proba(X, ["a", None] * 32), proba)
