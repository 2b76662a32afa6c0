"""Two columns that are one label: `thumbs_up` and `thumbs_down`, counts or yes and no."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from pollex.conversations.conversation import Label
from pollex.formats.labels import MISSING_LABEL_SPELLINGS
from pollex.text import JsonObject

_OPPOSITE_WORD_PAIRS = """
    up:down good:bad like:dislike liked:disliked likes:dislikes positive:negative pos:neg
    upvote:downvote upvotes:downvotes upvoted:downvoted thumbsup:thumbsdown thumbup:thumbdown
    helpful:unhelpful helpful:not_helpful useful:useless useful:not_useful happy:unhappy
    satisfied:dissatisfied satisfied:unsatisfied satisfied:not_satisfied sat:dsat
    gut:schlecht hoch:runter hilfreich:nicht_hilfreich positiv:negativ bueno:malo bien:mal
    bon:mauvais utile:inutile buono:cattivo goed:slecht 赞同:反对 赞:踩 点赞:点踩
"""


def _parse_opposite_pairs() -> dict[str, list[str]]:
    opposites: dict[str, list[str]] = {}
    for pair in _OPPOSITE_WORD_PAIRS.split():
        up, _, down = pair.partition(":")
        opposites.setdefault(up, []).append(down)
    return opposites


NEGATIVE_WORDS_BY_POSITIVE = _parse_opposite_pairs()
"""Words for a thumb up in names of columns, with their opposites."""

_NO_SPELLINGS = frozenset(("0", "0.0", "false", "no", "f", "n"))
_YES_SPELLINGS = frozenset(("1", "1.0", "true", "yes", "t", "y", "x"))


class OppositeColumns(NamedTuple):
    """The names of the two columns."""

    up: str
    down: str

    def __str__(self) -> str:
        return f"{self.up!r} and {self.down!r}"


def find_opposite_thumb_columns(fields: JsonObject) -> OppositeColumns | None:
    """Return the two columns of a row that are one label; None where there aren't two, or several.

    A row that has one of them alone, such as `userBadFeedback`, has an empty name for the other.
    """
    pair = _find_column_pair(frozenset(fields))
    if pair is None or not all(_can_be_thumb_count(fields[name]) for name in pair if name):
        return None
    return pair


@lru_cache(maxsize=1024)
def _find_column_pair(names: frozenset[str]) -> OppositeColumns | None:
    spelled = {_spell_with_underscores(name): name for name in names}
    pairs = []
    for words, name in spelled.items():
        for other in _iterate_opposite_names(words):
            if other in spelled:
                pairs.append(OppositeColumns(name, spelled[other]))

    # with two such pairs, nobody can tell which is the label
    if pairs:
        return pairs[0] if len(pairs) == 1 else None

    # one side alone, where the name is about feedback
    alone = []
    for words, name in spelled.items():
        if _FEEDBACK_NAME_PATTERN.search(words):
            alone.append((name, _find_named_side(words)))

    sided = []
    for name, side in alone:
        if side:
            sided.append(OppositeColumns(name, "") if side == "up" else OppositeColumns("", name))

    return sided[0] if len(sided) == 1 else None


_FEEDBACK_NAME_PATTERN = re.compile("_(feedback|rating|vote|reaction)s?_")
"""Words of a name that is about feedback, whatever side it is of."""


def _find_named_side(words: str) -> str:
    """Return the side that a name alone speaks for; empty for names that speak for none."""
    ups = []
    for up in NEGATIVE_WORDS_BY_POSITIVE:
        if f"_{up}_" in words:
            ups.append(up)

    downs = []
    for listed in NEGATIVE_WORDS_BY_POSITIVE.values():
        for down in listed:
            if f"_{down}_" in words:
                downs.append(down)

    if ups and not downs:
        return "up"
    if downs and not ups:
        return "down"
    return ""


def _spell_with_underscores(name: str) -> str:
    """Return a name as words with `_` between them and around them."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    words = re.sub(r"[\s_.-]+", "_", apart).casefold().strip("_")
    return f"_{words}_"


def _iterate_opposite_names(words: str) -> Iterable[str]:
    """Return the names that say the opposite of one that says something good."""
    for up, downs in NEGATIVE_WORDS_BY_POSITIVE.items():
        if up.isascii() and f"_{up}_" in words:
            for down in downs:
                yield words.replace(f"_{up}_", f"_{down}_", 1)
        elif not up.isascii() and up in words:
            for down in downs:
                yield words.replace(up, down, 1)


def _can_be_thumb_count(value: object) -> bool:
    """Return whether a value is a count, a yes or a no, or what somebody wrote with such a thumb."""
    if isinstance(value, float):
        return value.is_integer()
    if isinstance(value, str):
        # a decimal such as 0.75 counts nothing
        return not re.fullmatch(r"\s*[+-]?\d*[.,]\d*[1-9]\d*\s*", value)
    return value is None or isinstance(value, bool | int)


def does_value_say_thumb_was_given(value: object) -> bool:
    """Return whether a count or a yes says that a thumb was given."""
    if isinstance(value, str):
        word = value.strip().casefold()
        return word not in MISSING_LABEL_SPELLINGS and word not in _NO_SPELLINGS
    return bool(value) and value == value and (not isinstance(value, int | float) or value > 0)


def get_written_comment(value: object) -> str:
    """Return what somebody wrote in place of a yes; empty for counts."""
    if not isinstance(value, str) or not does_value_say_thumb_was_given(value):
        return ""

    words = value.strip()
    if words.casefold() in _YES_SPELLINGS or words.replace(".", "").isdigit():
        return ""
    return words


def label_opposite_columns(pair: OppositeColumns, fields: JsonObject) -> tuple[Label, bool]:
    """Return the label of a row's two columns, and whether they contradict each other."""
    up, down = (does_value_say_thumb_was_given(fields.get(name)) for name in pair)
    if up and down:
        return Label.NONE, True
    if up:
        return Label.POSITIVE, False
    return (Label.NEGATIVE if down else Label.NONE), False
