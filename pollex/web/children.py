"""Commands that the browser starts: `pollex …` in processes that a server which is started anew finds again."""

import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO, Literal

from pollex.children import make_safe_environment
from pollex.store.folder import make_private_folder
from pollex.store.runs import is_file_locked
from pollex.store.seal import Seal
from pollex.store.tables import format_current_time
from pollex.web.faults import NotFound, RequestError

MAX_WAITING_COMMANDS = 8
SECONDS_BEFORE_KILL = 10.0
"""Seconds between asking a command to end, and ending it."""
MAX_LAST_LINES = 40
MAX_TAIL_BYTES = 1 << 16
SECONDS_BETWEEN_LOOKS = 0.5
"""Seconds between two looks at a command that an earlier server started."""

ChildState = Literal["waiting", "running", "done", "failed", "stopped", "pending"]
"""How far a command is; one that is pending has ended, and goes on once people have answered."""
RECORD_FIELDS = ("words", "arguments", "back", "began", "remove")
"""What a record has of a command, beside its process: no key, and nothing of its environment."""
ENDED_FOLDER = "ended"
"""Folder of what is known of commands that have ended, beside the records of those that run."""
ENDED_RECORD_FIELDS = ("words", "arguments", "back", "began", "state", "told", "lines")
MAX_ENDED_COMMANDS = 100
MAX_RESULT_BYTES = 8 << 20
PENDING_EXIT_CODE = 75
"""Exit code of what waits for people, or for another process."""
ERROR_START = "Error: "
"""How a command begins the words of its error."""
HINT_START = "→"
"""How the line begins that says what to do about it, where an error has several."""
GATE_SHUT_EXIT_CODE = 4
"""Exit code of a gate whose conditions fail: the command did what it was to do."""


@dataclass
class Child:
    """A command that was started.

    Attributes:
        words: What it does, for people.
        back: Address of the page that started it.
        record: File that its process holds a lock on while it lives; what it writes stands beside it.
        remove: Files and folders that it read, and that nobody needs after it.
        folder: Where it works; None for the server's own.
        environment: What it finds there beside the server's own: keys, which no command line shows.
        after: What is done once it is done.
        told: What it printed as JSON; None before its end, and where it printed none.
        keeps_result: Whether its page outlives this server.
        seal: What its record is sealed with, so that a later server believes it.
    """

    id: str
    words: str
    arguments: tuple[str, ...]
    back: str
    record: Path
    remove: tuple[Path, ...] = ()
    folder: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    after: Callable[[], None] | None = None
    began: str = field(default_factory=format_current_time)
    state: ChildState = "waiting"
    told: Any = None
    pid: int = 0
    lines: Sequence[str] = ()
    keeps_result: bool = True
    seal: Seal = field(default_factory=Seal, repr=False)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state not in ("waiting", "running")

    @property
    def said(self) -> Sequence[str]:
        """The last lines that it wrote for people."""
        if self.lines:
            return self.lines
        return read_last_lines(self.written("err"))

    @property
    def failure(self) -> str:
        """Why it failed, as it said at its end: what is wrong, and what to do; “…” stands for lines between them."""
        said = list(self.said)
        starts = [place for place, line in enumerate(said) if line.startswith(ERROR_START)]
        lines = said[starts[-1] :] if starts else said[-1:]
        hints = [line for line in lines[1:] if line.lstrip().startswith(HINT_START)]
        left_out = ["…"] if hints and lines[1:2] != hints[:1] else []
        told = [*lines[:1], *left_out, *hints]
        return " ".join(" ".join(told).removeprefix(ERROR_START).split())

    def written(self, stream: Literal["out", "err"]) -> Path:
        """Return the file of one of its two streams."""
        return self.record.with_suffix(f".{stream}")

    def stop(self) -> None:
        """Ask it to end; what it has done is kept."""
        if self.over:
            return

        # set before the signal, so that its end counts as stopped and not as failed
        self.state = "stopped"
        self.signal(signal.SIGINT)

    def signal(self, number: int) -> None:
        """Send a signal to the command and all that it started, while it lives."""
        # the number may be another process's by now: only the lock says that it is still ours
        if self.pid and is_file_locked(self.record):
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def keep_record(self, file: int) -> None:
        """Write down what a later server needs to find it: at every moment the record is whole.

        Args:
            file: Descriptor of the record; its process gets a place of fixed length.
        """
        # the number has a fixed width, so that the second write covers the first
        record = {name: getattr(self, name) for name in RECORD_FIELDS} | {"pid": f"{self.pid:>12}"}
        sealed = self.seal.sign_fields(self.record.name, record)
        os.pwrite(file, json.dumps(sealed, default=str).encode(), 0)

    def keep_result(self) -> None:
        """Write down what it came to, for its owner alone, so that its page outlives this server."""
        result = {name: getattr(self, name) for name in ENDED_RECORD_FIELDS}
        result["lines"] = list(self.lines)
        sealed = self.seal.sign_fields(f"{ENDED_FOLDER}/{self.record.name}", result)
        content = json.dumps(sealed, default=str).encode()
        folder = self.record.parent / ENDED_FOLDER
        # a very large result isn't kept; the folder may have gone with its store
        if len(content) > MAX_RESULT_BYTES or not self.record.parent.is_dir():
            return

        make_private_folder(folder)
        with _open_new_file(folder / self.record.name) as file:
            file.write(content)

        for old in sorted(folder.glob("*.json"), key=_get_time_written)[:-MAX_ENDED_COMMANDS]:
            old.unlink(missing_ok=True)

    def clear_away(self) -> None:
        """Remove what it read and wrote, once it has ended; its result and its last lines stay."""
        # last lines are read before their file goes
        self.lines = read_last_lines(self.written("err"))
        if self.over and self.keeps_result:
            self.keep_result()

        for path in (*self.remove, self.written("out"), self.written("err"), self.record):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


@dataclass
class Children:
    """All commands that this server started, and those of an earlier one that still ran; the last one last.

    Attributes:
        place: Folder of what is known of those that run, in a store; a temporary one if not set.
        set_aside: How many results the store has that this machine did not write.
    """

    place: Path | None = None
    by_id: dict[str, Child] = field(default_factory=dict)
    set_aside: int = 0
    _worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _quick: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _begun: list[Future[None]] = field(default_factory=list)

    @cached_property
    def folder(self) -> Path:
        """The folder of records, which nobody else may look into."""
        folder = self.place or Path(tempfile.mkdtemp(prefix="pollex-"))
        make_private_folder(folder)
        return folder

    @cached_property
    def seal(self) -> Seal:
        """What records are sealed with: that of the store, whose folder is beside them."""
        return Seal() if self.place is None else Seal.of(self.place.parent)

    def start(
        self,
        words: str,
        arguments: Sequence[str],
        *,
        back: str,
        remove: Sequence[Path] = (),
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        after: Callable[[], None] | None = None,
        quick: bool = False,
        keeps_result: bool = True,
    ) -> Child:
        """Start `pollex` with arguments once those before it have ended.

        Args:
            quick: It only counts, looks or draws, and waits for no long one.
            keeps_result: Whether its page outlives this server.

        Raises:
            RequestError: Eight wait already.
        """
        if sum(child.state == "waiting" for child in self.by_id.values()) >= MAX_WAITING_COMMANDS:
            raise RequestError(
                "eight commands are waiting already",
                hint="wait until one of them has ended",
            )

        id_ = secrets.token_hex(4)
        child = Child(
            id_,
            words,
            tuple(arguments),
            back,
            self.folder / f"{id_}.json",
            tuple(remove),
            folder,
            environment or {},
            after,
            keeps_result=keeps_result,
            seal=self.seal,
        )
        self.by_id[child.id] = child
        # what only counts has a worker of its own, and waits for no long command
        worker = self._quick if quick else self._worker
        self._begun.append(worker.submit(_run_child, child))

        return child

    def find_again(self) -> None:
        """Find the commands that an earlier server started: those that still run are watched to their end."""
        if self.place is None or not self.place.is_dir():
            return

        # commands that had ended by then, with their results
        for path in sorted((self.place / ENDED_FOLDER).glob("*.json"), key=_get_time_written):
            ended = _read_ended(path, self.place, self.seal)
            if ended is not None:
                self.by_id[ended.id] = ended
            else:
                self.set_aside += 1

        # commands that were still at work, whose processes hold a lock on their record
        for record in sorted(self.place.glob("*.json")):
            child = _read_record(record, self.seal)
            if child is None:
                for path in (record, record.with_suffix(".out"), record.with_suffix(".err")):
                    with suppress(OSError):  # a folder of that name stays
                        path.unlink()
                continue
            self.by_id[child.id] = child
            if is_file_locked(record):
                child.state = "running"
                Thread(target=_watch_child, args=(child,), daemon=True).start()
            else:
                _end_child(child, code=None)

    def find(self, child_id: str) -> Child:
        """Return a command by its id. Raises NotFound where there is none."""
        child = self.by_id.get(child_id)
        if child is None:
            raise NotFound(
                "this server started no such command",
                hint="what it did is in the list of runs",
            )

        return child

    def last_of(self, back: str) -> Child | None:
        """Return the last command that a page started."""
        return next(
            (child for child in reversed(self.by_id.values()) if child.back == back),
            None,
        )

    def close(self) -> None:
        """End all commands: gently first."""
        # all are asked to end, and have some time for it together
        for child in self.by_id.values():
            child.stop()

        wait(self._begun, SECONDS_BEFORE_KILL)
        # what hasn't ended by then is ended
        for child in self.by_id.values():
            child.signal(signal.SIGTERM)

        self._worker.shutdown()
        self._quick.shutdown()
        # a temporary folder goes; one in the store is for the next server
        if self.place is None and "folder" in vars(self):
            shutil.rmtree(self.folder, ignore_errors=True)


def _run_child(child: Child) -> None:
    try:
        if child.state == "waiting":
            _run_command(child)
    finally:
        child.clear_away()


def _run_command(child: Child) -> None:
    """Run the command to its end; its two streams go to files, which outlive this server."""
    with (
        _open_new_file(child.record) as record,
        _open_new_file(child.written("out")) as out,
        _open_new_file(child.written("err")) as err,
    ):
        # the process inherits the lock: while it lives, anybody can tell
        fcntl.flock(record, fcntl.LOCK_EX)
        child.keep_record(record.fileno())
        process = subprocess.Popen(  # noqa: S603 - ours
            [sys.executable, "-P", "-m", "pollex", *child.arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            cwd=child.folder,
            env=make_safe_environment(child.environment),
            pass_fds=(record.fileno(),),
        )
        child.pid = process.pid
        child.keep_record(record.fileno())

    if child.over:  # it was stopped meanwhile
        child.signal(signal.SIGINT)
    else:
        child.state = "running"

    _end_child(child, process.wait())


def _end_child(child: Child, code: int | None) -> None:
    """Take up what a command came to.

    Args:
        code: Its exit code; None where an earlier server started it: then its output tells.
    """
    child.told = _read_json_file(child.written("out"))
    # 3 is done in part, and a shut gate has done its work, too
    if code is not None:
        is_done = code in (0, 3, GATE_SHUT_EXIT_CODE)
    else:
        is_done = child.told is not None

    if child.state == "stopped":
        return
    # what depends on the command is there before the command counts as done
    if is_done and child.after is not None:
        child.after()

    ends: dict[int | None, ChildState] = {PENDING_EXIT_CODE: "pending"}
    if is_done:
        child.state = "done"
    else:
        child.state = ends.get(code, "failed")

    if code is None:
        child.clear_away()


def _watch_child(child: Child) -> None:
    while is_file_locked(child.record):
        time.sleep(SECONDS_BETWEEN_LOOKS)
    _end_child(child, code=None)
    # what came to an end by itself is cleared away by then
    if child.state == "stopped":
        child.clear_away()


def _open_new_file(path: Path) -> BinaryIO:
    """Open a new file that only its owner reads."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _read_record(record: Path, seal: Seal) -> Child | None:
    """Return the command that a record tells of; None where this machine didn't write it."""
    fields = seal.read_fields(record.name, record)
    if fields is None:
        return None

    # nothing outside of the store is ever removed for its records
    store = record.parent.parent.resolve()
    named = [Path(path).resolve() for path in fields["remove"]]
    remove = tuple(path for path in named if store in path.parents)
    about = {name: fields[name] for name in RECORD_FIELDS} | {"remove": remove}
    about["arguments"] = tuple(fields["arguments"])
    return Child(record.stem, record=record, pid=int(fields["pid"]), seal=seal, **about)


def _read_ended(path: Path, place: Path, seal: Seal) -> Child | None:
    """Return a command that has ended; None where this machine didn't write the file."""
    fields = seal.read_fields(f"{ENDED_FOLDER}/{path.name}", path)
    if fields is None:
        return None

    about = {name: fields[name] for name in ("words", "back", "began", "state", "told")}
    return Child(
        path.stem,
        record=place / path.name,
        lines=tuple(fields["lines"]),
        arguments=tuple(fields["arguments"]),
        seal=seal,
        **about,
    )


def _get_time_written(path: Path) -> int:
    """Return when a file was written; 0 where it has gone meanwhile."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def read_last_lines(path: Path) -> list[str]:
    """Return the last lines of a file that may still grow; none where it isn't there."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            # only the end of the file, which may be large
            file.seek(max(0, file.tell() - MAX_TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []

    return list(
        deque(
            (line.rstrip() for line in text.splitlines()),
            maxlen=MAX_LAST_LINES,
        )
    )


def _read_json_file(path: Path) -> object:
    try:
        return json.loads(path.read_bytes().splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return None
