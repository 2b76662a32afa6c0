"""Logs, read while the user is told so: fifty thousand conversations take a quarter of a minute."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from pollex.conversations.logs import Logs, read_logs
from pollex.conversations.options import ReadOptions


def logs_from(sources: Sequence[str], options: ReadOptions) -> Logs:
    """All conversations of some files. On a terminal a line says that they are being read, and goes again.

    Raises:
        BadInput: See `conversations.logs.read_logs`; so for the next.
        WrongUse: The options contradict each other or the log.
    """
    with Console(stderr=True).status("Reading the log"):
        return read_logs(sources, options=options)
