"""The built-in extractor: explains labels by what separates the classes of the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pollex.agents.embedded import NAME
from pollex.agents.embedded.comments import proof_of
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import event_quotes
from pollex.agents.embedded.evidence import quotes_from
from pollex.agents.embedded.signals import SIGNALS
from pollex.agents.embedded.view import Flags, View
from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import positives
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import Polarity, Reason, content_id

if TYPE_CHECKING:
    from pollex.agents.embedded.clues import Clue, StudiedLog
    from pollex.rubrics.learning.material import Made

VERSION = "4"
MOST_REASONS = 3
MOST_EVENTS = 2
"""Of the reasons: so that what users sound like stays in the pool as well."""

HAPPENED = ("event:", "rate:")


class EmbeddedExtractor:
    """Finds reasons by signals, contrastive phrases and events; no LLM."""

    name = NAME

    def __init__(self, embedder: Embedder, seed: int = 0) -> None:
        self.embedder = embedder
        self.seed = seed
        self.clues: list[Clue] = []
        self.study: StudiedLog | None = None

    @property
    def fingerprint(self) -> str:
        return content_id("extractor", VERSION, self.embedder.identity, str(self.seed), *SIGNALS)

    async def fit(self, training: Sequence[Conversation]) -> None:
        """Learn which signals, phrases and events separate the labeled conversations."""
        ordered = sorted(training, key=lambda c: (c.text_hash, c.id))
        labelled = [c for c in ordered if c.label is not Label.NONE and not c.not_scorable]
        positive = positives(labelled)
        if not positive.any() or positive.all():
            self.clues = []
            return
        self.study = self._study_of(labelled)
        self.clues = self.study.clues(positive, np.ones(len(labelled), dtype=bool))

    def anew(self, conversations: Sequence[Conversation], rows: Flags) -> Made:
        """Make the pool of some conversations, with its answers about all of them.

        Args:
            rows: Those that it is made of, all with a label `[conversation]`.
        """
        ordered = sorted(conversations, key=lambda c: (c.text_hash, c.id))
        if self.study is None or [c.id for c in self.study.conversations] != [c.id for c in ordered]:
            self.study = self._study_of(ordered)
        study, place = self.study, {c.id: n for n, c in enumerate(ordered)}
        order = np.array([place[c.id] for c in conversations], dtype=np.intp)
        mine = np.zeros(len(rows), dtype=bool)
        mine[order[rows]] = True
        made = study.made(positives(study.conversations), mine)
        return replace(made, answers=made.answers[order])

    def _study_of(self, conversations: Sequence[Conversation]) -> StudiedLog:
        from pollex.agents.embedded.clues import StudiedLog  # whoever judges needs none, nor what is behind it

        return StudiedLog(conversations, self.embedder, self.seed)

    async def extract(self, conversation: Conversation) -> Extraction | Unanswered:
        """Extract the clues that are strongest here compared to conversations of the same label."""
        if reason := conversation.not_scorable or ("no label" if conversation.label is Label.NONE else ""):
            return Unanswered(question_id="", outcome="not_scorable", detail=reason, judge=self.name)
        polarity: Polarity = "sat" if conversation.label is Label.POSITIVE else "dsat"
        view = View(conversation, self.embedder)
        found = [(clue, clue.odds(view)) for clue in self.clues if clue.polarity == polarity]
        telling = [(clue, odds) for clue, odds in found if odds > 0]
        telling.sort(key=lambda pair: (-unusual(*pair), pair[0].source))
        shown = (self._reason(clue, view) for clue, _ in telling)
        reasons = chosen_reasons(reason for reason in shown if reason)
        return Extraction(conversation_id=conversation.id, summary=summary(view, reasons), reasons=reasons)

    def _reason(self, clue: Clue, view: View) -> Reason | None:
        if clue.event and self.study:
            quotes = event_quotes(view, clue.event, self.study.topics)
            quotes += proof_of(view.conversation, clue.signal.statement) if quotes else ()
        else:
            quotes = quotes_from(view, clue.signal, clue.signal.marks(view))
        if not quotes:
            return None
        return Reason(
            id=content_id(view.conversation.id, view.conversation.text_hash, clue.polarity, clue.source),
            conversation_id=view.conversation.id,
            polarity=clue.polarity,
            text=clue.signal.statement,
            quotes=quotes,
            source=clue.source,
        )


def chosen_reasons(shown: Iterable[Reason]) -> tuple[Reason, ...]:
    """Choose the first reasons, events before all others, but not events alone."""
    found = list(shown)
    happened = [reason for reason in found if reason.source.startswith(HAPPENED)][:MOST_EVENTS]
    rest = [reason for reason in found if not reason.source.startswith(HAPPENED)]
    return tuple([*happened, *rest][:MOST_REASONS])


def unusual(clue: Clue, odds: float) -> float:
    """Return how far a clue stands out in its class, plus its log-odds.

    Ranked by the odds alone, every conversation would give the same three reasons, and the pool would stay small.
    """
    mean, deviation = clue.typical
    return (odds - mean) / deviation + odds


def summary(view: View, reasons: Sequence[Reason]) -> str:
    """Length, decisive turn and what was found there, in one sentence."""
    spoken = len(view.of("both"))
    if not reasons:
        return f"{spoken} turns; nothing in them stands out."
    turn = max(quote.turn for quote in reasons[0].quotes)
    return f"{spoken} turns; decisive is turn {turn}: {reasons[0].text}"
