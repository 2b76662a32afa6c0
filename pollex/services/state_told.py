"""A state of a graph on one screen: what its node found, the first of each list, and how to get all of it."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pollex.text import JsonObject, TerminalLines, escape_controls, format_count

MAX_LINE_CHARACTERS = 118
"""Characters of a line."""

SCREEN_LINES = 40
"""Lines of the whole, about: each list has as many as that leaves it."""

MIN_LINES_OF_LIST = 3
"""Lines that each list has at least."""

MAX_LINES_OF_LIST = 16
"""Lines of a list at most."""

MAX_LINES_OF_ROW = 3
"""Lines of a row at most: what it begins with matters most."""

MAX_INLINE_VALUE_CHARACTERS = 40
"""Characters of a value that has a line of its own."""

MAX_INLINE_FIELDS = 12
"""Values of an object or list that are told in one line."""

FIRST_COLUMNS = ("name", "text", "id")
"""What a row begins with, if it has it; after a text its id says nothing to a reader."""

LAST_KEYS = ("questions", "by_node")
"""What is told after all else of nodes before: words for ids, and what became results since."""


def describe_state(
    run: str,
    node: str,
    state: JsonObject,
    before: JsonObject,
) -> TerminalLines:
    """Yield what a node found, then what the state has from nodes before it.

    Args:
        before: The state that the node began with.
    """
    texts = collect_rubric_texts(state)
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

    parts: list[tuple[str, str | ListRows]] = []
    for key in told_keys:
        parts.extend(_split_into_parts(key, state[key], texts))
    lines = [*_render_parts(parts, SCREEN_LINES)]
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
        before_it: list[tuple[str, str | ListRows]] = []
        for key in earlier:
            before_it.extend(_split_into_parts(key, state[key], texts))
        left = SCREEN_LINES - len(lines)
        if left >= MIN_LINES_OF_LIST * len(before_it):
            yield "From nodes before it:"
            yield from _render_parts(before_it, left)
        else:
            yield _shorten(f"From nodes before it: {', '.join(earlier)}")

    # the ways to what was cut
    if rows := [*state.get("first", ()), *state.get("worst", ())]:
        id_ = escape_controls(str(rows[0].get("id", "")))
        yield _shorten(
            f"One of them whole: pollex trace {escape_controls(run)} --conversation {id_}"
        )

    yield f"All of it, as JSON: pollex trace {escape_controls(run)} --state {escape_controls(node)} --json"


def _render_parts(parts: Sequence[tuple[str, "str | ListRows"]], most: int) -> Iterator[str]:
    """Yield parts, in about so many lines."""
    # lines that names and sentences leave are shared out evenly among the lists
    lists = sum(isinstance(value, ListRows) for _, value in parts)
    left = most - len(parts) - 3
    share = min(MAX_LINES_OF_LIST, max(MIN_LINES_OF_LIST, left // max(1, lists) - 1))
    for name, value in parts:
        if isinstance(value, ListRows):
            yield from value.told(name, share)
        else:
            yield from _wrap_text(f"{name}: {value}", "", MAX_LINES_OF_ROW)


def collect_rubric_texts(state: JsonObject) -> dict[str, str]:
    """Return the texts of rubrics by their ids, from all rows of a state that have both."""
    texts: dict[str, str] = {}
    pool = []
    for side in state.get("pool", {}).values():
        pool.extend(side)

    for row in [*pool, *state.get("kept", ()), *state.get("chosen", ())]:
        if isinstance(row, Mapping) and "id" in row and "text" in row:
            texts[str(row["id"])] = str(row["text"])

    return texts


class ListRows:
    """Rows of a list or a table."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines

    def told(self, name: str, most: int) -> Iterator[str]:
        """Yield the name with the number of rows, and the first of them, in so many lines."""
        yield _shorten(f"{name} ({len(self.lines)}):")
        shown = 0
        left = most
        for row in self.lines:
            lines = _wrap_text(row, "  ", MAX_LINES_OF_ROW)
            # the first row is shown whole, even if it alone is longer
            if shown and len(lines) > left:
                break
            yield from lines
            shown += 1
            left -= len(lines)

        if len(self.lines) > shown:
            yield f"  and {len(self.lines) - shown} more"


def _split_into_parts(
    name: str, value: object, texts: Mapping[str, str]
) -> Iterator[tuple[str, str | ListRows]]:
    """Yield what is told of a value of the state: lines by their names; lists inside of objects are parts, too."""
    if isinstance(value, list):
        # plain values fit in one line; objects and lists have a line each
        objects = any(isinstance(row, Mapping | list) for row in value)
        yield (
            name,
            ListRows([_format_row(row) for row in value]) if objects else _format_value(value),
        )
    elif isinstance(value, Mapping) and value:
        yield from _split_object(name, value, texts)
    else:
        yield name, _format_plain_value(value)


def _split_object(
    name: str,
    value: JsonObject,
    texts: Mapping[str, str],
) -> Iterator[tuple[str, str | ListRows]]:
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
        yield name, ListRows([f"{key}: {_format_value(entry)}" for key, entry in rest.items()])
    elif rest:
        yield name, _format_value(rest)

    for key, rows in lists.items():
        yield from _split_into_parts(f"{name}, {key}", rows, texts)


def _is_empty(value: object) -> bool:
    return value in (None, "", [], {})


def _is_long(value: object) -> bool:
    return isinstance(value, str) and len(value) > MAX_INLINE_VALUE_CHARACTERS


def _holds_rows(value: object) -> bool:
    """Tell whether a value is a list of objects, or an object with one in it."""
    if isinstance(value, list):
        return any(isinstance(row, Mapping) for row in value)
    return isinstance(value, Mapping) and any(
        _holds_rows(entry) for entry in value.values() if isinstance(entry, list)
    )


def _format_row(row: object) -> str:
    """Return a row of a list in a line, what people know it by first."""
    if not isinstance(row, Mapping):
        return _format_value(row)

    first = next((key for key in FIRST_COLUMNS if row.get(key)), None)
    if first is None:
        return _format_value(row)

    # who has read the text doesn't need the id
    rest = {}
    for key, cell in row.items():
        if key != first and not (first == "text" and key == "id"):
            rest[key] = cell

    named = str(row[first])
    if rest:
        return f"{named}: {_format_value(rest)}"
    return named


def _format_value(value: object) -> str:
    """Return a value in a line: objects as `name value`, what is nested deeper in brackets."""
    if isinstance(value, Mapping):
        if _is_figure(value):
            return _format_plain_value(value)
        # the order in which people read them; what is empty is left out
        in_order = sorted(value.items(), key=_rank_field)
        fields = []
        for name, field in in_order:
            if not _is_empty(field):
                fields.append(f"{name} {_format_plain_value(field)}")

        if len(fields) > MAX_INLINE_FIELDS:
            fields = [
                *fields[:MAX_INLINE_FIELDS],
                f"and {format_count(len(fields) - MAX_INLINE_FIELDS, 'value')} more",
            ]
        return "; ".join(fields) or "none"

    if isinstance(value, list):
        listed = ", ".join(map(_format_plain_value, value[:MAX_INLINE_FIELDS]))
        if len(value) > MAX_INLINE_FIELDS:
            return f"{listed} and {len(value) - MAX_INLINE_FIELDS} more"
        return listed or "none"

    return _format_plain_value(value)


def _is_figure(value: Mapping[str, object]) -> bool:
    """Tell whether an object is a figure with its interval."""
    return {"value", "low", "high"} <= value.keys()


def _rank_field(field: tuple[str, object]) -> tuple[bool, bool, bool]:
    """Order the fields of a row: why, what was decided, the rest, and long texts last."""
    name, value = field
    long = isinstance(value, str) and len(value) > MAX_FIELD_CHARACTERS
    return name != "why", name not in DECISION_FIELDS, long and name != "why"


DECISION_FIELDS = ("verdict", "overall", "decision", "probability")
"""Fields that stand right after why."""

MAX_FIELD_CHARACTERS = 450
"""Characters of a field that stands where it is: whole prompts and diffs come last."""


def _format_plain_value(value: object) -> str:
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

            ends = f"[{_format_plain_value(value['low'])}, {_format_plain_value(value['high'])}]"
            return f"{_format_plain_value(value['value'])} {ends}, {counted}"

        # what is nested deeper is only counted
        flat = []
        for name, entry in value.items():
            if not isinstance(entry, Mapping | list):
                flat.append(f"{name} {_format_plain_value(entry)}")

        if not flat:
            return format_count(len(value), "value")
        if len(flat) > MAX_INLINE_FIELDS:
            return format_count(len(flat), "value")
        return f"({', '.join(flat)})"

    # a short list of plain values is written out
    if isinstance(value, list):
        short = len(value) <= MAX_INLINE_FIELDS and not any(
            isinstance(entry, Mapping | list) for entry in value
        )
        if short:
            return " ".join(map(_format_plain_value, value))
        return format_count(len(value), "value")
    if value in (None, ""):
        return "none"
    return str(value)


def _wrap_text(text: str, indent: str, most: int) -> list[str]:
    """Return a text in lines of the screen; what is left out after so many is shown by a sign."""
    line = escape_controls(" ".join(text.split()))
    return textwrap.wrap(
        line,
        MAX_LINE_CHARACTERS,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        max_lines=most,
        placeholder=" …",
    )


def _shorten(text: str) -> str:
    return _wrap_text(text, "", 1)[0]
