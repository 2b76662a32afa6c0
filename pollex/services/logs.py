"""Logs that a use case reads, and notes on them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.frames import Rows
from pollex.formats.read_logs import logs_of, read_logs, read_rows
from pollex.graphs.context import Progress
from pollex.text import count

LISTED = 10
"""How many bad rows or conversations are listed."""

IN_MEMORY = "(in memory)"

Sources = Sequence[str | Path] | str | Path
Data = Logs | Iterable[Conversation] | Sources | Rows
"""Logs, conversations, paths or globs, dicts, or a table of pandas, polars or Arrow."""


def logs_given(given: Data, options: ReadOptions) -> Logs:
    """Return logs from whatever holds conversations, as callers in Python give it."""
    if isinstance(given, Logs):
        return given
    if isinstance(given, str | Path):
        return read_logs(given, options=options)
    if isinstance(given, Mapping) or hasattr(given, "columns") or not isinstance(given, Iterable):
        return read_rows(cast(Rows, given), options=options)
    items: list[Any] = list(given)
    if items and all(isinstance(item, str | Path) for item in items):
        return read_logs(items, options=options)
    if not items or any(isinstance(item, Conversation) for item in items):
        return logs_of(items)
    return read_rows(items, options=options)


def logs_from(given: Sources | Logs, options: ReadOptions, progress: Progress) -> Logs:
    """Read the conversations of some files, and report what was read and skipped.

    Raises:
        BadInput: A file or row can't be read; file, line and remedy are named.
        WrongUse: The options contradict each other or the log.
    """
    if isinstance(given, Logs):
        return given
    progress.start("read", 1)
    logs = read_logs(given, options=options)
    progress.advance("read")
    for line in description(logs):
        progress.note(line)
    return logs


def description(logs: Logs) -> list[str]:
    """Return what was read, and what was left out, in a few lines."""
    up, down, none = (logs.counts.get(label, 0) for label in (Label.POSITIVE, Label.NEGATIVE, Label.NONE))
    lines = [f"{count(len(logs), 'conversation')}: {up} up, {down} down, {none} without a label"]
    if logs.duplicates:
        lines.append(f"{count(logs.duplicates, 'identical duplicate counts', 'identical duplicates count')} once")
    if logs.overruled:
        lines.append(f"{count(logs.overruled, 'conversation')} gave way to another of the same id")
    if logs.originals:
        found = sum(map(len, logs.originals.values()))
        lines.append(f"{count(found, 'placeholder')} in {count(len(logs.originals), 'conversation')}, redacted")
    lines += [f"Note: {note}" for note in logs.notes]
    for flag, ids in logs.flags.items():
        holds = count(len(ids), "conversation holds", "conversations hold")
        lines.append(f"Note: {holds} odd text ({flag}): {shortened(ids)}")
    lines += listed("bad row was left out", "bad rows were left out", [str(row) for row in logs.bad_rows])
    odd = [f"{id_}: {why}" for id_, why in not_scorable(logs)]
    return lines + listed("conversation can't be judged", "conversations can't be judged", odd)


def say_repeats(logs: Logs, progress: Progress) -> None:
    """Report how many labeled conversations are not learned from, since they repeat a text."""
    for note in logs.note_on_repeats:
        progress.note(f"Note: {note}")


def not_scorable(conversations: Iterable[Conversation]) -> list[tuple[str, str]]:
    """Return conversations that no judge can be asked about, and why."""
    return [(c.id, c.not_scorable) for c in conversations if c.not_scorable]


def listed(one: str, more: str, lines: Sequence[str]) -> list[str]:
    """Return a count with its noun, and the first lines; nothing without lines."""
    if not lines:
        return []
    rest = [f"  and {len(lines) - LISTED} more"] if len(lines) > LISTED else []
    return [f"{count(len(lines), one, more)}:", *(f"  {line}" for line in lines[:LISTED]), *rest]


def shortened(ids: Sequence[str], most: int = 3) -> str:
    """Return the first ids of many."""
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")


def files_of(*given: object) -> list[str]:
    """Return the names of files or globs, which may not be overwritten."""
    return [name for one in given for name in names_of(one) if name != IN_MEMORY]


def names_of(given: object) -> list[str]:
    """Return file names for the record of a run; `IN_MEMORY` for other data."""
    if given is None:
        return []
    if isinstance(given, str | Path):
        return [str(given)]
    if isinstance(given, Logs) or not isinstance(given, Sequence):
        return [IN_MEMORY]
    return [str(one) for one in given]
