"""Find or take changes of the assistant's prompt, and prove them on users who took no part in finding them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pollex.agents.assistant import Assistant, EndpointAssistant, FileAssistant
from pollex.agents.llm.asker import Asker
from pollex.agents.llm.rewording import reworded
from pollex.agents.llm.second_reader import SecondReader
from pollex.agents.reply_judge import LastExchangeJudge, ReplyJudge, reply_judge_of
from pollex.conversations.logs import Logs
from pollex.errors import AnswersPending, BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.write import draft_of, require_writable
from pollex.graphs.context import Progress
from pollex.measures.agreement import weighted_kappa
from pollex.measures.intervals import Figure
from pollex.measures.looks import alpha_of
from pollex.measures.proofs import FAILING, FINE
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import NEUTRAL, Answer, Question, Unanswered
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.grade import asker_of
from pollex.services.judging import hire_judge
from pollex.services.life import remedied
from pollex.services.logs import Sources, files_of, logs_from, names_of
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.plan import Planned
from pollex.services.remedy.assistants import AssistantOptions
from pollex.services.remedy.contexts import held_in, target_of, targets
from pollex.services.remedy.edits import PromptEdit, read_edit
from pollex.services.remedy.plan import planned
from pollex.services.remedy.prompt_text import PromptText
from pollex.services.remedy.result import RemedyResult, write_result
from pollex.services.remedy.runs import COMMAND, prove, times_proved
from pollex.services.remedy.sample import Gathered, RemedyOptions, RemedySample, sampled
from pollex.services.results import Usage
from pollex.services.roles import dismissed, hire
from pollex.services.runs import digest
from pollex.services.workspace import Workspace, workspace
from pollex.text import encoded

FEWEST_FAILURES, FEWEST_USERS = 30, 10
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
        require_writable(out, *files_of(logs, rubrics, options.prompt, list(map(str, options.edit))))
    found = gathered(logs, rubrics, options, reading, run, progress)
    if not options.edit and "proposer" not in assistant.tables:
        raise WrongUse("nobody proposes", remedy="give [proposer] in the profiles, or a change", option="edit")
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
    prompt = PromptText.load(options.prompt, options.keep)
    edits = [read_edit(Path(one), prompt) for one in options.edit]
    read = logs_from(logs, reading, progress)
    held = held_in(rubric_set, read.conversations, run.store)
    target = target_of(rubric_set, held, options.target)
    guards = tuple(one.rubric for one in targets(rubric_set, held) if one.rubric.id != target.rubric.id)
    sample = sampled(target, guards, read.conversations, rubric_set.learned_from, prompt, options)
    failures = sum(stratum == FAILING for _, stratum in sample.proof)
    if failures < FEWEST_FAILURES or sample.users < FEWEST_USERS:
        more = max(FEWEST_FAILURES - failures, FEWEST_USERS - sample.users, 1)
        what = f"{failures} failing contexts of {sample.users} users are too few for a proof"
        told = [f"{sample.unmatched} more are under another prompt (--any-prompt)"] if sample.unmatched else []
        least = f"{FEWEST_FAILURES} of {FEWEST_USERS} users are needed: {more} more"
        remedy_ = "; ".join([*told, least, "until then: `pollex remedy brief` and `pollex remedy cases`"])
        raise BadLabels(what, where=target.rubric.id, remedy=remedy_)
    return Gathered(rubric_set, prompt, edits, sample, read)


async def _found(
    opened: Workspace,
    found: Gathered,
    options: RemedyOptions,
    asked: AssistantOptions,
    model: ModelOptions,
    arguments: dict[str, Any],
    out: Path | None,
) -> RemedyResult:
    from pollex.services.remedy.conclude import concluded, family, flattered, missing_in  # LangGraph takes a while
    from pollex.services.remedy.people import read_choices, sheet_of, write_sheet
    from pollex.services.remedy.proposals import Proposals, Vetting, replies_now
    from pollex.services.remedy.result import rows_of
    from pollex.services.remedy.thumbs import Thumbs
    from pollex.services.remedy.trials import Trials

    sample, store = found.sample, opened.store
    target = sample.target.rubric
    trials = Trials(sample, found.rubric_set, found.prompt, options)
    folder = Path(f"{out.with_suffix('')}-people" if out else "people")
    async with AsyncExitStack() as stack:
        staff = await stack.enter_async_context(dismissed(await hire_judge(model, found.rubric_set, store)))
        judge, staffs, askers = reply_judge_of(staff.roles.judge), {"judging": staff}, dict[str, Asker]()
        for role, table in asked.tables.items():
            hired = await hire(table.options, DomainProfile.neutral(), store, options.seed)
            staffs[role] = await stack.enter_async_context(dismissed(hired))
            askers[role] = asker_of(hired, table.options, store, options.seed)
        assistant = assistant_among(asked, askers)
        paid = staffs.get("assistant", staff)
        opened.announce(paid)
        kappa = await agreement(judge, sample, trials.questions[0])
        second = await second_reader(askers.get("second"), target, found.rubric_set.judge.scale)

        async def propose(tried: Any) -> list[PromptEdit]:
            shown = frozenset(one.id for one in sample.guards) - trials.sealed
            most = options.candidates if "select" in sample.parts.values() else 1
            vetting = Vetting.of(found.logs.conversations)
            known = (askers["proposer"], second, found.prompt, found.rubric_set, sample, shown, vetting)
            return await Proposals(*known, staff.embedder, most).of(replies_now(tried))

        def level(frozen: Mapping[str, Any]) -> float:
            return alpha_of(times_proved(store, target.id, frozen["hashes"], frozen["proof"]))

        def answers(wanted: Mapping[str, Any]) -> Any:
            if "edits" in wanted:
                return options.accept and (options.accept if options.accept == "all" else options.accept.split(","))
            return read_choices(folder)

        def waiting(wanted: Mapping[str, Any]) -> None:
            if "pairs" in wanted:
                path = write_sheet(folder, wanted["pairs"])
                remedy_ = (
                    f'write {{"key": …, "choice": "1", "2" or "0"}} a line into {folder / "choices.jsonl"}, then go on'
                )
                raise AnswersPending(f"{len(wanted['pairs'])} pairs wait for people", where=str(path), remedy=remedy_)
            names = [one["name"] for one in wanted["edits"]]
            places = write_proposals(wanted["edits"], out)
            remedy_ = f"read them, then go on with --resume --accept all, or {','.join(names)!r}"
            raise AnswersPending(f"{len(names)} proposals wait to be accepted", where=places, remedy=remedy_)

        begun = asdict(options) | {
            "accept": None,
            "prompt": found.prompt.text,
            "edit": [e.new.text for e in found.edits],
        }
        live, why = await prove(
            opened.setting(arguments, paid),
            digest(
                [begun, assistant.name, trials.make("prove", found.edits).arrays.wave.tolist(), second and second.name]
            ),
            judge,
            answers,
            waiting,
            assistant=assistant,
            second=second,
            make_trial=trials.make,
            propose=propose,
            edits=found.edits,
            frozen=trials.frozen,
            level=level,
            finalists=options.finalists,
            sheet=lambda trial, arm: sheet_of(trial, arm, options.people, options.seed, store.secret),
            seed=options.seed,
        )
        usages = {role: usage for role, one in staffs.items() if one is not paid and (usage := Usage.of(one))}
        usage = Usage.of(paid)
    kin = {family(assistant.name), *([family(second.name)] if second else [])}
    own = not isinstance(judge, LastExchangeJudge) and family(judge.name) in kin
    sealed = frozenset(one.text for one in sample.guards if one.id in trials.sealed)
    thumbs = partial(Thumbs(found.rubric_set, found.logs.conversations).of, options.seed)
    conclude = partial(concluded, live, sample, sealed, options, own=own, thumbs=thumbs)
    edits = await asyncio.to_thread(conclude) if live.ended else []
    frozen = trials.frozen(live.trials["prove"], live.proven) if live.ended else {}
    times = times_proved(store, target.id, frozen["hashes"], frozen["proof"]) if frozen else 0
    arms = {"prove": ["old", *(["new"] if len(live.proven) == 1 else [one.name for one in live.proven])]}
    arms |= {"headroom": ["old", "naive", "ceiling"], "flatter": ["old", "flatterer"]}
    arms["select"] = ["old", *(one.name for one in live.candidates if not one.refused)]
    strata = {name: sum(s == n for _, s in sample.proof) for n, name in enumerate(("failing", "fine", "any"))}
    learned = sum(sample.known(one) for one, _ in sample.proof)
    record: dict[str, Any] = {
        "registered": digest(frozen) if frozen else None,
        "proof": times,
        "assistant": assistant.name,
        "judge": judge.name,
        "second": second and second.name,
        "target": {"id": target.id, "text": target.text, "polarity": target.polarity},
        "ended": why,
        "headroom": asdict(live.headroom[0]) if live.headroom else None,
        "candidates": [
            {
                "name": one.name,
                "purpose": one.purpose,
                "diff": one.diff,
                "refused": one.refused,
                "proven": one in live.proven,
            }
            for one in live.candidates
        ],
        "flatterer": flattered(live),
        "contexts": strata | {"users": sample.users, "learned_from": learned},
        "left_out_by_prompt": sample.unmatched,
        "missing": missing_in(live),
        "per_reply": per_reply(live.trials.get("prove"), arms["prove"]),
        "notes": [*notes_on(judge.name, assistant.name, times, kappa, second, own=own), *sample.notes],
        "bad_rows": encoded(found.logs.bad_rows),
    }
    rows = [row for name, trial in live.trials.items() for row in rows_of(trial, arms[name])]
    result = RemedyResult(edits=tuple(edits), record=record, replies=tuple(rows), usage=usage, usages=usages)
    await store.write_step(live.run, COMMAND, result.kept())
    for one in result.examples:  # each under its conversation's id, so it can be forgotten
        await store.write_step(live.run, f"pair {one['context']}", {one["conversation"]: one})
    return replace(result, run=live.run)


def assistant_among(asked: AssistantOptions, askers: Mapping[str, Asker]) -> Assistant:
    """Return who answers: an object of Python, a folder of files, or a model."""
    if asked.files is not None:
        return FileAssistant.of(asked.files)
    if asked.given is not None:
        return asked.given
    table = asked.tables["assistant"]
    written = table.price.written / table.price.read if table.price and table.price.read else 4.0
    return EndpointAssistant(askers["assistant"], table.temperature, written)


async def second_reader(asker: Asker | None, target: Rubric, scale: str) -> SecondReader | None:
    """Return the second judge with the target in other words, and its mirror; None where none is named."""
    if asker is None:
        return None
    other = {"sat": "dsat", "dsat": "sat"}[target.polarity]
    mirror = target.model_copy(update={"id": "mirror", "text": f"It is not so that: {target.text}", "polarity": other})
    said = [mirror]
    words = await reworded(asker, [target], {target.id: ["say the same in other words"]})
    if not isinstance(words, Unanswered) and words:
        said.insert(0, target.model_copy(update={"id": "reworded", "text": words[target.id][0]}))
    return SecondReader(asker, [Question.about(one, scale) for one in said])  # type: ignore[arg-type]


async def agreement(judge: ReplyJudge, sample: RemedySample, question: Question) -> Figure | None:
    """Measure whether a model answers of the logged reply alone as it did of the whole conversation.

    A built-in judge answered both where the target was chosen; see `contexts.survives`.

    Raises:
        WrongUse: It doesn't: what the rubric tells of isn't in the reply, or the judge can't see it there.
    """
    if isinstance(judge, LastExchangeJudge):
        return None
    known = [(one, stratum) for one, stratum in sample.proof if stratum in (FAILING, FINE)]
    found = await asyncio.gather(*(judge.judge_reply(context.cut, [question]) for context, _ in known))
    failed = (sample.target.rubric.polarity == "dsat", sample.target.rubric.polarity != "dsat")
    pairs = [
        (float(failed[stratum]), float(not answer.never_came_up and answer.value(question.options) > NEUTRAL))
        for (_, stratum), (answer,) in zip(known, found, strict=True)
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


def per_reply(trial: Any, arms: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Return mean characters and cost of a reply, in tokens of its prompt, by arm."""
    if trial is None:
        return {}
    sizes = {name: size for name, size in trial.arrays.sizes.items() if not np.isnan(size).all()}
    return {arm: {name: float(np.nanmean(s[:, n])) for name, s in sizes.items()} for n, arm in enumerate(arms)}


def write_proposals(edits: Sequence[Mapping[str, Any]], out: Path | None) -> str:
    """Write the diffs that a person is to read; return where."""
    if out is None:
        return "; ".join(f"{one['name']}: {one['diff']!r}" for one in edits)
    folder = out.with_name(f"{out.stem}-edits")
    folder.mkdir(parents=True, exist_ok=True)
    for one in edits:
        with draft_of(folder / f"{one['name'].replace(' ', '-')}.diff") as draft:
            draft.write_text(f"{one['purpose']}\n\n{one['diff']}", encoding="utf-8", errors="replace")
    return str(folder)


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
