"""Compressed files, unpacked before reading: gzip, Zstandard, and zip archives of Inspect logs."""

from __future__ import annotations

import gzip
import io
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from pollex.errors import BadInput
from pollex.formats.bounds import ByteLimit

GZIP, ZIP, ZSTANDARD, SQLITE = b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"SQLite format 3\x00"
LIMIT = 20 << 30
"""Bytes that a file may unpack to."""
METHOD_ZSTANDARD = 93
_READABLE = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".txt")
_LOCAL_HEADER = struct.Struct("<26xHH")


@contextmanager
def unpacked(source: str, path: Path, folder: Path) -> Iterator[list[tuple[str, Path]]]:
    """Yield the files in a packed file with display names; others as they are.

    Args:
        folder: Where to put them; the caller removes it.

    Raises:
        BadInput: The file is damaged, too large, a spreadsheet, or a database.
    """
    with path.open("rb") as file:
        begin = file.read(16)
    try:
        if begin.startswith(ZIP):
            yield list(_members(source, path, folder))
        elif begin.startswith((GZIP, ZSTANDARD)):
            yield [(source, _stream(source, path, folder, begin))]
        else:
            _refuse_database(source, path, begin)
            yield [(source, path)]
    except (zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise BadInput(f"can't be unpacked: {error}", where=source, remedy="pack or copy the file again") from None


def _stream(source: str, path: Path, folder: Path, begin: bytes) -> Path:
    """Unpack a single file, under its name without the packer's ending."""
    inner = folder / (path.stem if path.suffix in (".gz", ".zst", ".zstd") else path.name)
    if begin.startswith(GZIP):
        with gzip.open(path) as packed:
            copy(source, packed, inner)
    else:
        with path.open("rb") as raw:
            _copy_zstandard(source, raw, inner)
    return inner


def _copy_zstandard(source: str, raw: IO[bytes] | io.RawIOBase, inner: Path) -> None:
    import zstandard  # A quarter of all readings would pay for it, few need it.

    frame, begun, guard = zstandard.ZstdDecompressor().decompressobj(), False, ByteLimit(source)
    try:
        with inner.open("wb") as file:
            while chunk := raw.read(1 << 14):  # a little of it may unpack to much
                while chunk:
                    file.write(guard.watch(frame.decompress(chunk)))
                    _require_small(source, file.tell())
                    begun, chunk = not frame.eof, frame.unused_data
                    frame = zstandard.ZstdDecompressor().decompressobj() if frame.eof else frame
    except zstandard.ZstdError as error:
        raise BadInput(f"can't be unpacked: {error}", where=source, remedy="pack or copy the file again") from None
    if begun:
        raise BadInput("can't be unpacked: it ends too early", where=source, remedy="pack or copy the file again")


def copy(source: str, packed: IO[bytes] | gzip.GzipFile, inner: Path) -> None:
    """Write the data to a file of its own, up to the size limit; raise `BadInput` where no row can come of it."""
    guard = ByteLimit(source)
    with inner.open("wb") as file:
        while chunk := packed.read(1 << 20):
            file.write(guard.watch(chunk))
            _require_small(source, file.tell())


def _require_small(source: str, size: int) -> None:
    if size > LIMIT:
        raise BadInput("unpacks to more than 20 GB", where=source, remedy="unpack it, and give its parts")


def _members(source: str, path: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the archive's files that can hold rows; of an Inspect log its samples."""
    with zipfile.ZipFile(path) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        if "[Content_Types].xml" in infos:
            raise BadInput("a spreadsheet", where=source, remedy="save it as CSV")
        samples = [name for name in infos if name.startswith("samples/") and name.endswith(".json")]
        wanted = sorted(samples) or sorted(name for name in infos if name.lower().endswith(_READABLE))
        if not wanted:
            raise BadInput("a packed file with no table and no JSON in it", where=source, remedy="unpack it first")
        for number, name in enumerate(wanted):
            inner = folder / f"{number}{Path(name).suffix.lower()}"
            _unpack(source, archive, infos[name], inner)
            yield f"{source}!{name}", inner


def _unpack(source: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo, inner: Path) -> None:
    """Unpack one member, also with Zstandard.

    Python before 3.14 can't read Zstandard in zip archives, so the member's bytes are located by hand.
    """
    if info.compress_type != METHOD_ZSTANDARD:
        try:
            with archive.open(info) as packed:
                copy(source, packed, inner)
        except (NotImplementedError, RuntimeError) as error:
            raise BadInput(f"can't be unpacked: {error}", where=source, remedy="unpack it first") from None
        return
    raw = archive.fp
    assert raw is not None
    raw.seek(info.header_offset)
    name, extra = _LOCAL_HEADER.unpack(raw.read(_LOCAL_HEADER.size))
    raw.seek(info.header_offset + _LOCAL_HEADER.size + name + extra)
    _copy_zstandard(source, _Part(raw, info.compress_size), inner)


class _Part(io.RawIOBase):
    """The next bytes of a file, and no more."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        super().__init__()
        self._file, self._left = file, size

    def read(self, size: int = -1) -> bytes:
        """Read like a file."""
        found = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(found)
        return found


def _refuse_database(source: str, path: Path, begin: bytes) -> None:
    if not begin.startswith(SQLITE):
        return
    remedies = {
        "checkpoints": "export the threads of LangGraph as JSON: client.threads.search()",
        "steps": "export Chainlit's tables as CSV: SELECT * FROM steps, and of feedbacks and threads",
        "feedback": "export the feedback in Open WebUI: Admin, Evaluations, Feedbacks",
    }
    tables = _tables(path)
    remedy = next((told for table, told in remedies.items() if table in tables), "export its tables as CSV")
    raise BadInput("a SQLite database", where=source, remedy=remedy)


def _tables(path: Path) -> set[str]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return set()
