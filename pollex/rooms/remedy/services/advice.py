"""What a prompt can change of a rubric without making something false: a table of kinds, and why others get nothing."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from pollex.agents.embedded.events.signal import parse_event_source
from pollex.rubrics.rubric import Polarity, Rubric

REASON_WORDS_ALONE = (
    "it is a word, no deed: what the assistant does where it says so has to be read first"
)
REASON_UNCLEAR = (
    "nobody knows here whether its opposite can be said truly: read the exchanges, and "
    "write the sentence yourself"
)
REASON_OTHER_SIDE = (
    "thumbs go another way here than this deed is known for: read the exchanges first"
)
NEVER_PLAIN_EVENTS = frozenset({"figures", "refusals", "knowledge"})
"""Kinds whose plain opposite has an assistant make something up, or promise what it mustn't: never proposed."""


@dataclass(frozen=True)
class EventAdvice:
    """A kind of event, and what a prompt may say of it.

    Attributes:
        sentence: For the prompt; empty where none is known to be safe.
        why: Why there is no sentence; empty where there is one.
        words: What rubrics in words of a model or a person say; None: none of them is of this kind.
    """

    name: str
    sentence: str
    why: str
    events: frozenset[str]
    words: re.Pattern[str] | None
    side: Polarity


@dataclass(frozen=True)
class PromptAdvice:
    """What may be said in a prompt for one rubric.

    Attributes:
        kind: Of the table; empty where none fits.
        sentence: Empty where there is none, and `why` says why not.
    """

    kind: str
    sentence: str = ""
    why: str = ""


def find_advice(rubric: Rubric) -> PromptAdvice:
    """Return the sentence that may mend a rubric, or why there is none."""
    name = name_event_of_source(rubric.source)
    # a word says nothing of what to do, so no sentence follows from it
    if name.startswith("phrase:"):
        return PromptAdvice("words", why=REASON_WORDS_ALONE)

    # the event's own entry, if the table has one, decides alone
    listed = any(name in kind.events for kind in list_event_advice())
    for kind in list_event_advice():
        # An event that the table doesn't list is told by its words, as a rubric of a model or a
        # person.
        if listed:
            fits = name in kind.events
        else:
            fits = bool(kind.words and kind.words.search(rubric.text))

        # the same deed on the other side: the sentence would be the wrong one
        if fits and kind.sentence and rubric.polarity != kind.side:
            return PromptAdvice(kind.name, why=REASON_OTHER_SIDE)
        # a kind without a sentence says why
        if fits:
            return PromptAdvice(kind.name, kind.sentence, kind.why)

    return PromptAdvice("", why=REASON_UNCLEAR)


def name_event_of_source(source: str) -> str:
    """Return the name of a rubric's event or signal; empty for one in words of a model or a person."""
    if source_event := parse_event_source(source):
        return source_event.event.pattern

    kind, _, name = source.partition(":")
    if kind == "phrase":
        return source
    return name if kind == "signal" else ""


@lru_cache(maxsize=1)
def list_event_advice() -> tuple[EventAdvice, ...]:
    """Return the kinds of the table, in its order."""
    text = (files("pollex.rooms.remedy.services") / "advice.toml").read_text(encoding="utf-8")
    return tuple(_parse_advice_tables(tomllib.loads(text)))


def _parse_advice_tables(tables: dict[str, Any]) -> Iterator[EventAdvice]:
    # kinds with a sentence come first, so that they fit before those without
    named = []
    for name, table in tables.items():
        if name != "none":
            named.append((name, table))

    for name, table in [*named, *tables["none"].items()]:
        words = table.get("words", "").replace("\n", "")
        yield EventAdvice(
            name=name,
            sentence=" ".join(table.get("sentence", "").split()),
            why=table.get("why", ""),
            events=frozenset(table["events"]),
            words=re.compile(words, re.IGNORECASE) if words else None,
            side=table.get("side", "dsat"),
        )
