"""The four roles, and that of a baseline. Graph nodes know these protocols and nothing of who stands behind them.

A role never raises for one conversation: it returns a result or an `Unanswered`. It raises a `PollexError` only for
what stops all work (a wrong key, a missing model). `study` is where a role learns from the training log before its
first item; a role that has nothing to learn returns at once. Whatever is learnt must depend on nothing but the
arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ConfigDict

from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import Polarity, Reason, Rubric

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Roles:
    """Who does the work.

    Attributes:
        updater: Who writes the rubrics in place of summariser and deduplicator, where SPUR is learnt with.
    """

    extractor: Extractor
    summarizer: Summarizer
    deduplicator: Deduplicator
    judge: Judge
    updater: Updater | None = None

    @property
    def names(self) -> dict[str, str]:
        """Who does what, for the rubric set and for people."""
        return {role: agent.name for role, agent in self._working.items()}

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of each role, as it was made: a judge that studies changes its own."""
        return {role: agent.fingerprint for role, agent in self._working.items()}

    @property
    def _working(self) -> dict[str, Agent]:
        if self.updater is not None:
            return {"extractor": self.extractor, "updater": self.updater, "judge": self.judge}
        return {
            "extractor": self.extractor,
            "summarizer": self.summarizer,
            "deduplicator": self.deduplicator,
            "judge": self.judge,
        }


class Extraction(BaseModel):
    """What an extractor found in one labelled conversation.

    Attributes:
        summary: What happened, with the decisive moment.
        reasons: At most three, each with at least one quote that is in the conversation.
        dropped: Reasons dropped because no quote of theirs is in the conversation.
    """

    model_config = ConfigDict(frozen=True)

    conversation_id: str
    summary: str
    reasons: tuple[Reason, ...]
    dropped: int = 0


class Summary(BaseModel):
    """What one batch of reasons adds to the pool.

    Attributes:
        rubrics: New ones.
        supported: Reasons of the batch that say what a known rubric says: the rubric's id, and the reasons.
        refused: How many texts were refused, by cause.
    """

    model_config = ConfigDict(frozen=True)

    rubrics: tuple[Rubric, ...]
    supported: dict[str, tuple[Reason, ...]] = {}
    refused: dict[str, int] = {}


class Deduplication(BaseModel):
    """The rubrics that stay, with the reasons of those merged into them.

    Attributes:
        merged: Id of each rubric that went, to the id of the one that it went into.
    """

    model_config = ConfigDict(frozen=True)

    kept: tuple[Rubric, ...]
    merged: dict[str, str]


class Revision(BaseModel):
    """A restricted set of rubrics after a batch of reasons.

    Attributes:
        refused: How many texts were refused, by cause.
    """

    model_config = ConfigDict(frozen=True)

    rubrics: tuple[Rubric, ...]
    refused: dict[str, int] = {}


class Agent(Protocol):
    """What all roles tell of themselves."""

    @property
    def name(self) -> str:
        """Who works here, for people: `embedded`, or the model's name."""

    @property
    def fingerprint(self) -> str:
        """Hash of everything that its results depend on beside the arguments: version, model, prompts, settings."""


class Extractor(Agent, Protocol):
    """Finds why a labelled conversation was good or bad."""

    async def study(self, training: Sequence[Conversation]) -> None:
        """Learns what distinguishes the classes of this log."""

    async def extract(self, conversation: Conversation) -> Extraction | Unanswered:
        """At most three reasons, `sat` for a positive conversation and `dsat` for a negative one."""


class Pair(BaseModel):
    """Summaries of two conversations that are much alike and were rated differently."""

    model_config = ConfigDict(frozen=True)

    satisfied: str
    dissatisfied: str


class Summarizer(Agent, Protocol):
    """Turns reasons into rubrics."""

    async def summarize(
        self, reasons: Sequence[Reason], known: Sequence[Rubric], polarity: Polarity, pairs: Sequence[Pair] = ()
    ) -> Summary | Unanswered:
        """New rubrics that a batch of reasons of one polarity adds.

        Args:
            known: Rubrics so far, those of the other polarity, too.
            pairs: Shown so that rubrics say what separates.
        """


class Deduplicator(Agent, Protocol):
    """Removes rubrics that say the same thing."""

    async def deduplicate(self, rubrics: Sequence[Rubric]) -> Deduplication:
        """Rubrics of both polarities. One that says the reverse of another side's goes into it without its reasons."""


class Updater(Agent, Protocol):
    """Keeps one restricted set of rubrics up to date: what the baseline SPUR has in place of a growing pool."""

    async def update(
        self, reasons: Sequence[Reason], current: Sequence[Rubric], polarity: Polarity, most: int
    ) -> Revision | Unanswered:
        """The set after a batch of reasons of one polarity: at most so many rubrics, none of the old need stay."""


class Judge(Agent, Protocol):
    """Answers questions about conversations."""

    async def study(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Learns the scale on which the rubrics are answered."""

    def reworded(self, rubric: Rubric, written: str) -> Rubric:
        """The rubric as this judge is to be asked about it, now that a person has changed its text from `written`."""

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Told which conversations come next: what is quicker for many at once may be done here."""

    @property
    def learned(self) -> Mapping[str, Any]:
        """What `study` learnt, as JSON values, for the rubric set; empty when nothing was."""

    async def judge(self, conversation: Conversation, questions: Sequence[Question]) -> list[Answer | Unanswered]:
        """One answer a question, in the questions' order."""
