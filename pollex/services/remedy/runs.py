"""Runs of `remedy`: begin or resume one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pollex.agents.reply_judge import ReplyJudge
from pollex.graphs.run import carry_out
from pollex.services.runs import RunSettings, running
from pollex.store.resume import facts_of, runs, step
from pollex.store.store import Store

if TYPE_CHECKING:
    from pollex.graphs.remedy.trial import RemedyWork

REGISTERED, COMMAND = "registered", "remedy"


async def prove(
    setting: RunSettings,
    registered: str,
    judge: ReplyJudge,
    answers: Callable[[Mapping[str, Any]], Any],
    waiting: Callable[[Mapping[str, Any]], None],
    **given: Any,
) -> tuple[RemedyWork, str]:
    """Carry a run out; return its resources, with all that came of it, and why it ended before a proof.

    Args:
        registered: Digest of what the run is begun with.
        answers: Given what an interrupt asks, what it is resumed with; nothing to wait.
        waiting: Given what an interrupt asks that nobody answered; it raises.
        given: Other fields of `RemedyWork`.

    Raises:
        AnswersPending: Replies are to be written into a file first, or people are asked.
        ResumeRefused: The run to resume was started with other settings.
    """
    from pollex.graphs.remedy.graph import RemedyContext, build  # LangGraph takes a quarter of a second to import
    from pollex.graphs.remedy.trial import REPLY, RemedyWork

    fingerprint = {"registered": registered, "judge": judge.fingerprint}
    async with running(COMMAND, fingerprint, setting, [judge.name]) as run:
        kept = facts_of(setting.store, run.id, "step").items()
        live = RemedyWork(
            **setting.of_run(run.id),
            stage=COMMAND,
            fine=frozenset({"asked"}),
            workers=[judge.name],
            judge=judge,
            kept={name.removeprefix(f"{REPLY} "): dict(one) for name, one in kept if name.startswith(f"{REPLY} ")},
            **given,
        )
        state = await carry_out(build(), live, RemedyContext.of(setting.arguments), anew=True, people=answers)
        if asked := state.get("__interrupt__"):
            waiting(asked[0].value)
    return live, state.get("why", "") or (live.headroom[0].ended if live.headroom else "")


def times_proved(store: Store, target: str, hashes: Sequence[str], registered: str) -> int:
    """Count the proofs of a target that this one is the next of: earlier ones on any of the same conversations."""
    wanted, seen = set(hashes), set[str]()
    for run in runs(store):
        if run.command == COMMAND:
            frozen = step(store, run.id, REGISTERED) or {}
            if frozen.get("target") == target and wanted & set(frozen.get("hashes", ())):
                seen.add(frozen.get("proof", ""))
    return 1 + len(seen - {registered})
