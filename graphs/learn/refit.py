"""`refit`: judges edited rubrics again, and fits θ, window and probability again.

The second half of `learn`, with a pool that is the set itself and a budget that takes all of it.
"""

from langgraph.graph import START, StateGraph

from pollex.graphs.learn.graph import LearnGraph, fit_after
from pollex.graphs.learn.state import LearnChoice, LearnState


def build() -> LearnGraph:
    """Build the graph, uncompiled."""
    return fit_after(StateGraph(LearnState, context_schema=LearnChoice), START)
