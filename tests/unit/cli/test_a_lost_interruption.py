"""An interruption that falls into a callback of Python's own comes again."""

import signal
import sys
import time

import pytest

from pollex.cli.main import interrupt_again


class Raising:
    """Raises where Python drops it."""

    def __del__(self) -> None:
        raise KeyboardInterrupt


def test_an_interruption_that_python_drops_is_raised_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", interrupt_again)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it is raised meanwhile
            Raising()
            time.sleep(5)
    finally:
        signal.signal(signal.SIGINT, before)
