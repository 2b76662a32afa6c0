"""The encoding of a text that is no UTF-8."""

import codecs
import re
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
_SIGN_IN_WORD_PATTERN = re.compile(r"(?<=[a-z])([^\x00-\x7f\u2019])(?=[a-z])")
"""What stands between two letters of ASCII and is none itself; an apostrophe may."""
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
MAX_COHERENCE_GAP_OF_WESTERN = 0.1
"""How much less like a language the usual encoding of western languages may read than another one: in few letters
other than ASCII, such gaps are chance."""


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

    # a right guess has letters where letters stand, as `für` and not `f³r`
    odd_signs = {match.encoding: _count_odd_signs_in_words(str(match)) for match in matches}
    fewest = min(odd_signs.values())
    fitting = [match for match in matches if odd_signs[match.encoding] == fewest]
    best = min(match.chaos for match in fitting)
    alike = [match for match in fitting if match.chaos <= best + 0.02]

    # of guesses that are about as good, the usual one of western languages
    western = next((match for match in alike if "cp1252" in match.could_be_from_charset), None)
    if western and western.coherence >= alike[0].coherence - MAX_COHERENCE_GAP_OF_WESTERN:
        return "cp1252"
    return str(alike[0].encoding).replace("_", "-")


def _count_odd_signs_in_words(text: str) -> int:
    """Return how many signs between two letters are none that words have there."""
    odd = 0
    for sign in _SIGN_IN_WORD_PATTERN.findall(text):
        odd += sign.isupper() or not sign.isalpha()
    return odd


def repair_meta_encoding(text: object) -> str:
    """Return a text whose UTF-8 was written as if each byte were a letter, as Meta's downloads have it."""
    written = str(text or "")
    try:
        return written.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return written
