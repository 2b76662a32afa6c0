"""Untrusted text on a terminal."""

import errno
import io
import json
import math
import os
import re
import stat
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from pathlib import Path
from typing import Any

JsonObject = Mapping[str, Any]
"""An object of JSON as it is read: its values are texts, numbers, lists, objects and so on."""
JsonDict = dict[str, Any]
"""One that is built, or changed."""

NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
"""English words of numbers, each at its own place."""

LINE_BREAKS = "\n\t"
_UNSEEN_CATEGORIES = frozenset(["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])
"""Unicode categories that are controls, invisible, or reorder what stands around them."""
_BLANK_CATEGORIES = frozenset(["Cc", "Cf", "Cs", "Cn", "Zl", "Zp", "Zs", "Mn"])
_BLANK_CHARACTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that are drawn as nothing: fillers of Hangul, and Braille without a dot."""


def escape_controls(text: str, limit: int | None = None, *, keep_lines: bool = False) -> str:
    """Escape control, bidirectional and zero-width characters visibly, such as ESC.

    Args:
        limit: Characters of the result; a longer one ends in `…`.
        keep_lines: Leaves line breaks and tabs as they are.
    """
    line_breaks = LINE_BREAKS if keep_lines else ""
    # An escape is longer than what it stands for, so more than `limit` characters are never needed.
    head = text if limit is None else text[: limit + 1]
    if head.isprintable():
        shown = head
    else:
        shown = "".join(c if c in line_breaks else _escape_character(c) for c in head)

    if limit is not None and len(shown) > limit:
        return shown[: max(limit - 1, 0)] + "…" * (limit > 0)
    return shown


_MESSAGE_SYNTAX = re.compile(r"→|: |[\x00-\x1f\x7f\x85\u2028\u2029]")


def is_visible(text: str) -> bool:
    """Tell whether a text has a character that a reader sees: no space, control, joiner or mark of format."""
    return any(
        unicodedata.category(letter) not in _BLANK_CATEGORIES and letter not in _BLANK_CHARACTERS
        for letter in text
    )


def quote_unclear_name(name: str) -> str:
    """Return a file name or id for a message, quoted if it could be misread."""
    if _MESSAGE_SYNTAX.search(name):
        return repr(name)
    return name


def _escape_character(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN_CATEGORIES:
        return character

    # line breaks by their letters, others by their number
    code = ord(character)
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


SURROGATE_PATTERN = re.compile("[\ud800-\udfff]")


def replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates by U+FFFD in a value and everything in it."""
    if isinstance(value, str):
        # a check that is quick, and true of most texts
        if value.isascii():
            return value
        return SURROGATE_PATTERN.sub("\ufffd", value)
    if isinstance(value, dict):
        return {
            replace_surrogates(name): replace_surrogates(inner) for name, inner in value.items()
        }
    if isinstance(value, list):
        return [replace_surrogates(inner) for inner in value]
    return value


_NAME_WORD_PATTERN = r"[\w.,:;/@+()=~#&|*!?\[\]-]+"
_NAME_PATTERN = re.compile(f"{_NAME_WORD_PATTERN}(?: {_NAME_WORD_PATTERN})*")
_MAX_NAME_CHARACTERS = 300
NAME_HINT = "use letters, digits and marks, as in gpt-5, learn-1 or org/model:free; no quotes, braces or line breaks"


def replace_nan_by_none(value: object) -> Any:
    """Return a value with None for each number that JSON doesn't have: what was paid for is written all the same."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: replace_nan_by_none(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nan_by_none(inner) for inner in value]
    return value


def is_valid_name(name: str) -> bool:
    """Return whether a text can be the name of a model, a run or a rubric, in our files and in other tools'."""
    return len(name) <= _MAX_NAME_CHARACTERS and bool(_NAME_PATTERN.fullmatch(name))


MAX_FILE_BYTES = 256 << 20
"""Bytes of a file that is read whole: settings, prompts, rubrics, answers of people."""


def read_file_bytes(path: str | Path, largest: int = MAX_FILE_BYTES) -> bytes:
    """Return what a file of the user holds, which is read whole.

    Args:
        largest: Bytes that it may have.

    Raises:
        OSError: It can't be read, never ends (a pipe, a device), or is larger.
    """
    # a pipe would wait for who writes into it
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(opened, "rb") as file:
        about = os.fstat(opened)
        # in these folders files look regular, and may never end
        if not stat.S_ISREG(about.st_mode) or str(Path(path).resolve()).startswith(
            ("/dev/", "/proc/", "/sys/")
        ):
            raise OSError(errno.EINVAL, "a pipe or a device, and no file")

        content = file.read(largest + 1)

    # one byte beyond the limit was asked for
    if len(content) > largest:
        raise OSError(errno.EFBIG, f"larger than {largest >> 20} MB")
    return content


def read_file_text(path: str | Path, largest: int = MAX_FILE_BYTES) -> str:
    """Return the text of such a file, with Python's line ends. Raises as `read_file_bytes`, or UnicodeError."""
    # without a byte order mark, and with \n at the ends of lines
    return io.TextIOWrapper(io.BytesIO(read_file_bytes(path, largest)), "utf-8-sig").read()


def is_unicode_path(name: str | Path) -> bool:
    """Return whether a file's name is valid text, as DuckDB needs.

    Old names may hold bytes that are not UTF-8.
    """
    return SURROGATE_PATTERN.search(str(name)) is None


def format_count(n: int, singular: str, more: str = "") -> str:
    """Return a number with its noun: `1 row is`, `2 rows are`.

    Args:
        one: Behind a 1.
        more: Behind every other number; `one` with an s when left out.
    """
    return f"{n} {singular if n == 1 else more or singular + 's'}"


def round_estimate(n: int) -> int:
    """Round an estimated count to two significant digits: 30,155 to 30,000."""
    return int(float(f"{n:.1e}"))


_BYTES_BY_UNIT = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}


def parse_size(text: str | int) -> int:
    """Return the bytes of a size such as `5GB`, `500 MB` or `1000`.

    Raises:
        ValueError: It is none.
    """
    written = re.fullmatch(
        r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*",
        str(text),
        re.IGNORECASE,
    )
    if written:
        size = float(written[1]) * _BYTES_BY_UNIT[written[2].upper()]
    else:
        size = 0

    # 0 also stands for what is no size at all
    if not 1 <= size <= 10**15:
        raise ValueError(f"{str(text)!r:.40} is no size: write 5GB or 500MB")
    return int(size)


def format_size(size: int) -> str:
    """Return a size in words: `5 GB`, `1.2 MB`."""
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_:
            return f"{round(size / bytes_, 0 if size >= 10 * bytes_ else 1):g} {unit}"
    return f"{size} bytes"


MAX_JSON_DEPTH = 64


def parse_json(text: str) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: Not JSON, two equal keys in an object, or nested too deep.
    """
    try:
        value = _STRICT_DECODER.decode(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_JSON_DEPTH} levels") from None

    # so many brackets are rare, and only then is the depth measured
    if text.count("{") + text.count("[") > MAX_JSON_DEPTH and _is_nested_deeper(
        value, MAX_JSON_DEPTH
    ):
        raise ValueError(f"nested deeper than {MAX_JSON_DEPTH} levels")
    return value


def parse_toml(text: str) -> JsonDict:
    """Parse a TOML text; raise TOMLDecodeError, a ValueError, also for one that is nested too deep."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deep") from None


def make_object_of_unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object for `json.loads`; raise ValueError for duplicate keys."""
    fields = dict(pairs)
    # in the dictionary the later of two equal keys is left
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise ValueError(f"the key {twice[:40]!r} stands twice in one object")
    return fields


def parse_finite_number(digits: str) -> float:
    """Make a number for `json.loads`; raise ValueError for NaN and what is infinite."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits:.40} is no finite number")
    return number


_STRICT_DECODER = json.JSONDecoder(object_pairs_hook=make_object_of_unique_keys)


def _is_nested_deeper(value: object, levels: int) -> bool:
    """Return whether objects and lists are nested deeper than `levels`, without recursion."""
    # one level after another; what is left at the end lies deeper
    level = [value]
    for _ in range(levels):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in _list_inner_values(outer)
        ]

    return any(isinstance(inner, dict | list) for inner in level)


def _list_inner_values(outer: dict[str, object] | list[object]) -> Iterable[object]:
    if isinstance(outer, dict):
        return outer.values()
    return outer


DATA_STYLE = "data"
"""Style of a line that a program reads from standard output, as it is."""


@dataclass(frozen=True)
class TerminalLine:
    """A line for people.

    Attributes:
        style: How a terminal shows it: bold, dim, or in a color.
        limit: Characters that are shown.
        below: What is known of it, in a line of its own.
    """

    text: str
    style: str = ""
    limit: int | None = None
    below: str = ""


@dataclass(frozen=True)
class TerminalTable:
    """A table for people; a cell is empty where there is no value.

    Attributes:
        whole: Columns that stay whole on a narrow terminal.
    """

    columns: Sequence[str]
    rows: Iterable[Sequence[object]]
    whole: Sequence[int] = ()


@dataclass(frozen=True)
class NextCommand:
    """A command that goes on from here, with options by their names; a terminal spells it as one types it."""

    before: str
    verb: str
    sources: Sequence[str]
    options: Mapping[str, object]


TerminalLines = Iterator[str | TerminalLine | TerminalTable | NextCommand]
"""A result in words: what a terminal shows, in this order."""


def render_notes(notes: Iterable[object]) -> TerminalLines:
    """Yield notes, marked as such."""
    return (TerminalLine(f"Note: {note}", "yellow") for note in notes)


def render_first_lines(
    singular: str,
    more: str,
    lines: Sequence[str],
    most: int = 10,
) -> TerminalLines:
    """Yield a count with its noun, and the first lines; nothing where there are none."""
    if lines:
        yield TerminalLine(f"{format_count(len(lines), singular, more)}:", "yellow")

    for line in lines[:most]:
        yield f"  {line}"

    if len(lines) > most:
        yield f"  and {len(lines) - most} more"


def make_json_values(value: object) -> Any:
    """Return a value as JSON has it: what is made of fields by their names, a path as its text."""
    if value is None or isinstance(value, str | int | float):
        return value
    # what tells itself comes before what is known of its kind
    if callable(as_json := getattr(value, "as_json", None)):
        return as_json()
    if callable(dumped := getattr(value, "model_dump", None)):
        return dumped(mode="json")
    if is_dataclass(value):
        return {field.name: make_json_values(getattr(value, field.name)) for field in fields(value)}
    if callable(named := getattr(value, "_asdict", None)):
        return make_json_values(named())
    if isinstance(value, Mapping):
        return {name: make_json_values(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [make_json_values(inner) for inner in value]
    if isinstance(value, Path):
        return str(value)
    return value


def make_html_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
) -> str:
    """Return a small HTML table for notebooks; every value is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return (
        f"<p>{escape(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
