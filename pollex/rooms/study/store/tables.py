"""The tables of the room, one class each with a field for each column."""

from dataclasses import dataclass
from typing import ClassVar

from pollex.store.tables import Row


@dataclass(frozen=True)
class StudyRow(Row):
    """A study that a server was started with; its id is its content's.

    Attributes:
        payload: JSON of the study.
    """

    table: ClassVar = "studies"
    id: str
    time: str
    payload: str


@dataclass(frozen=True)
class TalkRow(Row):
    """A participant's session in a study.

    Attributes:
        number: Counts the study's sessions; with the seed it gives the order of the systems.
        systems: Names of profiles, in the order in which they stand or come.
    """

    table: ClassVar = "talks"
    id: str
    study: str
    number: int
    annotator: str
    systems: tuple[str, ...]
    topic: str
    time: str


@dataclass(frozen=True)
class TalkTurnRow(Row):
    """A turn of a session, or an attempt at one.

    Attributes:
        position: Place of the system in the session.
        ms: How long it was typed, or waited for.
        edits: How often the participant took something back.
        outcome: Why there is no reply; empty where there is one.
        marked: Whether the reply names a model.
        sources: Documents that were first shown for the reply (number, name, text), and what it
            quotes (turn, document and quote).
    """

    table: ClassVar = "talk_turns"
    talk: str
    position: int
    role: str
    text: str
    time: str
    ms: float
    edits: int = 0
    outcome: str = ""
    marked: bool = False
    sources: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True)
class TalkAnswerRow(Row):
    """An answer to a question about a session; of several the last one counts.

    Attributes:
        value: What the option is worth, as JSON; null where `skip` says why.
    """

    table: ClassVar = "talk_answers"
    talk: str
    position: int
    question: str
    value: str
    skip: str
    time: str


@dataclass(frozen=True)
class TalkEndRow(Row):
    """The end of talking with a system: the participant was done, or left the study."""

    table: ClassVar = "talk_ends"
    talk: str
    position: int
    why: str
    time: str
