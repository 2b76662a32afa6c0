"""A state of a graph on one screen: what its node found, the first of each list, and how to get all of it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pollex.text import Told, count, printable

WIDTH = 118
"""Characters of a line."""

SCREEN = 36
"""Lines of the whole, about: each list has as many rows as that leaves it."""

MOST_ROWS = 8

NAME = 72
"""Characters of what a row begins with."""

INLINE = 8
"""Values of an object or list that are told in one line."""

FIRST_COLUMNS = ("text", "name", "id")
"""What a row begins with, if it has it; after a text its id says nothing to a reader."""


def state_told(run: str, node: str, state: Mapping[str, Any], before: Mapping[str, Any]) -> Told:
    """Yield what a node found, then what the state has from nodes before it.

    Args:
        before: The state that the node began with.
    """
    texts = texts_by_id(state)
    changed = [key for key, value in state.items() if before.get(key) != value and key != "run"]
    parts = [part for key in changed for part in _parts(key, state[key], texts)]
    lists = sum(isinstance(value, Rows) for _, value in parts)
    rows = min(MOST_ROWS, max(1, (SCREEN - len(parts) - 3) // max(1, lists) - 1))

    yield f"{printable(run)} after {printable(node)} found:"
    for name, value in parts:
        if isinstance(value, Rows):
            yield from value.told(name, rows)
        else:
            yield _cut(f"{name}: {value}")
    if not changed:
        yield "nothing that the state hadn't told before"
    if earlier := [key for key in state if key not in changed and key != "run"]:
        yield _cut(f"From nodes before it: {', '.join(earlier)}")
    yield f"All of it, as JSON: pollex trace {printable(run)} --state {printable(node)} --json"


def texts_by_id(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of rubrics by their ids, from all rows of a state that have both."""
    texts: dict[str, str] = {}
    pool = [row for side in state.get("pool", {}).values() for row in side]
    for row in [*pool, *state.get("kept", ()), *state.get("chosen", ())]:
        if isinstance(row, Mapping) and "id" in row and "text" in row:
            texts[str(row["id"])] = str(row["text"])
    return texts


class Rows:
    """Rows of a list or a table."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines

    def told(self, name: str, most: int) -> Iterator[str]:
        """Yield the name with the number of rows, and the first of them."""
        yield _cut(f"{name} ({len(self.lines)}):")
        for line in self.lines[:most]:
            yield _cut(f"  {line}")
        if len(self.lines) > most:
            yield f"  and {len(self.lines) - most} more"


def _parts(name: str, value: Any, texts: Mapping[str, str]) -> Iterator[tuple[str, str | Rows]]:
    """Yield what is told of a value of the state: lines by their names; lists inside of objects are parts, too."""
    if isinstance(value, list):
        objects = any(isinstance(row, Mapping | list) for row in value)
        yield name, Rows([_row_in_line(row) for row in value]) if objects else _in_line(value)
    elif isinstance(value, Mapping) and value:
        yield from _parts_of_object(name, value, texts)
    else:
        yield name, _plain(value)


def _parts_of_object(
    name: str, value: Mapping[str, Any], texts: Mapping[str, str]
) -> Iterator[tuple[str, str | Rows]]:
    named = {texts.get(key, key): entry for key, entry in value.items()}
    if all(isinstance(entry, str) for entry in value.values()) and set(value) <= texts.keys():
        yield (
            name,
            "; ".join(
                f"{times} {texts.get(word, word)}"
                for word, times in Counter(value.values()).items()
            ),
        )
        return
    lists = {key: entry for key, entry in named.items() if _holds_rows(entry)}
    rest = {key: entry for key, entry in named.items() if key not in lists}
    if rest and any(isinstance(entry, Mapping) for entry in rest.values()):
        yield name, Rows([f"{_shortened(key)} {_in_line(entry)}" for key, entry in rest.items()])
    elif rest:
        yield name, _in_line(rest)
    for key, rows in lists.items():
        yield from _parts(f"{name}, {key}", rows, texts)


def _holds_rows(value: Any) -> bool:
    """Tell whether a value is a list of objects, or an object with one in it."""
    if isinstance(value, list):
        return any(isinstance(row, Mapping) for row in value)
    return isinstance(value, Mapping) and any(
        _holds_rows(entry) for entry in value.values() if isinstance(entry, list)
    )


def _row_in_line(row: Any) -> str:
    """Return a row of a list in a line, what people know it by first."""
    if not isinstance(row, Mapping):
        return _in_line(row)
    first = next((key for key in FIRST_COLUMNS if row.get(key)), None)
    if first is None:
        return _in_line(row)
    rest = {
        key: cell
        for key, cell in row.items()
        if key != first and not (first == "text" and key == "id")
    }
    named = _shortened(str(row[first]))
    return f"{named} {_in_line(rest)}" if rest else named


def _in_line(value: Any) -> str:
    """Return a value in a line: objects as `name value`, what is nested deeper in brackets."""
    if isinstance(value, Mapping):
        if "value" in value and "low" in value:  # a figure with its interval
            return f"{_plain(value['value'])} [{_plain(value['low'])}, {_plain(value['high'])}], n = {value.get('n')}"
        in_order = sorted(value.items(), key=lambda item: item[0] != "why")
        fields = [
            f"{name} {_plain(field)}" for name, field in in_order if field not in (None, "", [], {})
        ]
        return "; ".join(fields[:INLINE]) or "none"
    if isinstance(value, list):
        listed = ", ".join(map(_plain, value[:INLINE]))
        return (
            f"{listed} and {len(value) - INLINE} more" if len(value) > INLINE else listed or "none"
        )
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        if not value:
            return "none"
        flat = [
            f"{name} {_plain(entry)}"
            for name, entry in value.items()
            if not isinstance(entry, Mapping | list)
        ]
        return f"({', '.join(flat[:INLINE])})" if flat else count(len(value), "value")
    if isinstance(value, list):
        short = len(value) <= INLINE and not any(
            isinstance(entry, Mapping | list) for entry in value
        )
        return " ".join(map(_plain, value)) if short else count(len(value), "value")
    return "none" if value in (None, "") else str(value)


def _shortened(name: str) -> str:
    """Return what a row is known by, so that what was found stands on its line, too."""
    return f"{name}:" if len(name) <= NAME else f"{name[: NAME - 1]}…:"


def _cut(line: str) -> str:
    line = printable(" ".join(line.split("\n")))
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
