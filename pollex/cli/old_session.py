"""A command's session, for the verbs whose services still print; it goes with them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console

from pollex.cli.progress import Bars
from pollex.cli.session import announce_stop
from pollex.errors import Interrupted
from pollex.gateway.endpoint import Endpoint
from pollex.services.event_loop import few_collections
from pollex.services.options import RunOptions
from pollex.services.workspace import STOPS
from pollex.store.store import Store
from pollex.text import printable

if TYPE_CHECKING:
    from pollex.graphs.run import Setting
    from pollex.services.roles import Workers

T = TypeVar("T")


@dataclass
class Session:
    """What a verb works with.

    Attributes:
        console: For people. Standard output, or standard error where the last line of output is JSON.
        on_stop: Called at the first Ctrl-C, where the work can end by itself; else the work is cancelled.
    """

    store: Store
    bars: Bars
    console: Console
    options: RunOptions
    on_stop: list[Callable[[], None]] = field(default_factory=list)

    def setting(self, arguments: dict[str, Any], staff: Workers) -> Setting:
        """The setting of a run that this session makes."""
        return staff.setting(self.store, progress=self.bars, arguments=arguments, resume=self.options.resume)

    def meet(self, staff: Workers) -> None:
        """Says who works, what their endpoint can't do, and lets Ctrl-C reach them."""
        self.say(f"Roles: {staff.said}")
        if staff.capabilities:
            for note in [*staff.capabilities.missing(), *staff.notes]:
                self.say(f"Note: {note}")
        if staff.gateway and isinstance(staff.gateway.endpoint, Endpoint) and staff.gateway.endpoint.exposed:
            self.say("Note: conversations go over the network unencrypted (http)", style="yellow")
        if staff.gateway:
            self.on_stop.append(staff.gateway.stop)
        staff.embedder.watch(self.bars)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` to its end. Ctrl-C, SIGTERM and SIGHUP end it in good order; a second one ends it at once."""
        with few_collections():
            return asyncio.run(self._interruptible(work))

    async def _interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        task, loop, asked = asyncio.ensure_future(work), asyncio.get_running_loop(), 0

        def stop() -> None:
            for each in self.on_stop:
                each()
            if not self.on_stop:
                task.cancel()

        def heard(_number: int, _frame: FrameType | None) -> None:
            """A handler of Python's, not of the loop's, which would be called only when a long computation is over."""
            nonlocal asked
            asked += 1
            if asked > 1:
                os._exit(Interrupted.exit_code)
            announce_stop()
            self.bars.stopped = not self.on_stop
            loop.call_soon_threadsafe(stop)

        # What whoever began this has it ignore, nohup the end of the terminal, stays ignored.
        heeded = [number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, heard) for number in heeded}
        try:
            return await task
        except asyncio.CancelledError:
            raise Interrupted("interrupted; what was done is kept") from None
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def say(self, text: str = "", style: str | None = None) -> None:
        """A line for people; control characters of foreign text are made visible."""
        self.console.print(printable(text, keep_lines=True), style=style, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def session(options: RunOptions, *, read_only: bool = False) -> Iterator[Session]:
    """An open store with all that a verb needs."""
    with Store.open(options.store, read_only=read_only) as store, Bars(Console(stderr=True)) as bars:
        opened = Session(store, bars, Console(stderr=options.as_json), options)
        for notice in store.notices:
            opened.say(f"Note: {notice}")
        yield opened
