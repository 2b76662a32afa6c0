"""Looking into a store that a run works in: at a copy, for nobody else may open the original."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pollex.errors import StoreBusy, StoreDamaged
from pollex.store.database import FILE
from pollex.store.recovery import log_of
from pollex.store.store import Store

TRIES = 5
"""So often is a copy made anew that the writer changed meanwhile."""

PAUSE = 0.2
"""Seconds before it is: a checkpoint goes on longer than a small copy takes, and would spoil one after the other."""


@contextmanager
def glance(folder: Path) -> Iterator[Store]:
    """The store for reading: itself where nobody writes in it, else a copy, which its notices say.

    Raises:
        StoreBusy: It is written in so fast that no copy is whole, or there is no place for a copy.
        StoreDamaged: It can't be read.
        WrongUse: There is none, or one of another schema.
    """
    with ExitStack() as stack:
        try:
            store = Store.open(folder, read_only=True)
        except StoreBusy as busy:
            store = _beside(folder, busy, stack)
        yield stack.enter_context(store)


def _beside(folder: Path, busy: StoreBusy, stack: ExitStack) -> Store:
    """A copy of the store in a temporary folder, which goes when `stack` ends."""
    try:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pollex-")))
        store = _copied(folder, place, busy)
    except OSError as failure:
        raise StoreBusy(
            f"{busy.what}, and no copy can be made to look into: {failure.strerror}",
            where=str(folder),
            remedy="wait until it ends, or name a folder with room for a copy: TMPDIR",
        ) from failure
    store.notices.append(f"{busy.what}: shown is what it had kept a moment ago")
    return store


def _copied(folder: Path, place: Path, busy: StoreBusy) -> Store:
    """A copy of the store in `place`, opened.

    A checkpoint moves what the log has into the file; a copy that saw half of that is made again.
    """
    for tried in range(TRIES):
        time.sleep(PAUSE if tried else 0)
        try:
            before = _stamp(folder)
            for path in (log_of(folder / FILE), folder / FILE):
                _copy(path, place / path.name)
            if _stamp(folder) == before:
                return Store.open(place, read_only=True)
        except (FileNotFoundError, StoreDamaged):  # a log that went, or one that was cut in the middle
            continue
    raise busy


def _stamp(folder: Path) -> list[tuple[str, int]]:
    """What changes when the file itself does, or a log takes the place of another; not when a log grows."""
    logs = [(path.name, path.stat().st_ino) for path in folder.glob(f"{FILE}.*wal*")]
    return [*sorted(logs), (FILE, (folder / FILE).stat().st_mtime_ns)]


def _copy(path: Path, to: Path) -> None:
    to.unlink(missing_ok=True)
    if path.exists():
        shutil.copyfile(path, to)
