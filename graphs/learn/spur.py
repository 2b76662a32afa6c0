"""`spur`: RUBICON's baseline, a set of rubrics of limited size, revised batch by batch.

Extraction is that of `learn`. In place of a pool that only grows, is freed of duplicates and chosen
from, there is a set of at most as many rubrics as the budget has, which the model rewrites whenever
it has seen a batch of reasons. All that follows is that of `learn`; there is nothing left to
choose.

Source: Lin et al. 2024, arXiv:2403.12388, as Biyani et al. 2024 ran it again.
"""

from collections.abc import Sequence

from langgraph.runtime import Runtime

from pollex.graphs.context import Context, get_resources_of_thread
from pollex.graphs.learn.graph import (
    UncompiledLearnGraph,
    add_nodes_fitting_rubric_pool,
    build_graph_extracting_reasons,
)
from pollex.graphs.learn.state import LearnContext, LearnState
from pollex.graphs.learn.write_rubrics import (
    BatchOutcome,
    RubricTuple,
    fill_pool_of_polarity_by_batches,
)
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.merging import merge_equal_rubrics
from pollex.rubrics.rubric import Polarity, Reason


async def update_sat(state: LearnState, runtime: Runtime[Context]) -> LearnState:  # noqa: ARG001
    """Revise the set of satisfaction by each batch of reasons."""
    return await _revise_rubrics_of_side("sat", runtime)


async def update_dsat(state: LearnState, runtime: Runtime[Context]) -> LearnState:  # noqa: ARG001
    """Revise the set of dissatisfaction by each batch of reasons."""
    return await _revise_rubrics_of_side("dsat", runtime)


async def _revise_rubrics_of_side(polarity: Polarity, runtime: Runtime[Context]) -> LearnState:
    """Revise a set by batches; each batch may replace any rubric."""
    live = await get_resources_of_thread(runtime, LearnContext)
    updater = live.roles.updater
    most = live.material.settings.limits[polarity == "dsat"]
    assert updater is not None, "who runs `spur` hires an updater"

    async def revised(batch: Sequence[Reason], current: RubricTuple) -> BatchOutcome:
        update = await updater.update(batch, current, polarity, most)
        if isinstance(update, Unanswered):
            return update
        return (update.rubrics, update)

    return await fill_pool_of_polarity_by_batches(f"update_{polarity}", polarity, live, revised)


async def gather_sets(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Use both sets as the pool: all of it fits the budget and stays, one of each text."""
    live = await get_resources_of_thread(runtime, LearnContext)
    pool = live.material_at(state).pool
    rubrics, _ = merge_equal_rubrics([*pool["sat"], *pool["dsat"]])
    return {"kept": live.rows(rubrics)}


def build() -> UncompiledLearnGraph:
    """Build the graph, uncompiled."""
    graph = build_graph_extracting_reasons("update_sat", "update_dsat")
    graph.add_node("update_sat", update_sat)
    graph.add_node("update_dsat", update_dsat)
    graph.add_node("gather_sets", gather_sets)

    graph.add_edge(["update_sat", "update_dsat"], "gather_sets")

    return add_nodes_fitting_rubric_pool(graph, "gather_sets")
