"""Files that a command wrote, noted while it writes, for whoever keeps a list of them.

This module imports nothing of ours, and every room may import it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class WrittenOutputs:
    """What a command has written so far.

    Attributes:
        paths: Absolute paths, or addresses of other file systems, each once, in order.
        run: The last run that began meanwhile; empty where none did.
    """

    paths: dict[str, None] = field(default_factory=dict)
    run: str = ""


_WRITTEN: ContextVar[WrittenOutputs | None] = ContextVar("written", default=None)


def note_output(path: object) -> None:
    """Note that a file was written; without a listener nothing happens."""
    if (written := _WRITTEN.get()) is not None:
        written.paths[str(path)] = None


def note_run(run: str) -> None:
    """Note that a run begins, or goes on."""
    if (written := _WRITTEN.get()) is not None:
        written.run = run


@contextmanager
def listen_for_outputs() -> Iterator[WrittenOutputs]:
    """Collect what is written until the block ends; an inner block has what is its own."""
    token = _WRITTEN.set(written := WrittenOutputs())
    try:
        yield written
    finally:
        _WRITTEN.reset(token)
