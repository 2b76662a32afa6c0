"""`refit`: judges edited rubrics again, and fits θ, window and probability again.

The second half of `learn`, with a pool that is the set itself and a budget that takes all of it.
"""

from dataclasses import dataclass

from langgraph.graph import START, StateGraph

from pollex.graphs.context import LogContext
from pollex.graphs.learn.graph import UncompiledLearnGraph, add_nodes_fitting_rubric_pool
from pollex.graphs.learn.state import LearnState


@dataclass(frozen=True, kw_only=True)
class RefitChoice(LogContext):
    """What the user chose for `refit`.

    Attributes:
        rubrics: A rubric set: its file, the run that made it, or its digest.
        test_fraction: Share held out; None for the set's, as `seed`.
    """

    rubrics: str = ""
    test_fraction: float | None = None
    seed: int | None = None
    samples: int = 0
    sources: int = 0
    embedding_model: str = ""


def build() -> UncompiledLearnGraph:
    """Build the graph, uncompiled."""
    return add_nodes_fitting_rubric_pool(StateGraph(LearnState, context_schema=RefitChoice), START)
