"""Features of a conversation: all signals of mood and flow that read words alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.signals import SIGNALS, Signal, measured
from pollex.agents.embedded.view import Floats, View
from pollex.conversations.conversation import Conversation

LIKENESS = frozenset({"user_repeats", "assistant_repeats", "relevance", "irrelevance", "follow_up"})
"""Signals that compare words of turns, which costs more than they add here."""


def word_features(conversations: Sequence[Conversation]) -> Floats:
    """Measure all signals of words `[conversation, 4 × signal]`; see `measured` for the four."""
    signals = [signal for name, signal in SIGNALS.items() if name not in LIKENESS]
    rows = [_row(conversation, signals) for conversation in conversations]
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1)


def _row(conversation: Conversation, signals: Sequence[Signal]) -> Floats:
    view = View(conversation, Embedder())  # it loads a model only when it is asked
    return np.concatenate([measured(signal.marks(view), view.of(signal.party)) for signal in signals])
