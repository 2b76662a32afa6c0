"""Keeps keys out of every text that is stored, logged or shown."""

from __future__ import annotations

import re
from collections.abc import Collection

BLANK = "[redacted]"

_SHORTEST_SECRET = 6
_LOOKS_SECRET = re.compile(
    r"\bsk-[\w-]{8,}"  # provider keys
    r"|(?<=://)[^/\s@:]+(?::[^/\s@]*)?(?=@)"  # user info in a URL
    r"|(?<=[?&])[^\s=&#]*(?:key|token|secret|sig)[^\s=&#]*=[^\s&#\"']+"  # key in a URL's query
    r"|(?i:\b(?:bearer|basic)\s+[\w.~+/=-]{6,})"  # Authorization header
)


def without(secrets: Collection[str], text: str) -> str:
    """`text` with the known `secrets` blanked out, and not a character else changed: for bodies that are kept."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, BLANK)
    return text


def redacted(text: str, secrets: Collection[str] = ()) -> str:
    """`text` with known secrets and whatever looks like one blanked out: for messages and logs."""
    return _LOOKS_SECRET.sub(BLANK, without(secrets, text))
