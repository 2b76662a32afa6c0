"""Find or take changes of the assistant's prompt, and prove them on users who took no part in finding them."""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pollex.agents.llm.second_reader import LastExchange, SecondReader
from pollex.agents.roles import Judge
from pollex.conversations.logs import Logs
from pollex.conversations.redaction import found_in
from pollex.errors import BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.write import require_writable
from pollex.graphs.context import Progress
from pollex.measures.agreement import weighted_kappa
from pollex.measures.intervals import Figure
from pollex.measures.looks import alpha_of
from pollex.measures.proofs import FAILING, FINE
from pollex.rubrics.answers import NEUTRAL, Answer, Question
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.life import remedied
from pollex.services.logs import Sources, files_of, logs_from, names_of
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.plan import Planned
from pollex.services.remedy.assistants import AssistantOptions
from pollex.services.remedy.contexts import failing, held_in, target_of, targets
from pollex.services.remedy.edits import read_edit
from pollex.services.remedy.plan import planned
from pollex.services.remedy.prompt_text import PromptText, named_file, rendered_for
from pollex.services.remedy.result import COMMAND, COMPARED, ProvenEdit, RemedyResult, rows_of, write_result
from pollex.services.remedy.sample import Gathered, RemedyOptions, RemedySample, sampled
from pollex.services.results import Usage
from pollex.services.runs import digest
from pollex.services.workspace import Workspace, workspace
from pollex.store.tables import FactRow, packed
from pollex.text import encoded

FEWEST_FAILURES, FEWEST_USERS = 30, 10
NO_WIDTH = 1e-4
LEAST_KAPPA, FEWEST_JUDGED = 0.6, 30
"""A model must know a target in the reply alone as it does in whole conversations, measured on so many replies."""


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
    """Prove changes of a prompt: the user's, or such as a model proposes.

    Args:
        out: Where the result is written (.json), with a table of replies and the changes beside it.

    Raises:
        AnswersPending: The assistant's replies are to be written into a file first, or a person is asked.
        BadInput: A change doesn't apply, or changes what is protected.
        BadLabels: There are too few failing contexts for a proof.
        WrongUse: The target can't be one, nobody proposes, or the set's judge has to be confirmed.
    """
    if out is not None:
        require_writable(
            out, *files_of(logs, rubrics, [str(named_file(one)[1]) for one in (*options.prompts, *options.edit)])
        )
    found = gathered(logs, rubrics, options, reading, run, progress)
    if not options.edit and "proposer" not in assistant.models:
        raise WrongUse("nobody proposes", remedy="give [proposer] in the profiles, or a change", option="edit")
    require_no_harm(found.sample, options, assistant.given)
    if run.dry_run:
        raise Planned(planned(found, options, assistant, run, model))
    with workspace(run, progress, found.logs) as opened:
        arguments: dict[str, Any] = {
            "logs": names_of(logs),
            "rubrics": ", ".join(names_of(rubrics)),
            "target": options.target,
        }
        arguments |= {"edit": list(map(str, options.edit)), "out": out and str(out)}
        result = opened.run(_found(opened, found, options, assistant, model, arguments, out))
        target = found.sample.target.rubric
        opened.store.put(remedied(target, result.run, one.name, one.verdict) for one in result.edits)
    if out is not None:
        result = replace(result, out=out)
        write_result(result, out)
    return result


def gathered(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    options: RemedyOptions,
    reading: ReadOptions,
    run: RunOptions,
    progress: Progress,
) -> Gathered:
    """Read everything, and choose the contexts."""
    rubric_set = rubrics if isinstance(rubrics, RubricSet) else RubricSet.load(rubrics, arrays=False)
    prompts = [PromptText.load(path, options.keep, name) for name, path in map(named_file, options.prompts)]
    edited = [named_file(one) for one in options.edit]
    mine = [one for one in prompts if len(prompts) == 1 or {name for name, _ in edited} <= {one.name}]
    if not mine:
        remedy_ = f"each as NAME=FILE, NAME one of {', '.join(one.name for one in prompts)}"
        raise WrongUse("the changes name no prompt, or several", remedy=remedy_, option="edit")
    edits = [read_edit(path, mine[0]) for _, path in edited]
    read = logs_from(logs, reading, progress)
    held = held_in(rubric_set, read.conversations, run.store)
    target = target_of(rubric_set, held, options.target)
    guards = tuple(one.rubric for one in targets(rubric_set, held) if one.rubric.id != target.rubric.id)
    prompt = max(mine, key=lambda one: sum(rendered_for(context, one) is not None for context in failing(target)))
    others = [one for one in prompts if one is not prompt]
    sample = sampled(target, guards, read.conversations, rubric_set.learned_from, prompt, options, others)
    require_enough(sample)
    return Gathered(rubric_set, prompt, edits, sample, read, options.seed)


def require_enough(sample: RemedySample) -> None:
    """Raise BadLabels where too few failing contexts or users are there to prove anything."""
    failures = sum(stratum == FAILING for _, stratum in sample.proof)
    if failures < FEWEST_FAILURES or sample.users < FEWEST_USERS:
        more = max(FEWEST_FAILURES - failures, FEWEST_USERS - sample.users, 1)
        what = f"{failures} failing contexts of {sample.users} users are too few for a proof"
        told = [f"{sample.unmatched} more are under another prompt (--any-prompt)"] if sample.unmatched else []
        least = f"{FEWEST_FAILURES} of {FEWEST_USERS} users are needed: {more} more"
        remedy_ = "; ".join([*told, least, "until then: `pollex remedy brief` and `pollex remedy cases`"])
        raise BadLabels(what, where=sample.target.rubric.id, remedy=remedy_)


def require_no_harm(sample: RemedySample, options: RemedyOptions, given: Any) -> None:
    """Raise WrongUse where tools would act for real that nobody let act, or on personal data."""
    if options.live_tools == "no":
        if acts := getattr(given, "acts", ()):
            what = f"the graph carries out tools itself ({', '.join(acts)}), and recorded turns would make them act"
            remedy_ = "end it at its calls: they get the logged results; or let them act"
            raise WrongUse(what, remedy=remedy_, option={"live_tools": "yes"})
        return
    every = {one.conversation.id: one for contexts in sample.strata.values() for one in contexts}
    hurt = [id_ for id_, one in every.items() if any(found_in(turn.content) for turn in one.before)]
    if hurt and options.live_tools != "personal":
        what = f"{len(hurt)} conversations hold personal data, and tools would act on it"
        raise WrongUse(
            what,
            where=hurt[0],
            remedy="read the log redacted, or let them all the same",
            option={"live_tools": "personal"},
        )


async def _found(
    opened: Workspace,
    found: Gathered,
    options: RemedyOptions,
    asked: AssistantOptions,
    model: ModelOptions,
    arguments: dict[str, Any],
    out: Path | None,
) -> RemedyResult:
    from pollex.graphs.remedy.graph import texts_of
    from pollex.services.remedy.conclude import arms_of, concluded, family, record_of  # LangGraph takes a while
    from pollex.services.remedy.desk import RemedyDesk, hired
    from pollex.services.remedy.thumbs import Thumbs

    sample, store = found.sample, opened.store
    async with hired(found, asked, model, store) as team:
        opened.announce(team.paid)
        question = Question.about(sample.target.rubric, found.rubric_set.judge.scale)
        kappa, without = await agreement(team.judge, sample, question)
        sample = replace(sample, without=without)
        require_enough(sample)
        desk = RemedyDesk(replace(found, sample=sample), options, team, store, out)
        kin = {family(one.name) for one in (team.assistant, team.second) if one}
        own = not isinstance(team.judge, LastExchange) and family(team.judge.name) in kin
        sealed = frozenset(one.text for one in sample.guards if one.id in desk.trials.sealed)
        thumbs = partial(Thumbs(found.rubric_set, found.logs.conversations).of, options.seed)
        conclude = partial(concluded, sample, sealed, options, thumbs, own=own)
        live, state = await desk.carried_out(opened.setting(arguments, team.paid), conclude)
        usage, usages = Usage.of(team.paid), team.usages
    edits = [ProvenEdit(**one) for one in state["verdicts"]]
    frozen = desk.trials.frozen(live.trials["prove"], texts_of(state)) if edits else {}
    times = desk.times_proved(frozen) if frozen else 0
    notes = notes_on(team.judge.name, team.assistant.name, times, kappa, team.second, own=own)
    about: dict[str, Any] = {"registered": digest(frozen) if frozen else None, "proof": times, "ended": state["why"]}
    about |= {"assistant": team.assistant.name, "judge": team.judge.name, "second": team.second and team.second.name}
    if cut := state["cut"]:
        notes.append(f"a cap of calls or cost ended the proof at {cut:.0%} of the users; no more is asked")
    notes += ["tools of the assistant acted for real"] if options.live_tools != "no" else []
    notes += [unspread(one.name, **one.primary["effect"]) for one in edits]
    about |= {"notes": [*filter(None, notes), *sample.notes], "bad_rows": encoded(found.logs.bad_rows)}
    rows = [row for trial in live.trials.values() for row in rows_of(trial, arms_of(state, trial.name))]
    record = about | record_of(live, state, sample)
    result = RemedyResult(edits=tuple(edits), record=record, replies=tuple(rows), usage=usage, usages=usages)
    await store.write_step(live.run, COMMAND, result.kept())
    pairs = enumerate({one["conversation"]: one} for one in result.compared)  # so each can be forgotten
    await store.write([FactRow(live.run, COMPARED, str(n), packed(pair)) for n, pair in pairs])
    return replace(result, run=live.run)


def unspread(name: str, low: float, high: float, users: int, **_: float) -> str:
    """Say what an interval without width means: nobody differed, among so many; empty for any other."""
    if high - low > NO_WIDTH:
        return ""
    others = f"of other users up to {1 - 0.05 ** (1 / users):.0%} may do otherwise (one-sided 95 % bound)"
    return f"{name}: all {users} users differ by the same; that its interval has no width is no certainty: {others}"


async def agreement(judge: Judge, sample: RemedySample, question: Question) -> tuple[Figure | None, frozenset[str]]:
    """Measure whether a model answers of the logged reply alone as of the whole conversation; no reply is bought yet.

    A built-in judge answered both where the target was chosen; see `contexts.survives`.

    Returns:
        The agreement, and ids of contexts where the occasion never came up.

    Raises:
        WrongUse: It doesn't: what the rubric tells of isn't in the reply, or the judge can't see it there.
    """
    if isinstance(judge, LastExchange):
        return None, frozenset()
    known = [(one, stratum) for one, stratum in sample.proof if stratum in (FAILING, FINE)]
    found = await asyncio.gather(*(judge.judge(context.cut, [question]) for context, _ in known))
    failed = (sample.target.rubric.polarity == "dsat", sample.target.rubric.polarity != "dsat")
    pairs = [
        (float(failed[stratum]), float(not answer.never_came_up and answer.value(question.options) > NEUTRAL))
        for (_, stratum), (answer,) in zip(known, found, strict=True)
        if isinstance(answer, Answer)
    ]
    answers = zip(known, found, strict=True)
    without = frozenset(one.id for (one, _), (said,) in answers if isinstance(said, Answer) and said.never_came_up)
    if len(pairs) < FEWEST_JUDGED or not any(s == FINE for _, s in known):
        too_few = f"{len(pairs)} replies, {FEWEST_JUDGED} of both kinds are needed"
        return Figure(None, n=len(pairs), undefined=too_few), without
    whole, alone = np.array(pairs).T
    kappa = weighted_kappa(whole, alone, np.arange(len(pairs)), np.random.default_rng(0))
    if kappa.value is None or kappa.value < LEAST_KAPPA:
        told = kappa.undefined if kappa.value is None else f"κ {kappa.value:.2f}"
        what = f"shown the reply alone, {judge.name} answers otherwise than of whole conversations: {told}, n {kappa.n}"
        raise WrongUse(what, where=question.id, remedy="take another target, or reword it (`pollex rubrics reword`)")
    return kappa, without


def notes_on(
    judge: str, assistant: str, times: int, kappa: Figure | None, second: SecondReader | None, *, own: bool
) -> list[str]:
    """Return what a reader must know."""
    found = ["judged better isn't better: only people's blind pairs or thumbs after a release tell that"]
    if second is None:
        found.append("no second reader compared the replies ([second] in the profiles)")
    if kappa is not None:
        told = kappa.undefined if kappa.value is None else f"κ {kappa.value:.2f}, n {kappa.n}"
        found.append(f"the judge, of the reply alone against whole conversations: {told}")
    if own:
        found.insert(0, f"{judge} judges its own family ({assistant}{f', {second.name}' if second else ''})")
    if times > 1:
        found.append(f"proof {times} on conversations that proved before: its level is {alpha_of(times):.4g}")
    return found
