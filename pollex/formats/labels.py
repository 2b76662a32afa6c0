"""Meaning of a log's thumbs: usual spellings, custom spellings, and numeric ratings."""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pollex.conversations.conversation import BOUNDS, Label
from pollex.conversations.logs import NOT_RATED
from pollex.errors import BadInput, WrongUse, spell
from pollex.text import count, printable

POSITIVE = """
    up, thumb_up, thumbs_up, thumbsup, 👍, :+1:, :thumbsup:, 1, true, t, yes, y, positive, pos, good, like, liked, love,
    loved, satisfied, sat, helpful, upvote, upvoted, success, solved, resolved, happy, c,
    correct, pass, passed, accepted, accept, :thumbs_up:, approved
"""
NEGATIVE = """
    down, thumb_down, thumbs_down, thumbsdown, 👎, :-1:, :thumbsdown:, 0, -1, false, f, no, n, negative, neg, bad,
    dislike, disliked, hate, hated, unsatisfied, dissatisfied, dsat, unhelpful, not_helpful, downvote, downvoted,
    failure, unsolved, unresolved, unhappy, i, incorrect, fail, failed, rejected, reject, :thumbs_down:
"""
MISSING = frozenset(
    (
        *("", "none", "null", "nil", "na", "n/a", "-", "?", "unknown", "unrated", "unlabelled", "unlabeled"),
        *("offered", "unoffered", "unscored"),
    )
)
"""What stands for no label at all. `nan` isn't among them: it is a computation that went wrong."""

NEITHER = "neither"
"""What a value is taken for that is on no side, and no word for a missing label."""
EMPTY = "(empty)"
THUMB_NUMBERS = frozenset(["1", "0", "-1"])
"""Numbers that are thumbs where a field of ratings holds no others; among 1 to 5 stars, 1 is no thumb up."""

_COMPARISON = re.compile(r"\s*(>=|<=|==|=|>|<)\s*([+-]?\d+(?:\.\d+)?)\s*")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_EMOJI_VARIANTS = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
_SPACES = re.compile(r"(?<=\w)[\s-]+(?=\w)")


@dataclass(frozen=True, slots=True)
class RatingBound:
    """A rating above or below a bound."""

    sign: str
    bound: float

    def matches(self, value: str | float) -> bool:
        return isinstance(value, float) and _COMPARE[self.sign](value, self.bound)


@dataclass(frozen=True, slots=True)
class Spellings:
    """One of some words, folded."""

    words: frozenset[str]

    def matches(self, value: str | float) -> bool:
        return _key(value) in self.words


Rule = RatingBound | Spellings
"""Tells whether a label's value belongs to a class."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Turns a log's values into labels.

    Attributes:
        numbers: Whether the user said which numbers count; numbers on neither side are no labels then.
        said: Number of values by spelling and what they were taken for, a label or `NEITHER`.
    """

    positive: Rule
    negative: Rule
    numbers: bool = False
    said: Counter[tuple[str, str]] = field(default_factory=Counter, compare=False, repr=False)

    @classmethod
    def of(cls, positive: str | None, negative: str | None) -> Verdicts:
        """Parse `--positive` and `--negative`, with the usual spellings as default.

        Raises:
            WrongUse: A comparison that can't be read, one without its opposite, or a spelling on both sides.
        """
        rules = _rule(positive, "positive", POSITIVE), _rule(negative, "negative", NEGATIVE)
        compared = [isinstance(rule, RatingBound) for rule in rules]
        if any(compared) and (positive is None or negative is None):
            missing = "negative" if negative is None else "positive"
            what = "a rating needs a bound on both sides"
            raise WrongUse(what, remedy="add the other", option={missing: BOUNDS[missing]})
        words = f"{positive or ''},{negative or ''}".split(",")
        numbers = any(compared) or any(isinstance(_folded(word), float) for word in words)
        return cls(*_apart(rules, (positive, negative)), numbers)

    def label(self, value: object, name: str = "FIELD") -> Label:
        """Return the label of a value; a list of ratings counts by its mean.

        Raises:
            BadInput: The value isn't known, or isn't one that a label can have.
            WrongUse: The value matches both sides.
        """
        if isinstance(value, dict) and value:
            what = f"the label is an object ({printable(', '.join(value), 60)})"
            inside = f"{name}.{printable(next(iter(value), 'x'), 40)}"
            raise BadInput(what, remedy="name the field inside it", option={"label_field": inside})
        folded = _folded(value)
        if folded in MISSING:
            self.said[show_value(value), Label.NONE] += 1
            return Label.NONE
        good, bad = self.positive.matches(folded), self.negative.matches(folded)
        if good and bad:
            raise WrongUse(f"the label {value!r} matches positive and negative", remedy="draw the bounds apart")
        if good or bad:
            label = Label.POSITIVE if good else Label.NEGATIVE
            self.said[show_value(value), label] += 1
            return label
        if self.numbers and isinstance(folded, float):
            self.leave(value)
            return Label.NONE
        raise _unknown(value, self)

    @property
    def compared(self) -> bool:
        """Whether the user gave bounds."""
        return isinstance(self.positive, RatingBound)

    def leave(self, value: object) -> None:
        """Count a value that is no label as it stands."""
        self.said[as_number(value) or show_value(value), NEITHER] += 1


def as_number(value: object) -> str:
    """Return a rating's spelling, equal for 1, 1.0 and "1"; empty for what is no number."""
    try:
        folded = _folded(value)
    except BadInput:
        return ""
    return f"{folded:g}" if isinstance(folded, float) else ""


def rating_of(value: object) -> str:
    """Return what stands in a field of ratings: a number, `EMPTY`, or what it is in its place."""
    if isinstance(value, dict):
        return "an object"
    return as_number(value) or ("a list" if isinstance(value, list) and value else show_value(value))


def show_value(value: object) -> str:
    """Return a value as lists of values show it."""
    return EMPTY if value is None or value in ("", [], {}) else printable(str(value), 40)


def is_usual(value: object) -> bool:
    """Return whether a value is a usual spelling of a thumb, and no free text."""
    try:
        return Verdicts.of(None, None).label(value) is not Label.NONE
    except BadInput:
        return False


def _rule(text: str | None, option: str, usual: str) -> Rule:
    if text is None:
        return _spellings(usual)
    if found := _COMPARISON.fullmatch(text):
        return RatingBound(found.group(1), float(found.group(2)))
    if text.strip()[:1] in ("<", ">", "="):
        raise WrongUse(f"{option} {text} can't be read", remedy="write a comparison like '>=4', or spellings: up,great")
    return _spellings(text)


def _spellings(words: str) -> Spellings:
    return Spellings(frozenset(_key(_folded(word)) for word in words.split(",")))


def _apart(rules: tuple[Rule, Rule], given: tuple[str | None, str | None]) -> tuple[Rule, Rule]:
    """Remove spellings given for one side from the usual ones of the other."""
    positive, negative = rules
    if not isinstance(positive, Spellings) or not isinstance(negative, Spellings):
        return rules
    if given[0] is None:
        return Spellings(positive.words - negative.words), negative
    if given[1] is None:
        return positive, Spellings(negative.words - positive.words)
    if both := positive.words & negative.words:
        raise WrongUse(f"{min(both)!r} is in positive and negative", remedy="give each spelling one side")
    return rules


def _folded(value: object) -> str | float:
    """Normalize a value: a number if it reads as one, else a case-folded spelling."""
    if isinstance(value, list):
        return _mean(value)
    if value is None or value == {}:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return _finite(value)
    if not isinstance(value, str):
        raise BadInput(f"the label is {type(value).__name__}", remedy="give one label a conversation")
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return _finite(float(text))
    text = _EMOJI_VARIANTS.sub("", text).casefold()
    return text if text in MISSING else _SPACES.sub("_", text)


def _key(folded: str | float) -> str:
    return f"{folded:.17g}" if isinstance(folded, float) else folded


def _mean(ratings: list[object]) -> str | float:
    """Return the mean of a list of ratings without missing ones; no label if empty."""
    folded = [rating for rating in map(_folded, ratings) if rating not in MISSING]
    numbers = [rating for rating in folded if isinstance(rating, float)]
    if len(numbers) < len(folded):
        raise BadInput("the label is a list, and not of numbers", remedy="give one label a conversation")
    return math.fsum(numbers) / len(numbers) if numbers else ""


def _finite(number: float) -> float:
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise BadInput(f"the label is {value}, no number", remedy="leave the field empty where there is no label")
    return value


def _unknown(value: object, verdicts: Verdicts) -> BadInput:
    if verdicts.compared:
        return BadInput(f"the label {value!r:.60} isn't a number", remedy="leave positive and negative to spellings")
    advice = f"for ratings: {spell(**BOUNDS)}"
    if not isinstance(_folded(value), float):
        advice = f"others: {spell(positive='A,B', negative='C,D')}"
    return BadInput(f"unknown label {value!r:.60}", remedy=f"known are {_known(verdicts)}; {advice}")


def _known(verdicts: Verdicts) -> str:
    if verdicts == Verdicts.of(None, None):
        return "up/down, 1/0, true/false, yes/no, 👍/👎, positive/negative, good/bad, like/dislike"
    words = [sorted(rule.words)[:8] for rule in (verdicts.positive, verdicts.negative) if isinstance(rule, Spellings)]
    return printable(" and ".join(", ".join(side) for side in words), 200)


MOST_TOLD = 8
"""Values that a note lists."""
SCALES = (1, 2, 3, 5, 7, 10, 100)
"""Usual highest ratings."""

Said = Mapping[tuple[str, str], int]
"""Number of values by spelling and what they were taken for."""


def left_note(field: str, said: Said, *, compared: bool = False) -> list[str]:
    """Return a note on the values that were not taken; nothing where there are none.

    Args:
        compared: Whether the user gave bounds.
    """
    left = {value: n for (value, meant), n in said.items() if meant == NEITHER}
    if not left:
        return []
    most = sorted(left.items(), key=lambda one: -one[1])
    listed = ", ".join(f"{value} ({n})" for value, n in most[:MOST_TOLD])
    more = f" and {len(left) - MOST_TOLD} more values" if len(left) > MOST_TOLD else ""
    rows = count(sum(left.values()), "row counts", "rows count")
    begins = f"{field}:" if any(_taken(said).values()) else f"{field!r} holds ratings:"
    what = f"{begins} {listed}{more} {'is' if len(left) == 1 else 'are'} neither up nor down, and {rows} {NOT_RATED}"
    return [f"{what}; {_remedy(field, said, compared)}"]


def _remedy(field: str, said: Said, compared: bool) -> str:
    left = sorted(float(value) for value, meant in said if meant == NEITHER and as_number(value))
    if not left:
        return f"name the field inside: {spell(label_field=f'{field}.NAME')}"
    if compared:
        return _on_either_side(positive=f">={left[0]:g}", negative=f"<={left[-1]:g}")
    low, high = bounds_of(sorted({float(value) for value, _ in said if as_number(value)}))
    taken = _taken(said)
    if not any(taken.values()) and not {f"{number:g}" for number in left} <= THUMB_NUMBERS:
        return f"to take them: {spell(positive=f'>={high:g}', negative=f'<={low:g}')}"
    sides = {"positive": [one for one in left if one >= high], "negative": [one for one in left if one <= low]}
    undecided = not any(sides.values())
    rules = {side: [*taken[side], *(f"{one:g}" for one in left if undecided or one in sides[side])] for side in sides}
    options = {side: ",".join(values) for side, values in rules.items() if values}
    return _on_either_side(**options) if undecided else f"to take them: {spell(**options)}"


def _on_either_side(positive: str, negative: str) -> str:
    return f"to take them: {spell(positive=positive)} or {spell(negative=negative)}"


def _taken(said: Said) -> dict[str, list[str]]:
    return {side.value: [value for value, meant in said if meant == side] for side in (Label.POSITIVE, Label.NEGATIVE)}


def bounds_of(ratings: Sequence[float]) -> tuple[float, float]:
    """Return up to where a rating is bad, and from where it is good: 2 and 4 of five stars, 4 and 7 of ten."""
    if ratings[0] < 0:
        return max(one for one in ratings if one < 0), min((one for one in ratings if one > 0), default=1)
    top = next((scale for scale in SCALES if ratings[-1] <= scale), ratings[-1])
    return (0.4, 0.7) if top == 1 else (top * 4 // 10 or ratings[0], -(-top * 7 // 10))
