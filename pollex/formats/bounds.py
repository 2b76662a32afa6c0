"""Bounds that hold while a file is read, so that no file takes more memory or time than its rows are worth."""

import io
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import IO, Any, TextIO

from pollex.errors import BadInput

MAX_LINE_BYTES = 512 << 20
"""Bytes of a line, beyond which a file holds no rows."""
MAX_BLANK_BYTES = 4 << 20
"""Bytes of nothing but white space, likewise."""
MAX_ROW_CHARS = 32 << 20
"""Characters of a row that are held at once; of a longer row of JSON the long texts are cut."""
MAX_DOCUMENT_CHARS = 256 << 20
"""Characters of a JSON document, likewise."""
READ_CHUNK_SIZE = 1 << 20
QUERY_TIMEOUT_SECONDS = 60
"""Seconds that a query has, where nobody says otherwise."""
CUT_TEXT_ENDING = " … [cut]"
"""End of a text that was cut."""

_JSON_STRING_PATTERN = re.compile(r'(?:[^"\\]++|\\(?:u[0-9a-fA-F]{4}|[^u]))*+', re.DOTALL)
"""What stands in a text of JSON, up to its end or a torn escape."""


class TooLongRow(str):
    """The beginning of a row that is too long to be held."""

    __slots__ = ()


class ByteLimit:
    """Watches the bytes of a file pass, and stops where no row can come of them."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._line = 1
        self._long = 0
        self._blank = 0

    def watch(self, chunk: bytes) -> bytes:
        """Return the chunk.

        Raises:
            BadInput: A line doesn't end, or nothing but white space comes.
        """
        # what stands behind the last end of a line is the beginning of the next line
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        self._line += chunk.count(b"\n")
        if end >= 0:
            self._long = len(chunk) - end - 1
        else:
            self._long = self._long + len(chunk)

        if chunk.isspace():
            self._blank = self._blank + len(chunk)
        else:
            self._blank = 0

        where = f"{self._source}:{self._line}"
        if self._long > MAX_LINE_BYTES:
            raise BadInput(
                "a line of more than 512 MB",
                where=where,
                hint="write one conversation a line",
            )

        if self._blank > MAX_BLANK_BYTES:
            raise BadInput(
                "more than 4 MB of nothing but white space",
                where=where,
                hint="remove it",
            )

        return chunk


class ByteLimitedFile(io.RawIOBase):
    """A binary file under guard."""

    def __init__(self, file: IO[bytes], source: str) -> None:
        super().__init__()
        self._file = file
        self._guard = ByteLimit(source)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with what comes next."""
        chunk = self._guard.watch(self._file.read(len(buffer)))
        buffer[: len(chunk)] = chunk
        return len(chunk)


def iterate_lines_within_row_limit(text: TextIO, longest: int | None) -> Iterator[str]:
    """Yield the lines with their ends; of a row of more than `ROW` characters what `held` leaves of it."""
    for line in iter(partial(text.readline, MAX_ROW_CHARS), ""):
        if len(line) < MAX_ROW_CHARS or _ends_with_newline(line):
            yield line
        else:
            rest = _iterate_rest_of_line(text)
            yield join_or_cut_parts(chain([line], rest), longest, MAX_ROW_CHARS)
            for _ in rest:  # what nobody holds is passed over
                pass


def _iterate_rest_of_line(text: TextIO) -> Iterator[str]:
    for part in iter(partial(text.readline, READ_CHUNK_SIZE), ""):
        yield part
        if _ends_with_newline(part):
            return


def _ends_with_newline(part: str) -> bool:
    return part.endswith(("\n", "\r"))


def join_or_cut_parts(
    parts: Iterable[str],
    longest: int | None,
    room: int,
) -> str:
    """Return the parts together where they have room, else with their long texts cut, else `TooLongRow`.

    Args:
        longest: Characters that a text of JSON keeps; None: none is cut.
    """
    parts = iter(parts)
    held_parts = list[str]()
    size = 0
    for part in parts:
        held_parts.append(part)
        size += len(part)
        if size > room:
            if longest is None:
                return TooLongRow(held_parts[0][:READ_CHUNK_SIZE])
            return _cut_long_json_texts(chain(held_parts, parts), longest, room)

    return "".join(held_parts)


def _cut_long_json_texts(parts: Iterable[str], longest: int, room: int) -> str:
    """Cut each text of JSON after the part in which it gets longer than `longest` characters."""
    pieces = list[str]()
    size = 0
    inside = False
    left = 0
    torn = ""

    def keep(text: str) -> None:
        nonlocal size
        pieces.append(text)
        size += len(text)

    # pieces short enough to be looked at, with what the last one left torn before them
    for part in (
        long[start : start + READ_CHUNK_SIZE]
        for long in parts
        for start in range(0, len(long), READ_CHUNK_SIZE)
    ):
        part = torn + part
        at = 0
        torn = ""
        while at < len(part) and size <= room:
            # outside of texts everything is kept, up to the quote that begins one
            if not inside:
                end = part.find('"', at) + 1 or len(part)
                inside = part[end - 1] == '"'
                left = longest + 1
                keep(part[at:end])
                at = end
                continue

            text = _JSON_STRING_PATTERN.match(part, at)
            assert text is not None  # it matches nothing, too
            end = text.end()
            # of a text only its first characters are kept
            if left > 0:
                keep(part[at:end])
                left -= _count_min_characters_of_json_text(part[at:end])
                keep("" if left > 0 else CUT_TEXT_ENDING)

            if part.startswith('"', end):
                keep('"')
                inside = False
                end = end + 1
            elif len(part) - end < len(r"\u0000"):  # an escape that the next part ends
                torn = part[end:]
                end = len(part)
            else:  # no escape at all, which the parser will say
                keep(part[end])
                end += 1

            at = end

        if size > room:
            return TooLongRow(pieces[0][:READ_CHUNK_SIZE])

    return "".join([*pieces, torn])


def _count_min_characters_of_json_text(written: str) -> int:
    """Return how many characters at least a text of JSON stands for, whatever is escaped in it."""
    return max(
        len(written) - len(r"\u0000") * written.count("\\"),
        len(written) // len(r"\ud83d\ude00"),
    )
