"""Random search over the paper's grid."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pollex.calibration.judgments import AnswerMatrix
from pollex.calibration.model_choice import standard_error
from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.network import search
from pollex.calibration.network.batched import table_of
from pollex.calibration.network.search import (
    BATCHES,
    EPOCHS,
    RATES,
    UNITS,
    FinalComparison,
    Found,
    Limits,
    Trial,
    draws,
    folds_of,
    random_search,
    thinned,
    tried,
)
from pollex.calibration.network.sweep import SettingsGroup, Sweep
from pollex.calibration.network.training import TrainingData
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse

VALUES = (0.0, 1.0)
ASKED = Questionnaire((Scale("kind", VALUES), Scale("thumb", VALUES, asked=False)), "thumb")
TINY = SettingsGroup(3, 3, 8, (0.01,), (1, 2), (1, 3))


def two_sweeps(rows, rng):
    """In other folds of the same sheets, two of a text, and the answers to the main question."""
    answers = rng.integers(2, size=(rows, 2))
    answers[rng.random(rows) < 0.3, 1] = -1
    sheets = AnswerMatrix(np.arange(rows), rng.integers(2, size=rows), answers)
    inputs = np.concatenate([rng.dirichlet([1, 1], rows), np.ones((rows, 1))], axis=1)
    table = table_of(inputs, sheets, 2, 2)
    folds = [folds_of(sheets, np.arange(rows) // 2, rng) for _ in range(2)]
    first, second = (Sweep(table, 1, *each, rows, seed) for seed, each in enumerate(folds))
    return first, second, answers[:, 1]


def search_of(rows, limits, given=None):
    first, second, answers = two_sweeps(rows, np.random.default_rng(4))
    runoff = FinalComparison(second, answers, np.arange(rows) // 2, given or uniform)
    return random_search(first, runoff, limits, np.random.default_rng(5)), runoff


def thumbs(rows, rng):
    X = rng.dirichlet([1, 1], rows)
    return X, [(row, "thumb", "ab"[row % 2], float(X[row, 1] > 0.5)) for row in range(rows)]


def uniform(train, test):
    """Settings that learn nothing: each of two answers is as likely."""
    assert not set(train) & set(test)
    return np.full((len(test), 2), 0.5)


def test_one_group_is_none_to_search_by():
    X, y = thumbs(40, np.random.default_rng(0))
    with pytest.raises(WrongUse, match=r"one group of texts .* → give judgments of more texts"):
        CalibrationNetwork(search="random").fit(X, y, questions=ASKED, groups=[0] * 40)


@pytest.mark.nightly
def test_with_fewer_sheets_than_any_batch_the_settings_stay_as_given():
    X, y = thumbs(20, np.random.default_rng(0))
    quick = {"h1": 3, "h2": 3, "seeds": 2}
    searched = CalibrationNetwork(search="random", **quick).fit(X, y, questions=ASKED)
    assert (searched.search_.trials, searched.search_.best) == ((), None)
    assert "no draw is better" in searched.search_.sentence()
    given = CalibrationNetwork(**quick).fit(X, y, questions=ASKED)
    assert np.array_equal(searched.predict_proba(X), given.predict_proba(X))


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
    sheets = AnswerMatrix(np.array([0, 0, 1, 2, 3, 4, 5, 5]), np.zeros(8, dtype=int), np.zeros((8, 1), dtype=int))
    groups = np.array([0, 0, 1, 1, 2, 2])
    train, test = folds_of(sheets, groups, np.random.default_rng(2))
    assert sorted(np.concatenate(test).tolist()) == list(range(8))
    for inside, outside in zip(train, test, strict=True):
        assert not set(groups[sheets.row[inside]]) & set(groups[sheets.row[outside]])
        assert len(inside) + len(outside) == 8


def test_a_trial_has_the_mean_log_likelihood_of_the_answers_held_out():
    sweep, _, answers = two_sweeps(30, np.random.default_rng(3))
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


def test_what_takes_too_long_is_passed_over(monkeypatch):
    families = [replace(TINY, h1=units) for units in (3, 4, 5, 6)]
    monkeypatch.setattr(search, "draws", lambda *_: families)
    found, _ = search_of(40, Limits(4, 1e-9, 1.0))
    assert found.passed_over == 3
    assert "3 draws would have taken too long" in found.sentence()
    assert len(found.trials) == len(TINY.pretraining) * len(TINY.finetuning)
    assert found.given == pytest.approx(math.log(0.5))


TRIALS = (Trial(TINY, -0.6), Trial(replace(TINY, batch=16), -0.4))


def test_the_best_draw_wins_by_more_than_a_standard_error_only():
    wins = Found(given=-0.6, again=-0.5, error=0.09, trials=TRIALS, passed_over=0, seconds=7.0)
    assert wins.best == TRIALS[1]
    assert wins.sentence() == (
        f"{TRIALS[1].family.name}, log-loss 0.500, those given log-loss 0.600, the difference ± 0.090, "
        "in new folds of the same texts that chose it; by lot, 2 settings of the network tried in 7 s"
    )
    level = replace(wins, error=0.11)
    assert level.best is None
    assert level.sentence() == (
        "the given settings, log-loss 0.600: no draw is better by more than a standard error; "
        "the best of them log-loss 0.500, the difference ± 0.110, in new folds of the same texts that chose it; "
        "by lot, 2 settings of the network tried in 7 s"
    )
    assert replace(wins, again=-0.7).best is None


def test_settings_given_are_tried_in_the_folds_of_the_runoff_without_what_is_held_out():
    seen = []
    _, _, answers = two_sweeps(40, np.random.default_rng(4))

    def given(train, test):
        seen.append((train.tolist(), test.tolist()))
        proba = np.full((len(test), 2), np.nan)
        known = answers[test] >= 0
        proba[known] = np.eye(2)[answers[test][known]] * 0.6 + 0.2
        return proba

    found, runoff = search_of(40, Limits(0, 1.0, 1.0), given)
    assert found.given == pytest.approx(math.log(0.8))
    assert [train for train, _ in seen] == [rows.tolist() for rows in runoff.sweep.train]
    assert [test for _, test in seen] == [rows.tolist() for rows in runoff.sweep.test]


@pytest.mark.nightly
def test_the_best_draw_runs_again_in_other_folds_with_networks_that_begin_otherwise():
    found, runoff = search_of(40, Limits(1, 1e-9, 1.0))
    best = max(found.trials, key=lambda trial: trial.log_likelihood).family
    each = [replace(runoff.sweep, seed=seed).proba(best) for seed in (1, 2, 3)]
    logs, texts = [], []
    for fold, test in enumerate(runoff.sweep.test):
        for place, sheet in enumerate(test):
            if (answer := runoff.answers[sheet]) >= 0:
                logs.append(math.log(np.mean([run[fold][0, 0, 0, place, answer] for run in each])))
                texts.append(sheet // 2)
    assert found.again == pytest.approx(np.mean(logs))
    assert found.error == pytest.approx(standard_error(np.array(logs) - math.log(0.5), np.array(texts)))


def test_the_folds_of_the_runoff_are_others_than_the_draws(monkeypatch):
    seen = []

    def kept(sweep, runoff, limits, rng):
        seen.append((sweep, runoff.sweep))
        return random_search(sweep, runoff, limits, rng)

    monkeypatch.setattr(search, "random_search", kept)
    X, y = thumbs(40, np.random.default_rng(0))
    quick = {"h1": 3, "h2": 3, "pretraining": 1, "finetuning": 1, "seeds": 1, "draws": 0}
    CalibrationNetwork(search="random", **quick).fit(X, y, questions=ASKED)
    ((draws_sweep, runoff_sweep),) = seen
    assert [set(rows) for rows in draws_sweep.test] != [set(rows) for rows in runoff_sweep.test]
    assert draws_sweep.seed != runoff_sweep.seed


def test_thinned_inputs_hide_whole_questions_and_say_so():
    blocks = np.array([0, 0, 1, 1])
    inputs = np.concatenate([np.full((200, 4), 0.5), np.zeros((200, 2)), np.ones((200, 1))], axis=1)
    found = thinned(
        TrainingData(inputs, AnswerMatrix(*(np.zeros(1, dtype=int),) * 3), blocks), 1.0, np.random.default_rng(6)
    )
    assert np.array_equal(found[:, :4] == 0, found[:, 4:6][:, blocks] == 1)
    assert 0.3 < found[:, 4:6].mean() < 0.7
    assert (found[:, 6] == 1).all()
    assert not inputs[:, 4:6].any()


@pytest.mark.nightly
def test_a_network_with_settings_that_were_searched_predicts_and_keeps_its_state():
    rng = np.random.default_rng(7)
    X, y = thumbs(64, rng)
    poor = {"h1": 3, "h2": 2, "pretraining": 1, "finetuning": 1, "rate": 1e-6, "finetuning_rate": 1e-6}
    limited = {"search": "random", "draws": 3, "search_seconds": 600.0, "seeds": 2, "seed": 3}
    model = CalibrationNetwork(**poor, **limited).fit(X, y, questions=ASKED)
    assert model.search_.best in model.search_.trials
    assert model.tuned_.W1.shape[0] == 2
    assert model.tuned_.W1.shape[-1] == model.search_.best.family.h1
    proba = model.predict_proba(X, ["a", None] * 32)
    assert proba.sum(axis=1) == pytest.approx(np.ones(64))
    back = CalibrationNetwork.from_state(model.get_params(), ASKED, model.state())
    assert np.array_equal(back.predict_proba(X, ["a", None] * 32), proba)
