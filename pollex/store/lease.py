"""Leases of calls: whoever sends a call has it for itself until its reply is kept, among all processes on a store.

A lease is the row of the call's intent: who has it, and until when. It ends early with its holder: each holds a lock on
a file of its own, which the system lets go when a process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pollex.store.database import Change
from pollex.store.folder import make_private

SENDERS = "senders"
"""Folder of the files that holders lock."""

OUT = "reply IS NULL AND until > ? AND holder != ?"
"""What the row of a call is that another has out; a call of a batch has no holder."""

_TAKEN = f"SELECT reply IS NOT NULL, holder FROM calls WHERE key = ? AND (attempt >= ? AND reply IS NOT NULL OR {OUT})"


class Sender:
    """A process as a holder of leases, until `release` or its end.

    Attributes:
        name: By which its leases know it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / SENDERS / secrets.token_hex(8)
        self.name = self._path.name
        make_private(self._path.parent)
        for left in self._path.parent.iterdir():
            if not left.name.startswith(".") and not is_locked(left):
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


def is_locked(path: Path) -> bool:
    """Tell whether a process holds the lock on a file; without the file, nobody does."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def is_held(folder: Path, holder: str) -> bool:
    """Tell whether the holder of a lease still lives; several parts of one process may hold leases."""
    return is_locked(folder / SENDERS / holder.partition(".")[0])


@dataclass
class Lease:
    """A call that somebody wants to send, among the changes of a transaction.

    Attributes:
        changes: What is kept of it if it is granted.
        granted: Whether it is: nobody else has the call out, or has the reply to this attempt already.
    """

    folder: Path
    key: str
    attempt: int
    holder: str
    changes: Sequence[Change]
    granted: bool = False
    durable: ClassVar = False

    def apply(self, connection: sqlite3.Connection) -> None:
        """Take the call, unless another was quicker."""
        taken = connection.execute(_TAKEN, [self.key, self.attempt, time.time(), self.holder]).fetchall()
        self.granted = not any(kept or is_held(self.folder, holder) for kept, holder in taken)
        for change in self.changes if self.granted else ():
            change.apply(connection)
