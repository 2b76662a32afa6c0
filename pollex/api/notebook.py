"""Progress in notebooks: a bar a stage, and notes below them."""

from __future__ import annotations

from html import escape
from importlib import import_module
from time import monotonic
from types import TracebackType
from typing import Any, Self

from pollex.text import printable

EVERY = 0.2
"""Seconds between two drawings."""


class NotebookProgress:
    """One output of a cell that is drawn anew while the work goes on; it needs no widgets."""

    def __init__(self) -> None:
        self._stages: dict[str, list[int]] = {}
        self._notes: list[str] = []
        self._output: Any = None
        self._drawn_at = 0.0

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Begin a stage, or give it a new total."""
        self._stages[stage] = [done, total]
        self._draw()

    def advance(self, stage: str, by: int = 1) -> None:
        """Move a stage's bar."""
        self._stages[stage][0] += by
        if monotonic() - self._drawn_at >= EVERY:
            self._draw()

    def note(self, text: str) -> None:
        """Add a line."""
        self._notes.append(printable(text, keep_lines=True))
        self._draw()

    def html(self) -> str:
        """Return what the output shows."""
        bars = "".join(
            f"<div><progress value='{done}' max='{max(total, 1)}'></progress> {escape(stage)} {done}/{total}</div>"
            for stage, (done, total) in self._stages.items()
        )
        return bars + "".join(f"<div>{escape(note)}</div>" for note in self._notes)

    def _draw(self) -> None:
        self._drawn_at = monotonic()
        if self._output is not None:
            self._output.update({"text/html": self.html(), "text/plain": "; ".join(self._notes)}, raw=True)

    def __enter__(self) -> Self:
        display = import_module("IPython.display").display  # every notebook has it; pollex needs it nowhere else
        self._output = display({"text/plain": "pollex"}, raw=True, display_id=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._draw()
