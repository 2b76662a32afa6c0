"""Conversations taken out of files of every kind that pollex writes: pages, rows, rubric sets, tables, packed files."""

import csv
import html
import io
import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pollex.errors import PollexError
from pollex.outputs import write_whole
from pollex.rubrics.rubric_set import RubricSet, digest_of
from pollex.services.forgetting_bounds import (
    PARQUET,
    NotLookedInto,
    in_time,
    reason_not_looked_into,
    require_size,
    unpack_file,
)
from pollex.services.forgetting_toml import toml_without
from pollex.store.folder import path_in_text
from pollex.store.forgetting import ABOUT, ToForget
from pollex.store.fragments import FORGOTTEN

SET_FILE = b'"rubrics_digest"'
"""What every rubric set has in it."""

_BLOCKS = (
    "html|head|body|title|main|header|footer|nav|aside|section|article|div|p|ul|ol|li|dl|dt|dd|table|thead|tbody|tr|th|td"
    "|blockquote|figure|figcaption|details|summary|h[1-6]|pre"
)
_BLOCK = re.compile(rf"</?(?:{_BLOCKS})\b[^<>]*>", re.IGNORECASE)
_PART = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_PART_ENDS = re.compile(r"</(?:script|style)>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_ATTRIBUTE = re.compile(r'="([^"]*)"')
_ROW = re.compile(r"<(tr|li)\b[^<>]*>(?:(?!<\1\b).)*?</\1>", re.DOTALL | re.IGNORECASE)


def quotes(path: Path, target: ToForget) -> bool:
    """Tell whether a file quotes or names one of the conversations.

    Raises:
        NotLookedInto: That can't be told.
    """
    return without_them(path, target) is not None


def without_quotes(path: Path, target: ToForget) -> bool:
    """Take the conversations out of a file; return whether nothing is left in it.

    Raises:
        NotLookedInto: That can't be told.
    """
    cleaned = without_them(path, target)
    if cleaned is not None:
        write_whole(path, cleaned, named=False)
    return cleaned is None or not quotes(path, target)


def without_them(path: Path, target: ToForget) -> bytes | None:
    """Return what a file holds without the conversations; None if it doesn't have them.

    Raises:
        NotLookedInto: It is too large, too deep or damaged.
    """
    try:
        unpacked = unpack_file(path)
        if unpacked.content.startswith(PARQUET):
            return _table_without(path, target)
        cleaned = _content_without(unpacked.content, unpacked.ending, target)
        return None if cleaned is None else unpacked.pack(cleaned)
    except Exception as failure:  # a stranger's file may do anything to who reads it
        raise NotLookedInto(reason_not_looked_into(failure), where=str(path)) from failure


def _content_without(content: bytes, ending: str, target: ToForget) -> bytes | None:
    """Return text without the conversations, by its kind; None if it doesn't have them."""
    text = content.decode("utf-8", "replace")
    clean = _KINDS.get(ending, _lines_without)
    cleaned = clean(text, target)
    return None if cleaned == text else cleaned.encode()


def _json_without(text: str, target: ToForget) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return _lines_without(text, target)
    cleaned = target.cleaned(value)
    if cleaned == value:
        return text
    return json.dumps(_with_new_digest(cleaned), ensure_ascii=False, indent=1) + "\n"


def _toml_without(text: str, target: ToForget) -> str:
    """Return TOML without the conversations; where that can't be, as it was, and it still quotes them."""
    if not target.traces.within(_unescaped(text)):
        return text
    cleaned = toml_without(text, target)
    if cleaned is None:
        raise NotLookedInto("it quotes them where nothing can be taken out: edit it")
    return cleaned


def _json_lines_without(text: str, target: ToForget) -> str:
    lines = in_time(text.splitlines(keepends=True))
    return "".join(_json_line_without(line, target) for line in lines)


def _json_line_without(line: str, target: ToForget) -> str:
    """Return a line of JSON without the conversations; nothing of one that is of one of them."""
    try:
        row = json.loads(line)
    except ValueError:
        return target.masked(line)
    if isinstance(row, dict) and target.is_about(row):
        return ""
    cleaned = target.cleaned(row)
    return line if cleaned == row else json.dumps(cleaned, ensure_ascii=False) + "\n"


def _csv_without(text: str, target: ToForget) -> str:
    """Return a table of text without the rows of the conversations, and without quotes in others."""
    try:
        header, *rows = csv.reader(io.StringIO(text, newline=""))
    except (ValueError, csv.Error):
        return _lines_without(text, target)
    about = [place for place, name in enumerate(header) if name in ABOUT]
    others = [
        row
        for row in in_time(rows)
        if not any(row[place].lstrip("'") in target.ids for place in about if place < len(row))
    ]
    masked = [[target.masked(cell) for cell in row] for row in in_time(others)]
    if len(masked) == len(rows) and masked == others:
        return text
    written = io.StringIO(newline="")
    csv.writer(written).writerows([header, *masked])
    return written.getvalue()


def _lines_without(text: str, target: ToForget) -> str:
    """Return a text whose lines are masked, and then what runs over several lines."""
    if not target.traces.within(_unescaped(text)):
        return text
    lines = in_time(text.splitlines(keepends=True))
    return target.traces.masked("".join(_line_without(line, target) for line in lines))


def _line_without(line: str, target: ToForget) -> str:
    """Return a line without quotes, its end as it was; one that quotes in escapes of JSON is left empty."""
    content = line.rstrip("\r\n")
    masked = target.traces.masked(content)
    if target.traces.within(_unescaped(masked)):
        masked = FORGOTTEN
    return masked + line[len(content) :]


def _unescaped(text: str) -> str:
    """Return a text with escapes of JSON and Python as the characters that they stand for."""
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|.)",
        lambda match: chr(int(match[1], 16)) if match[1] else " ",
        text,
    )


def _page_without(page: str, target: ToForget) -> str:
    """Return a page without the conversations.

    Rows that name one go; then runs of text and attributes are masked, and whole blocks where tags
    lie in a quote.
    """
    ids = [html.escape(id_) for id_ in target.ids]
    page = _ROW.sub(lambda row: "" if any(_names(row[0], id_) for id_ in ids) else row[0], page)
    page = "".join(
        _tag_without(part, target) if is_tag else _run_without(part, target)
        for part, is_tag in _parts_of_page(page)
    )
    parts = re.split(f"({_BLOCK.pattern})", page, flags=_BLOCK.flags)
    return "".join(
        FORGOTTEN if place % 2 == 0 and target.traces.within(_said(part)) else part
        for place, part in enumerate(parts)
    )


def _parts_of_page(page: str) -> Iterator[tuple[str, bool]]:
    """Yield tags, scripts and what stands between them, each with whether it is a tag or script.

    The time grows with the length alone: a script is looked for where one ends later, and a tag
    where a `>` follows.
    """
    scripts_end = max((end.end() for end in _PART_ENDS.finditer(page)), default=0)
    tags_end = max(scripts_end, page.rfind(">") + 1)
    for pattern, text in (
        (_PART, page[:scripts_end]),
        (_TAG, page[scripts_end:tags_end]),
    ):
        position = 0
        for tag in pattern.finditer(text):
            yield text[position : tag.start()], False
            yield tag[0], True
            position = tag.end()
        yield text[position:], False
    yield page[tags_end:], False


def _names(row: str, id_: str) -> bool:
    """Tell whether a row of a table or list has an id as one of its cells or links."""
    return re.search(rf"[>/=\"]{re.escape(id_)}[<\"&#?]", row) is not None


def _run_without(text: str, target: ToForget) -> str:
    plain = html.unescape(text)
    masked = target.masked(plain)
    return text if masked == plain else html.escape(masked)


def _tag_without(tag: str, target: ToForget) -> str:
    """Return a tag whose attributes are masked; a script that quotes keeps nothing but what surrounds the quote."""
    if tag[:7].lower().startswith(("<script", "<style", "<!", "<?")):
        return _lines_without(tag, target)
    return _ATTRIBUTE.sub(lambda match: f'="{_run_without(match[1], target)}"', tag)


def _said(page: str) -> str:
    # what a comment says is said, too
    parts = (" " if is_tag and part[1] != "!" else part for part, is_tag in _parts_of_page(page))
    return html.unescape("".join(parts))


def _with_new_digest(value: Any) -> Any:
    """Return a rubric set with the digest of its rubrics as they are now: quotes are a part of it."""
    if not isinstance(value, dict) or "rubrics_digest" not in value:
        return value
    try:
        before = RubricSet.parse(value)
    except PollexError:  # it was no sound set before, either
        return value
    return before.model_copy(update={"rubrics_digest": digest_of(before.rubrics)}).model_dump(
        mode="json"
    )


_KINDS = {
    ".json": _json_without,
    ".jsonl": _json_lines_without,
    ".csv": _csv_without,
    ".html": _page_without,
    ".toml": _toml_without,
    ".xml": _page_without,
}


def _table_without(path: Path, target: ToForget) -> bytes | None:
    """Return a Parquet file without the conversations' rows, and without quotes in others; None if it has neither."""
    # only where files of columns lie beside the store
    import duckdb
    from fsspec.implementations.memory import MemoryFileSystem

    memory = MemoryFileSystem()
    name = secrets.token_hex(8)
    with duckdb.connect(config={"threads": 1, "memory_limit": "1GB"}) as database:
        database.register_filesystem(memory)
        source = "read_parquet(?, hive_partitioning = false)"
        place = str(path_in_text(path))
        described = database.execute(f"DESCRIBE SELECT * FROM {source}", [place]).fetchall()  # noqa: S608
        types = {row[0]: row[1] for row in described}
        rows = database.execute(f"SELECT to_json(r)::VARCHAR FROM {source} AS r", [place])  # noqa: S608
        changed = False

        # Rows go to JSON lines in memory and back, with the types that the columns have.
        try:
            with memory.open(f"/{name}.jsonl", "wb") as lines:
                for line in in_time(_lines_of(rows)):
                    cleaned = _json_line_without(line, target)
                    changed |= cleaned != line
                    lines.write(cleaned.encode("utf-8", "replace"))
                    require_size(lines.tell(), ".parquet")
            if not changed:
                return None
            columns = ", ".join(
                f"{_quoted(column)}: {_quoted(type_)}" for column, type_ in types.items()
            )
            read = f"read_json(?, format = 'newline_delimited', columns = {{{columns}}})"
            copy = f"COPY (SELECT * FROM {read}) TO 'memory://{name}.parquet' (FORMAT parquet)"  # noqa: S608
            database.execute(copy, [f"memory://{name}.jsonl"])
            return bytes(memory.cat_file(f"/{name}.parquet"))
        finally:
            for ending in ("jsonl", "parquet"):
                if memory.exists(f"/{name}.{ending}"):
                    memory.rm_file(f"/{name}.{ending}")


def _lines_of(rows: Any) -> Iterator[str]:
    # few at a time: a row may be long
    while batch := rows.fetchmany(64):
        yield from (f"{line}\n" for (line,) in batch)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
