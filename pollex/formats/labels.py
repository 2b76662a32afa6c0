"""Meaning of a log's thumbs: usual spellings, custom spellings, and numeric ratings."""

from __future__ import annotations

import csv
import functools
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pollex.conversations.conversation import DEFAULT_RATING_BOUNDS, Label
from pollex.conversations.logs import NOT_RATED_NOTE_WORDS
from pollex.errors import BadInput, WrongUse, spell_options
from pollex.formats.names import (
    ARTICLES,
    INTENSIFIER_WORDS,
    LABEL_VALUES_MEANING_NO_RATING,
    NEGATION_WORDS,
    WORDS_MEANING_THUMB_DOWN,
    WORDS_MEANING_THUMB_UP,
    does_label_text_say_not_rated,
    normalize_word,
    remove_accents,
    split_name_words,
)
from pollex.formats.reactions import is_reactions_column_name, parse_reactions
from pollex.text import escape_controls, format_count

POSITIVE_SPELLINGS = """
    up, thumb_up, thumbs_up, thumbsup, 👍, :+1:, :thumbsup:, 1, true, t, yes, y, positive, pos, good, like, liked, love,
    loved, satisfied, sat, helpful, upvote, upvoted, success, solved, resolved, happy, c,
    correct, pass, passed, accepted, accept, :thumbs_up:, approved, very_satisfied,
    extremely_satisfied, somewhat_satisfied, promoter, great, excellent, awesome, vote_up, voted_up,
    😀, 😃, 😄, 😁, 😊, 🙂, ☺, 😍, 🥰, 🤩
"""
NEGATIVE_SPELLINGS = """
    down, thumb_down, thumbs_down, thumbsdown, 👎, :-1:, :thumbsdown:, 0, -1, false, f, no, n, negative, neg, bad,
    dislike, disliked, hate, hated, unsatisfied, dissatisfied, dsat, unhelpful, not_helpful, downvote, downvoted,
    failure, unsolved, unresolved, unhappy, i, incorrect, fail, failed, rejected, reject, :thumbs_down:,
    very_dissatisfied, very_unsatisfied, extremely_dissatisfied, somewhat_dissatisfied, not_satisfied,
    detractor, not_good, poor, terrible, awful, vote_down, voted_down,
    😠, 😡, 😞, 😟, 🙁, ☹, 😭, 😕, 😒, 😤
"""
UNRATED_SPELLINGS = """
    none null nil na n/a nan undefined - -- --- – — ? . unknown unrated unlabelled unlabeled offered
    unoffered unscored not_rated not_yet_rated no_rating no_feedback no_response no_answer no_vote
    not_answered not_available not_applicable not_given skipped skip pending missing empty
    neutral mixed neither passive neither_satisfied_nor_dissatisfied okay meh so_so average 😐 😑
"""
MISSING_LABEL_SPELLINGS = frozenset(
    ["", "k. a.", "n. a.", *UNRATED_SPELLINGS.split(), *LABEL_VALUES_MEANING_NO_RATING]
)
"""What stands for no label at all: nobody rated, or whoever did took no side."""

AMBIGUOUS_CODE_SETS = ({0.0, 1.0, 2.0}, {1.0, 2.0}, {0.0, 2.0})
"""Numbers that may be codes as well as a rating: of 1 and 2, either may be the thumb down."""
RATING_NAME_WORDS = frozenset("stars star rating ratings score points csat nps".split())  # noqa: SIM905
"""Words in names of numbers of which more is better."""
NEITHER_THUMB_VALUE = "neither"
"""What a value is taken for that is on no side, and no word for a missing label."""
_NEITHER_NOR_PATTERN = re.compile(
    r"(?:neither\b.*\bnor|weder\b.*\bnoch|ni\b.*\bni|ne\b.*\bne|nem\b.*\bnem|noch\b.*\bnoch"
    r"|varken\b.*\beller|hverken\b.*\beller|ani\b.*\bani)\b"
)
"""Words around two sides of which neither holds, without accents."""
NAME_SHOWN_FOR_EMPTY_LABEL = "(empty)"
THUMB_NUMBERS = frozenset(["1", "0", "-1"])
"""Numbers that are thumbs where a field of ratings holds no others; among 1 to 5 stars, 1 is no thumb up."""

_DECIMAL_COMMA_PATTERN = re.compile(r"[+-]?\d{1,3},\d{1,2}")
_FRACTION_RATING_PATTERN = re.compile(
    r"([+-]?\d+(?:[.,]\d+)?)\s*(?:/|out of|of|von|sur|de|su|van)\s*\d+(?:[.,]0+)?"
)
_RATING_WITH_UNIT_PATTERN = re.compile(
    r"([+-]?\d+(?:[.,]\d+)?)\s*(?:%|stars?|sterne?|étoiles?|estrellas?|stelle?|points?|punkte?|⭐|★)"
)
_STARS_PATTERN = re.compile("(?:(⭐|🌟|★)+)[☆✩]*")
_COMPARISON_PATTERN = re.compile(r"\s*(>=|<=|==|=|>|<)\s*([+-]?\d+(?:\.\d+)?)\s*")
_NUMBER_PATTERN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_COMPARISON_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_EMOJI_VARIANT_PATTERN = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
_SKIN_TONE_PATTERN = re.compile(
    r"(?::?:skin-tone-\d|_tone\d|(?:_medium)?(?:_light|_dark)?_skin_tone)(?=:?$)"
)
"""Skin tones as Slack and Discord write them behind the name of a reaction."""
_INNER_SPACE_PATTERN = re.compile(r"(?<=\w)[\s-]+(?=\w)")


class BadLabel(BadInput):
    """A value that is no label; the rest of its row can be read.

    Attributes:
        value: How it is spelled, where it is a word that isn't known.
    """

    value = ""


@dataclass(frozen=True, slots=True)
class RatingBound:
    """A rating above or below a bound."""

    sign: str
    bound: float

    def matches(self, value: str | float) -> bool:
        return isinstance(value, float) and _COMPARISON_OPERATORS[self.sign](value, self.bound)


@dataclass(frozen=True, slots=True)
class SpellingRule:
    """One of some words, folded."""

    words: frozenset[str]

    def matches(self, value: str | float) -> bool:
        return _make_spelling_key(value) in self.words


LabelRuleOfOneSide = RatingBound | SpellingRule
"""Tells whether a label's value belongs to a class."""


@dataclass(frozen=True, slots=True)
class LabelRules:
    """Turns a log's values into labels.

    Attributes:
        numbers: Whether the user said which numbers count; numbers on neither side are no labels
            then.
        unrated: Spellings that the user named as no label.
        said: Number of values by spelling and what they were taken for, a label or `NEITHER_THUMB_VALUE`.
    """

    positive: LabelRuleOfOneSide
    negative: LabelRuleOfOneSide
    numbers: bool = False
    unrated: SpellingRule | None = None
    said: Counter[tuple[str, str]] = field(
        default_factory=Counter,
        compare=False,
        repr=False,
    )

    @classmethod
    def of(
        cls,
        positive: str | None,
        negative: str | None,
        unrated: str | None = None,
    ) -> LabelRules:
        """Parse `--positive`, `--negative` and `--unrated`, with the usual spellings as default.

        `*` on one side stands for every other word.

        Raises:
            WrongUse: A comparison that can't be read, one without its opposite, or a spelling on
                both sides.
        """
        rules = (
            _parse_label_rule(positive, "positive", POSITIVE_SPELLINGS),
            _parse_label_rule(negative, "negative", NEGATIVE_SPELLINGS),
        )
        compared = [isinstance(rule, RatingBound) for rule in rules]
        if any(compared) and (positive is None or negative is None):
            missing = "negative" if negative is None else "positive"
            what = "a rating needs a bound on both sides"
            raise WrongUse(
                what,
                hint="add the other",
                option={missing: DEFAULT_RATING_BOUNDS[missing]},
            )

        words = f"{positive or ''},{negative or ''}".split(",")
        numbers = any(compared) or any(isinstance(_normalize_value(word), float) for word in words)
        left = None
        if unrated is not None:
            left = _make_spelling_rule(unrated)

        return cls(*_separate_rules(rules, (positive, negative)), numbers, left)

    def label(self, value: object, name: str = "FIELD") -> Label:
        """Return the label of a value; a list of numbers counts by its mean, one of words by its majority.

        Raises:
            BadInput: The value isn't known, or isn't one that a label can have.
            WrongUse: The value matches both sides.
        """
        # an object or a list of raters
        if isinstance(value, dict) and value.keys() == {"value"}:
            return self.label(value["value"], name)
        if isinstance(value, dict) and value:
            what = f"the label is an object ({escape_controls(', '.join(value), 60)})"
            inside = f"{name}.{escape_controls(next(iter(value), 'x'), 40)}"
            raise BadLabel(
                what,
                hint="name the field inside it",
                option={"label_field": inside},
            )
        if (several := _list_rater_words(value)) is not None:
            return self.majority(several, name)
        if is_reactions_column_name(name) and (reactions := parse_reactions(value)) is not None:
            return self._of_reactions(value, reactions)

        # by the spellings or bounds of each side, which may be what stands for nothing elsewhere
        folded = _normalize_value(value)
        good = self.positive.matches(folded)
        bad = self.negative.matches(folded)
        is_missing_here = folded in MISSING_LABEL_SPELLINGS and not good and not bad
        if is_missing_here or (self.unrated and self.unrated.matches(folded)):
            self.said[format_label_value(value), Label.NONE] += 1
            return Label.NONE

        # `*` is any other word
        if not good and not bad and isinstance(folded, str):
            good = ANY_OTHER_WORD in _get_rule_words(self.positive)
            bad = ANY_OTHER_WORD in _get_rule_words(self.negative)

        if good and bad:
            raise WrongUse(
                f"the label {value!r} matches positive and negative",
                hint="draw the bounds apart",
            )
        if good or bad:
            label = Label.POSITIVE if good else Label.NEGATIVE
            self.said[format_label_value(value), label] += 1
            return label
        # a number between the bounds is on neither side
        if self.numbers and isinstance(folded, float):
            self.leave(value)
            return Label.NONE
        raise _make_unknown_label_error(value, self)

    def _of_reactions(self, value: object, reactions: Sequence[tuple[str, int]]) -> Label:
        """Return what most of the reactions on a message say; none where they are no thumbs, or differ."""
        counts = Counter[Label]()
        for name, times in reactions:
            folded = _normalize_value(name)
            if self.positive.matches(folded):
                counts[Label.POSITIVE] += times
            elif self.negative.matches(folded):
                counts[Label.NEGATIVE] += times

        ups = counts[Label.POSITIVE]
        downs = counts[Label.NEGATIVE]
        label = _find_majority_label(ups, downs)
        self.said[format_label_value(value), label] += 1

        return label

    def majority(self, values: Sequence[object], name: str = "FIELD") -> Label:
        """Return the label that most of several raters gave; none where as many gave the other.

        Raises:
            BadInput: As for `label`.
        """
        labels = [self.label(value, name) for value in values]
        return _find_majority_label(labels.count(Label.POSITIVE), labels.count(Label.NEGATIVE))

    @property
    def compared(self) -> bool:
        """Whether the user gave bounds."""
        return isinstance(self.positive, RatingBound)

    def leave(self, value: object) -> None:
        """Count a value that is no label as it stands."""
        self.said[normalize_number(value) or format_label_value(value), NEITHER_THUMB_VALUE] += 1


def _find_majority_label(ups: int, downs: int) -> Label:
    if ups == downs:
        return Label.NONE
    return Label.POSITIVE if ups > downs else Label.NEGATIVE


def normalize_number(value: object) -> str:
    """Return a rating's spelling, equal for 1, 1.0 and "1"; empty for what is no number."""
    if isinstance(value, str) and value.isalpha():  # most labels are words
        return ""

    try:
        folded = _normalize_value(value)
    except BadInput:
        return ""

    return f"{folded:g}" if isinstance(folded, float) else ""


def _list_rater_words(value: object) -> list[object] | None:
    """Return what several raters said in words; None for one value, and for numbers."""
    if not isinstance(value, list) or not value:
        return None

    words = []
    for entry in value:
        if not isinstance(entry, list | dict) and not normalize_number(entry):
            words.append(entry)

    present = []
    for word in words:
        if _normalize_value(word) not in MISSING_LABEL_SPELLINGS:
            present.append(word)

    if present and len(words) == len(value):
        return list(value)
    return None


def normalize_rating(value: object) -> str:
    """Return what stands in a field of ratings: a number, `EMPTY`, or what it is in its place."""
    if isinstance(value, dict):
        return "an object"
    return normalize_number(value) or (
        "a list" if isinstance(value, list) and value else format_label_value(value)
    )


def format_label_value(value: object) -> str:
    """Return a value as lists of values show it."""
    if value is None or value in ("", [], {}):
        return NAME_SHOWN_FOR_EMPTY_LABEL
    return escape_controls(str(value), 40)


def is_usual_thumb(value: object) -> bool:
    """Return whether a value is a usual spelling of a thumb, and no free text."""
    try:
        return LabelRules.of(None, None).label(value) is not Label.NONE
    except BadInput:
        return False


def is_missing_label(word: str) -> bool:
    """Return whether a value says that nobody rated, or that whoever did took no side."""
    return _normalize_value(word) in MISSING_LABEL_SPELLINGS


_WORD_SEPARATOR_PATTERN = re.compile(r"[\s,.!?:;()/–—-]+")


@functools.lru_cache(maxsize=4096)
def infer_thumb_side(word: str) -> Label | None:
    """Return which thumb a value means in some languages, `Label.NONE` for neither; None where nobody can tell.

    Values such as `😀 Yes`, `Good, thanks` and `not helpful` are told by their words.
    """
    if normalize_number(word):
        return None
    if is_missing_label(word) or does_label_text_say_not_rated(word) or _says_neither(word):
        return Label.NONE
    if (side := _find_word_side(word)) is not None:
        return side

    split = _WORD_SEPARATOR_PATTERN.split(word.strip())
    # numbers are left out, but for those with a sign, such as +1
    parts = []
    for part in split:
        if part and (part[0] in "+-" or not normalize_number(part)):
            parts.append(part)

    if len(parts) == 1 and parts[0] != word:  # a sign beside the word: `Super!`
        return infer_thumb_side(parts[0])
    if len(parts) < 2:
        return _find_negated_side(normalize_word(word))

    # what the words at its end mean: `very good`, `not helpful`
    ends = []
    for start in range(1, len(parts)):
        ends.append(" ".join(parts[start:]))

    sides_of_ends = {_find_word_side(end) for end in ends} - {None}
    # a negation turns what is good without it
    negations = []
    for before, part in pairwise(["", *parts]):
        if normalize_word(part) in NEGATION_WORDS and normalize_word(before) not in ARTICLES:
            negations.append(part)

    if negations and sides_of_ends == {Label.POSITIVE}:
        return Label.NEGATIVE

    # what its first word means: `Good, thanks`
    first = Label.NONE if is_missing_label(parts[0]) else _find_word_side(parts[0])
    # a first word of neither side leaves it to those at the end
    if first is Label.NONE and len(parts) > 1:
        if len(sides_of_ends) == 1:
            return next(iter(sides_of_ends))
        return Label.NONE
    # `Nein, danke` says no; in `no sé`, the negation is about a word that nobody knows
    is_of_next = not re.match(r"\s*\w+\s*[,.;:!–—-]", word)
    if is_of_next and negations[:1] == parts[:1] and not sides_of_ends:
        return None
    if first is not None:
        return first
    if any(map(is_missing_label, ends)):
        return Label.NONE
    if len(sides_of_ends) == 1 and not negations:
        return next(iter(sides_of_ends))
    return None


def is_said_plainly(value: str) -> bool:
    """Return whether all words of a label's value are known, so that none can turn its meaning."""
    if is_missing_label(value) or does_label_text_say_not_rated(value) or _says_neither(value):
        return True
    if _find_word_side(value):
        return True

    unknown = []
    for part in _WORD_SEPARATOR_PATTERN.split(value.strip()):
        word = normalize_word(part)
        known = word in INTENSIFIER_WORDS or word in NEGATION_WORDS or _find_word_side(part)
        if part and not known and not normalize_number(part) and not is_missing_label(part):
            unknown.append(part)

    # one word alone is known by itself, as Chinese ones are
    return not unknown or unknown == [value.strip()]


def _says_neither(value: str) -> bool:
    """Return whether a label is on neither side in so many words: `ni satisfecho ni insatisfecho`."""
    return _NEITHER_NOR_PATTERN.match(remove_accents(value)) is not None


def _find_word_side(word: str) -> Label | None:
    """Return the side of a usual spelling, or of a word of some languages; None for others."""
    folded = normalize_word(word)
    try:
        label = LabelRules.of(None, None).label(word)
    except BadInput:
        label = Label.NONE

    if label is not Label.NONE:
        return label
    if folded in WORDS_MEANING_THUMB_UP:
        return Label.POSITIVE
    return Label.NEGATIVE if folded in WORDS_MEANING_THUMB_DOWN else None


def _find_negated_side(folded: str) -> Label | None:
    """Return the side of a word that begins with a negation, as Chinese ones do."""
    negated_words = set()
    for negation in NEGATION_WORDS:
        if not negation.isascii() and folded.startswith(negation):
            negated_words.add(folded.removeprefix(negation))

    return Label.NEGATIVE if negated_words & WORDS_MEANING_THUMB_UP else None


def _parse_label_rule(text: str | None, option: str, usual: str) -> LabelRuleOfOneSide:
    if text is None:
        return _make_spelling_rule(usual)
    if comparison := _COMPARISON_PATTERN.fullmatch(text):
        return RatingBound(comparison.group(1), float(comparison.group(2)))
    if text.strip()[:1] in ("<", ">", "="):
        raise WrongUse(
            f"{option} {text} can't be read",
            hint="write a comparison like '>=4', or spellings: up,great",
        )

    return _make_spelling_rule(text)


ANY_OTHER_WORD = "*"
"""Stands for every other word."""


@functools.lru_cache(maxsize=256)  # an inference asks for the usual ones at every value
def _make_spelling_rule(words: str) -> SpellingRule:
    return SpellingRule(
        frozenset(_make_spelling_key(_normalize_value(word)) for word in _split_listed_words(words))
    )


def _split_listed_words(words: str) -> list[str]:
    """Return the words between commas, as CSV has them; a text with a comma and a space is one, too."""
    if '"' in words:
        return next(csv.reader([words.replace("\n", " ")], skipinitialspace=True), [])

    parts = words.split(",")
    return [*parts, words] if ", " in words else parts


def _get_rule_words(rule: LabelRuleOfOneSide) -> frozenset[str]:
    if isinstance(rule, SpellingRule):
        return rule.words
    return frozenset()


def _separate_rules(
    rules: tuple[LabelRuleOfOneSide, LabelRuleOfOneSide], options: tuple[str | None, str | None]
) -> tuple[LabelRuleOfOneSide, LabelRuleOfOneSide]:
    """Remove spellings given for one side from the usual ones of the other."""
    positive, negative = rules
    if not isinstance(positive, SpellingRule) or not isinstance(negative, SpellingRule):
        return rules
    if options[0] is None:
        return SpellingRule(positive.words - negative.words), negative
    if options[1] is None:
        return positive, SpellingRule(negative.words - positive.words)

    both = positive.words & negative.words
    # values such as `Good, thanks` and `Bad, thanks`
    if both and all(text and ", " in text for text in options):
        return SpellingRule(positive.words - both), SpellingRule(negative.words - both)
    if both:
        raise WrongUse(
            f"{min(both)!r} is in positive and negative",
            hint="give each spelling one side",
        )

    return rules


def _normalize_value(value: object) -> str | float:
    """Normalize a value: a number if it reads as one, else a case-folded spelling."""
    if isinstance(value, list):
        return _compute_mean_rating(value)
    # nothing, an empty object, and NaN, which alone differs from itself
    if value is None or value == {} or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return _require_finite(value)
    if not isinstance(value, str):
        raise BadLabel(
            f"the label is {type(value).__name__}",
            hint="give one label a conversation",
        )
    if len(value) <= MAX_CACHED_SPELLING_CHARS:
        return _normalize_cached_word(value)
    return _normalize_text(value)


MAX_CACHED_SPELLING_CHARS = 40
"""Characters of a spelling that is remembered: a log has few different ones."""


def _normalize_text(value: str) -> str | float:
    """Normalize a value that is text."""
    text = value.strip()
    if _NUMBER_PATTERN.fullmatch(text):
        return _require_finite(float(text))

    # skin tones and variants of an emoji don't change its side
    text = _EMOJI_VARIANT_PATTERN.sub("", text).casefold()
    if text in MISSING_LABEL_SPELLINGS:
        return text
    if (number := _parse_rating_number(text)) is not None:
        return number
    if "tone" in text and (toneless := _SKIN_TONE_PATTERN.sub("", text)) != text:
        return _normalize_text(toneless)
    return _INNER_SPACE_PATTERN.sub("_", text)


_normalize_cached_word = functools.lru_cache(maxsize=4096)(_normalize_text)


def _parse_rating_number(text: str) -> float | None:
    """Return the number of stars, of `4/5`, `80 %`, `4 stars` or `4,5`; None for words."""
    if text[:1] in "⭐🌟★" and _STARS_PATTERN.fullmatch(text):
        return float(sum(sign in "⭐🌟★" for sign in text))
    if not text or not (text[0].isdigit() or text[0] in "+-"):
        return None
    if _DECIMAL_COMMA_PATTERN.fullmatch(text):
        return float(text.replace(",", "."))

    written = _FRACTION_RATING_PATTERN.fullmatch(text) or _RATING_WITH_UNIT_PATTERN.fullmatch(text)
    if written:
        return float(written[1].replace(",", "."))
    return None


def _make_spelling_key(folded: str | float) -> str:
    return f"{folded:.17g}" if isinstance(folded, float) else folded


def _compute_mean_rating(ratings: list[object]) -> str | float:
    """Return the mean of a list of ratings without missing ones; no label if empty."""
    folded = []
    for rating in map(_normalize_value, ratings):
        if rating not in MISSING_LABEL_SPELLINGS:
            folded.append(rating)

    numbers = []
    for rating in folded:
        if isinstance(rating, float):
            numbers.append(rating)

    if len(numbers) < len(folded):
        raise BadLabel(
            "the label is a list, and not of numbers",
            hint="give one label a conversation",
        )
    if numbers:
        return math.fsum(numbers) / len(numbers)
    return ""


def _require_finite(number: float) -> float:
    # an integer may be too large for a float
    try:
        value = float(number)
    except OverflowError:
        value = math.inf

    if not math.isfinite(value):
        raise BadLabel(
            f"the label is {value}, no number",
            hint="leave the field empty where there is no label",
        )

    return value


def _make_unknown_label_error(value: object, verdicts: LabelRules) -> BadLabel:
    if verdicts.compared:
        return BadLabel(
            f"the label {value!r:.60} isn't a number",
            hint="leave positive and negative to spellings",
        )

    advice = f"for ratings: {spell_options(**DEFAULT_RATING_BOUNDS)}"
    if not isinstance(_normalize_value(value), float):
        word = format_label_value(value)
        sides = spell_options(positive="A,B", negative="C,D")
        advice = (
            f"others: {sides}, and for no rating {spell_options(unrated=word)}; `*` is any other"
        )

    error = BadLabel(
        f"unknown label {value!r:.60}",
        hint=f"known are {_describe_known_words(verdicts)}; {advice}",
    )
    error.value = str(value)
    return error


def _describe_known_words(verdicts: LabelRules) -> str:
    if verdicts == LabelRules.of(None, None):
        return "up/down, 1/0, true/false, yes/no, 👍/👎, positive/negative, good/bad, like/dislike"

    words = []
    for rule in (verdicts.positive, verdicts.negative):
        if isinstance(rule, SpellingRule):
            words.append(sorted(rule.words)[:8])

    return escape_controls(" and ".join(", ".join(side) for side in words), 200)


MAX_LABEL_VALUES_LISTED = 8
"""Values that a note lists."""
MAX_NPS_RATING = 10
"""The highest of the numbers from 0 that say how likely somebody recommends: 9 and 10 are good, up to 6 bad."""
USUAL_HIGHEST_RATINGS = (1, 2, 3, 5, 7, 10, 100)
"""Usual highest ratings."""

CountByLabelValueAndMeaning = Mapping[tuple[str, str], int]
"""Number of values by spelling and what they were taken for."""


def describe_unlabeled_values(
    field: str, counts: CountByLabelValueAndMeaning, *, compared: bool = False
) -> list[str]:
    """Return a note on the values that were not taken; nothing where there are none.

    Args:
        compared: Whether the user gave bounds.
    """
    left = {}
    for (value, meant), n in counts.items():
        if meant == NEITHER_THUMB_VALUE:
            left[value] = n

    if not left:
        return []

    most = sorted(left.items(), key=lambda pair: -pair[1])
    listed = ", ".join(f"{value} ({n})" for value, n in most[:MAX_LABEL_VALUES_LISTED])
    more = ""
    if len(left) > MAX_LABEL_VALUES_LISTED:
        more = f" and {len(left) - MAX_LABEL_VALUES_LISTED} more values"

    rows = format_count(sum(left.values()), "row counts", "rows count")
    if any(_list_words_by_side(counts).values()):
        begins = f"{field}:"
    else:
        begins = f"{field!r} holds ratings:"

    verb = "is" if len(left) == 1 else "are"
    what = f"{begins} {listed}{more} {verb} neither up nor down, and {rows} {NOT_RATED_NOTE_WORDS}"
    return [f"{what}; {_suggest_label_sides(field, counts, compared)}"]


def _suggest_label_sides(field: str, counts: CountByLabelValueAndMeaning, compared: bool) -> str:
    neutral_ratings = []
    for value, meant in counts:
        if meant == NEITHER_THUMB_VALUE and normalize_number(value):
            neutral_ratings.append(float(value))

    left = sorted(neutral_ratings)
    if not left:
        return f"name the field inside: {spell_options(label_field=f'{field}.NAME')}"

    # a 0 beside -1 may be a thumb or none
    zero_beside_minus_one = left == [0] and any(
        number == "-1" for number, meant in counts if meant != NEITHER_THUMB_VALUE
    )
    if zero_beside_minus_one:
        return "if it is one, say so with positive and negative"
    if compared:
        return _format_side_options(positive=f">={left[0]:g}", negative=f"<={left[-1]:g}")

    # the bounds that the scale suggests
    all_ratings = set()
    for value, _ in counts:
        if normalize_number(value):
            all_ratings.add(float(value))

    # codes such as 0, 1 and 2: nobody can tell which is which
    is_scale = not RATING_NAME_WORDS.isdisjoint(split_name_words(field))
    if all_ratings in AMBIGUOUS_CODE_SETS and not is_scale:
        return "say what they mean with positive and negative"

    low, high = infer_rating_bounds(sorted(all_ratings))
    spellings = _list_words_by_side(counts)
    if not any(spellings.values()) and not {f"{number:g}" for number in left} <= THUMB_NUMBERS:
        return f"to take them: {spell_options(positive=f'>={high:g}', negative=f'<={low:g}')}"

    # the spellings that are taken already, with the ratings beyond each bound
    sides = {
        "positive": [rating for rating in left if rating >= high],
        "negative": [rating for rating in left if rating <= low],
    }
    # no rating is beyond a bound: each may be on either side
    undecided = not any(sides.values())
    rules = {}
    for side, ratings in sides.items():
        rating_texts = []
        for rating in left:
            if undecided or rating in ratings:
                rating_texts.append(f"{rating:g}")

        rules[side] = [
            *spellings[side],
            *rating_texts,
        ]

    options = {}
    for side, values in rules.items():
        if values:
            options[side] = ",".join(values)

    if undecided:
        return _format_side_options(**options)
    return f"to take them: {spell_options(**options)}"


def _format_side_options(positive: str, negative: str) -> str:
    return f"to take them: {spell_options(positive=positive)} or {spell_options(negative=negative)}"


def _list_words_by_side(counts: CountByLabelValueAndMeaning) -> dict[str, list[str]]:
    words: dict[str, list[str]] = {}
    for side in (Label.POSITIVE, Label.NEGATIVE):
        words[side.value] = [value for value, meant in counts if meant == side]
    return words


def infer_rating_bounds(ratings: Sequence[float]) -> tuple[float, float]:
    """Return up to where a rating is bad, and from where it is good, on the scale that is seen.

    That is 2 and 4 of five stars, 1 and 3 of 0 to 4, 4 and 7 of 1 to 10, 6 and 9 of 0 to 10.
    """
    # ratings on both sides of zero: their signs tell
    if ratings[0] < 0:
        return max(rating for rating in ratings if rating < 0), min(
            (rating for rating in ratings if rating > 0), default=1
        )
    if ratings[0] == 0 and ratings[-1] == MAX_NPS_RATING:
        return 6, 9
    if ratings[0] == 0 and ratings[-1] == 4:
        return 1, 3

    # the smallest usual scale that has room for the highest rating
    top = next((scale for scale in USUAL_HIGHEST_RATINGS if ratings[-1] <= scale), ratings[-1])
    if top == 1:
        return (0.4, 0.7)
    # up to four tenths of the scale is bad, rounded down, from seven tenths good, rounded up
    return (top * 4 // 10 or ratings[0], -(-top * 7 // 10))
