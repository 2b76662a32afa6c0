"""When an event could happen at all, the rows of `occasions.toml`: what its conversations are compared with."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pollex.agents.embedded.events.reading import (
    ANY_TOPIC,
    ConversationReading,
    Event,
    find_sure_firings,
    read_events_of_conversation,
    read_moves_with_acts,
)
from pollex.agents.embedded.events.sentences import ConversationMove
from pollex.agents.embedded.events.signal import (
    PLAIN_TOPIC_WORDS,
    EventRubricSource,
    choose_topic_words,
    parse_event_source,
)
from pollex.agents.embedded.view import BoolArray
from pollex.conversations.conversation import Conversation
from pollex.rubrics.rubric import Rubric


@dataclass(frozen=True, slots=True)
class Occasion:
    """When some patterns could happen; `occasions.toml` says what its fields are."""

    text: str
    of: Sequence[str]
    patterns: Sequence[str] = ()
    assistant: Sequence[str] = ()
    user: Sequence[str] = ()
    code: bool = False
    calls: bool = False

    def is_shown_by(self, move: ConversationMove) -> bool:
        """Tell whether what a move does shows the occasion."""
        # code and calls are the assistant's; of a user's move only the acts count
        if move.role == "user":
            return move.has(*self.user)

        shown = (self.code and move.code) or (self.calls and bool(move.calls or move.tools))
        return shown or move.has(*self.assistant)


OCCASIONS_BY_NAME = {
    name: Occasion(**row)
    for name, row in tomllib.loads(
        Path(__file__).with_name("occasions.toml").read_text("utf-8")
    ).items()
}
OCCASION_BY_PATTERN = {
    pattern: occasion for occasion in OCCASIONS_BY_NAME.values() for pattern in occasion.of
}


def find_occasions_of_rubrics(
    rubrics: Sequence[Rubric], conversations: Sequence[Conversation]
) -> dict[str, tuple[str, BoolArray]]:
    """Return the occasion of each built-in rubric in words, and where it came up, by id.

    There is none of a rubric that may hold in any conversation.

    Returns:
        The words as they stand behind “when”, and `[conversation]`.
    """
    sources = {}
    for rubric in rubrics:
        sources[rubric.id] = parse_event_source(rubric.source)

    # only events that can't happen in just any conversation have an occasion
    events = {}
    for id_, source in sources.items():
        if source is not None and source.event.pattern in OCCASION_BY_PATTERN:
            events[id_] = source

    if not events:
        return {}

    # A conversation is read once, and its moves are put to the topics of each source.
    rows = {}
    for id_ in events:
        rows[id_] = np.zeros(len(conversations), dtype=bool)

    # sources with the same topics share a reading
    topics = {source.lexicon: source.topics for source in events.values()}
    for place, conversation in enumerate(conversations):
        moves = read_moves_with_acts(conversation)
        firings = find_sure_firings(moves)
        readings = {}
        for lexicon, by_topic in topics.items():
            readings[lexicon] = read_events_of_conversation(conversation, by_topic, moves, firings)
        for id_, source in events.items():
            rows[id_][place] = came_up_in_conversation(readings[source.lexicon], source.event)

    occasions: dict[str, tuple[str, BoolArray]] = {}
    for id_, source in events.items():
        occasions[id_] = (describe_occasion(source), rows[id_])

    return occasions


def came_up_in_conversation(reading: ConversationReading, event: Event) -> bool:
    """Tell whether an event could have happened in a conversation, or did."""
    occasion = OCCASION_BY_PATTERN[event.pattern]
    # what happened, or a pattern that shows the occasion
    shows = [event, *(Event(pattern, event.topic) for pattern in occasion.patterns)]
    if any(shown in reading.firings for shown in shows):
        return True

    # else a move about the event's topic has to show it
    for move, topic in zip(reading.moves, reading.topics, strict=True):
        if occasion.is_shown_by(move) and event.topic in (ANY_TOPIC, topic):
            return True
    return False


def describe_occasion(source: EventRubricSource) -> str:
    """Say when an event could happen, with its object."""
    event = source.event
    if event.topic == ANY_TOPIC:
        topics = []
    else:
        topics = [source.topics.topics[event.topic]]

    words = choose_topic_words(topics)
    if topics and words["deed"] == PLAIN_TOPIC_WORDS["deed"]:
        # a source names its object, and not what is done with it
        words["deed"] = f"do something about {words['thing']}"

    return OCCASION_BY_PATTERN[event.pattern].text.format_map(words)
