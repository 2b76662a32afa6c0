"""One conversation, read: moves with acts, the topic of each, and what happened."""

from dataclasses import dataclass
from functools import lru_cache

from pollex.agents.embedded.events.code import mark_code_acts
from pollex.agents.embedded.events.finders import FINDERS_BY_GROUP, Finder
from pollex.agents.embedded.events.language import choose_acts_by_language
from pollex.agents.embedded.events.patterns import (
    PATTERNS_BY_NAME,
    PatternFiring,
    iterate_exchanges,
)
from pollex.agents.embedded.events.sentences import ConversationMove, split_moves
from pollex.agents.embedded.events.topics import LogTopics
from pollex.conversations.conversation import Conversation
from pollex.rubrics.rubric import Polarity, Quote

ANY_TOPIC = -1
"""In place of a topic: whatever it is about."""

MIN_FIRING_SURENESS = 0.6


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """A pattern with its object: what a built-in rubric asserts.

    Attributes:
        topic: Index in the topics of the log, or `ANY_TOPIC`.
    """

    pattern: str
    topic: int = ANY_TOPIC
    detail: str = ""


@dataclass(frozen=True)
class EventRubric:
    """An event that became a rubric.

    Attributes:
        text: In plain words.
        named: Topics that the sentence names.
        headline: Whether it leads: unmistakable quotes, proven detectors, something to act on.
        quotes: The best first.
    """

    event: Event
    text: str
    polarity: Polarity
    named: tuple[int, ...]
    headline: bool
    quotes: tuple[Quote, ...]


@dataclass(frozen=True)
class ConversationReading:
    """The events read in one conversation.

    Attributes:
        topics: Of each move; −1 for none.
        firings: The firings of each event.
    """

    conversation: Conversation
    moves: list[ConversationMove]
    topics: list[int]
    firings: dict[Event, list[PatternFiring]]

    def sure(self, event: Event) -> float:
        """Return the probability that an event happened at least once: 1 − ∏(1 − sureness)."""
        left = 1.0
        for firing in self.firings.get(event, ()):
            left *= 1 - firing.sure
        return 1 - left


def read_moves_with_acts(conversation: Conversation) -> list[ConversationMove]:
    """Return the moves of a conversation with their acts."""
    moves = split_moves(conversation)
    # sentences come first: code adds only acts that they don't do
    choose_acts_by_language(moves).mark(moves)
    mark_code_acts(moves)

    return moves


@lru_cache(maxsize=64)
def choose_finders_of_patterns(patterns: frozenset[str] | None) -> tuple[Finder, ...]:
    """Return what finds some patterns; for None what finds any."""
    groups = set()
    for pattern in PATTERNS_BY_NAME.values():
        if patterns is None or pattern.name in patterns:
            groups.add(pattern.group)
    return tuple(finder for group, finder in FINDERS_BY_GROUP.items() if group in groups)


def find_sure_firings(
    moves: list[ConversationMove], patterns: frozenset[str] | None = None
) -> list[PatternFiring]:
    """Return all sure firings of a conversation, or those of some patterns; they don't depend on topics."""
    finders = choose_finders_of_patterns(patterns)
    firings: list[PatternFiring] = []
    for exchange in iterate_exchanges(moves):
        for find in finders:
            for firing in find(exchange):
                if firing.sure >= MIN_FIRING_SURENESS and (
                    patterns is None or firing.pattern in patterns
                ):
                    firings.append(firing)

    return firings


def read_events_of_conversation(
    conversation: Conversation,
    topics: LogTopics,
    moves: list[ConversationMove] | None = None,
    firings: list[PatternFiring] | None = None,
) -> ConversationReading:
    """Read a conversation by the topics of its log.

    Args:
        moves: With their acts, where they are known already.
        firings: Likewise the firings of these moves.
    """
    if moves is None:
        moves = read_moves_with_acts(conversation)

    track = topics.track(moves)
    by_event: dict[Event, list[PatternFiring]] = {}
    # a firing is of the topic of the move that decided it
    for firing in find_sure_firings(moves) if firings is None else firings:
        for event in list_events_of_firing(firing, track[firing.move]):
            by_event.setdefault(event, []).append(firing)

    return ConversationReading(conversation, moves, track, by_event)


def list_events_of_firing(firing: PatternFiring, topic: int) -> list[Event]:
    """List the events that a firing counts for, from the broadest to the narrowest."""
    events = [Event(firing.pattern)]
    if topic != ANY_TOPIC:
        events.append(Event(firing.pattern, topic))
    if firing.detail:
        events.append(Event(firing.pattern, ANY_TOPIC, firing.detail))

    return events
