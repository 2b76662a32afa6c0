"""Tables of the browser's trials: repeated calls, drafts of rubric sets, rights, and studies."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pollex.store.tables import Row


@dataclass(frozen=True)
class ChosenRow(Row):
    """A conversation that somebody put into a queue."""

    table: ClassVar = "chosen"
    queue: str
    text_hash: str
    conversation: str
    time: str


@dataclass(frozen=True)
class ReplayRow(Row):
    """A conversation asked about again outside any run, with other words or another judge.

    Attributes:
        payload: JSON of the answers before and after; see `services.rejudging`.
    """

    table: ClassVar = "replays"
    id: str
    time: str
    run: str
    conversation: str
    payload: str


@dataclass(frozen=True)
class DraftRow(Row):
    """A version of an edited rubric set; versions are only added.

    Attributes:
        base: Id of the set that it began with.
        payload: JSON of the entries; see `rubrics.edits`.
    """

    table: ClassVar = "drafts"
    id: str
    version: int
    time: str
    base: str
    name: str
    payload: str


@dataclass(frozen=True)
class AnnotatorRow(Row):
    """Somebody whose token opens one page and nothing else.

    Attributes:
        digest: SHA-256 of their token.
        page: Path of the queue or study that it opens.
    """

    table: ClassVar = "annotators"
    id: str
    name: str
    digest: str
    time: str
    page: str


@dataclass(frozen=True)
class RevocationRow(Row):
    """The revocation of an annotator's token."""

    table: ClassVar = "revocations"
    annotator: str
    time: str


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
        sources: What the reply quotes: turn, document and quote.
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
    sources: tuple[dict[str, Any], ...] = ()


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
