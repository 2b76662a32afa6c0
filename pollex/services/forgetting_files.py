"""Conversations taken out of files of every kind that pollex writes: pages, rows, rubric sets, tables, packed files."""

import codecs
import csv
import html
import io
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from pollex.errors import PollexError
from pollex.outputs import write_file
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics
from pollex.services.forgetting_bounds import (
    PARQUET_MAGIC,
    FileNotSearched,
    explain_unsearched_file,
    require_size,
    unpack_file,
    yield_within_time,
)
from pollex.services.forgetting_toml import remove_from_toml
from pollex.store.folder import make_utf8_path
from pollex.store.forgetting import CONVERSATION_ID_FIELDS, ForgettingTarget
from pollex.store.fragments import REPLACEMENT_OF_FORGOTTEN_TEXT

RUBRIC_SET_MARK = b'"rubrics_digest"'
"""What every rubric set has in it."""

ENCODINGS_BY_BYTE_ORDER_MARK = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""How texts begin that say their encoding."""
BYTE_ORDER_MARK = "\ufeff"
"""That mark as a character."""

_BLOCK_ELEMENT_NAMES = (
    "html|head|body|title|main|header|footer|nav|aside|section|article|div|p|ul|ol|li|dl|dt|dd|table|thead|tbody|tr|th|td"
    "|blockquote|figure|figcaption|details|summary|h[1-6]|pre"
)
_BLOCK_TAG_PATTERN = re.compile(rf"</?(?:{_BLOCK_ELEMENT_NAMES})\b[^<>]*>", re.IGNORECASE)
_PAGE_PART_PATTERN = re.compile(
    r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>",
    re.DOTALL | re.IGNORECASE,
)
_SCRIPT_END_PATTERN = re.compile(r"</(?:script|style)>", re.IGNORECASE)
_TAG_PATTERN = re.compile(r"<[^>]*>")
_ATTRIBUTE_PATTERN = re.compile(r'="([^"]*)"')
_ROW_PATTERN = re.compile(
    r"<(tr|li)\b[^<>]*>(?:(?!<\1\b).)*?</\1>",
    re.DOTALL | re.IGNORECASE,
)


def file_quotes_target(path: Path, target: ForgettingTarget) -> bool:
    """Tell whether a file quotes or names one of the conversations.

    Raises:
        NotLookedInto: That can't be told.
    """
    return read_without_target(path, target) is not None


def remove_forgotten_quotes(path: Path, target: ForgettingTarget) -> bool:
    """Take the conversations out of a file; return whether nothing is left in it.

    Raises:
        NotLookedInto: That can't be told.
    """
    cleaned = read_without_target(path, target)
    if cleaned is not None:
        write_file(path, cleaned, named=False)
    return cleaned is None or not file_quotes_target(path, target)


def read_without_target(path: Path, target: ForgettingTarget) -> bytes | None:
    """Return what a file holds without the conversations; None if it doesn't have them.

    Raises:
        NotLookedInto: It is too large, too deep or damaged.
    """
    try:
        unpacked = unpack_file(path)
        # rows of Parquet go by a query; everything else is text
        if unpacked.content.startswith(PARQUET_MAGIC):
            return _remove_from_table(path, target)
        cleaned = _remove_from_content(unpacked.content, unpacked.ending, target)
        if cleaned is None:
            return None
        return unpacked.pack(cleaned)
    except Exception as failure:  # a stranger's file may do anything to who reads it
        raise FileNotSearched(explain_unsearched_file(failure), where=str(path)) from failure


def _remove_from_content(content: bytes, ending: str, target: ForgettingTarget) -> bytes | None:
    """Return text without the conversations, by its kind; None if it doesn't have them."""
    # UTF-8 unless the file begins with the mark of another encoding
    encoding = next(
        (name for mark, name in ENCODINGS_BY_BYTE_ORDER_MARK.items() if content.startswith(mark)),
        "utf-8",
    )
    whole = content.decode(encoding, "replace")
    text = whole.removeprefix(BYTE_ORDER_MARK)
    # an unknown kind of file is cleaned line by line
    clean = _CLEANERS_BY_ENDING.get(ending, _remove_from_lines)
    cleaned = clean(text, target)
    if cleaned == text:
        return None
    # what is no text would be replaced in rows of others, too
    if whole.encode(encoding, "replace") != content:
        raise FileNotSearched("it quotes them, and isn't UTF-8 in all places: edit it")
    # the mark that was at the beginning stays there
    return f"{BYTE_ORDER_MARK * (len(whole) - len(text))}{cleaned}".encode(encoding)


def _remove_from_json(text: str, target: ForgettingTarget) -> str:
    try:
        # what only looks like JSON is cleaned as lines
        value = json.loads(text)
    except ValueError:
        return _remove_from_lines(text, target)

    cleaned = target.cleaned(value)
    if cleaned == value:
        return text

    # it is written anew as a whole, so that nothing else may change by that
    require_exact(text)
    return json.dumps(_renew_digest(cleaned), ensure_ascii=False, indent=1) + "\n"


def require_exact(text: str) -> None:
    """Refuse JSON that would say something else once it is read and written: in what stands beside a quote.

    Raises:
        NotLookedInto: A number would be rounded, or a key that stands twice would be lost.
    """

    # read as a float and written again, a number must be the same
    def check_number(digits: str) -> float:
        number = float(digits)
        if Decimal(digits) != Decimal(repr(number)):
            raise FileNotSearched("it quotes them beside numbers that would be rounded: edit it")
        return number

    def check_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise FileNotSearched("it quotes them beside a key that stands twice: edit it")
        return dict(pairs)

    json.loads(text, parse_float=check_number, object_pairs_hook=check_keys)


def _remove_from_toml(text: str, target: ForgettingTarget) -> str:
    """Return TOML without the conversations; where that can't be, as it was, and it still quotes them."""
    # escapes could hide a quote
    if not target.traces.within(_unescape_text(text)):
        return text

    cleaned = remove_from_toml(text, target)
    if cleaned is None:
        raise FileNotSearched("it quotes them where nothing can be taken out: edit it")
    return cleaned


def _remove_from_json_lines(text: str, target: ForgettingTarget) -> str:
    lines = yield_within_time(text.splitlines(keepends=True))
    return "".join(_remove_from_json_line(line, target) for line in lines)


def _remove_from_json_line(line: str, target: ForgettingTarget) -> str:
    """Return a line of JSON without the conversations; nothing of one that is of one of them."""
    try:
        row = json.loads(line)
    except ValueError:
        # a broken line is masked as text
        return target.masked(line)

    if isinstance(row, dict) and target.is_about(row):
        return ""

    cleaned = target.cleaned(row)
    if cleaned == row:
        return line

    # the ending of the line stays as it was
    require_exact(line)
    return json.dumps(cleaned, ensure_ascii=False) + line[len(line.rstrip("\r\n")) :]


def _remove_from_csv(text: str, target: ForgettingTarget) -> str:
    """Return a table of text without the rows of the conversations, and without quotes in others."""
    try:
        records = list(yield_within_time(_iterate_csv_records(text)))
    except (ValueError, csv.Error):
        return _remove_from_lines(text, target)

    if not records:
        return text

    # the header says in which cells ids stand
    (names, header), *rows = records
    about = []
    for place, name in enumerate(names):
        if name in CONVERSATION_ID_FIELDS:
            about.append(place)

    cleaned = [header]
    for cells, record in yield_within_time(rows):
        ids = set()
        for place in about:
            if place < len(cells):
                # an apostrophe before a cell keeps spreadsheets from taking it for a formula
                ids.add(cells[place].lstrip("'"))

        if not ids & target.ids:
            cleaned.append(_remove_from_record(cells, record, target))

    return "".join(cleaned)


def _iterate_csv_records(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the cells of each record of a table, and its text as it stands there."""
    # lines of the record at hand, as they were written
    lines: list[str] = []

    def read_lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            lines.append(line)
            yield line

    for cells in csv.reader(read_lines()):
        yield cells, "".join(lines)
        lines.clear()


def _remove_from_record(cells: list[str], record: str, target: ForgettingTarget) -> str:
    """Return a record without quotes; one that has none is left as it stands."""
    masked = [target.masked(cell) for cell in cells]
    if masked == cells:
        return record

    # the record keeps its own line ending
    written = io.StringIO(newline="")
    ending = record[len(record.rstrip("\r\n")) :]
    csv.writer(written, lineterminator=ending).writerow(masked)

    return written.getvalue()


def _remove_from_lines(text: str, target: ForgettingTarget) -> str:
    """Return a text whose lines are masked, and then what runs over several lines."""
    if not target.traces.within(_unescape_text(text)):
        return text

    lines = yield_within_time(text.splitlines(keepends=True))
    return target.traces.masked("".join(_remove_from_line(line, target) for line in lines))


def _remove_from_line(line: str, target: ForgettingTarget) -> str:
    """Return a line without quotes, its end as it was; one that quotes in escapes of JSON is left empty."""
    content = line.rstrip("\r\n")
    masked = target.traces.masked(content)
    # a quote in escapes can't be masked in part: the whole line goes
    if target.traces.within(_unescape_text(masked)):
        masked = REPLACEMENT_OF_FORGOTTEN_TEXT

    return masked + line[len(content) :]


def _unescape_text(text: str) -> str:
    """Return a text with escapes of JSON and Python as the characters that they stand for."""
    # `\uXXXX` is one character; of other escapes it is enough that they part words
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|.)",
        lambda match: chr(int(match[1], 16)) if match[1] else " ",
        text,
    )


def _remove_from_page(page: str, target: ForgettingTarget) -> str:
    """Return a page without the conversations.

    Rows that name one go; then runs of text and attributes are masked, and whole blocks where tags
    lie in a quote.
    """
    # a page has ids in escaped form
    ids = [html.escape(id_) for id_ in target.ids]
    page = _ROW_PATTERN.sub(
        lambda row: "" if any(_names_id_in_row(row[0], id_) for id_ in ids) else row[0],
        page,
    )
    # what stands between tags is masked apart from the tags
    page_parts = []
    for part, is_tag in _iterate_page_parts(page):
        page_parts.append(
            _remove_from_tag(part, target) if is_tag else _remove_from_text_run(part, target)
        )

    page = "".join(page_parts)
    # a quote that runs over tags inside a block takes the whole block with it
    parts = re.split(f"({_BLOCK_TAG_PATTERN.pattern})", page, flags=_BLOCK_TAG_PATTERN.flags)

    cleaned_parts = []
    for place, part in enumerate(parts):
        cleaned_parts.append(
            REPLACEMENT_OF_FORGOTTEN_TEXT
            if place % 2 == 0 and target.traces.within(_extract_page_text(part))
            else part
        )

    return "".join(cleaned_parts)


def _iterate_page_parts(page: str) -> Iterator[tuple[str, bool]]:
    """Yield tags, scripts and what stands between them, each with whether it is a tag or script.

    The time grows with the length alone: a script is looked for where one ends later, and a tag
    where a `>` follows.
    """
    # scripts and styles up to the last one that ends; from there on tags only
    scripts_end = max((end.end() for end in _SCRIPT_END_PATTERN.finditer(page)), default=0)
    tags_end = max(scripts_end, page.rfind(">") + 1)
    for pattern, text in (
        (_PAGE_PART_PATTERN, page[:scripts_end]),
        (_TAG_PATTERN, page[scripts_end:tags_end]),
    ):
        position = 0
        for tag in pattern.finditer(text):
            yield text[position : tag.start()], False
            yield tag[0], True
            position = tag.end()

        yield text[position:], False

    yield page[tags_end:], False


def _names_id_in_row(row: str, id_: str) -> bool:
    """Tell whether a row of a table or list has an id as one of its cells or links."""
    return re.search(rf"[>/=\"]{re.escape(id_)}[<\"&#?]", row) is not None


def _remove_from_text_run(text: str, target: ForgettingTarget) -> str:
    plain = html.unescape(text)
    masked = target.masked(plain)
    if masked == plain:
        return text
    return html.escape(masked)


def _remove_from_tag(tag: str, target: ForgettingTarget) -> str:
    """Return a tag whose attributes are masked; a script that quotes keeps nothing but what surrounds the quote."""
    # scripts and comments are lines of text, and have no attributes to mask
    if tag[:7].lower().startswith(("<script", "<style", "<!", "<?")):
        return _remove_from_lines(tag, target)
    return _ATTRIBUTE_PATTERN.sub(
        lambda match: f'="{_remove_from_text_run(match[1], target)}"', tag
    )


def _extract_page_text(page: str) -> str:
    """Return the text that a page of HTML shows, comments included."""
    # what a comment says is said, too
    parts = (
        " " if is_tag and part[1] != "!" else part for part, is_tag in _iterate_page_parts(page)
    )
    return html.unescape("".join(parts))


def _renew_digest(value: object) -> object:
    """Return a rubric set with the digest of its rubrics as they are now: quotes are a part of it."""
    if not isinstance(value, dict) or "rubrics_digest" not in value:
        return value

    try:
        before = RubricSet.parse(value)
    except PollexError:  # it was no sound set before, either
        return value

    return before.model_copy(update={"rubrics_digest": hash_rubrics(before.rubrics)}).model_dump(
        mode="json"
    )


_CLEANERS_BY_ENDING = {
    ".json": _remove_from_json,
    ".jsonl": _remove_from_json_lines,
    ".csv": _remove_from_csv,
    ".html": _remove_from_page,
    ".toml": _remove_from_toml,
    ".xml": _remove_from_page,
}


def _remove_from_table(path: Path, target: ForgettingTarget) -> bytes | None:
    """Return a Parquet file without the conversations' rows, and without quotes in others; None if it has neither.

    What isn't changed is copied by DuckDB as it is, whatever its type.
    """
    # only where files of columns lie beside the store
    import duckdb
    from fsspec.implementations.memory import MemoryFileSystem

    # all files in memory have one name space: a random name meets no other
    memory = MemoryFileSystem()
    name = secrets.token_hex(8)
    # in memory: nothing is put aside in the current folder
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": "1GB",
        "temp_directory": "",
    }
    with duckdb.connect(config=config) as database:
        database.register_filesystem(memory)
        # `hive_partitioning` would make columns of folder names
        source = f"read_parquet(?, hive_partitioning = false, {ROW_NUMBER_COLUMN} = true)"
        place = str(make_utf8_path(path))
        described = database.execute(f"DESCRIBE SELECT * FROM {source}", [place]).fetchall()  # noqa: S608
        types = {}
        for row in described:
            if row[0] != ROW_NUMBER_COLUMN:
                types[row[0]] = row[1]

        rows = database.execute(f"SELECT to_json(r)::VARCHAR FROM {source} AS r", [place])  # noqa: S608

        # what changes goes to JSON lines in memory, with the number of its row
        try:
            changed: dict[str, int] = {}
            with memory.open(f"/{name}.jsonl", "wb") as lines:
                for line in yield_within_time(_iterate_lines(rows)):
                    change = _find_change_of_row(json.loads(line), changed, target)
                    if change is not None:
                        lines.write(f"{json.dumps(change)}\n".encode())
                    # changes, too, stay within the bounds of a file
                    require_size(lines.tell(), ".parquet")

                is_changed = lines.tell() > 0

            if not is_changed:
                return None
            # rows that go and values that change are joined to the file by the number of the row
            query = _build_changes_query(source, types, changed)
            copy = f"COPY ({query}) TO 'memory://{name}.parquet' (FORMAT parquet)"
            database.execute(copy, [place, f"memory://{name}.jsonl"])
            return bytes(memory.cat_file(f"/{name}.parquet"))
        finally:
            for ending in ("jsonl", "parquet"):
                if memory.exists(f"/{name}.{ending}"):
                    memory.rm_file(f"/{name}.{ending}")


ROW_NUMBER_COLUMN = "file_row_number"
"""What DuckDB calls the number of a row in its file."""
PLAIN_DUCKDB_TYPES = {"VARCHAR", "JSON", "STRUCT", "MAP", "BOOLEAN", "DOUBLE"}
PLAIN_DUCKDB_TYPES |= {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
PLAIN_DUCKDB_TYPES |= {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
"""Those of columns that JSON gives back as they were."""
_DUCKDB_TYPE_PATTERN = re.compile(r'"(?:[^"]|"")*"|\b([A-Z][A-Z0-9_]*)\b')
"""A name in quotes, or a type."""


def _find_change_of_row(
    row: dict[str, object],
    changed: dict[str, int],
    target: ForgettingTarget,
) -> dict[str, object] | None:
    """Return what changes in a row, or that it goes, with its number; None where nothing does.

    Args:
        changed: Columns that change, by place; grows.
    """
    number = row.pop(ROW_NUMBER_COLUMN)
    if target.is_about(row):
        return {"row": number, "goes": True}

    cleaned = target.cleaned(row)
    # the name of a column holds for all rows, so that it can't be masked in one
    if cleaned.keys() != row.keys():
        raise FileNotSearched("a column is named as one of them: edit it")

    change: dict[str, object] = {}
    for column, value in cleaned.items():
        if [value] != [row[column]]:  # as lists: NaN, which is left as it is, has not changed
            place = changed.setdefault(column, len(changed))
            change |= {f"new{place}": value, f"is{place}": True}

    return {"row": number, **change} if change else None


def _build_changes_query(
    source: str,
    types: Mapping[str, str],
    changed: Mapping[str, int],
) -> str:
    """Return the query of the rows that stay, each with what changes in it.

    Raises:
        NotLookedInto: A column changes whose values JSON doesn't give back as they were.
    """
    # a table of changes: the number of the row, whether it goes, and new values by column
    read = {"row": "BIGINT", "goes": "BOOLEAN"}
    for column, place in changed.items():
        type_names = set()
        for type_ in _DUCKDB_TYPE_PATTERN.findall(types[column]):
            if type_:
                type_names.add(type_)

        others = type_names - PLAIN_DUCKDB_TYPES
        if others:
            raise FileNotSearched(f"a column of {', '.join(sorted(others))} quotes them: edit it")
        read |= {f"new{place}": types[column], f"is{place}": "BOOLEAN"}

    columns = ", ".join(f"{name}: {_quote_sql_text(type_)}" for name, type_ in read.items())
    values = []
    for column in types:
        name = '"' + column.replace('"', '""') + '"'
        value = f"r.{name}"
        # None may be the new value, so that a flag says whether there is one
        if column in changed:
            place = changed[column]
            value = f"CASE WHEN c.is{place} THEN c.new{place} ELSE {value} END"
        values.append(f"{value} AS {name}")

    return (
        f"SELECT {', '.join(values)} FROM {source} AS r"  # noqa: S608 - names in quotes, ours
        f" LEFT JOIN read_json(?, format = 'newline_delimited', columns = {{{columns}}}) AS c"
        f" ON c.row = r.{ROW_NUMBER_COLUMN} WHERE c.goes IS NOT TRUE ORDER BY r.{ROW_NUMBER_COLUMN}"
    )


def _iterate_lines(rows: Any) -> Iterator[str]:
    # few at a time: a row may be long
    while batch := rows.fetchmany(64):
        for (line,) in batch:
            yield f"{line}\n"


def _quote_sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
