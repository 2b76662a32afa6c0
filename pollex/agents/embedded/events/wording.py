"""Events in plain words: the pattern's sentence with the objects and deeds of the log."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from pollex.agents.embedded.events.nouns import GENERAL, chunks
from pollex.agents.embedded.events.patterns import PATTERNS
from pollex.agents.embedded.events.patterns.pattern import Firing
from pollex.agents.embedded.events.reading import ANYWHERE, Event, Observed
from pollex.agents.embedded.events.topics import Topics, listed, plural, with_article

MOST_NAMED = 3
LEAST_NAMED = 0.1
"""A topic with a smaller share of an event's happenings isn't named."""
LEAST_COVERED = 0.6
"""Objects are named only where such a share of the happenings has them."""
PLAIN = {
    "deed": "do something",
    "thing": "something",
    "things": "options",
    "bare": "option",
    "detail": "something else",
    "trouble": "the problem",
}

_ABOUT = re.compile(r" (?:on|about|(?<=details )for) \{(?:thing|trouble)\}")
"""What a sentence without an object leaves out."""


def sentence(event: Event, topics: Topics, happened: Sequence[int], details: Sequence[str] = ()) -> str:
    """Write the event as a sentence.

    Args:
        happened: The topic that each happening on training conversations tells of, or `ANYWHERE`; see `told_of`.
        details: Of each happening.
    """
    pattern, named = PATTERNS[event.pattern], named_topics(event, topics, happened)
    named = named if event.topic != ANYWHERE or covered(named, happened) else []
    text = pattern.text if named else _ABOUT.sub("", pattern.anywhere or pattern.text)
    words = dict(PLAIN)
    if named:
        found = [topics.topics[i] for i in named]
        words["deed"] = joined([topic.deed for topic in found if topic.deed]) or PLAIN["deed"]
        words["thing"] = listed([with_article(topic.name) for topic in found])
        words["trouble"] = words["thing"]
        words["things"] = listed([plural(topic.name) for topic in found])
        words["bare"] = listed([topic.name for topic in found])
    common = Counter(details).most_common(1)
    words["detail"] = event.detail or (common[0][0] if common and common[0][0] else PLAIN["detail"])
    return text.format_map(words)


@cache
def plain_events() -> tuple[tuple[str, str], ...]:
    """List each event's general sentence, with its source."""
    return tuple((sentence(Event(name), Topics([]), ()), f"event:{name}") for name in PATTERNS)


def joined(deeds: Sequence[str]) -> str:
    """Join actions into one phrase, each verb once: "buy tickets or book a table"."""
    objects: dict[str, list[str]] = {}
    for deed in dict.fromkeys(deeds):
        verb, _, noun = deed.partition(" ")
        objects.setdefault(verb, []).append(noun)
    return listed([f"{verb} {listed(nouns)}" for verb, nouns in objects.items()])


def named_topics(event: Event, topics: Topics, happened: Sequence[int]) -> list[int]:
    """Return the event's topic, or the topics that it mostly happens with."""
    if event.topic != ANYWHERE:
        return [event.topic]
    counts = Counter(topic for topic in happened if topic != ANYWHERE)
    needs_deed = "{deed}" in PATTERNS[event.pattern].text
    common = [
        topic
        for topic, n in counts.most_common()
        if n >= LEAST_NAMED * max(1, len(happened)) and (topics.topics[topic].deed or not needs_deed)
    ]
    return common[:MOST_NAMED]


def covered(named: Sequence[int], happened: Sequence[int]) -> bool:
    """Tell whether most happenings have one of these topics."""
    return sum(topic in named for topic in happened) >= LEAST_COVERED * max(1, len(happened))


def told_of(reading: Observed, firing: Firing, topics: Topics) -> int:
    """Return the topic that an exchange names, and whose deciding sentence names no other object; else `ANYWHERE`."""
    topic = reading.topics[firing.move]
    if topic == ANYWHERE:
        return ANYWHERE
    exchange = reading.moves[max(0, firing.move - 1) : firing.move + 1]
    if not topics.named(exchange, [topic]):
        return ANYWHERE
    span = firing.quote
    deciding = [one for move in exchange for one in move.sentences if (one.turn, one.start) == (span.turn, span.start)]
    objects = {head for one in deciding for _, head, _ in chunks(one)} - GENERAL
    return ANYWHERE if objects and objects.isdisjoint(topics.words_of([topic])) else topic


def sayable(event: Event, topics: Topics) -> bool:
    """Return whether the log has the words that the sentence needs."""
    text = PATTERNS[event.pattern].text
    if event.topic == ANYWHERE:
        return "{detail}" not in text or bool(event.detail)
    if "{deed}" in text and not topics.topics[event.topic].deed:
        return False
    return any(place in text for place in ("{deed}", "{thing", "{bare}", "{trouble}"))
