"""Events as signals: how the built-in roles see, weight and quote them.

A rubric's `source` is all that is needed to find its event again: `event:PATTERN` for any object,
and JSON with the log's topics for one of them. `rate:…` counts for the score, but cannot be acted
on.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from pollex.agents.embedded.events.nouns import GENERAL_NOUNS, iterate_noun_heads
from pollex.agents.embedded.events.patterns import PATTERNS_BY_NAME, PatternFiring
from pollex.agents.embedded.events.reading import ANY_TOPIC, ConversationReading, Event, EventRubric
from pollex.agents.embedded.events.topics import (
    LogTopic,
    LogTopics,
    add_indefinite_article,
    join_with_or,
    make_noun_plural,
)
from pollex.agents.embedded.signals import Signal
from pollex.agents.embedded.view import ConversationView, Floats
from pollex.rubrics.rubric import Quote

MAX_QUOTES_PER_EVENT = 3
MIN_QUOTE_SURENESS = 0.8
"""A less sure quote proves nothing to a reader."""

# what is added to a quote's sureness for its rank, or taken off, LENGTHY for each character
QUOTE_BONUS_IN_WINDOW = 0.15
QUOTE_BONUS_NAMING_TOPIC = 0.05
QUOTE_BONUS_ON_SIDE = 0.1
QUOTE_PENALTY_PER_CHAR = 0.0002
QUOTE_PENALTY_OF_FEW_WORDS = 0.1
MIN_QUOTE_WORDS = 4


class EventQuote(NamedTuple):
    """A quote of an event.

    Attributes:
        worth: Its rank among others.
        named: Whether an object of the rubric is named within two turns before and one after.
        sure: Of the detector, from 0 to 1.
    """

    worth: float
    quote: Quote
    named: bool
    sure: float


def quote_event(
    event: Event,
    readings: Iterable[ConversationReading],
    named: Sequence[int],
    topics: LogTopics,
    side: Sequence[bool] | None = None,
) -> list[EventQuote]:
    """Return the quotes of an event, the best first, one for each conversation.

    Args:
        named: Topics that the rubric's sentence names; empty where it names none.
        side: Whether each reading's label is on the rubric's side.
    """
    ranked = []
    # one quote for each conversation: its best
    for row, reading in enumerate(readings):
        quotes = []
        for firing in reading.firings.get(event, ()):
            quotes.append(_make_event_quote(reading, firing, named, topics))
        if quotes:
            best = max(quotes, key=lambda quote: quote.worth)
            if side is not None and side[row]:
                bonus = QUOTE_BONUS_ON_SIDE
            else:
                bonus = 0.0

            ranked.append(best._replace(worth=best.worth + bonus))

    return sorted(
        ranked,
        key=lambda quote: (-quote.worth, quote.quote.conversation_id),
    )


def _make_event_quote(
    reading: ConversationReading,
    firing: PatternFiring,
    named: Sequence[int],
    topics: LogTopics,
) -> EventQuote:
    span = firing.quote
    text = reading.conversation.turns[span.turn].part(span.start, span.end)
    # two moves before the deciding one, and one after it
    window = reading.moves[max(0, firing.move - 2) : firing.move + 2]
    here = not named or (reading.topics[firing.move] in named and topics.named(window, named))
    names_topic = topics.named([reading.moves[firing.move]], named)
    # sureness counts most, the rest decides between quotes that are about as sure
    worth = (
        firing.sure
        + QUOTE_BONUS_IN_WINDOW * here
        + QUOTE_BONUS_NAMING_TOPIC * names_topic
        - QUOTE_PENALTY_PER_CHAR * len(text)
    )
    worth -= QUOTE_PENALTY_OF_FEW_WORDS * (len(text.split()) < MIN_QUOTE_WORDS)
    # a quote about another object comes behind all others
    if named and reading.topics[firing.move] not in named:
        worth -= 1

    # marks inside the quote, by their places in its text
    inside = []
    for mark in firing.marks:
        if mark.turn == span.turn and span.start <= mark.start < span.end:
            inside.append(mark)
    marks = sorted(
        {(mark.start - span.start, min(mark.end, span.end) - span.start) for mark in inside}
    )
    quote = Quote(
        conversation_id=reading.conversation.id,
        turn=span.turn,
        text=text,
        marks=tuple(marks),
        sure=firing.sure,
    )
    return EventQuote(worth, quote, here, firing.sure)


EVENT_SOURCE_KINDS = ("event", "rate")


@dataclass(frozen=True)
class EventRubricSource:
    """A parsed rubric source: the event, and the topics for reading it."""

    event: Event
    topics: LogTopics
    lexicon: str


def write_event_source(rubric: EventRubric, topics: LogTopics) -> str:
    """Return the source string of an event's rubric."""
    # what doesn't lead counts for the score only
    kind = "event" if rubric.headline else "rate"
    event = rubric.event
    stored: dict[str, object] = {"detail": event.detail} if event.detail else {}
    # one object among others is found again by all topics of its log
    if event.topic != ANY_TOPIC:
        lexicon = {}
        for topic in topics.topics:
            lexicon[topic.name] = {noun: round(weight, 2) for noun, weight in topic.nouns.items()}
        stored |= {"topic": topics.topics[event.topic].name, "topics": lexicon}

    written = f"{event.pattern} {json.dumps(stored, ensure_ascii=False, separators=(',', ':'))}"
    return f"{kind}:{written if stored else event.pattern}"


@lru_cache(maxsize=1024)
def parse_event_source(source: str) -> EventRubricSource | None:
    """Parse a source; None if it names no event."""
    kind, _, rest = source.partition(":")
    pattern, _, written = rest.partition(" ")
    if kind not in EVENT_SOURCE_KINDS or pattern not in PATTERNS_BY_NAME:
        return None

    # a source that was damaged names no event
    try:
        stored = json.loads(written or "{}")
        lexicon = stored.get("topics", {})
        # topics are parsed once for each text that describes them
        written = json.dumps(lexicon)
        topics = parse_topics(written)
        if "topic" in stored:
            topic = list(lexicon).index(stored["topic"])
        else:
            topic = ANY_TOPIC

        event = Event(pattern, topic, str(stored.get("detail", "")))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None

    return EventRubricSource(event, topics, written)


PATTERN_BY_SIGNAL = {
    "refusal": "failed",
    "apology": "failed",
    "done": "done",
    "complaint": "complained",
    "user_repeats": "user_repeats",
    "again": "user_repeats",
    "leaving": "given_up",
    "unanswered_question": "question_back",
    "correction": "contradicted",
}
"""Signals that see in single turns what a pattern sees in exchanges."""


def name_rubric_family(source: str) -> str:
    """Name the family of a rubric: the broadest pattern that its event or signal is a case of; else its source."""
    event_of_source = parse_event_source(source)
    if event_of_source:
        pattern = event_of_source.event.pattern
    else:
        pattern = PATTERN_BY_SIGNAL.get(source.removeprefix("signal:"), "")

    if not pattern:
        return source

    while PATTERNS_BY_NAME[pattern].within:
        pattern = PATTERNS_BY_NAME[pattern].within

    return pattern


@lru_cache(maxsize=64)
def parse_topics(lexicon: str) -> LogTopics:
    """Parse topics from their nouns as JSON."""
    stored = json.loads(lexicon)
    topics = []
    for name, nouns in stored.items():
        topics.append(LogTopic(name, name, {n: float(w) for n, w in nouns.items()}, "", 0.0))
    return LogTopics(topics)


def make_event_signal(source: str, statement: str) -> Signal | None:
    """Return the signal of an event; None if the source names none."""
    event_of_source = parse_event_source(source)
    if event_of_source is None:
        return None

    def marks(view: ConversationView) -> Floats:
        firings = view.reading(event_of_source.lexicon, event_of_source.topics).firings.get(
            event_of_source.event
        )
        if not firings:
            return view.silent

        # the turn of each quote, as sure as its surest firing
        out = np.zeros(len(view.texts))
        for firing in firings:
            out[firing.quote.turn] = max(out[firing.quote.turn], firing.sure)

        return out

    # where the user takes part, turns of both parties are marked
    pattern = PATTERNS_BY_NAME[event_of_source.event.pattern]
    return Signal(
        source,
        "assistant" if pattern.who == "assistant" else "both",
        statement,
        marks,
        pattern.side,
    )


def quote_event_rubric(
    view: ConversationView, rubric: EventRubric, topics: LogTopics
) -> tuple[Quote, ...]:
    """Quote the evidence of a rubric in one conversation; none if it is unsure."""
    quotes = quote_event(
        rubric.event,
        [view.reading("", topics)],
        rubric.named,
        topics,
    )
    named_quotes = []
    for quote in quotes:
        if quote.named and quote.sure >= MIN_QUOTE_SURENESS:
            named_quotes.append(quote.quote)
    return tuple(named_quotes)


MAX_TOPICS_NAMED = 3
MIN_SHARE_OF_NAMED_TOPIC = 0.1
"""A topic with a smaller share of an event's happenings isn't named."""
MIN_SHARE_TO_NAME_TOPICS_ALONE, MIN_SHARE_TO_SAY_MOSTLY = 0.95, 0.6
"""A sentence names objects where such a share of the happenings has them; from the second on, they stand behind it."""
PLAIN_TOPIC_WORDS = {
    "deed": "do something",
    "thing": "something",
    "things": "options",
    "bare": "option",
    "detail": "something else",
    "trouble": "the problem",
}

_TOPIC_PHRASE_REGEX = re.compile(r" (?:on|about|(?<=details )for) \{(?:thing|trouble)\}")
"""What a sentence without an object leaves out."""


def write_event_sentence(
    event: Event,
    topics: LogTopics,
    happened: Sequence[int],
    details: Sequence[str] = (),
) -> str:
    """Write the event as a sentence.

    Args:
        happened: The topic that each happening on training conversations tells of, or `ANY_TOPIC`;
            see `find_topic_named_in_exchange`.
        details: Of each happening.
    """
    pattern = PATTERNS_BY_NAME[event.pattern]
    named = choose_topics_to_name(event, topics, happened)
    # objects stand in the sentence where nearly all happenings have them, else behind it
    everywhere = event.topic == ANY_TOPIC and not cover_nearly_all_happenings(named, happened)
    if everywhere and measure_share_with_topics(named, happened) >= MIN_SHARE_TO_SAY_MOSTLY:
        examples = named
    else:
        examples = []

    named = [] if everywhere else named
    # a detail is the event's own, or what its happenings have
    if covers_any_detail(event):
        objects = list(dict.fromkeys(filter(None, details)))
    else:
        objects = [event.detail]

    # several details or none: the general sentence, with the commonest behind it
    if len(objects) != 1:
        text = append_common_objects(pattern.anywhere, details)
    else:
        if named or objects[0]:
            text = pattern.text
        else:
            text = pattern.anywhere or pattern.text

    words = choose_topic_words([topics.topics[i] for i in named])
    if not named:
        text = _TOPIC_PHRASE_REGEX.sub("", text)

    words["detail"] = objects[0] if objects else PLAIN_TOPIC_WORDS["detail"]
    statement = text.format_map(words)
    if examples and len(objects) == 1 and not objects[0]:
        return append_main_topics(
            statement,
            pattern.text,
            [topics.topics[i] for i in examples],
        )

    return statement


def choose_topic_words(topics: Sequence[LogTopic]) -> dict[str, str]:
    """Return what stands in the places of a sentence about these topics; plain words where it is about none."""
    words = dict(PLAIN_TOPIC_WORDS)
    if topics:
        deeds = []
        for topic in topics:
            if topic.deed:
                deeds.append(topic.deed)
        words["deed"] = join_actions_into_phrase(deeds) or PLAIN_TOPIC_WORDS["deed"]
        words["thing"] = join_with_or([add_indefinite_article(topic.name) for topic in topics])
        words["trouble"] = words["thing"]
        words["things"] = join_with_or([make_noun_plural(topic.name) for topic in topics])
        words["bare"] = join_with_or([topic.name for topic in topics])

    return words


def append_main_topics(
    text: str,
    form: str,
    topics: Sequence[LogTopic],
) -> str:
    """Name what an event is mostly about behind a sentence that says what holds in all."""
    names = []
    for topic in topics:
        names.append(topic.deed or topic.name if "{deed}" in form else topic.name)
    return f"{text.removesuffix('.')} (mostly {', '.join(names)})."


def covers_any_detail(event: Event) -> bool:
    """Return whether an event is the same of several objects, whose sentences would name one."""
    return not event.detail and "{detail}" in PATTERNS_BY_NAME[event.pattern].text


MAX_DETAILS_NAMED = 3


def append_common_objects(text: str, details: Sequence[str]) -> str:
    """Name the commonest objects of an event behind its sentence."""
    counts = Counter(filter(None, details))
    if not counts:
        return text

    first = [detail for detail, _ in counts.most_common(MAX_DETAILS_NAMED)]
    others = ["others"] if len(counts) > MAX_DETAILS_NAMED else []
    # braces in a detail are no places to be filled in
    listed = ", ".join([*first, *others]).replace("{", "{{").replace("}", "}}")
    return f"{text.removesuffix('.')} ({listed})."


@cache
def list_general_event_sentences() -> tuple[tuple[str, str], ...]:
    """List each event's general sentence, with its source."""
    sentences = []
    for name in PATTERNS_BY_NAME:
        sentences.append((write_event_sentence(Event(name), LogTopics([]), ()), f"event:{name}"))
    return tuple(sentences)


def join_actions_into_phrase(deeds: Sequence[str]) -> str:
    """Join actions into one phrase, each verb once: "buy tickets or book a table"."""
    objects: dict[str, list[str]] = {}
    for deed in dict.fromkeys(deeds):
        verb, _, noun = deed.partition(" ")
        objects.setdefault(verb, []).append(noun)
    return join_with_or([f"{verb} {join_with_or(nouns)}" for verb, nouns in objects.items()])


def choose_topics_to_name(
    event: Event,
    topics: LogTopics,
    happened: Sequence[int],
) -> list[int]:
    """Return the event's topic, or the topics that it mostly happens with."""
    if event.topic != ANY_TOPIC:
        return [event.topic]

    counts: Counter[int] = Counter()
    for topic in happened:
        if topic != ANY_TOPIC:
            counts[topic] += 1
    needs_deed = "{deed}" in PATTERNS_BY_NAME[event.pattern].text
    # common enough, and with something to do where the sentence needs a deed
    common = []
    for topic, n in counts.most_common():
        if n >= MIN_SHARE_OF_NAMED_TOPIC * max(1, len(happened)) and (
            topics.topics[topic].deed or not needs_deed
        ):
            common.append(topic)

    return common[:MAX_TOPICS_NAMED]


def cover_nearly_all_happenings(named: Sequence[int], happened: Sequence[int]) -> bool:
    """Tell whether nearly all happenings have one of these topics, so that a sentence may name them alone."""
    return measure_share_with_topics(named, happened) >= MIN_SHARE_TO_NAME_TOPICS_ALONE


def measure_share_with_topics(named: Sequence[int], happened: Sequence[int]) -> float:
    """Return the share of the happenings that have one of these topics."""
    return sum(topic in named for topic in happened) / max(1, len(happened))


def find_topic_named_in_exchange(
    reading: ConversationReading, firing: PatternFiring, topics: LogTopics
) -> int:
    """Return the topic that an exchange names, and whose deciding sentence names no other object; else `ANY_TOPIC`."""
    topic = reading.topics[firing.move]
    if topic == ANY_TOPIC:
        return ANY_TOPIC

    # the deciding move and the one before it
    exchange = reading.moves[max(0, firing.move - 1) : firing.move + 1]
    if not topics.named(exchange, [topic]):
        return ANY_TOPIC

    span = firing.quote
    deciding = []
    for move in exchange:
        for sentence in move.sentences:
            if (sentence.turn, sentence.start) == (span.turn, span.start):
                deciding.append(sentence)
    # the deciding sentence names objects, and none of them is this topic
    heads = set()
    for sentence in deciding:
        for _, head, _ in iterate_noun_heads(sentence):
            heads.add(head)
    objects = heads - GENERAL_NOUNS
    if objects and objects.isdisjoint(topics.words_of([topic])):
        return ANY_TOPIC
    return topic


def has_words_for_sentence(event: Event, topics: LogTopics) -> bool:
    """Return whether the log has the words that the sentence needs."""
    text = PATTERNS_BY_NAME[event.pattern].text
    if event.topic == ANY_TOPIC:
        return True
    if "{deed}" in text and not topics.topics[event.topic].deed:
        return False
    return any(place in text for place in ("{deed}", "{thing", "{bare}", "{trouble}"))
