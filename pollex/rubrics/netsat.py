"""NetSAT: the sum of a conversation's rubric values, and what it means.

Source: Biyani et al. 2024, "RUBICON: Rubric-Based Evaluation of Domain-Specific Human-AI Conversations".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from pollex.errors import WrongUse
from pollex.measures.distributions import entropy
from pollex.rubrics.answers import NEUTRAL, Answer, Unanswered
from pollex.rubrics.thumb_model import Floats, ThumbModel
from pollex.selection.platt import Calibration
from pollex.selection.threshold import Window
from pollex.text import html_table

if TYPE_CHECKING:
    from pandas import DataFrame


class Score(BaseModel):
    """The score of a conversation.

    Attributes:
        netsat: Sum of the signed rubric values; None if any rubric is unanswered, and so are the six below.
        label: `positive` if NetSAT is over θ, as in the paper; `decision` is the one to filter by.
        confident: Whether NetSAT lies outside the uncertainty window.
        guaranteed: Whether it lies outside the window with a guarantee; None if the set has no such window.
        probability: P(positive), of an unknown annotator.
        entropy: Entropy of that probability, in nats: 0 is certain, log 2 = 0.69 is open.
        decision: `positive` if the probability is at least that at which both mistakes cost the same.
        differs: Why the decision is not the label, in a sentence; empty if it is.
        judges: P(positive) of each requested annotator.
        rating: Expected grade; None where the set has not learned grades.
        grades: Probability of each grade, by the grade; empty likewise.
        judge_ratings: Expected grade of each requested annotator.
        outcome: `scored`, or why there is no score.
        answers: One for each rubric, in the set's order.
    """

    model_config = ConfigDict(frozen=True)

    conversation_id: str
    netsat: float | None = None
    label: Literal["positive", "negative"] | None = None
    confident: bool | None = None
    guaranteed: bool | None = None
    probability: float | None = None
    entropy: float | None = None
    decision: Literal["positive", "negative"] | None = None
    differs: str = ""
    judges: dict[str, float] = {}
    rating: float | None = None
    grades: dict[str, float] = {}
    judge_ratings: dict[str, float] = {}
    outcome: str = "scored"
    answers: tuple[Answer | Unanswered, ...] = ()

    def __repr__(self) -> str:
        """Return the score in a line."""
        if self.netsat is None or self.probability is None:
            return f"<Score of {self.conversation_id}: {self.outcome}>"
        sure = "confident" if self.confident else "in the uncertainty window"
        found = f"{self.decision}, P(positive) = {self.probability:.2f}, NetSAT {self.netsat:.2f}, {self.label}, {sure}"
        return f"<Score of {self.conversation_id}: {found}>"

    def _repr_html_(self) -> str:
        answers = [(a.question_id, a.word if isinstance(a, Answer) else a.outcome) for a in self.answers]
        return html_table(repr(self), ("rubric", "answer"), answers)

    def to_frame(self) -> DataFrame:
        """Return a pandas table of a row a rubric."""
        from pandas import DataFrame  # it takes half a second to import

        rows = [
            {
                "rubric": a.question_id,
                "value": None if a.never_came_up else a.expected(),
                "justification": a.justification,
            }
            if isinstance(a, Answer)
            else {"rubric": a.question_id, "outcome": a.outcome}
            for a in self.answers
        ]
        return DataFrame(rows)


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

    def score(self, conversation_id: str, answers: Sequence[Answer | Unanswered], judges: Sequence[str] = ()) -> Score:
        """Return one conversation's score; see `score_all`."""
        return self.score_all({conversation_id: answers}, judges)[0]

    def score_all(
        self, answers: Mapping[str, Sequence[Answer | Unanswered]], judges: Sequence[str] = ()
    ) -> list[Score]:
        """Score conversations by their answers; unanswered rubrics give a reason instead.

        Args:
            answers: By conversation, in any order; they are added up in the set's, since the last digit of a sum
                depends on it.
            judges: Annotators whose probabilities are wanted besides that of an unknown one.
        """
        ordered = {id_: self._in_order(given) for id_, given in answers.items()}
        whole = {id_: given for id_, given in ordered.items() if len(given) == len(self.signs) and not failed(given)}
        figures = dict(zip(whole, self._figures(np.array([self._sum(given) for given in whole.values()])), strict=True))
        if self.thumb_model is not None and whole:
            given = [answers[id_] for id_ in whole]  # of a starter's rubrics, too
            for id_, better in zip(whole, self._likelihoods(given, judges), strict=True):
                figures[id_] |= better
        return [
            # Its fields are our own: to check them takes as long as all the rest.
            Score.model_construct(conversation_id=id_, answers=given, **figures[id_], **self._decision(**figures[id_]))
            if id_ in figures
            else self._unscored(id_, given)
            for id_, given in ordered.items()
        ]

    def _decision(self, netsat: float, label: str, probability: float, **_: object) -> dict[str, Any]:
        """Return the decision, and why it differs from the label."""
        up = probability >= self.decide_at
        differs = "" if up == (label == "positive") else self._differs(netsat, probability, up)
        return {"decision": "positive" if up else "negative", "differs": differs}

    def _differs(self, netsat: float, probability: float, up: bool) -> str:
        over, reaches = ("not over", "reaches") if up else ("over", "is under")
        p = f"{probability:.2f}, {reaches} {self.decide_at:.2f}"
        return (
            f"NetSAT {netsat:.1f} is {over} θ, {self.theta:.1f}, midway between the means of good and bad "
            f"conversations, but the probability of a thumb up, {p}."
        )

    def _in_order(self, answers: Sequence[Answer | Unanswered]) -> tuple[Answer | Unanswered, ...]:
        by_rubric = {answer.question_id: answer for answer in answers}
        return tuple(by_rubric[id_] for id_ in self.signs if id_ in by_rubric)

    def _unscored(self, conversation_id: str, ordered: tuple[Answer | Unanswered, ...]) -> Score:
        missing = failed(ordered)
        outcome = missing[0].outcome if missing and len(missing) == len(self.signs) else "incomplete"
        return Score(conversation_id=conversation_id, outcome=outcome, answers=ordered)

    def _sum(self, ordered: Sequence[Answer | Unanswered]) -> float:
        return sum(self.signs[a.question_id] * self.counted(a) for a in ordered if isinstance(a, Answer))

    def counted(self, answer: Answer) -> float:
        """Return the value, 0 to 10, that an answer counts as, before its sign."""
        return value_of(answer, self.value, self.never.get(answer.question_id, NEUTRAL))

    def _likelihoods(
        self, answers: Sequence[Sequence[Answer | Unanswered]], judges: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        """Compute the probabilities of all scores in one batch, which is much faster."""
        model = self.thumb_model
        assert model is not None, "only called where there is one"
        rows = model.rows(answers)
        each = {judge: model.probability(rows, judge).tolist() for judge in judges}
        rated = list(self._ratings(rows, judges))
        found = model.probability(rows)
        for place, (p, open_) in enumerate(zip(found.tolist(), _entropies(found), strict=True)):
            own = {judge: values[place] for judge, values in each.items()}
            yield {"probability": p, "entropy": open_, "judges": own} | (rated[place] if rated else {})

    def _ratings(self, rows: Floats, judges: Sequence[str]) -> Iterator[dict[str, object]]:
        """Yield what the model of grades says of each row; nothing where the set has none."""
        model = self.thumb_model
        if model is None or model.rating is None:
            return
        values = model.rating.questionnaire_.scale().values
        each = {judge: (model.grades(rows, judge) @ np.array(values)).tolist() for judge in judges}
        for place, grades in enumerate(model.grades(rows).tolist()):
            yield {
                "rating": sum(p * value for p, value in zip(grades, values, strict=True)),
                "grades": {f"{value:g}": p for value, p in zip(values, grades, strict=True)},
                "judge_ratings": {judge: found[place] for judge, found in each.items()},
            }

    def read(self, conversation_id: str, netsat: float) -> Score:
        """Return what a NetSAT means by itself."""
        (figures,) = self._figures(np.array([netsat]))
        return Score(conversation_id=conversation_id, **figures, **self._decision(**figures))

    def _figures(self, netsats: Floats) -> list[dict[str, Any]]:
        """Return the fields that NetSATs `[conversation]` give by themselves."""
        probability = self.calibration.probability(netsats)
        guaranteed = [None] * len(netsats) if self.guaranteed is None else self.guaranteed.confident(netsats).tolist()
        columns = {
            "netsat": netsats.tolist(),
            "label": ["positive" if over else "negative" for over in netsats > self.theta],
            "confident": self.window.confident(netsats).tolist(),
            "guaranteed": guaranteed,
            "probability": probability.tolist(),
            "entropy": _entropies(probability),
        }
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


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
