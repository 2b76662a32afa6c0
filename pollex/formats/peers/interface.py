"""Interfaces of tools: requests, pages, streams of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Row = dict[str, Any]
Environment = Mapping[str, str]


class Ask(NamedTuple):
    """One request.

    Attributes:
        query: Pairs, since a name may stand several times.
        body: What is sent as JSON; None for GET.
    """

    path: str
    query: Sequence[tuple[str, str]] = ()
    body: Any = None
    method: str = ""


class Where(NamedTuple):
    """The position from which pages are wanted.

    Attributes:
        cursor: Cursor of the next page; empty for the first.
        since: Only rows of this time and later, as ISO text; empty for all.
        ids: Ids from other rows, for streams that are queried by them.
    """

    project: str
    cursor: str = ""
    since: str = ""
    ids: tuple[str, ...] = ()


class Page(NamedTuple):
    """An answer's rows, and the cursor of the next page; empty at the end."""

    rows: list[Row]
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Stream:
    """One kind of rows.

    Attributes:
        about: The stream whose rows' ids this one is asked by, and how they are found in a row.
        time: The field that says when a row was made.
        kept: Whether its rows are written, and not only asked about.
        counted: Whether the next page is asked for by the number of rows before it.
    """

    name: str
    ask: Callable[[Where], Ask]
    page: Callable[[Any], Page]
    time: str = ""
    about: str = ""
    id_of: Callable[[Row], str] | None = None
    kept: bool = True
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Interface:
    """A tool's interface.

    Attributes:
        url: Names of the variables with its address, and the usual one.
        headers: Made from the variables with keys.
        keys: Variables that have to be there.
        wants_project: Whether a project has to be named.
        named: Of a project's name, what to ask for its id, and where the id stands in the answer; None for an id.
        stale: Of a request, what to ask about it first, and what then to send to take an older one away.
    """

    name: str
    url: tuple[tuple[str, ...], str]
    keys: tuple[str, ...]
    headers: Callable[[Environment], dict[str, str]]
    streams: tuple[Stream, ...] = ()
    push: Callable[[Any], Iterator[Ask]] | None = None
    wants_project: bool = False
    named: Callable[[str], tuple[Ask, Callable[[Any], str]] | None] = lambda _: None
    stale: Callable[[Row], tuple[Ask, Callable[[Any], list[Ask]]]] | None = None


def pairs(**given: object) -> list[tuple[str, str]]:
    """Return names and values, without the empty ones."""
    return [(name.rstrip("_"), str(value)) for name, value in given.items() if value not in (None, "")]


def rows_in(answer: Any, name: str = "data") -> list[Row]:
    listed = answer.get(name) if isinstance(answer, Mapping) else answer
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []


def inside(*names: str) -> Callable[[Row], str]:
    def found(row: Row) -> str:
        value: Any = row
        for name in names:
            value = value.get(name) if isinstance(value, Mapping) else None
        return str(value or "")

    return found
