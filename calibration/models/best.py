"""The calibrator that chooses among models and settings by held-out likelihood."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pollex.calibration.crossfit import crossfit, folds_of, learned_quietly, one_group_out
from pollex.calibration.estimator import JudgedEstimator, State
from pollex.calibration.judgments import NOBODY, Judgments
from pollex.calibration.model_choice import (
    FEW,
    Candidate,
    Choice,
    Rule,
    Trial,
    best_of,
    choice_from,
    close_to_best,
    compared,
    mixed,
)
from pollex.calibration.models import model_with
from pollex.calibration.storage import described, rebuilt
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints

LEAST_WEIGHT = 0.02
"""A member of a mixture with less is left out."""

BASELINES: tuple[Candidate, ...] = (
    ("constant", {}),
    ("judge_mean", {}),
    ("main_alone", {}),
    ("main_alone", {"intercepts": 2.0}),
    ("isotonic", {}),
    ("ridge", {}),
)

ORDINAL: tuple[Candidate, ...] = (
    *(("ordinal", {"slopes": None, "scales": None, "shared": shared}) for shared in (300.0, 30.0)),
    *(
        ("ordinal", {"slopes": slopes, "shared": shared, "intercepts": intercepts})
        for slopes in (None, 200.0, 50.0)
        for shared in (100.0, 30.0)
        for intercepts in (8.0, 2.0)
    ),
)

PLAIN: tuple[Candidate, ...] = tuple(
    ("ordinal", {"slopes": None, "scales": None, "shared": shared}) for shared in (300.0, 100.0, 30.0, 10.0)
)
"""Where nobody is known, or judges have few labels each: there is nothing to learn about a judge but an intercept."""

NETWORK: tuple[Candidate, ...] = (("network", {"seeds": 3}),)


class Calibrator(JudgedEstimator):
    """Chooses the candidates with the best held-out log-likelihood, and fits them to everything.

    Args:
        candidates: Pairs of a model's name and settings; None: baselines and ordinal models, fewer where judges are
            unknown or have few labels; where the main question has no order, the network, which alone needs none.
        folds: Of the cross-validation, which keeps groups together.
        shift: Whether the texts to be predicted come from elsewhere than the training texts. Then each fold is one
            group (a system, a domain), so that a candidate is asked about a group that it never saw.
        rule: How to choose; None: `stacked` under shift, else `average`. In nested cross-validation on the released
            synthetic dialogues an average of what can't be told from the best did a little better than the best alone,
            and as well as stacking; in nested leaving out of systems stacking did best.
        network: Whether the calibration network is among the candidates in any case: better mixtures, slower.
        mixture: Whether the rule `best` may take a mixture of candidates where that predicts better, in folds that the
            mixture's weights have not seen.
        seed: Of the folds.

    Attributes:
        choice_: What was chosen, and by how much.
        members_: The chosen models, fitted to everything.
        weights_: Their weights; a single one has 1.
    """

    title: ClassVar[str] = "chosen by held-out likelihood"

    choice_: Choice
    members_: tuple[JudgedEstimator, ...]
    weights_: Floats

    def __init__(
        self,
        candidates: Sequence[Candidate] | None = None,
        folds: int = 5,
        shift: bool = False,
        rule: Rule | None = None,
        network: bool = False,
        mixture: bool = True,
        seed: int = 0,
    ) -> None:
        self.candidates = candidates
        self.folds = folds
        self.shift = shift
        self.rule = rule
        self.network = network
        self.mixture = mixture
        self.seed = seed

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        candidates = self._candidates(y)
        if not candidates:
            raise WrongUse("no candidates to choose among", remedy="give one or more, or None for the usual ones")
        parts, how = self._parts(y, groups)
        held_out = [self._held_out(candidate, X, y, parts) for candidate in candidates]
        heats = CrossValidation(candidates, held_out, y.of_question(self.questionnaire_.index()), parts)
        if all(trial.loss is None for trial in heats.trials):
            raise WrongUse(f"no candidate could be fitted: {heats.trials[0].refused}", remedy="give other candidates")
        rule: Rule = self.rule or ("stacked" if self.shift else "average")
        trials, weights = heats.weighted(rule, mixture=self.mixture)
        self.choice_ = Choice(how, rule, best_of(trials), tuple(trials), weights)
        self.members_ = tuple(self._made(candidates[place], X, y, groups) for place in weights)
        self.weights_ = np.array(list(weights.values()))

    def _candidates(self, y: Judgments) -> list[Candidate]:
        if self.candidates is not None:
            try:
                return [(name, dict(settings)) for name, settings in self.candidates]
            except (TypeError, ValueError) as error:
                raise WrongUse(
                    f"candidates {self.candidates!r}", remedy="give pairs of a name and settings: [('ordinal', {}), …]"
                ) from error
        main = y.of_question(self.questionnaire_.index())
        labels = np.bincount(main.judge[main.judge != NOBODY], minlength=1)
        known = len(labels[labels > 0]) > 0 and float(np.median(labels[labels > 0])) >= FEW
        network = self.network or not self.questionnaire_.scale().ordinal
        return [*BASELINES, *(ORDINAL if known else PLAIN), *(NETWORK if network else ())]

    def _parts(self, y: Judgments, groups: Ints) -> tuple[list[Ints], str]:
        """Return the rows of each fold, and a description of the folds."""
        judged = np.unique(y.of_question(self.questionnaire_.index()).row)
        present = np.unique(groups[judged])
        if len(present) < 2:
            raise WrongUse(
                f"{len(present)} group of texts to choose a calibrator by",
                remedy="give more texts" + (", of two or more origins" if self.shift else ""),
            )
        if self.shift:
            return one_group_out(
                np.where(np.isin(groups, present), groups, -1)
            ), f"leaving out one of {len(present)} groups in turn"
        if self.folds < 2:
            raise WrongUse(f"folds={self.folds}", remedy="give two or more")
        count = min(self.folds, len(present))
        return folds_of(groups, judged, count, np.random.default_rng(self.seed)), f"{count}-fold cross-validation"

    def _held_out(self, candidate: Candidate, X: Floats, y: Judgments, parts: Sequence[Ints]) -> Floats | str:
        """Held-out distributions of a candidate, or why there are none."""
        model = model_with(*candidate)
        try:
            return crossfit(model, X, y, self.questionnaire_, parts)
        except WrongUse as error:
            return str(error)

    def _made(self, candidate: Candidate, X: Floats, y: Judgments, groups: Ints) -> JudgedEstimator:
        return learned_quietly(model_with(*candidate), X, y, self.questionnaire_, groups)

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        each = np.stack([member._distribution(X, judges, question) for member in self.members_])
        return np.asarray(np.tensordot(self.weights_, each, axes=1))

    def _state(self) -> State:
        arrays: dict[str, Any] = {"weights": self.weights_}
        members = []
        for place, member in enumerate(self.members_):
            state = described(member, f"member.{place}.")
            members.append(state.facts)
            arrays |= state.arrays
        return State({"choice": self.choice_.facts(), "members": members}, arrays)

    def _restore(self, state: State) -> None:
        self.choice_ = choice_from(state.facts["choice"])
        self.weights_ = state.arrays["weights"]
        self.members_ = tuple(
            rebuilt(State(facts, state.arrays), f"member.{place}.")
            for place, facts in enumerate(state.facts["members"])
        )


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Held-out predictions of each candidate.

    Attributes:
        candidates: In the order in which they were given.
        held_out: Distributions of the judgments by each `[judgment, option]`, or why there are none.
        main: The judgments, of the main question.
        parts: Rows of each fold.
    """

    candidates: Sequence[Candidate]
    held_out: Sequence[Floats | str]
    main: Judgments
    parts: Sequence[Ints]

    @cached_property
    def trials(self) -> list[Trial]:
        """Trials of the candidates."""
        return compared(self.candidates, self.held_out, self.main.answer, self.main.row)

    def weighted(self, rule: Rule, *, mixture: bool) -> tuple[list[Trial], dict[int, float]]:
        """Return the trials, including a mixture if tried, and the chosen shares.

        Args:
            mixture: Whether the rule `best` may take one.
        """
        if rule == "average":
            close = close_to_best(self.trials)
            return self.trials, dict.fromkeys(close, 1 / len(close))
        if rule == "stacked":
            return self.trials, self.stacked()
        trials = [*self.trials]
        if mixture and (blend := self._blend()) is not None:
            every = [*self.candidates, ("mixture", {})]
            trials = compared(every, [*self.held_out, blend], self.main.answer, self.main.row)
        best = best_of(trials)
        return trials, self.stacked() if best == len(self.candidates) else {best: 1.0}

    def stacked(self) -> dict[int, float]:
        """Compute shares in the mixture with nearly the best held-out likelihood.

        Source: Yao, Vehtari, Simpson & Gelman 2018, "Using stacking to average Bayesian predictive distributions",
        doi:10.1214/17-BA1091, eq. 4 with the logarithmic score.
        """
        places = [place for place, proba in enumerate(self.held_out) if not isinstance(proba, str)]
        weights = mixed(self._probas(), self.main.answer)
        kept = {place: float(weight) for place, weight in zip(places, weights, strict=True) if weight >= LEAST_WEIGHT}
        # Of very many alike, none may be left.
        kept = kept or {places[int(weights.argmax())]: 1.0}
        total = sum(kept.values())
        return {place: weight / total for place, weight in kept.items()}

    def _blend(self) -> Floats | None:
        """Blend distributions with weights that were fitted without the fold; None if impossible."""
        probas = self._probas()
        blend = np.zeros_like(probas[0])
        for rows in self.parts:
            out = np.isin(self.main.row, rows)
            if out.all():
                return None
            seen = mixed([proba[~out] for proba in probas], self.main.answer[~out])
            blend[out] = np.tensordot(seen, np.stack([proba[out] for proba in probas]), axes=1)
        return blend

    def _probas(self) -> list[Floats]:
        return [proba for proba in self.held_out if not isinstance(proba, str)]
