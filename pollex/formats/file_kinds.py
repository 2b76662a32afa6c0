"""How files are told apart before anything reads them: by their names, and by their first bytes."""

import re
import zipfile
from pathlib import Path

FORMAT_BY_ENDING = {
    ".jsonl": "lines",
    ".ndjson": "lines",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}
"""What a file's ending promises; `.json` and others are told by their first characters."""
SPREADSHEET_ENDINGS = (".xlsx", ".xlsm", ".xls", ".ods")
LOG_FILE_ENDINGS = (
    *FORMAT_BY_ENDING,
    *SPREADSHEET_ENDINGS,
    ".json",
    ".yaml",
    ".yml",
    ".gz",
    ".zst",
    ".bz2",
    ".xz",
    ".zip",
    ".tar",
    ".tgz",
    ".tbz2",
    ".txz",
    ".eval",
)
"""Which files of a folder are read."""
YAML_ENDINGS = (".yaml", ".yml")
TRANSCRIPT_FILE_ENDINGS = (".txt", ".log", ".md")
"""Which are read where there are none of those."""
DATABASE_ENDINGS = (".db", ".sqlite", ".sqlite3", ".sql", ".duckdb", ".ddb")

PARQUET_MAGIC = b"PAR1"
OLD_EXCEL_MAGIC = b"\xd0\xcf\x11\xe0"
GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
ZSTANDARD_MAGIC = b"\x28\xb5\x2f\xfd"
BZIP2_MAGIC = re.compile(rb"BZh[1-9]1AY&SY")
XZ_MAGIC = b"\xfd7zXZ\x00"
TAR_MAGIC, TAR_MAGIC_PLACE = b"ustar", 257
SQLITE_MAGIC = b"SQLite format 3\x00"
DUCKDB_MAGIC = b"DUCK"
"""What a DuckDB file has behind a checksum of 8 bytes."""
QUERY_SOURCE_PATTERN = re.compile(r"(duckdb|sqlite|postgres(?:ql)?):([^?]*)(?:\?(.*))?", re.DOTALL)
"""A source that is no file: a database, and what is asked of it."""
_WORKBOOK_MEMBER_NAMES = (
    "xl/workbook.xml",
    "xl/workbook.bin",
    "content.xml",
    "[Content_Types].xml",
)
"""Members by which a packed file is told to be a workbook of Excel or LibreOffice."""


def is_query_source(source: str) -> bool:
    """Return whether a source names a database."""
    return QUERY_SOURCE_PATTERN.fullmatch(source) is not None


def is_spreadsheet(path: Path, begin: bytes) -> bool:
    """Return whether a file is a spreadsheet, by its first bytes and what is packed in it."""
    if begin.startswith(OLD_EXCEL_MAGIC):
        return True
    if not begin.startswith(b"PK\x03\x04"):
        return False

    try:
        with zipfile.ZipFile(path) as archive:
            return not set(_WORKBOOK_MEMBER_NAMES).isdisjoint(archive.namelist())
    except zipfile.BadZipFile:
        return False
