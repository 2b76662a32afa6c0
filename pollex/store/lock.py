"""One process writes a store: a lock that the kernel releases when its holder dies.

The lock is on the open file, not on the number written into it, so a file that a killed process left behind locks
nothing, whoever has its process number now. Linux and macOS.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from pollex.errors import StoreBusy

NAME = "lock"


class FolderLock:
    """Held from construction until `release`.

    Args:
        folder: What is locked.
        shared: True for a reader, who keeps writers out but not other readers.

    Raises:
        StoreBusy: Another process holds it; the message names the process.
    """

    def __init__(self, folder: Path, *, shared: bool) -> None:
        path = folder / NAME
        self._file: int | None = None
        if shared and not path.exists():
            return
        self._file = os.open(path, os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._holder()
            self.release()
            raise busy(folder, holder) from None
        if not shared:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def _holder(self) -> str:
        """The writer's process number; empty where readers have the lock: the one that stands there is out of date."""
        assert self._file is not None
        with suppress(BlockingIOError):
            fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return ""
        return os.pread(self._file, 20, 0).decode("ascii", "replace").strip()

    def release(self) -> None:
        """Lets others in; harmless when repeated."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def busy(folder: Path, holder: str) -> StoreBusy:
    """The error that names who holds the store; `holder` is a process number, or empty when it is unknown."""
    if holder == str(os.getpid()):
        return StoreBusy(
            f"the store is in use by process {holder}, which is this one",
            where=str(folder),
            remedy="close what has opened it (a Scorer: scorer.close()), or give another folder",
        )
    return StoreBusy(
        f"the store is in use by process {holder}" if holder else "the store is in use by another process",
        where=str(folder),
        remedy="wait until it ends, or give another folder with --store",
    )
