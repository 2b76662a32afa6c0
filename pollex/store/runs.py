"""Runs: what was started, with what, and what became of it.

Leases of calls: whoever sends a call has it for itself until its reply is kept, among all processes
on a store.

A lease is the row of the call's intent: who has it, and until when. It ends early with its holder:
each holds a lock on a file of its own, which the system lets go when a process ends, however it
ends.
"""

import fcntl
import json
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict

from pollex.errors import StoreBusy
from pollex.store.database import SqlStatement
from pollex.store.folder import make_private_folder
from pollex.store.tables import dump_json, make_damage_error

SENDERS_FOLDER_NAME = "senders"
"""Folder of the files that holders lock."""

CALL_LEASED_BY_OTHER_SQL = "reply IS NULL AND until > ? AND holder != ?"
"""What the row of a call is that another has out; a call of a batch has no holder."""

_FIND_TAKEN_CALL_QUERY = (
    "SELECT reply IS NOT NULL, holder FROM calls WHERE key = ? "
    f"AND (attempt >= ? AND reply IS NOT NULL OR {CALL_LEASED_BY_OTHER_SQL})"
)


class LeaseHolder:
    """A process as a holder of leases, until `release` or its end.

    Attributes:
        name: By which its leases know it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / SENDERS_FOLDER_NAME / secrets.token_hex(8)
        self.name = self._path.name
        make_private_folder(self._path.parent)
        # files of holders that have ended
        for left in self._path.parent.iterdir():
            if not left.name.startswith(".") and not is_file_locked(left):
                left.unlink(missing_ok=True)

        draft = self._path.with_name(f".{self.name}")  # nobody takes it for one that was left
        self._file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        draft.rename(self._path)

    def release(self) -> None:
        """End all its leases."""
        with suppress(OSError):  # the store may be gone
            self._path.unlink()
        os.close(self._file)


def is_file_locked(path: Path) -> bool:
    """Tell whether a process holds the lock on a file; without the file, nobody does."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False

    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)

    return False


def is_lease_holder_alive(folder: Path, holder: str) -> bool:
    """Tell whether the holder of a lease still lives; several parts of one process may hold leases."""
    return is_file_locked(folder / SENDERS_FOLDER_NAME / holder.partition(".")[0])


@dataclass
class CallLeaseRequest:
    """A call that somebody wants to send, among the changes of a transaction.

    Attributes:
        changes: What is kept of it if it is granted.
        granted: Whether it is: nobody else has the call out, or has the reply to this attempt
            already.
    """

    folder: Path
    key: str
    attempt: int
    holder: str
    changes: Sequence[SqlStatement]
    granted: bool = False
    durable: ClassVar = False

    def apply(self, connection: sqlite3.Connection) -> None:
        """Take the call, unless another was quicker."""
        senders = connection.execute(
            _FIND_TAKEN_CALL_QUERY, [self.key, self.attempt, time.time(), self.holder]
        ).fetchall()
        self.granted = not any(
            has_reply or is_lease_holder_alive(self.folder, holder) for has_reply, holder in senders
        )
        for change in self.changes if self.granted else ():
            change.apply(connection)


RunStatus = Literal["unfinished", "interrupted", "failed", "partial", "done"]
"""`unfinished`: running now, or killed. `partial`: done, but some conversations could not be processed."""

FINISHED_STATUSES: tuple[RunStatus, ...] = ("partial", "done")
"""What a resume has nothing to add to."""


class Run(BaseModel):
    """One run of a command.

    Attributes:
        id: Command, number, and four random hex digits: unique in all stores; a beginning will do.
        number: Runs of a store count from 1, whatever the clock says.
        fingerprint: Digests by name (data, settings, models, prompts): all that the result depends
            on.
        started: ISO 8601, UTC; `finished` likewise, None while the run is unfinished.
        roles: Who worked, `embedded` for example.
        result: What the run came to, as JSON values.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    number: int
    command: str
    arguments: dict[str, Any]
    fingerprint: dict[str, str]
    versions: dict[str, str]
    started: str
    finished: str | None = None
    status: RunStatus = "unfinished"
    roles: tuple[str, ...] = ()
    result: object = None

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Self:
        """Return the run of a row.

        Raises:
            StoreDamaged: It is none.
        """
        try:
            if not re.fullmatch(r"[\w-]+", row["id"]):  # it is the name of a folder, too
                raise ValueError("its id is none")
            return cls(**dict(row) | {name: json.loads(row[name]) for name in JSON_COLUMNS_OF_RUNS})
        except (ValueError, TypeError, RecursionError) as damage:
            raise make_damage_error("", f"run {row['id']} can't be read") from damage


JSON_COLUMNS_OF_RUNS = ("arguments", "fingerprint", "versions", "roles", "result")
ALL_RUNS_QUERY = (
    "SELECT id, number, command, arguments, fingerprint, versions, started, finished, "
    "status, roles, result FROM runs"
)


def make_run_statement(run: Run) -> tuple[str, list[object]]:
    """Return the statement that keeps a run as it is now, and its values."""
    values = {}
    for name, value in dict(run).items():
        values[name] = dump_json(value) if name in JSON_COLUMNS_OF_RUNS else value

    columns = ", ".join(values)
    places = ", ".join("?" * len(values))
    return f"INSERT OR REPLACE INTO runs ({columns}) VALUES ({places})", list(values.values())


def read_run_rows(rows: Sequence[Mapping[str, object]]) -> list[Run]:
    """Return the runs of rows that `ALL_RUNS_QUERY` gave."""
    return [Run.read(row) for row in rows]


class RunLock:
    """An exclusive claim on a run by this process, held until `release` or exit.

    The lock is on the open file, not on the number written into it, so a killed process leaves no
    lock.

    Raises:
        StoreBusy: Another process, or another part of this one, works on it.
    """

    def __init__(self, folder: Path) -> None:
        make_private_folder(folder)
        self._file = os.open(
            folder / "lock",
            os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW,
            0o600,
        )
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # the file says who has it
            holder = os.pread(self._file, 20, 0).decode("ascii", "replace").strip()
            self.release()
            raise StoreBusy(
                f"process {holder} works on {folder.name}",
                where=str(folder.parent.parent),
                hint="wait until it ends",
            ) from None

        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others work on it."""
        os.close(self._file)


def is_run_worked_on(folder: Path, run: str) -> bool:
    """Tell whether a process works on a run now; `folder` is that of all runs."""
    return is_file_locked(folder / run / "lock")
