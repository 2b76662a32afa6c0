"""The calibration network."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pollex.calibration.estimator import JudgedEstimator, State
from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Bools, Floats, Ints
from pollex.calibration.sheets import sheets_of
from pollex.calibration.weights import Weights
from pollex.errors import WrongUse

Personal = Literal["all", "heads", "none"]
HeadKind = Literal["softmax", "ordinal"]


class CalibrationNetwork(JudgedEstimator):
    """Two shared layers and a head a question, each with small deltas of every judge's own.

    Pre-trained on all questions, then fine-tuned on the main one. Several networks that begin differently are trained
    side by side, and their probabilities averaged.

    Source: Hashemi et al. 2024, equations 3–5, doi:10.18653/v1/2024.acl-long.745.

    Args:
        h1: Units of the first layer.
        h2: Of the second.
        heads: `softmax`, or `ordinal`: cumulative link for questions whose options are ordered.
        personal: Where judges have deltas: `all`, only in the `heads` (for many judges with few answers each), `none`.
        pretraining: Steps on all questions.
        finetuning: Steps on the main one.
        rate: Step size of Adam.
        finetuning_rate: The same in the second phase.
        decay: Penalty on shared weights.
        shrinkage: Penalty on judges' deltas.
        dropout: Share of texts that are seen with some questions hidden; 0 where none will ever be missing.
        seeds: How many networks are averaged.
        seed: Of all that is random.
    """

    title = "Calibration network"

    weights_: Weights
    learnt_: Ints

    def __init__(
        self,
        h1: int = 25,
        h2: int = 25,
        heads: HeadKind = "softmax",
        personal: Personal = "all",
        pretraining: int = 100,
        finetuning: int = 100,
        rate: float = 0.01,
        finetuning_rate: float = 0.005,
        decay: float = 1.0,
        shrinkage: float = 1.0,
        dropout: float = 0.3,
        seeds: int = 10,
        seed: int = 0,
    ) -> None:
        self.h1 = h1
        self.h2 = h2
        self.heads = heads
        self.personal = personal
        self.pretraining = pretraining
        self.finetuning = finetuning
        self.rate = rate
        self.finetuning_rate = finetuning_rate
        self.decay = decay
        self.shrinkage = shrinkage
        self.dropout = dropout
        self.seeds = seeds
        self.seed = seed

    def inputs(self, X: Floats) -> Floats:
        """What the first layer sees `[row, columns + asked + 1]`: x, the mask of missing questions, the bias."""
        missing = ~self.questionnaire_.present(X)
        return np.concatenate([np.nan_to_num(X), missing, np.ones((len(X), 1))], axis=1)

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        # PyTorch takes seconds to load, and predictions don't need it.
        from pollex.calibration import training

        del groups
        self.learnt_ = np.unique(y.question)
        sheets = sheets_of(y, self.learnt_)
        lesson = training.Lesson(self.inputs(X)[sheets.row], sheets, self._blocks(), np.ones(len(self.learnt_), bool))
        heads = training.heads_of(sheets, self._options(), self._ordinal())
        judges = {"all": (len(self.judges_),) * 2, "heads": (0, len(self.judges_)), "none": (0, 0)}[self.personal]
        shape = (lesson.inputs.shape[1] - 1, self.h1, self.h2)
        weights = training.begun(shape, judges, heads, self.seeds, self.seed)
        plan = training.Plan(self.pretraining, self.rate, self.decay, self.shrinkage, self.dropout)
        weights = training.trained(weights, lesson, plan, self.seed + 1)
        main = self.learnt_ == self.questionnaire_.index()
        lesson = training.Lesson(lesson.inputs, sheets, lesson.blocks, main)
        plan = training.Plan(self.finetuning, self.finetuning_rate, self.decay, self.shrinkage, self.dropout)
        self.weights_ = training.trained(weights, lesson, plan, self.seed + 2)

    def _blocks(self) -> Ints:
        sizes = [len(scale.values) for scale in self.questionnaire_.asked]
        return np.repeat(np.arange(len(sizes)), sizes)

    def _options(self) -> Ints:
        return np.array([len(self.questionnaire_.scales[place].values) for place in self.learnt_])

    def _ordinal(self) -> Bools:
        scales = [self.questionnaire_.scales[place] for place in self.learnt_]
        return np.array([self.heads == "ordinal" and scale.ordinal for scale in scales])

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        place = np.flatnonzero(self.learnt_ == question)
        if not len(place):
            name = self.questionnaire_.scales[question].question
            raise WrongUse(f"no judgment of question {name!r} to learn from", remedy="add some, and fit again")
        return self.weights_.proba(self.inputs(X), judges, int(place[0]))

    def _state(self) -> State:
        return State({"learnt": self.learnt_.tolist()}, self.weights_.arrays())

    def _restore(self, state: State) -> None:
        self.learnt_ = np.array(state.facts["learnt"], dtype=np.int64)
        self.weights_ = Weights(**state.arrays)
