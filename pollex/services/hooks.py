"""What a room hangs into the core's services: it names it in its own `services/hooks.py`, as `HOOKS`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from pollex.conversations.logs import Logs
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.runs import Run

HOOKS = ()
"""The tools that every agent has stand in `agent_tools`."""


class AgentStore(Protocol):
    """What a tool of a room knows of the store that an agent asks."""

    @property
    def folder(self) -> Path:
        """Folder of the store."""

    def scored(self, run: str) -> tuple[Run, RubricSet, Logs]:
        """Return a scored run, the last one for an empty name, its rubric set, and its conversations."""

    def answer(self, rows: Sequence[Any], offset: int, **about: Any) -> str:
        """Return a page of rows, sealed as data."""


class AgentTool(ABC):
    """A question that a coding agent may ask of a store, beside those that every agent has."""

    @abstractmethod
    def of(self, store: AgentStore) -> Callable[..., str]:
        """Make the function that an agent calls: its name, arguments and docstring are what the agent sees."""
