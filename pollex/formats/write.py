"""The one writer of rows: Parquet, JSON lines or CSV.

A file appears whole or not at all.
"""

import csv
import glob
import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from pollex.errors import WrongUse
from pollex.formats.files import list_files_read
from pollex.outputs import (
    EDITED,
    STDOUT,
    is_own_page,
    make_folder,
    open_draft,
    require_output,
    require_replaceable,
    write_text,
)
from pollex.store.columns import ColumnArrays, make_column_arrays
from pollex.store.database import BACKUP_FILE_NAME
from pollex.store.database import DATABASE_FILE_NAME as DATABASE
from pollex.store.folder import SEAL_KEY_FILE_NAME, SECRET_FILE_NAME, make_utf8_path

ROW_GROUP_SIZE = 4096
"""Rows that DuckDB holds before it writes them: one with answers takes some 10 kB."""

SourcePath = str | Path | None


def require_writable_output_path(
    path: Path,
    *read: SourcePath,
    regular: bool = False,
    named: bool = True,
) -> None:
    """Refuse an output path that can't be written, or that is read, before any work.

    Args:
        read: What the command reads, which may be all that there is of it: files and globs; None
            and `-` are none.
        regular: See `require_output`, and `named` too.

    Raises:
        WrongUse: It is a folder or a device, lies below a file or in a folder that may not be
            written, or is a file that is read or of a store.
    """
    require_output(path, regular=regular, named=named)
    if path.exists() and not path.is_file():
        return  # a pipe, or what swallows everything

    if path.is_symlink():
        target = path.resolve()
    else:
        target = path.absolute()

    # missing folders are made below the nearest one that is there
    folder = next(folder for folder in target.parents if folder.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise WrongUse(
            f"{folder} is not a writable folder",
            where=str(path),
            hint="give another place",
        )

    # compared as files, so that links and other spellings of a path count
    if path.exists():
        _require_not_an_input(path, read)

    # nobody asked for the place of a page that they wrote
    if not named and path.suffix == ".html" and path.is_file() and not is_own_page(path):
        raise WrongUse(
            "a page that pollex didn't write is there, and would be lost",
            where=str(path),
            hint="rename it, or give your output another name",
        )

    where = path.resolve()
    if where.name in _list_store_files(where.parent):
        raise WrongUse(
            "it would overwrite a file of the store",
            where=str(path),
            hint="give another name",
        )


def _require_not_an_input(path: Path, read: Iterable[SourcePath]) -> None:
    """Refuse an output that is a file which the command reads.

    Raises:
        WrongUse: It is.
    """
    for source in read:
        if source is None:
            continue
        for file in list_files_read(str(source)):
            if path.samefile(file):
                raise WrongUse(
                    "it would overwrite an input file",
                    where=str(path),
                    hint="give another name",
                )


def _list_store_files(folder: Path) -> frozenset[str]:
    """Return the files that a store needs: database, backup, and what belongs to it alone."""
    if not (folder / DATABASE).exists():
        return frozenset()
    return frozenset({DATABASE, BACKUP_FILE_NAME, SECRET_FILE_NAME, SEAL_KEY_FILE_NAME})


def require_distinct_outputs(*written: Path | None) -> None:
    """Refuse two output paths that are the same file.

    Args:
        written: What the command writes; None is not written.
    """
    resolved: set[Path] = set()
    for path in (candidate for candidate in written if candidate is not None):
        if path.resolve() in resolved:
            what = "two files would be written there, and one would take the place of the other"
            raise WrongUse(
                what,
                where=str(path),
                hint="give each a name of its own",
            )

        resolved.add(path.resolve())


OutputRows = Iterable[Mapping[str, object]]
OUTPUT_ENDINGS = (".jsonl", ".csv", ".parquet")


def require_known_ending(
    path: Path, *read: SourcePath, formats: Sequence[str] = OUTPUT_ENDINGS
) -> None:
    """Refuse a file that can't be written: before the work, not after it.

    Args:
        read: What the command reads.
        formats: Endings that are known.

    Raises:
        WrongUse: The name ends in no format that is known, or nothing can or may be written there.
    """
    if path == STDOUT:
        return
    if path.suffix not in formats:
        what = f"no format ends in {path.suffix or 'nothing'!r}"
        raise WrongUse(
            what,
            where=str(path),
            hint=f"use {', '.join(formats)}",
        )

    require_writable_output_path(path, *read)
    path.parent.mkdir(parents=True, exist_ok=True)


def write_rows(
    path: Path,
    rows: OutputRows,
    columns: Mapping[str, str],
    *,
    named: bool = True,
) -> None:
    """Write rows in the format that the name ends in.

    Args:
        columns: Every field with DuckDB's type for it: of Parquet nothing is inferred.
        named: See `require_output`.
    """
    require_output(path, named=named)
    with open_row_file(path, columns) as put:
        put(rows)


WriteRowBatch = Callable[[OutputRows], None]


@contextmanager
def open_row_file(path: Path, columns: Mapping[str, str]) -> Iterator[WriteRowBatch]:
    """Open a file for rows that come in batches; it appears whole at the end, or not at all. See `write_rows`."""
    form = {".csv": _open_csv, ".parquet": _open_parquet}.get(path.suffix, _open_json_lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    with form(path, columns) as put:
        yield put


WRITTEN_BY_POLLEX_MARK = "pollex"
"""Stands in most files that pollex makes for other tools."""


def write_text_files_into_folder(
    folder: Path,
    texts: Mapping[str, str],
    *read: SourcePath,
) -> None:
    """Write files into a folder that the user named; none of the user's own is written over.

    Args:
        texts: By name of the file.
        read: Inputs, which no output may be.

    Raises:
        WrongUse: A file is there that pollex didn't write, or one of `read`.
    """
    make_folder(folder)
    before = {name: _read_existing_text(folder / name) for name in texts}
    # the folder is ours if every file in it that should have the mark has it
    marked = [name for name in texts if WRITTEN_BY_POLLEX_MARK in texts[name]]
    is_ours = bool(marked) and all(
        WRITTEN_BY_POLLEX_MARK in (before[name] or "") for name in marked
    )
    # all files are looked at before the first is written
    for name, text in texts.items():
        require_writable_output_path(folder / name, *read, named=False)
        there = before[name]
        if there in (None, text):
            continue
        # some are edited by people: a file of ours is written anew only as long as nobody did
        require_replaceable(folder / name, refused=EDITED)
        if is_ours:
            continue
        if not _is_own_earlier_file(text, there):
            raise WrongUse(
                "a file is there already that pollex did not write",
                where=str(folder / name),
                hint="give another folder",
                option="out",
            )

    for name, text in texts.items():
        write_text(folder / name, text, named=False)


def _is_own_earlier_file(text: str, there: str) -> bool:
    """Tell whether a file that is there can be an earlier one of ours: by its mark, or by the keys of its rows."""
    if WRITTEN_BY_POLLEX_MARK in text:
        return WRITTEN_BY_POLLEX_MARK in there

    keys = _list_first_row_keys(text)
    return bool(keys) and keys == _list_first_row_keys(there)


def _read_existing_text(path: Path) -> str | None:
    """Return the text of a file; None where there is no file."""
    if path.is_file():
        return path.read_text("utf-8", "replace")
    return None


def _list_first_row_keys(text: str) -> list[str]:
    """Return the names in the first row of JSON lines; none where that isn't one."""
    try:
        row = json.loads(text.partition("\n")[0])
    except (ValueError, RecursionError):
        return []

    if isinstance(row, dict):
        return list(row)
    return []


def write_json_lines(path: Path, rows: Iterable[object], *, named: bool = True) -> None:
    """Write one JSON value a line; see `require_output`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        open_draft(path, named=named) as draft,
        draft.open("w", encoding="utf-8", errors="replace") as out,
    ):
        out.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


@contextmanager
def _open_json_lines(path: Path, columns: Mapping[str, str]) -> Iterator[WriteRowBatch]:
    with open_draft(path) as draft, draft.open("w", encoding="utf-8", errors="replace") as out:
        yield lambda rows: out.writelines(
            f"{json.dumps({name: row[name] for name in columns}, ensure_ascii=False)}\n"
            for row in rows
        )


@contextmanager
def _open_csv(path: Path, columns: Mapping[str, str]) -> Iterator[WriteRowBatch]:
    """Write RFC 4180 with formulas escaped by an apostrophe, lists and objects as JSON."""
    from pollex.formats.csv_rows import escape_formula  # other formats don't need it

    with (
        open_draft(path) as draft,
        draft.open("w", encoding="utf-8", errors="replace", newline="") as out,
    ):
        writer = csv.writer(out)
        writer.writerow([escape_formula(name) for name in columns])
        yield lambda rows: writer.writerows(
            [escape_formula(_convert_value_to_csv_cell(row[name])) for name in columns]
            for row in rows
        )


def _convert_value_to_csv_cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


@contextmanager
def _open_parquet(path: Path, columns: Mapping[str, str]) -> Iterator[WriteRowBatch]:
    with open_array_file(path, columns) as put:
        yield lambda rows: put(
            *_make_row_arrays([[row[name] for name in columns] for row in rows], columns)
        )


@contextmanager
def open_array_file(
    path: Path, columns: Mapping[str, str]
) -> Iterator[Callable[[Mapping[str, ColumnArrays], str], None]]:
    """Open a Parquet file for rows that queries give from arrays, by the names that the query has for them.

    What comes together is a file, and all files one at the end: no row is held in between.
    """
    import duckdb  # other formats don't need it

    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(
            dir=make_utf8_path(path.absolute().parent), prefix="."
        ) as folder,
        duckdb.connect(config={"threads": 1}) as database,
    ):
        types = ", ".join(f"{_quote_sql_name(name)} {type_}" for name, type_ in columns.items())
        # an empty table gives each batch the types of the columns
        database.execute(f"CREATE TABLE no_rows ({types})")
        numbers = count()

        def write(source: str, target: Path, parameters: Sequence[object] = ()) -> None:
            file_options = f"(FORMAT parquet, ROW_GROUP_SIZE {ROW_GROUP_SIZE})"
            query = f"COPY ({source}) TO {_quote_sql_text(str(target))} {file_options}"
            database.execute(query, parameters)

        # each batch becomes a file of its own in a folder
        def put(tables: Mapping[str, ColumnArrays], sql: str) -> None:
            for name, arrays in tables.items():
                database.register(name, arrays)

            write(
                f"FROM no_rows UNION ALL {sql}",
                Path(folder) / f"{next(numbers):09}.parquet",
            )

        # without any row, the file still has its columns
        put({}, "FROM no_rows")
        yield put
        # all of them are joined at the end
        with open_draft(path) as draft:
            # Folders named like `id=1` would take the columns' place.
            files = f"{glob.escape(folder)}/*.parquet"
            place = make_utf8_path(draft.absolute().parent) / draft.name
            write(
                "FROM read_parquet(?, hive_partitioning = false)",
                place,
                [files],
            )


_STRUCT_LIST_PATTERN = re.compile(r"STRUCT\((.*)\)\[\]", re.DOTALL)
_STRUCT_MEMBER_PATTERN = re.compile(r"(\w+) (\w+(?:\[\])?)")


def _make_row_arrays(
    rows: Sequence[Sequence[Any]], columns: Mapping[str, str]
) -> tuple[dict[str, ColumnArrays], str]:
    """Return rows of plain values as arrays, and the query that gives them back; lists of objects have own tables."""
    plain = {}
    for name, type_ in columns.items():
        plain[name] = "INTEGER[]" if _STRUCT_LIST_PATTERN.match(type_) else type_

    tables = dict[str, ColumnArrays]()
    cells = dict[str, list[object]]()
    lists = dict[str, str]()
    for place, (name, type_) in enumerate(columns.items()):
        column_cells = [row[place] for row in rows]
        # a list of objects is a table of its own, of which a cell has the first and last place
        if structs := _STRUCT_LIST_PATTERN.match(type_):
            items = [entry for cell in column_cells for entry in cell or ()]
            members = dict(_STRUCT_MEMBER_PATTERN.findall(structs[1]))
            members_of_entries = []
            for entry in items:
                members_of_entries.append(
                    tuple(
                        _convert_cell(kind, entry.get(member)) for member, kind in members.items()
                    )
                )

            tables[name], lists[name] = format_list_as_sql(members, members_of_entries)
            ends = np.cumsum([len(cell or ()) for cell in column_cells]).tolist()
            # places in SQL count from 1, and both ends belong to the cell
            cells[name] = [
                None if cell is None else (end - len(cell) + 1, end)
                for cell, end in zip(column_cells, ends, strict=True)
            ]
        else:
            cells[name] = [_convert_cell(type_, cell) for cell in column_cells]

    tables["given"], sql = make_column_arrays(plain, list(zip(*cells.values(), strict=True)))
    # the query cuts each cell's objects out of that table
    for name, every in lists.items():
        whole = f"list_slice({every.format(name)}, {name}_0, {name}_1)"
        sql[name] = (
            f"CASE WHEN {name}_n > 0 THEN {whole} END" if f"{name}_0" in tables["given"] else "NULL"
        )

    return tables, f"SELECT {', '.join(sql.values())} FROM given AS r"  # noqa: S608 - our own names


def format_list_as_sql(
    members: Mapping[str, str], rows: Sequence[tuple[object, ...]]
) -> tuple[ColumnArrays, str]:
    """Return objects as arrays, and SQL that gives the list of all of them from a table whose name it leaves open."""
    arrays, cells = make_column_arrays(members, rows)
    fields = ", ".join(f"{name} := {cell.rpartition(' AS ')[0]}" for name, cell in cells.items())
    every = f"coalesce((SELECT list(struct_pack({fields}) ORDER BY r.n) FROM {{}} AS r), [])"  # noqa: S608 - our own names
    return arrays | {"n": np.arange(len(rows))}, every


def _convert_cell(type_: str, value: Any) -> object:
    """Return a value as DuckDB takes it: numbers of one type, no lone surrogates, no NaN."""
    if type_ == "VARCHAR" and value is not None:
        return replace_lone_surrogates(
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        )
    if type_ == "DOUBLE":
        if value is None or not math.isfinite(value):
            return None
        return float(value)
    return value


def replace_lone_surrogates(value: object) -> object:
    """Replace lone surrogates in a text as the other formats do."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode(errors="replace").decode()


def _quote_sql_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote_sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
