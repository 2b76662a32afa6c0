"""What a room hangs into LangGraph Studio: it names it in its own `studio/hooks.py`, as `HOOKS`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langgraph.graph import StateGraph

ServedGraph = StateGraph[Any, Any, Any, Any]
"""A graph before it is compiled, of whatever state and context."""

ContextUseCase = Callable[[Any], object]
"""Carries out what a graph's context asks for; takes a context of the graph's own class."""


@dataclass(frozen=True)
class StudioGraph:
    """A graph of a room, as LangGraph Studio and its HTTP API run it.

    Attributes:
        name: Under which `langgraph.json` finds it in `pollex/studio/graphs.py`.
        build: Makes the graph.
        use_case: Carries out what its context asks for; see `pollex.studio.use_cases`.
    """

    name: str
    build: Callable[[], ServedGraph]
    use_case: ContextUseCase
