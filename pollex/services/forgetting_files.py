"""Conversations taken out of files of every kind that pollex writes: pages, rows, rubric sets, tables, packed files."""

import csv
import gzip
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
from pollex.store.folder import path_in_text
from pollex.store.forgetting import ABOUT, ToForget
from pollex.store.fragments import FORGOTTEN

GZIP = b"\x1f\x8b"
ZSTANDARD = b"\x28\xb5\x2f\xfd"
PARQUET = b"PAR1"
SET_FILE = b'"rubrics_digest"'
"""What every rubric set has in it."""

_BLOCKS = (
    "html|head|body|title|main|header|footer|nav|aside|section|article|div|p|ul|ol|li|dl|dt|dd|table|thead|tbody|tr|th|td"
    "|blockquote|figure|figcaption|details|summary|h[1-6]|pre"
)
_BLOCK = re.compile(rf"</?(?:{_BLOCKS})\b[^>]*>", re.IGNORECASE)
_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_ATTRIBUTE = re.compile(r'="([^"]*)"')
_ROW = re.compile(r"<(tr|li)\b[^>]*>(?:(?!<\1\b).)*?</\1>", re.DOTALL | re.IGNORECASE)


def quotes(path: Path, target: ToForget) -> bool:
    """Tell whether a file quotes or names one of the conversations."""
    return without_them(path, target) is not None


def without_quotes(path: Path, target: ToForget) -> bool:
    """Take the conversations out of a file; return whether nothing is left in it."""
    cleaned = without_them(path, target)
    if cleaned is not None:
        write_whole(path, cleaned)
    return not quotes(path, target)


def without_them(path: Path, target: ToForget) -> bytes | None:
    """Return what a file holds without the conversations; None if it doesn't have them."""
    content = path.read_bytes()
    if content.startswith(PARQUET):
        return _table_without(path, target)
    packed = next((pack for pack in _PACKERS if content.startswith(pack)), None)
    if packed is None:
        return _content_without(content, path.suffix, target)
    unpack, pack = _PACKERS[packed]()
    inner = _content_without(unpack(content), Path(path.stem).suffix, target)
    return None if inner is None else pack(inner)


def _gzip() -> tuple[Any, Any]:
    return gzip.decompress, gzip.compress


def _zstandard() -> tuple[Any, Any]:
    import zstandard  # few files are packed so

    return (
        lambda packed: zstandard.ZstdDecompressor().decompressobj().decompress(packed),
        zstandard.ZstdCompressor().compress,
    )


_PACKERS = {GZIP: _gzip, ZSTANDARD: _zstandard}


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


def _json_lines_without(text: str, target: ToForget) -> str:
    return "".join(_json_line_without(line, target) for line in text.splitlines(keepends=True))


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
    theirs = [
        row
        for row in rows
        if any(row[place].lstrip("'") in target.ids for place in about if place < len(row))
    ]
    left = [[target.masked(cell) for cell in row] for row in rows if row not in theirs]
    if len(left) == len(rows) and left == rows:
        return text
    written = io.StringIO(newline="")
    csv.writer(written).writerows([header, *left])
    return written.getvalue()


def _lines_without(text: str, target: ToForget) -> str:
    """Return a text whose lines are masked, and then what runs over several lines."""
    if not target.traces.within(_unescaped(text)):
        return text
    masked = "".join(_line_without(line, target) for line in text.splitlines(keepends=True))
    return target.traces.masked(masked)


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
    parts = re.split(f"({_TAG.pattern})", page, flags=_TAG.flags)
    page = "".join(
        _tag_without(part, target) if place % 2 else _run_without(part, target)
        for place, part in enumerate(parts)
    )
    parts = re.split(f"({_BLOCK.pattern})", page, flags=_BLOCK.flags)
    return "".join(
        FORGOTTEN if place % 2 == 0 and target.traces.within(_said(part)) else part
        for place, part in enumerate(parts)
    )


def _names(row: str, id_: str) -> bool:
    """Tell whether a row of a table or list has an id as one of its cells or links."""
    return re.search(rf"[>/=\"]{re.escape(id_)}[<\"&#?]", row) is not None


def _run_without(text: str, target: ToForget) -> str:
    plain = html.unescape(text)
    masked = target.masked(plain)
    return text if masked == plain else html.escape(masked)


def _tag_without(tag: str, target: ToForget) -> str:
    """Return a tag whose attributes are masked; a script that quotes keeps nothing but what surrounds the quote."""
    if tag.lower().startswith(("<script", "<style")):
        return _lines_without(tag, target)
    return _ATTRIBUTE.sub(lambda match: f'="{_run_without(match[1], target)}"', tag)


def _said(page: str) -> str:
    return html.unescape(_TAG.sub(" ", page))


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
    ".xml": _page_without,
}


def _table_without(path: Path, target: ToForget) -> bytes | None:
    """Return a Parquet file without the conversations' rows, and without quotes in others; None if it has neither."""
    import duckdb  # only where files of columns lie beside the store

    with duckdb.connect(config={"threads": 1}) as database:
        source = "read_parquet(?, hive_partitioning = false)"
        described = database.execute(
            f"DESCRIBE SELECT * FROM {source}",  # noqa: S608
            [str(path_in_text(path))],
        ).fetchall()
        types = {row[0]: row[1] for row in described}
        changed = False

        # Rows go to a file of JSON lines and back, with the types that the columns have.
        lines = path.with_name(f".{path.name}.lines")
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")  # as in `outputs`
        try:
            with lines.open("w", encoding="utf-8", errors="replace") as file:
                rows = database.execute(
                    f"SELECT to_json(r)::VARCHAR FROM {source} AS r",  # noqa: S608
                    [str(path_in_text(path))],
                )
                for line in _lines_of(rows):
                    rest = _json_line_without(line, target)
                    changed |= rest != line
                    file.write(rest)
            if not changed:
                return None
            columns = ", ".join(
                f"{_quoted(name)}: {_quoted(type_)}" for name, type_ in types.items()
            )
            read = f"read_json(?, format = 'newline_delimited', columns = {{{columns}}})"
            folder = path_in_text(path.parent)
            copy = f"COPY (SELECT * FROM {read}) TO {_quoted(str(folder / draft.name))} (FORMAT parquet)"  # noqa: S608
            database.execute(copy, [str(folder / lines.name)])
            return draft.read_bytes()
        finally:
            lines.unlink(missing_ok=True)
            draft.unlink(missing_ok=True)


def _lines_of(rows: Any) -> Iterator[str]:
    while batch := rows.fetchmany(1024):
        yield from (f"{line}\n" for (line,) in batch)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
