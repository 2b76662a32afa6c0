"""`spur`: RUBICON's baseline, a set of rubrics of limited size, revised batch by batch.

Extraction is that of `learn`. In place of a pool that only grows, is freed of duplicates and chosen from, there is a
set of at most as many rubrics as the budget has, which the model rewrites whenever it has seen a batch of reasons. All
that follows is that of `learn`; there is nothing left to choose.

Source: Lin et al. 2024, arXiv:2403.12388, as Biyani et al. 2024 ran it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from pollex.graphs.context import Context, resources
from pollex.graphs.learn import nodes
from pollex.graphs.learn.graph import LearnGraph, fit_after
from pollex.graphs.learn.state import LearnContext, LearnState
from pollex.graphs.learn.write_rubrics import Rubrics, Written, write_rubrics
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import Polarity, Reason
from pollex.store.resume import step
from pollex.store.rows import rubric_rows


def fan_out_extraction(state: LearnState) -> list[Send] | list[str]:
    """Make one task for each conversation of the batch; then go on to both sets."""
    return nodes.extractions(state) or ["update_sat", "update_dsat"]


async def update_sat(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Revise the set of satisfaction by each batch of reasons."""
    await _update("sat", await resources(runtime, LearnContext))
    return {}


async def update_dsat(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Revise the set of dissatisfaction by each batch of reasons."""
    await _update("dsat", await resources(runtime, LearnContext))
    return {}


async def _update(polarity: Polarity, context: LearnContext) -> None:
    """Revise a set by batches; each batch may replace any rubric."""
    updater, most = context.roles.updater, context.settings.budget[polarity == "dsat"]
    assert updater is not None, "who runs `spur` hires an updater"

    async def revised(batch: Sequence[Reason], current: Rubrics) -> Written:
        found = await updater.update(batch, current, polarity, most)
        return found if isinstance(found, Unanswered) else (found.rubrics, found)

    await write_rubrics(f"update_{polarity}", polarity, context, revised)


async def gather_sets(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Use both sets as the pool: all of it fits the budget and stays."""
    context = await resources(runtime, LearnContext)
    context.work.kept = (*context.work.pool["sat"], *context.work.pool["dsat"])
    if step(context.store, context.run, "gather_sets") is None:
        context.store.put(rubric_rows(context.run, context.work.kept))
        await context.store.write_step(
            context.run, "gather_sets", {"kept": [rubric.id for rubric in context.work.kept]}
        )
    return {}


def build() -> LearnGraph:
    """Build the graph, uncompiled; it has no input or output of its own."""
    graph = StateGraph(LearnState, context_schema=Context)
    graph.add_node("fit_extractor", nodes.fit_extractor)
    graph.add_node("plan_extraction", nodes.plan_extraction)
    graph.add_node("extract", nodes.extract)
    graph.add_node("update_sat", update_sat)
    graph.add_node("update_dsat", update_dsat)
    graph.add_node("gather_sets", gather_sets)

    graph.add_edge(START, "fit_extractor")
    graph.add_edge("fit_extractor", "plan_extraction")
    graph.add_conditional_edges("plan_extraction", fan_out_extraction, ["extract", "update_sat", "update_dsat"])
    graph.add_edge("extract", "plan_extraction")
    graph.add_edge(["update_sat", "update_dsat"], "gather_sets")
    return fit_after(graph, "gather_sets")


graph = build().compile(name="spur")
