"""Keeps keys out of every text that is stored, logged or shown."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

BLANK = "[redacted]"

_SHORTEST_SECRET = 6
_LOOKS_SECRET = re.compile(
    r"\bsk-[\w-]{8,}"  # provider keys
    r"|(?<=://)[^/\s@:]+(?::[^/\s@]*)?(?=@)"  # user info in a URL
    r"|(?<=[?&])[^\s=&#]*(?:key|token|secret|sig)[^\s=&#]*=[^\s&#\"']+"  # key in a URL's query
    r"|(?i:\b(?:bearer|basic)\s+[\w.~+/=-]{6,})"  # Authorization header
)

_RUN_BEGINS = r"(?<!\\)"
"""A run of backslashes is looked at from its first alone: from each of them, it would take its length squared."""


def without(secrets: Collection[str], text: str) -> str:
    """`text` with the known `secrets` blanked out, and not a character else changed: for bodies that are kept.

    In JSON a secret may stand with characters escaped, as some servers write slashes, plus signs and ampersands: it is
    the same secret once the body is read.
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            plainly, escaped = _spellings(secret)
            text = plainly.sub(BLANK, text)
            if f"u{ord(secret[0]):04x}" in text.lower():  # the slower of the two, and hardly ever needed
                text = escaped.sub(BLANK, text)
    return text


@lru_cache(maxsize=64)
def _spellings(secret: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What finds `secret` with any characters escaped: where the first is written plainly, and where it is not."""
    begin, rest = secret[0], "".join(f"(?:{_plain(character)}|{_escaped(character)})" for character in secret[1:])
    plainly = _plain(begin) if begin.isalnum() else _RUN_BEGINS + _plain(begin)
    return re.compile(plainly + rest), re.compile(_RUN_BEGINS + _escaped(begin) + rest)


def _plain(character: str) -> str:
    """A character as it is; other than letters and digits also behind backslashes, several in JSON within JSON."""
    return re.escape(character) if character.isalnum() else rf"\\*{re.escape(character)}"


def _escaped(character: str) -> str:
    return rf"\\+u(?i:{ord(character):04x})"


def redacted(text: str, secrets: Collection[str] = ()) -> str:
    """`text` with known secrets and whatever looks like one blanked out: for messages and logs."""
    return _LOOKS_SECRET.sub(BLANK, without(secrets, text))
