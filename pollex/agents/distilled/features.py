"""What a distilled judge sees of a conversation: words of either party, signals and events. No vectors."""

from __future__ import annotations

import re
from itertools import pairwise
from math import log1p

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.reading import ANYWHERE
from pollex.agents.embedded.events.topics import Topics
from pollex.agents.embedded.signals import MEASURES, SIGNALS, measured
from pollex.agents.embedded.view import View
from pollex.conversations.conversation import Conversation

SEEN = {name: signal for name, signal in SIGNALS.items() if signal.pattern is not None}
"""Signals that are found by their words: the others compare vectors or lengths."""

NO_TOPICS = Topics(())
_WORD = re.compile(r"[^\W_]{2,}")


def features_of(conversation: Conversation, embedder: Embedder) -> dict[str, float]:
    """Compute the features that are not 0, by name: `w:PARTY:WORD`, `s:SIGNAL:MEASURE`, `e:EVENT` and `n:PARTY`."""
    view, found = View(conversation, embedder), dict[str, float]()
    for turn in conversation.turns:
        party = turn.role[:1]
        words = _WORD.findall(turn.content.casefold())
        found[f"n:{party}"] = found.get(f"n:{party}", 0.0) + len(words)
        found |= {f"w:{party}:{word}": 1.0 for word in words}
        found |= {f"w:{party}:{first} {second}": 1.0 for first, second in pairwise(words)}
    found |= {name: log1p(count) for name, count in found.items() if name.startswith("n:")}
    for name, signal in SEEN.items():
        values = measured(signal.marks(view), view.of(signal.party))
        found |= {f"s:{name}:{measure}": float(v) for measure, v in zip(MEASURES, values, strict=True) if v}
    reading = view.reading("{}", NO_TOPICS)
    found |= {f"e:{event.pattern}": reading.sure(event) for event in reading.seen if event.topic == ANYWHERE}
    return found
