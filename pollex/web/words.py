"""Formatting of durations, times, sizes and money."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pollex.reports.numbers import MINUS, SPACE, known
from pollex.reports.transcript import Piece
from pollex.store.runs import Run
from pollex.text import printable


def duration(ms: float | None) -> str:
    """Write a duration: `820 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`; unknown where a clock was set back."""
    if not known(ms) or ms < 0:
        return "unknown"
    if ms < 1000:
        return f"{ms:.0f}{SPACE}ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f}{SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{SPACE}min {rest}{SPACE}s"
    return f"{minutes // 60}{SPACE}h {minutes % 60}{SPACE}min"


def moment(time: str | None) -> str:
    """Write an ISO time to the second, in UTC: `2026-11-22 17:39:22`."""
    return "" if not time else time[:19].replace("T", " ")


def whole(number: float | None) -> str:
    """Write a whole number with separators; missing ones are a dash."""
    return "–" if number is None else f"{number:,.0f}".replace("-", MINUS)


def dollars(amount: float | None) -> str:
    """Write a cost; one that isn't known is said to be unknown, never guessed."""
    return "unknown" if amount is None else f"${amount:,.4f}" if amount < 1 else f"${amount:,.2f}"


def one_line(text: str, limit: int = 120) -> str:
    """Write a text in one line, cut to `limit` characters."""
    return printable(" ".join(text.split()), limit)


def given(value: object) -> str:
    """Write what an option was given: lists with commas, nothing as a dash."""
    if isinstance(value, list | tuple):
        return ", ".join(map(given, value)) or "–"
    if value is None:
        return "–"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def elapsed(began: str, ended: str | None) -> str:
    """Write how long something took; empty while it goes on."""
    if not ended:
        return ""
    return duration(1000 * (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds())


@dataclass(frozen=True)
class Stretch:
    """Pieces of a turn between two fences, prose or code."""

    pieces: tuple[Piece, ...]
    code: bool


def fences(pieces: Sequence[Piece]) -> list[Stretch]:
    """Split a turn at code fences; the fences stay in the code."""
    found, code = [list[Piece]()], [False]
    for piece in pieces:
        for text in _FENCE.split(piece.text):
            fence = _FENCE.fullmatch(text) is not None
            if fence and not code[-1]:
                found.append([])
                code.append(True)
            if text:
                found[-1].append(Piece(text, piece.kind))
            if fence and code[-1] and len(found[-1]) > 1:
                found.append([])
                code.append(False)
    return [Stretch(tuple(part), is_code) for part, is_code in zip(found, code, strict=True) if part]


_FENCE = re.compile(r"(^```[^\n]*$)", re.MULTILINE)


def resuming(run: Run, folder: Path) -> str:
    """Write the command that resumes a run of a store; empty for runs that no command began."""
    command, began = shlex.join(resumed(run, folder)), run.arguments.get("folder")
    return f"cd {shlex.quote(began)} && {command}" if began and command else command


def resumed(run: Run, folder: Path) -> list[str]:
    """Return the words of that command; a run of `learn` is named, since a fork has its parent's settings."""
    typed = shlex.split(run.arguments.get("command") or "")
    forks = any(word.partition("=")[0] == FROM for word in typed)
    out = {STORE, FROM, "--rubrics-from"} if forks else {STORE}
    kept = [
        word
        for before, word in zip(["", *typed], typed, strict=False)
        if before not in out and word.partition("=")[0] not in out
    ]
    named = [FROM, run.id] if run.command == "learn" else []
    return [*kept, "--resume", *named, STORE, str(folder.absolute())] if typed else []


STORE, FROM = "--store", "--from"

FILTERS = (duration, moment, whole, dollars, one_line, given, elapsed, fences, resuming)
