"""Checkpoints: states of graphs as a store keeps them, read as data of known kinds and as nothing else.

Who hands a store on may have written anything into it. LangGraph's own serializer imports and calls
whatever a row names; here a row is plain values, and of types only those that our graphs put into
their channels.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

from aiosqlite import Connection
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    JsonPlusSerializer,
)
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Interrupt
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter
from typing_extensions import TypedDict

from pollex.errors import PollexError
from pollex.store.database import describe_database_error
from pollex.store.tables import make_damage_error

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph import StateGraph
    from langgraph.typing import ContextT, InputT, OutputT, StateT

MAX_NESTING_LEVELS = 100
"""Levels of lists and objects in a value; ours have less than ten."""


class StateSerializer(JsonPlusSerializer):
    """Writes as LangGraph does; reads plain values, sets of them, and what a node asked people."""

    def __init__(self) -> None:
        allowed = [("builtins", "set"), ("langgraph.types", "Interrupt")]
        super().__init__(
            pickle_fallback=False,
            allowed_json_modules=None,
            allowed_msgpack_modules=allowed,
            __unpack_ext_hook__=read_set_or_interrupt,
        )

    def loads_typed(self, data: tuple[str, bytes]) -> object:
        """Read a value.

        Raises:
            ValueError: It is of another kind, or nested without end.
        """
        kind, _ = data
        if kind not in ("null", "msgpack"):
            raise ValueError(f"a value is kept as {kind!r}, which is not read")

        value = super().loads_typed(data)
        require_shallow_nesting(value)
        return value


def refuse_nested_type(code: int, content: bytes) -> NoReturn:
    """Refuse any type within another.

    Raises:
        ValueError: Always.
    """
    del content
    raise ValueError(f"a value within another is of a type (code {code}), which is not read")


_PLAIN_VALUE_SERIALIZER = JsonPlusSerializer(
    allowed_msgpack_modules=None,
    __unpack_ext_hook__=refuse_nested_type,
)


def read_set_or_interrupt(code: int, content: bytes) -> set[object] | Interrupt:
    """Read a set or an interrupt, by its code and what LangGraph wrote for it: module, name, value.

    Raises:
        ValueError: It is of another type.
    """
    # no class is looked up: only these two are made, by hand
    module, name, value, *_ = _PLAIN_VALUE_SERIALIZER.loads_typed(("msgpack", content))
    if (code, module, name) == (EXT_CONSTRUCTOR_SINGLE_ARG, "builtins", "set"):
        return set(value)
    if (code, module, name) == (EXT_CONSTRUCTOR_KW_ARGS, "langgraph.types", "Interrupt"):
        return Interrupt(value=value["value"], id=str(value["id"]))
    raise ValueError(f"a value is of the type {module}.{name}, which is not read")


def require_shallow_nesting(value: object) -> None:
    """Refuse a value that is nested deeper than anything that a graph keeps.

    Raises:
        ValueError: It is.
    """
    level = [value]
    for _ in range(MAX_NESTING_LEVELS):
        lists = []
        for inner in level:
            if isinstance(inner, list):
                lists.append(inner)

        dicts = []
        for inner in level:
            if isinstance(inner, dict):
                dicts.append(inner)

        # what lies one level deeper
        level = []
        for values in lists:
            level.extend(values)

        for table in dicts:
            level.extend(table.values())
        if not level:
            return

    raise ValueError(f"a value is nested deeper than {MAX_NESTING_LEVELS} levels")


ChannelVersion = Annotated[str, StringConstraints(pattern=r"^\d{1,40}(\.[\d.e-]{0,40})?$")]
"""Of a channel, as LangGraph counts them for SQLite."""


class Checkpoint(TypedDict, total=False):
    """What LangGraph needs of a checkpoint."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]  # pydantic's own way

    v: Annotated[int, Field(ge=1, le=100)]
    id: str
    ts: str
    channel_values: dict[str, object]
    channel_versions: dict[str, ChannelVersion]
    versions_seen: dict[str, dict[str, ChannelVersion]]
    updated_channels: list[str] | None


class CheckpointMetadata(TypedDict, total=False):
    """What LangGraph needs of what stands beside a checkpoint."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]  # as above

    source: str
    step: Annotated[int, Field(ge=-1, le=10**9)]
    parents: dict[str, str]


_CHECKPOINT_ADAPTER = TypeAdapter(Checkpoint)
_METADATA_ADAPTER = TypeAdapter(CheckpointMetadata)
_WRITES_ADAPTER = TypeAdapter(list[tuple[str, str, object]], config=ConfigDict(strict=True))
_REQUIRED_CHECKPOINT_KEYS = {"id", "channel_values", "channel_versions", "versions_seen"}


@contextmanager
def explain_errors_of_damaged_checkpoint(path: Path) -> Iterator[None]:
    """Turn whatever a damaged checkpoint leads to into one error.

    Raises:
        PollexError: The file can't be read, or isn't what a run wrote.
    """
    try:
        yield
    except PollexError:
        raise
    except sqlite3.Error as failure:
        raise describe_database_error(path, failure) from failure
    except Exception as failure:
        words = str(failure).splitlines() or [type(failure).__name__]
        raise make_damage_error(
            str(path), f"a state of a run can't be read: {words[0]}"
        ) from failure


class Checkpoints(AsyncSqliteSaver):
    """The checkpoints of a store, for one graph: what is read has the shape of its state.

    Args:
        path: Of the file, for errors.
    """

    def __init__(
        self,
        connection: Connection,
        path: Path,
        graph: StateGraph[StateT, ContextT, InputT, OutputT],
    ) -> None:
        super().__init__(connection, serde=StateSerializer())
        self._path = path
        self._state = TypeAdapter(graph.state_schema)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint; see LangGraph's.

        Raises:
            StoreDamaged: It isn't what a run wrote.
        """
        with explain_errors_of_damaged_checkpoint(self._path):
            checkpoint = await super().aget_tuple(config)
            return checkpoint and self._checked(checkpoint)

    async def alist(
        self, config: RunnableConfig | None, **which: Any
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints; see LangGraph's. Raises as `aget_tuple` does."""
        with explain_errors_of_damaged_checkpoint(self._path):
            # closed at once when a check fails: left open, it ends after the database, with a traceback
            listed = super().alist(config, **which)
            generator = cast("AsyncGenerator[CheckpointTuple, None]", listed)
            async with aclosing(generator) as checkpoints:
                async for checkpoint in checkpoints:
                    yield self._checked(checkpoint)

    def _checked(self, checkpoint: CheckpointTuple) -> CheckpointTuple:
        """Return a checkpoint whose parts and values are of the kinds that LangGraph and the nodes take them for."""
        _CHECKPOINT_ADAPTER.validate_python(checkpoint.checkpoint)
        if missing := _REQUIRED_CHECKPOINT_KEYS - checkpoint.checkpoint.keys():
            raise ValueError(f"a state has no {sorted(missing)[0]}")

        _METADATA_ADAPTER.validate_python(checkpoint.metadata)
        self._state.validate_python(
            checkpoint.checkpoint["channel_values"],
            strict=True,
        )
        for _, channel, value in _WRITES_ADAPTER.validate_python(
            [tuple(write) for write in checkpoint.pending_writes or ()]
        ):
            self._state.validate_python({channel: value}, strict=True)

        return checkpoint
