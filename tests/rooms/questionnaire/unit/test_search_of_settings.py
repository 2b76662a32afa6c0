"""Random search over the network's settings."""

from dataclasses import replace

import numpy as np
import pytest

from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.rooms.questionnaire.calibration.crossfit import assign_judged_folds
from pollex.rooms.questionnaire.calibration.network import search
from pollex.rooms.questionnaire.calibration.network.search import DrawnSettings, SearchResult

VALUES = (0.0, 1.0)
ASKED = Questionnaire((Scale("kind", VALUES), Scale("thumb", VALUES, asked=False)), "thumb")
QUICK = {"h1": 3, "h2": 3, "pretraining": 1, "finetuning": 1, "seeds": 2}
TINY = {"h1": [2, 3], "h2": [2], "rate": [0.1, 0.2], "pretraining": [20], "finetuning": [20, 30]}
ROWS = 40


@pytest.fixture(autouse=True)
def small_search(monkeypatch):
    for name, value in {"SETTINGS_GRID": TINY, "SEARCH_FOLDS": 2, "NETWORKS_A_DRAW": 2}.items():
        monkeypatch.setattr(search, name, value)


def searched(groups=None, **settings):
    """X, and a network whose settings were searched."""
    X = np.random.default_rng(7).dirichlet([1, 1], ROWS)
    y = [(row, "thumb", "ab"[row % 2], float(X[row, 1] > 0.5)) for row in range(ROWS)]
    model = CalibrationNetwork(**{"search": "random"} | QUICK | settings)
    return X, model.fit(X, y, questions=ASKED, groups=groups)


def test_one_group_and_the_authors_recipe_are_none_to_search_by():
    with pytest.raises(WrongUse, match=r"one group of texts .* → give judgments of more texts"):
        searched([0] * ROWS)
    with pytest.raises(WrongUse, match="search"):
        searched(recipe="authors")


def test_without_a_draw_the_settings_stay_as_given_and_what_takes_too_long_is_passed_over():
    X, model = searched(draws=0)
    assert (model.search_.trials, model.search_.best) == ((), None)
    assert "no draw is better" in model.search_.sentence()
    assert np.array_equal(model.predict_proba(X), searched(search=None)[1].predict_proba(X))
    found = searched(draws=4, search_seconds=1e-9)[1].search_
    assert (len(found.trials), found.passed_over) == (1, 3)
    assert "3 draws would have taken too long" in found.sentence()


def test_folds_keep_groups_together_and_each_has_judged_rows():
    groups = np.array([0, 0, 1, 1, 2, 2, 3])
    judged = np.array([0, 2, 4, 5])
    folds = assign_judged_folds(groups, judged, 3, np.random.default_rng(2))
    assert sorted(np.concatenate(folds).tolist()) == list(range(7))
    assert all(np.isin(judged, rows).any() for rows in folds)
    assert len({tuple(groups[rows][groups[rows] < 3]) for rows in folds}) == 3


def test_the_best_draw_wins_by_more_than_a_standard_error_only():
    trials = (
        DrawnSettings({"h1": 3, "rate": 0.01}, -0.6),
        DrawnSettings({"h1": 16, "rate": 0.1}, -0.4),
    )
    wins = SearchResult(
        baseline=-0.6, again=-0.5, error=0.09, trials=trials, passed_over=0, seconds=7.0
    )
    assert wins.best == trials[1]
    assert wins.sentence() == (
        "h1=16 rate=0.1, log-loss 0.500, those given log-loss 0.600, the difference ± 0.090, "
        "in new folds of the same texts that chose it; by lot, 2 settings of the network tried in 7 s"
    )
    level = replace(wins, error=0.11)
    assert level.best is replace(wins, again=-0.7).best is None
    assert level.sentence().startswith(
        "the given settings, log-loss 0.600: no draw is better by more than a standard"
    )


def test_the_best_draw_runs_again_in_other_folds_with_networks_that_begin_otherwise(monkeypatch):
    seen = []

    def crossfit(model, X, y, questions, folds):
        seen.append(
            (
                model.get_params()["seed"],
                model.get_params()["h1"],
                [rows.tolist() for rows in folds],
            )
        )
        return np.full((len(y), 2), 0.5)

    monkeypatch.setattr(search, "predict_out_of_fold", crossfit)
    found = searched(draws=3, seed=5)[1].search_
    given, *draws, again = seen
    assert [seed for seed, *_ in seen] == [6, 5, 5, 5, 6]
    assert given[1] == 3
    assert given[2] == again[2] != draws[0][2] == draws[2][2]
    assert (found.baseline, found.again) == pytest.approx((np.log(0.5), np.log(0.5)))


def test_a_network_with_settings_that_were_searched_predicts_and_keeps_its_state():
    X, model = searched(draws=2, search_seconds=600.0, seed=3, rate=1e-6, finetuning_rate=0.05)
    assert model.search_.best in model.search_.trials
    assert model.get_params()["h1"] == 3
    assert (model.tuned_.W1.shape[0], model.tuned_.W1.shape[-1]) == (
        2,
        model.search_.best.settings["h1"],
    )
    proba = model.predict_proba(X, ["a", None] * 20)
    back = CalibrationNetwork.from_state(model.get_params(), ASKED, model.state())
    assert np.array_equal(back.predict_proba(X, ["a", None] * 20), proba)
