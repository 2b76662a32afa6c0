"""Runs of `answer` and `grade`: begin or resume one, and read its results."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pollex.agents.llm.reference_judge import (
    CONSISTENT,
    EVIDENCE_SAYS,
    TYPE,
    plain_questions,
    questions_for,
    rule_questions,
    type_question,
)
from pollex.agents.llm.respondent import Respondent
from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.conversations.references import Case, Cases
from pollex.graphs.run import RunSettings, carry_out, kept_ids, running
from pollex.graphs.score.run import PORTION
from pollex.prompts.grading.profile import COMPARISON, EVIDENCE, ReferencingProfile
from pollex.rubrics.answers import Answer, Outcome, Question, Unanswered, retryable
from pollex.store.resume import answers_of, conversations_of, step
from pollex.store.rows import conversation_rows
from pollex.store.store import Store

MISSING = "not_asked"
PROFILE = "profile"
"""Name of the step that keeps by what a run grades."""

TypeFrom = Literal["category", "model", "unsure", "unanswered", ""]
"""Who told the type of a task; `unanswered` where the model was asked and failed, empty where nobody was asked."""


@dataclass(frozen=True)
class Ended:
    """The result of a run: the number of cases by outcome."""

    run: str
    counts: dict[str, int]


@dataclass(frozen=True)
class Response:
    """An answer of the system under test; None if it failed, as `outcome` says."""

    case: Case
    answer: str | None
    outcome: str
    detail: str
    model: str
    temperature: float | None


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


async def answer(cases: Cases, *, respondent: Respondent, profile: ReferencingProfile, setting: RunSettings) -> Ended:
    """Ask the system under test the questions; `responses_of` reads its answers.

    Raises:
        ResumeRefused: The run to resume was started with other settings.
    """
    from pollex.graphs.grade.answer import AnswerContext, AnswerWork, build  # LangGraph takes a while

    fingerprint = {
        "data": cases.fingerprint[:12],
        "profile": profile.fingerprint,
        "respondent": respondent.fingerprint,
    }
    store = setting.store
    async with running("answer", fingerprint, setting, [respondent.name]) as run:
        responses = list(responses_of(store, run.id, cases))
        done = [one for one in responses if one.outcome not in setting.retry_outcomes | {MISSING}]
        settled = {one.case.id for one in done}
        live = AnswerWork(
            **setting.of_run(run.id),
            stage="answer",
            total=len(cases),
            pending={case.id: None for case in cases if case.id not in settled},
            outcomes=Counter(one.outcome for one in done),
            fine=frozenset({"answered"}),
            workers=[respondent.name],
            profile=profile,
            cases={case.id: case for case in cases},
            respondent=respondent,
        )
        state = await carry_out(build(), live, AnswerContext.of(setting.arguments))
    return Ended(run.id, state["outcomes"])


def responses_of(store: Store, run: str, cases: Cases) -> Iterator[Response]:
    """Yield one response for each question, in the questions' order."""
    kept = {one.id: one for one in conversations_of(store, run)}
    for case in cases:
        yield _response(case, kept.get(case.id))


def _response(case: Case, kept: Conversation | None) -> Response:
    if kept is None:
        return Response(case, None, MISSING, "not asked", "", None)
    about = kept.metadata
    said = next((turn.content for turn in kept.turns if turn.role == "assistant"), None)
    return Response(case, said, about["outcome"], about["detail"], about["model"], about["temperature"])


async def grade(
    cases: Cases,
    *,
    profile: ReferencingProfile,
    classifier: Judge,
    judge: Judge,
    plain: Judge | None,
    setting: RunSettings,
) -> Ended:
    """Grade answers against references; `gradings_of` reads the grades.

    Args:
        classifier: Told types that no category tells.
        plain: The judge without references; None leaves it out.

    Raises:
        ResumeRefused: The run to resume was started with other settings.
    """
    from pollex.graphs.grade.graph import GradeContext, GradeWork, build  # as above

    judges = {"classifier": classifier, "judge": judge} | ({"plain": plain} if plain else {})
    fingerprint = {"data": cases.fingerprint[:12], "profile": profile.fingerprint}
    fingerprint |= {name: one.fingerprint for name, one in judges.items()}
    store, names = setting.store, sorted({one.name for one in judges.values()})
    async with running("grade", fingerprint, setting, names) as run:
        await _keep_cases(store, run.id, cases)
        await store.write_step(run.id, PROFILE, profile.model_dump(mode="json"))
        known = answers_of(store, run.id)
        again = setting.retry_outcomes
        left = [one for one in cases if not _complete(profile, one, known.get(one.id, {}), plain, again)]
        pending = {case.id: None for case in left}
        types = {id_: {TYPE: found[TYPE]} for id_, found in known.items() if _settled(found.get(TYPE), again)}
        live = GradeWork(
            **setting.of_run(run.id),
            stage="grade",
            total=len(cases),
            pending=pending,
            outcomes=Counter(
                grading_of(profile, one, known.get(one.id, {})).outcome for one in cases if one.id not in pending
            ),
            fine=frozenset({"graded"}),
            workers=names,
            profile=profile,
            cases={case.id: case for case in cases},
            classifier=classifier,
            judge=judge,
            plain=plain,
            asked=lambda case, found: questions_for(profile, case, told_type(profile, found)),
            outcome=lambda case, found: grading_of(profile, case, found).outcome,
            answers=defaultdict(dict, {id_: found for id_, found in types.items() if id_ in pending}),
            untyped={one.id for one in left if one.id not in types and _needs_type(profile, one)},
        )
        state = await carry_out(build(), live, GradeContext.of(setting.arguments))
    return Ended(run.id, state["outcomes"])


def _needs_type(profile: ReferencingProfile, case: Case) -> bool:
    """Return whether a case can be graded, and no category tells its type."""
    return bool(case.answer is not None and case.reference) and not profile.type_of(case.category, case.subcategory)


def gradings_of(store: Store, run: str, profile: ReferencingProfile, cases: Cases) -> Iterator[Grading]:
    """Yield one grading for each case, in the cases' order, read in portions."""
    for start in range(0, len(cases), PORTION):
        portion = cases.cases[start : start + PORTION]
        answers = answers_of(store, run, ids=[case.id for case in portion])
        for case in portion:
            yield grading_of(profile, case, answers.get(case.id, {}))


def kept_gradings(store: Store, run: str) -> tuple[ReferencingProfile, list[Grading]] | None:
    """Return a run's profile and gradings from the store alone; None if it has none."""
    kept = step(store, run, PROFILE)
    if kept is None:
        return None
    profile = ReferencingProfile.model_validate(kept)
    cases = Cases(tuple(Case.of(one) for one in conversations_of(store, run)))
    return profile, list(gradings_of(store, run, profile, cases))


def asked_in(store: Store, run: str) -> dict[str, Question]:
    """Return the questions of a run of `grade`, by the ids in its answers."""
    kept = step(store, run, PROFILE)
    if kept is None:
        return {}
    profile = ReferencingProfile.model_validate(kept)
    graded_on = [
        question for type_ in (*profile.types, None) for question in rule_questions(profile, type_, evidence=True)
    ]
    return {one.id: one for one in [*graded_on, *plain_questions(profile), type_question(profile)]}


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
    """Return why the model chose no type."""
    if answer is None:
        return ""
    return "unsure" if isinstance(answer, Answer) else "unanswered"


def _complete(
    profile: ReferencingProfile,
    case: Case,
    found: Mapping[str, Answer | Unanswered],
    plain: Judge | None,
    retry_outcomes: Collection[Outcome],
) -> bool:
    """Return whether nothing is left to ask about a case."""
    asked = [question.id for question in questions_for(profile, case, told_type(profile, found))]
    asked += [question.id for question in plain_questions(profile)] if plain else []
    asked += [TYPE] if TYPE in found else []
    return all(_settled(found.get(id_), retry_outcomes) for id_ in asked)


def _settled(answer: Answer | Unanswered | None, retry_outcomes: Collection[Outcome]) -> bool:
    return answer is not None and not retryable(answer, retry_outcomes)


async def _keep_cases(store: Store, run: str, cases: Cases) -> None:
    """Store the cases with references and evidence, except those stored before a resume."""
    known = kept_ids(store, run)
    for start in range(0, len(cases), PORTION):
        new = [case.conversation for case in cases.cases[start : start + PORTION] if case.id not in known]
        await store.write(conversation_rows(run, new))
