"""The boundary around foreign data in a prompt: readable, and never more than data.

`write_items_within_boundary` writes items as a JSON array, one a line, between two lines that bear the same boundary
code.

- Inside JSON strings a turn can't begin a line, so it can't forge a role or an item.
- Whatever could be taken for structure is written as its JSON escape: angle brackets and ampersands
with their
  look-alikes, bracketed reserved tokens, control, bidirectional and invisible characters, lone
  surrogates. `json.loads` gives every one of them back, so nothing is lost. The two joiners that
  Persian, Indic scripts and emoji need stay.
- The boundary is the HMAC-SHA256, cut to 128 bits, of the written data under a secret salt. Nobody
who can only write
  data can know or choose it, and it is the same whenever the same data is sealed under the same
  salt: a resumed run sends the same bytes, and finds its paid answers again. A store keeps one salt
  for all its runs.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

DataItem = Mapping[str, Any]

_BOUNDARY_WORD = "DATA"
_ESCAPED_CHARACTERS_PATTERN = re.compile(
    "[<>&\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2039\u203a\u2060-\u206f\u2329\u232a\u27e8\u27e9"
    "\u3008\u3009\ufe64\ufe65\ufeff\uff1c\uff1e\uff5c\ufff9-\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
    # Reserved tokens of chat templates that stand in square brackets.
    r"|\[(?=/?(?:[A-Z][A-Z_]+|[gs]MASK)\])"
)


def make_turn_items(turns: Iterable[tuple[str, str]]) -> list[DataItem]:
    """Return a conversation's (role, text) pairs as items, numbered from 0.

    System text before the user's first turn is the product's own instructions, and isn't judged. A
    greeting is a turn.
    """
    items: list[DataItem] = []
    for i, (role, text) in enumerate(turns):
        items.append({"i": i, "role": role, "text": text})

    # system text behind the user's first turn belongs to the conversation
    first = next((item["i"] for item in items if item["role"] == "user"), len(items))
    return [item for item in items if item["role"] != "system" or item["i"] > first]


def write_value_as_escaped_json_line(value: object) -> str:
    """Write a value as one line of JSON that can't pass for prompt structure."""
    return _ESCAPED_CHARACTERS_PATTERN.sub(
        _escape_character,
        json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    )


def write_items_as_json_array(items: Sequence[DataItem]) -> str:
    """Return the items as a JSON array, one a line."""
    return "[\n" + ",\n".join(map(write_value_as_escaped_json_line, items)) + "\n]"


def make_boundary_code(data: str, salt: bytes) -> str:
    """Return the boundary code, 32 hex digits; see the module."""
    return hmac.digest(salt, data.encode(), hashlib.sha256)[:16].hex()


def enclose_data_in_boundary_lines(data: str, code: str) -> str:
    """Put `data` between its two boundary lines.

    Raises:
        ValueError: The code occurs in the data; but by a leaked salt this can't happen.
    """
    if code in data:
        raise ValueError("the boundary code occurs in the data")
    return f"{_BOUNDARY_WORD} {code}\n{data}\n{_BOUNDARY_WORD} {code}"


def write_items_within_boundary(items: Sequence[DataItem], salt: bytes) -> str:
    """Return the message that holds `items` as data; see the module."""
    data = write_items_as_json_array(items)
    return enclose_data_in_boundary_lines(data, make_boundary_code(data, salt))


def _escape_character(match: re.Match[str]) -> str:
    """Return the JSON escape of one character; a pair of escapes beyond the basic plane."""
    # a character beyond the basic plane has two units, and a lone surrogate one
    units = match.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
