"""A batch of answers and scores as columns: what is computed, stored and written without an object for each.

Most answers of the built-in judge are the same in many conversations, so each different one stands there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from pollex.rubrics.answers import Answer, Unanswered
from pollex.rubrics.score import Score

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


@dataclass(frozen=True)
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
