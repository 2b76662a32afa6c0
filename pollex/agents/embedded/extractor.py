"""The embedded extractor: why a labelled conversation was good or bad, from what separates the classes of its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from pollex.agents.answers import Unanswered
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import SIGNALS, quotes_from
from pollex.agents.embedded.mining import mined
from pollex.agents.embedded.scale import Flags, Scale, separation
from pollex.agents.embedded.signals.signal import Signal, measured
from pollex.agents.embedded.view import Floats, View, views_of
from pollex.agents.roles import Extraction
from pollex.agents.rubrics import Polarity, Reason, content_id
from pollex.conversations.model import Conversation, Label

VERSION = "2"
MOST_REASONS = 3


@dataclass(frozen=True)
class Clue:
    """A signal that separates the classes of this log, and in which direction.

    Attributes:
        source: As in `Reason.source`.
        typical: Mean and standard deviation of its odds among conversations of its own class.
    """

    source: str
    signal: Signal
    polarity: Polarity
    scale: Scale
    typical: tuple[float, float]

    def odds(self, view: View) -> float:
        return float(self.scale.odds(measured(self.signal.marks(view), view.of(self.signal.party))))


class EmbeddedExtractor:
    """Finds reasons by signals, contrastive phrases and clusters of turns; no LLM."""

    def __init__(self, embedder: Embedder, seed: int = 0) -> None:
        self.embedder = embedder
        self.seed = seed
        self.clues: list[Clue] = []

    @property
    def name(self) -> str:
        return "embedded"

    @property
    def fingerprint(self) -> str:
        return content_id("extractor", VERSION, self.embedder.identity, str(self.seed), *SIGNALS)

    async def study(self, training: Sequence[Conversation]) -> None:
        """Learns which signals, phrases and clusters of turns separate the labelled conversations."""
        ordered = sorted(training, key=lambda c: (c.text_hash, c.id))
        labelled = [c for c in ordered if c.label is not Label.NONE and not c.not_scorable]
        positive = np.array([c.label is Label.POSITIVE for c in labelled], dtype=bool)
        if not positive.any() or positive.all():
            self.clues = []
            return
        views = views_of(labelled, self.embedder)
        sources = {f"signal:{name}": signal for name, signal in SIGNALS.items()}
        sources |= {signal.name: signal for signal in mined(views, positive, self.seed)}
        self.clues = clues(sources, views, positive)

    async def extract(self, conversation: Conversation) -> Extraction | Unanswered:
        """The clues that are strongest here for what is usual in conversations of this label."""
        if reason := conversation.not_scorable or ("no label" if conversation.label is Label.NONE else ""):
            return Unanswered(question_id="", outcome="not_scorable", detail=reason, judge=self.name)
        polarity: Polarity = "sat" if conversation.label is Label.POSITIVE else "dsat"
        view = View(conversation, self.embedder)
        found = [(clue, clue.odds(view)) for clue in self.clues if clue.polarity == polarity]
        telling = [(clue, odds) for clue, odds in found if odds > 0]
        telling.sort(key=lambda pair: (-unusual(*pair), pair[0].source))
        shown = (self._reason(clue, view) for clue, _ in telling)
        reasons = tuple(islice((reason for reason in shown if reason), MOST_REASONS))
        return Extraction(conversation_id=conversation.id, summary=summary(view, reasons), reasons=reasons)

    def _reason(self, clue: Clue, view: View) -> Reason | None:
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


def clues(sources: dict[str, Signal], views: Sequence[View], positive: Flags) -> list[Clue]:
    """Each source in the direction in which it separates the classes more."""
    return [
        clue_of(source, signal, np.array([measured(signal.marks(v), v.of(signal.party)) for v in views]), positive)
        for source, signal in sources.items()
    ]


def clue_of(source: str, signal: Signal, measures: Floats, positive: Flags) -> Clue:
    """Direction, scale and what is typical, from measures [conversation, measure]."""
    differences, middle, spread = separation(measures, positive, signal.lean)
    good, bad = np.maximum(0, differences), np.maximum(0, -differences)
    polarity: Polarity = "sat" if (good**2).sum() >= (bad**2).sum() else "dsat"
    scale = Scale(middle, spread, good if polarity == "sat" else bad)
    own = scale.odds(measures[positive if polarity == "sat" else ~positive])
    return Clue(source, signal, polarity, scale, (float(own.mean()), float(own.std()) or 1.0))


def unusual(clue: Clue, odds: float) -> float:
    """How far a clue stands out here among its own class, plus how much it tells at all.

    By the odds alone every conversation would give the same three reasons, and the pool would stay small.
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
