"""Prove a change of the assistant's prompt on conversations that took no part in finding it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pollex.agents.assistant import (
    Assistant,
    EndpointAssistant,
    FileAssistant,
    ReplyRequest,
    messages_before,
)
from pollex.agents.llm.judge import LlmJudge
from pollex.agents.reply_judge import LastExchangeJudge, ReplyJudge, reply_judge_of
from pollex.conversations.logs import Logs
from pollex.errors import BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.write import require_writable
from pollex.gateway.budget import UsageTable
from pollex.graphs.context import Progress
from pollex.graphs.remedy.run import Proven, times_proved
from pollex.graphs.remedy.run import prove as run_graph
from pollex.graphs.run import digest
from pollex.measures.agreement import weighted_kappa
from pollex.measures.intervals import Figure
from pollex.measures.looks import LOOKS, alpha_of, bounds_at_equal_steps
from pollex.measures.paired_effects import smallest_effect
from pollex.measures.proofs import ANY, FINE, ProofArrays, verdict_of
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import NEUTRAL, Answer, Question
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.grade import asker_of
from pollex.services.judging import confirmed, hire_judge, seed_of
from pollex.services.logs import Sources, files_of, logs_from, names_of
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.plan import CallPlan, Plan, Planned, call_plan
from pollex.services.remedy.contexts import held_in, target_of, targets
from pollex.services.remedy.edits import PromptEdit, read_edit
from pollex.services.remedy.prompt_text import PLACE, PromptText
from pollex.services.remedy.rendering import rendered_for
from pollex.services.remedy.result import ARMS, RemedyResult, write_result
from pollex.services.remedy.sample import ProofSample, RemedyOptions, sampled, waves_of
from pollex.services.results import Usage
from pollex.services.roles import dismissed, hire
from pollex.services.workspace import Workspace, workspace

REPLIES = 2
"""Of each arm to a context."""
FEWEST_FAILURES, FEWEST_USERS = 30, 10
SPREAD = 0.32
"""Standard deviation of a user's difference with two replies an arm, for plans; as in the benchmark's world."""
LEAST_KAPPA, FEWEST_JUDGED = 0.6, 30
"""A model must know a target in the reply alone as it does in whole conversations, measured on so many replies."""
LEAKED = 10
"""Words of the system prompt in a row that are a leak."""
Checks = Mapping[str, Callable[[str, str], bool]]


def keeps_to_itself(reply: str, system: str) -> bool:
    """Tell whether a reply has no ten words in a row of the system prompt."""
    said, told = reply.casefold().split(), " ".join(system.casefold().split())
    return not any(" ".join(said[n : n + LEAKED]) in told for n in range(len(said) - LEAKED + 1))


CHECKS: Checks = {
    "a reply came": lambda reply, _system: bool(reply),
    "the system prompt isn't told": keeps_to_itself,
    "no place is left unfilled": lambda reply, _system: not PLACE.search(reply),
}
"""What is checked of a reply without a judge."""


@dataclass(frozen=True, kw_only=True)
class AssistantOptions:
    """How the assistant is asked: an object of Python, a folder of files, or a model at an endpoint.

    Attributes:
        model: With its endpoint, price and caps.
    """

    given: Assistant | None = None
    files: Path | None = None
    model: ModelOptions | None = None
    temperature: float | None = None


def remedy(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    options: RemedyOptions,
    assistant: AssistantOptions,
    *,
    out: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> RemedyResult:
    """Prove one change of a prompt.

    Args:
        out: Where the result is written (.json), with a table of replies and the edit beside it.

    Raises:
        AnswersPending: The assistant's replies are to be written into a file first.
        BadInput: The edit doesn't apply, or changes what is protected.
        BadLabels: There are too few failing contexts for a proof.
        WrongUse: The target can't be one, or the set's judge has to be confirmed.
    """
    if out is not None:
        require_writable(out, *files_of(logs, rubrics, options.prompt, options.edit))
    rubric_set, edit, sample, read = gathered(logs, rubrics, options, reading, run, progress)
    if run.dry_run:
        raise Planned(_plan(rubric_set, edit, sample, options, assistant, run, model))
    with workspace(run, progress, read) as opened:
        arguments: dict[str, Any] = {"logs": names_of(logs), "rubrics": names_of(rubrics), "target": options.target}
        arguments |= {"edit": str(options.edit), "out": out and str(out)}
        result = opened.run(_proved(opened, rubric_set, edit, sample, options, assistant, model, arguments))
    result = replace(result, out=out, bad_rows=read.bad_rows)
    if out is not None:
        write_result(result, out)
    return result


def gathered(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    options: RemedyOptions,
    reading: ReadOptions,
    run: RunOptions,
    progress: Progress,
) -> tuple[RubricSet, PromptEdit, ProofSample, Logs]:
    """Read everything, and choose the contexts."""
    rubric_set = rubrics if isinstance(rubrics, RubricSet) else RubricSet.load(rubrics, arrays=False)
    prompt = PromptText.load(options.prompt, options.keep)
    edit = read_edit(options.edit, prompt)
    read = logs_from(logs, reading, progress)
    held = held_in(rubric_set, read.conversations, run.store)
    target = target_of(rubric_set, held, options.target)
    guards = tuple(one.rubric for one in targets(rubric_set, held) if one.rubric.id != target.rubric.id)
    sample = sampled(target, guards, read.conversations, rubric_set.learned_from, prompt, options)
    if sample.failures < FEWEST_FAILURES or sample.users < FEWEST_USERS:
        more = max(FEWEST_FAILURES - sample.failures, FEWEST_USERS - sample.users, 1)
        what = f"{sample.failures} failing contexts of {sample.users} users are too few for a proof"
        told = [f"{sample.unmatched} more are under another prompt (--any-prompt)"] if sample.unmatched else []
        least = f"{FEWEST_FAILURES} of {FEWEST_USERS} users are needed: {more} more"
        remedy_ = "; ".join([*told, least, "until then: `pollex remedy brief` and `pollex remedy cases`"])
        raise BadLabels(what, where=target.rubric.id, remedy=remedy_)
    return rubric_set, edit, sample, read


def arrays_of(sample: ProofSample, names: Sequence[str]) -> ProofArrays:
    """Make the empty arrays of a proof."""
    n = len(sample.contexts)
    users = {user: number for number, user in enumerate(dict.fromkeys(one.user for one in sample.contexts))}
    return ProofArrays(
        np.full((n, 2, REPLIES, len(names)), np.nan),
        np.full((n, 2, REPLIES), np.nan),
        np.array(sample.strata),
        np.array([users[one.user] for one in sample.contexts]),
        np.array(waves_of(sample)),
        names,
    )


def items_of(sample: ProofSample, edit: PromptEdit, *, any_prompt: bool) -> list[Any]:
    """Render both prompts for each context."""
    from pollex.graphs.remedy.graph import ProofItem  # LangGraph takes a quarter of a second to import

    found = []
    for context in sample.contexts:
        old = rendered_for(context, edit.old, any_prompt=any_prompt)
        new = rendered_for(context, edit.new, any_prompt=any_prompt, made_from=edit.old)
        assert old is not None, "others were left out"
        assert new is not None, "the places of both are the same"
        found.append(ProofItem(context, (old, new), messages_before(context)))
    return found


async def _proved(
    opened: Workspace,
    rubric_set: RubricSet,
    edit: PromptEdit,
    sample: ProofSample,
    options: RemedyOptions,
    asked: AssistantOptions,
    model: ModelOptions,
    arguments: dict[str, Any],
) -> RemedyResult:
    rubrics = [sample.target.rubric, *sample.guards]
    questions = [Question.about(one, rubric_set.judge.scale) for one in rubrics]
    arrays = arrays_of(sample, [*(one.text for one in rubrics), *CHECKS])
    frozen = frozen_of(sample, edit, options, arrays)
    async with AsyncExitStack() as stack:
        staff = await stack.enter_async_context(dismissed(await hire_judge(model, rubric_set, opened.store)))
        judge, assistant, paid = reply_judge_of(staff.roles.judge), asked.given, staff
        if asked.model is not None:
            hired = await hire(asked.model, DomainProfile.neutral(), opened.store, options.seed)
            paid = await stack.enter_async_context(dismissed(hired))
            asker = asker_of(paid, asked.model, opened.store, options.seed)
            assistant = EndpointAssistant(asker, asked.temperature)
        if asked.files is not None:
            assistant = FileAssistant.of(asked.files)
        if assistant is None:
            raise WrongUse("no assistant is named", remedy="give a profile, a function, a graph or a folder of files")
        opened.announce(paid)
        kappa = await agreement(judge, sample, questions[0])
        times = times_proved(opened.store, sample.target.rubric.id, frozen["hashes"], frozen["proof"])
        bounds = bounds_at_equal_steps(LOOKS, alpha_of(times))
        proven = await run_graph(
            items_of(sample, edit, any_prompt=options.any_prompt),
            arrays,
            questions,
            list(CHECKS.values()),
            assistant=assistant,
            judge=judge,
            bounds=bounds,
            replies=REPLIES,
            seed=options.seed,
            frozen=frozen | {"bounds": bounds, "judge": judge.fingerprint, "assistant": assistant.name},
            setting=opened.setting(arguments, paid),
        )
        usage, judging = Usage.of(paid), Usage.of(staff)
    last = proven.look - 1
    primary = arrays.primary(last, bounds, proven.outcome)
    guardrails = arrays.guardrails(last, options.margin)
    verdict, against = verdict_of(primary, guardrails, diverged(proven))
    return RemedyResult(
        run=proven.run,
        registered=proven.registered,
        edit=edit,
        target=sample.target.rubric,
        verdict=verdict,
        against=tuple(against),
        primary=primary,
        guardrails=tuple(guardrails),
        traffic=arrays.traffic(last, sample.shares),
        sample=sample,
        proven=proven,
        assistant=assistant.name,
        judge=judge.name,
        times=times,
        usage=usage,
        judging=None if paid is staff else judging,
        notes=tuple(notes_on(judge.name, assistant.name, times, kappa)),
    )


async def agreement(judge: ReplyJudge, sample: ProofSample, question: Question) -> Figure | None:
    """Measure whether a model answers of the logged reply alone as it did of the whole conversation.

    A built-in judge answered both where the target was chosen; see `contexts.survives`.

    Raises:
        WrongUse: It doesn't: what the rubric tells of isn't in the reply, or the judge can't see it there.
    """
    if isinstance(judge, LastExchangeJudge):
        return None
    known = [(one, s) for one, s in zip(sample.contexts, sample.strata, strict=True) if s != ANY]
    answers = [judge.judge_reply(context.cut, [question]) for context, _ in known]
    found = [answer for (answer,) in await asyncio.gather(*answers)]
    failed = (sample.target.rubric.polarity == "dsat", sample.target.rubric.polarity != "dsat")
    pairs = [
        (float(failed[stratum]), float(not answer.never_came_up and answer.value(question.options) > NEUTRAL))
        for (_, stratum), answer in zip(known, found, strict=True)
        if isinstance(answer, Answer)
    ]
    if len(pairs) < FEWEST_JUDGED or not any(s == FINE for _, s in known):
        return Figure(None, n=len(pairs), undefined=f"{len(pairs)} replies, {FEWEST_JUDGED} of both kinds are needed")
    whole, alone = np.array(pairs).T
    kappa = weighted_kappa(whole, alone, np.arange(len(pairs)), np.random.default_rng(0))
    if kappa.value is None or kappa.value < LEAST_KAPPA:
        told = kappa.undefined if kappa.value is None else f"κ {kappa.value:.2f}"
        what = f"shown the reply alone, {judge.name} answers otherwise than of whole conversations: {told}, n {kappa.n}"
        raise WrongUse(what, where=question.id, remedy="take another target, or reword it (`pollex rubrics reword`)")
    return kappa


def frozen_of(sample: ProofSample, edit: PromptEdit, options: RemedyOptions, arrays: ProofArrays) -> dict[str, Any]:
    """Return all that may not change once the first reply is asked for."""
    frozen: dict[str, Any] = {
        "target": sample.target.rubric.id,
        "hashes": sorted({one.conversation.text_hash[:16] for one in sample.contexts}),
        "contexts": [[one.conversation.id, one.turn] for one in sample.contexts],
        "waves": arrays.wave.tolist(),
        "questions": list(arrays.names),
        "prompts": [edit.old.text, edit.new.text],
        "margin": options.margin,
        "seed": options.seed,
        "replies": REPLIES,
    }
    return frozen | {"proof": digest(frozen)}


def diverged(proven: Proven) -> list[str]:
    """Say which arms left the recorded tools too often for a proof by replies."""
    total = sum(place[1] == 0 for place in proven.texts)
    arms = [ARMS[arm] for arm, kinds in proven.missing.items() if kinds["diverged"] > 0.1 * total]
    return [f"over 10 % of the {arm} arm left the recorded calls of tools" for arm in arms]


def notes_on(judge: str, assistant: str, times: int, kappa: Figure | None) -> list[str]:
    """Return what a reader must know."""
    found = ["judged better isn't better: only people's blind pairs or thumbs after a release tell that"]
    found.append("no second reader compared the replies")
    if kappa is not None:
        told = kappa.undefined if kappa.value is None else f"κ {kappa.value:.2f}, n {kappa.n}"
        found.append(f"the judge, of the reply alone against whole conversations: {told}")
    if judge == assistant:
        found.insert(0, "judge and assistant are one model: the verdict is that of its own family")
    if times > 1:
        found.append(f"proof {times} on conversations that proved before: its level is {alpha_of(times):.4g}")
    return found


def _plan(
    rubric_set: RubricSet,
    edit: PromptEdit,
    sample: ProofSample,
    options: RemedyOptions,
    assistant: AssistantOptions,
    run: RunOptions,
    model: ModelOptions,
) -> CallPlan:
    """Count the calls of a proof, and say the smallest effect that it can find."""
    calls = len(sample.contexts) * 2 * REPLIES
    found = smallest_effect(SPREAD, sample.users, bounds_at_equal_steps()[-1])
    notes = [
        f"{calls} replies: {len(sample.contexts)} contexts ({sample.failures} failing, of {sample.users} users), two "
        f"prompts, {REPLIES} replies each; a look after each quarter may end it sooner.",
        f"The smallest effect that it finds in 80 %: {found:.2f} of the scale. Where half of these replies fail again, "
        "an edit that mends half of that is worth about .10.",
        *sample.notes,
    ]
    judged = asyncio.run(_judging(rubric_set, sample, model, run))
    if assistant.model is None:
        notes.append("The assistant is a function or files of yours: what it asks is its own affair.")
        if judged is None:
            return CallPlan(models=(), price=None, notes=tuple(notes))
        counted = call_plan(judged[0], judged[1], probed=judged[2])
        return replace(counted, notes=(*counted.notes, *notes))
    plan = Plan.of(assistant.model, DomainProfile.neutral(), run, options.seed)
    speaker = EndpointAssistant(plan.asker, assistant.temperature)
    asyncio.run(_replying(plan, speaker, items_of(sample, edit, any_prompt=options.any_prompt), options.seed))
    panel = () if judged is None else ((rubric_set.judge.name, judged[1]),)
    counted = call_plan(assistant.model, plan.planner.table, probed=False, panel=panel)
    return replace(counted, notes=(*counted.notes, *notes))


async def _replying(plan: Plan, speaker: EndpointAssistant, items: Sequence[Any], seed: int) -> None:
    """Count the calls of the assistant."""
    for item in items:
        for system in item.systems:
            for k in range(REPLIES):
                request = ReplyRequest(key="", item="", system=system, messages=item.messages, seed=seed + k)
                await plan.planner.ask(speaker.call(request))


async def _judging(
    rubric_set: RubricSet, sample: ProofSample, model: ModelOptions, run: RunOptions
) -> tuple[ModelOptions, UsageTable, bool] | None:
    """Count the calls of the judge, with the logged reply in the place of each; None for a built-in one."""
    record = rubric_set.judge
    if record.built_in:
        return None
    asked, known = confirmed(model, record), record.options.capabilities
    plan = Plan.of(asked, rubric_set.domain, run, seed_of(record), known)
    judge = reply_judge_of(LlmJudge(plan.asker))
    questions = [Question.about(one, record.scale) for one in (sample.target.rubric, *sample.guards)]
    for context, stratum in zip(sample.contexts, sample.strata, strict=True):
        if stratum != ANY:
            await judge.judge_reply(context.cut, questions[:1])
        for _ in range(2 * REPLIES):
            await judge.judge_reply(context.cut, questions)
    return asked, plan.planner.table, known is not None
