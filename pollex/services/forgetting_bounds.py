"""What forgetting looks into: files of a bounded size, packed once at most, in a bounded time."""

from __future__ import annotations

import gzip
import io
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from pollex.errors import PollexError

MAX_ROW_FILE_BYTES = 256 << 20
"""Bytes of the largest file of rows, also once it is unpacked."""
MAX_WHOLE_FILE_BYTES = 32 << 20
"""Bytes of the largest file of another kind: it is taken apart as a whole, which takes many times as much memory."""
FILE_SEARCH_SECONDS = 120.0
"""That one file may take."""
ROW_FILE_ENDINGS = (".jsonl", ".csv", ".parquet")

GZIP_MAGIC = b"\x1f\x8b"
ZSTANDARD_MAGIC = b"\x28\xb5\x2f\xfd"
PARQUET_MAGIC = b"PAR1"

RowT = TypeVar("RowT")


class FileNotSearched(PollexError):
    """A file that can't be searched for conversations: too large, too deep, damaged."""


@dataclass(frozen=True)
class UnpackedFile:
    """What a file holds.

    Attributes:
        ending: That of its name, without the one that says how it is packed.
        pack: Packs other content as the file's was.
    """

    content: bytes
    ending: str
    pack: Callable[[bytes], bytes]


def unpack_file(path: Path) -> UnpackedFile:
    """Read a file, and unpack it as far as the bounds allow.

    Raises:
        NotLookedInto: It has more than they allow, is damaged, or is packed twice.
    """
    with path.open("rb") as file:
        begins = file.read(4)
        file.seek(0)
        # the content says how it is packed, whatever its name says
        if begins.startswith(GZIP_MAGIC):
            return _unpack_content(gzip.GzipFile(fileobj=file), path, gzip.compress)
        if begins == ZSTANDARD_MAGIC:
            import zstandard  # few files are packed so

            reader = zstandard.ZstdDecompressor().stream_reader(
                file,
                read_across_frames=True,
            )
            return _unpack_content(reader, path, zstandard.ZstdCompressor().compress)

        require_size(path.stat().st_size, path.suffix)
        return UnpackedFile(file.read(), path.suffix, bytes)


def _unpack_content(
    source: IO[bytes] | Any,
    path: Path,
    pack: Callable[[bytes], bytes],
) -> UnpackedFile:
    ending = Path(path.stem).suffix
    content = io.BytesIO()
    # in blocks, so that a small file can't unpack to more than the memory holds
    while block := source.read(1 << 20):
        content.write(block)
        require_size(content.tell(), ending)

    unpacked = content.getvalue()
    if unpacked.startswith((GZIP_MAGIC, ZSTANDARD_MAGIC, PARQUET_MAGIC)):
        raise FileNotSearched("it is packed twice")
    return UnpackedFile(unpacked, ending, pack)


def require_size(size: int, ending: str) -> None:
    """Refuse what is larger than a file with this ending may be."""
    # rows can be read one after the other, so that more of them are allowed
    largest = MAX_ROW_FILE_BYTES if ending in ROW_FILE_ENDINGS else MAX_WHOLE_FILE_BYTES
    if size > largest:
        raise FileNotSearched(f"it has more than {largest >> 20} MB")


def yield_within_time(rows: Iterable[RowT]) -> Iterator[RowT]:
    """Yield rows until a file has taken too long.

    Raises:
        NotLookedInto: It has.
    """
    until = time.monotonic() + FILE_SEARCH_SECONDS
    for row in rows:
        if time.monotonic() > until:
            raise FileNotSearched(f"it takes longer than {FILE_SEARCH_SECONDS:g} s")
        yield row


def explain_unsearched_file(failure: Exception) -> str:
    """Say why a file couldn't be searched; whatever stands in a file, the others are searched."""
    if isinstance(failure, FileNotSearched):
        return failure.what
    if isinstance(failure, RecursionError):
        return "it is nested too deeply"
    if isinstance(failure, MemoryError):
        return "it takes more memory than there is"
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror
    if isinstance(failure, EOFError | zlib.error):
        return "it is cut or damaged"
    return f"it is damaged ({type(failure).__name__})"
