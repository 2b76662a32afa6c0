"""What `pollex answer` does around its graph: read, ask the system under test, write, tell."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pollex.agents.llm.asking import Asker
from pollex.agents.llm.respondent import Respondent
from pollex.conversations.case_files import read_cases
from pollex.conversations.counts import count
from pollex.conversations.options import ReadOptions
from pollex.conversations.referenced import Cases
from pollex.errors import WrongUse
from pollex.graphs.referencing import Ended, Response, answer, responses_of
from pollex.planning import Plan, tell
from pollex.prompts.profile import DomainProfile
from pollex.prompts.referencing.profile import DEFAULT, ReferencingProfile
from pollex.row_files import require_format, write_rows
from pollex.salt import salt_of
from pollex.store.store import Store
from pollex.terminal.options import RunOptions
from pollex.terminal.printing import print_json
from pollex.terminal.session import Session, session
from pollex.terminal.show import list_some, show_outcomes, show_usage, usage_json
from pollex.workers import ModelOptions, Workers, dismissed, hire, llm_options

DONE, PARTLY = 0, 3

COLUMNS = {
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


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """What a user may choose beside questions and model.

    Attributes:
        profile: A bundled profile's name or a file; its temperatures count.
        system: What the model is told before each question.
    """

    profile: str = DEFAULT
    system: str = ""
    max_tokens: int = 4096
    seed: int = 0


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
        return _plan(cases, profile, run, model, options)
    with session(run) as opened:
        show_cases(opened, cases)
        arguments = {"questions": list(sources), "out": str(out), "profile": options.profile}
        ended, staff = opened.run(_answer(opened, cases, profile, model, arguments, options))
        responses = list(responses_of(opened.store, ended.run, cases))
        write_rows(out, _rows(responses), COLUMNS)
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


def _plan(
    cases: Cases, profile: ReferencingProfile, run: RunOptions, model: ModelOptions, options: AnswerOptions
) -> int:
    """Tells what would be asked."""
    plan = Plan.of(model, DomainProfile.neutral(), run, options.seed)
    respondent = _respondent(plan.asker, options)

    async def ask() -> None:
        for case in cases:
            await respondent.respond(case.id, case.question, profile.temperature_of(case.category, case.subcategory))

    asyncio.run(ask())
    return tell(run, model, plan.planner.table, probed=False)
