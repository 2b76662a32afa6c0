"""Answers to a set's rubrics by class: how often each option was chosen, by the thumb of the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from pollex.measures.intervals import Figure
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE, NEVER_CAME_UP_OPTION, Question
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import compute_share_with_interval
from pollex.store.runs import Run
from pollex.web.site import NamedSet, Site

ANSWER_COUNTS_QUERY = """
    SELECT a.question AS question, c.label AS label, a.said.chosen AS chosen, count(*) AS n
    FROM (SELECT conversation, question, arg_max({'chosen': chosen, 'asked': question_hash}, seq) AS said
        FROM answers GROUP BY conversation, question) AS a
    JOIN (SELECT id, arg_max(label, seq) AS label, arg_max(side, seq) AS side FROM conversations GROUP BY id) AS c
        ON c.id = a.conversation
    WHERE c.label <> 'none' AND a.said.chosen IS NOT NULL AND list_contains(?, a.said.asked)
        AND (NOT ? OR c.side = 'test')
    GROUP BY ALL
"""
HELD_OUT_QUERY = "SELECT count(*) AS n FROM conversations WHERE side = 'test' AND label <> 'none'"
THUMBS_BY_CLASS = {"positive": "up", "negative": "down"}


@dataclass(frozen=True)
class OptionShares:
    """How often each option was chosen about conversations of one class.

    Attributes:
        counts: Conversations by option, in the scale's order; the last where the occasion never
            came up.
        above: Share with an option above the middle.
    """

    counts: tuple[int, ...]
    above: Figure

    @property
    def n(self) -> int:
        """Number of conversations."""
        return sum(self.counts)

    @classmethod
    def of(cls, counts: Mapping[int, int], question: Question) -> OptionShares:
        """Count the options of a question."""
        high = []
        for place, option in enumerate(question.options):
            if option.value > MIDDLE_OPTION_VALUE:
                high.append(place)

        above = sum(counts.get(place, 0) for place in high)
        # one place more than there are options: the occasion never came up
        every = tuple(counts.get(place, 0) for place in range(len(question.options) + 1))
        return cls(every, compute_share_with_interval(above, sum(every)))


@dataclass(frozen=True)
class AnswersByClass:
    """Answers to one rubric by class."""

    options: tuple[str, ...]
    up: OptionShares
    down: OptionShares


class AnswersOfSet(TypedDict):
    """Answers to a set's rubrics by class, in a run.

    Attributes:
        run: Id of the run.
        held_out: Whether only conversations count that nothing was learned from.
        rubrics: Answers by rubric id.
    """

    run: str
    held_out: bool
    rubrics: dict[str, AnswersByClass]


def count_answers_by_class(site: Site, named: NamedSet, run: Run) -> AnswersOfSet:
    """Count answers to a set's rubrics, as they are worded now, in a run."""

    def count() -> AnswersOfSet:
        # conversations that nothing was learned from, where the run held some out
        (stored,) = site.store.ask(run.id, HELD_OUT_QUERY)
        # answers to earlier words of a rubric are of another question, and don't count
        hashes = [question.digest for question in named.rubric_set.questions]
        rows = site.store.ask(run.id, ANSWER_COUNTS_QUERY, [hashes, stored["n"] > 0])

        return {
            "run": run.id,
            "held_out": stored["n"] > 0,
            "rubrics": dict(_sort_rows_by_class(named.rubric_set, rows)),
        }

    return site.once(f"answers by class {named.id}", run, count)


def _sort_rows_by_class(
    rubric_set: RubricSet, rows: Sequence[Mapping[str, object]]
) -> Iterable[tuple[str, AnswersByClass]]:
    for question in rubric_set.questions:
        of_question = []
        for row in rows:
            if row["question"] == question.id:
                of_question.append(row)

        counts = {}
        for label in THUMBS_BY_CLASS:
            chosen_counts = {}
            for row in of_question:
                if row["label"] == label:
                    chosen_counts[int(str(row["chosen"]))] = int(str(row["n"]))

            counts[label] = chosen_counts

        if of_question:
            words = (*(option.text for option in question.options), NEVER_CAME_UP_OPTION)
            yield (
                question.id,
                AnswersByClass(
                    words, *(OptionShares.of(counts[label], question) for label in THUMBS_BY_CLASS)
                ),
            )
