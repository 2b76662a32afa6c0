"""Columns of a log as a model is shown them: names, and values without what people said."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pollex.conversations.redaction import Placeholders
from pollex.formats.columns import Column
from pollex.text import JsonDict

MAX_VALUES_SHOWN_PER_COLUMN = 3
"""Values that are shown of a column."""
MAX_DISTINCT_VALUES_SHOWN_UNDISGUISED = 12
"""Different values that a column has at most whose values are shown as they are."""
MAX_COLUMNS_SHOWN = 80
"""Columns that are shown."""
MAX_SHOWN_VALUE_CHARS = 40
"""Characters of a value that is shown as it is, or letter by letter."""
MAX_SHOWN_VALUE_WORDS = 3
"""Words of a value that is shown as it is, or letter by letter."""


@dataclass(frozen=True)
class HeaderDisguise:
    """Columns as they are shown.

    Attributes:
        items: What is shown, a column an item.
        originals: What stands behind a shown value that is repeated in the log.
    """

    items: Sequence[JsonDict]
    originals: dict[str, str]


def disguise_values_of_columns(columns: Sequence[Column]) -> HeaderDisguise:
    """Return columns with three disguised values each; empty ones are left out."""
    originals: dict[str, str] = {}
    items = []
    # One memory of placeholders for all columns: a name has the same one wherever it stands.
    placeholders = Placeholders()
    for column in [candidate for candidate in columns if candidate.filled][:MAX_COLUMNS_SHOWN]:
        values = Counter(map(_format_value, _list_single_values(column)))
        repeated = _are_values_repeated(values)
        shown: dict[str, None] = {}
        # the most frequent values are shown first
        for value, _ in values.most_common():
            if repeated:
                disguised = placeholders.redacted(value)
            else:
                disguised = replace_letters_and_digits_of_value(value)

            shown.setdefault(disguised)
            if repeated:
                originals[disguised] = value

        items.append(
            {
                "column": column.path,
                "different": len(values),
                "values": [*shown][:MAX_VALUES_SHOWN_PER_COLUMN],
            }
        )

    return HeaderDisguise(items, originals)


def replace_letters_and_digits_of_value(value: str) -> str:
    """Return what a value looks like, with none of its letters and digits."""
    words = value.split()
    if len(words) > MAX_SHOWN_VALUE_WORDS or len(value) > MAX_SHOWN_VALUE_CHARS:
        end = next((sign for sign in reversed(value.strip()) if sign in "?!.…"), "")
        return f"a text of {len(words)} words" + (f" that ends with {end}" if end else "")
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", value))


def _are_values_repeated(values: Counter[str]) -> bool:
    """Return whether values come again and again, as names of roles and labels do, and are no sentences."""
    few = len(values) <= MAX_DISTINCT_VALUES_SHOWN_UNDISGUISED and len(values) <= values.total() / 2
    return few and all(
        len(value) <= MAX_SHOWN_VALUE_CHARS and len(value.split()) <= MAX_SHOWN_VALUE_WORDS
        for value in values
    )


def _list_single_values(column: Column) -> list[object]:
    """Return the values of a column one by one, those of lists, too."""
    values = []
    for value in column.values:
        values += value if isinstance(value, list) else [value]
    return [value for value in values if value not in (None, "", [], {})]


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
