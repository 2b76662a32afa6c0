"""The score of a conversation.

A batch of answers and scores as columns: what is computed, stored and written without an object for each.

Most answers of the built-in judge are the same in many conversations, so each different one stands there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from pollex.rubrics.answers import Answer, Unanswered
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


Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AnswerColumns:
    """Answers to the same rubrics about several conversations.

    Attributes:
        rubrics: Ids, in the set's order.
        different: The answers, each once.
        index: Place of an answer in `different` `[conversation, rubric]`; −1 where there is none.
    """

    rubrics: tuple[str, ...]
    different: Sequence[Answer | Unanswered]
    index: Places

    @classmethod
    def of(cls, rubrics: Sequence[str], answers: Sequence[Sequence[Answer | Unanswered]]) -> Self:
        """Order the answers of each conversation; those to other questions are left out."""
        known = {rubric: place for place, rubric in enumerate(rubrics)}
        different, index = list[Answer | Unanswered](), list[list[int]]()
        seen = dict[int, tuple[int, int]]()  # by identity: place of the answer, and of its rubric
        for given in answers:
            row = [-1] * len(rubrics)
            for one in given:
                if (found := seen.get(id(one))) is None and (column := known.get(one.question_id)) is not None:
                    found = seen[id(one)] = len(different), column
                    different.append(one)
                if found is not None:
                    row[found[1]] = found[0]
            index.append(row)
        return cls(tuple(rubrics), different, np.array(index, np.int64).reshape(len(index), len(rubrics)))

    def at(self, row: int) -> tuple[Answer | Unanswered, ...]:
        """Return the answers about one conversation, in the set's order."""
        return tuple([self.different[place] for place in self.index[row].tolist() if place >= 0])

    def take(self, rows: Places) -> Self:
        """Return the answers about some of the conversations."""
        places, index = np.unique(self.index[rows], return_inverse=True)
        kept = places[places >= 0]
        index = index.reshape(len(rows), len(self.rubrics)) - (len(places) - len(kept))
        return type(self)(self.rubrics, [self.different[place] for place in kept.tolist()], index)


@dataclass(frozen=True, repr=False)  # `asyncio.run` makes the repr of what it returns, twice
class ScoreColumns(Sequence[Score]):
    """Scores of several conversations; one by one they are `Score`s.

    Attributes:
        ids: Of the conversations.
        fields: By the name of a field of `Score`, its values `[conversation]`; those left out have their default.
    """

    ids: Sequence[str]
    answers: AnswerColumns
    fields: dict[str, list[Any]]

    @classmethod
    def of(cls, scores: Sequence[Score], rubrics: Sequence[str]) -> Self:
        """Return scores as columns."""
        answers = AnswerColumns.of(rubrics, [one.answers for one in scores])
        names = [name for name in Score.model_fields if name not in ("conversation_id", "answers")]
        fields = {name: [getattr(one, name) for one in scores] for name in names}
        return cls([one.conversation_id for one in scores], answers, fields)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Put scores by the same set behind one another."""
        ids, different, index = list[str](), list[Answer | Unanswered](), list[Places]()
        for part in parts:
            own = part.answers.index
            index.append(np.where(own < 0, own, own + len(different)))
            different += part.answers.different
            ids += part.ids
        names = dict.fromkeys(name for part in parts for name in part.fields)
        fields = {name: [value for part in parts for value in part.column(name)] for name in names}
        return cls(ids, AnswerColumns(parts[0].answers.rubrics, different, np.concatenate(index)), fields)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Score: ...
    @overload
    def __getitem__(self, place: slice) -> list[Score]: ...
    def __getitem__(self, place: int | slice) -> Score | list[Score]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        known = {name: values[place] for name, values in self.fields.items()}
        # Its fields are our own: to check them takes as long as all the rest.
        return Score.model_construct(conversation_id=self.ids[place], answers=self.answers.at(place), **known)

    def take(self, rows: Sequence[int]) -> Self:
        """Return the scores of some of the conversations."""
        fields = {name: [values[row] for row in rows] for name, values in self.fields.items()}
        return type(self)([self.ids[row] for row in rows], self.answers.take(np.array(rows, np.int64)), fields)

    def column(self, name: str) -> list[Any]:
        """Return the values of a field `[conversation]`."""
        return self.fields.get(name) or [Score.model_fields[name].default] * len(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as plain values, which is quicker."""
        different = [(type(one), dict(vars(one))) for one in self.answers.different]
        return _arrived, (self.ids, self.answers.rubrics, different, self.answers.index, self.fields)


def _arrived(
    ids: Sequence[str], rubrics: tuple[str, ...], different: Sequence[Any], index: Places, fields: dict[str, list[Any]]
) -> ScoreColumns:
    answers = [kind.model_construct(**values) for kind, values in different]
    return ScoreColumns(ids, AnswerColumns(rubrics, answers, index), fields)
