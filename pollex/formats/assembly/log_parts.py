"""Parts of a tool's export: messages, model calls, conversations, scores, and facts.

Ids are the tool's own. Files are joined by them, so that scores may be in another file than the
messages.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, NamedTuple

from pollex.conversations.conversation import Turn
from pollex.text import JsonObject

TurnTuple = tuple[Turn, ...]
LabelTargetKind = Literal["conversation", "trace", "span", "message"]
SCORE_SOURCE_PREFERENCE = "preference"
"""The source of scores that stand for a preference between two answers; no thumbs unless the user says so."""
SCORE_SOURCE_COLUMN = "a column"
"""The source of scores that are columns or attributes, which the tool itself doesn't know as scores."""
EMPTY_CONVERSATION_FACTS: JsonObject = {}


class Message(NamedTuple):
    """One message of a table or a tree.

    Attributes:
        conversation: The conversation's id.
        key: The message's own id; None where it has none.
        turns: Several where a message holds a tool's result, none for a step without words.
        at: Seconds since 1970; None leaves the order to the file.
        parent: The key of the message before it, in tools that keep other tries; None in a plain
            table.
        tree: Whether the conversation is a tree, so that only one path of it was seen.
        error: What failed, in words.
        facts: Further fields for the conversation's metadata.
        rank: How good people found it among the other tries; the path of least rank is read, 0 the
            best.
        state: When the conversation was recorded with it, in seconds since 1970; of two records the
            newer one counts.
        author: Who said it, where only that tells users from agents: whoever speaks first is the
            user.
        lacks: Which file has what was asked, where the tool keeps answers apart; empty where it
            doesn't.
    """

    conversation: str
    key: str | None
    turns: TurnTuple
    at: float | None = None
    parent: str | None = None
    tree: bool = False
    error: str = ""
    facts: JsonObject = EMPTY_CONVERSATION_FACTS
    rank: float = 0
    state: float = 0
    author: str | None = None
    lacks: str = ""


SESSION_ID_FOR_CALLS_JOINED_BY_HISTORY = "by history"
"""The session of a call that is found by what was said before it."""


class ModelCall(NamedTuple):
    """A span or a run.

    Attributes:
        trace: The trace's id.
        span: The span's id.
        parent: The id of the span around it.
        session: The conversation's id, where the span has it.
        at: Seconds since 1970.
        before: What went in: the history up to the answer; None where nothing can be read.
        after: What came out; None where nothing can be read.
        model: Whether a model was called; tools and retrievers have no words for the talk.
        agent: Whether it is the work of a whole agent, around its calls of models.
        history: Whether `before` is a list of messages, which may repeat earlier turns, and not one
            text.
        unsure: `before` and `after` as they stand where nobody knows whether they are words: of a
            trace in which no model's call can be read, they count.
        error: What failed, in words.
        facts: Further fields for the conversation's metadata.
        beside: Attributes of the span, among which may be the label.
    """

    trace: str
    span: str
    parent: str | None = None
    session: str | None = None
    at: float | None = None
    before: TurnTuple | None = None
    after: TurnTuple | None = None
    model: bool = False
    agent: bool = False
    history: bool = False
    unsure: Mapping[str, TurnTuple] = MappingProxyType({})
    error: str = ""
    facts: JsonObject = EMPTY_CONVERSATION_FACTS
    beside: JsonObject = EMPTY_CONVERSATION_FACTS


class SpanWords(NamedTuple):
    """Messages of a span in rows of their own.

    Attributes:
        at: Seconds since 1970; rows may stand in any order.
        whole: Whether the row has all messages of the span.
    """

    trace: str
    span: str
    before: TurnTuple
    after: TurnTuple
    at: float | None = None
    whole: bool = False


class WholeTalk(NamedTuple):
    """A whole conversation in one row.

    Attributes:
        id: None where the row has none.
        at: Seconds since 1970 of this state of it; of two states the newer one counts.
    """

    id: str | None
    turns: TurnTuple
    keys: tuple[str | None, ...] = ()
    at: float | None = None
    error: str = ""
    facts: JsonObject = EMPTY_CONVERSATION_FACTS


class MessageAddition(NamedTuple):
    """Steps or files of a message, in rows of their own.

    Attributes:
        message: The message's key.
        at: The place among the message's steps, or a time.
        steps: What was said before the message's last turn.
        mark: What stands for a file, at the end of its first turn.
    """

    message: str
    at: float | None = None
    steps: TurnTuple = ()
    mark: str = ""


class ConversationFacts(NamedTuple):
    """Facts about a conversation besides its messages, and the displayed message of a tree in a state as `Message`."""

    conversation: str
    facts: JsonObject = EMPTY_CONVERSATION_FACTS
    shown: str | None = None
    state: float = 0


class ConversationLink(NamedTuple):
    """A conversation that goes on with another one, and is a part of it."""

    conversation: str
    before: str


class ToolScore(NamedTuple):
    """A thumb, or the score of an evaluator.

    Attributes:
        target: What `id` names.
        value: None for a comment without a thumb.
        name: Empty where the tool itself has thumbs, which need no name to be told from other
            scores.
        source: As the tool writes it; empty where it doesn't say.
        comment: What was written with it, as the tool has it; text once it is taken.
        tags: Reasons that were chosen with it, likewise; a list of texts once it is taken.
        person: Who gave it.
        summary: Whether the rows of single scores, where there are any, say the same and more.
        rating: Whether it counts stars, so that 1 is the worst.
        message: The message that it was given for, where `id` is its conversation's.
        key: The score's own id; of several rows with it the newest counts.
        around: What it counts for where the files don't have what `id` names: the trace, then the
            conversation.
    """

    target: LabelTargetKind
    id: str
    value: object
    name: str = ""
    source: str = ""
    comment: object = None
    tags: object = None
    person: str | None = None
    at: float | None = None
    summary: bool = False
    rating: bool = False
    message: str | None = None
    key: str | None = None
    around: tuple[tuple[LabelTargetKind, str | None], ...] = ()


class LeftOutRow(NamedTuple):
    """What a row holds that is no part of a conversation, and why it was left out."""

    why: str


LogPart = (
    Message
    | ModelCall
    | SpanWords
    | MessageAddition
    | WholeTalk
    | ConversationFacts
    | ConversationLink
    | ToolScore
    | LeftOutRow
)


MAX_NANOSECONDS_OF_TIMESTAMP = 1e19
"""Nanoseconds since 1970 in the year 2286; larger numbers are no times."""


def parse_timestamp(value: object, day_first: bool | None = None) -> float | None:
    """Parse a time in ISO text, as 31.12.2026 14:00, in s, ms, µs or ns to seconds since 1970.

    Args:
        day_first: Whether 3/4/2026 is in April; None: it is no time, as nobody knows.

    Returns None for anything else.
    """
    # MongoDB's JSON has a time as an object
    if isinstance(value, Mapping):
        value = value.get("$date", value.get("$numberLong"))

    if isinstance(value, str):
        text = value.strip().removesuffix(" UTC").removesuffix(" Uhr")
        try:
            value = float(text)
        except ValueError:
            return _parse_calendar_time(text, day_first)

    # nor NaN
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) < MAX_NANOSECONDS_OF_TIMESTAMP
    ):
        return None

    # the size of a number tells its unit: ns, µs, ms, else s
    for bound, unit in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if abs(value) >= bound:
            return value / unit

    return float(value)


def iterate_plausible_times(moments: Iterable[float | None]) -> Iterator[float]:
    """Yield those of some moments that are times, between 1973 and 2286; others are places or durations."""
    return (
        at for at in moments if at is not None and 1e8 < at < MAX_NANOSECONDS_OF_TIMESTAMP / 1e9
    )


def is_time_value(value: object) -> bool:
    """Return whether something may be a time, whatever stands first in its date."""
    return any(parse_timestamp(value, day_first) is not None for day_first in (True, False))


def format_iso_time(at: float) -> str:
    """Return seconds since 1970, before the year 10000, as ISO text in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


_CALENDAR_DATE_PATTERN = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:(?:, *| +)(.+))?")
_CLOCK_FORMATS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%H:%M:%S.%f")


def _parse_calendar_time(text: str, day_first: bool | None) -> float | None:
    # ISO text; a time without a zone is one of UTC
    with suppress(ValueError):
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()

    date_match = _CALENDAR_DATE_PATTERN.fullmatch(text)
    if date_match is None or (date_match[2] != "." and day_first is None):
        return None

    # the day is first where dots stand between, or where the caller says so
    day, month = (
        (date_match[1], date_match[3])
        if date_match[2] == "." or day_first
        else (date_match[3], date_match[1])
    )
    for clock in _CLOCK_FORMATS:
        with suppress(ValueError):
            time = datetime.strptime(
                f"{date_match[4]}-{month}-{day} {date_match[5] or '0:00'}",
                f"%Y-%m-%d {clock}",
            )
            return time.replace(tzinfo=UTC).timestamp()

    return None
