"""Rows in memory: dicts, tables of pandas, polars and Arrow, LangChain messages, LangGraph states."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from pollex.errors import WrongUse

ACCEPTED_INPUTS_HINT = (
    "give paths, conversations, a list of dicts, or a pandas, polars or Arrow table"
)
LANGGRAPH_STATE_METADATA_FIELDS = ("metadata", "created_at", "tasks")
"""Fields of a LangGraph state beside its values."""


@runtime_checkable
class DataTable(Protocol):
    """A table of pandas, polars or Arrow."""

    @property
    def columns(self) -> object: ...


RowSource = Iterable[Mapping[str, object]] | DataTable


def iterate_plain_rows_of_table(log: RowSource) -> Iterator[dict[str, object]]:
    """Yield rows with plain Python values; missing values of tables are None.

    Raises:
        WrongUse: A row is no dict, or the whole is none of the known shapes.
    """
    if isinstance(log, DataTable) and (
        # polars and Arrow give plain rows themselves
        read := getattr(log, "to_dicts", None) or getattr(log, "to_pylist", None)
    ):
        yield from read()
    elif isinstance(log, DataTable) and hasattr(log, "to_dict"):
        for record in log.to_dict("records"):
            yield {
                str(name): convert_to_plain_python_value(value) for name, value in record.items()
            }
    elif isinstance(log, Mapping) and log.keys() & {"messages", "values"}:
        yield convert_messages_to_dicts(log)
    elif isinstance(log, Iterable) and not isinstance(log, str | Mapping):
        # a list of messages is one conversation
        rows: list[object] = list(log)
        if rows and all(map(_is_langchain_message, rows)):
            rows = [rows]
        for number, row in enumerate(map(convert_messages_to_dicts, rows), start=1):
            if not isinstance(row, Mapping):
                raise WrongUse(
                    f"not a log: item {number} is {type(rows[number - 1]).__name__}",
                    hint=ACCEPTED_INPUTS_HINT,
                )

            yield dict(row)
    else:
        raise WrongUse(f"not a log, but {type(log).__name__}", hint=ACCEPTED_INPUTS_HINT)


def convert_to_plain_python_value(value: object) -> object:
    """Convert a table's value to plain Python: arrays to lists, NaN and NaT to None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if hasattr(value, "isoformat"):
        value = value.isoformat()
    if value != value or value == "NaT":
        return None
    return value


def convert_messages_to_dicts(log: Any) -> Any:
    """Convert LangChain messages and LangGraph states to dicts; keep everything else.

    A list of messages becomes a conversation.
    """
    # a snapshot of a LangGraph state, whose thread stands in its config
    if not isinstance(log, Mapping) and isinstance(getattr(log, "values", None), Mapping):
        configurable = (getattr(log, "config", None) or {}).get("configurable") or {}
        facts = {name: getattr(log, name, None) for name in LANGGRAPH_STATE_METADATA_FIELDS}
        log = {
            "thread_id": configurable.get("thread_id"),
            "values": log.values,
            **facts,
        }

    if isinstance(log, list | tuple) and log and all(map(_is_langchain_message, log)):
        log = {"messages": log}
    try:
        return _convert_to_plain_dicts(log)
    except RecursionError:
        raise WrongUse(
            "not a log: it holds itself, or nests too deeply",
            hint=ACCEPTED_INPUTS_HINT,
        ) from None


def _is_langchain_message(value: object) -> bool:
    return isinstance(getattr(value, "type", None), str) and hasattr(value, "content")


def _convert_to_plain_dicts(value: object) -> object:
    if hasattr(value, "_asdict"):
        value = value._asdict()

    if isinstance(value, Mapping):
        dicts = {}
        for name, inner in value.items():
            dicts[name] = _convert_to_plain_dicts(inner)
        return dicts
    if isinstance(value, list | tuple):
        return [_convert_to_plain_dicts(inner) for inner in value]
    if _is_langchain_message(value):
        names = ("type", "content", "id", "name", "tool_calls", "tool_call_id", "status")
        attributes = {}
        for name in names:
            if (attribute := getattr(value, name, None)) not in (None, []):
                attributes[name] = attribute
        return attributes

    return value
