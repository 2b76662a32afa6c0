"""Runs of `grade`: begin or resume one, and read its grades."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping

from pollex.agents.gradings import Grading, grading_of, told_type
from pollex.agents.llm.reference_judge import TYPE, plain_questions, questions_for, rule_questions, type_question
from pollex.agents.roles import Judge
from pollex.conversations.references import Case, Cases
from pollex.graphs.run import carry_out
from pollex.prompts.grading.profile import ReferencingProfile
from pollex.rubrics.answers import Answer, Outcome, Question, Unanswered, retryable
from pollex.services.runs import RunSettings, kept_ids, running
from pollex.store.resume import PORTION, answers_of, conversations_of, step
from pollex.store.rows import conversation_rows
from pollex.store.store import Store

PROFILE = "profile"
"""Name of the step that keeps by what a run grades."""


async def grade_cases(
    cases: Cases,
    *,
    profile: ReferencingProfile,
    classifier: Judge,
    judge: Judge,
    plain: Judge | None,
    setting: RunSettings,
) -> tuple[str, dict[str, int]]:
    """Grade answers against references; return the run, and how many came to what. `gradings_of` reads the grades.

    Args:
        classifier: Told types that no category tells.
        plain: The judge without references; None leaves it out.

    Raises:
        ResumeRefused: The run to resume was started with other settings.
    """
    from pollex.graphs.grade.graph import GradeContext, GradeWork, build  # LangGraph takes a while

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
    return run.id, state["outcomes"]


def _needs_type(profile: ReferencingProfile, case: Case) -> bool:
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
