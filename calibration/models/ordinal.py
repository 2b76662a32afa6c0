"""Ordinal mixed effects: a cumulative link on all expected scores, with judge effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from pollex.calibration.cumulative_link import Terms, alike, distribution, learned, unlearned
from pollex.calibration.estimator import JudgedEstimator, State
from pollex.calibration.features import Coding, Inputs, inputs_from, inputs_of
from pollex.calibration.judgments import Judgments
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints

SMOOTHING = 1.0
"""So many judgments more, spread evenly over the options, stand behind the cuts that are the priors' means."""

PARTS = tuple(Terms.__dataclass_fields__)


class OrdinalMixedEffects(JudgedEstimator):
    """Cumulative link with a judge's intercept, scale and slopes, each shrunk or left out.

    Args:
        shared: Precision of the prior on the shared slopes; inputs are standardized.
        intercepts: Of that on the judges' intercepts; None leaves them out.
        scales: Of that on the logarithms of their scales; likewise.
        slopes: Of that on their own slopes; likewise.
        cuts: Of that on the cuts, around those of the answers' shares.
        coding: How ordinal questions enter: by their expected score, or by the probabilities of their options.
        questions: `main` learns the main question; `all` every ordinal one that has judgments.
        only: Ids of the questions that are looked at; None: all that are asked.
    """

    title: ClassVar[str] = "ordinal mixed effects"

    def __init__(
        self,
        shared: float = 30.0,
        intercepts: float | None = 2.0,
        scales: float | None = 10.0,
        slopes: float | None = 50.0,
        cuts: float = 0.1,
        coding: Coding = "expected",
        questions: Literal["main", "all"] = "main",
        only: Sequence[str] | None = None,
    ) -> None:
        self.shared = shared
        self.intercepts = intercepts
        self.scales = scales
        self.slopes = slopes
        self.cuts = cuts
        self.coding = coding
        self.questions = questions
        self.only = only

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:  # noqa: ARG002 (cross-validates nothing)
        self.inputs_: Inputs = inputs_of(X[np.unique(y.row)], self.questionnaire_, self.coding, self._only())
        F = self.inputs_.of(X).rows
        self.terms_: dict[int, Terms] = {}
        for question in self._wanted(y):
            own = y.of_question(question)
            center = self._center(own.answer, question)
            self.terms_[question] = learned(F[own.row], own.judge, own.answer, center, self._precision(center))

    def _only(self) -> Sequence[str] | None:
        return self.only

    def _wanted(self, y: Judgments) -> list[int]:
        """Return the questions to be learned; the main one always."""
        main = self.questionnaire_.index()
        if not self.questionnaire_.scale().ordinal:
            raise WrongUse(
                f"the main question {self.questionnaire_.main!r} is not ordinal, and a cumulative link needs an order",
                remedy="give its options in order and say so, or use the calibration network",
            )
        judged = set(y.question.tolist()) if self.questions == "all" else set()
        return sorted({main, *(place for place in judged if self.questionnaire_.scales[place].ordinal)})

    def _center(self, answers: Ints, question: int) -> Terms:
        options = len(self.questionnaire_.scales[question].values)
        shares = np.bincount(answers, minlength=options) + SMOOTHING / options
        return unlearned(shares / shares.sum(), self.inputs_.width, len(self.judges_))

    def _precision(self, shape: Terms) -> Terms:
        strengths = (self.cuts, self.cuts, self.shared, self.intercepts, self.scales, self.slopes)
        return alike(shape, strengths)

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        terms = self._terms(question)
        filled = self.inputs_.of(X)
        own = np.where((judges >= 0)[:, None], terms.judge_slopes[judges], 0.0) if len(self.judges_) else 0.0
        return distribution(
            terms, filled.rows, judges, filled.variance(terms.slopes + own + np.zeros_like(filled.rows))
        )

    def _terms(self, question: int) -> Terms:
        if question not in self.terms_:
            raise WrongUse(
                f"question {self.questionnaire_.scales[question].question!r} was not learned",
                remedy="fit with questions='all' on ordinal judgments of it",
            )
        return self.terms_[question]

    def _state(self) -> State:
        arrays = dict(self.inputs_.arrays())
        for question, terms in self.terms_.items():
            arrays |= {f"{question}.{part}": getattr(terms, part) for part in PARTS}
        return State({"learned": sorted(self.terms_)}, arrays)

    def _restore(self, state: State) -> None:
        self.inputs_ = inputs_from(self.questionnaire_, self.coding, state.arrays)
        self.terms_ = {
            question: Terms(*(state.arrays[f"{question}.{part}"] for part in PARTS))
            for question in state.facts["learned"]
        }
