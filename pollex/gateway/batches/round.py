"""The moment at which calls that wait are handed in, and what the user is then told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pollex.errors import AnswersPending, LimitReached, PollexError

QUIET = 0.25
"""Seconds without a new call, twice in a row, after which the calls that wait are handed in."""

WHEN_BACK = "come back then, or earlier: what is there is fetched, and nothing is asked twice"


@dataclass(frozen=True)
class Where:
    """An open batch, for people.

    Attributes:
        until: Unix time at which it expires; None where it never does.
    """

    told: str
    size: int
    until: float | None


class Counter(Protocol):
    """Where the calls of one model wait."""

    @property
    def open(self) -> Mapping[str, Where]:
        """What is not answered yet."""

    @property
    def stop(self) -> Callable[[PollexError], None]:
        """Ends the model's part of the command."""

    def busy(self) -> bool:
        """Return whether calls are asked at once just now."""

    async def hand_in(self) -> None:
        """Hand in what waits."""


class Round:
    """The calls of one command that wait, of all its models: handed in together when nothing else is asked."""

    def __init__(self) -> None:
        self._desks: list[Counter] = []
        self._task: asyncio.Task[None] | None = None
        self._asked = 0
        self._handing_in = False

    def join(self, desk: Counter) -> None:
        """Add a model."""
        self._desks.append(desk)

    def asked(self) -> None:
        """Note a call that waits from now on."""
        self._asked += 1
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._watch())

    async def close(self) -> None:
        """Wait for what is being handed in, and hand in nothing else."""
        if self._task is None:
            return
        if not self._handing_in:
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        """Hand everything in once nothing else is asked, and end all who wait."""
        quiet = 0
        while quiet < 2:
            before = self._asked
            await asyncio.sleep(QUIET)
            quiet = quiet + 1 if before == self._asked and not any(desk.busy() for desk in self._desks) else 0
        self._handing_in = True
        try:
            error = await self._hand_in()
        except PollexError as failure:
            error = failure
        except Exception as failure:
            error = PollexError(f"the batch failed: {type(failure).__name__}: {failure}", remedy="resume to go on")
        finally:
            self._handing_in = False
        for desk in self._desks:
            desk.stop(error)

    async def _hand_in(self) -> PollexError:
        refused: list[PollexError] = []
        for desk in self._desks:
            try:
                await desk.hand_in()
            except LimitReached as limit:
                refused.append(limit)
        if not any(desk.open for desk in self._desks) and refused:
            return refused[0]
        return pending([where for desk in self._desks for where in desk.open.values()], refused)


def pending(places: Sequence[Where], refused: Sequence[PollexError] = ()) -> AnswersPending:
    """Return the error that ends a command until answers are there."""
    calls, n = sum(place.size for place in places), len(places)
    latest = max((place.until for place in places if place.until), default=None)
    when = f"by {clock(latest)} at the latest" if latest else "when you have run it"
    what = f"{calls} calls wait in {n} {'batch' if n == 1 else 'batches'}, answered {when}"
    if refused:
        what += f"; others were not handed in: {refused[0].what}"
    return AnswersPending(what, where="; ".join(place.told for place in places), remedy=WHEN_BACK)


def clock(moment: float) -> str:
    """Return a time of this machine, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
