"""What a file is by its content, where nobody vouches for its name: its ending, or why it is no log."""

from __future__ import annotations

from pathlib import Path

from pollex.errors import BadInput
from pollex.formats.encodings import detect_encoding
from pollex.formats.file_kinds import (
    BZIP2_MAGIC,
    GZIP_MAGIC,
    OLD_EXCEL_MAGIC,
    PARQUET_MAGIC,
    SQLITE_MAGIC,
    XZ_MAGIC,
    ZIP_MAGIC,
    ZSTANDARD_MAGIC,
    is_spreadsheet,
)
from pollex.formats.files import is_tar

TEXT_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")
"""Endings of text that are believed; other text is told by its first characters."""
SPREADSHEET_ENDINGS = (".xlsx", ".xlsm", ".ods")
MAX_BYTES_EXAMINED_FOR_FILE_TYPE = 1 << 16
"""Bytes in which text has no zero byte."""

FILE_TYPE_BY_NON_LOG_SIGNATURE: dict[bytes, str] = {
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"RIFF": "a picture, a sound or a film",
    b"ID3": "a sound",
    b"OggS": "a sound",
    b"\x1aE\xdf\xa3": "a film",
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"\xcf\xfa\xed\xfe": "a program",
    b"\xca\xfe\xba\xbe": "a program",
    b"7z\xbc\xaf": "packed with 7-Zip",
    b"Rar!": "packed with RAR",
}
"""How files begin that nobody's log is."""
UNSUPPORTED_PACKING_HINT = "unpack it, or pack it as .zip, .tar, .gz or .zst"
NOT_A_LOG_HINT = "give a file of conversations: JSON, CSV, Parquet, a spreadsheet, SQLite, or one of these packed"


def detect_file_ending(title: str, path: Path) -> str:
    """Return the ending that a file gets by its content; of text that of its name, where that is one of text.

    Args:
        title: The name that somebody gave it.

    Raises:
        BadInput: It is empty, or nothing that conversations are read from.
    """
    with path.open("rb") as file:
        begin = file.read(MAX_BYTES_EXAMINED_FOR_FILE_TYPE)

    if not begin.strip():
        raise BadInput("the file is empty", where=title, hint="give another")

    named = Path(title.lower()).suffix
    # known by their first bytes
    if begin.startswith(PARQUET_MAGIC):
        return ".parquet"
    if begin.startswith(OLD_EXCEL_MAGIC):
        return ".xls"
    if is_spreadsheet(path, begin):
        return named if named in SPREADSHEET_ENDINGS else ".xlsx"
    if begin.startswith(ZIP_MAGIC):
        return ".zip"
    if begin.startswith(GZIP_MAGIC):
        return _find_inner_ending(title) + ".gz"
    if begin.startswith(ZSTANDARD_MAGIC):
        return _find_inner_ending(title) + ".zst"
    if BZIP2_MAGIC.match(begin):
        return _find_inner_ending(title) + ".bz2"
    if begin.startswith(XZ_MAGIC):
        return _find_inner_ending(title) + ".xz"
    if is_tar(begin):
        return ".tar"
    if begin.startswith(SQLITE_MAGIC):
        return ".sqlite"

    _refuse_non_logs(title, path, begin)
    return named if named in TEXT_ENDINGS else ""


def _find_inner_ending(title: str) -> str:
    """Return the ending before that of a packed file, where it is one of text or Parquet."""
    inner = Path(Path(title.lower()).stem).suffix
    return inner if inner in (*TEXT_ENDINGS, ".parquet") else ""


def _refuse_non_logs(title: str, path: Path, begin: bytes) -> None:
    """Refuse what is known to be something else, and what is no text.

    Raises:
        BadInput: It is.
    """
    # text may begin like one of these; only with bytes of zero it is one
    is_binary = b"\x00" in begin or begin.startswith(b"%PDF")
    kinds = (
        kind
        for start, kind in FILE_TYPE_BY_NON_LOG_SIGNATURE.items()
        if is_binary and begin.startswith(start)
    )
    kind = next(kinds, "")

    if kind:
        hint = UNSUPPORTED_PACKING_HINT if kind.startswith("packed") else NOT_A_LOG_HINT
        raise BadInput(
            f"the file is {kind}, and no log",
            where=title,
            hint=hint,
        )

    if b"\x00" in begin and not _is_utf16_or_utf32(path, begin):
        raise BadInput(
            "the file is neither text nor a known table",
            where=title,
            hint=NOT_A_LOG_HINT,
        )


def _is_utf16_or_utf32(path: Path, begin: bytes) -> bool:
    """Return whether zero bytes are those of UTF-16 or UTF-32: every other byte is one, or a mark says so."""
    if begin.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        return True

    zeros = max(begin[0::2].count(0), begin[1::2].count(0))
    return zeros > 0.6 * len(begin) / 2 and detect_encoding(path) is not None
