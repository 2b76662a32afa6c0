"""Progress in notebooks: a bar a stage, and notes above them."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.progress import Progress, TaskID

from pollex.text import printable


class NotebookProgress:
    """Bars of the stages, as rich draws them in Jupyter."""

    def __init__(self) -> None:
        self._bars = Progress()
        self._tasks: dict[str, TaskID] = {}

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Begin a stage, or give it a new total."""
        if stage in self._tasks:
            self._bars.update(self._tasks[stage], total=total, completed=done)
        else:
            self._tasks[stage] = self._bars.add_task(stage, total=total, completed=done)

    def advance(self, stage: str, by: int = 1) -> None:
        """Move a stage's bar."""
        self._bars.advance(self._tasks[stage], by)

    def note(self, text: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(printable(text, keep_lines=True), markup=False, highlight=False)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()
