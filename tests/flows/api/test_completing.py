"""What is asynchronous, run for callers inside an event loop, and interrupted there."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from pollex.services.event_loop import complete


def test_an_interrupt_while_the_thread_starts_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, started = [], [], []
    start = threading.Thread.start

    def started_slowly(thread: threading.Thread) -> None:
        start(thread)
        started.append(thread)
        time.sleep(0.2)  # time in which the thread would begin with the work
        raise KeyboardInterrupt

    async def work() -> None:
        begun.append(True)
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.2)  # as a call that is out is awaited
            ended.append(True)

    async def cell() -> None:
        monkeypatch.setattr(threading.Thread, "start", started_slowly)
        complete(work())

    notebook = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            notebook.run_until_complete(cell())
    finally:
        monkeypatch.undo()
        notebook.close()
    assert len(started) == 1
    assert begun == ended
