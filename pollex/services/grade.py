"""What `pollex judge --reference` does around its graph: read, grade, write rows and a page, tell."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pollex.agents.llm.asker import Asker
from pollex.agents.llm.reference_judge import (
    PlainJudge,
    ReferenceJudge,
    TaskClassifier,
    plain_question,
    questions_for,
    type_question,
)
from pollex.agents.llm.respondent import Respondent
from pollex.cli.old_session import Session, session
from pollex.cli.output import list_some, print_plan, show_outcomes, show_usage, table, usage_json
from pollex.cli.session import print_json
from pollex.conversations.references import Cases
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.grades import COLUMNS, grade_rows, summary_json
from pollex.formats.references import on_scale, read_cases, with_answers, with_humans
from pollex.formats.write import draft_of, require_apart, require_format, require_writable, write_rows
from pollex.graphs.ask import answered
from pollex.graphs.grade.run import Ended, Grading, Response, answer, grade, gradings_of, responses_of
from pollex.graphs.grade.summary import ALL, Summary, summary
from pollex.measures.intervals import Figure
from pollex.prompts.domain import DomainProfile
from pollex.prompts.grading.profile import ReferencingProfile
from pollex.reports.grades import grades_page
from pollex.services.options import AnswerOptions, ModelOptions, ReferenceOptions, RunOptions
from pollex.services.plan import Plan, call_plan
from pollex.services.roles import Workers, dismissed, hire, llm_options
from pollex.store.secret import salt_of
from pollex.store.store import Store
from pollex.text import count

OUT = Path("grades.jsonl")
SEED = 0


def reference_command(
    sources: Sequence[str],
    out: Path,
    answers: Path | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    options: ReferenceOptions,
) -> int:
    """Reads questions and answers, grades them, writes a row a question and a page, tells; the exit code."""
    if model.model is None:
        raise WrongUse(
            "grading against references needs a model: the embedded judge can't tell whether two texts say the same",
            remedy="name one: --model M, with --base-url for a server of your own",
        )
    page = options.page or out.with_suffix(".html")
    read = (answers, options.profile, *options.human, *sources)
    require_format(out, *read)
    require_writable(page, *read)
    require_apart(out, page)
    profile = ReferencingProfile.load(options.profile)
    cases = on_scale(_read(sources, answers, reading, options), profile.lowest, profile.highest)
    if run.dry_run:
        return _plan(cases, profile, run, model, options)
    with session(run) as opened:
        show_cases(opened, cases)
        if any(case.answered_by == model.model for case in cases):
            opened.say(f"Note: {model.model} grades answers of its own; judges tend to prefer these", "yellow")
        arguments = {"questions": list(sources), "out": str(out), "profile": options.profile}
        ended, staff = opened.run(_grade(opened, cases, profile, model, arguments, options))
        gradings = list(gradings_of(opened.store, ended.run, profile, cases))
        write_rows(out, grade_rows(profile, gradings, model.model, model.value), COLUMNS)
        found = summary(profile, gradings, model.value)
        _write_page(page, grades_page(found, judge=model.model, pivot=profile.pivot, run=ended.run))
        _show(opened, found, gradings)
        show_outcomes(opened, ended.counts)
        show_usage(opened, staff)
        opened.say(f"Wrote {out} and {page} ({model.model}; run {ended.run})")
        if run.as_json:
            told = {"run": ended.run, "out": str(out), "page": str(page), "judge": model.model}
            print_json(told | summary_json(found) | {"bad_rows": bad_rows_json(cases)} | usage_json(staff))
    return PARTLY if cases.bad_rows or ended.counts.keys() - {"graded"} else DONE


def _read(sources: Sequence[str], answers: Path | None, reading: ReadOptions, options: ReferenceOptions) -> Cases:
    if not sources:
        raise WrongUse("no questions were named", remedy="give a file with questions and references")
    field = None if options.human else options.human_field
    cases = read_cases(sources, reading, None if answers else field)
    if answers is not None:
        cases = with_answers(cases, [str(answers)], reading, field)
    if options.human:
        cases = with_humans(cases, options.human, reading, options.human_field)
    if all(case.answer is None and not case.unanswered for case in cases):
        remedy = "fetch some: `pollex answer QUESTIONS --model M`, then --answers answers.jsonl"
        raise WrongUse("there are no answers to grade", where=", ".join(sources), remedy=remedy)
    return cases


async def _grade(
    opened: Session,
    cases: Cases,
    profile: ReferencingProfile,
    model: ModelOptions,
    arguments: dict[str, Any],
    options: ReferenceOptions,
) -> tuple[Ended, Workers]:
    async with dismissed(await hire(model, DomainProfile.neutral(), opened.store, SEED)) as staff:
        opened.meet(staff)
        asker = asker_of(staff, model, opened.store, SEED)
        ended = await grade(
            cases,
            profile=profile,
            classifier=TaskClassifier(asker, profile),
            judge=ReferenceJudge(asker, profile),
            plain=PlainJudge(asker, profile) if options.plain else None,
            setting=opened.setting(arguments, staff),
        )
        return ended, staff


def _show(opened: Session, found: Summary, gradings: Sequence[Grading]) -> None:
    """Means over all cases, what was flagged, and how far judges are from people."""
    made = table("", "mean grade", "95 % interval", "n")
    for name in found.dimensions:
        if figure := found.mean(ALL, name):
            made.add_row(found.names.get(name, name), *_told(figure))
    opened.console.print(made)
    for judge, figure in found.areas.items():
        value, interval, n = _told(figure)
        opened.say(f"Area between distributions, {judge} and people: {value} {interval} (n = {n})")
    for flag, times in found.flags.items():
        opened.say(f"Flagged, {times} of {found.n}: {flag}", style="yellow")
    failed = [f"{g.case.id}: {g.outcome}: {g.detail}" for g in gradings if g.outcome != "graded"]
    list_some(opened, "answer is not or not wholly graded", "answers are not or not wholly graded", failed)


def _told(figure: Figure) -> tuple[str, str, str]:
    if figure.value is None:
        return f"undefined: {figure.undefined}", "", str(figure.n)
    interval = "too few" if figure.low is None else f"[{figure.low:.2f}, {figure.high:.2f}]"
    return f"{figure.value:.2f}", interval, str(figure.n)


def _write_page(path: Path, page: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        draft.write_text(page, encoding="utf-8", errors="replace")


def _plan(
    cases: Cases, profile: ReferencingProfile, run: RunOptions, model: ModelOptions, options: ReferenceOptions
) -> int:
    """Tells what would be asked; which dimensions an unknown type brings doesn't change how many calls there are."""
    plan = Plan.of(model, DomainProfile.neutral(), run, SEED)
    asyncio.run(_ask_all(cases, profile, plan.asker, plain=options.plain))
    return print_plan(call_plan(model, plan.planner.table, probed=False), run)


async def _ask_all(cases: Cases, profile: ReferencingProfile, asker: Asker, *, plain: bool) -> None:
    classifier, judge, other = (role(asker, profile) for role in (TaskClassifier, ReferenceJudge, PlainJudge))
    for case in cases:
        if case.answer and case.reference and profile.type_of(case.category, case.subcategory) is None:
            await answered(classifier, case.conversation, [type_question(profile)])
        await answered(judge, case.conversation, questions_for(profile, case, None))
        if plain:
            await answered(other, case.conversation, [plain_question(profile)])


DONE, PARTLY = 0, 3

ANSWER_COLUMNS = {
    "id": "VARCHAR",
    "category": "VARCHAR",
    "subcategory": "VARCHAR",
    "question": "VARCHAR",
    "answer": "VARCHAR",
    "outcome": "VARCHAR",
    "detail": "VARCHAR",
    "model": "VARCHAR",
    "temperature": "DOUBLE",
}


def answer_command(
    sources: Sequence[str],
    out: Path,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    options: AnswerOptions,
) -> int:
    """Reads questions, has them answered, writes a row a question, tells; the exit code."""
    if model.model is None:
        raise WrongUse("no model to answer", remedy="name one: --model M, with --base-url for a server of your own")
    require_format(out, options.profile, *sources)
    profile = ReferencingProfile.load(options.profile)
    cases = read_cases(sources, reading)
    if run.dry_run:
        return _answer_plan(cases, profile, run, model, options)
    with session(run) as opened:
        show_cases(opened, cases)
        arguments = {"questions": list(sources), "out": str(out), "profile": options.profile}
        ended, staff = opened.run(_answer(opened, cases, profile, model, arguments, options))
        responses = list(responses_of(opened.store, ended.run, cases))
        write_rows(out, _rows(responses), ANSWER_COLUMNS)
        show_outcomes(opened, ended.counts)
        failed = [f"{r.case.id}: {r.outcome}: {r.detail}" for r in responses if r.answer is None]
        list_some(opened, "question has no answer", "questions have no answer", failed)
        show_usage(opened, staff)
        opened.say(f"Wrote {out} ({model.model}; run {ended.run})")
        if run.as_json:
            told = {"run": ended.run, "out": str(out), "model": model.model, "outcomes": ended.counts}
            print_json(told | {"n": len(cases), "bad_rows": bad_rows_json(cases)} | usage_json(staff))
    return PARTLY if cases.bad_rows or ended.counts.keys() - {"answered"} else DONE


def show_cases(opened: Session, cases: Cases) -> None:
    """What was read, and what was left out."""
    with_reference, with_evidence = (sum(bool(getattr(c, name)) for c in cases) for name in ("reference", "evidences"))
    opened.say(
        f"{count(len(cases), 'question')}: {with_reference} with a reference, {with_evidence} with evidence for it"
    )
    for note in cases.notes:
        opened.say(f"Note: {note}")
    list_some(opened, "bad row was left out", "bad rows were left out", [str(row) for row in cases.bad_rows])


def bad_rows_json(cases: Cases) -> list[dict[str, Any]]:
    """Rows that were left out, for scripts."""
    return [{"where": f"{row.source}:{row.line}", "reason": row.reason} for row in cases.bad_rows]


def asker_of(staff: Workers, model: ModelOptions, store: Store, seed: int) -> Asker:
    """What the judges and the system under test ask with."""
    assert staff.gateway is not None
    assert staff.capabilities is not None
    options = llm_options(model, salt_of(store), seed)
    return Asker(staff.gateway, staff.capabilities, DomainProfile.neutral(), options)


def _respondent(asker: Asker, options: AnswerOptions) -> Respondent:
    told = replace(asker.options, max_tokens=options.max_tokens)
    return Respondent(replace(asker, options=told), options.system)


async def _answer(
    opened: Session,
    cases: Cases,
    profile: ReferencingProfile,
    model: ModelOptions,
    arguments: dict[str, Any],
    options: AnswerOptions,
) -> tuple[Ended, Workers]:
    async with dismissed(await hire(model, DomainProfile.neutral(), opened.store, options.seed)) as staff:
        opened.meet(staff)
        respondent = _respondent(asker_of(staff, model, opened.store, options.seed), options)
        setting = opened.setting(arguments, staff)
        return await answer(cases, respondent=respondent, profile=profile, setting=setting), staff


def _rows(responses: Sequence[Response]) -> Iterator[dict[str, Any]]:
    for response in responses:
        case = response.case
        yield {name: getattr(case, name) for name in ("id", "category", "subcategory", "question")} | {
            name: getattr(response, name) for name in ("answer", "outcome", "detail", "model", "temperature")
        }


def _answer_plan(
    cases: Cases, profile: ReferencingProfile, run: RunOptions, model: ModelOptions, options: AnswerOptions
) -> int:
    """Tells what would be asked."""
    plan = Plan.of(model, DomainProfile.neutral(), run, options.seed)
    respondent = _respondent(plan.asker, options)

    async def ask() -> None:
        for case in cases:
            await respondent.respond(case.id, case.question, profile.temperature_of(case.category, case.subcategory))

    asyncio.run(ask())
    return print_plan(call_plan(model, plan.planner.table, probed=False), run)
