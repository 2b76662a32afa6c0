"""The workspace of a run: store, progress, and an orderly end on interrupt."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from pollex.conversations.logs import Logs
from pollex.errors import Interrupted, WrongUse
from pollex.graphs.context import Progress
from pollex.runs.options import RunOptions
from pollex.store.resume import store_originals_of_placeholders
from pollex.store.store import Store

if TYPE_CHECKING:
    from pollex.runs.roles import RunRoles
    from pollex.runs.run import RunSettings

ResultType = TypeVar("ResultType")

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StoppableProgress:
    """Progress of a run that can be stopped: long computations end at their next report.

    Attributes:
        stopped: Set when the user stopped the run.
    """

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self.stopped = False

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Begin a stage."""
        self._shown.start(stage, total, done)

    def advance(self, stage: str, by: int = 1) -> None:
        """Count items of a stage as done.

        Raises:
            Interrupted: The user stopped the run.
        """
        if self.stopped:
            raise Interrupted("interrupted; what was done is kept")
        self._shown.advance(stage, by)

    def note(self, text: str) -> None:
        """Show a line to the user."""
        self._shown.note(text)


@dataclass
class Workspace:
    """An open store with all that a use case needs to run in it.

    Attributes:
        on_stop: Called at the first interrupt, where the work can end by itself; else the work is
            canceled.
    """

    store: Store
    progress: StoppableProgress
    options: RunOptions
    on_stop: list[Callable[[], None]] = field(default_factory=list)

    def setting(self, arguments: dict[str, Any], staff: RunRoles) -> RunSettings:
        """Return the setting of a run that works here."""
        # what was typed, and where, is shown with the run, and needed to resume it
        if self.options.typed:
            arguments = arguments | {"command": self.options.typed, "folder": str(Path.cwd())}

        return staff.setting(
            self.store,
            progress=self.progress,
            arguments=arguments,
            resume=self.options.resume,
        )

    def announce(self, staff: RunRoles) -> None:
        """Tell who works and what their endpoint lacks; an interrupt reaches them from now on."""
        self.progress.note(f"Roles: {staff.display_name}")
        if staff.capabilities:
            missing = staff.capabilities.missing()
        else:
            missing = []

        for note in [*missing, *staff.notes]:
            self.progress.note(f"Note: {note}")

        # a gateway ends by itself: calls that are out are awaited and paid for once
        if staff.gateway:
            self.on_stop.append(staff.gateway.stop)

        staff.embedder.watch(self.progress)

    def run(self, work: Coroutine[object, None, ResultType]) -> ResultType:
        """Run `work` to its end; interrupts end it cleanly if `on_interrupt` is set."""
        with collect_garbage_less_often():
            # a caller in Python handles signals itself
            if self.options.on_interrupt is None:
                return run_coroutine_to_end(work)
            return asyncio.run(self._interruptible(work, self.options.on_interrupt))

    async def _interruptible(
        self, work: Coroutine[object, None, ResultType], on_signal: Callable[[], None]
    ) -> ResultType:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        stopping = False

        def stop() -> None:
            for callback in self.on_stop:
                callback()

            # nothing here can end by itself, so that the work is cut off
            if not self.on_stop:
                task.cancel()

        def heard(number: int, _frame: FrameType | None) -> None:
            """Stop the run; a Python signal handler, so that long computations don't delay it."""
            nonlocal stopping
            if stopping:
                # a closed window sends it twice, by the kernel and by the shell
                if number != signal.SIGHUP:
                    os._exit(Interrupted.exit_code)
                return

            stopping = True
            # work that can end by itself is not broken off at its next report
            self.progress.stopped = not self.on_stop
            loop.call_soon_threadsafe(stop)
            on_signal()

        # A signal that was ignored at the start (nohup: the end of the terminal) stays ignored.
        heeded = [
            number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN
        ]
        before = {number: signal.signal(number, heard) for number in heeded}
        try:
            return await task
        except asyncio.CancelledError:
            raise Interrupted("interrupted; what was done is kept") from None
        # handlers go back to what they were; once the terminal is closed its signal stays ignored
        finally:
            for number, handler in before.items():
                signal.signal(
                    number,
                    signal.SIG_IGN if stopping and number == signal.SIGHUP else handler,
                )


MIN_ADDRESS_SPACE_BYTES = 1_800_000_000
"""Bytes of addresses below which a run isn't begun: with less, libraries of other languages crash silently."""


def require_address_space() -> None:
    """Refuse a run under a small limit on addresses, as `ulimit -v` sets: the 400 MB that a run fills take 3 GB.

    Raises:
        WrongUse: The limit is below `MIN_ADDRESS_SPACE_BYTES`.
    """
    if sys.platform == "win32":
        return

    import resource  # Windows has none

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < MIN_ADDRESS_SPACE_BYTES:
        hint = "`ulimit -v unlimited`, or 4000000; a limit on memory itself, as a container has, may be smaller"
        raise WrongUse(
            f"memory would run out: the limit on addresses is {limit / 1e9:.1f} GB",
            hint=hint,
        )


@contextmanager
def open_workspace(
    options: RunOptions,
    progress: Progress,
    logs: Logs | None = None,
) -> Iterator[Workspace]:
    """Open the store for a run, and keep in it what the placeholders of the logs stand for.

    Raises:
        WrongUse: The limit on addresses is one under which libraries crash.
    """
    require_address_space()
    with Store.open(options.store) as store:
        if logs is not None:
            store_originals_of_placeholders(store, logs.originals)
        yield Workspace(store, StoppableProgress(progress), options)


GARBAGE_COLLECTION_THRESHOLD = 50_000
"""Objects made and not freed, before young ones are looked at."""

SECONDS_FOR_LAST_CALLS = 60.0
"""Seconds that a canceled coroutine has for calls that are out."""


def run_coroutine_to_end(work: Coroutine[object, None, ResultType]) -> ResultType:
    """Run a coroutine from synchronous code, also inside a running event loop (Jupyter).

    An interrupt cancels it; calls that are out are still awaited.
    """
    # a thread has one event loop at a time: a second one gets its own thread
    if get_running_loop() is None:
        return asyncio.run(work)

    background = BackgroundLoop()
    try:
        return background.complete(work)
    finally:
        background.stop()


class BackgroundLoop:
    """An event loop in its own thread, for callers in any thread or loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run,
            name="pollex",
            daemon=True,
        )
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_forever()
        # generators that are still open end before the loop does
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def submit(self, work: Coroutine[object, None, ResultType]) -> Future[ResultType]:
        """Begin a coroutine in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def complete(self, work: Coroutine[object, None, ResultType]) -> ResultType:
        """Run a coroutine in the loop and wait for its result; interrupts cancel it."""
        # an interrupt may come before the task has begun, or while it runs
        begun: list[asyncio.Task[Any] | None] = []
        stopped = threading.Event()
        ended = threading.Event()

        async def noted() -> ResultType:
            begun.append(asyncio.current_task())
            try:
                if stopped.is_set():  # interrupted before it began
                    work.close()
                    raise asyncio.CancelledError
                return await work
            finally:
                ended.set()

        try:
            return self.submit(noted()).result()
        except KeyboardInterrupt:  # also between the submission and the wait
            stopped.set()
            if begun and begun[0] is not None:
                self._loop.call_soon_threadsafe(begun[0].cancel)
                ended.wait(SECONDS_FOR_LAST_CALLS)
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            # a thread can't wait for itself to end
            if threading.current_thread() is not self._thread:
                self._thread.join()


def get_running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop of this thread; None where none runs."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@contextmanager
def collect_garbage_less_often() -> Iterator[None]:
    """Collect cyclic garbage less often, without the objects of imported packages.

    A run makes few cycles and many objects; collecting after every 700 of them takes a quarter of
    its processor time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(GARBAGE_COLLECTION_THRESHOLD, *before[1:])

    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
