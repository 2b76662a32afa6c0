"""Which column of an unknown log may hold the thumb, and what its values mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pollex.conversations.conversation import Label
from pollex.conversations.logs import BadRow
from pollex.formats.assembly.beside import is_likely
from pollex.formats.columns import Column
from pollex.formats.labels import (
    EMPTY,
    MISSING,
    NPS,
    as_number,
    bounds_of,
    is_missing,
    is_usual,
    side_meant,
)
from pollex.formats.names import folded_name, is_called, words_of
from pollex.formats.paths import split_path
from pollex.formats.reactions import names_reactions, reactions_in

FEW_LABELS = 12
"""Different words that a label has at most."""
MOST_RATINGS = 101
"""Different numbers that a rating has at most."""
LONGEST_LABEL = 40
LONGEST_REACTIONS = 400
"""Characters of all reactions on a message."""
TWO_NUMBERS = ({"0", "1"}, {"-1", "1"}, {"0", "100"})
"""Numbers that are two sides, where a column has no others."""
CODES = ({0.0, 1.0, 2.0}, {1.0, 2.0}, {0.0, 2.0})
"""Numbers that may be codes as well as a rating: of 1 and 2, either may be the thumb down."""
DOUBTFUL = frozenset("true false yes no y n t f ja nein si oui non sim nao tak nie".split())  # noqa: SIM905
"""Words that say yes or no to anything, and not to a thumb alone."""
NO_LABELS = frozenset(
    "sentiment confidence delivered delivery predicted status state intent priority severity".split()  # noqa: SIM905
)
"""Words in names of what a machine says of a turn, and not whoever asked."""
_RATER = re.compile(
    r"(?i)(?:rater|annotator|judge|reviewer|labell?er|coder|expert|assessor|evaluator|bewerter)[_ .-]?(?=\w)"
)
_SCALES = frozenset("stars star rating ratings score points csat nps".split())  # noqa: SIM905
"""Words in names of numbers of which more is better."""


def label_likelihood(column: Column) -> float:
    """Return how much a column's values look like thumbs or ratings whose meaning is known, from 0 to 2."""
    words = column.words
    if not _may_hold_labels(column) or sides_of_column(column) is None:
        return 0.0

    usual = all(map(is_usual, words))
    numbers = all(map(as_number, words))
    if numbers and len(words) < 2:
        return 0.0
    if is_named_label(column.path):
        if usual and not numbers:
            return 2.0
        return 1.5
    if numbers:
        # a number alone may be anything, `4/5` and `80 %` hardly
        return 0.9 if not any(map(_is_bare, words)) else 0.0
    # yes and no may be about anything; thumbs are missing in some rows
    if all(folded_name(word) in DOUBTFUL for word in words):
        if column.filled < len(column.values) and len(words) == 2:
            return 0.6
        return 0.0
    return 1.0 if len(words) > 1 else 0.0


def is_doubtful_label(column: Column) -> bool:
    """Return whether a column is named like a thumb, and nobody can tell what its few values mean."""
    if not _may_hold_labels(column) or len(column.words) < 2:
        return False

    named = any(is_called(step, "label") for step in split_path(column.path))
    return named and sides_of_column(column) is None


def columns_of_raters(columns: Sequence[Column]) -> Iterator[Column]:
    """Yield several raters' columns side by side, such as `rater_1` and `rater_2`, as one whose values are lists."""
    by_stem: dict[str, list[Column]] = {}
    for column in columns:
        begins = _RATER.match(column.path)
        if begins is not None and _may_hold_labels(column):
            by_stem.setdefault(begins[0], []).append(column)

    for stem, raters in by_stem.items():
        if len(raters) > 1:
            rows = zip(*(rater.values for rater in raters), strict=True)
            yield Column(f"{stem}*", [list(row) for row in rows])


def names_rater(path: str) -> bool:
    """Return whether a column is named after one of several raters, as `rater_1` is."""
    return _RATER.match(path) is not None


def is_named_label(path: str) -> bool:
    """Return whether a name says that a column is a thumb or a rating."""
    return any(is_called(step, "label") for step in split_path(path)) or is_likely(path)


def _may_hold_labels(column: Column) -> bool:
    words = column.words
    if words and names_reactions(column.path):
        return max(map(len, words)) <= LONGEST_REACTIONS
    if not words or max(map(len, words)) > LONGEST_LABEL:
        return False
    # ratings may have many different numbers, labels few words
    if len(words) > (MOST_RATINGS if all(map(as_number, words)) else FEW_LABELS):
        return False

    if split_path(column.path):
        last = split_path(column.path)[-1]
    else:
        last = column.path

    if NO_LABELS & {*words_of(last)}:
        return False
    return not column.path.endswith(("count", "users", "type", "id"))


def _is_bare(word: str) -> bool:
    return re.fullmatch(r"\s*[+-]?[\d.,]+\s*", word) is not None


def sides_of_column(column: Column) -> dict[str, str] | None:
    """Return what a column's values mean as options, none for usual ones; None where nobody can tell."""
    words = column.words
    if names_reactions(column.path):
        return {} if any(map(_has_thumb, words)) else None

    numbers = set()
    for word in words:
        if number := as_number(word):
            numbers.add(float(number))

    is_scale = bool(_SCALES & {*words_of(column.path)})
    if numbers in CODES and len(numbers) == len(words) and not is_scale:
        return None

    # how likely somebody recommends: 7 and 8 are on neither side
    if "nps" in words_of(column.path) and numbers and max(numbers) <= NPS and min(numbers) >= 0:
        return {"positive": ">=9", "negative": "<=6"}

    named = is_named_label(column.path)
    return sides_of(words, one_is_enough=named)


def _has_thumb(reactions: str) -> bool:
    return any(is_usual(name) for name, _ in reactions_in(reactions) or ())


def sides_of(words: Sequence[str], *, one_is_enough: bool = False) -> dict[str, str] | None:
    """Return what values mean as options, none for usual ones; None where nobody can tell.

    Args:
        one_is_enough: Of two values, one whose meaning is known tells the other's.
    """
    if all(map(is_usual, words)):
        return {}

    # numbers alone: the two ends of their scale
    rating_values = set()
    for word in words:
        if number := as_number(word):
            rating_values.add(float(number))

    numbers = sorted(rating_values)
    if numbers and len(numbers) == len({*words}):
        low, high = bounds_of(numbers)
        return {"positive": f">={high:g}", "negative": f"<={low:g}"}

    # words: what each means; of two words one tells the other
    meant = {word: side_meant(word) for word in words}
    unknown = []
    for word, side in meant.items():
        if side is None:
            unknown.append(word)

    known_sides = set()
    for side in meant.values():
        if side not in (None, Label.NONE):
            known_sides.add(side)

    if one_is_enough and len(unknown) == 1 and len(words) == 2 and len(known_sides) == 1:
        if known_sides == {Label.POSITIVE}:
            other = Label.NEGATIVE
        else:
            other = Label.POSITIVE

        meant |= {unknown[0]: other}
    elif unknown:
        return None

    unrated_words = []
    for word, side in meant.items():
        if _is_named_unrated(word, side):
            unrated_words.append(word)

    sides = {
        "positive": [word for word, side in meant.items() if side is Label.POSITIVE],
        "negative": [word for word, side in meant.items() if side is Label.NEGATIVE],
        "unrated": unrated_words,
    }
    if not (sides["positive"] and sides["negative"]):
        return None
    spellings = {}
    for meaning, values in sides.items():
        if values:
            spellings[meaning] = ",".join(map(_quoted, values))

    return spellings


def _is_named_unrated(word: str, side: Label | None) -> bool:
    return side is Label.NONE and not is_missing(word)


def _quoted(word: str) -> str:
    return f'"{word}"' if "," in word else word


def is_plainly_label(words: Sequence[str]) -> bool:
    """Return whether a column's values are thumbs of both sides, and nothing else."""
    if {as_number(word) for word in words} in TWO_NUMBERS:
        return True

    sides = {side_meant(word) for word in words}
    both = {Label.POSITIVE, Label.NEGATIVE}
    return sides == both and all(map(is_usual, words)) and not any(map(as_number, words))


def meaning_of_labels(bad_rows: Sequence[BadRow], taken_labels: Sequence[str]) -> dict[str, object]:
    """Return options that say what unknown labels mean; none where other rows are bad, too, or nobody can tell.

    Args:
        taken_labels: Spellings that were taken.
    """
    if not all(row.of_label for row in bad_rows):
        return {}

    options: dict[str, object] = {}
    for row in bad_rows:
        options |= {name: value for name, value in row.option.items() if value is not None}

    # words that nobody knew, beside those that were taken, show the sides together
    unknown = {row.label for row in bad_rows} - {""}
    if not unknown:
        return options

    words = []
    for word in dict.fromkeys((*sorted(unknown), *taken_labels)):
        if word.strip().casefold() not in MISSING:
            words.append(word)

    filled_words = []
    for word in words:
        if word != EMPTY:
            filled_words.append(word)

    sides = sides_of(filled_words)
    return {} if sides is None else {**options, **sides}


def values_told(column: Column, most: int = FEW_LABELS) -> str:
    """Return the values of a column with their numbers, the most frequent first."""
    counts: dict[str, int] = {}
    for value in column.values:
        for item in value if isinstance(value, list) else [value]:
            if item not in (None, "", [], {}):
                counts[str(item)] = counts.get(str(item), 0) + 1

    most_frequent = sorted(counts.items(), key=lambda pair: -pair[1])[:most]
    return ", ".join(f"{value} ({times})" for value, times in most_frequent)


def is_of_users(
    column: Column,
    owners: Sequence[object],
    sides: Sequence[str | None],
) -> bool:
    """Return whether a column says something of what users say, turn by turn, as a guess at their mood does.

    Args:
        owners: The conversation of each row.
        sides: Whose turn each row is.
    """
    filled = []
    for value in column.values:
        filled.append(value not in (None, "", [], {}))

    shares = {}
    for side in ("user", "assistant"):
        filled_of_side = []
        for is_filled, row_side in zip(filled, sides, strict=True):
            if row_side == side:
                filled_of_side.append(is_filled)

        shares[side] = _share(filled_of_side)

    if shares["user"] < 0.5 or shares["assistant"] > 0.1:
        return False

    # of several turns in most conversations, as a label of the whole is not
    several = []
    for owner, is_filled, row_side in zip(owners, filled, sides, strict=True):
        if is_filled and row_side == "user":
            several.append(str(owner))

    return len({*several}) < 0.8 * len(several)


def _share(of: Sequence[bool]) -> float:
    return sum(of) / len(of) if of else 0.0


def in_order_of_likelihood(columns: Sequence[Column]) -> Iterator[tuple[Column, float]]:
    """Yield the columns that may be the label, the likeliest first."""
    together = []
    for raters in columns_of_raters(columns):
        if label_likelihood(raters) > 0:
            together.append(raters)

    for raters in together:
        yield (raters, 2.0)

    likelihoods = {column: label_likelihood(column) for column in columns}
    for column in sorted(columns, key=lambda candidate: likelihoods[candidate], reverse=True):
        if likelihoods[column] > 0:
            yield column, likelihoods[column]
