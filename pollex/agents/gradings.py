"""What grading came to for a case: its type, its grades, and what to be warned of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pollex.agents.llm.reference_judge import CONSISTENT, EVIDENCE_SAYS, TYPE, questions_for, type_question
from pollex.conversations.references import Case
from pollex.prompts.grading.profile import COMPARISON, EVIDENCE, ReferencingProfile
from pollex.rubrics.answers import Answer, Question, Unanswered

TypeFrom = Literal["category", "model", "unsure", "unanswered", ""]
"""Who told the type of a task; `unanswered` where the model was asked and failed, empty where nobody was asked."""


@dataclass(frozen=True)
class Grading:
    """All results for one case.

    Attributes:
        type: Type of the task; None if unknown.
        questions: Questions asked against the reference, in order; the last is the overall grade.
        answers: By question id; includes `plain` and `type` if they were asked.
    """

    case: Case
    type: str | None
    type_from: TypeFrom
    questions: tuple[Question, ...]
    answers: Mapping[str, Answer | Unanswered]

    @property
    def graded(self) -> list[Question]:
        """The questions whose answers are grades: the dimensions, and overall last."""
        return [question for question in self.questions if question.id not in (EVIDENCE, COMPARISON)]

    def said(self, id_: str) -> str:
        """Return the judge's words about a question; empty if there are none."""
        found = self.answers.get(id_)
        return found.justification if isinstance(found, Answer) else ""

    @property
    def outcome(self) -> str:
        """`graded` where every dimension and the whole have a grade, or why not."""
        found = [self.answers.get(question.id) for question in self.graded]
        failed = [one for one in found if not isinstance(one, Answer)]
        if not failed:
            return "graded"
        overall = found[-1]
        return overall.outcome if len(failed) == len(found) and isinstance(overall, Unanswered) else "incomplete"

    @property
    def detail(self) -> str:
        """Why a grade is missing; empty if none is."""
        missing = [self.answers.get(question.id) for question in self.graded]
        return next((one.detail for one in missing if isinstance(one, Unanswered)), "")

    @property
    def flags(self) -> tuple[str, ...]:
        """Warnings for readers of the grades."""
        found = list(self.case.flags)
        check = self.answers.get(EVIDENCE)
        if isinstance(check, Answer) and (said := EVIDENCE_SAYS[check.chosen]) != CONSISTENT:
            found.append(f"reference and evidence: {said}")
        if isinstance(check, Unanswered) and check.outcome != "not_scorable":
            found.append("reference and evidence: not checked")  # the grades are there, and may be of a wrong reference
        if self.type_from in ("unsure", "unanswered"):
            found.append(f"task type {self.type_from}")
        return tuple(found)


def told_type(profile: ReferencingProfile, found: Mapping[str, Answer | Unanswered]) -> str | None:
    """Return the type that the model chose; None if it was unsure or not asked."""
    told = found.get(TYPE)
    if not isinstance(told, Answer):
        return None
    named = type_question(profile).options[told.chosen].text
    return named if named in profile.types else None


def grading_of(profile: ReferencingProfile, case: Case, found: Mapping[str, Answer | Unanswered]) -> Grading:
    """Return a case's grading by its answers, by question."""
    by_category, told = profile.type_of(case.category, case.subcategory), told_type(profile, found)
    source: TypeFrom = "category" if by_category else "model" if told else _untold(found.get(TYPE))
    return Grading(case, by_category or told, source, tuple(questions_for(profile, case, told)), found)


def _untold(answer: Answer | Unanswered | None) -> TypeFrom:
    if answer is None:
        return ""
    return "unsure" if isinstance(answer, Answer) else "unanswered"
