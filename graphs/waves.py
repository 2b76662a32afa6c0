"""Waves: the items of a run taken so many at a time, each wave durable before the next one begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict  # LangGraph Studio can't show the standard one before Python 3.12

from pollex.graphs.runtime import Context


class WaveState(TypedDict, total=False):
    """Ids only.

    Attributes:
        begun: How many of the run's items were begun.
        wave: Those that are being worked on.
    """

    begun: int
    wave: list[str]


class Item(TypedDict):
    """One item of a wave: the id of a conversation, a question or a case."""

    id: str


@dataclass(frozen=True, kw_only=True)
class WaveContext(Context):
    """What a graph's nodes find in `runtime.context` where its items come in waves.

    Attributes:
        pending: Ids of the items that are to be worked on, in order.
    """

    pending: Sequence[str]

    def next_wave(self, state: WaveState) -> WaveState:
        """The next wave of what is pending; an empty one where nothing is left."""
        begun = state.get("begun", 0)
        wave = list(self.pending[begun : begun + self.wave])
        return {"begun": begun + len(wave), "wave": wave}

    async def close(self, wave: Sequence[str], stage: str) -> None:
        """Tells that a wave is done, and makes it durable: that bounds what a kill can cost."""
        self.progress.advance(stage, len(wave))
        await self.store.settle()
