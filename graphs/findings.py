"""What a batch found, for its state: the first results, the worst so far, and means so far. All is in the store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pollex.rubrics.answers import Answer, Question, Unanswered

FIRST, WORST = 20, 10
"""Results that the state shows of a batch, and of all."""

LONGEST = 160
"""Characters of a text in a result: a state with sixty questions a conversation stays far below 200 kB."""

ANSWERS = 40
"""Answers of one result that the state shows."""

Row = dict[str, Any]


@dataclass
class Findings:
    """Results of a run, of which a state shows some.

    Attributes:
        shown_ids: Ids of the batch's first items.
        batch: Results of these, by id.
        ranked: The worst of all, each with its rank: the lowest first.
        sums: By figure, how many items have it, and their sum; those that an earlier session
            settled are not in it.
    """

    shown_ids: dict[str, None] = field(default_factory=dict)
    batch: dict[str, Row] = field(default_factory=dict)
    ranked: list[tuple[float, str, Row]] = field(default_factory=list)
    sums: dict[str, tuple[int, float]] = field(default_factory=dict)

    def begin(self, batch: Sequence[str]) -> None:
        """Begin a batch."""
        self.shown_ids = dict.fromkeys(batch[:FIRST])
        self.batch = {}

    def take(
        self,
        id_: str,
        row: Callable[[], Row],
        *,
        rank: float | None = None,
        figures: Mapping[str, float | None] | None = None,
    ) -> None:
        """Take a result.

        Args:
            row: Makes what the state shows of it, where it does.
            rank: The lower the worse; None where it is none of the worst.
            figures: What means are told of.
        """
        # sums, from which the state tells means
        for name, value in (figures or {}).items():
            if value is not None:
                n, total = self.sums.get(name, (0, 0.0))
                self.sums[name] = n + 1, total + value
        # only rows that the state shows are made
        among_worst = rank is not None and (len(self.ranked) < WORST or rank < self.ranked[-1][0])
        if id_ not in self.shown_ids and not among_worst:
            return

        # the first of the batch, and the worst of the run
        shown = {"id": id_, **row()}
        if id_ in self.shown_ids:
            self.batch[id_] = shown
        if among_worst and rank is not None:
            others = [finding for finding in self.ranked if finding[1] != id_]
            self.ranked = sorted([*others, (rank, id_, shown)], key=lambda finding: finding[0])[
                :WORST
            ]

    @property
    def as_state(self) -> dict[str, Any]:
        """What the state tells: plain values."""
        means = {
            name: {"mean": round(total / n, 4), "n": n} for name, (n, total) in self.sums.items()
        }
        return {
            "first": [self.batch[id_] for id_ in self.shown_ids if id_ in self.batch],
            "worst": [row for _, _, row in self.ranked],
            "so_far": means,
        }


def in_short(text: str) -> str:
    """Return a text as a line that a state can hold."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def answers_in_words(
    questions: Sequence[Question], answers: Sequence[Answer | Unanswered]
) -> dict[str, str]:
    """Return what was answered to each question, in the words of its options."""
    by_id = {question.id: question for question in questions}
    words = {}
    for answer in answers[:ANSWERS]:
        question = by_id.get(answer.question_id)
        words[name_of(question, answer.question_id)] = word_of(question, answer)
    return words


def name_of(question: Question | None, id_: str) -> str:
    """Return how a state calls a question: a rubric by its id, another by its id, too, as texts would repeat."""
    return id_ if question is None or question.rubric is None else question.rubric.id


def word_of(question: Question | None, answer: Answer | Unanswered) -> str:
    """Return an answer in the words of its option, or why there is none."""
    if isinstance(answer, Unanswered):
        return in_short(f"{answer.outcome}: {answer.detail}" if answer.detail else answer.outcome)
    if question is None or answer.chosen >= len(question.options):
        return answer.word if answer.never_came_up else str(answer.chosen)
    return in_short(question.options[answer.chosen].text)


def first_reason(answers: Sequence[Answer | Unanswered], *, texts: bool) -> str:
    """Return the first justification, or the first reason for no answer; nothing said where no texts are kept."""
    justifications = [
        answer.justification
        for answer in answers
        if isinstance(answer, Answer) and answer.justification
    ]
    failed = [
        f"{answer.outcome}: {answer.detail}" for answer in answers if isinstance(answer, Unanswered)
    ]
    if failed:
        return in_short(failed[0])
    return in_short(justifications[0]) if justifications and texts else ""
