"""`learn`: extract, summarize, deduplicate, judge the pool, select, calibrate, judge held-out, assess."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from pollex.graphs.context import Context
from pollex.graphs.learn import nodes
from pollex.graphs.learn.state import LearnState

LearnGraph = StateGraph[LearnState, Context, LearnState, LearnState]


def build() -> LearnGraph:
    """Build the graph, uncompiled; it has no input or output of its own."""
    graph = StateGraph(LearnState, context_schema=Context)
    graph.add_node("fit_extractor", nodes.fit_extractor)
    graph.add_node("plan_extraction", nodes.plan_extraction)
    graph.add_node("extract", nodes.extract)
    graph.add_node("summarize_sat", nodes.summarize_sat)
    graph.add_node("summarize_dsat", nodes.summarize_dsat)
    graph.add_node("deduplicate", nodes.deduplicate)

    graph.add_edge(START, "fit_extractor")
    graph.add_edge("fit_extractor", "plan_extraction")
    graph.add_conditional_edges("plan_extraction", nodes.fan_out_extraction, ["extract", "summarize_dsat"])
    graph.add_edge("extract", "plan_extraction")
    graph.add_edge("summarize_dsat", "summarize_sat")  # which is shown what the other side has
    graph.add_edge("summarize_sat", "deduplicate")
    return fit_after(graph, "deduplicate")


def fit_after(graph: LearnGraph, before: str) -> LearnGraph:
    """Add the nodes that fit a pool of rubrics: `refit`, and `learn`'s second half."""
    graph.add_node("fit_judge", nodes.fit_judge)
    graph.add_node("plan_pool", nodes.plan_pool)
    graph.add_node("judge_pool", nodes.judge_pool)
    graph.add_node("select", nodes.select)
    graph.add_node("calibrate", nodes.calibrate)
    graph.add_node("plan_held_out", nodes.plan_held_out)
    graph.add_node("judge_held_out", nodes.judge_held_out)
    graph.add_node("assess", nodes.assess)

    graph.add_edge(before, "fit_judge")
    graph.add_edge("fit_judge", "plan_pool")
    graph.add_conditional_edges("plan_pool", nodes.fan_out_pool, ["judge_pool", "select"])
    graph.add_edge("judge_pool", "plan_pool")
    graph.add_edge("select", "calibrate")
    graph.add_edge("calibrate", "plan_held_out")
    graph.add_conditional_edges("plan_held_out", nodes.fan_out_held_out, ["judge_held_out", "assess"])
    graph.add_edge("judge_held_out", "plan_held_out")
    graph.add_edge("assess", END)
    return graph


graph = build().compile(name="learn")
