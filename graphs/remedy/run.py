"""Runs of `remedy`: begin or resume one, and what it came to."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pollex.agents.assistant import Assistant, AssistantReply, FileAssistant, NoReply
from pollex.agents.reply_judge import ReplyJudge
from pollex.errors import AnswersPending
from pollex.graphs.run import RunSettings, carry_out, digest, running
from pollex.measures.proofs import ProofArrays
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.store.resume import facts_of, runs, step
from pollex.store.store import Store

REGISTERED, COMMAND = "registered", "remedy"
Place = tuple[int, int, int]


@dataclass(frozen=True)
class Proven:
    """What a proof came to.

    Attributes:
        registered: Hash of all that was frozen before the first call.
        look: Looks that were taken.
        outcome: See `measures.looks`.
        texts: Replies, or why there is none, by context, arm and reply.
        missing: Replies and judgings that are missing, by arm and kind.
    """

    run: str
    registered: str
    look: int
    outcome: int
    arrays: ProofArrays
    texts: Mapping[Place, AssistantReply | NoReply]
    answers: Mapping[Place, Sequence[Answer | Unanswered]]
    missing: Mapping[int, Counter[str]]


async def prove(
    items: Sequence[Any],
    arrays: ProofArrays,
    questions: Sequence[Question],
    checks: Sequence[Callable[[str, str], bool]],
    *,
    assistant: Assistant,
    judge: ReplyJudge,
    bounds: Sequence[float],
    replies: int,
    seed: int,
    frozen: Mapping[str, Any],
    setting: RunSettings,
) -> Proven:
    """Prove a change in four waves.

    Args:
        frozen: All that may not change once the first reply is asked for: contexts, order, prompts, margins, bounds.

    Raises:
        AnswersPending: Replies are to be written into a file first.
        ResumeRefused: The run to resume was started with other settings.
    """
    from pollex.graphs.remedy.graph import REPLY, RemedyContext, RemedyWork, build  # LangGraph takes a while

    store, registered = setting.store, digest(frozen)
    async with running(COMMAND, {"registered": registered, "judge": judge.fingerprint}, setting, [judge.name]) as run:
        kept = {name.removeprefix(f"{REPLY} "): one for name, one in facts_of(store, run.id, "step").items()
                if name.startswith(f"{REPLY} ")}  # fmt: skip
        live = RemedyWork(
            **setting.of_run(run.id),
            stage="prove",
            total=len(items),
            pending=dict.fromkeys(item.context.id for item in items),
            fine=frozenset({"asked"}),
            workers=[judge.name],
            assistant=assistant,
            judge=judge,
            items=items,
            questions=questions,
            checks=checks,
            arrays=arrays,
            bounds=bounds,
            replies=replies,
            seed=seed,
            frozen=frozen,
            keys=keys_of(items, replies, store.secret),
            kept=kept,
        )
        if isinstance(assistant, FileAssistant):
            await require_files(assistant, live)
        state = await carry_out(build(), live, RemedyContext.of(setting.arguments), anew=True)
    found = (live.texts, live.answers, live.missing)
    return Proven(run.id, registered, state["look"], state["outcome"], arrays, *found)


def keys_of(items: Sequence[Any], replies: int, secret: bytes) -> dict[Place, str]:
    """Name each request at random, so that names tell nothing of arms; the same for the same prompts."""
    found = {}
    for n, item in enumerate(items):
        for arm in (0, 1):
            for k in range(replies):
                told = f"{item.context.id}\0{item.systems[arm]}\0{k}\0{arm}".encode("utf-8", "replace")
                found[n, arm, k] = hashlib.sha256(secret + told).hexdigest()[:16]
    return found


async def require_files(assistant: FileAssistant, live: Any) -> None:
    """Raise `AnswersPending` where replies are still to be written; what is waited for is written into a file."""
    from pollex.graphs.remedy.graph import request_of  # as in `prove`

    for place in live.keys:
        await assistant.reply(request_of(live, live.items[place[0]], place))
    if assistant.waiting:
        path = assistant.write_todo()
        what = f"{len(assistant.waiting)} replies are still to be written"
        remedy = f'write {{"key": …, "reply": …}} for each line into {assistant.folder / "replies.jsonl"}, then go on'
        raise AnswersPending(what, where=str(path), remedy=remedy)


def times_proved(store: Store, target: str, hashes: Sequence[str], registered: str) -> int:
    """Count the proofs of a target that this one is the next of: earlier ones on any of the same conversations."""
    wanted, seen = set(hashes), set[str]()
    for run in runs(store):
        if run.command != COMMAND:
            continue
        frozen = step(store, run.id, REGISTERED) or {}
        if frozen.get("target") == target and wanted & set(frozen.get("hashes", ())):
            seen.add(frozen.get("proof", ""))
    return 1 + len(seen - {registered})
