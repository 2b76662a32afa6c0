"""Detection of outages, and the time waited for a server to come back."""

from __future__ import annotations

from pollex.gateway.responses import HttpFault

_LONGEST_PAUSE = 8.0


class Outage:
    """Faults in a row, on one event loop.

    A server is away when it can't be reached or says so (HTTP 502, 503, 504), or when as many different calls failed
    since its last answer as may fail in a row. While it is away one call at a time tries it, after pauses that double,
    each time another one if there is one. A call that failed and fails again after others were answered begins no
    outage: that is its own failure.

    Args:
        failures: Calls that may fail in a row.
        first_pause: Seconds.

    Attributes:
        answered: Whether the server has answered anything yet.
        faults: How many came since the last answer.
    """

    def __init__(self, failures: int, first_pause: float) -> None:
        self._failures = failures
        self._first_pause = first_pause
        self._calls = set[str]()
        self._answers = 0
        self._failed_at = dict[str, int]()
        self._since = 0.0
        self._pause = 0.0
        self._paused_until = 0.0
        self.answered = False
        self.faults = 0

    @property
    def begun(self) -> bool:
        """Whether the server is considered down."""
        return self._pause > 0

    @property
    def widespread(self) -> bool:
        """Whether too many calls failed for the calls themselves to be the reason."""
        return not self.answered or len(self._calls) >= self._failures

    def lasts(self, now: float) -> float:
        """Return the seconds since the first fault after the last answer."""
        return now - self._since

    def is_own(self, key: str) -> bool:
        """Return whether others were answered since this call failed first."""
        return self._failed_at.get(key, self._answers) < self._answers

    def note_fault(self, key: str, fault: HttpFault, sent_at: float, now: float) -> bool:
        """Count a fault; return whether the outage began with it."""
        self._failed_at.setdefault(key, self._answers)
        if self.is_own(key) and not self.begun:
            return False
        if not self._calls:
            self._since = now
        self._calls.add(key)
        self.faults += 1
        if not (fault.away or len(self._calls) >= self._failures):
            return False
        begins = not self.begun
        if begins or sent_at >= self._paused_until:  # not another of those that were out together
            self._pause = min(_LONGEST_PAUSE, max(2 * self._pause, self._first_pause))
            self._paused_until = now + max(self._pause, fault.wait or 0.0)
        return begins

    def note_answer(self) -> None:
        """End the outage, if there is one. Where too many calls failed, it says nothing against any of them."""
        if len(self._calls) >= self._failures:
            self._failed_at.clear()
        self._calls.clear()
        self._pause, self.faults = 0.0, 0
        self._answers += 1
        self.answered = True

    def pause(self, now: float) -> float:
        """Return the seconds for which nothing is to be sent."""
        return max(0.0, self._paused_until - now) if self.begun else 0.0
