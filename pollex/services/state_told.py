"""A state of a graph on one screen: what its node found, the first of each list, and how to get all of it."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pollex.text import TerminalLines, escape_controls, format_count

LINE_WIDTH = 118
"""Characters of a line."""

SCREEN = 40
"""Lines of the whole, about: each list has as many as that leaves it."""

LEAST_LINES = 3
"""Lines that each list has at least."""

MOST_LINES = 16
"""Lines of a list at most."""

LINES_OF_ROW = 3
"""Lines of a row at most: what it begins with matters most."""

LONGEST_INLINE_VALUE = 40
"""Characters of a value that has a line of its own."""

INLINE = 12
"""Values of an object or list that are told in one line."""

FIRST_COLUMNS = ("name", "text", "id")
"""What a row begins with, if it has it; after a text its id says nothing to a reader."""

LAST_KEYS = ("questions", "by_node")
"""What is told after all else of nodes before: words for ids, and what became results since."""


def describe_state(
    run: str,
    node: str,
    state: Mapping[str, Any],
    before: Mapping[str, Any],
) -> TerminalLines:
    """Yield what a node found, then what the state has from nodes before it.

    Args:
        before: The state that the node began with.
    """
    texts = texts_by_id(state)
    # the run is named in the first line, whatever changed
    changed = []
    for key, value in state.items():
        if before.get(key) != value and key != "run":
            changed.append(key)

    yield f"{escape_controls(run)} after {escape_controls(node)} found:"
    told_keys = []
    for key in changed:
        if not _is_empty(state[key]):
            told_keys.append(key)

    parts: list[tuple[str, str | Rows]] = []
    for key in told_keys:
        parts.extend(_parts(key, state[key], texts))
    lines = [*_told(parts, SCREEN)]
    yield from lines
    if empty := [key for key in changed if _is_empty(state[key])]:
        yield _shorten(f"none: {', '.join(empty)}")
    if not changed:
        yield "nothing that the state hadn't told before"

    # what nodes before it found, as far as there is room; else its names
    earlier = []
    for key, value in state.items():
        if key not in changed and key not in ("run", "batch") and not _is_empty(value):
            earlier.append(key)

    earlier.sort(key=LAST_KEYS.__contains__)
    if earlier:
        before_it: list[tuple[str, str | Rows]] = []
        for key in earlier:
            before_it.extend(_parts(key, state[key], texts))
        left = SCREEN - len(lines)
        if left >= LEAST_LINES * len(before_it):
            yield "From nodes before it:"
            yield from _told(before_it, left)
        else:
            yield _shorten(f"From nodes before it: {', '.join(earlier)}")

    # the ways to what was cut
    if rows := [*state.get("first", ()), *state.get("worst", ())]:
        id_ = escape_controls(str(rows[0].get("id", "")))
        yield _shorten(
            f"One of them whole: pollex trace {escape_controls(run)} --conversation {id_}"
        )

    yield f"All of it, as JSON: pollex trace {escape_controls(run)} --state {escape_controls(node)} --json"


def _told(parts: Sequence[tuple[str, "str | Rows"]], most: int) -> Iterator[str]:
    """Yield parts, in about so many lines."""
    # lines that names and sentences leave are shared out evenly among the lists
    lists = sum(isinstance(value, Rows) for _, value in parts)
    left = most - len(parts) - 3
    share = min(MOST_LINES, max(LEAST_LINES, left // max(1, lists) - 1))
    for name, value in parts:
        if isinstance(value, Rows):
            yield from value.told(name, share)
        else:
            yield from _wrapped(f"{name}: {value}", "", LINES_OF_ROW)


def texts_by_id(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of rubrics by their ids, from all rows of a state that have both."""
    texts: dict[str, str] = {}
    pool = []
    for side in state.get("pool", {}).values():
        pool.extend(side)

    for row in [*pool, *state.get("kept", ()), *state.get("chosen", ())]:
        if isinstance(row, Mapping) and "id" in row and "text" in row:
            texts[str(row["id"])] = str(row["text"])

    return texts


class Rows:
    """Rows of a list or a table."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines

    def told(self, name: str, most: int) -> Iterator[str]:
        """Yield the name with the number of rows, and the first of them, in so many lines."""
        yield _shorten(f"{name} ({len(self.lines)}):")
        shown = 0
        left = most
        for row in self.lines:
            lines = _wrapped(row, "  ", LINES_OF_ROW)
            # the first row is shown whole, even if it alone is longer
            if shown and len(lines) > left:
                break
            yield from lines
            shown += 1
            left -= len(lines)

        if len(self.lines) > shown:
            yield f"  and {len(self.lines) - shown} more"


def _parts(name: str, value: Any, texts: Mapping[str, str]) -> Iterator[tuple[str, str | Rows]]:
    """Yield what is told of a value of the state: lines by their names; lists inside of objects are parts, too."""
    if isinstance(value, list):
        # plain values fit in one line; objects and lists have a line each
        objects = any(isinstance(row, Mapping | list) for row in value)
        yield name, Rows([_row_in_line(row) for row in value]) if objects else _in_line(value)
    elif isinstance(value, Mapping) and value:
        yield from _parts_of_object(name, value, texts)
    else:
        yield name, _plain(value)


def _parts_of_object(
    name: str,
    value: Mapping[str, Any],
    texts: Mapping[str, str],
) -> Iterator[tuple[str, str | Rows]]:
    # people know a rubric by its text, not by its id; a row needs it once
    named = {}
    for key, entry in value.items():
        row = entry
        if key in texts and isinstance(entry, Mapping):
            row = {name: cell for name, cell in entry.items() if name != "text"}
        named[texts.get(key, key)] = row

    # a word for each rubric, such as what became of it: equal ones are counted
    if all(isinstance(entry, str) for entry in value.values()) and set(value) <= texts.keys():
        counts_in_words = []
        for word, times in Counter(value.values()).items():
            counts_in_words.append(f"{times} {texts.get(word, word)}")

        yield (name, "; ".join(counts_in_words))
        return

    # lists of rows become parts of their own, with the name of this one before theirs
    lists = {}
    for key, entry in named.items():
        if _holds_rows(entry):
            lists[key] = entry

    rest = {}
    for key, entry in named.items():
        if key not in lists:
            rest[key] = entry

    if rest and any(isinstance(entry, Mapping) or _is_long(entry) for entry in rest.values()):
        yield name, Rows([f"{key}: {_in_line(entry)}" for key, entry in rest.items()])
    elif rest:
        yield name, _in_line(rest)

    for key, rows in lists.items():
        yield from _parts(f"{name}, {key}", rows, texts)


def _is_empty(value: Any) -> bool:
    return value in (None, "", [], {})


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > LONGEST_INLINE_VALUE


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

    # who has read the text doesn't need the id
    rest = {}
    for key, cell in row.items():
        if key != first and not (first == "text" and key == "id"):
            rest[key] = cell

    named = str(row[first])
    if rest:
        return f"{named}: {_in_line(rest)}"
    return named


def _in_line(value: Any) -> str:
    """Return a value in a line: objects as `name value`, what is nested deeper in brackets."""
    if isinstance(value, Mapping):
        if _is_figure(value):
            return _plain(value)
        # the order in which people read them; what is empty is left out
        in_order = sorted(value.items(), key=_place_in_row)
        fields = []
        for name, field in in_order:
            if not _is_empty(field):
                fields.append(f"{name} {_plain(field)}")

        if len(fields) > INLINE:
            fields = [*fields[:INLINE], f"and {format_count(len(fields) - INLINE, 'value')} more"]
        return "; ".join(fields) or "none"

    if isinstance(value, list):
        listed = ", ".join(map(_plain, value[:INLINE]))
        if len(value) > INLINE:
            return f"{listed} and {len(value) - INLINE} more"
        return listed or "none"

    return _plain(value)


def _is_figure(value: Mapping[str, Any]) -> bool:
    """Tell whether an object is a figure with its interval."""
    return {"value", "low", "high"} <= value.keys()


def _place_in_row(field: tuple[str, Any]) -> tuple[bool, bool, bool]:
    """Order the fields of a row: why, what was decided, the rest, and long texts last."""
    name, value = field
    long = isinstance(value, str) and len(value) > LONGEST_FIELD
    return name != "why", name not in DECIDED, long and name != "why"


DECIDED = ("verdict", "overall", "decision", "probability")
"""Fields that stand right after why."""

LONGEST_FIELD = 450
"""Characters of a field that stands where it is: whole prompts and diffs come last."""


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        if not value:
            return "none"
        if _is_figure(value):
            if value.get("users"):
                counted = f"{value['users']} users"
            else:
                counted = f"n = {value.get('n')}"

            ends = f"[{_plain(value['low'])}, {_plain(value['high'])}]"
            return f"{_plain(value['value'])} {ends}, {counted}"

        # what is nested deeper is only counted
        flat = []
        for name, entry in value.items():
            if not isinstance(entry, Mapping | list):
                flat.append(f"{name} {_plain(entry)}")

        if not flat:
            return format_count(len(value), "value")
        if len(flat) > INLINE:
            return format_count(len(flat), "value")
        return f"({', '.join(flat)})"

    # a short list of plain values is written out
    if isinstance(value, list):
        short = len(value) <= INLINE and not any(
            isinstance(entry, Mapping | list) for entry in value
        )
        if short:
            return " ".join(map(_plain, value))
        return format_count(len(value), "value")
    if value in (None, ""):
        return "none"
    return str(value)


def _wrapped(text: str, indent: str, most: int) -> list[str]:
    """Return a text in lines of the screen; what is left out after so many is shown by a sign."""
    line = escape_controls(" ".join(text.split()))
    return textwrap.wrap(
        line,
        LINE_WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        max_lines=most,
        placeholder=" …",
    )


def _shorten(text: str) -> str:
    return _wrapped(text, "", 1)[0]
