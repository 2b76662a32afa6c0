"""The language of single turns, and replies in another one than the user's."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pollex.agents.embedded.events.language import CLEARLY_ENGLISH_SHARE, measure_common_word_share
from pollex.agents.embedded.events.sentences import WORD_LISTS

MIN_SURE_PROBABILITY, MAX_UNLIKELY_PROBABILITY = 0.95, 0.02
"""Least probability of a language that a turn is said to be in; highest of one that the other turn isn't in."""
MIN_LETTERS, MIN_WORDS = 20, 4
"""A shorter turn is told together with those of the same party before it."""
MAX_CHARS_READ = 600

_UNSPOKEN_TEXT_REGEX = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\[tool call: [^\]\n]*\]|https?://\S+|\S+@\S+|[\d_]+",
    re.DOTALL,
)
_WORD_REGEX = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SCRIPT_REGEX_BY_LANGUAGE = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
    "zh": re.compile(r"[\u3400-\u9fff]"),
}
"""Letters that tell a language by themselves, in this order."""
MIN_LETTERS_OF_SCRIPT = 8

GROUPS_OF_NEAR_LANGUAGES = (
    frozenset({"da", "no", "nb", "nn", "sv", "fo", "is"}),
    frozenset({"hr", "bs", "sr", "sl", "mk", "bg"}),
    frozenset({"cs", "sk"}),
    frozenset({"pt", "gl", "es", "ca", "an", "oc"}),
    frozenset({"id", "ms", "jv"}),
    frozenset({"nl", "af", "li"}),
    frozenset({"de", "lb", "nds"}),
    frozenset({"ru", "uk", "be"}),
    frozenset({"hi", "ne", "mr"}),
    frozenset({"zh", "ja"}),
)
"""Languages that short texts don't tell apart."""


@lru_cache(maxsize=1)
def load_language_identifier() -> Any:
    """Load what tells languages apart: a third of a second."""
    # only what meets another language needs it
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@lru_cache(maxsize=8192)
def identify_languages(text: str) -> dict[str, float]:
    """Return the probability of each language (ISO 639-1) that a text may be in; nothing for a short one."""
    if not is_long_enough_to_identify(text):
        return {}
    if script := find_script_language(text):
        return {script: 1.0}

    words = [word.lower() for word in _WORD_REGEX.findall(text)]
    if measure_common_word_share(words, WORD_LISTS["commonest"]) >= CLEARLY_ENGLISH_SHARE:
        return {"en": 1.0}  # nearly always in English logs, after some microseconds

    languages: dict[str, float] = {}
    for name, share in load_language_identifier().rank(text):
        if share >= MAX_UNLIKELY_PROBABILITY / 10:
            languages[str(name)] = float(share)

    return languages


def find_script_language(text: str) -> str:
    """Return the language that most letters of a text belong to alone; empty for most languages."""
    counts = {}
    for name, letters in _SCRIPT_REGEX_BY_LANGUAGE.items():
        counts[name] = len(letters.findall(text))

    if sum(counts.values()) < MIN_LETTERS_OF_SCRIPT:
        return ""

    # the first that has a tenth of the letters: Japanese has Chinese ones as well
    return next(
        (name for name, count in counts.items() if count >= sum(counts.values()) / 10),
        "",
    )


def extract_spoken_text(text: str) -> str:
    """Return what is said in a turn: no code, address, number or mark of a call."""
    return (
        _UNSPOKEN_TEXT_REGEX.sub(" ", text[: 4 * MAX_CHARS_READ])
        .replace("’", "'")
        .strip()[:MAX_CHARS_READ]
    )


def is_long_enough_to_identify(text: str) -> bool:
    """Return whether a text is long enough to tell its language."""
    if find_script_language(text):
        return True

    words = _WORD_REGEX.findall(text)
    return len(words) >= MIN_WORDS and sum(map(len, words)) >= MIN_LETTERS


def differ_in_language(first_text: str, second_text: str) -> bool:
    """Return whether two texts are in different languages: one is sure, and the other hardly in it or one near."""
    first = identify_languages(first_text)
    second = identify_languages(second_text)
    return _rules_out_language(first, second) or _rules_out_language(second, first)


def _rules_out_language(sure: dict[str, float], others: dict[str, float]) -> bool:
    if not sure or not others:
        return False

    name = max(sure, key=lambda language: sure[language])
    near = {name}.union(*(group for group in GROUPS_OF_NEAR_LANGUAGES if name in group))
    # sure of its language, which the other turn is hardly in, nor in one near it
    return (
        sure[name] >= MIN_SURE_PROBABILITY
        and sum(share for other, share in others.items() if other in near)
        <= MAX_UNLIKELY_PROBABILITY
    )


def list_other_language_replies(texts: Sequence[str], roles: Sequence[str]) -> list[int]:
    """List the replies in another language than the user's last turn, which those before it help out if it is short."""
    replies = []
    users = ""
    for turn, (role, text) in enumerate(zip(roles, texts, strict=True)):
        words = ""
        if role in ("user", "assistant"):
            words = extract_spoken_text(text)
        if role == "user" and words:
            if is_long_enough_to_identify(words):
                users = words
            else:
                users = f"{users} {words}"[-MAX_CHARS_READ:]
        elif role == "assistant" and words and differ_in_language(users, words):
            replies.append(turn)

    return replies
