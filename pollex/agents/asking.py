"""Asking a judge about one conversation, with exceptions confined to that conversation.

A `PollexError` stops all work, as `roles` has it. Anything else, from a judge that somebody plugged in for example,
must not take the other conversations with it: in a fan-out one exception cancels all siblings.
"""

import asyncio
from collections.abc import Collection, Sequence

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.errors import PollexError
from pollex.gateway.redaction import redacted
from pollex.rubrics.answers import Answer, Question, Unanswered

LONGEST_DETAIL = 300
ROUNDING = 1e-6


async def ask_sides(
    judge: Judge, conversation: Conversation, questions: Sequence[Question]
) -> list[Answer | Unanswered]:
    """SAT and DSAT rubrics asked side by side, as in the graphs, and nothing kept."""
    found = await asyncio.gather(*(answered(judge, conversation, side) for side in sides(questions)))
    return [answer for side in found for answer in side]


async def answered(
    judge: Judge,
    conversation: Conversation,
    questions: Sequence[Question],
    secrets: Collection[str] = (),
    *,
    trusted: bool = False,
) -> list[Answer | Unanswered]:
    """Return one answer for each question; invalid answers, but a trusted judge's, and exceptions become failures."""
    try:
        answers = await judge.judge(conversation, questions)
    except PollexError:
        raise
    except Exception as error:
        return [unanswered(judge, question, detail_of(error, secrets)) for question in questions]
    if trusted:
        return list(answers)
    if wrong := foreign_types(answers):
        return [unanswered(judge, question, f"Malformed: {wrong} in place of answers") for question in questions]
    if len(answers) != len(questions) or any(
        answer.question_id not in ("", question.id) for answer, question in zip(answers, questions, strict=True)
    ):
        detail = f"Mismatch: {len(answers)} answers that are not to the {len(questions)} questions"
        return [unanswered(judge, question, detail) for question in questions]
    return [checked(judge, question, answer) for question, answer in zip(questions, answers, strict=True)]


def foreign_types(answers: object) -> str:
    """Return the names of wrong types in a custom judge's answers; empty if none."""
    if not isinstance(answers, Sequence):
        return type(answers).__name__
    return ", ".join(sorted({type(one).__name__ for one in answers if not isinstance(one, Answer | Unanswered)}))


def checked(judge: Judge, question: Question, answer: Answer | Unanswered) -> Answer | Unanswered:
    """Return the answer under its question's id, or a failure if its distribution is invalid."""
    if isinstance(answer, Answer) and not is_distribution(answer, question):
        return unanswered(judge, question, "Malformed: not a distribution over the question's options")
    return answer if answer.question_id else answer.model_copy(update={"question_id": question.id})


def is_distribution(answer: Answer, question: Question) -> bool:
    """Return whether probabilities and choice fit the options.

    NetSAT divides by the mass, so it must be positive.
    """
    p, options = answer.probabilities, len(question.options)
    if len(p) != options or answer.never_came_up:
        return question.may_never and len(p) == options and sum(p) == 0
    return 0 <= answer.chosen < options and 0 < sum(p) <= 1 + ROUNDING and min(p) >= 0  # which a NaN or infinity isn't


def unanswered(judge: Judge, question: Question, detail: str) -> Unanswered:
    """Return a failure to get an answer."""
    return Unanswered(question_id=question.id, outcome="error", detail=detail, judge=judge.name)


def detail_of(error: Exception, secrets: Collection[str]) -> str:
    """Describe an exception by its type and message, with keys removed."""
    words = redacted(str(error), secrets)[:LONGEST_DETAIL]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def sides(questions: Sequence[Question]) -> list[list[Question]]:
    """Split questions into those about SAT and about DSAT rubrics; omit an empty side."""
    kinds = ([q for q in questions if q.rubric and q.rubric.polarity == kind] for kind in ("sat", "dsat"))
    return [side for side in kinds if side]
