"""Values inside a row by the path to them: `from.role`, `responses[].value`, JSON text opened on the way.

A name that a row has as it stands goes before a path. In a path, `[]` or `*` stands for every item
of a list, and a number for one of them.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from pollex.text import JsonDict, JsonObject, parse_json

MISSING_VALUE: object = object()
"""What a path leads to that a row doesn't have."""
PATH_STEPS_FOR_EVERY_LIST_ITEM = ("[]", "*")
MAX_PYTHON_LITERAL_CHARS = 1 << 20
"""Characters of the longest text that is read as Python writes it."""
MAX_TURNS_EXAMINED = 200
MAX_SPEAKERS_OF_ONE_KEY_TURNS = 4
"""Different keys of turns of one key, which say who speaks."""
_SPEAKER_PATTERN = re.compile(r"\s*([^\W\d_][^:\n]{0,29}?)\s*:\s")
"""Who says a text, before a colon."""
SPEAKER_NAMES_OF_ALTERNATING_TEXTS = ("first", "second")
"""The sides of plain texts in turn."""
MIN_SPOKEN_WORDS = 3
"""Words of most texts that are said in turn."""
_PYTHON_LITERAL_PATTERN = re.compile(r"""^\s*(?:\[\s*)?(?:\{\s*['"]|\[\s*['"])""")
_NAN_PATTERN = re.compile(r"(?<=[:,\[ ])nan(?=[,}\]])")
"""What pandas writes for a missing number."""


def find_value_at_path(fields: JsonObject, path: str) -> Any:
    """Return the value at a path, a list of all where it names every item; `MISSING_VALUE` if there is none."""
    # a name that the row has goes before a path; text without signs of a path is no path
    direct = fields.get(path, MISSING_VALUE)
    if (direct is not None and direct is not MISSING_VALUE) or (
        "." not in path and "[" not in path and "*" not in path
    ):
        return direct

    steps = split_path(path)
    values = list(_iterate_values_at(fields, steps))
    if any(step in PATH_STEPS_FOR_EVERY_LIST_ITEM for step in steps):
        return values or direct
    if "*" in path:
        return values if values else direct
    return values[0] if values else direct


def join_texts_if_all(value: object) -> object:
    """Return the texts of lists inside one another as one; what holds anything else as it is."""
    values = list(flatten_listed_values(value))
    if isinstance(value, list) and all(isinstance(text, str) for text in values):
        return "\n".join(map(str, values))
    return value


def flatten_listed_values(value: object) -> Iterator[object]:
    """Yield the values of lists inside one another."""
    if not isinstance(value, list):
        yield value
        return
    for inner in value:
        yield from flatten_listed_values(inner)


def get_path_value(fields: JsonObject, path: str) -> object:
    """Return the value at a path; None if missing."""
    value = find_value_at_path(fields, path)
    return None if value is MISSING_VALUE else value


def split_path(path: str) -> list[str]:
    """Return the names, numbers and `[]` of a path."""
    return [step for step in path.replace("[]", ".[]").split(".") if step]


def parse_value_if_json_text(value: object) -> Any:
    """Return what JSON text of an object or a list says; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse_json(value)
        except ValueError:
            return parse_python_literal(value)

    return value


def parse_python_literal(text: str) -> object:
    """Return the list or object that a text is as Python writes it, as pandas does in cells; else the text itself."""
    if len(text) > MAX_PYTHON_LITERAL_CHARS or not _PYTHON_LITERAL_PATTERN.search(
        text[:MAX_TURNS_EXAMINED]
    ):
        return text

    try:
        value = ast.literal_eval(_NAN_PATTERN.sub("None", text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text

    # what JSON can't say, as bytes and tuples, is no log
    return value if _is_plain_json(value) else text


def _is_plain_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and all(
            map(_is_plain_json, value.values())
        )
    if isinstance(value, list):
        return all(map(_is_plain_json, value))
    return value is None or isinstance(value, str | int | float | bool)


def _iterate_values_at(value: object, steps: list[str]) -> Iterator[object]:
    if not steps:
        yield value
        return

    step = steps[0]
    rest = steps[1:]
    inner = parse_value_if_json_text(value)
    if step in PATH_STEPS_FOR_EVERY_LIST_ITEM:
        # every item of a list, or every value of an object
        items: Iterable[object] = ()
        if isinstance(inner, list):
            items = inner
        elif isinstance(inner, Mapping):
            items = inner.values()

        for item in items:
            yield from _iterate_values_at(item, rest)
    elif "*" in step and isinstance(inner, Mapping):
        for name in inner:
            if fnmatchcase(name, step):
                yield from _iterate_values_at(inner[name], rest)
    elif isinstance(inner, Mapping):
        # A name may have dots itself: the longest one that is there goes first.
        for end in range(len(steps), 0, -1):
            name = ".".join(steps[:end])
            if inner.get(name) is not None:
                yield from _iterate_values_at(inner[name], steps[end:])
                return

        if step in inner and not rest:
            yield None
    elif isinstance(inner, list) and step.isdigit() and int(step) < len(inner):
        yield from _iterate_values_at(inner[int(step)], rest)


def remove_path(fields: JsonObject, path: str) -> JsonDict:
    """Return a row without what a path leads to; the objects around it are copied, not changed."""
    if path in fields:
        return {name: value for name, value in fields.items() if name != path}

    name, _, rest = path.partition(".")
    inner = parse_value_if_json_text(fields.get(name))
    if rest and isinstance(inner, Mapping):
        return {**fields, name: remove_path(inner, rest)}
    return dict(fields)


def unwrap_message_content(value: object) -> object:
    """Return the text or the parts of a message's content that is an object around them."""
    inner = parse_value_if_json_text(value)
    if not isinstance(inner, Mapping):
        return inner

    return next(
        (
            unwrap_message_content(inner[name])
            for name in ("parts", "content", "text", "message")
            if name in inner
        ),
        inner,
    )


def convert_turns_to_objects(value: object) -> Any:
    """Return a list of turns that some write as lists, plain texts or objects of one key as usual objects.

    A pair of texts gets the keys `0` and `1`, as do the cells of longer lists; a name before a
    colon is who speaks; texts in turn are of the `first` and the `second`; the key of
    `{"customer": "Hello."}` is its role.
    """
    inner = parse_value_if_json_text(value)
    turns = inner if isinstance(inner, list) else []
    if _are_rows_of_cells(turns):
        return [{str(place): cell for place, cell in enumerate(turn)} for turn in turns]

    # objects of one key each: few different keys, which say who speaks
    if len(turns) > 1 and all(isinstance(turn, dict) and len(turn) == 1 for turn in turns):
        spoken = [next(iter(turn.items())) for turn in turns]
        several = 1 < len({name for name, _ in spoken}) <= MAX_SPEAKERS_OF_ONE_KEY_TURNS
        if several and all(isinstance(text, str) for _, text in spoken):
            rows = []
            for name, text in spoken:
                rows.append({"role": name, "content": text})

            return rows

    # plain texts with names before a colon
    if len(turns) > 1 and all(isinstance(text, str) for text in turns):
        heads = [_SPEAKER_PATTERN.match(text) for text in turns]
        names = set()
        for head in heads:
            if head is not None:
                names.add(head[1])

        if None not in heads and 1 < len(names) <= MAX_SPEAKERS_OF_ONE_KEY_TURNS:
            rows = []
            for text in turns:
                name, _, words = text.partition(":")
                rows.append({"role": name.strip(), "content": words.strip()})

            return rows

    # plain texts, of which the two sides say one each in turn
    if len(turns) > 1 and _are_alternating_texts(turns):
        rows = []
        for number, text in enumerate(turns):
            rows.append({"role": SPEAKER_NAMES_OF_ALTERNATING_TEXTS[number % 2], "content": text})

        return rows

    return value


def _are_rows_of_cells(turns: list[Any]) -> bool:
    """Return whether turns are lists of as many cells each: pairs of texts, or also times and numbers."""
    if not turns or not all(isinstance(turn, list) for turn in turns):
        return False

    sizes = {len(turn) for turn in turns}
    cells = []
    for turn in turns:
        cells.extend(turn)

    if sizes == {2}:
        return all(isinstance(cell, str | None) for cell in cells)
    return len(sizes) == 1 and sizes <= {3, 4, 5} and all(map(_is_turn_cell, cells))


def _is_turn_cell(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _are_alternating_texts(texts: list[Any]) -> bool:
    """Return whether a list may be what two sides said in turn: texts, of which most are several words."""
    if not all(isinstance(text, str) for text in texts):
        return False

    several = sum(len(text.split()) >= MIN_SPOKEN_WORDS for text in texts)
    return several >= 0.5 * len(texts)
