"""An event of a log that became a rubric."""

from __future__ import annotations

from dataclasses import dataclass

from pollex.agents.embedded.events.evidence import Evidence
from pollex.agents.embedded.events.reading import Event
from pollex.rubrics.rubric import Polarity


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
    quotes: tuple[Evidence, ...]
