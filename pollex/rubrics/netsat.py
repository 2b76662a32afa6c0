"""NetSAT: the sum of a conversation's rubric values, and what it means.

Source: Biyani et al. 2024, "RUBICON: Rubric-Based Evaluation of Domain-Specific Human-AI Conversations".
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from pollex.errors import WrongUse
from pollex.measures.distributions import entropy
from pollex.rubrics.answers import NEUTRAL, Answer, Unanswered
from pollex.rubrics.score import AnswerColumns, Score, ScoreColumns
from pollex.rubrics.thumb_model import Floats, ThumbModel
from pollex.selection.platt import Calibration
from pollex.selection.threshold import Window


class NetSat(BaseModel):
    """The sum of rubric values, and what it means. Source: Biyani et al. 2024, §NetSAT.

    Attributes:
        signs: +1 for SAT and −1 for DSAT rubrics, by id.
        guaranteed: The window with a guarantee; None where the set has none.
        never: What "Never came up" counts as, by rubric id; neutral for those not named.
        calibration: The curve that gives a probability where there is no model.
        thumb_model: What gives probabilities; None where there is none.
        decide_at: Probability from which on a conversation is decided to be positive; see `decide_at`.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    signs: Mapping[str, int]
    theta: float
    window: Window
    calibration: Calibration
    thumb_model: ThumbModel | None = None
    guaranteed: Window | None = None
    value: Literal["auto", "expected", "mode"] = "auto"
    never: Mapping[str, float] = {}
    decide_at: float = 0.5

    def score_all(
        self, answers: Mapping[str, Sequence[Answer | Unanswered]], judges: Sequence[str] = ()
    ) -> ScoreColumns:
        """Score conversations by their answers, given by conversation; see `columns`."""
        return self.columns(list(answers), list(answers.values()), judges)

    def columns(
        self, ids: Sequence[str], given: Sequence[Sequence[Answer | Unanswered]], judges: Sequence[str] = ()
    ) -> ScoreColumns:
        """Score conversations by their answers; unanswered rubrics give a reason instead.

        Args:
            given: By conversation, in any order; they are added up in the set's, since the last digit of a sum depends
                on it.
            judges: Annotators whose probabilities are wanted besides that of an unknown one.
        """
        answers = AnswerColumns.of(tuple(self.signs), given)
        netsats = self._sums(answers)
        whole = np.flatnonzero(~np.isnan(netsats))
        fields = self._figures(netsats[whole])
        if self.thumb_model is not None and len(whole):
            every = answers
            if not self.signs.keys() >= set(self.thumb_model.rubrics):  # a starter's rubrics, too
                every = AnswerColumns.of(self.thumb_model.rubrics, given)
            scored = every if len(whole) == len(ids) else every.take(whole)
            fields |= self._likelihoods(self.thumb_model.rows(scored), judges)
        fields |= self._decisions(fields) | {"outcome": ["scored"] * len(whole)}
        if len(whole) < len(ids):
            fields = self._with_unscored(fields, whole.tolist(), answers)
        return ScoreColumns(ids, answers, fields)

    def _sums(self, answers: AnswerColumns) -> Floats:
        signed = [
            self.signs[one.question_id] * self.counted(one) if isinstance(one, Answer) else np.nan
            for one in answers.different
        ]
        total = np.zeros(len(answers.index))
        for column in np.array([*signed, np.nan])[answers.index].T:  # one after the other, whatever the batch
            total += column
        return total

    def _decisions(self, fields: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        ups = [p >= self.decide_at for p in fields["probability"]]
        figures = zip(ups, fields["label"], fields["netsat"], fields["probability"], strict=True)
        return {
            "decision": ["positive" if up else "negative" for up in ups],
            "differs": [
                "" if up == (label == "positive") else self._differs(netsat, p, up) for up, label, netsat, p in figures
            ],
        }

    def _differs(self, netsat: float, probability: float, up: bool) -> str:
        over, reaches = ("not over", "reaches") if up else ("over", "is under")
        p = f"{probability:.2f}, {reaches} {self.decide_at:.2f}"
        return (
            f"NetSAT {netsat:.1f} is {over} θ, {self.theta:.1f}, midway between the means of good and bad "
            f"conversations, but the probability of a thumb up, {p}."
        )

    def _with_unscored(
        self, fields: Mapping[str, list[Any]], whole: Sequence[int], answers: AnswerColumns
    ) -> dict[str, list[Any]]:
        """Spread the fields of scored conversations over all; the others have the reason as their outcome."""
        places = {row: place for place, row in enumerate(whole)}
        rows, found = range(len(answers.index)), dict[str, list[Any]]()
        for name, values in fields.items():
            default = Score.model_fields[name].default
            found[name] = [values[places[row]] if row in places else default for row in rows]
        for row in rows:
            if row not in places:
                missing = failed(answers.at(row))
                alike = missing and len(missing) == len(self.signs)
                found["outcome"][row] = missing[0].outcome if alike else "incomplete"
        return found

    def counted(self, answer: Answer) -> float:
        """Return the value, 0 to 10, that an answer counts as, before its sign."""
        return value_of(answer, self.value, self.never.get(answer.question_id, NEUTRAL))

    def _likelihoods(self, rows: Floats, judges: Sequence[str]) -> dict[str, list[Any]]:
        """Compute the fields that the models give of all scores in one batch, which is much faster."""
        model = self.thumb_model
        assert model is not None, "only called where there is one"
        found = model.probability(rows)
        fields = {"probability": found.tolist(), "entropy": _entropies(found)}
        if judges:
            fields["judges"] = _by_row({judge: model.probability(rows, judge).tolist() for judge in judges}, len(rows))
        if model.rating is None:
            return fields
        values = model.rating.questionnaire_.scale().values
        each = {judge: (model.grades(rows, judge) @ np.array(values)).tolist() for judge in judges}
        grades = model.grades(rows).tolist()
        return fields | {
            "rating": [sum(p * value for p, value in zip(one, values, strict=True)) for one in grades],
            "grades": [{f"{value:g}": p for value, p in zip(values, one, strict=True)} for one in grades],
            "judge_ratings": _by_row(each, len(rows)),
        }

    def read(self, conversation_id: str, netsat: float) -> Score:
        """Return what a NetSAT means by itself."""
        fields = self._figures(np.array([netsat]))
        own = {name: values[0] for name, values in (fields | self._decisions(fields)).items()}
        return Score(conversation_id=conversation_id, **own)

    def _figures(self, netsats: Floats) -> dict[str, list[Any]]:
        probability = self.calibration.probability(netsats)
        guaranteed = [None] * len(netsats) if self.guaranteed is None else self.guaranteed.confident(netsats).tolist()
        return {
            "netsat": netsats.tolist(),
            "label": ["positive" if over else "negative" for over in netsats > self.theta],
            "confident": self.window.confident(netsats).tolist(),
            "guaranteed": guaranteed,
            "probability": probability.tolist(),
            "entropy": _entropies(probability),
        }


def _by_row(columns: Mapping[str, Sequence[float]], count: int) -> list[dict[str, float]]:
    return [{name: values[row] for name, values in columns.items()} for row in range(count)]


def failed(answers: Sequence[Answer | Unanswered]) -> list[Unanswered]:
    """Return those that are missing."""
    return [answer for answer in answers if isinstance(answer, Unanswered)]


def decide_at(costs: tuple[float, float]) -> float:
    """Return the probability at which both mistakes cost the same: c_up / (c_up + c_down).

    Args:
        costs: Of a bad conversation taken for good (c_up), and of a good one taken for bad (c_down).

    Raises:
        WrongUse: One is not positive.
    """
    if not all(math.isfinite(cost) and cost > 0 for cost in costs):
        raise WrongUse(f"costs of {costs[0]:g} and {costs[1]:g}", remedy="give two numbers over 0")
    return costs[0] / (costs[0] + costs[1])


def entropy_of(p: float) -> float:
    """Compute the entropy of a probability, in nats."""
    return _entropies(np.array([p]))[0]


def _entropies(p: Floats) -> list[float]:
    found: list[float] = entropy(np.stack([p, 1 - p], axis=-1)).tolist()
    return found


def value_of(answer: Answer, rule: Literal["auto", "expected", "mode"] = "auto", never: float = NEUTRAL) -> float:
    """Return an answer's value for NetSAT, by rule; by default mode or expected value."""
    if answer.never_came_up:
        return never
    if rule == "auto":
        return answer.value()
    return answer.expected() if rule == "expected" else answer.mode()
