"""The encoding of a text that is no UTF-8."""

import codecs
from pathlib import Path

DEFAULT_TEXT_ENCODING = "utf-8-sig"
"""What files of text are read as unless the user names another encoding."""
MAX_BYTES_READ_TO_DETECT_ENCODING = 1 << 18
"""Bytes by which an encoding is told."""
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CANDIDATE_ENCODINGS = [
    *(
        "cp1252",
        "cp1250",
        "cp1251",
        "cp1253",
        "cp1254",
        "cp1255",
        "cp1256",
        "cp1257",
        "cp932",
        "gb18030",
        "big5",
    ),
    *(
        "euc_jp",
        "euc_kr",
        "cp949",
        "koi8_r",
        "mac_roman",
        "utf_16_le",
        "utf_16_be",
        "cp437",
        "cp850",
    ),
]
"""Encodings in which people save tables."""


def detect_encoding(path: Path, *, whole: bool = False) -> str | None:
    """Return the encoding of a file whose beginning is no UTF-8; None where it is, and where nothing can be told.

    Args:
        whole: Look further, as the beginning says nothing.
    """
    with path.open("rb") as file:
        begin = file.read(
            MAX_BYTES_READ_TO_DETECT_ENCODING
            if not whole
            else MAX_BYTES_READ_TO_DETECT_ENCODING << 5
        )

    marked = next((name for mark, name in _BYTE_ORDER_MARKS if begin.startswith(mark)), None)
    # a mark at the beginning decides; UTF-8 needs no guess
    if marked is not None or not _is_not_utf_8(begin):
        return marked
    return _guess_encoding(begin)


def _is_not_utf_8(begin: bytes) -> bool:
    """Return whether bytes, perhaps cut within a letter, are no UTF-8, or text of two bytes a letter.

    UTF-8 with a damaged letter here and there is UTF-8.
    """
    if _looks_like_utf_16(begin):
        return True

    try:
        codecs.getincrementaldecoder("utf-8")().decode(begin)
    except UnicodeDecodeError:
        odd = []
        for line in begin.splitlines():
            if not line.isascii():
                odd.append(line)

        return sum(map(_is_utf_8, odd)) * 2 < len(odd)

    return False


def _looks_like_utf_16(begin: bytes) -> bool:
    """Return whether every other of the first bytes is 0, as in UTF-16 without a mark."""
    return begin[:4].count(0) == 2


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False

    return True


def _guess_encoding(begin: bytes) -> str | None:
    from charset_normalizer import from_bytes  # Few files need it.

    # lines of other letters tell the encoding, plain ones fit nearly all
    odd = []
    for line in begin.splitlines(keepends=True):
        if not line.isascii():
            odd.append(line)

    if _looks_like_utf_16(begin) or not odd:
        sample = begin
    else:
        sample = b"".join(odd[:2000])

    matches = list(from_bytes(sample, cp_isolation=_CANDIDATE_ENCODINGS, threshold=0.3))
    if not matches:
        return None

    best = min(match.chaos for match in matches)
    alike = []
    for match in matches:
        if match.chaos <= best + 0.02:
            alike.append(match)

    # of guesses that are about as good, the usual one of western languages
    western = next((match for match in alike if match.encoding == "cp1252"), None)
    if western and western.coherence >= alike[0].coherence:
        chosen = western
    else:
        chosen = alike[0]

    if chosen.encoding != "cp1252":
        return str(chosen.encoding).replace("_", "-")
    return "cp1252"


def repair_meta_encoding(text: object) -> str:
    """Return a text whose UTF-8 was written as if each byte were a letter, as Meta's downloads have it."""
    written = str(text or "")
    try:
        return written.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return written
