"""Base of calibrators: checked input, named judges, decoding, aggregation, storage.

An estimator has an `__init__` that only stores, `_learn` and `_distribution`. Those in `models/`
also have `_state` and `_restore`, so that they can be kept. All else comes from here.
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pollex.calibration.judgments import (
    UNKNOWN_JUDGE_CODE,
    Judgments,
    convert_judge_names_to_indices,
    convert_judgments_to_arrays,
    is_missing_value,
    list_judge_per_row,
)
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints


class ConstantLabelsWarning(UserWarning):
    """Warning: all judgments of the main question are alike, so texts can't be distinguished."""


class JudgedEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Predicts judges' answers from answer distributions of an LLM or another source.

    Attributes:
        questionnaire_: What X and the judgments are about.
        judges_: Names of the judges seen in training; their places are the codes that
            `_distribution` gets.
    """

    title: ClassVar[str] = ""
    """Name for people, in tables and reports."""

    uses_labels: ClassVar[bool] = True
    """Whether labels stand behind what it predicts; what takes the judge's answers as they are has none."""

    counts: ClassVar[frozenset[str]] = frozenset()
    """Settings that are 1 or more; other numbers are 0 or more."""

    questionnaire_: Questionnaire
    judges_: tuple[str, ...]

    def fit(
        self,
        X: Any,
        y: Any,
        judges: Sequence[object] | None = None,
        questions: Questionnaire | None = None,
        groups: Sequence[object] | None = None,
    ) -> Self:
        """Learn from judgments; on failure the estimator stays unchanged.

        Args:
            X: Probabilities `[row, question × option]`; NaN blocks are missing answers.
            y: Judgments; see `judgments.judgments` for the shapes.
            judges: Likewise.
            questions: The questionnaire; None: a single question with one option a column, worth 0,
                1, 2 …
            groups: What belongs together in cross-validation `[row]`; None: each row is its own.

        Raises:
            WrongUse: X or y can't be read, there is no judgment of the main question, or a setting
                is unknown.

        Warns:
            ConstantLabelsWarning: All judgments of the main question are alike.
        """
        # everything is checked before anything is learned
        _require_valid_settings(self)
        fitted = copy.copy(self)
        fitted.questionnaire_ = _require_questionnaire(X, questions)
        checked = fitted.questionnaire_.checked(X)
        labels = convert_judgments_to_arrays(y, judges, fitted.questionnaire_, len(checked))
        _require_labels_for_questions(labels, fitted.questionnaire_)
        codes_with_labels = []
        for code in np.unique(labels.judge):
            if code != UNKNOWN_JUDGE_CODE:
                codes_with_labels.append(code)

        fitted.judges_ = tuple(sorted({labels.judges[code] for code in codes_with_labels}))
        # learned in a copy: where it fails, this estimator is what it was
        fitted._learn(
            checked,
            labels.coded(fitted.judges_),
            _number_row_groups(groups, len(checked)),
        )
        self.__dict__.update(fitted.__dict__)

        return self

    def predict_proba(
        self,
        X: Any,
        judges: Sequence[object] | None = None,
        question: str | None = None,
    ) -> Floats:
        """Return the probability of each answer `[row, option]`.

        Args:
            X: As in `fit`.
            judges: Who is to answer each row `[row]`; None, for all or for one row, and names not
                seen in training: somebody unknown.
            question: Id; None: the main one.

        Raises:
            WrongUse: X can't be read; there is no such question, or the estimator has not learned
                to predict it.
        """
        check_is_fitted(self, "questionnaire_")
        checked = self.questionnaire_.checked(X)
        codes = convert_judge_names_to_indices(
            list_judge_per_row(judges, len(checked)), self.judges_
        )

        return self._distribution(
            checked,
            codes,
            self.questionnaire_.index(question),
        )

    def predict(
        self,
        X: object,
        judges: Sequence[object] | None = None,
        question: str | None = None,
    ) -> Floats:
        """Return the expected answer Σ p·value `[row]`: the decoding of least squared error. See `predict_proba`.

        Of a question whose answers have no order, and so no mean, the value of the most probable
        answer.
        """
        proba = self.predict_proba(X, judges, question)
        scale = self.questionnaire_.scale(question)
        worth = np.array(scale.values)
        values: Floats
        if scale.ordinal:
            values = proba @ worth
        else:
            values = worth[proba.argmax(axis=1)]

        return values

    def predict_for(
        self,
        X: object,
        trusted: Sequence[str] | None = None,
        aggregate: JudgeAggregation = "mean",
        question: str | None = None,
    ) -> Floats:
        """Return the expected answer of a set of trusted judges `[row]`.

        Args:
            trusted: Their names; None: all judges seen in training.
            aggregate: `mean`, `max`, or a quantile from 0 to 1.

        Raises:
            WrongUse: As in `predict_proba`; the question's answers have no order; `trusted` is one
                name alone.
        """
        check_is_fitted(self, "questionnaire_")
        scale = self.questionnaire_.scale(question)
        if not scale.ordinal:
            raise WrongUse(
                f"the answers to {scale.question!r} have no order, so those of several judges are no one figure",
                hint="use predict_each",
            )

        return combine_answer_values_of_judges(self.predict_each(X, trusted, question), aggregate)

    def proba_for(
        self,
        X: Any,
        trusted: Sequence[str] | None = None,
        question: str | None = None,
    ) -> Floats:
        """Return the mean probability of each answer over trusted judges `[row, option]`; see `predict_for`."""
        names = self._trusted(trusted)
        total: Floats = np.zeros(())
        for name in names:
            total = total + self.predict_proba(X, [name] * len(X), question)

        return total / len(names)

    def predict_each(
        self,
        X: Any,
        trusted: Sequence[str] | None = None,
        question: str | None = None,
    ) -> Floats:
        """Predict the answer of every judge `[row, judge]`; see `predict` and `predict_for`."""
        names = self._trusted(trusted)
        rows = self.questionnaire_.checked(X)
        # One after the other: X for all of them at once would be as many times as large.
        return np.stack(
            [self.predict(rows, [name] * len(rows), question) for name in names],
            axis=1,
        )

    def _trusted(self, trusted: Sequence[str] | None) -> list[str | None]:
        check_is_fitted(self, "questionnaire_")
        if isinstance(trusted, str):
            raise WrongUse(
                f"one name, {trusted!r}, for a set of judges",
                hint="give a list of names",
            )

        return list(self.judges_ if trusted is None else trusted) or [None]

    def state(self) -> EstimatorState:
        """Return all that was learned, without the settings, which `get_params` has."""
        check_is_fitted(self, "questionnaire_")
        learned = self._state()
        return EstimatorState({"judges": list(self.judges_)} | learned.facts, learned.arrays)

    @classmethod
    def from_state(
        cls,
        settings: Mapping[str, object],
        questionnaire: Questionnaire,
        state: EstimatorState,
    ) -> Self:
        """Return a fitted estimator from what `get_params` and `state` gave."""
        estimator = cls(**settings)
        estimator.questionnaire_ = questionnaire
        estimator.judges_ = tuple(state.facts["judges"])
        estimator._restore(state)

        return estimator

    @abstractmethod
    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        """Learn from checked arrays; judges are coded by `self.judges_`."""

    @abstractmethod
    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        """Return the probability of each answer `[row, option]`; judge −1 is unknown."""

    def _require_order(self, why: str) -> None:
        if not self.questionnaire_.scale().ordinal:
            raise WrongUse(
                f"the main question {self.questionnaire_.main!r} is not ordinal, and {why}",
                hint="give its options in order and say so, or use the calibration network",
            )

    def _require_main(self, question: int) -> None:
        """Refuse to predict another question than the main one, which alone was learned."""
        if question != self.questionnaire_.index():
            raise WrongUse(
                f"question {self.questionnaire_.scales[question].question!r} was not learned: only the main one is",
                hint="fit with it as the main question",
            )

    def _state(self) -> EstimatorState:
        """Return what was learned, but for the judges' names."""
        raise self._not_kept()

    def _restore(self, state: EstimatorState) -> None:  # noqa: ARG002 (for those that can)
        """Bind what `_state` gave; questionnaire and judges are there already."""
        raise self._not_kept()

    def _not_kept(self) -> WrongUse:
        return WrongUse(
            f"{type(self).__name__} can't be kept",
            hint="keep a model of those in `calibration/models`",
        )


def _require_questionnaire(X: Any, questions: Questionnaire | None) -> Questionnaire:
    if questions is None:
        shape = np.shape(X)
        if len(shape) != 2:
            raise WrongUse(
                f"X has shape {shape}",
                hint="give [row, option], or a questionnaire",
            )

        return make_single_question(shape[1])

    if not isinstance(questions, Questionnaire):
        raise WrongUse(
            f"questions are a {type(questions).__name__}, no Questionnaire",
            hint="give one; the order is X, y, judges, questions",
        )

    return questions


def _require_valid_settings(model: JudgedEstimator) -> None:
    for name, hint in get_type_hints(type(model).__init__).items():
        # the words of a Literal, alone or in a union
        words: list[object] = []
        for part in (hint, *get_args(hint)):
            if get_origin(part) is Literal:
                words.extend(get_args(part))
        # numbers have a lower bound
        value = getattr(model, name, None)
        least = 1 if name in model.counts else 0
        if words and value is not None and value not in words:
            choices = ", ".join(map(repr, words))
            raise WrongUse(
                f"{type(model).__name__} has no {name}={value!r}",
                hint=f"use one of {choices}",
            )

        if isinstance(value, Real) and not float(value) >= least:  # nor is NaN
            raise WrongUse(
                f"{type(model).__name__} with {name}={value!r}",
                hint=f"give {least} or more",
            )


def _number_row_groups(groups: Sequence[object] | None, rows: int) -> Ints:
    """Return numbers of the groups `[row]`; each row is its own group by default."""
    if groups is None:
        return np.arange(rows)

    # one group a row, none of them missing
    group_of_row = np.asarray(groups, dtype=object)
    if group_of_row.ndim != 1:
        raise WrongUse(
            f"groups of shape {group_of_row.shape}",
            hint="give one group a row, each a name or a number",
        )

    if len(group_of_row) != rows:
        raise WrongUse(
            f"{len(group_of_row)} groups for {rows} rows",
            hint="give one group a row",
        )

    alone = []
    for row, group in enumerate(group_of_row):
        if is_missing_value(group):
            alone.append(row)

    if alone:
        raise WrongUse(
            f"rows without a group: {len(alone)} of {rows}",
            where=f"row {alone[0]}",
            hint="give one group a row",
        )

    return np.asarray(
        np.unique(np.asarray(groups), return_inverse=True)[1],
        dtype=np.int64,
    )


def _require_labels_for_questions(labels: Judgments, questions: Questionnaire) -> None:
    answers = labels.of_question(questions.index())
    if not len(answers):
        raise WrongUse(
            f"no judgment of the main question {questions.main!r}",
            hint="name another main question, or add judgments of this one",
        )

    # a model can be fitted to labels that are all alike, but it tells no text from another
    if len(np.unique(answers.answer)) == 1:
        value = questions.scale().values[int(answers.answer[0])]
        what = f"all {len(answers)} judgments of the main question {questions.main!r} are {value:g}"
        warnings.warn(
            f"{what} → add judgments that differ, or name another main question",
            ConstantLabelsWarning,
            stacklevel=3,
        )


def make_single_question(options: int) -> Questionnaire:
    """Make a question whose options are worth 0, 1, 2 and so on."""
    return Questionnaire(
        (Scale("main", tuple(float(place) for place in range(options))),),
        "main",
    )


@dataclass(frozen=True, eq=False)
class EstimatorState:
    """All that a fitted estimator has learned.

    Attributes:
        facts: JSON values.
        arrays: By name, for safetensors.
    """

    facts: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]


JudgeAggregation = Literal["mean", "max"] | float
"""How the expected answers of several judges become one: their mean, the largest, or a quantile from 0 to 1."""


def combine_answer_values_of_judges(values: Floats, aggregate: JudgeAggregation) -> Floats:
    """Combine values of several judges `[row, judge]` into one `[row]`.

    Raises:
        WrongUse: Neither `mean` nor `max`, nor a quantile from 0 to 1.
    """
    if aggregate == "mean":
        return np.asarray(values.mean(axis=1))
    if aggregate == "max":
        return np.asarray(values.max(axis=1))
    if isinstance(aggregate, (int, float)) and 0 <= aggregate <= 1:
        return np.asarray(np.quantile(values, aggregate, axis=1))

    raise WrongUse(
        f"no way to aggregate is called {aggregate!r}",
        hint="use mean, max or a quantile from 0 to 1",
    )
