"""The calibrator that chooses among models and settings by held-out likelihood."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pollex.calibration.estimator import EstimatorState, JudgedEstimator
from pollex.calibration.folds import fit_without_warnings
from pollex.calibration.judgments import UNKNOWN_JUDGE_CODE, Judgments
from pollex.calibration.models import make_model
from pollex.calibration.storage import get_calibrator_state, restore_calibrator_from_state
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints
from pollex.rooms.questionnaire.calibration.crossfit import (
    assign_judged_folds,
    leave_one_group_out,
    predict_out_of_fold,
)
from pollex.rooms.questionnaire.calibration.model_choice import (
    FEW_LABELS_OF_JUDGE,
    Candidate,
    CandidateFigures,
    ChoiceRule,
    ModelChoice,
    find_best_trial,
    fit_mixture_weights,
    list_trials_near_best,
    restore_choice,
    try_candidates,
)

LEAST_MIXTURE_WEIGHT = 0.02
"""A member of a mixture with less is left out."""

BASELINE_CANDIDATES: tuple[Candidate, ...] = (
    ("constant", {}),
    ("judge_mean", {}),
    ("main_alone", {}),
    ("main_alone", {"intercepts": 2.0}),
    ("isotonic", {}),
    ("ridge", {}),
)

ORDINAL_CANDIDATES: tuple[Candidate, ...] = (
    *(("ordinal", {"slopes": None, "scales": None, "shared": shared}) for shared in (300.0, 30.0)),
    *(
        ("ordinal", {"slopes": slopes, "shared": shared, "intercepts": intercepts})
        for slopes in (None, 200.0, 50.0)
        for shared in (100.0, 30.0)
        for intercepts in (8.0, 2.0)
    ),
)

PLAIN_CANDIDATES: tuple[Candidate, ...] = tuple(
    ("ordinal", {"slopes": None, "scales": None, "shared": shared})
    for shared in (300.0, 100.0, 30.0, 10.0)
)
"""Where nobody is known, or judges have few labels each: there is nothing to learn about a judge but an intercept."""

NETWORK_CANDIDATES: tuple[Candidate, ...] = (("network", {"seeds": 3}),)


class Calibrator(JudgedEstimator):
    """Chooses the candidates with the best held-out log-likelihood, and fits them to everything.

    Args:
        candidates: Pairs of a model's name and settings; None: baselines and ordinal models, fewer
            where judges are unknown or have few labels; where the main question has no order, the
            network, which alone needs none.
        folds: Of the cross-validation, which keeps groups together.
        shift: Whether the texts to be predicted come from elsewhere than the training texts. Then
            each fold is one group (a system, a domain), so that a candidate is asked about a group
            that it never saw.
        rule: How to choose; None: `stacked` under shift, else `average`. In nested cross-validation
            on the released synthetic dialogues an average of what can't be told from the best did a
            little better than the best alone, and as well as stacking; in nested leaving out of
            systems stacking did best.
        network: Whether the calibration network is among the candidates in any case: better
            mixtures, slower.
        seed: Of the folds.

    Attributes:
        choice_: What was chosen, and by how much.
        members_: The chosen models, fitted to everything.
        weights_: Their weights; a single one has 1.
    """

    title: ClassVar[str] = "chosen by held-out likelihood"

    choice_: ModelChoice
    members_: tuple[JudgedEstimator, ...]
    weights_: Floats

    def __init__(
        self,
        candidates: Sequence[Candidate] | None = None,
        folds: int = 5,
        shift: bool = False,
        rule: ChoiceRule | None = None,
        network: bool = False,
        seed: int = 0,
    ) -> None:
        self.candidates = candidates
        self.folds = folds
        self.shift = shift
        self.rule = rule
        self.network = network
        self.seed = seed

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        candidates = self._candidates(y)
        if not candidates:
            raise WrongUse(
                "no candidates to choose among",
                hint="give one or more, or None for the usual ones",
            )

        # each candidate predicts the folds that it did not see
        parts, how = self._make_folds(y, groups)
        held_out = []
        for candidate in candidates:
            held_out.append(self._predict_held_out(candidate, X, y, parts))

        main = y.of_question(self.questionnaire_.index())
        trials = try_candidates(candidates, held_out, main.answer, main.row)
        if all(trial.loss is None for trial in trials):
            raise WrongUse(
                f"no candidate could be fitted: {trials[0].refused}",
                hint="give other candidates",
            )

        # the chosen ones are fitted to everything
        rule: ChoiceRule = self.rule or ("stacked" if self.shift else "average")
        weights = _weigh_candidates(rule, trials, held_out, main.answer)
        self.choice_ = ModelChoice(
            how,
            rule,
            find_best_trial(trials),
            tuple(trials),
            weights,
        )
        members = []
        for place in weights:
            members.append(self._fit_candidate(candidates[place], X, y, groups))

        self.members_ = tuple(members)
        self.weights_ = np.array(list(weights.values()))

    def _candidates(self, y: Judgments) -> list[Candidate]:
        if self.candidates is not None:
            return [*self.candidates]

        main = y.of_question(self.questionnaire_.index())
        # judges with few labels can have an intercept of their own and no more
        labels = np.bincount(main.judge[main.judge != UNKNOWN_JUDGE_CODE], minlength=1)
        labels = labels[labels > 0]
        judges_have_labels = len(labels) > 0 and float(np.median(labels)) >= FEW_LABELS_OF_JUDGE
        ordinal = ORDINAL_CANDIDATES if judges_have_labels else PLAIN_CANDIDATES

        with_network = self.network or not self.questionnaire_.scale().ordinal
        network = NETWORK_CANDIDATES if with_network else ()

        return [*BASELINE_CANDIDATES, *ordinal, *network]

    def _make_folds(self, y: Judgments, groups: Ints) -> tuple[list[Ints], str]:
        """Return the rows of each fold, and a description of the folds."""
        judged = np.unique(y.of_question(self.questionnaire_.index()).row)
        present = np.unique(groups[judged])
        if len(present) < 2:
            raise WrongUse(
                f"{len(present)} group of texts to choose a calibrator by",
                hint="give more texts" + (", of two or more origins" if self.shift else ""),
            )

        if self.shift:
            # rows of groups without judgments belong to no group of their own
            judged_groups = np.where(np.isin(groups, present), groups, -1)
            how = f"leaving out one of {len(present)} groups in turn"
            return leave_one_group_out(judged_groups), how
        if self.folds < 2:
            raise WrongUse(f"folds={self.folds}", hint="give two or more")

        count = min(self.folds, len(present))
        rng = np.random.default_rng(self.seed)
        return assign_judged_folds(groups, judged, count, rng), f"{count}-fold cross-validation"

    def _predict_held_out(
        self,
        candidate: Candidate,
        X: Floats,
        y: Judgments,
        parts: Sequence[Ints],
    ) -> Floats | str:
        """Held-out distributions of a candidate, or why there are none."""
        model = make_model(*candidate)
        try:
            return predict_out_of_fold(model, X, y, self.questionnaire_, parts)
        except WrongUse as error:
            return str(error)

    def _fit_candidate(
        self,
        candidate: Candidate,
        X: Floats,
        y: Judgments,
        groups: Ints,
    ) -> JudgedEstimator:
        return fit_without_warnings(
            make_model(*candidate),
            X,
            y,
            self.questionnaire_,
            groups,
        )

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        by_member = np.stack(
            [member._distribution(X, judges, question) for member in self.members_]
        )
        return np.asarray(np.tensordot(self.weights_, by_member, axes=1))

    def _state(self) -> EstimatorState:
        arrays: dict[str, Any] = {"weights": self.weights_}
        members = []
        for place, member in enumerate(self.members_):
            state = get_calibrator_state(member, f"member.{place}.")
            members.append(state.facts)
            arrays |= state.arrays

        return EstimatorState({"choice": self.choice_.facts(), "members": members}, arrays)

    def _restore(self, state: EstimatorState) -> None:
        self.choice_ = restore_choice(state.facts["choice"])
        self.weights_ = state.arrays["weights"]
        members = []
        for place, facts in enumerate(state.facts["members"]):
            members.append(
                restore_calibrator_from_state(
                    EstimatorState(facts, state.arrays), f"member.{place}."
                )
            )

        self.members_ = tuple(members)


def _weigh_candidates(
    rule: ChoiceRule,
    trials: Sequence[CandidateFigures],
    held_out: Sequence[Floats | str],
    answers: Ints,
) -> dict[int, float]:
    """Return the shares of the chosen by their places; `stacked`: in the mixture of the best held-out likelihood.

    Source: Yao, Vehtari, Simpson & Gelman 2018, "Using stacking to average Bayesian predictive
    distributions", doi:10.1214/17-BA1091, eq. 4 with the logarithmic score.
    """
    if rule == "best":
        return {find_best_trial(trials): 1.0}
    if rule == "average":
        close = list_trials_near_best(trials)
        return dict.fromkeys(close, 1 / len(close))

    # `stacked`: the mixture of all that could be fitted
    fitted = {}
    for place, proba in enumerate(held_out):
        if not isinstance(proba, str):
            fitted[place] = proba

    weights = dict(
        zip(
            fitted,
            fit_mixture_weights([*fitted.values()], answers).tolist(),
            strict=True,
        )
    )
    # Of very many alike, none may be left.
    large = {}
    for place, weight in weights.items():
        if weight >= LEAST_MIXTURE_WEIGHT:
            large[place] = weight

    if not large:
        large = {max(weights, key=weights.__getitem__): 1.0}

    total = sum(large.values())
    shares: dict[int, float] = {}
    for place, weight in large.items():
        shares[place] = weight / total

    return shares
