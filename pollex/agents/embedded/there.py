"""Rubrics of what is there in a log, whatever thumbs say: for logs with too few of them to choose by."""

from collections.abc import Sequence

from pollex.agents.embedded.events.learning import count_conversations_needed_of_event
from pollex.agents.embedded.events.patterns import PATTERNS_BY_NAME
from pollex.agents.embedded.events.reading import (
    ConversationReading,
    Event,
    read_events_of_conversation,
)
from pollex.agents.embedded.events.signal import (
    name_rubric_family,
    quote_event,
    write_event_sentence,
)
from pollex.agents.embedded.events.topics import LogTopics
from pollex.agents.embedded.evidence import get_detector_description
from pollex.conversations.conversation import Conversation
from pollex.rubrics.rubric import MAX_QUOTES_PER_RUBRIC, Polarity, Rubric, make_content_id

MAX_RUBRICS_PER_SIDE = 5
NO_TOPICS = LogTopics(())


def write_rubrics_of_frequent_deeds(conversations: Sequence[Conversation]) -> tuple[Rubric, ...]:
    """Write a rubric for each deed that happens often, on the side that it is of in general, the commonest first."""
    readings = []
    for conversation in conversations:
        readings.append(read_events_of_conversation(conversation, NO_TOPICS))

    counts = {}
    for name in PATTERNS_BY_NAME:
        counts[name] = sum(Event(name) in reading.firings for reading in readings)
    least = count_conversations_needed_of_event(len(conversations))
    rubrics: list[Rubric] = []
    families: set[tuple[str, str]] = set()
    # the commonest first, equal ones by name
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        pattern = PATTERNS_BY_NAME[name]
        # proven, known to be good or bad in general, and more than a success or failure
        telling = pattern.proven and pattern.side and not pattern.rate
        # often enough, but not in all: that would tell no conversations apart
        if not telling or not least <= counts[name] < len(conversations):
            continue
        polarity: Polarity = "sat" if pattern.side > 0 else "dsat"
        # one rubric of each family, and so many of a side
        family = polarity, name_rubric_family(f"event:{name}")
        if (
            family in families
            or sum(rubric.polarity == polarity for rubric in rubrics) == MAX_RUBRICS_PER_SIDE
        ):
            continue

        families.add(family)
        rubrics.append(_write_rubric_of_event(Event(name), polarity, readings))

    return tuple(rubrics)


def _write_rubric_of_event(
    event: Event,
    polarity: Polarity,
    readings: Sequence[ConversationReading],
) -> Rubric:
    details = []
    for reading in readings:
        for firing in reading.firings.get(event, ()):
            details.append(firing.detail)

    text = write_event_sentence(event, NO_TOPICS, (), details)
    source = f"event:{event.pattern}"
    all_quotes = []
    for quote in quote_event(event, readings, (), NO_TOPICS)[:MAX_QUOTES_PER_RUBRIC]:
        all_quotes.append(quote.quote)
    quotes = tuple(all_quotes)

    return Rubric(
        id=make_content_id(polarity, text, source),
        text=text,
        polarity=polarity,
        quotes=quotes,
        source=source,
        tells=get_detector_description(source),
    )
