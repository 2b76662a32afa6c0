"""A query, or a spreadsheet, in a process of its own: how it is started, how long it has, and what it gives.

What a query does can't be bounded from within: endless rows, recursion, or one value of a gigabyte;
nor can a spreadsheet, whose package makes room for all cells up to the last.
The process may take `MAX_QUERY_PROCESS_MEMORY_BYTES`, is ended after its seconds, and ends with who
started it, however that ends.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pollex.errors import BadInput
from pollex.formats.bounds import QUERY_TIMEOUT_SECONDS

MAX_QUERY_PROCESS_MEMORY_BYTES = 1 << 30
"""Bytes that the process may fill."""
MAX_QUERY_RESULT_BYTES = 20 << 30
"""Bytes of rows that a query may give."""
SECONDS_FOR_QUERY_PROCESS_TO_END = 1.0
"""Seconds in which it may end by itself, and tell its server so."""
MEMORY_EXCEEDED_REASON = "it takes more than 1 GB of memory"

SPREADSHEET_KIND = "spreadsheet"
"""In place of a kind of database."""
SMALLER_QUERY_HINT = "ask for less of it, with a LIMIT or a condition"


def run_query_in_process(
    kind: str,
    place: str,
    query: str,
    seconds: float = QUERY_TIMEOUT_SECONDS,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query, once it has ended.

    Raises:
        BadInput: It fails, or takes too long, or too much memory.
    """
    where = f"{kind}:{place}"
    try:
        yield from iterate_rows_of_process(kind, place, query, seconds)
    except ProcessFailed as failed:
        hint = f"give one SELECT that runs there: {where}?SELECT …"
        raise BadInput(f"the query can't be run: {failed}", where=where, hint=hint) from None
    except ProcessTimedOut:
        hint = f"{SMALLER_QUERY_HINT}, or give it longer"
        option = {"query_seconds": str(int(10 * seconds))}
        what = f"the query takes longer than {seconds:g} s"
        raise BadInput(what, where=where, hint=hint, option=option) from None


class ProcessFailed(Exception):
    """The process ended without all rows; the text says why."""


class ProcessTimedOut(Exception):
    """The process took too long."""


def iterate_rows_of_process(
    kind: str,
    place: str,
    query: str,
    seconds: float,
) -> Iterator[Any]:
    """Yield what a process reads, once it has ended.

    Args:
        kind: Of a database, or `SPREADSHEET_KIND`.

    Raises:
        ProcessFailed: It can't read that, or takes too much memory.
        ProcessTimedOut: It takes too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows"
        outcome = Path(folder) / "outcome"
        request = {
            "kind": kind,
            "place": place,
            "query": query,
            "seconds": seconds,
        }
        request |= {"rows": str(rows), "outcome": str(outcome)}
        _run_query_process(request, seconds)
        # a process that left no outcome was ended by the system, for its memory
        if outcome.exists():
            answer = json.loads(outcome.read_bytes())
        else:
            answer = {"failed": MEMORY_EXCEEDED_REASON}

        if "failed" in answer:
            raise ProcessFailed(answer["failed"])

        with rows.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _run_query_process(request: Mapping[str, object], seconds: float) -> None:
    """Run the process to its end.

    Raises:
        ProcessTimedOut: It took too long.
    """
    # Without the current folder on the path: a `json.py` that lies there is nobody's to import.
    command = [sys.executable, "-P", "-m", "pollex.formats.query_process"]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing
    ) as process:
        assert process.stdin is not None
        try:
            with suppress(BrokenPipeError):  # it ended at once, and its outcome says why
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
            process.wait(seconds + 2 * SECONDS_FOR_QUERY_PROCESS_TO_END)
        except subprocess.TimeoutExpired:
            raise ProcessTimedOut from None
        finally:
            _end_query_process(process)


def _end_query_process(process: "subprocess.Popen[bytes]") -> None:
    """End the process, gently first: its end of the pipe is how it hears of it."""
    if process.poll() is None:
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_FOR_QUERY_PROCESS_TO_END)
        process.kill()


def main() -> None:
    """Do what standard input asks for, and write rows and outcome where it says."""
    # whoever started it hears of them, and ends it
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)

    request = json.loads(sys.stdin.buffer.readline())
    # bounds hold before any database is opened
    _limit_resources_of_this_process(request["seconds"])
    cancels: list[Callable[[], None]] = []
    threading.Thread(target=_end_process_with_parent, args=[cancels], daemon=True).start()

    from pollex.formats.databases import DATABASE_READER_BY_KIND, QueryError  # what opens databases
    from pollex.formats.spreadsheet_cells import iterate_spreadsheet_cells

    readers = {**DATABASE_READER_BY_KIND, SPREADSHEET_KIND: iterate_spreadsheet_cells}
    outcome: dict[str, object]
    try:
        with Path(request["rows"]).open("w", encoding="utf-8") as file:
            for row in readers[request["kind"]](request["place"], request["query"], cancels):
                file.write(json.dumps(row) + "\n")
        outcome = {}
    except MemoryError:
        outcome = {"failed": MEMORY_EXCEEDED_REASON}
    except OSError as error:
        outcome = {"failed": f"its rows can't be kept: {error.strerror or error}"}
    except QueryError as failed:
        outcome = {"failed": str(failed)}

    Path(request["outcome"]).write_text(json.dumps(outcome), encoding="utf-8")
    os._exit(0)  # without waiting for what a database does at its end


def _limit_resources_of_this_process(seconds: float) -> None:
    """Bound memory, files and time of this process by the system."""
    import resource  # Windows has none, and no databases there

    for limit, most in (
        (resource.RLIMIT_DATA, MAX_QUERY_PROCESS_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, MAX_QUERY_RESULT_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        # a bound that the system sets already can't be raised
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(limit, (most, hard))

    signal.setitimer(
        signal.ITIMER_REAL, seconds + 4 * SECONDS_FOR_QUERY_PROCESS_TO_END
    )  # which ends it, whatever it does


def _end_process_with_parent(cancels: list[Callable[[], None]]) -> None:
    """Wait for the end of standard input, cancel what a server does for this process, and end."""
    sys.stdin.buffer.read()
    for cancel in cancels:
        with suppress(Exception):
            cancel()
    os._exit(1)


if __name__ == "__main__":
    main()
