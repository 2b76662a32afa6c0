"""What `pollex judge` does around its graph: read, ask the runs, ask people, write, tell."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from pollex.agents.embedded.rater import EmbeddedRater
from pollex.agents.ensemble import Ensemble
from pollex.cli.interview import people_now
from pollex.cli.judge_output import summary_json, summary_lines
from pollex.cli.old_session import Session, session
from pollex.cli.output import (
    list_some,
    logs_from,
    print_plan,
    show_logs,
    show_outcomes,
    show_usage,
    usage_json,
)
from pollex.cli.session import print_json
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.verdicts import COLUMNS, AnswersFile, accepted_rows, human_rows, verdict_row
from pollex.formats.write import require_apart, require_format, require_writable, write_lines, write_rows
from pollex.gateway.budget import Budget
from pollex.graphs.judge.run import Decided, Judged, People, Task, answered_by_people, judge, run_named, verdicts_of
from pollex.graphs.run import Setting
from pollex.prompts.domain import DomainProfile, profile_at
from pollex.services.options import JudgeOptions, ModelOptions, RunOptions
from pollex.services.plan import plan_judge
from pollex.services.roles import Workers, embedded_workers, embedder_for, workers
from pollex.store.place import kept_in
from pollex.store.resume import conversations_of
from pollex.store.spans import Tracer
from pollex.text import count

DONE, PARTLY = 0, 3
UNDERSTOOD = "the embedded rater doesn't understand a question: it answers whether a conversation went well"


def judge_command(
    sources: Sequence[str], reading: ReadOptions, run: RunOptions, model: ModelOptions, options: JudgeOptions
) -> int:
    """Reads logs, asks the ensemble and people, writes what they came to, tells; the exit code."""
    read = (options.answers, options.domain, options.instructions, *sources)
    for path in (options.accepted, options.for_humans):
        if path is not None:
            require_writable(path, *read)
    require_format(options.out, *read)
    require_apart(options.out, options.accepted, options.for_humans)
    if not sources:
        return _go_on(run, options)
    if options.named not in (None, "last"):
        raise WrongUse(f"both LOGS and the run {options.named}", remedy="leave one out")
    if options.panel and model.model is None:
        raise WrongUse("a panel without --model", remedy="name its first member with --model")
    if twice := [name for name, n in Counter([model.model, *options.panel]).items() if n > 1]:
        remedy = "name every model once, and for more runs of it give --ensemble"
        raise WrongUse(f"{', '.join(map(str, twice))} in the panel more than once", remedy=remedy)
    if options.ask and "-" in sources:
        raise WrongUse("--ask needs the standard input that LOGS come from", remedy="give LOGS as a file")
    task, profile = options.task(model.model), profile_at(options.domain)
    if model.model is None and len(task.question.options) != 2:
        remedy = "give two options, the first for a conversation that went well, or an LLM: --model"
        raise WrongUse("the embedded rater chooses between two options alone", remedy=remedy)
    logs = logs_from(sources, reading)
    if task.precision is not None and not logs.learnable:  # all runs would be paid for, and nothing would pass
        remedy = "name their field: --label-field, or give τ by value: --tau"
        raise BadLabels("no conversation has a thumb that τ could be fitted to", remedy=remedy)
    if run.dry_run:
        return print_plan(plan_judge(logs.conversations, task, profile, run, model, options), run)
    people_file = None if options.answers is None else AnswersFile(options.answers)
    with session(run) as opened:
        show_logs(opened, logs)
        shelf = {c.id: c for c in logs}
        people = people_now(people_file, options.ask, opened, shelf.__getitem__)
        arguments = {"logs": list(sources), "question": options.question, "options": options.texts}
        judged, staff = opened.run(_judge(opened, logs, task, profile, model, options, arguments, people))
        calls = _calls_of(model, options)
        decided = _finish(opened, judged, logs.conversations, options, people_file, staff, calls)
        if run.as_json:
            bad_rows = [{"where": f"{row.source}:{row.line}", "reason": row.reason} for row in logs.bad_rows]
            panel = {each.record.name: usage_json(each) for each in staff[1:]}
            told = summary_json(judged, decided, options, calls) | {"bad_rows": bad_rows} | usage_json(staff[0])
            print_json(told | ({"panel": panel} if panel else {}))
    return PARTLY if logs.bad_rows else exit_code(judged)


def _go_on(run: RunOptions, options: JudgeOptions) -> int:
    """Takes up a run of the store for people's answers; no judge is needed."""
    if options.named is None:
        raise WrongUse("no LOGS", remedy="name files of conversations, or a run to go on with: --resume RUN")
    if run.dry_run:
        raise WrongUse("nothing to plan: a run is only taken up for people's answers", remedy="leave out --dry-run")
    people_file = None if options.answers is None else AnswersFile(options.answers)
    with session(run) as opened:
        store, named = opened.store, options.named

        def find(id_: str) -> Conversation:
            return next(conversations_of(store, run_named(store, named).id, ids=[id_]))

        people = people_now(people_file, options.ask, opened, find)
        setting = Setting(store=store, progress=opened.bars, arguments={})
        judged = opened.run(answered_by_people(store, named, setting, people))
        decided = _finish(opened, judged, list(conversations_of(store, judged.run)), options, people_file)
        if run.as_json:
            print_json(summary_json(judged, decided, options))
    return exit_code(judged)


async def _judge(
    opened: Session,
    logs: Logs,
    task: Task,
    profile: DomainProfile,
    model: ModelOptions,
    options: JudgeOptions,
    arguments: dict[str, Any],
    people: People | None,
) -> tuple[Judged, list[Workers]]:
    async with AsyncExitStack() as stack:
        ensemble, staff = await _ensemble(stack, opened, logs, task, profile, model, options)
        for each in staff:
            opened.meet(each)
        setting = opened.setting(arguments, staff[0])
        setting = replace(
            setting,
            secrets=tuple(secret for each in staff for secret in each.secrets),
            traced=partial(_traced, staff),
        )
        judged = await judge(
            logs.conversations, ensemble, task, data_fingerprint=logs.fingerprint, setting=setting, people=people
        )
        return judged, staff


def _traced(staff: Sequence[Workers], tracer: Tracer) -> None:
    """Tells all of them of the run's tracer."""
    for each in staff:
        each.traced(tracer)


async def _ensemble(
    stack: AsyncExitStack,
    opened: Session,
    logs: Logs,
    task: Task,
    profile: DomainProfile,
    model: ModelOptions,
    options: JudgeOptions,
) -> tuple[Ensemble, list[Workers]]:
    """Who is asked."""
    if model.model is None:
        embedder = embedder_for(opened.store.folder, model.embedding_model)
        embedder.watch(opened.bars)
        rater = EmbeddedRater(embedder)
        await rater.study(logs.conversations, [])
        opened.say(f"Note: {UNDERSTOOD}, {_learnt_from(rater, task)}", style="yellow")
        staff = [embedded_workers(profile, embedder, options.seed)]
        return Ensemble(rater, rule=task.rule, stop_early=options.stop_early), staff
    from pollex.agents.llm.judge import LlmJudge
    from pollex.agents.llm.rater import LlmRater

    budget = Budget(model.limits)  # of the whole command, whoever is asked
    members = [replace(model, model=name) for name in (model.model, *options.panel)]
    staff = [
        await stack.enter_async_context(workers(member, profile, opened.store, options.seed, budget))
        for member in members
    ]
    raters = []
    for each in staff:
        assert isinstance(each.roles.judge, LlmJudge)
        raters.append(LlmRater(each.roles.judge.asker, options.variant, options.told()))
    return Ensemble(*raters, rule=task.rule, stop_early=options.stop_early), staff


def _learnt_from(rater: EmbeddedRater, task: Task) -> str:
    first, second = (option.text for option in task.question.options)
    if rater.labelled:
        return f"“{first}” as what goes with thumbs up in {rater.labelled} conversations, “{second}” with thumbs down"
    return f"“{first}” or “{second}” by what signals mean in general: the log has too few thumbs to learn from"


def _finish(
    opened: Session,
    judged: Judged,
    conversations: Sequence[Conversation],
    options: JudgeOptions,
    people_file: AnswersFile | None,
    staff: Sequence[Workers] = (),
    calls: int | None = None,
) -> list[Decided]:
    """Writes the files and tells what they hold.

    Args:
        calls: What a run takes of them; None where that is not known.
    """
    decided = list(verdicts_of(opened.store, judged, conversations))
    pairs = list(zip(conversations, decided, strict=True))
    write_rows(options.out, (verdict_row(one, judged.task) for one in decided), COLUMNS)
    show_outcomes(opened, judged.counts)
    for line in summary_lines(judged, decided, calls, kept_in(opened.options.store)):
        opened.say(line)
    if people_file:
        list_some(opened, "answer was not used", "answers were not used", people_file.unused(decided))
    for each in staff:
        if len(staff) > 1:
            opened.say(f"{each.record.name}:")
        show_usage(opened, each)
    written = [str(options.out)]
    if options.accepted:
        write_lines(options.accepted, accepted_rows(pairs, judged))
        written.append(str(options.accepted))
    if options.for_humans:
        write_lines(options.for_humans, human_rows(pairs, judged))
        written.append(str(options.for_humans))
    opened.say(f"Wrote {', '.join(written)} ({judged.task.by}; run {judged.run})")
    if judged.waiting:
        waits = count(judged.waiting, "waits", "wait")
        file = shlex.quote(str(options.for_humans)) if options.for_humans else "FILE"
        going_on = f"pollex judge --resume {judged.run} --answers {file}{kept_in(opened.options.store)}"
        opened.say(f"{waits} for people: {going_on}")
    return decided


def _calls_of(model: ModelOptions, options: JudgeOptions) -> int | None:
    """Calls that a run takes; None where no model is called."""
    if model.model is None:
        return None
    from pollex.agents.llm.rater import calls_of

    return calls_of(options.variant)


def exit_code(judged: Judged) -> int:
    """3 where a conversation has no verdict because it could not be asked about; runs that disagree are a result."""
    return PARTLY if judged.counts.keys() & {"not_scorable", "too_few_runs"} else DONE
