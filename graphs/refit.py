"""`refit`: rubrics that a person edited are judged again, and θ, window and probability fitted again.

The second half of `learn`, with a pool that is the set itself and a budget that takes all of it.
"""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from pollex.graphs.learn import nodes
from pollex.graphs.learn.state import LearnContext, LearnState


def build() -> StateGraph[LearnState, LearnContext, LearnState, LearnState]:
    """The graph, not compiled; no input or output of its own."""
    graph = StateGraph(LearnState, context_schema=LearnContext)
    graph.add_node("study_pool", nodes.study_pool)
    graph.add_node("plan_pool", nodes.plan_pool)
    graph.add_node("judge_pool", nodes.judge_pool)
    graph.add_node("select", nodes.select)
    graph.add_node("plan_held_out", nodes.plan_held_out)
    graph.add_node("judge_held_out", nodes.judge_held_out)
    graph.add_node("assess", nodes.assess)

    graph.add_edge(START, "study_pool")
    graph.add_edge("study_pool", "plan_pool")
    graph.add_conditional_edges("plan_pool", nodes.fan_out_pool, ["judge_pool", "select"])
    graph.add_edge("judge_pool", "plan_pool")
    graph.add_edge("select", "plan_held_out")
    graph.add_conditional_edges("plan_held_out", nodes.fan_out_held_out, ["judge_held_out", "assess"])
    graph.add_edge("judge_held_out", "plan_held_out")
    graph.add_edge("assess", END)
    return graph


graph = build().compile(name="refit")
