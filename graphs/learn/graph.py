"""`learn`: extract, summarize, deduplicate, reword, judge the pool, select, calibrate, judge held-out, assess."""

from langgraph.graph import END, START, StateGraph

from pollex.graphs.context import Context
from pollex.graphs.learn import nodes
from pollex.graphs.learn.state import LearnChoice, LearnState

UncompiledLearnGraph = StateGraph[LearnState, Context, LearnState, LearnState]


def build() -> UncompiledLearnGraph:
    """Build the graph, uncompiled."""
    graph = build_graph_extracting_reasons("summarize_dsat")
    graph.add_node("summarize_dsat", nodes.summarize_dsat)
    # which is shown what the other side has
    graph.add_node("summarize_sat", nodes.summarize_sat)
    graph.add_node("deduplicate", nodes.deduplicate)
    graph.add_node("reword", nodes.reword)
    graph.add_node("review_pool", nodes.review_pool)

    graph.add_edge("summarize_dsat", "summarize_sat")
    graph.add_edge("summarize_sat", "deduplicate")
    graph.add_edge("deduplicate", "reword")
    graph.add_edge("reword", "review_pool")

    return add_nodes_fitting_rubric_pool(graph, "review_pool")


def build_graph_extracting_reasons(*after: str) -> UncompiledLearnGraph:
    """Return a graph that extracts reasons batch by batch, then goes on with nodes that are still to be added."""
    graph: UncompiledLearnGraph = StateGraph(LearnState, context_schema=LearnChoice)
    graph.add_node("fit_extractor", nodes.fit_extractor)
    graph.add_node("extract", nodes.extract)
    graph.add_edge(START, "fit_extractor")
    graph.add_edge("fit_extractor", "extract")
    graph.add_conditional_edges(
        "extract",
        nodes.make_router_to_next_batch_of_stage("extract", after),
        ["extract", *after],
    )

    return graph


def add_nodes_fitting_rubric_pool(graph: UncompiledLearnGraph, before: str) -> UncompiledLearnGraph:
    """Add the nodes that fit a pool of rubrics: `refit`, and `learn`'s second half."""
    graph.add_node("fit_judge", nodes.fit_judge)
    graph.add_node("judge_pool", nodes.judge_pool)
    graph.add_node("select", nodes.select)
    graph.add_node("calibrate", nodes.calibrate)
    graph.add_node("judge_held_out", nodes.judge_held_out)
    graph.add_node("assess", nodes.assess)

    graph.add_edge(before, "fit_judge")
    graph.add_edge("fit_judge", "judge_pool")
    graph.add_conditional_edges(
        "judge_pool",
        nodes.make_router_to_next_batch_of_stage("judge_pool", ["select"]),
        ["judge_pool", "select"],
    )
    graph.add_edge("select", "calibrate")
    graph.add_edge("calibrate", "judge_held_out")
    held_out = nodes.make_router_to_next_batch_of_stage("judge_held_out", ["assess"])
    graph.add_conditional_edges(
        "judge_held_out",
        held_out,
        ["judge_held_out", "assess"],
    )
    graph.add_edge("assess", END)

    return graph
