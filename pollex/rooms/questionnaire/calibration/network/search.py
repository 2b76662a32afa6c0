"""Random search over the network's settings, within a time that a user waits.

The best draw is that of the highest held-out log-likelihood of the main question. Among many that
is luck, too: of how networks begin, of the folds and of the texts. So networks that begin anew run,
in other folds, against as many with the settings that were there before the search. As the texts
are the same, they win only by more than a standard error.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterSampler

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.judgments import Judgments
from pollex.calibration.paired import compute_clustered_standard_error_of_mean
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints
from pollex.rooms.questionnaire.calibration.crossfit import assign_judged_folds, predict_out_of_fold
from pollex.rooms.questionnaire.calibration.model_choice import compute_clipped_log_losses

HIDDEN_UNITS = [10, 25, 50, 100]
SETTINGS_GRID = {
    "h1": HIDDEN_UNITS,
    "h2": HIDDEN_UNITS,
    "rate": [0.003, 0.01, 0.03, 0.1],
    "pretraining": [20, 40, 80],
    "finetuning": [20, 40, 80],
    "decay": [0.01, 0.03, 0.1, 0.3],
    "shrinkage": [1.0, 4.0, 16.0],
}
"""The paper's units, and around the defaults what the recipe `shrunk` has in place of its batches and epochs."""

SEARCH_FOLDS = 5
NETWORKS_A_DRAW = 3
"""Networks that are averaged, of either side, when the best draw runs against the settings given."""


@dataclass(frozen=True)
class DrawnSettings:
    """Drawn settings and how they did.

    Attributes:
        log_likelihood: Mean over held-out answers to the main question, in nats.
    """

    settings: Mapping[str, object]
    log_likelihood: float

    @property
    def name(self) -> str:
        """On one line."""
        return " ".join(f"{name}={value:g}" for name, value in self.settings.items())


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    Attributes:
        baseline: Held-out log-likelihood of several networks' mean, with the settings that were given.
        again: The same of the trial with the highest log-likelihood; None where there are no
            trials.
        error: Standard error of the difference between the two, over texts.
        trials: All, in the order that they were tried.
        passed_over: How many draws would have taken longer than the time left.
        seconds: What the search took.
    """

    baseline: float
    again: float | None
    error: float
    trials: tuple[DrawnSettings, ...]
    passed_over: int
    seconds: float

    @property
    def best(self) -> DrawnSettings | None:
        """The best trial; None unless it is significantly better than the given settings."""
        if self.again is None or self.again - self.baseline <= self.error:
            return None
        return find_best_draw(self.trials)

    @property
    def better_settings(self) -> Mapping[str, object] | None:
        """Settings of the best trial; None where those given are as good."""
        return None if self.best is None else self.best.settings

    def sentence(self) -> str:
        """Describe the search and its result."""
        late = ""
        if self.passed_over:
            late = f", {self.passed_over} draws would have taken too long"

        if len(self.trials) == 1:
            settings = "1 setting"
        else:
            settings = f"{len(self.trials)} settings"

        tried = f"by lot, {settings} of the network tried in {self.seconds:.0f} s{late}"
        return f"{self._describe_choice()}; {tried}"

    def _describe_choice(self) -> str:
        least = f"log-loss {-self.baseline:.3f}"
        if self.again is None:
            return f"the given settings, {least}: no draw is better"

        apart = f"the difference ± {self.error:.3f}, in new folds of the same texts that chose it"
        if self.best is None:
            best = f"the best of them log-loss {-self.again:.3f}, {apart}"
            return f"the given settings, {least}: no draw is better by more than a standard error; {best}"
        return f"{self.best.name}, log-loss {-self.again:.3f}, those given {least}, {apart}"


def find_best_draw(trials: tuple[DrawnSettings, ...]) -> DrawnSettings:
    """Return the trial with the highest log-likelihood."""
    return max(trials, key=lambda trial: trial.log_likelihood)


def search_settings(
    model: JudgedEstimator,
    X: Floats,
    y: Judgments,
    groups: Ints,
    draws: int,
    seconds: float,
) -> SearchResult:
    """Try random settings, the quick ones first, and compare the best with those given, in other folds.

    What fits into the time depends on the machine; where all draws do, the seed alone decides.

    Args:
        model: Has its questionnaire, the settings given, and a seed.
        groups: What stays together `[row]`.
        draws: How many at most.
        seconds: For the search and the training after it.

    Raises:
        WrongUse: There is one group only.
    """
    begun = time.monotonic()
    # the folds of the search, and others in which the best draw runs against the settings given
    settings = model.get_params(deep=False)
    main = y.of_question(model.questionnaire_.index())
    rng = np.random.default_rng(settings["seed"])
    count = min(SEARCH_FOLDS, len(np.unique(groups[main.row])))
    if count < 2:
        raise WrongUse(
            "one group of texts only to search a network's settings by",
            hint="give judgments of more texts, or name a model without settings to search for (search=None)",
            option={"model": "judge_mean"},
        )

    first, second = (assign_judged_folds(groups, main.row, count, rng) for _ in range(2))

    def log_likelihoods(
        drawn: Mapping[str, object],
        folds: list[Ints],
        seed: int,
        seeds: int = NETWORKS_A_DRAW,
    ) -> Floats:
        network = clone(model).set_params(
            search=None,
            seeds=seeds,
            seed=seed,
            **drawn,
        )
        return -compute_clipped_log_losses(
            predict_out_of_fold(network, X, y, model.questionnaire_, folds), main.answer
        )

    # the settings that were given, in the other folds
    baseline = log_likelihoods({}, second, settings["seed"] + 1)
    # This draw, the best one again, and the training on everything.
    after = 1 + NETWORKS_A_DRAW + settings["seeds"] / (count - 1)
    took = 0.0
    trials = list[DrawnSettings]()
    sampled = ParameterSampler(SETTINGS_GRID, draws, random_state=settings["seed"])
    drawn = []
    for sample in sampled:
        drawn.append({name: sample[name] for name in SETTINGS_GRID})
    # the quick ones first
    drawn.sort(
        key=lambda draw: (draw["pretraining"] + draw["finetuning"]) * draw["h1"] * draw["h2"]
    )

    for draw in drawn:
        before = time.monotonic()
        if trials and before - begun + after * took > seconds:
            break
        likelihoods = log_likelihoods(draw, first, settings["seed"], 1)
        trials.append(DrawnSettings(draw, float(likelihoods.mean())))
        took = max(took, time.monotonic() - before)

    passed_over = len(drawn) - len(trials)
    tried = tuple(trials)
    # the best draw again, with networks that begin anew
    again = baseline
    if tried:
        again = log_likelihoods(
            find_best_draw(tried).settings,
            second,
            settings["seed"] + 1,
        )

    error = compute_clustered_standard_error_of_mean(again - baseline, main.row)
    mean = float(again.mean()) if tried else None
    return SearchResult(
        float(baseline.mean()),
        mean,
        error,
        tried,
        passed_over,
        time.monotonic() - begun,
    )
