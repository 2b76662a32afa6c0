"""What takes seconds: worked out beside, while the page says that it is."""

import logging
import secrets
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

from pollex.errors import PollexError
from pollex.graphs.context import Progress
from pollex.web.faults import RequestError

logger = logging.getLogger("pollex.web")

WORK_LOCK = Lock()
"""One thing is worked out after the other: pages are still answered meanwhile."""


class BackgroundValue:
    """A value that a thread works out, and how far it is.

    Attributes:
        stage: What is being done.
        value: None before the end, and where it failed.
        fault: What went wrong.
    """

    def __init__(self, make: Callable[[Progress], object]) -> None:
        self.stage = "waiting for its turn"
        self.value: Any = None
        self.fault: PollexError | None = None
        self._thread = Thread(target=self._work, args=(make,), daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait a moment: what is soon there needs no second look."""
        self._thread.join(seconds)

    def start(self, stage: str, total: int, done: int = 0) -> None:  # noqa: ARG002 - as progress has it
        """Say what is being done."""
        self.stage = stage

    def advance(self, stage: str, by: int = 1) -> None:
        """Ignore how many are done: stages are short."""

    def note(self, text: str) -> None:
        """Ignore notes."""

    def _work(self, make: Callable[[Progress], object]) -> None:
        try:
            with WORK_LOCK:
                self.value = make(self)
        except PollexError as error:
            self.fault = error
        except Exception as error:
            # the number leads from the page to the entry in the log
            number = secrets.token_hex(4)
            logger.error("%s", number, exc_info=error)
            self.fault = RequestError(
                f"unexpected {type(error).__name__}",
                hint=f"the server's output has more under {number}",
            )
