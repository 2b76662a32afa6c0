"""One conversation, read: moves with acts, the topic of each, and what happened."""

from dataclasses import dataclass
from functools import lru_cache

from pollex.agents.embedded.events.code import mark_code
from pollex.agents.embedded.events.finders import FINDERS, Finder
from pollex.agents.embedded.events.language import choose_acts
from pollex.agents.embedded.events.patterns import PATTERNS, Firing, iterate_exchanges
from pollex.agents.embedded.events.sentences import Move, split_moves
from pollex.agents.embedded.events.topics import Topics
from pollex.conversations.conversation import Conversation
from pollex.rubrics.rubric import Polarity, Quote

ANY_TOPIC = -1
"""In place of a topic: whatever it is about."""

LEAST_SURE = 0.6


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
class Observed:
    """The events read in one conversation.

    Attributes:
        topics: Of each move; −1 for none.
        firings: The firings of each event.
    """

    conversation: Conversation
    moves: list[Move]
    topics: list[int]
    firings: dict[Event, list[Firing]]

    def sure(self, event: Event) -> float:
        """Return the probability that an event happened at least once: 1 − ∏(1 − sureness)."""
        left = 1.0
        for firing in self.firings.get(event, ()):
            left *= 1 - firing.sure
        return 1 - left


def mark_acts(conversation: Conversation) -> list[Move]:
    """Return the moves of a conversation with their acts."""
    moves = split_moves(conversation)
    # sentences come first: code adds only acts that they don't do
    choose_acts(moves).mark(moves)
    mark_code(moves)

    return moves


@lru_cache(maxsize=64)
def choose_finders(patterns: frozenset[str] | None) -> tuple[Finder, ...]:
    """Return what finds some patterns; for None what finds any."""
    groups = set()
    for pattern in PATTERNS.values():
        if patterns is None or pattern.name in patterns:
            groups.add(pattern.group)
    return tuple(find for find in FINDERS if find.__name__ in groups)


def find_sure_firings(moves: list[Move], patterns: frozenset[str] | None = None) -> list[Firing]:
    """Return all sure firings of a conversation, or those of some patterns; they don't depend on topics."""
    finders = choose_finders(patterns)
    firings: list[Firing] = []
    for exchange in iterate_exchanges(moves):
        for find in finders:
            for firing in find(exchange):
                if firing.sure >= LEAST_SURE and (patterns is None or firing.pattern in patterns):
                    firings.append(firing)

    return firings


def read_conversation(
    conversation: Conversation,
    topics: Topics,
    moves: list[Move] | None = None,
    firings: list[Firing] | None = None,
) -> Observed:
    """Read a conversation by the topics of its log.

    Args:
        moves: With their acts, where they are known already.
        firings: Likewise the firings of these moves.
    """
    if moves is None:
        moves = mark_acts(conversation)

    track = topics.track(moves)
    by_event: dict[Event, list[Firing]] = {}
    # a firing is of the topic of the move that decided it
    for firing in find_sure_firings(moves) if firings is None else firings:
        for event in list_events(firing, track[firing.move]):
            by_event.setdefault(event, []).append(firing)

    return Observed(conversation, moves, track, by_event)


def list_events(firing: Firing, topic: int) -> list[Event]:
    """List the events that a firing counts for, from the broadest to the narrowest."""
    events = [Event(firing.pattern)]
    if topic != ANY_TOPIC:
        events.append(Event(firing.pattern, topic))
    if firing.detail:
        events.append(Event(firing.pattern, ANY_TOPIC, firing.detail))

    return events
