"""Untrusted text on a terminal."""

from __future__ import annotations

import unicodedata

LINE_BREAKS = "\n\t"
_UNSEEN = frozenset(["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])
"""Unicode categories that are controls, invisible, or reorder what stands around them."""


def printable(text: str, limit: int | None = None, *, keep_lines: bool = False) -> str:
    """The text with every control, bidi and zero-width character as a visible escape such as `\\x1b`.

    Args:
        limit: Characters of the result; a longer one ends in `…`.
        keep_lines: Leaves line breaks and tabs as they are.
    """
    kept = LINE_BREAKS if keep_lines else ""
    # An escape is longer than what it stands for, so more than `limit` characters are never needed.
    head = text if limit is None else text[: limit + 1]
    shown = head if head.isprintable() else "".join(c if c in kept else _visible(c) for c in head)
    if limit is not None and len(shown) > limit:
        return shown[: max(limit - 1, 0)] + "…" * (limit > 0)
    return shown


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    code = ord(character)
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
