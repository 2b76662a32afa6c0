"""The calibration network."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.base import clone

from pollex.calibration.estimator import EstimatorState, JudgedEstimator
from pollex.calibration.judgments import AnswerMatrix, Judgments, make_answer_matrix
from pollex.calibration.network.weights import WeightArray, Weights
from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from pollex.calibration.hooks import SearchOutcome

JudgeSpecificLayers = Literal["all", "heads", "none"]
HeadKind = Literal["softmax", "ordinal"]
SHRUNK_RECIPE_NAME = "shrunk"
"""The core's recipe: deltas of judges begin at 0, and are held near it."""

PENALTY_FOLDS = 5
"""By which λ is chosen."""

MIN_START_PROBABILITY = 1e-9
"""Of a probability that a network begins with."""


class CalibrationNetwork(JudgedEstimator):
    """Two shared layers and a head for each question, with deltas for every judge.

    Pre-trained on all questions, then fine-tuned on the main one; the other questions are answered
    with the weights of the first phase. Several networks that begin differently are trained side by
    side, and their probabilities averaged. With nothing missing these are equations 3–5 of the
    paper; a missing answer is 0 in x and 1 in a mask beside it.

    Source: Hashemi et al. 2024, doi:10.18653/v1/2024.acl-long.745.

    Args:
        h1: Units of the first layer.
        h2: Of the second.
        heads: `softmax`, or `ordinal`: cumulative link for questions whose options are ordered.
        personal: Where judges have deltas: `all`, only in the `heads` (for many judges with few
            answers each), `none`.
        recipe: `shrunk`: deltas begin at 0 and are held near it, each step is on all data; or a
            recipe of a room, which says which of these settings it knows.
        batch: Sheets a step, for recipes of rooms.
        pretraining: Steps on all questions.
        finetuning: Likewise on the main one.
        rate: Step size of Adam.
        finetuning_rate: The same in the second phase.
        decay: Penalty on shared weights: the precision of a normal prior.
        shrinkage: Likewise on judges' deltas.
        dropout: Share of texts that are seen with some questions hidden; 0 where none will ever be
            missing.
        search: A room's search for settings; None: they are as given.
        draws: How many a search tries.
        search_seconds: What would make the search and the training after it longer than this is
            passed over.
        start: What the network begins as, and is shrunk to; not yet fitted. With one, of the
            settings above h1 and h2 count, and judges have deltas in the heads alone: users have a
            label or two each.
        strengths: λ to choose from, how strongly it is shrunk to its start; see `network.begun`.
        seeds: How many networks are averaged.
        seed: Of all that is random.

    Attributes:
        tuned_: Weights that answer the main question.
        general_: Weights that answer the others.
        search_: What a search tried and found, if there was one; no part of the state.
        starts_: What it began as, fitted, by learned question; empty without a start.
        strength_: λ that was chosen, of those to choose from; None without a start, and in models
            of before.
    """

    title = "Calibration network"
    counts = frozenset({"h1", "h2", "batch", "seeds"})

    tuned_: Weights
    general_: Weights
    learned_: Ints
    search_: SearchOutcome
    starts_: tuple[JudgedEstimator, ...]
    strength_: float | None = None

    def __init__(
        self,
        h1: int = 10,
        h2: int = 10,
        heads: HeadKind = "softmax",
        personal: JudgeSpecificLayers = "all",
        recipe: str = SHRUNK_RECIPE_NAME,
        batch: int = 32,
        pretraining: int = 40,
        finetuning: int = 40,
        rate: float = 0.03,
        finetuning_rate: float = 0.02,
        decay: float = 0.03,
        shrinkage: float = 4.0,
        dropout: float = 0.3,
        search: str | None = None,
        draws: int = 20,
        search_seconds: float = 60.0,
        start: JudgedEstimator | None = None,
        strengths: Sequence[float] = (5.0, 20.0, 80.0),
        seeds: int = 10,
        seed: int = 0,
    ) -> None:
        self.h1 = h1
        self.h2 = h2
        self.heads = heads
        self.personal = personal
        self.recipe = recipe
        self.batch = batch
        self.pretraining = pretraining
        self.finetuning = finetuning
        self.rate = rate
        self.finetuning_rate = finetuning_rate
        self.decay = decay
        self.shrinkage = shrinkage
        self.dropout = dropout
        self.search = search
        self.draws = draws
        self.search_seconds = search_seconds
        self.start = start
        self.strengths = strengths
        self.seeds = seeds
        self.seed = seed

    def inputs(self, X: Floats) -> Floats:
        """Return the input of the first layer `[row, columns + asked + 1]`.

        Columns are x, the mask of missing questions, and the bias.

        Recipes of rooms have no mask.
        """
        missing = ~self.questionnaire_.present(X)
        mask = missing if self.recipe == SHRUNK_RECIPE_NAME else missing[:, :0]
        return np.concatenate([np.nan_to_num(X), mask, np.ones((len(X), 1))], axis=1)

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        if not self.dropout < 1:
            raise WrongUse(
                f"dropout={self.dropout:g} leaves no question to learn from",
                hint="give less than 1",
            )

        # one sheet for each text and judge, with the answers to every question there is
        self.learned_ = np.unique(y.question)
        sheets = make_answer_matrix(y, self.learned_)
        inputs = self.inputs(X)[sheets.row]
        self.starts_ = ()

        if self.start is not None:
            self._learn_from_start(X, y, groups, inputs, sheets)
        elif self.search is not None:
            self._learn_by_search(X, y, groups, inputs, sheets)
        elif self.recipe != SHRUNK_RECIPE_NAME:
            self._learn_by_recipe(inputs, sheets)
        else:
            self.general_, self.tuned_ = self._train_shrunk(inputs, sheets)

    def _learn_from_start(
        self,
        X: Floats,
        y: Judgments,
        groups: Ints,
        inputs: Floats,
        sheets: AnswerMatrix,
    ) -> None:
        """Learn what the start misses, in networks that begin as it does."""
        from pollex.calibration.folds import assign_groups_to_folds  # fitting alone needs it
        from pollex.calibration.network import begun

        # each fold has a network, and the start is fitted without it
        parts = min(PENALTY_FOLDS, self.seeds, len(np.unique(groups)))
        rng = np.random.default_rng(self.seed)
        if parts > 1:
            folds = assign_groups_to_folds(groups, parts, rng)
        else:
            folds = [np.array([], dtype=np.int64)]

        begins = []
        for fold in folds:
            begins.append(self._fit_starts(X, y, fold, sheets)[1])

        # what stays is fitted to everything
        self.starts_ = self._fit_starts(X, y, np.array([], dtype=np.int64), sheets)[0]
        # fold of each row `[row]`
        fold_of = np.zeros(len(X), dtype=np.int64)
        for number, fold in enumerate(folds):
            fold_of[fold] = number

        lesson = begun.StackData(
            inputs,
            sheets,
            np.stack(begins),
            fold_of[sheets.row],
            self.learned_options(),
            self.main_place(),
            len(self.judges_),
        )
        self.general_, self.tuned_, self.strength_ = begun.train_networks_choosing_penalty(
            lesson,
            self.questionnaire_,
            (self.h1, self.h2),
            tuple(self.strengths),
            self.seeds,
            self.seed,
        )

    def _fit_starts(
        self,
        X: Floats,
        y: Judgments,
        without: Ints,
        sheets: AnswerMatrix,
    ) -> tuple[tuple[JudgedEstimator, ...], Floats]:
        """Fit the start for each question without some rows.

        Returns these models, and their log-probabilities of the sheets `[sheet, question, option]`.
        """
        from pollex.calibration.folds import (  # as above
            fit_without_warnings,
            take_rows_with_judgments,
        )

        # log-probabilities `[sheet, question, option]`, of each question by its own model
        options = self.learned_options()
        training_rows = np.setdiff1d(np.arange(len(X)), without)
        names = np.array([*self.judges_, None], dtype=object)[sheets.judge]
        logs = np.zeros((len(sheets), len(options), int(options.max())))
        starts = []
        for place, number in enumerate(self.learned_):
            questions = replace(
                self.questionnaire_,
                main=self.questionnaire_.scales[number].question,
            )
            rows, labels = take_rows_with_judgments(X, y, training_rows)
            # a question with a few answers, all in this fold
            if not len(labels.of_question(number)):
                logs[:, place, : options[place]] = -np.log(options[place])
                continue
            starts.append(
                fit_without_warnings(
                    self._start_of(number),
                    rows,
                    labels,
                    questions,
                    None,
                )
            )
            logs[:, place, : options[place]] = _clip_log_probabilities(
                starts[-1].predict_proba(X[sheets.row], names.tolist())
            )

        return tuple(starts), logs

    def _start_of(self, question: int) -> JudgedEstimator:
        """Return what it begins as for a question, not fitted: shares of the answers where these have no order."""
        if self.start is not None and self.questionnaire_.scales[question].ordinal:
            start: JudgedEstimator = clone(self.start)
            return start

        from pollex.calibration.models.constant import Constant  # few questions need it

        return Constant()

    def _train_shrunk(self, inputs: Floats, sheets: AnswerMatrix) -> tuple[Weights, Weights]:
        """Return the weights after pre-training, and after fine-tuning."""
        # PyTorch takes seconds to load, and predictions don't need it.
        from pollex.calibration.network import training

        # networks of all seeds begin alike in shape, and at the answers' shares
        heads = training.make_output_heads(sheets, self.learned_options(), self._ordinal())
        judge_count = len(self.judges_)
        judges = {
            "all": (judge_count, judge_count),
            "heads": (0, judge_count),
            "none": (0, 0),
        }[self.personal]
        first = training.initialize_weights(
            (inputs.shape[1] - 1, self.h1, self.h2),
            judges,
            heads,
            self.seeds,
            self.seed,
        )
        sizes = []
        for scale in self.questionnaire_.asked:
            sizes.append(len(scale.values))

        # pre-training learns all questions, fine-tuning the main one from there
        lesson = training.TrainingData(
            inputs,
            sheets,
            np.repeat(np.arange(len(sizes)), sizes),
        )
        penalties = self.decay, self.shrinkage, self.dropout
        plan = training.TrainingConfig(self.pretraining, self.rate, *penalties)
        general = training.train_network_weights(first, lesson, plan, self.seed + 1)
        plan = training.TrainingConfig(
            self.finetuning,
            self.finetuning_rate,
            *penalties,
        )
        main = self.main_place()

        return general, training.train_network_weights(
            general.only(main), lesson.only(main), plan, self.seed + 2
        )

    def _learn_by_recipe(self, inputs: Floats, sheets: AnswerMatrix) -> None:
        """Learn as a recipe of a room does it."""
        from pollex.calibration.hooks import get_training_recipe  # such fits alone need it

        self.general_ = get_training_recipe(self.recipe).train(self, inputs, sheets)
        self.tuned_ = self.general_.only(self.main_place())

    def _learn_by_search(
        self,
        X: Floats,
        y: Judgments,
        groups: Ints,
        inputs: Floats,
        sheets: AnswerMatrix,
    ) -> None:
        """Learn with settings that a search of a room found, or with those given."""
        from pollex.calibration.hooks import get_settings_search  # as above

        if self.recipe != SHRUNK_RECIPE_NAME:
            raise WrongUse(
                f"a search knows the recipe `{SHRUNK_RECIPE_NAME}` only",
                hint="leave recipe out, or set search=None",
            )

        assert self.search is not None, "asked for by the caller"
        self.search_ = get_settings_search(self.search).find(self, X, y, groups)
        better = self.search_.better_settings
        learner = self if better is None else copy(self).set_params(**better)
        self.general_, self.tuned_ = learner._train_shrunk(inputs, sheets)

    def main_place(self) -> int:
        """Return the place of the main question among the learned ones."""
        return int(np.flatnonzero(self.learned_ == self.questionnaire_.index())[0])

    def learned_options(self) -> Ints:
        """Return how many options each learned question has `[question]`."""
        return np.array([len(self.questionnaire_.scales[place].values) for place in self.learned_])

    def _ordinal(self) -> Bools:
        scales = []
        for place in self.learned_:
            scales.append(self.questionnaire_.scales[place])
        return np.array([self.heads == "ordinal" and scale.ordinal for scale in scales])

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        place = np.flatnonzero(self.learned_ == question)
        if not len(place):
            name = self.questionnaire_.scales[question].question
            raise WrongUse(
                f"no judgment of question {name!r} was there to learn from",
                hint="fit again with some",
            )

        # where there is a start, its log-probabilities are what the heads add to
        begins = None
        if self.starts_:
            begins = _clip_log_probabilities(
                self.starts_[int(place[0])]._distribution(
                    X,
                    judges,
                    question,
                )
            )

        if question == self.questionnaire_.index():
            return self.tuned_.proba(self.inputs(X), judges, 0, begins)

        return self.general_.proba(
            self.inputs(X),
            judges,
            int(place[0]),
            begins,
        )

    def _state(self) -> EstimatorState:
        # The general weights are needed where there are other questions alone.
        stored = {"tuned": self.tuned_}
        if len(self.learned_) > 1:
            stored["general"] = self.general_

        arrays = {}
        for kind, weights in stored.items():
            for name, array in weights.arrays().items():
                arrays[f"{kind}.{name}"] = array

        # the starts' arrays lie beside them, by number
        starts = [start.state() for start in self.starts_]
        for number, start in enumerate(starts):
            for name, array in start.arrays.items():
                arrays[f"start.{number}.{name}"] = array

        facts: dict[str, object] = {"learned": self.learned_.tolist()}
        if starts:
            facts["starts"] = [start.facts for start in starts]
        if self.strength_ is not None:
            facts["strength"] = self.strength_

        return EstimatorState(facts, arrays)

    def _restore(self, state: EstimatorState) -> None:
        self.learned_ = np.array(state.facts["learned"], dtype=np.int64)
        self.strength_ = state.facts.get("strength")
        self.tuned_ = Weights(**_select_arrays_with_prefix(state, "tuned."))
        general = _select_arrays_with_prefix(state, "general.")
        if general:
            self.general_ = Weights(**general)
        else:
            self.general_ = self.tuned_

        # the arrays must fit the questionnaire that the network is to be used with
        inputs = self.questionnaire_.width + len(self.questionnaire_.asked) + 1
        widths = set()
        for weights in (self.tuned_, self.general_):
            widths.add(weights.W1.shape[1])

        if self.recipe == SHRUNK_RECIPE_NAME and widths != {inputs}:
            raise ValueError(
                f"its network has {max(widths)} inputs, and its questions give {inputs}"
            )

        # calibrators of before have no start
        if self.start is not None:
            facts_of_starts = state.facts.get("starts", ())
        else:
            facts_of_starts = ()

        starts = []
        for number, facts in enumerate(facts_of_starts):
            starts.append(self._restored_start(number, facts, state))
        self.starts_ = tuple(starts)

    def _restored_start(
        self,
        number: int,
        facts: dict[str, object],
        state: EstimatorState,
    ) -> JudgedEstimator:
        """Return what it begins as for a learned question, as it was kept."""
        question = int(self.learned_[number])
        start = self._start_of(question)
        questions = replace(
            self.questionnaire_,
            main=self.questionnaire_.scales[question].question,
        )
        start_state = EstimatorState(facts, _select_arrays_with_prefix(state, f"start.{number}."))

        return type(start).from_state(
            start.get_params(deep=False),
            questions,
            start_state,
        )


def _select_arrays_with_prefix(state: EstimatorState, prefix: str) -> dict[str, WeightArray]:
    arrays: dict[str, WeightArray] = {}
    for name, array in state.arrays.items():
        if name.startswith(prefix):
            arrays[name.removeprefix(prefix)] = array
    return arrays


def _clip_log_probabilities(proba: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(proba, MIN_START_PROBABILITY)))
