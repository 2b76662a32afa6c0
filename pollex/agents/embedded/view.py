"""A conversation as the embedded roles look at it: turns by party, words, vectors, who replies to whom."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.reading import Reading, read
from pollex.agents.embedded.events.topics import Topics
from pollex.conversations.conversation import Conversation

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

# Signals read the head and the tail of a huge turn; the middle of a pasted log tells nothing of satisfaction.
HEAD, TAIL = 6_000, 2_000
CUT = "\n…\n"


class View:
    """One conversation, looked at.

    Attributes:
        texts: One a turn, stripped, huge ones without their middle.
    """

    def __init__(self, conversation: Conversation, embedder: Embedder) -> None:
        self.conversation = conversation
        self.texts = [shortened(turn.content.strip()) for turn in conversation.turns]
        self.roles = np.array([turn.role for turn in conversation.turns], dtype=object)
        self._embedder = embedder
        self._readings: dict[str, Reading] = {}

    def reading(self, lexicon: str, topics: Topics) -> Reading:
        """What happened in it, by topics that `lexicon` names; read once for each lexicon."""
        if lexicon not in self._readings:
            self._readings[lexicon] = read(self.conversation, topics)
        return self._readings[lexicon]

    @cached_property
    def vectors(self) -> npt.NDArray[np.float32]:
        """[turn, width], length 1; zeros for turns of other parties and turns without text."""
        spoken = self.of("both")
        found = self._embedder.embed([self.texts[turn] for turn in spoken])
        out = np.zeros((len(self.texts), found.shape[1]), dtype=np.float32)
        out[spoken] = found
        return out

    @cached_property
    def user(self) -> Indices:
        """Indices of the user's turns with text."""
        return self._turns_of("user")

    @cached_property
    def assistant(self) -> Indices:
        """Indices of the assistant's turns with text."""
        return self._turns_of("assistant")

    def of(self, party: str) -> Indices:
        """Indices of one party's turns, or of both parties'."""
        if party == "both":
            return np.sort(np.concatenate([self.user, self.assistant]))
        return self.user if party == "user" else self.assistant

    @cached_property
    def replies(self) -> list[tuple[int, int]]:
        """Each user turn with the assistant's turn that follows it at once."""
        return self.followed("user", "assistant")

    def followed(self, first: str, second: str) -> list[tuple[int, int]]:
        """Turns of one party with those of the other that follow at once; tools between don't count."""
        return [
            (int(a), int(b)) for a, b in pairwise(self.of("both")) if self.roles[a] == first and self.roles[b] == second
        ]

    @cached_property
    def words(self) -> Floats:
        """Words in each turn."""
        return np.array([len(text.split()) for text in self.texts], dtype=np.float64)

    def earlier_likeness(self, turns: Indices) -> Floats:
        """For each of `turns` the highest cosine to an earlier one of them; 0 for the first."""
        cosines = np.tril(self.vectors[turns] @ self.vectors[turns].T, -1)
        return np.asarray(cosines.max(axis=1, initial=0.0), dtype=np.float64)

    def _turns_of(self, role: str) -> Indices:
        with_text = np.array([bool(text) for text in self.texts], dtype=bool)
        return np.flatnonzero((self.roles == role) & with_text)


def views_of(conversations: Sequence[Conversation], embedder: Embedder) -> list[View]:
    """Views of many conversations, whose turns are embedded together: that is quicker than one by one."""
    views = [View(conversation, embedder) for conversation in conversations]
    embedder.embed([view.texts[turn] for view in views for turn in view.of("both")])
    return views


def shortened(text: str) -> str:
    """The text, a huge one without its middle."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}{CUT}{text[-TAIL:]}"


RESAMPLED = "embedded, resampled turns"
"""What such a run is signed with."""


def chance(conversation: Conversation, replicate: int) -> np.random.Generator:
    """The chance of one run about one conversation: the same whenever and wherever it is asked."""
    return np.random.default_rng([int(conversation.text_hash[:12], 16), replicate])


def drawn(turns: Indices, rng: np.random.Generator) -> Indices:
    """As many of the turns, with replacement, in the order of the conversation."""
    return np.sort(rng.choice(turns, len(turns))) if len(turns) else turns
