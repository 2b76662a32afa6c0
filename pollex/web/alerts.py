"""What is worse in new conversations than before, as people and webhooks are told of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pollex.store.tables import format_current_time


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A rubric that holds more often in a file than before, or less often where that is what goes well.

    Attributes:
        rubric: Its id; empty where the mean probability dropped.
        before: Its mean answer before; `after` in the file.
    """

    rubric: str
    text: str
    polarity: str
    before: float | None
    after: float | None
    low: float | None
    high: float | None
    n: int
    file: str
    run: str
    against: str
    child: str
    rubrics: str
    time: str = field(default_factory=format_current_time)
    is_seen: bool = False
