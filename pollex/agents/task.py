"""What `judge` asks: a question and a rule, and the votes that are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pollex.agents.llm.sampling import point
from pollex.agents.votes import Rule, counted, scorable
from pollex.errors import WrongUse
from pollex.rubrics.answers import Answer, Option, Question, Unanswered
from pollex.rubrics.rubric import content_id

PERSON = "person"


@dataclass(frozen=True)
class Task:
    """A question, and the rule that accepts its answers.

    Attributes:
        precision: Precision that τ is fitted to on the thumbs; the question then has two options, the first for a
            thumb up.
        by: Who is asked, for people.
    """

    question: Question
    rule: Rule
    precision: float | None = None
    by: str = ""

    def __post_init__(self) -> None:
        if self.precision is None:
            return
        if not 0 < self.precision <= 1:
            raise WrongUse(f"a precision of {self.precision}", remedy="give a share above 0 and up to 1")
        if len(self.question.options) != 2:
            remedy = "give two options, the first for a thumb up, or give τ by value"
            raise WrongUse(f"thumbs can't be compared with {len(self.question.options)} options", remedy=remedy)

    @property
    def in_words(self) -> str:
        """Description of the rule, for a message about a refused resume."""
        tau = self.rule.in_words() if self.precision is None else f"τ for a precision of {self.precision}"
        return f"{tau}; {self.rule.minimum} of {self.rule.runs} runs must have answered"

    @property
    def as_json(self) -> dict[str, Any]:
        """Task as stored with the run."""
        question = self.question.model_dump(mode="json")
        return {"question": question, "rule": asdict(self.rule), "precision": self.precision, "by": self.by}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Task:
        return cls(Question.model_validate(kept["question"]), Rule(**kept["rule"]), kept["precision"], kept["by"])


def asked(text: str, options: Sequence[str]) -> Question:
    """Make a question with these options; the first has the highest value."""
    worth = [Option(text=option, value=float(len(options) - 1 - i)) for i, option in enumerate(options)]
    return Question(id=content_id("question", text, *options), text=text, options=tuple(worth))


@dataclass
class Tally:
    """The votes on one conversation.

    Attributes:
        votes: Runs that chose each option, [option].
        asked: Runs that were asked.
        scorable: False if no judge could be asked.
    """

    votes: tuple[int, ...]
    asked: int
    scorable: bool = True

    @classmethod
    def of(cls, votes: Sequence[Answer | Unanswered], options: int) -> Tally:
        """Count the votes in answers."""
        return cls(counted(votes, options), len(votes), scorable(votes))


def run_question(question: Question, number: int) -> Question:
    """Return the question under the id of one run: with its number, from 1."""
    return question.model_copy(update={"id": f"{question.id}#{number + 1}"})


def persons_question(question: Question) -> Question:
    """Return the question under the id of a person's answer."""
    return question.model_copy(update={"id": f"{question.id}#{PERSON}"})


def persons_answer(question: Question, chosen: int) -> Answer:
    """Return a person's answer as stored."""
    mass = point(chosen, len(question.options))
    id_ = persons_question(question).id
    return Answer(question_id=id_, probabilities=mass, chosen=chosen, source="recorded", judge=PERSON)
