"""`pollex judge --dry-run`: what the runs would ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pollex.agents.ensemble import Ensemble
from pollex.agents.llm.rater import LlmRater
from pollex.conversations.model import Conversation
from pollex.gateway.calls import Call
from pollex.gateway.outcomes import Completed, Outcome
from pollex.graphs.judging import Task
from pollex.judge_options import JudgeOptions
from pollex.planning import AT_MOST, Plan, Planner, nothing, tell
from pollex.prompts.profile import DomainProfile
from pollex.terminal.options import RunOptions
from pollex.workers import ModelOptions


@dataclass
class Rehearsal:
    """A door that notes calls, and describes end states at the usual length, so that the calls behind them are made."""

    planner: Planner

    async def ask(self, call: Call) -> Outcome:
        """See `agents.llm.asking.Door`."""
        if call.stage == "describe":
            await self.planner.ask(call)
            return Completed(text=json.dumps(dict.fromkeys((call.schema or {})["properties"], "a state " * 35)))
        if "end_state" not in call.messages[1]["content"]:
            return await self.planner.ask(call)
        with self.planner.estimating():
            return await self.planner.ask(call)


def plan_judge(
    conversations: Sequence[Conversation],
    task: Task,
    profile: DomainProfile,
    run: RunOptions,
    model: ModelOptions,
    options: JudgeOptions,
) -> int:
    """Tells what the runs would ask of each member."""
    if model.model is None:
        return nothing(run)
    plans = [Plan.of(replace(model, model=name), profile, run, options.seed) for name in (model.model, *options.panel)]
    if options.stop_early:  # which runs are spared depends on what the others answer
        for plan in plans:
            plan.planner.certainty = AT_MOST
    askers = [replace(plan.asker, door=Rehearsal(plan.planner)) for plan in plans]
    raters = [LlmRater(asker, options.variant, options.told()) for asker in askers]
    ensemble = Ensemble(*raters, rule=task.rule)

    async def rehearse() -> None:
        for one in conversations:
            await ensemble.votes(one, [task.question])

    asyncio.run(rehearse())
    first, *others = (plan.planner.table for plan in plans)
    return tell(run, model, first, probed=False, panel=list(zip(options.panel, others, strict=True)))
