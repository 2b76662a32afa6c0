"""Signals that stop a command: while it imports they wait, and then end it in words.

An exception in the middle of an import would be a traceback, and leave libraries half loaded. This
module imports next to nothing, so that little comes before its handlers.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED_EXIT_CODE = 130
"""Exit code; `errors.Interrupted` has it, too, and isn't imported yet."""
_waiting_signals: list[int] = []


def handle_signals(handler: Callable[[int, FrameType | None], object]) -> None:
    """Give the signals that stop a command a handler; what nohup has ignored stays so."""
    for number in list_heeded_signals():
        signal.signal(number, handler)


def list_heeded_signals() -> list[signal.Signals]:
    """Return the signals that stop this process, or that Python code handles."""
    ignored = (signal.SIG_IGN, None)
    return [number for number in STOP_SIGNALS if signal.getsignal(number) not in ignored]


def note_signal(number: int, _frame: FrameType | None) -> None:
    """Have a signal wait; the next one ends the process at once."""
    if not _waiting_signals:
        _waiting_signals.append(number)
    # a closed window sends it twice, by the kernel and by the shell
    elif number != signal.SIGHUP:
        end_at_once(number)


def end_at_once(number: int, _frame: FrameType | None = None) -> None:
    """End the process, whatever it does; a second signal is no fault."""
    if number != signal.SIGHUP:
        os._exit(INTERRUPTED_EXIT_CODE)


def raise_waiting_signal() -> None:
    """Send this process the signal that waited, for the handler that is there now."""
    if _waiting_signals:
        signal.raise_signal(_waiting_signals.pop())


@contextmanager
def hold_signals() -> Iterator[None]:
    """Have signals wait until the block ends, as while it imports; only a main thread has handlers."""
    import threading  # not before the handlers

    if threading.current_thread() is not threading.main_thread():
        yield
        return

    before = {number: signal.signal(number, note_signal) for number in list_heeded_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    raise_waiting_signal()
