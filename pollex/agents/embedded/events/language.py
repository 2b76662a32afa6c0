"""The language of a log: which acts are looked for in it, and what needs English.

English has rules (`acts.toml`); other languages have tables (`languages/*.toml`): common words, by which a text is
known, stop words, negations, and phrases of acts, in which `*` stands for up to five words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path

from pollex.agents.embedded.events.acts import ACTS, Act, Acts, Rule
from pollex.agents.embedded.events.sentences import WORDS, Move, word_set
from pollex.conversations.conversation import Conversation
from pollex.prompts.domain import STOPWORDS

ENGLISH = "English"
LEAST, CLEAR, LEAST_OTHER = 0.12, 0.2, 0.15
"""Share of words that are a language's commonest: .25 to .4 in prose of it, .01 to .12 in other languages."""
MOST_READ = 200
FEWEST_WORDS, FEWEST_OF_ONE = 50, 8
"""Words of a log, and of one conversation, that its language is told by."""
MOVES_OF_ONE, SENTENCES_OF_ONE = 4, 3
"""Moves of a conversation that are looked at for that, and sentences of each."""
SURE = 0.85

_COMMON = WORDS["commonest"]
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


@dataclass(frozen=True)
class Language:
    """A language that isn't English.

    Attributes:
        common: The words by which it is known.
        stop: Words that say nothing alone.
    """

    name: str
    common: frozenset[str]
    stop: frozenset[str]
    acts: Acts


@cache
def languages() -> tuple[Language, ...]:
    """Load the tables."""
    return tuple(map(_language, sorted((Path(__file__).parent / "languages").glob("*.toml"))))


def _language(path: Path) -> Language:
    table = tomllib.loads(path.read_text("utf-8"))
    negations = "|".join(map(re.escape, table["negations"].split()))
    phrases = {name: found for party in table["acts"].values() for name, found in party.items()}
    acts = (ACTS.by_name[name] for name in phrases)
    return Language(
        name=table["name"],
        common=word_set(table["common"]),
        stop=word_set(table["stop"]) | word_set(table["common"]),
        acts=Acts(
            Act(one.name, one.party, tuple(_rule(phrase, negations) for phrase in phrases[one.name])) for one in acts
        ),
    )


def _rule(phrase: str, negations: str) -> Rule:
    """Make the rule of a phrase; one without a negation is ruled out by one before it."""
    words = [word for piece in phrase.split() for word in (_WORD.findall(piece) or [piece])]
    pattern = r"\W+".join(map(re.escape, words)).replace(r"\W+\*\W+", r"\W+(?:\w+\W+){0,5}?")
    denied = None if re.search(rf"\b(?:{negations})\b", phrase) else rf"(?<!\w)(?:{negations})\W+(?:\w+\W+)?{pattern}"
    return Rule(
        frozenset({max(words, key=len)}),
        re.compile(rf"(?<!\w){pattern}(?!\w)"),
        SURE,
        re.compile(denied) if denied else None,
    )


def acts_for(moves: Sequence[Move]) -> Acts:
    """Return the acts of the language that a conversation is in; those of English where that isn't clear."""
    bags = [sentence.bag for move in moves[:MOVES_OF_ONE] for sentence in move.sentences[:SENTENCES_OF_ONE]]
    count = sum(map(len, bags))
    english = sum(len(bag & _COMMON) for bag in bags) / max(1, count)
    if count < FEWEST_OF_ONE or english >= CLEAR:  # nearly always, after some microseconds
        return ACTS
    found = _nearest(list(chain.from_iterable(bags)), english)
    return found.acts if found else ACTS


def language_of(conversations: Sequence[Conversation]) -> str:
    """Return the name of the language of a log's users; empty where it is none with a table. Short logs are English."""
    words = _words(conversations)
    english = share_of_common(words, _COMMON)
    if len(words) < FEWEST_WORDS or english >= CLEAR:
        return ENGLISH
    found = _nearest(words, english)
    return found.name if found else ENGLISH if english >= LEAST else ""


def stopwords_of(language: str) -> frozenset[str]:
    """Return the words of a language that say nothing alone, beside those of English."""
    return STOPWORDS.union(*(one.stop for one in languages() if one.name == language))


def share_of_common(words: Sequence[str], common: frozenset[str]) -> float:
    """Return the share of words that are common ones of a language."""
    return sum(word in common for word in words) / max(1, len(words))


def _nearest(words: Sequence[str], english: float) -> Language | None:
    """Return the language that most words are common ones of; None where that is English, or none."""
    share, _, found = max((share_of_common(words, one.common), one.name, one) for one in languages())
    return found if share >= max(LEAST_OTHER, english) else None


def _words(conversations: Iterable[Conversation]) -> list[str]:
    return [
        word.lower()
        for conversation in islice(conversations, MOST_READ)
        for turn in conversation.turns
        if turn.role == "user"
        for word in _WORD.findall(_CODE.sub(" ", turn.content[:1000]).replace("’", "'"))
    ]


def needs_english(conversations: Sequence[Conversation]) -> str:
    """Return which rubrics a log lacks because of its language; empty where it lacks none."""
    language = language_of(conversations)
    if language == ENGLISH:
        return ""
    if language:
        return (
            f"The log is in {language}: events are found by a table of its words; topics, and signals of wording such "
            "as thanks and apologies, need English"
        )
    known = ", ".join(one.name for one in languages())
    return (
        f"the log is in none of English, {known}: rubrics of events, of topics and of wording (thanks, apologies, "
        "complaints) need one of them, and bare words are left out; what stands here rests on lengths and on form"
    )
