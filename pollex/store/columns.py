"""Conversations, texts, answers and scores as Parquet, queried by DuckDB.

A run has a folder, `runs/<run>`, with parts called `<table>-<first>-<last>.parquet`: one a batch
while the run goes on, put together when there are many and when it ends. A part whose numbers lie
within another's was put together into that one and counts no more, so a reader sees the same rows
before, while and after that happens. Texts lie in `texts`, one pile a run, and are kept once: by
the first run that brings them. Rows are in the order in which they were written, `seq` counts them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import duckdb
import numpy as np

from pollex.errors import PollexError
from pollex.store.folder import (
    make_full_disk_error,
    make_memory_error,
    make_private_folder,
    make_store_error,
    make_unwritable_error,
    make_utf8_path,
)
from pollex.store.tables import (
    AnswerRow,
    ColumnRow,
    ConversationRow,
    ScoreRow,
    TextRow,
    make_damage_error,
)

RUNS_FOLDER_NAME = "runs"
TEXTS_FOLDER_NAME = "texts"
EVERY_RUN_WILDCARD = "*"
"""In place of a run's id, which has no star."""

PARQUET_ROW_TYPES: tuple[type[ColumnRow], ...] = (TextRow, ConversationRow, AnswerRow, ScoreRow)
"""In the order in which a batch is written: whoever finds a score finds the answers, too."""

PARTS_MERGED_TOGETHER = 16
"""Parts of like size that are put together while a run goes on."""

ROWS_PER_ROW_GROUP = 16_384
"""Rows that DuckDB gathers before it writes them: it would take ten times as many, and their memory."""

LOCKED_DOWN_DUCKDB_SETTINGS = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "memory_limit": "512MB",
    "threads": "1",  # each more would hold groups of rows of its own
}

ColumnArrays = dict[str, "np.ndarray[Any, Any]"]


class RowBlock(NamedTuple):
    """Rows of one kind that a query gives from arrays.

    Attributes:
        tables: By the names that the query has for them.
        sql: Gives the columns of the kind, in the order of the rows.
        size: Bytes, roughly.
    """

    kind: type[ColumnRow]
    run: str
    tables: dict[str, ColumnArrays]
    sql: str
    size: int = 0


_PART_FILE_NAME_REGEX = re.compile(r"(.+)-(\d{6,})-(\d{6,})\.parquet")
_NO_DISK_SPACE_REGEX = re.compile(
    r"No space left|File too large|quota exceeded|not enough space|max_temp_directory",
    re.IGNORECASE,
)


class ColumnPart(NamedTuple):
    """One Parquet file: the batches from `first` to `last` of a pile."""

    pile: Path
    first: int
    last: int

    @property
    def path(self) -> Path:
        """Path of the part."""
        return self.pile.with_name(f"{self.pile.name}-{self.first:06}-{self.last:06}.parquet")


class Columns:
    """The Parquet files of a store's folder. Any thread may use them."""

    def __init__(self, folder: Path) -> None:
        self._folder = make_utf8_path(folder)
        self._opened: duckdb.DuckDBPyConnection | None = None

    def write(self, rows: RowBlock) -> None:
        """Write rows of a run as a new readable part."""
        # the next number of the pile; texts that the store has already are left out
        pile = self._pile(rows.kind.table, rows.run)
        parts = list_parts_of_pile(pile)
        number = parts[-1].last + 1 if parts else 1
        only_new = ""
        if rows.kind is TextRow and (known_texts := self._sources(TEXTS_FOLDER_NAME, rows.run)):
            only_new = f"WHERE text_hash NOT IN (SELECT text_hash FROM {known_texts})"

        sql = f"SELECT *, {number << 32} + row_number() OVER () AS seq FROM ({rows.sql}) {only_new}"
        self._copy(sql, [], ColumnPart(pile, number, number), rows.tables)
        parts = list_parts_of_pile(pile)
        # parts of like width are put together, so that there are few of any width
        width = 1
        while (
            len(alike := [part for part in parts if part.last - part.first + 1 == width])
            >= PARTS_MERGED_TOGETHER
        ):
            self._merge(alike)
            parts = list_parts_of_pile(pile)
            width = alike[-1].last - alike[0].first + 1

    def answers_for(
        self,
        run: str,
        of: str,
        only: Collection[str] | None,
    ) -> RowBlock | None:
        """Return the answers of another run as this one's; with `only`, a model's to these questions."""
        if not (source := self._sources(AnswerRow.table, of)):
            return None

        questions = ", ".join(map(_quote_sql_text, only or ()))
        if only is None:
            where = ""
        else:
            where = f"WHERE source <> 'built-in' AND question IN ({questions})"

        sql = f"SELECT * EXCLUDE (seq) REPLACE ({_quote_sql_text(run)} AS run) FROM {source} {where} ORDER BY seq"
        return RowBlock(AnswerRow, run, {}, sql)

    def put_together(self, run: str) -> None:
        """Make one part of all that a run has of each kind."""
        for kind in PARQUET_ROW_TYPES:
            if len(parts := list_parts_of_pile(self._pile(kind.table, run))) > 1:
                self._merge(parts)

    def ask(self, run: str, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, object]]:
        """Return what a query over a run's tables gives, a dict a row.

        Args:
            run: `EVERY_RUN_WILDCARD` for the tables of all runs together.
            sql: Names the tables `conversations`, `texts`, `answers`, `scores`; text goes into
                `parameters`.

        Raises:
            StoreDamaged: A part can't be read.
        """
        # a part may be put together with others while it is read: then once more
        for tried in range(5):
            tables = []
            for kind in PARQUET_ROW_TYPES:
                if re.search(rf"\b{kind.table}\b", sql):
                    tables.append(
                        f"{kind.table} AS (SELECT * FROM {self._sources(kind.table, run) or _make_empty_select(kind)})"
                    )

            try:
                with self._connection().cursor() as cursor:
                    cursor.execute(
                        f"WITH {', '.join(tables)} {sql}",
                        list(parameters),
                    )
                    names = [column[0] for column in cursor.description]
                    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            except duckdb.IOException as failure:  # a part was put together with others meanwhile
                if tried == 4 or (
                    "No files found" not in str(failure) and "No such file" not in str(failure)
                ):
                    raise self._error_of(failure) from failure
            except (
                duckdb.InvalidInputException
            ) as failure:  # also a ProgrammingError: a file without its end
                raise self._error_of(failure) from failure
            except (duckdb.ProgrammingError, duckdb.PermissionException) as failure:
                # the query is wrong, unless a part has other columns than were written
                if why := self._explain_foreign_parts(run):
                    raise make_damage_error(str(self._folder), why) from failure
                raise
            except duckdb.Error as failure:
                raise self._error_of(failure) from failure

        raise AssertionError("unreachable")

    def drop(self, part: ColumnPart, column: str, values: Sequence[str]) -> int:
        """Write a part anew without the rows that have one of the values; return how many went."""
        source = _make_select_of_parts([part])
        where = f'list_contains(?, "{column}")'
        with self._connection().cursor() as cursor:
            cursor.execute(
                f"SELECT count(*) FILTER ({where}), count(*) FROM {source}",
                [list(values)],
            )
            gone, rows = cursor.fetchall()[0]

        if gone == rows:
            part.path.unlink()
        elif gone:
            self._copy(
                f"SELECT * FROM {source} WHERE NOT {where} ORDER BY seq",
                [list(values)],
                part,
            )

        return int(gone)

    def close(self) -> None:
        """Let go of DuckDB."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _error_of(self, failure: duckdb.Error, written: Path | None = None) -> PollexError:
        """Return the error that says what happened: damage only where a part fails its check."""
        place = written or self._folder
        words = str(failure).splitlines()[0][:300]
        if _NO_DISK_SPACE_REGEX.search(str(failure)):
            return make_full_disk_error(place)
        if isinstance(failure, duckdb.OutOfMemoryException):
            return make_memory_error(place)
        if written is not None and "Permission denied" in words:
            return make_unwritable_error(written.parent)

        # neither room nor rights: a part may be damaged
        for folder in (
            self._folder / TEXTS_FOLDER_NAME,
            *(self._folder / RUNS_FOLDER_NAME).glob("*"),
        ):
            for part in list_parts_of_folder(folder):
                if why := explain_unreadable_part(part.path):
                    return make_damage_error(str(part.path), why)

        return make_store_error(place, words)

    def _explain_foreign_parts(self, run: str) -> str:
        """Say which part of a run's tables has columns that pollex doesn't write; empty where none has."""
        names = [run]
        if run == EVERY_RUN_WILDCARD:
            names = sorted(
                path.name for path in (self._folder / RUNS_FOLDER_NAME).glob("*") if path.is_dir()
            )

        for name in names:
            for kind in PARQUET_ROW_TYPES:
                for part in list_parts_of_pile(self._pile(kind.table, name)):
                    if explain_odd_columns(part):
                        return f"{part.path.name} of {name} has columns of something else"

        return ""

    def _pile(self, table: str, run: str) -> Path:
        if table == TEXTS_FOLDER_NAME:
            return self._folder / TEXTS_FOLDER_NAME / run
        return self._folder / RUNS_FOLDER_NAME / run / table

    def _sources(self, table: str, run: str) -> str:
        """Return the parts of a run's table as SQL; of texts, all runs'."""
        if table == TEXTS_FOLDER_NAME:
            parts = list_parts_of_folder(self._folder / TEXTS_FOLDER_NAME)
        elif run == EVERY_RUN_WILDCARD:
            run_folders = []
            for path in (self._folder / RUNS_FOLDER_NAME).glob("*"):
                if path.is_dir():
                    run_folders.append(path)
            folders = sorted(run_folders)
            parts = []
            for folder in folders:
                parts.extend(list_parts_of_pile(folder / table))
        else:
            parts = list_parts_of_pile(self._pile(table, run))

        return _make_select_of_parts(parts) if parts else ""

    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._opened is None:
            connection = duckdb.connect(":memory:", config=dict(LOCKED_DOWN_DUCKDB_SETTINGS))
            # Nothing that reaches it may make it read or write files elsewhere.
            connection.execute(f"SET allowed_directories = [{_quote_sql_text(str(self._folder))}]")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            self._opened = connection

        return self._opened

    def _merge(self, parts: Sequence[ColumnPart]) -> None:
        whole = ColumnPart(parts[0].pile, parts[0].first, parts[-1].last)
        self._copy(f"SELECT * FROM {_make_select_of_parts(parts)}", [], whole)
        for part in parts:
            part.path.unlink(missing_ok=True)

    def _copy(
        self,
        sql: str,
        parameters: Sequence[object],
        part: ColumnPart,
        tables: Mapping[str, ColumnArrays] = MappingProxyType({}),
    ) -> None:
        """Write the rows of a query as a part, completely or not at all; it may read what is `given`."""
        make_private_folder(part.path.parent)
        # a draft that takes the part's name when it is on the disk
        draft = part.path.with_name(f".{part.path.name}.draft")
        try:
            with self._connection().cursor() as cursor:
                for name, arrays in tables.items():
                    cursor.register(name, arrays)
                cursor.execute(
                    f"COPY ({sql}) TO {_quote_sql_text(str(draft))} "
                    f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS_PER_ROW_GROUP})",
                    parameters,
                )

            draft.chmod(0o600)
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(part.path)
        except duckdb.Error as failure:
            draft.unlink(missing_ok=True)
            raise self._error_of(failure, part.path) from failure


def make_row_block(
    kind: type[ColumnRow],
    run: str,
    rows: Sequence[tuple[object, ...]],
) -> RowBlock:
    """Return rows, a tuple of cells each, as arrays."""
    arrays, cells = make_column_arrays(kind.types(), rows)
    once = "DISTINCT ON (r.text_hash)" if kind is TextRow else ""
    return RowBlock(
        kind,
        run,
        {"given": arrays},
        f"SELECT {once} {', '.join(cells.values())} FROM given AS r",
    )


NUMPY_TYPE_BY_SQL_TYPE = {
    "DOUBLE": np.float64,
    "BOOLEAN": np.bool_,
    "INTEGER": np.int32,
    "BIGINT": np.int64,
}


def make_column_arrays(
    types: Mapping[str, str], rows: Sequence[tuple[object, ...]]
) -> tuple[ColumnArrays, dict[str, str]]:
    """Return rows as arrays that DuckDB reads as they are, and SQL by name that gives the columns of such a table `r`.

    Lists of numbers are spread over columns, with their length beside: DuckDB takes five times as
    long for objects.
    """
    arrays = dict[str, np.ndarray[Any, Any]]()
    sql = dict[str, str]()
    # column by column
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    for (name, type_), cells in zip(types.items(), columns, strict=True):
        if type_ in ("DOUBLE[]", "INTEGER[]"):
            sizes = []
            for cell in cells:
                sizes.append(-1 if cell is None else len(cell))
            spread = []
            for place in range(max(sizes, default=0)):
                spread.append(f"{name}_{place}")
            padded = []
            for cell, size in zip(cells, sizes, strict=True):
                padded.append((*(cell or ()), *(0,) * (len(spread) - max(size, 0))))
            arrays |= {f"{name}_n": np.array(sizes)} | dict(
                zip(spread, np.array(padded).T.copy(), strict=True)
            )
            listed = f"list_slice([{', '.join(f'r.{column}' for column in spread)}], 1, r.{name}_n)::{type_}"
            sql[name] = f'CASE WHEN r.{name}_n >= 0 THEN {listed} END AS "{name}"'
        else:
            kind = NUMPY_TYPE_BY_SQL_TYPE.get(type_)
            missing = [cell is None for cell in cells]
            filled = [0 if cell is None else cell for cell in cells] if kind else cells
            arrays[name] = np.ma.masked_array(
                np.array(filled, kind or object),
                missing,
            )
            quoted = name.replace('"', '""')
            sql[name] = f'r."{quoted}"::{type_} AS "{quoted}"'

    return arrays, sql


def list_parts_of_pile(pile: Path) -> list[ColumnPart]:
    """Return the parts of a pile that count, in order."""
    return [part for part in list_parts_of_folder(pile.parent) if part.pile == pile]


def list_parts_of_folder(folder: Path) -> list[ColumnPart]:
    """Return the parts in a folder that count, by pile, in order."""
    # read twice until two readings are alike
    names = sorted(_list_part_names(folder))
    before = None
    # a part that takes others' place while they are listed must not be missed
    while names != before:
        names, before = sorted(_list_part_names(folder)), names

    parts: list[ColumnPart] = []
    for part in sorted(
        (_parse_part_name(folder, name) for name in names), key=lambda p: (p.pile, p.first, -p.last)
    ):
        if not parts or parts[-1].pile != part.pile or part.last > parts[-1].last:
            parts.append(part)

    return parts


def list_abandoned_drafts(folder: Path) -> list[Path]:
    """Return what was being written to a folder when a command was killed."""
    drafts = folder.glob(".*.draft")
    return [
        path
        for path in drafts
        if _PART_FILE_NAME_REGEX.fullmatch(path.name[1:].removesuffix(".draft"))
    ]


def _list_part_names(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        for path in folder.iterdir():
            if path.name[0] != "." and _PART_FILE_NAME_REGEX.fullmatch(path.name):
                yield path.name


def _parse_part_name(folder: Path, name: str) -> ColumnPart:
    match = _PART_FILE_NAME_REGEX.fullmatch(name)
    assert match is not None, "only such names are listed"
    return ColumnPart(folder / match[1], int(match[2]), int(match[3]))


def _make_select_of_parts(parts: Sequence[ColumnPart]) -> str:
    # A run that began under an earlier pollex has parts without a column that came later.
    return f"read_parquet([{', '.join(_quote_sql_text(str(part.path)) for part in parts)}], union_by_name = true)"


def _make_empty_select(kind: type[ColumnRow]) -> str:
    columns = []
    for name, type_ in [*kind.types().items(), ("seq", "BIGINT")]:
        columns.append(f'NULL::{type_} AS "{name}"')
    return f"(SELECT {', '.join(columns)} WHERE false)"


def _quote_sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def explain_odd_columns(part: ColumnPart) -> str:
    """Return which column a part lacks, or has of another type; empty where it is a part of ours."""
    kinds = {kind.table: kind for kind in PARQUET_ROW_TYPES}
    kind = (
        kinds[TEXTS_FOLDER_NAME]
        if part.pile.parent.name == TEXTS_FOLDER_NAME
        else kinds.get(part.pile.name)
    )
    if kind is None:
        return ""

    sql = "DESCRIBE SELECT * FROM read_parquet(?)"
    with duckdb.connect(":memory:") as connection:
        path = str(make_utf8_path(Path(part.path)))
        stored = {name: type_ for name, type_, *_ in connection.execute(sql, [path]).fetchall()}

    types = kind.types()
    for field in fields(kind):
        # a part of an earlier pollex may lack what has a usual value
        if field.name not in stored and field.default is MISSING:
            return f"it has no column {field.name}"
        if field.name in stored and stored[field.name] != types[field.name]:
            return f"its column {field.name} is {stored[field.name]}"

    return ""


def explain_unreadable_part(part: Path) -> str:
    """Return why a Parquet file can't be read; empty where it can."""
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(
                "SELECT bit_xor(hash(t)) FROM read_parquet(?) AS t", [[str(make_utf8_path(part))]]
            ).fetchall()
    except duckdb.OutOfMemoryException:
        return ""  # which says nothing of the file
    except duckdb.Error as failure:
        return str(failure).splitlines()[0][:300]

    return ""
