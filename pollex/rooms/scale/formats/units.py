"""Units of work: parts of logs that are read, scored and written by themselves."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pollex.conversations.logs import BadRow, Logs
from pollex.errors import BadInput, WrongUse
from pollex.formats.bounds import MAX_LINE_BYTES
from pollex.formats.fields import ReadOptions
from pollex.formats.file_kinds import FORMAT_BY_ENDING
from pollex.formats.files import iterate_file_rows
from pollex.formats.json_rows import LogRow
from pollex.formats.log_shapes.readers import find_reader
from pollex.formats.log_shapes.tools import find_export_format
from pollex.formats.mapping import ColumnMapper
from pollex.formats.places import StoragePath, list_storage_files
from pollex.formats.read_logs import read_logs
from pollex.formats.tally import SkippedRow

UNIT_BYTES = 8 << 20
"""Bytes of a file of JSON lines in one unit: seconds of work."""

ROWS_LOOKED_AT = 20
"""First rows that tell whether a file may be cut."""

UnitKind = Literal["file", "lines", "group"]


@dataclass(frozen=True)
class LogUnit:
    """A whole file, lines of a file, or a row group of Parquet.

    Attributes:
        number: In the order of the input.
        url: The file's address.
        state: Changes when the file does.
        start: Its first byte, or number of a row group.
        end: The byte after it.
    """

    number: int
    url: str
    state: str
    kind: UnitKind = "file"
    start: int = 0
    end: int = 0

    def key(self, *circumstances: str) -> str:
        """Hash the unit with all that its result depends on."""
        facts = (
            self.url,
            self.state,
            self.kind,
            str(self.start),
            str(self.end),
            *circumstances,
        )
        return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:20]

    def read(self, options: ReadOptions) -> Logs:
        """Read the unit's conversations, with its bad rows; lines are counted from the unit's first.

        Raises:
            BadInput: The file can't be read.
        """
        with self._file() as path:
            try:
                # messages name the place that the user gave, not the copy's
                logs = read_logs(str(path), options=options)
            except BadInput as error:
                if error.where == str(path):
                    raise BadInput(
                        error.what,
                        where=self.shown,
                        hint=error.advice,
                    ) from None

                raise

        # bad rows, too, name the unit
        return replace(
            logs,
            bad_rows=tuple(replace(row, source=self.shown) for row in logs.bad_rows),
        )

    @property
    def shown(self) -> str:
        """What messages call it."""
        part = {
            "file": "",
            "lines": f" from byte {self.start}",
            "group": f" row group {self.start}",
        }[self.kind]
        return f"{self.url}{part}"

    @contextmanager
    def _file(self) -> Iterator[Path]:
        place = StoragePath.at(self.url)
        with tempfile.TemporaryDirectory() as folder:
            # each kind of unit becomes a file of its own, which readers then read as any other
            if self.kind == "lines":
                (lines := Path(folder) / "lines.jsonl").write_bytes(
                    read_lines_between(place, self.start, self.end)
                )
                yield lines
            elif self.kind == "group":
                parquet = _import_arrow().parquet
                group = Path(folder) / "group.parquet"
                # one row group is read, the rest of the file stays where it is
                with place.files.open(place.path, "rb") as file:
                    parquet.write_table(
                        parquet.ParquetFile(file).read_row_group(self.start),
                        group,
                    )

                yield group
            # a whole file, copied if it is far away
            else:
                with place.copied(Path(folder)) as copy:
                    yield copy


def _import_arrow() -> Any:
    """Import pyarrow, which takes half a second, and is an extra."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise WrongUse(
            f"parts of Parquet need a package: {error.name}",
            hint='pip install "pollex[ray]"',
        ) from None

    return pyarrow


def read_lines_between(place: StoragePath, start: int, end: int) -> bytes:
    """Return the lines that begin in a range of bytes, the last one to its end, or to where it is too long."""
    # from one byte before: if that is a line feed, a line begins at `start`
    content = place.read_range(max(start - 1, 0), end)
    if start:  # a line that began before belongs to the unit before
        if b"\n" in content:
            content = content.partition(b"\n")[2]
        else:
            content = b""
    elif not content:
        return b""

    # the last line goes on beyond the range
    size = place.size
    parts = [content]
    while (
        # a line without an end is given up at some length
        parts[-1]
        and not parts[-1].endswith(b"\n")
        and end < min(size, start + MAX_LINE_BYTES + UNIT_BYTES)
    ):
        more = place.read_range(end, min(end + (1 << 20), size))
        line, newline, _ = more.partition(b"\n")
        parts.append(line + newline)
        end += len(more)

    return b"".join(parts)


def cut_into_units(
    urls: list[str], options: ReadOptions, unit_bytes: int = UNIT_BYTES
) -> list[LogUnit]:
    """Cut logs into units, in order; files whose conversations span rows stay whole.

    Raises:
        BadInput: An address names nothing.
        WrongUse: A file is Parquet, and the extra `ray` is missing.
    """
    units: list[LogUnit] = []
    # numbers go on over all files, in the order of the addresses
    for place in (place for url in urls for place in list_storage_files(url)):
        units += [
            replace(unit, number=len(units) + at)
            for at, unit in enumerate(_cut_file(place, options, unit_bytes))
        ]

    return units


def _cut_file(place: StoragePath, options: ReadOptions, unit_bytes: int) -> list[LogUnit]:
    # workers elsewhere need the whole address, a local path is enough here
    if place.local:
        url = place.path
    else:
        url = str(place.files.unstrip_protocol(place.path))

    whole = LogUnit(0, url, place.state())
    form = FORMAT_BY_ENDING.get(Path(place.name).suffix)
    # lines are cut by bytes: which unit a line belongs to is where it begins
    if form == "lines" and place.size > unit_bytes and _do_rows_stand_alone(place, options):
        wholes: list[LogUnit] = []
        for at in range(0, place.size, unit_bytes):
            wholes.append(
                replace(
                    whole,
                    kind="lines",
                    start=at,
                    end=min(at + unit_bytes, place.size),
                )
            )

        return wholes
    # Parquet is cut by row groups, as it was written
    if form == "parquet" and _do_rows_stand_alone(place, options):
        with place.files.open(place.path, "rb") as file:
            groups = _import_arrow().parquet.ParquetFile(file).num_row_groups
        return [replace(whole, kind="group", start=at) for at in range(groups)]
    # rows that belong together must stay in one file
    return [whole]


def _do_rows_stand_alone(place: StoragePath, options: ReadOptions) -> bool:
    mapper = ColumnMapper.of(options)
    # a field of messages in each row: every row is a conversation
    if mapper.options(options).messages_field is not None:
        return True

    with tempfile.TemporaryDirectory() as folder:
        # a few rows from the beginning, in the file's own form
        head = Path(folder) / place.name
        if place.name.endswith(".parquet"):
            arrow = _import_arrow()
            with place.files.open(place.path, "rb") as file:
                parquet = arrow.parquet.ParquetFile(file)
                first = list(islice(parquet.iter_batches(ROWS_LOOKED_AT), 1))
                arrow.parquet.write_table(
                    arrow.Table.from_batches(first, parquet.schema_arrow),
                    head,
                )
        else:
            head.write_bytes(read_lines_between(place, 0, 1 << 16))

        rows = list(islice(iterate_file_rows(str(head), options.encoding), ROWS_LOOKED_AT))

    # one row that is part of a conversation keeps the file whole
    return all(map(_does_row_stand_alone, mapper.rows(rows)))


def _does_row_stand_alone(row: LogRow | BadRow | SkippedRow) -> bool:
    if not isinstance(row, LogRow):
        return True

    try:
        return find_export_format(row.fields) is None and not find_reader(row.fields).row_is_turn
    except BadInput:
        return False
