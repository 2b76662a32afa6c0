"""Which column of an unknown log may hold the thumb, and what its values mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pollex.conversations.conversation import Label
from pollex.conversations.logs import BadRow
from pollex.formats.columns import Column
from pollex.formats.feedback import is_field_named_like_feedback
from pollex.formats.labels import (
    AMBIGUOUS_CODE_SETS,
    MAX_NPS_RATING,
    MISSING_LABEL_SPELLINGS,
    NAME_SHOWN_FOR_EMPTY_LABEL,
    RATING_NAME_WORDS,
    infer_rating_bounds,
    infer_thumb_side,
    is_missing_label,
    is_usual_thumb,
    normalize_number,
)
from pollex.formats.names import is_named_as_part, normalize_word, split_name_words
from pollex.formats.paths import split_path
from pollex.formats.reactions import is_reactions_column_name, parse_reactions

MAX_LABEL_WORDS = 12
"""Different words that a label has at most."""
MAX_RATING_VALUES = 101
"""Different numbers that a rating has at most."""
MAX_LABEL_CHARS = 40
MAX_REACTIONS_CHARS = 400
"""Characters of all reactions on a message."""
BINARY_NUMBER_SETS = ({"0", "1"}, {"-1", "1"}, {"0", "100"})
"""Numbers that are two sides, where a column has no others."""
AMBIGUOUS_YES_NO_WORDS = frozenset(
    "true false yes no y n t f ja nein si oui non sim nao tak nie".split()  # noqa: SIM905
)
"""Words that say yes or no to anything, and not to a thumb alone."""
NON_LABEL_NAME_WORDS = frozenset(
    """sentiment confidence delivered delivery predicted status state intent priority severity
    lead health credit risk fraud churn propensity relevance similarity toxicity perplexity""".split()  # noqa: SIM905
)
"""Words in names of what a machine says of a turn or of a customer, and not whoever asked."""
VAGUE_LABEL_NAME_WORDS = frozenset(
    "score scores note nota punteggio puntuacion puntaje pontuacao grade flag flags outcome".split()  # noqa: SIM905
)
"""Words in names of labels that name other figures, too: one that says more goes before them."""
COUNTING_NAME_WORDS = ("count", "users", "type", "id")
"""How names end of what counts labels, or names them."""
SCHOOL_GRADE_WORDS = frozenset(("schulnote", "schulnoten"))
SCHOOL_GRADES = frozenset((1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
_RATER_NAME_PATTERN = re.compile(
    r"(?i)(?:rater|annotator|judge|reviewer|labell?er|coder|expert|assessor|evaluator|bewerter)[_ .-]?(?=\w)"
)


def estimate_label_likelihood(column: Column) -> float:
    """Return how much a column's values look like thumbs or ratings whose meaning is known, from 0 to 2."""
    words = column.words
    if not _may_hold_labels(column) or infer_thumb_sides_of_column_values(column) is None:
        return 0.0

    usual = all(map(is_usual_thumb, words))
    numbers = all(map(normalize_number, words))
    if numbers and len(words) < 2:
        return 0.0
    yes_or_no = all(normalize_word(word) in AMBIGUOUS_YES_NO_WORDS for word in words)
    if is_label_column_name(column.path):
        # a yes in an object such as `survey` or `quality` may say anything: that somebody answered
        if yes_or_no and not _is_named_itself(column.path):
            return 0.6 if len(words) > 1 else 0.0
        if usual and not numbers:
            return 2.0
        return 1.4 if _is_named_vaguely(column.path) else 1.5
    if numbers:
        # a number alone may be anything, `4/5` and `80 %` hardly
        return 0.9 if not any(map(_is_bare_number, words)) else 0.0
    # yes and no may be about anything; thumbs are missing in some rows
    if yes_or_no:
        if column.filled < len(column.values) and len(words) == 2:
            return 0.6
        return 0.0
    return 1.0 if len(words) > 1 else 0.0


def is_ambiguous_label_column(column: Column) -> bool:
    """Return whether a column is named like a thumb, and nobody can tell what its few values mean."""
    if not _may_hold_labels(column) or len(column.words) < 2:
        return False

    named = any(is_named_as_part(step, "label") for step in split_path(column.path))
    return named and infer_thumb_sides_of_column_values(column) is None


def iterate_merged_rater_columns(columns: Sequence[Column]) -> Iterator[Column]:
    """Yield several raters' columns side by side, such as `rater_1` and `rater_2`, as one whose values are lists."""
    by_stem: dict[str, list[Column]] = {}
    for column in columns:
        begins = _RATER_NAME_PATTERN.match(column.path)
        if begins is not None and _may_hold_labels(column):
            by_stem.setdefault(begins[0], []).append(column)

    for stem, raters in by_stem.items():
        if len(raters) > 1:
            rows = zip(*(rater.values for rater in raters), strict=True)
            yield Column(f"{stem}*", [list(row) for row in rows])


def is_rater_column_name(path: str) -> bool:
    """Return whether a column is named after one of several raters, as `rater_1` is."""
    return _RATER_NAME_PATTERN.match(path) is not None


def is_label_column_name(path: str) -> bool:
    """Return whether a name says that a column is a thumb or a rating."""
    return any(
        is_named_as_part(step, "label") for step in split_path(path)
    ) or is_field_named_like_feedback(path)


def _is_named_itself(path: str) -> bool:
    """Return whether the last step of a path says that it is a label, and not the object around it alone."""
    return is_label_column_name((split_path(path) or [path])[-1])


def _is_named_vaguely(path: str) -> bool:
    """Return whether the last step of a path is named like a label by a vague word alone."""
    words = split_name_words((split_path(path) or [path])[-1])
    naming = [word for word in words if is_named_as_part(word, "label")]
    return bool(naming) and VAGUE_LABEL_NAME_WORDS.issuperset(naming)


def _may_hold_labels(column: Column) -> bool:
    words = column.words
    if words and is_reactions_column_name(column.path):
        return max(map(len, words)) <= MAX_REACTIONS_CHARS
    if not words or max(map(len, words)) > MAX_LABEL_CHARS:
        return False
    # ratings may have many different numbers, labels few words
    if len(words) > (MAX_RATING_VALUES if all(map(normalize_number, words)) else MAX_LABEL_WORDS):
        return False

    if split_path(column.path):
        last = split_path(column.path)[-1]
    else:
        last = column.path

    name_words = split_name_words(last)
    if NON_LABEL_NAME_WORDS & {*name_words}:
        return False
    # `ratingId` and `ratingid`, and no word that ends so, as `tevredenheid`
    last_word = (name_words or [""])[-1]
    return last_word not in COUNTING_NAME_WORDS and not any(
        last_word.endswith(end) and is_named_as_part(last_word.removesuffix(end), "label")
        for end in COUNTING_NAME_WORDS
    )


def _is_bare_number(word: str) -> bool:
    return re.fullmatch(r"\s*[+-]?[\d.,]+\s*", word) is not None


def infer_thumb_sides_of_column_values(column: Column) -> dict[str, str] | None:
    """Return what a column's values mean as options, none for usual ones; None where nobody can tell."""
    words = column.words
    if is_reactions_column_name(column.path):
        return {} if any(map(_has_thumb_reaction, words)) else None

    numbers = set()
    for word in words:
        if number := normalize_number(word):
            numbers.add(float(number))

    is_scale = bool(RATING_NAME_WORDS & {*split_name_words(column.path)})
    if numbers in AMBIGUOUS_CODE_SETS and len(numbers) == len(words) and not is_scale:
        return None

    # of German school grades 1 is the best and 6 the worst
    if SCHOOL_GRADE_WORDS & {*split_name_words(column.path)} and numbers <= SCHOOL_GRADES:
        return {"positive": "<=2", "negative": ">=5"}
    # how likely somebody recommends: 7 and 8 are on neither side
    if (
        "nps" in split_name_words(column.path)
        and numbers
        and max(numbers) <= MAX_NPS_RATING
        and min(numbers) >= 0
    ):
        return {"positive": ">=9", "negative": "<=6"}

    named = is_label_column_name(column.path)
    return infer_thumb_sides_of_words(words, one_is_enough=named)


def _has_thumb_reaction(reactions: str) -> bool:
    return any(is_usual_thumb(name) for name, _ in parse_reactions(reactions) or ())


def infer_thumb_sides_of_words(
    words: Sequence[str], *, one_is_enough: bool = False
) -> dict[str, str] | None:
    """Return what values mean as options, none for usual ones; None where nobody can tell.

    Args:
        one_is_enough: Of two values, one whose meaning is known tells the other's.
    """
    if all(map(is_usual_thumb, words)):
        return {}

    # numbers alone: the two ends of their scale
    rating_values = set()
    for word in words:
        if number := normalize_number(word):
            rating_values.add(float(number))

    numbers = sorted(rating_values)
    if numbers and len(numbers) == len({*words}):
        low, high = infer_rating_bounds(numbers)
        return {"positive": f">={high:g}", "negative": f"<={low:g}"}

    # words: what each means; of two words one tells the other
    meant = {word: infer_thumb_side(word) for word in words}
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
        if _is_neutral_word(word, side):
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
            spellings[meaning] = ",".join(map(_quote_if_comma, values))

    return spellings


def _is_neutral_word(word: str, side: Label | None) -> bool:
    return side is Label.NONE and not is_missing_label(word)


def _quote_if_comma(word: str) -> str:
    return f'"{word}"' if "," in word else word


def are_values_plain_thumbs(words: Sequence[str]) -> bool:
    """Return whether a column's values are thumbs of both sides, and nothing else."""
    if {normalize_number(word) for word in words} in BINARY_NUMBER_SETS:
        return True

    sides = {infer_thumb_side(word) for word in words}
    both = {Label.POSITIVE, Label.NEGATIVE}
    return (
        sides == both and all(map(is_usual_thumb, words)) and not any(map(normalize_number, words))
    )


def infer_label_options(
    bad_rows: Sequence[BadRow], taken_labels: Sequence[str]
) -> dict[str, object]:
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
        if word.strip().casefold() not in MISSING_LABEL_SPELLINGS:
            words.append(word)

    filled_words = []
    for word in words:
        if word != NAME_SHOWN_FOR_EMPTY_LABEL:
            filled_words.append(word)

    sides = infer_thumb_sides_of_words(filled_words)
    return {} if sides is None else {**options, **sides}


def format_value_counts(column: Column, most: int = MAX_LABEL_WORDS) -> str:
    """Return the values of a column with their numbers, the most frequent first."""
    counts: dict[str, int] = {}
    for value in column.values:
        for item in value if isinstance(value, list) else [value]:
            if item not in (None, "", [], {}):
                counts[str(item)] = counts.get(str(item), 0) + 1

    most_frequent = sorted(counts.items(), key=lambda pair: -pair[1])[:most]
    return ", ".join(f"{value} ({times})" for value, times in most_frequent)


def is_about_user_turns(
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

        shares[side] = _measure_share_of_similar_values(filled_of_side)

    if shares["user"] < 0.5 or shares["assistant"] > 0.1:
        return False

    # of several turns in most conversations, as a label of the whole is not
    several = []
    for owner, is_filled, row_side in zip(owners, filled, sides, strict=True):
        if is_filled and row_side == "user":
            several.append(str(owner))

    return len({*several}) < 0.8 * len(several)


def _measure_share_of_similar_values(of: Sequence[bool]) -> float:
    return sum(of) / len(of) if of else 0.0


def rank_label_columns(columns: Sequence[Column]) -> Iterator[tuple[Column, float]]:
    """Yield the columns that may be the label, the likeliest first."""
    together = []
    for raters in iterate_merged_rater_columns(columns):
        if estimate_label_likelihood(raters) > 0:
            together.append(raters)

    for raters in together:
        yield (raters, 2.0)

    likelihoods = {column: estimate_label_likelihood(column) for column in columns}
    for column in sorted(columns, key=lambda candidate: likelihoods[candidate], reverse=True):
        if likelihoods[column] > 0:
            yield column, likelihoods[column]
