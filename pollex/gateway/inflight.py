"""A call under way, shared by all who ask the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from pollex.gateway.outcomes import Outcome


class SharedCall:
    """Shared work on one key.

    It has no owner: if an asker is canceled, a sent call is still received and recorded, while an unsent one is
    dropped.

    Attributes:
        sent: Whether a call was sent, so that ending the work would lose a paid reply.
        abandoned: Whether the work was ended before it had a result.
    """

    def __init__(self, work: Callable[[SharedCall], Coroutine[None, None, Outcome]]) -> None:
        self.sent = False
        self.abandoned = False
        self._askers = 0
        self.task = asyncio.ensure_future(work(self))
        self.task.add_done_callback(_retrieve)

    async def wait(self) -> Outcome:
        """Wait for the outcome."""
        self._askers += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._askers -= 1
            if not self._askers:
                self.abandon()

    def abandon(self) -> None:
        """End the work, unless a call is out."""
        if not self.sent and not self.task.done():
            self.abandoned = True
            self.task.cancel()


def _retrieve(task: asyncio.Task[Outcome]) -> None:
    """Mark an error as retrieved, in case all askers were canceled."""
    if not task.cancelled():
        task.exception()
