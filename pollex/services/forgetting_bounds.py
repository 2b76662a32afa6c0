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

LARGEST_FILE_OF_ROWS_BYTES = 256 << 20
"""Bytes of the largest file of rows, also once it is unpacked."""
LARGEST_WHOLE_FILE_BYTES = 32 << 20
"""Bytes of the largest file of another kind: it is taken apart as a whole, which takes many times as much memory."""
FILE_SEARCH_SECONDS = 120.0
"""That one file may take."""
ENDINGS_OF_ROWS = (".jsonl", ".csv", ".parquet")

GZIP = b"\x1f\x8b"
ZSTANDARD = b"\x28\xb5\x2f\xfd"
PARQUET = b"PAR1"

T = TypeVar("T")


class NotLookedInto(PollexError):
    """A file that can't be searched for conversations: too large, too deep, damaged."""


@dataclass(frozen=True)
class Unpacked:
    """What a file holds.

    Attributes:
        ending: That of its name, without the one that says how it is packed.
        pack: Packs other content as the file's was.
    """

    content: bytes
    ending: str
    pack: Callable[[bytes], bytes]


def unpack_file(path: Path) -> Unpacked:
    """Read a file, and unpack it as far as the bounds allow.

    Raises:
        NotLookedInto: It has more than they allow, is damaged, or is packed twice.
    """
    with path.open("rb") as file:
        begins = file.read(4)
        file.seek(0)
        # the content says how it is packed, whatever its name says
        if begins.startswith(GZIP):
            return _unpack(gzip.GzipFile(fileobj=file), path, gzip.compress)
        if begins == ZSTANDARD:
            import zstandard  # few files are packed so

            reader = zstandard.ZstdDecompressor().stream_reader(
                file,
                read_across_frames=True,
            )
            return _unpack(reader, path, zstandard.ZstdCompressor().compress)

        require_size(path.stat().st_size, path.suffix)
        return Unpacked(file.read(), path.suffix, bytes)


def _unpack(
    source: IO[bytes] | Any,
    path: Path,
    pack: Callable[[bytes], bytes],
) -> Unpacked:
    ending = Path(path.stem).suffix
    content = io.BytesIO()
    # in blocks, so that a small file can't unpack to more than the memory holds
    while block := source.read(1 << 20):
        content.write(block)
        require_size(content.tell(), ending)

    unpacked = content.getvalue()
    if unpacked.startswith((GZIP, ZSTANDARD, PARQUET)):
        raise NotLookedInto("it is packed twice")
    return Unpacked(unpacked, ending, pack)


def require_size(size: int, ending: str) -> None:
    """Refuse what is larger than a file with this ending may be."""
    # rows can be read one after the other, so that more of them are allowed
    largest = LARGEST_FILE_OF_ROWS_BYTES if ending in ENDINGS_OF_ROWS else LARGEST_WHOLE_FILE_BYTES
    if size > largest:
        raise NotLookedInto(f"it has more than {largest >> 20} MB")


def yield_within_time(rows: Iterable[T]) -> Iterator[T]:
    """Yield rows until a file has taken too long.

    Raises:
        NotLookedInto: It has.
    """
    until = time.monotonic() + FILE_SEARCH_SECONDS
    for row in rows:
        if time.monotonic() > until:
            raise NotLookedInto(f"it takes longer than {FILE_SEARCH_SECONDS:g} s")
        yield row


def explain_unsearched_file(failure: Exception) -> str:
    """Say why a file couldn't be searched; whatever stands in a file, the others are searched."""
    if isinstance(failure, NotLookedInto):
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
