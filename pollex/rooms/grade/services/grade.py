"""Grade answers against references."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pollex.agents.llm.asker import PromptAsker
from pollex.agents.roles import Judge, answer_each_question
from pollex.conversations.logs import BadRow
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.write import (
    require_distinct_outputs,
    require_known_ending,
    require_writable_output_path,
    write_rows,
)
from pollex.graphs.context import Progress
from pollex.graphs.run import carry_out_run
from pollex.outputs import write_text
from pollex.rooms.grade.agents.llm.reference_judge import (
    TYPE_QUESTION_ID,
    CaseGrading,
    PlainJudge,
    ReferenceJudge,
    TaskClassifier,
    get_type_by_model,
    list_case_questions,
    list_plain_questions,
    list_rule_questions,
    make_grading,
    make_type_question,
)
from pollex.rooms.grade.conversations.references import ReferenceCase, ReferenceCases, detect_script
from pollex.rooms.grade.formats.grade_summary import (
    ALL_CATEGORIES,
    GRADE_COLUMNS,
    GradeReading,
    GradeSummary,
    iterate_grade_rows,
    make_summary_json,
    summarize_grades,
)
from pollex.rooms.grade.formats.references import (
    add_answers,
    add_human_grades,
    drop_unusable_grades,
    read_cases,
)
from pollex.rooms.grade.prompts.grading.profile import ReferencingProfile
from pollex.rooms.grade.reports.grades import choose_example, render_grades_page
from pollex.rubrics.answers import (
    Answer,
    NoAnswerOutcome,
    Question,
    Unanswered,
    may_asking_again_bring_answer,
)
from pollex.runs.by_model import require_model_name, run_work_by_model
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.run import RunSettings, read_conversation_ids
from pollex.runs.usage import ModelUsage, render_usage_by_stage
from pollex.runs.workspace import open_workspace
from pollex.services.dry_run import plan_dry_run
from pollex.services.logs import Sources, format_count_with_lines, list_source_names
from pollex.services.results import TabularResult, format_outcomes
from pollex.store.resume import (
    CONVERSATIONS_PER_QUERY,
    iterate_conversations,
    read_answers,
    read_step_result,
)
from pollex.store.rows import make_conversation_rows
from pollex.store.store import Store
from pollex.text import (
    JsonDict,
    TerminalLine,
    TerminalLines,
    TerminalTable,
    format_count,
    render_first_lines,
)

GRADING_SEED = 0
RoleT = TypeVar("RoleT")


@dataclass(frozen=True, kw_only=True, repr=False)
class GradeResult(TabularResult):
    """Grades of answers, with their means and distributions.

    Attributes:
        out: File of a row a question; None where none was written; `page` likewise.
    """

    fine = ("graded",)
    columns = ("id", "category", "type", "outcome", "overall", "plain", "human")

    run: str
    judge: str
    out: Path | None
    page: Path | None
    summary: GradeSummary
    profile: ReferencingProfile
    value: GradeReading
    gradings: tuple[CaseGrading, ...]
    outcomes: dict[str, int]
    bad_rows: tuple[BadRow, ...] = ()
    usage: ModelUsage | None = None

    def records(self) -> Iterator[dict[str, object]]:
        return iterate_grade_rows(self.profile, self.gradings, self.judge, self.value)

    def told(self) -> TerminalLines:
        """Yield mean grades, flags, and the distance between judges and people."""
        grades = self.summary
        # mean grades over all categories
        means = []
        for name in grades.dimensions:
            means.append((grades.names.get(name, name), grades.mean(ALL_CATEGORIES, name)))

        rows = []
        for name, figure in means:
            if figure:
                rows.append((name, f"{figure:.2f}", figure.n))

        yield TerminalTable(("", "mean grade  [95 % interval]", "n"), rows)
        for judge, figure in grades.areas.items():
            yield f"Area between distributions, {judge} and people: {figure:.2f} (n = {figure.n})"

        # agreement with people, on dimensions that they graded, too
        agreed = {}
        for name in grades.dimensions:
            if (ALL_CATEGORIES, name) in grades.agreement:
                agreed[name] = grades.agreement[ALL_CATEGORIES, name]

        if agreed:
            rows_of_agreement = []
            for name, figures in agreed.items():
                rows_of_agreement.append(
                    (
                        grades.names.get(name, name),
                        *(f"{figure:.2f}" for figure in figures.values()),
                        figures["alpha"].n,
                    )
                )

            yield TerminalTable(
                ("agreement with people", "Pearson", "Spearman", "Krippendorff's α", "n"),
                rows_of_agreement,
            )

        for flag, times in grades.flags.items():
            yield TerminalLine(f"Flagged, {times} of {grades.n}: {flag}", "yellow")

        # cases without all their grades, with the reason
        failed = []
        for g in self.gradings:
            if g.outcome != "graded":
                failed.append(f"{g.case.id}: {g.outcome}: {g.detail}")

        yield from render_first_lines(
            "answer is not or not wholly graded", "answers are not or not wholly graded", failed
        )
        yield format_outcomes(self.outcomes)
        yield from render_usage_by_stage(self.usage)
        yield f"Wrote {self.out} and {self.page} ({self.judge}; run {self.run})"

    def as_json(self) -> JsonDict:
        return (
            self.of("run", "out", "page", "judge")
            | make_summary_json(self.summary)
            | self.of("bad_rows", "usage")
        )


def grade_answers(
    questions: Sources,
    *,
    answers: Path | None = None,
    profile: str | None = None,
    plain: bool = False,
    human: Sequence[str] = (),
    human_field: str | None = None,
    out: Path | None = None,
    page: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> GradeResult:
    """Grade answers against references, on the dimensions of each task's type and as a whole.

    Args:
        answers: File of answers; None where the questions have them in their field `answer`.
        profile: Scale, rules and dimensions: a bundled profile's name, or a file; None: as the
            questions' language is.
        plain: Whether a judge without references grades, too, to compare.
        human: Files of people's grades, by id.
        human_field: Field of people's grades, in those files, or else in the answers or questions.
        out: Where a row a question is written.
        page: Where the page about the grades is written.

    Raises:
        BadInput: A file or row can't be read, or nothing in it could be used.
        WrongUse: No model is named, or there are no answers to grade.
    """
    judge = require_model_name(model, "grading against references needs an LLM")
    # no output may be a file that is read
    read_files = (answers, profile, *human, *list_source_names(questions))
    if out is not None:
        require_known_ending(out, *read_files)
    if page is not None:
        # its name comes from that of the rows: nobody asked for another page's place
        require_writable_output_path(page, *read_files, named=False)

    require_distinct_outputs(out, page)
    # questions, answers and people's grades, joined by id
    cases = _read_cases(list_source_names(questions), answers, human, human_field, reading)
    rules = choose_profile(profile, cases)
    cases = drop_unusable_grades(cases, rules.lowest, rules.highest)
    report_cases(cases, progress)

    if run.dry_run:
        raise plan_dry_run(
            model,
            run,
            GRADING_SEED,
            lambda plan: _ask_about_all_cases(cases, rules, plan.asker, plain=plain),
        )

    with open_workspace(run, progress) as opened:
        # a judge that wrote the answers itself is told of, not refused
        if any(case.answered_by == judge for case in cases):
            progress.note(f"Note: {judge} grades answers of its own; judges tend to prefer these")
        arguments = {
            "questions": list_source_names(questions),
            "out": out and str(out),
            "profile": rules.language,
        }
        (graded, outcomes), usage = run_work_by_model(
            opened,
            model,
            GRADING_SEED,
            arguments,
            lambda asker, setting: grade_cases(
                cases,
                profile=rules,
                classifier=TaskClassifier(asker, rules),
                judge=ReferenceJudge(asker, rules),
                plain=PlainJudge(asker, rules) if plain else None,
                setting=setting,
            ),
        )
        # gradings of the whole run, also those of an earlier start
        gradings = tuple(iterate_gradings(opened.store, graded, rules, cases))

    result = GradeResult(
        run=graded,
        judge=judge,
        out=out,
        page=page,
        summary=summarize_grades(rules, gradings, model.settings.value),
        profile=rules,
        value=model.settings.value,
        gradings=gradings,
        outcomes=outcomes,
        bad_rows=tuple(cases.bad_rows),
        usage=usage,
    )
    # files are written last, when all gradings are in
    if out is not None:
        write_rows(out, result.records(), GRADE_COLUMNS)

    if page is not None:
        shown = choose_example(rules, gradings)
        html = render_grades_page(
            result.summary,
            judge=judge,
            pivot=rules.pivot,
            run=graded,
            example=shown,
        )
        _write_page(page, html)

    return result


def choose_profile(named: str | None, cases: ReferenceCases) -> ReferencingProfile:
    """Load the profile that is named, or else the one in the questions' language."""
    chinese = detect_script("\n".join(case.question for case in cases)) == "Han"
    return ReferencingProfile.load(named or ("chinese" if chinese else "english"))


def report_cases(cases: ReferenceCases, progress: Progress) -> None:
    """Tell what was read, and what was left out."""
    # references and evidence are counted: without them grades mean less
    references, evidence = (
        sum(bool(getattr(case, name)) for case in cases) for name in ("reference", "evidences")
    )
    progress.note(
        f"{format_count(len(cases), 'question')}: {references} with a reference, {evidence} with evidence for it"
    )
    # what was left out in reading, with the reason
    for note in cases.notes:
        progress.note(f"Note: {note}")

    for line in format_count_with_lines(
        "bad row was left out", "bad rows were left out", [str(row) for row in cases.bad_rows]
    ):
        progress.note(line)


def _read_cases(
    sources: list[str],
    answers: Path | None,
    human: Sequence[str],
    human_field: str | None,
    reading: ReadOptions,
) -> ReferenceCases:
    # people's own files have the field, else answers, else questions
    field = None if human else human_field
    cases = read_cases(sources, reading, None if answers else field)
    if answers is not None:
        cases = add_answers(cases, [str(answers)], reading, field)
    if human:
        cases = add_human_grades(cases, human, reading, human_field)

    # an answer that failed is one to report, so it counts as there
    if all(case.answer is None and not case.unanswered for case in cases):
        hint = "fetch some: `pollex answer QUESTIONS --model M`, then name their file"
        what = "there are no answers to grade"
        where = ", ".join(sources)
        raise WrongUse(
            what,
            where=where,
            hint=hint,
            option={"answers": "answers.jsonl"},
        )

    return cases


def _write_page(path: Path, page: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page)


async def _ask_about_all_cases(
    cases: ReferenceCases,
    profile: ReferencingProfile,
    asker: PromptAsker,
    *,
    plain: bool,
) -> None:
    classifier, judge, other = (
        role(asker, profile) for role in (TaskClassifier, ReferenceJudge, PlainJudge)
    )
    # a type is asked for only where no category tells it
    for case in cases:
        if (
            case.answer
            and case.reference
            and profile.type_of(case.category, case.subcategory) is None
        ):
            await answer_each_question(
                classifier,
                case.conversation,
                [make_type_question(profile)],
            )

        await answer_each_question(
            judge,
            case.conversation,
            list_case_questions(profile, case, None),
        )
        # the judge without references gets the same conversation
        if plain:
            await answer_each_question(other, case.conversation, list_plain_questions(profile))


PROFILE_RECORD_NAME = "profile"
"""Name of the step that keeps by what a run grades."""


async def grade_cases(
    cases: ReferenceCases,
    *,
    profile: ReferencingProfile,
    classifier: Judge,
    judge: Judge,
    plain: Judge | None,
    setting: RunSettings,
) -> tuple[str, dict[str, int]]:
    """Grade answers against references; return the run, and how many came to what. `iterate_gradings` reads the grades.

    Args:
        classifier: Told types that no category tells.
        plain: The judge without references; None leaves it out.

    Raises:
        ResumeRefused: The run to resume was started with other settings.
    """
    # LangGraph takes a while
    from pollex.rooms.grade.graphs.graph import GradeContext, GradeWork, build

    # the rules' fingerprint and the judges': another of them is another run
    judges = {"classifier": classifier, "judge": judge} | ({"plain": plain} if plain else {})
    fingerprint = {"data": cases.fingerprint[:12], "profile": profile.fingerprint}
    fingerprint |= {name: judge.fingerprint for name, judge in judges.items()}
    store = setting.store
    names = sorted({judge.name for judge in judges.values()})
    async with setting.begin_or_resume("grade", fingerprint, names) as run:
        # cases and profile are stored, so that pages can be made without the files
        await _keep_cases(store, run.id, cases)
        await store.write_step(run.id, PROFILE_RECORD_NAME, profile.model_dump(mode="json"))
        answers = read_answers(store, run.id)
        again = setting.retry_outcomes
        # cases with a question that is open, or may be asked again
        left = []
        for case in cases:
            if not _is_complete(profile, case, answers.get(case.id, {}), plain, again):
                left.append(case)

        pending = {case.id: None for case in left}
        # types that an earlier start found stay
        types = {}
        for id_, case_answers in answers.items():
            if _is_settled(case_answers.get(TYPE_QUESTION_ID), again):
                types[id_] = {TYPE_QUESTION_ID: case_answers[TYPE_QUESTION_ID]}

        live = GradeWork(
            **setting.of_run(run.id),
            stage="grade",
            total=len(cases),
            pending=pending,
            outcomes=Counter(
                make_grading(profile, case, answers.get(case.id, {})).outcome
                for case in cases
                if case.id not in pending
            ),
            fine=frozenset({"graded"}),
            workers=names,
            profile=profile,
            cases={case.id: case for case in cases},
            classifier=classifier,
            judge=judge,
            plain=plain,
            questions_for=lambda case, case_answers: list_case_questions(
                profile, case, get_type_by_model(profile, case_answers)
            ),
            outcome=lambda case, case_answers: make_grading(profile, case, case_answers).outcome,
            answers=defaultdict(
                dict, {id_: case_answers for id_, case_answers in types.items() if id_ in pending}
            ),
            # cases whose type has to be asked for before they are graded
            untyped={
                case.id for case in left if case.id not in types and _needs_type(profile, case)
            },
        )
        state = await carry_out_run(
            build(),
            live,
            GradeContext.of(setting.arguments),
        )

    return run.id, state["outcomes"]


def _needs_type(profile: ReferencingProfile, case: ReferenceCase) -> bool:
    return bool(case.answer is not None and case.reference) and not profile.type_of(
        case.category, case.subcategory
    )


def iterate_gradings(
    store: Store,
    run: str,
    profile: ReferencingProfile,
    cases: ReferenceCases,
) -> Iterator[CaseGrading]:
    """Yield one grading for each case, in the cases' order, read in batches."""
    for start in range(0, len(cases), CONVERSATIONS_PER_QUERY):
        batch = cases.cases[start : start + CONVERSATIONS_PER_QUERY]
        answers = read_answers(store, run, ids=[case.id for case in batch])
        for case in batch:
            yield make_grading(profile, case, answers.get(case.id, {}))


def read_kept_gradings(
    store: Store, run: str
) -> tuple[ReferencingProfile, list[CaseGrading]] | None:
    """Return a run's profile and gradings from the store alone; None if it has none."""
    profile_facts = read_step_result(store, run, PROFILE_RECORD_NAME)
    if profile_facts is None:
        return None

    profile = ReferencingProfile.model_validate(profile_facts)
    cases = ReferenceCases(
        tuple(ReferenceCase.of(conversation) for conversation in iterate_conversations(store, run))
    )
    return profile, list(iterate_gradings(store, run, profile, cases))


def read_asked_questions(store: Store, run: str) -> dict[str, Question]:
    """Return the questions of a run of `grade`, by the ids in its answers."""
    # the profile as it was when the run began
    profile_facts = read_step_result(store, run, PROFILE_RECORD_NAME)
    if profile_facts is None:
        return {}

    profile = ReferencingProfile.model_validate(profile_facts)
    # questions of all types together: a dimension has one question in all of them
    graded_on = []
    for type_ in (*profile.types, None):
        graded_on.extend(list_rule_questions(profile, type_, evidence=True))

    return {
        question.id: question
        for question in [*graded_on, *list_plain_questions(profile), make_type_question(profile)]
    }


def _is_complete(
    profile: ReferencingProfile,
    case: ReferenceCase,
    answers: Mapping[str, Answer | Unanswered],
    plain: Judge | None,
    retry_outcomes: Collection[NoAnswerOutcome],
) -> bool:
    # with the type that is known, other questions belong to the case
    question_ids = []
    for question in list_case_questions(profile, case, get_type_by_model(profile, answers)):
        question_ids.append(question.id)

    question_ids += [question.id for question in list_plain_questions(profile)] if plain else []
    question_ids += [TYPE_QUESTION_ID] if TYPE_QUESTION_ID in answers else []
    return all(_is_settled(answers.get(id_), retry_outcomes) for id_ in question_ids)


def _is_settled(
    answer: Answer | Unanswered | None, retry_outcomes: Collection[NoAnswerOutcome]
) -> bool:
    return answer is not None and not may_asking_again_bring_answer(answer, retry_outcomes)


async def _keep_cases(store: Store, run: str, cases: ReferenceCases) -> None:
    """Store the cases with references and evidence, except those stored before a resume."""
    stored_ids = read_conversation_ids(store, run)
    for start in range(0, len(cases), CONVERSATIONS_PER_QUERY):
        new = []
        for case in cases.cases[start : start + CONVERSATIONS_PER_QUERY]:
            if case.id not in stored_ids:
                new.append(case.conversation)

        await store.write(make_conversation_rows(run, new))
