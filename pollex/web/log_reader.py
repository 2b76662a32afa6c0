"""Logs looked at in a process of its own: what a stranger's file takes of time and memory, the server doesn't feel.

The process waits for the next question, and ends when nobody asks for a while; it ends with the server, however that
ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from pollex.children import make_safe_environment
from pollex.errors import PollexError
from pollex.text import JsonDict, make_json_values

if TYPE_CHECKING:
    from pollex.services.log_view import LogView

MAX_VIEWS_REMEMBERED = 24
"""Views that are remembered."""
MAX_READING_SECONDS = 600
"""Seconds that a look may take."""
MAX_IDLE_SECONDS = 120
"""Seconds without a question after which the process ends."""
MAX_MEMORY_BYTES = 4 << 30
"""Bytes that the process may fill."""
TOO_MUCH_MEMORY_FAULT = "reading it takes too much memory"
TOO_LONG_FAULT = "reading it takes longer than ten minutes"


@dataclass
class LogReader:
    """Asks the process, one question after the other, and remembers what it said."""

    _worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _kept: OrderedDict[str, Future[JsonDict]] = field(default_factory=OrderedDict)
    _process: subprocess.Popen[bytes] | None = None

    def look(self, sources: Sequence[str], options: Mapping[str, object]) -> Future[JsonDict]:
        """Begin to look at a log, unless it was looked at since it changed; see `LogView`."""
        # a file that was changed has another state, and is looked at anew
        states = [_describe_file_state(source) for source in sources]
        key = json.dumps([list(sources), states, options], sort_keys=True)
        future = self._kept.get(key)
        if future is None:
            question = {"sources": list(sources), "options": dict(options)}
            future = self._worker.submit(
                self._ask,
                json.dumps(question).encode() + b"\n",
            )
            self._kept[key] = future
            # the oldest views go, and the oldest questions that still wait
            while len(self._kept) > MAX_VIEWS_REMEMBERED:
                self._kept.popitem(last=False)[1].cancel()

        return future

    def warm_up(self) -> None:
        """Start the process before it is needed: what it imports takes two seconds."""
        self._worker.submit(self._started)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

        self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            # `-P`: no module of the folder that it works in is imported
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pollex.web.log_reader"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=make_safe_environment(),
            )

        return self._process

    def _ask(self, question: bytes) -> JsonDict:
        """Return what the process says; it is started anew where it has ended meanwhile."""
        # twice, as the process may have ended while nobody asked
        for _ in range(2):
            process = self._started()
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(question)
                process.stdin.flush()
                return self._answer(process)

            self.close()

        return _make_failure(TOO_MUCH_MEMORY_FAULT)

    def _answer(self, process: subprocess.Popen[bytes]) -> JsonDict:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], MAX_READING_SECONDS)
        if ready:
            line = process.stdout.readline()
        else:
            line = b""

        # no whole line: it ran out of memory, or of time
        if not line.endswith(b"\n"):
            self.close()
            return _make_failure(TOO_MUCH_MEMORY_FAULT if ready else TOO_LONG_FAULT)

        answer: JsonDict = json.loads(line)
        return answer


@cache
def get_shared_reader() -> LogReader:
    """Return the reader of this process."""
    return LogReader()


def _describe_file_state(source: str) -> str:
    """Return what changes when a file does; empty for patterns and queries, which are read once a server."""
    try:
        about = Path(source).stat()
    except (OSError, ValueError):
        return ""

    return f"{about.st_size} {about.st_mtime_ns}"


def _make_failure(what: str) -> JsonDict:
    """Return the view of a log that couldn't be looked at."""
    hint = "split it into parts, and bring one of them"
    error = {
        "what": what,
        "where": "",
        "remedy": hint,
        "advice": hint,
    }
    lists = ("facts", "left_out", "notes", "columns", "values", "speakers", "talks")

    empty_lists: dict[str, list[object]] = {name: [] for name in lists}
    return {"error": error, "options": {}, "offer": {}, "proposed": False} | empty_lists


def make_view(question: JsonDict) -> LogView:
    """Look at a log."""
    # what reads logs takes two seconds to import
    from pollex.services.log_view import LogView, view_log
    from pollex.usecases.families import read_options

    options = question["options"]
    try:
        reading = read_options(SimpleNamespace(**options))
    except (PollexError, ValueError) as error:
        hint = getattr(error, "advice", "")
        error_fields = {
            "what": str(getattr(error, "what", error)),
            "where": "",
            "remedy": hint,
        }
        return LogView(options=options, error=error_fields | {"advice": hint})

    return view_log(question["sources"], reading=reading, options=options)


def main() -> None:
    """Answer questions of standard input, one a line, until it ends."""
    import resource  # Windows has none, and no server there

    # Ctrl-C is for the server, which ends this process itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # a log that fills the memory ends this process, and not the server
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY:
        most = MAX_MEMORY_BYTES
    else:
        most = min(MAX_MEMORY_BYTES, hard)

    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    # what somebody's library prints goes nowhere
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    import pollex.services.log_view  # noqa: F401 - before the first question

    while True:
        # which ends it, where nobody asks
        signal.alarm(MAX_IDLE_SECONDS)
        question = sys.stdin.buffer.readline()
        signal.alarm(0)
        if not question:
            return
        try:
            answer = make_json_values(make_view(json.loads(question)))
        except MemoryError:
            answer = _make_failure(TOO_MUCH_MEMORY_FAULT)

        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
