"""Location of logs: files, globs and standard input, the format of each, and what is packed in them."""

import bz2
import glob
import gzip
import io
import lzma
import os
import re
import select
import sqlite3
import struct
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput, NotText, PollexError, WrongUse, spell_options
from pollex.formats.bounds import (
    MAX_DOCUMENT_CHARS,
    QUERY_TIMEOUT_SECONDS,
    READ_CHUNK_SIZE,
    ByteLimit,
    ByteLimitedFile,
    TooLongRow,
    iterate_lines_within_row_limit,
    join_or_cut_parts,
)
from pollex.formats.encodings import DEFAULT_TEXT_ENCODING, detect_encoding
from pollex.formats.file_kinds import (
    BZIP2_MAGIC,
    DATABASE_ENDINGS,
    DUCKDB_MAGIC,
    FORMAT_BY_ENDING,
    GZIP_MAGIC,
    LOG_FILE_ENDINGS,
    PARQUET_MAGIC,
    SPREADSHEET_ENDINGS,
    SQLITE_MAGIC,
    TAR_MAGIC,
    TAR_MAGIC_PLACE,
    TRANSCRIPT_FILE_ENDINGS,
    XZ_MAGIC,
    YAML_ENDINGS,
    ZIP_MAGIC,
    ZSTANDARD_MAGIC,
    is_query_source,
    is_spreadsheet,
)
from pollex.formats.json_rows import (
    LogRow,
    iterate_json_lines,
    iterate_rows_of_json_document,
    iterate_yaml_rows,
)
from pollex.text import parse_json

STANDARD_INPUT_SOURCE_NAME = "-"
NON_LOG_FILE_NAMES_IN_EXPORTS = frozenset(
    (
        *(
            "user.json",
            "user_settings.json",
            "shared_conversations.json",
            "export_manifest.json",
            "group_chats.json",
        ),
        *(
            "model_comparisons.json",
            "shopping.json",
            "sora.json",
            "users.json",
            "projects.json",
            "memories.json",
        ),
        *(
            "channels.json",
            "groups.json",
            "dms.json",
            "mpims.json",
            "integration_logs.json",
            "canvases.json",
        ),
        *("org_users.json", "lists.json", "file_conversations.json"),
    )
)
"""Files that ChatGPT's, Claude's and Slack's exports have beside the conversations, without a word of them."""
PIPE_WAIT_SECONDS = 10
"""Seconds that a pipe is waited for which nobody writes into."""


def find_files_of_sources(sources: Sequence[str | Path]) -> list[str]:
    """List every file that the sources name, once, in order; globs are sorted.

    Raises:
        WrongUse: A source names nothing.
        BadInput: A file doesn't exist.
    """
    if not sources:
        raise WrongUse(
            "no logs were named",
            hint="give a file, a glob, or - for standard input",
        )

    names = []
    for source in sources:
        names.extend(_expand_source(str(source)))

    return list(dict.fromkeys(names))


def list_files_read(source: str) -> list[str]:
    """List the files that a source reads and that are there: of a folder its logs, of a query its database."""
    if is_query_source(source):
        from pollex.formats.queries import list_files_named_in_query  # queries alone need it

        candidates = list_files_named_in_query(source)
    else:
        candidates = []
        with suppress(PollexError):
            candidates = _expand_source(source)

    return [name for name in candidates if Path(name).is_file()]


def may_hold_several_tables(files: Sequence[str]) -> bool:
    """Return whether files may hold several tables: several files, a spreadsheet, an archive or a database."""
    if any(map(is_query_source, files)):
        return False

    holders = (*SPREADSHEET_ENDINGS, *DATABASE_ENDINGS, ".zip")
    return len(files) > 1 or Path(files[0]).suffix.lower() in holders


def _drop_non_log_files_of_exports(names: Sequence[str]) -> list[str]:
    """Leave out known companions of conversations, unless there is nothing else."""
    others = []
    for name in names:
        if Path(name).name.casefold() not in NON_LOG_FILE_NAMES_IN_EXPORTS:
            others.append(name)

    return others or list(names)


def iterate_file_rows(
    source: str,
    encoding: str,
    longest: int | None = None,
    query_seconds: float = QUERY_TIMEOUT_SECONDS,
    notes: dict[str, None] | None = None,
) -> Iterator[LogRow | BadRow]:
    """Yield the rows of one file, in order.

    Args:
        notes: Where to note what was decided of the file.
        longest: Characters that a text keeps in a row of JSON that is too long to be held; None:
            such a row is bad.
        query_seconds: How long a query may take.

    Raises:
        BadInput: The file can't be opened, decoded, or trusted in any part.
        WrongUse: No such encoding.
    """
    if is_query_source(source):
        from pollex.formats.queries import iterate_query_rows  # queries alone need it

        yield from iterate_query_rows(source, query_seconds)
        return

    try:
        with (
            _open_source_path(source) as path,
            tempfile.TemporaryDirectory() as folder,
            unpack_files(source, path, Path(folder)) as files,
        ):
            for name, inner in files:
                yield from _iterate_path_rows(name, inner, encoding, longest, notes)
    except OSError as error:
        raise BadInput(
            f"can't be read: {error.strerror or error}",
            where=source,
            hint="check the path",
        ) from None


def _expand_source(source: str) -> list[str]:
    if is_query_source(source):
        return [source]
    # `Path("")` is the current folder, which nobody named
    if not source:
        raise WrongUse("the name of a log is empty", hint="give a file, or . for this folder")

    path = Path(source)
    if source == STANDARD_INPUT_SOURCE_NAME or path.is_fifo():
        return [source]
    if path.is_dir():
        return _find_logs_inside(path)
    if path.exists():
        _require_regular_file(path)
        return [source]

    matches = sorted(name for name in glob.glob(source, recursive=True) if Path(name).is_file())  # noqa: PTH207 Path.glob takes no absolute pattern
    if not matches:
        raise BadInput(
            "no such file",
            where=source,
            hint="check the path; a glob must match at least one file",
        )

    return _drop_non_log_files_of_exports(matches)


def _require_regular_file(path: Path) -> None:
    """Refuse what never ends: devices, sockets, and the kernel's own files, which say that they are files."""
    if not path.is_file() or str(path.resolve()).startswith(("/dev/", "/proc/", "/sys/")):
        raise BadInput(
            "a device or a file of the system, no log",
            where=str(path),
            hint="give a file or a pipe",
        )


def _find_logs_inside(folder: Path) -> list[str]:
    files = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            files.append(path)

    names = []
    for path in files:
        if path.suffix.lower() in LOG_FILE_ENDINGS:
            names.append(path)

    texts = [path for path in files if path.suffix.lower() in TRANSCRIPT_FILE_ENDINGS]
    # talks as texts with a table of their labels beside them
    if names and len(texts) > len(names):
        names += filter(_holds_talks, texts)
    names = names or texts
    # hidden files, and those in hidden folders, are no logs
    logs = []
    for path in names:
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            logs.append(str(path))

    if not logs:
        hint = f"it must hold files that end in one of: {', '.join(LOG_FILE_ENDINGS)}"
        raise BadInput("a folder without logs", where=str(folder), hint=hint)
    return _drop_non_log_files_of_exports(logs)


def _holds_talks(path: Path) -> bool:
    """Return whether a text has turns that begin with who speaks, as a page of notes has not."""
    from pollex.formats.talk_files import (  # few folders have texts
        MAX_LINES_EXAMINED,
        are_lines_transcripts,
    )

    with path.open(encoding="utf-8", errors="replace") as text:
        return are_lines_transcripts(
            [line.rstrip("\n") for line in islice(text, MAX_LINES_EXAMINED)]
        )


@contextmanager
def _open_source_path(source: str) -> Iterator[Path]:
    piped = source != STANDARD_INPUT_SOURCE_NAME and Path(source).is_fifo()
    if source != STANDARD_INPUT_SOURCE_NAME and not piped:
        yield Path(source)
        return

    # a pipe can be read once alone, and a log is read several times
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin"
        with _open_named_pipe(source) if piped else nullcontext(sys.stdin.buffer) as stream:
            copy_unpacked_file(source, stream, path)
        yield path


def _open_named_pipe(source: str) -> IO[bytes]:
    """Open a named pipe without waiting for ever for somebody who writes into it."""
    pipe = os.open(source, os.O_RDONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(pipe, select.POLLIN)

    try:
        # nothing comes, and the end is there at once: nobody has opened the pipe to write
        if not poll.poll(PIPE_WAIT_SECONDS * 1000) and os.read(pipe, 1) == b"":
            hint = "start what writes into it, or give a file"
            raise BadInput(
                "a pipe that nobody writes into",
                where=source,
                hint=hint,
            )
    except BlockingIOError:  # there is somebody, and nothing is said yet
        pass
    except BadInput:
        os.close(pipe)
        raise

    # from here on, reading waits for whoever writes
    os.set_blocking(pipe, True)
    return os.fdopen(pipe, "rb")


def _iterate_path_rows(
    source: str,
    path: Path,
    encoding: str,
    longest: int | None,
    notes: dict[str, None] | None,
) -> Iterator[LogRow | BadRow]:
    tables = _iterate_binary_rows(source, path)
    if tables is not None:
        return tables

    encoding = _choose_encoding(source, path, encoding, notes)
    text = TextFile(source, path, encoding, longest)
    if path.suffix.lower() in YAML_ENDINGS:
        return iterate_yaml_rows(source, text.read_whole())
    # a talk as text, such as one of WhatsApp
    if _is_talk_file(source, path, encoding):
        return _read_talks(source, text.read_whole())

    form = _detect_file_form(text)
    # a text that is no table may be a log of lines
    if form == "csv" and path.suffix.lower() not in FORMAT_BY_ENDING:
        from pollex.formats.text_lines import LINE_KIND_READERS, detect_line_kind, refuse_text_file

        with closing(text.iterate_lines()) as lines:
            kind = detect_line_kind(lines)
        refuse_text_file(source, kind)
        if kind in LINE_KIND_READERS:
            return LINE_KIND_READERS[kind](source, text.iterate_lines())

    if form == "lines":
        return iterate_json_lines(source, text.iterate_lines())
    if form == "csv":
        return _iterate_table_rows(text, notes)
    return _iterate_json_document_rows(text)


def _iterate_binary_rows(source: str, path: Path) -> Iterator[LogRow | BadRow] | None:
    """Return the rows of a file of tables, known by its first bytes or ending; None for text.

    What reads a kind of file is imported with the first of that kind.
    """
    if _is_parquet_file(path):
        from pollex.formats.queries import iterate_parquet_rows

        return iterate_parquet_rows(source, path)

    with path.open("rb") as file:
        begin = file.read(16)

    if is_spreadsheet(path, begin):
        from pollex.formats.sheets import iterate_spreadsheet_rows

        return iterate_spreadsheet_rows(source, path)
    if begin.startswith(SQLITE_MAGIC):
        return iterate_database_rows("sqlite", source, path)
    if begin[8:12] == DUCKDB_MAGIC:
        return iterate_database_rows("duckdb", source, path)
    return None


def _choose_encoding(
    source: str,
    path: Path,
    encoding: str,
    notes: dict[str, None] | None,
) -> str:
    """Return the encoding of a text: where the user named none, the file's own bytes may tell another."""
    if notes is None or encoding != DEFAULT_TEXT_ENCODING:
        return encoding

    detected = detect_encoding(path)
    if detected is None:
        return encoding

    note = f"{source} isn't UTF-8, and was read as {detected}"
    example = spell_options(encoding=None)
    notes[f"{note}; if letters are wrong, name the right one: {example}"] = None
    return detected


@dataclass(frozen=True)
class TextFile:
    """A file of text, which is read anew for each look at it.

    Attributes:
        source: Its display name.
        longest: Characters of a text in it that are held; all if not set.
    """

    source: str
    path: Path
    encoding: str
    longest: int | None

    def iterate_lines(self) -> Generator[str, None, None]:
        """Yield the lines with their ends, each as far as it can be held."""
        return _read_lines_with_ends(self.source, self.path, self.encoding, self.longest)

    def iterate_pieces(self) -> Generator[str, None, None]:
        """Yield the text in pieces that may end anywhere."""
        return _read_lines_with_ends(self.source, self.path, self.encoding, whole=True)

    def read_whole(self) -> str:
        """Return the whole text as far as it can be held, else `TooLongRow`."""
        return join_or_cut_parts(self.iterate_pieces(), self.longest, MAX_DOCUMENT_CHARS)


def _detect_file_form(text: TextFile) -> str:
    """Return `lines`, `document` or `csv`: by the ending, else by the first lines."""
    form = FORMAT_BY_ENDING.get(text.path.suffix.lower())
    if form is not None and form != "lines":
        return form

    with closing(text.iterate_lines()) as lines:
        if form is None:
            return _detect_text_format(lines)
        return _detect_line_form(lines)


def _iterate_table_rows(
    text: TextFile,
    notes: dict[str, None] | None,
) -> Iterator[LogRow | BadRow]:
    """Return the rows of CSV, or of a table between tabs with escapes as databases write it."""
    from pollex.formats.csv_rows import iterate_csv_rows  # other formats don't need them
    from pollex.formats.tab_rows import are_lines_escaped_tab_table, iterate_tab_rows

    with closing(text.iterate_lines()) as lines:
        is_escaped = are_lines_escaped_tab_table(lines)

    if is_escaped:
        return iterate_tab_rows(text.source, text.iterate_lines())
    return iterate_csv_rows(text.source, text.iterate_pieces(), notes)


def _iterate_json_document_rows(text: TextFile) -> Iterator[LogRow | BadRow]:
    """Return the rows of one JSON document, which is held whole."""
    whole = text.read_whole()
    if isinstance(whole, TooLongRow):
        raise BadInput(
            "a JSON document of more than 256 MB",
            where=text.source,
            hint="write it as JSON lines, one row each",
        )

    return iterate_rows_of_json_document(text.source, whole)


_TIMESTAMPED_LINE_PATTERN = re.compile(r"\s*\[\d[\d.:/ -]*[^,\d]")
"""A line that begins with a time in brackets."""


def _is_talk_file(source: str, path: Path, encoding: str) -> bool:
    """Return whether a file of text, as phones export it, holds a talk whose turns begin with who speaks."""
    if path.suffix.lower() in FORMAT_BY_ENDING or path.suffix.lower() == ".json":
        return False

    from pollex.formats.talk_files import (  # files of text alone need them
        MAX_LINES_EXAMINED,
        are_lines_transcripts,
    )
    from pollex.formats.text_lines import LINE_KIND_READERS, detect_line_kind

    with closing(_read_lines_with_ends(source, path, encoding)) as lines:
        begin = []
        for line in islice(lines, MAX_LINES_EXAMINED):
            begin.append(line.rstrip("\r\n"))

    # logs of lines have readers of their own
    if detect_line_kind(begin) in LINE_KIND_READERS:
        return False

    first = next((line.lstrip()[:1] for line in begin if line.strip()), "")
    return first not in ("{", '"') and are_lines_transcripts(begin)


def _read_talks(source: str, text: str) -> Iterator[LogRow | BadRow]:
    """Yield the talks of a file of text, one row each."""
    if isinstance(text, TooLongRow):
        raise BadInput(
            "a talk of more than 256 MB",
            where=source,
            hint="split it into files",
        )

    from pollex.formats.talk_files import iterate_talk_rows  # files of text alone need it

    return iterate_talk_rows(source, text)


def _is_parquet_file(path: Path) -> bool:
    with path.open("rb") as file:
        return (
            file.read(4) == PARQUET_MAGIC or FORMAT_BY_ENDING.get(path.suffix.lower()) == "parquet"
        )


def _detect_text_format(lines: Iterable[str]) -> str:
    """Detect the format of text: JSON `lines`, a JSON `document`, or `csv`."""
    # the first two lines that aren't empty tell the format
    first, second = islice(
        chain((line for line in lines if line.strip()), ("", "")),
        2,
    )
    start = first.lstrip()[:1]
    if start != "{":
        if start == "[" and not _TIMESTAMPED_LINE_PATTERN.match(first):
            return "document"
        return "csv"

    # a whole object in one line, and a line below it: one row each line
    try:
        parse_json(first)
    except ValueError:
        return "document"

    return "lines" if second else "document"


def _detect_line_form(lines: Iterable[str]) -> str:
    """Return `document` for a file of lines that holds objects written over several lines."""
    first = next((line.strip() for line in lines if line.strip()), "")
    return "document" if first in ("{", "[") else "lines"


def _read_lines_with_ends(
    source: str,
    path: Path,
    encoding: str,
    longest: int | None = None,
    *,
    whole: bool = False,
) -> Generator[str, None, None]:
    """Yield the text's lines with their ends, each as far as it can be held.

    Invalid bytes become lone surrogates, so that the line they occur in is known.
    """
    try:
        with (
            path.open("rb") as file,
            io.BufferedReader(ByteLimitedFile(file, source), READ_CHUNK_SIZE) as raw,
            io.TextIOWrapper(raw, encoding, errors="surrogateescape", newline="") as text,
        ):
            # of a whole file, the pieces may end anywhere
            if whole:
                lines = iter(partial(text.readline, READ_CHUNK_SIZE), "")
            else:
                lines = iterate_lines_within_row_limit(text, longest)

            for number, line in enumerate(lines, start=1):
                if not line.isascii():
                    _require_decoded(f"{source}:{number}", line, encoding, path)
                yield line
    except LookupError:
        raise WrongUse(
            f"no encoding is called {encoding!r}",
            hint="try utf-8 or latin-1",
            option={"encoding": "latin-1"},
        ) from None
    except UnicodeError as error:
        raise _make_not_text_error(source, encoding, str(error), path) from None


def _require_decoded(
    where: str,
    line: str,
    encoding: str,
    path: Path,
) -> None:
    try:
        # bytes that couldn't be decoded are lone surrogates here, which UTF-8 can't write
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _make_not_text_error(
            where,
            encoding,
            f"byte {ord(line[error.start]) & 0xFF:#04x}",
            path,
        ) from None


def _make_not_text_error(
    where: str,
    encoding: str,
    what: str,
    path: Path,
) -> NotText:
    """Return an error that suggests the encoding of the byte order mark, or usual ones."""
    name = "UTF-8" if encoding.startswith("utf-8") else encoding
    others = "utf-8, cp1252 (Windows) or latin-1"
    likely = "cp1252" if name == "UTF-8" else "utf-8"
    likely = detect_encoding(path, whole=True) or likely
    hint = f"name the file's encoding: {others}"
    option = {"encoding": likely}

    return NotText(
        f"not {name} text: {what}",
        where=where,
        hint=hint,
        option=option,
    )


MAX_XZ_MEMORY_BYTES = 256 << 20
"""Memory that unpacking XZ may take: a small file can name a dictionary of gigabytes."""
MAX_UNPACKED_BYTES = 20 << 30
"""Bytes that a file may unpack to."""
UNPACKING_ERRORS = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
    EOFError,
)
COMPRESSED_FILE_ENDINGS = (".gz", ".zst", ".zstd", ".bz2", ".xz")
ZIP_METHOD_ZSTANDARD = 93
_READABLE_MEMBER_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".txt")
_ZIP_LOCAL_HEADER = struct.Struct("<26xHH")


def is_packed_stream(begin: bytes) -> bool:
    """Tell by its first bytes whether a file is one packed stream: gzip, Zstandard, bzip2, XZ."""
    return begin.startswith((GZIP_MAGIC, ZSTANDARD_MAGIC, XZ_MAGIC)) or bool(
        BZIP2_MAGIC.match(begin)
    )


def is_tar(begin: bytes) -> bool:
    """Tell by its first bytes whether a file is a tar archive."""
    return begin[TAR_MAGIC_PLACE:].startswith(TAR_MAGIC)


@contextmanager
def unpack_files(source: str, path: Path, folder: Path) -> Iterator[list[tuple[str, Path]]]:
    """Yield the files in a packed file with display names; others as they are.

    Args:
        folder: Where to put them; the caller removes it.

    Raises:
        BadInput: The file is damaged, too large, a spreadsheet, or a database.
    """
    with path.open("rb") as file:
        begin = file.read(TAR_MAGIC_PLACE + len(TAR_MAGIC))

    try:
        if is_spreadsheet(path, begin):
            yield [(source, path)]
        elif begin.startswith(ZIP_MAGIC):
            yield list(_unpack_members(source, path, folder))
        elif is_packed_stream(begin):
            inner = _unpack_stream(source, path, folder, begin)
            with inner.open("rb") as file:
                is_archive = is_tar(file.read(TAR_MAGIC_PLACE + len(TAR_MAGIC)))
            yield list(_unpack_tar(source, inner, folder)) if is_archive else [(source, inner)]
        elif is_tar(begin):
            yield list(_unpack_tar(source, path, folder))
        else:
            _refuse_unreadable_database(source, path, begin)
            yield [(source, path)]
    except UNPACKING_ERRORS as error:
        raise BadInput(
            f"can't be unpacked: {error}",
            where=source,
            hint="pack or copy the file again",
        ) from None


def _unpack_stream(
    source: str,
    path: Path,
    folder: Path,
    begin: bytes,
) -> Path:
    inner = folder / (path.stem if path.suffix in COMPRESSED_FILE_ENDINGS else path.name)
    with path.open("rb") as raw:
        _write_pieces(source, _iterate_unpacked_pieces(source, raw, begin), inner)
    return inner


def _iterate_unpacked_pieces(source: str, raw: IO[bytes], begin: bytes) -> Iterator[bytes]:
    """Yield what a packed stream unpacks to, piece by piece."""
    if begin.startswith(XZ_MAGIC):
        make = partial(lzma.LZMADecompressor, memlimit=MAX_XZ_MEMORY_BYTES)
        yield from _iterate_decompressed_pieces(source, raw, make)
        return
    if BZIP2_MAGIC.match(begin):
        yield from _iterate_decompressed_pieces(source, raw, bz2.BZ2Decompressor)
        return
    if not begin.startswith(GZIP_MAGIC):
        yield from _iterate_zstandard_pieces(source, raw)
        return

    with gzip.open(raw) as packed:
        yield from _iterate_byte_chunks(packed)


def _iterate_decompressed_pieces(
    source: str,
    raw: IO[bytes],
    make: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor],
) -> Iterator[bytes]:
    # a file may be several streams, one after the other, of which the last must be complete
    decompressor = make()
    begun = False
    try:
        while chunk := raw.read(1 << 16):
            while chunk or not decompressor.needs_input:
                yield decompressor.decompress(chunk, 1 << 20)
                begun = True
                chunk = b""
                if decompressor.eof:
                    chunk = decompressor.unused_data.lstrip(b"\x00")
                    decompressor = make()
                    begun = False
    except (OSError, lzma.LZMAError) as error:
        raise BadInput(
            f"can't be unpacked: {error}",
            where=source,
            hint="pack or copy the file again",
        ) from None

    if begun:
        raise BadInput(
            "can't be unpacked: it ends too early",
            where=source,
            hint="pack or copy the file again",
        )


def _iterate_byte_chunks(packed: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    while piece := packed.read(1 << 20):
        yield piece


def _iterate_zstandard_pieces(source: str, raw: IO[bytes] | io.RawIOBase) -> Iterator[bytes]:
    import zstandard  # A quarter of all readings would pay for it, few need it.

    # a file may be several frames, one after the other, of which the last must be complete
    frame = zstandard.ZstdDecompressor().decompressobj()
    begun = False
    try:
        while chunk := raw.read(1 << 14):  # a little of it may unpack to much
            while chunk:
                yield frame.decompress(chunk)
                begun = not frame.eof
                chunk = frame.unused_data
                if frame.eof:
                    frame = zstandard.ZstdDecompressor().decompressobj()
    except zstandard.ZstdError as error:
        raise BadInput(
            f"can't be unpacked: {error}",
            where=source,
            hint="pack or copy the file again",
        ) from None

    if begun:
        raise BadInput(
            "can't be unpacked: it ends too early",
            where=source,
            hint="pack or copy the file again",
        )


def copy_unpacked_file(
    source: str,
    packed: IO[bytes] | gzip.GzipFile,
    inner: Path,
) -> None:
    """Write the data to a file of its own, up to the size limit; raise `BadInput` where no row can come of it."""
    _write_pieces(source, _iterate_byte_chunks(packed), inner)


def _write_pieces(source: str, pieces: Iterable[bytes], inner: Path) -> None:
    guard = ByteLimit(source)
    size = 0
    with inner.open("wb") as file:
        for piece in pieces:
            file.write(guard.watch(piece))
            size += len(piece)
            _require_size_below_limit(source, size)


def _require_size_below_limit(source: str, size: int) -> None:
    if size > MAX_UNPACKED_BYTES:
        raise BadInput(
            "unpacks to more than 20 GB",
            where=source,
            hint="unpack it, and give its parts",
        )


def count_unpacked_bytes(source: str, path: Path, most: int) -> int:
    """Count the bytes that a file unpacks to, without writing any; stop once there are more than `most`.

    Raises:
        BadInput: It is damaged, or packed with a password.
    """
    with path.open("rb") as raw:
        begin = raw.read(16)
        raw.seek(0)
        try:
            if begin.startswith(ZIP_MAGIC):
                return _count_member_bytes(source, path, most)
            if is_packed_stream(begin):
                return _count_piece_bytes(_iterate_unpacked_pieces(source, raw, begin), most)
        except UNPACKING_ERRORS as error:
            raise BadInput(
                f"can't be unpacked: {error}",
                where=source,
                hint="pack or copy the file again",
            ) from None

    return path.stat().st_size


def _count_member_bytes(source: str, path: Path, most: int) -> int:
    """Count the bytes of all members: what a header says of them may be wrong."""
    size = 0
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            size += _count_piece_bytes(
                _iterate_member_pieces(source, archive, info),
                most - size,
            )
            if size > most:
                break

    return size


def _count_piece_bytes(pieces: Iterable[bytes], most: int) -> int:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            break

    return size


def _unpack_members(source: str, path: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    with zipfile.ZipFile(path) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        names = _choose_members(source, infos)
        # files get numbers as names: names in an archive may repeat, or lead out of the folder
        for number, name in enumerate(names):
            inner = folder / f"{number}{Path(name).suffix.lower()}"
            _write_pieces(
                source,
                _iterate_member_pieces(source, archive, infos[name]),
                inner,
            )
            yield f"{source}!{name}", inner


def _choose_members(source: str, names: Collection[str]) -> list[str]:
    """Return which members of an archive are read.

    Raises:
        BadInput: None is.
    """
    # an archive of Inspect has its samples in a folder; of others, all tables and texts count
    samples = []
    readable = []
    for name in sorted(names):
        if name.startswith("samples/") and name.endswith(".json"):
            samples.append(name)
        # macOS puts a file about each file beside it
        is_of_system = name.startswith("__MACOSX/") or Path(name).name.startswith("._")
        if name.lower().endswith(_READABLE_MEMBER_ENDINGS) and not is_of_system:
            readable.append(name)

    chosen = samples or _drop_non_log_files_of_exports(readable)
    if not chosen:
        raise BadInput(
            "a packed file with no table and no JSON in it",
            where=source,
            hint="unpack it first",
        )
    return chosen


def _unpack_tar(source: str, path: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    with tarfile.open(path, "r:") as archive:
        # links, devices and folders have nothing to read
        members = {member.name: member for member in archive if member.isreg()}
        names = _choose_members(source, members)

        # files get numbers as names, as those of a zip archive do
        for number, name in enumerate(names):
            inner = folder / f"{number}{Path(name).suffix.lower()}"
            content = archive.extractfile(members[name])
            assert content is not None, "it is a regular file"
            with content:
                copy_unpacked_file(source, content, inner)
            yield f"{source}!{name}", inner


def _iterate_member_pieces(
    source: str,
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
) -> Iterator[bytes]:
    """Yield what a member unpacks to, also with Zstandard.

    Python before 3.14 can't read Zstandard in zip archives, so the member's bytes are located by
    hand.
    """
    if info.compress_type != ZIP_METHOD_ZSTANDARD:
        try:
            with archive.open(info) as packed:
                yield from _iterate_byte_chunks(packed)
        except (NotImplementedError, RuntimeError) as error:
            raise BadInput(
                f"can't be unpacked: {error}",
                where=source,
                hint="unpack it first",
            ) from None

        return

    raw = archive.fp
    assert raw is not None
    # the header before the data has its own lengths of the name and the extra field
    raw.seek(info.header_offset)
    name, extra = _ZIP_LOCAL_HEADER.unpack(raw.read(_ZIP_LOCAL_HEADER.size))
    raw.seek(info.header_offset + _ZIP_LOCAL_HEADER.size + name + extra)
    yield from _iterate_zstandard_pieces(source, _ZipMemberFile(raw, info.compress_size))


class _ZipMemberFile(io.RawIOBase):
    def __init__(self, file: IO[bytes], size: int) -> None:
        super().__init__()
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        """Read like a file."""
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data


def _refuse_unreadable_database(source: str, path: Path, begin: bytes) -> None:
    if not begin.startswith(SQLITE_MAGIC):
        return

    # tools whose databases can't be read as they are, by the tables that they have
    remedies = {
        ("checkpoints",): "export the threads of LangGraph as JSON: client.threads.search()",
        ("feedback", "chat"): "export the feedback in Open WebUI: Admin, Evaluations, Feedbacks",
    }
    tables = _list_sqlite_tables(path)
    hint = next(
        (advice for names, advice in remedies.items() if {*names} <= {*tables}),
        "",
    )
    if hint or not tables:
        raise BadInput(
            "a SQLite database",
            where=source,
            hint=hint or "export its tables as CSV",
        )


def _list_sqlite_tables(path: Path) -> list[str]:
    """Return the tables of a SQLite database; none where it can't be read."""
    try:
        # immutable: nothing is locked or written, not even a journal beside the file
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as database:
            listed = database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
            return [name for (name,) in listed]
    except sqlite3.Error:
        return []


_DUCKDB_TABLES_QUERY = (
    "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary ORDER BY table_oid"
)


def iterate_database_rows(kind: str, source: str, path: Path) -> Iterator[LogRow]:
    """Yield the rows of all tables of a database, each table like a file of its own.

    Args:
        kind: `sqlite` or `duckdb`.
    """
    from pollex.formats.query_process import run_query_in_process  # databases alone need it

    if kind == "sqlite":
        names = _list_sqlite_tables(path)
    else:
        listed = run_query_in_process(kind, str(path), _DUCKDB_TABLES_QUERY)
        names = [row["table_name"] for row in listed]

    for table in names:
        # quotes inside a quoted name are doubled
        quoted = table.replace('"', '""')
        rows = run_query_in_process(kind, str(path), f'SELECT * FROM "{quoted}"')  # noqa: S608 - a name, quoted
        for number, fields in enumerate(rows, start=1):
            yield LogRow(f"{source}:{table}", number, fields)
