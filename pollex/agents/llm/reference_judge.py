"""Grading of answers against references on a model, and without references for comparison.

Source: Liu et al. 2024, "AlignBench: Benchmarking Chinese Alignment of Large Language Models"; arXiv:2311.18743.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pollex.agents.llm.asker import Asker, Role
from pollex.agents.llm.questionnaire import Answers, Mixed, text_question
from pollex.agents.roles import Judge, no_answers
from pollex.conversations.conversation import Conversation
from pollex.conversations.references import Case
from pollex.prompts.data_boundary import Item
from pollex.prompts.grading.profile import (
    COMPARISON,
    EVIDENCE,
    EXPLANATION,
    OVERALL,
    UNSURE,
    ReferencingProfile,
    prompt,
)
from pollex.rubrics.answers import Answer, Option, Question, Unanswered
from pollex.rubrics.judge_settings import JUDGMENTS

CONSISTENT, CONTRADICTS = "consistent", "contradicts"
EVIDENCE_SAYS = (CONSISTENT, UNSURE, CONTRADICTS)
"""What may be answered to whether a reference agrees with its evidence."""

PLAIN, TYPE = "plain", "type"


class _Grader(Role, Judge):
    """Base of judges that ask one or two questionnaires by a profile."""

    def __init__(self, asker: Asker, profile: ReferencingProfile, *asked: Mixed) -> None:
        facts = asker.settings.facts(JUDGMENTS)
        super().__init__(asker, [one.prompt for one in asked], referencing=profile.fingerprint, **facts)
        self.profile, self.asked = profile, asked[0]


class ReferenceJudge(_Grader):
    """Grades a conversation's answer against the reference in its metadata; see `conversations.references.Case`.

    Whether the reference agrees with its evidence is asked in a call of its own, which doesn't show the answer: so that
    can't talk its way out of being graded, and the call is bought once for all systems under test. Where the two
    contradict each other no grade is believed.
    """

    def __init__(self, asker: Asker, profile: ReferencingProfile) -> None:
        words = profile.words
        values = {"task": words.task, "rules": profile.rule_lines(), "steps": words.steps}
        self.check = Mixed(asker, prompt("check_evidence"), {"task": words.evidence_task})
        super().__init__(asker, profile, Mixed(asker, prompt("grade_reference"), values), self.check)

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> Answers:
        """Answer each question, in order; make no call without answer or reference."""
        case = Case.of(conversation)
        if why := unanswered(case) or ("" if case.reference else "no reference"):
            return no_answers(questions, "not_scorable", why, self.asked.judge)
        *known, answer = material(case)
        checks = [question for question in questions if question.id == EVIDENCE]
        grades = [question for question in questions if question.id != EVIDENCE]
        found = await asyncio.gather(
            self.check.answers(conversation.id, known, checks),
            self.asked.answers(conversation.id, [*known, answer], grades),
        )
        by_id = {answer.question_id: answer for answers in found for answer in answers}
        return believed(questions, [by_id[question.id] for question in questions])


class PlainJudge(_Grader):
    """Grades a conversation's answer with neither reference nor rules: the general judge, to compare with."""

    def __init__(self, asker: Asker, profile: ReferencingProfile) -> None:
        values = {"task": profile.words.plain_task, "steps": profile.words.plain_steps}
        super().__init__(asker, profile, Mixed(asker, prompt("grade_plain"), values))

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> Answers:
        """Answer each question, in the questions' order."""
        case = Case.of(conversation)
        if why := unanswered(case):
            return no_answers(questions, "not_scorable", why, self.asked.judge)
        data: list[Item] = [{"part": "question", "text": case.question}, {"part": "answer", "text": case.answer}]
        return await self.asked.answers(conversation.id, data, questions)


class TaskClassifier(_Grader):
    """Tells what type of task a conversation's question sets; it sees nothing but the question."""

    def __init__(self, asker: Asker, profile: ReferencingProfile) -> None:
        values = {"task": profile.words.classify}
        super().__init__(asker, profile, Mixed(asker, prompt("classify_task"), values))

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> Answers:
        """Answer each question, in the questions' order."""
        data: list[Item] = [{"part": "question", "text": Case.of(conversation).question}]
        return await self.asked.answers(conversation.id, data, questions)


def unanswered(case: Case) -> str:
    """Return why there is no answer to grade; empty if there is one."""
    if case.answer is not None:
        return ""
    return f"no answer: {case.unanswered}" if case.unanswered else "no answer"


def material(case: Case) -> list[Item]:
    """Return the question, reference, evidence and answer as data; the answer last."""
    evidence: list[Item] = [{"part": "evidence", "url": e.url, "quote": e.quote} for e in case.evidences]
    return [
        {"part": "question", "text": case.question},
        {"part": "reference", "text": case.reference},
        *evidence,
        {"part": "answer", "text": case.answer},
    ]


def believed(questions: Sequence[Question], answers: Answers) -> Answers:
    """Mark grades as suspect if the judge found that reference and evidence contradict."""
    found = {question.id: (question, answer) for question, answer in zip(questions, answers, strict=True)}
    question, check = found.get(EVIDENCE, (None, None))
    if question is None or not isinstance(check, Answer) or question.options[check.chosen].text != CONTRADICTS:
        return answers
    why = f"the reference contradicts its evidence: {check.justification}".removesuffix(": ")
    return [
        Unanswered(question_id=answer.question_id, outcome="suspect", detail=why, judge=answer.judge)
        if isinstance(answer, Answer) and answer is not check and answer.question_id != COMPARISON
        else answer
        for answer in answers
    ]


def grade_options(profile: ReferencingProfile) -> tuple[Option, ...]:
    """Return the grades as options."""
    return tuple(Option(text=str(grade), value=float(grade)) for grade in profile.grades)


def rule_questions(profile: ReferencingProfile, type_: str | None, *, evidence: bool) -> list[Question]:
    """List the questions about an answer of a type: evidence, comparison, dimensions, and overall last."""
    options = grade_options(profile)
    asked = [evidence_question(profile)] if evidence else []
    asked.append(text_question(COMPARISON, profile.words.steps))
    for key in profile.dimensions_of(type_):
        dimension = profile.dimensions[key]
        asked.append(Question(id=key, text=f"{dimension.name}: {dimension.text}", options=options))
    return [*asked, Question(id=OVERALL, text=profile.words.overall, options=options)]


def questions_for(profile: ReferencingProfile, case: Case, told: str | None) -> list[Question]:
    """List the questions about a case's answer, of its category's type or type `told`."""
    type_ = profile.type_of(case.category, case.subcategory) or told
    return rule_questions(profile, type_, evidence=bool(case.evidences))


def evidence_question(profile: ReferencingProfile) -> Question:
    """Ask whether the reference agrees with its evidence."""
    options = tuple(Option(text=text, value=value) for text, value in zip(EVIDENCE_SAYS, (1.0, 0.5, 0.0), strict=True))
    return Question(id=EVIDENCE, text=profile.words.evidence, options=options)


def plain_questions(profile: ReferencingProfile) -> list[Question]:
    """List the questions of the judge without reference and rules: its explanation, then its grade."""
    return [text_question(EXPLANATION, profile.words.plain_steps), plain_question(profile)]


def plain_question(profile: ReferencingProfile) -> Question:
    """Ask for a grade without reference and rules."""
    return Question(id=PLAIN, text=profile.words.plain_overall, options=grade_options(profile))


def type_question(profile: ReferencingProfile) -> Question:
    """Ask for the type of a task, or that it is unknown."""
    described = {name: part.text for name, part in profile.types.items()} | {UNSURE: profile.words.unsure}
    text = " ".join([profile.words.type, *(f"[{name}: {words}]" for name, words in described.items())])
    options = tuple(Option(text=name, value=float(place)) for place, name in enumerate(described))
    return Question(id=TYPE, text=text, options=options)
