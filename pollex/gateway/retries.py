"""Rules for sending a call again, for waiting while a server is away, and for giving up."""

import random
from collections.abc import Callable

from pollex.errors import ModelRefused, ModelUnavailable, PollexError
from pollex.gateway.budget import Limits
from pollex.gateway.calls import Failed, Malformed, Outcome, SilentlyTruncated
from pollex.gateway.redaction import redacted
from pollex.gateway.responses import HttpFault

NO_KEY = "no key was sent: set OPENAI_API_KEY"
_MOST_MALFORMED = 3
_LONGEST_BACKOFF = 30.0
_SHORTEST_WAIT = 0.1
_LONGEST_PAUSE = 8.0


class RetryPolicy:
    """One call's attempts in this run.

    Network and server faults count towards `max_attempts`, malformed replies may come three times, and 429 counts
    nothing: it costs time, not money, up to `max_wait`.
    """

    def __init__(self, limits: Limits, jitter: random.Random) -> None:
        self._limits = limits
        self._jitter = jitter
        self._faults = 0
        self._malformed = 0
        self._rejected = 0
        self._rejected_at = 0.0

    def backoff(self, meaning: HttpFault | Malformed) -> float | None:
        """Return the seconds to wait before the next try; None if there is none."""
        if isinstance(meaning, Malformed):
            self._malformed += 1
            return self._spread(self._malformed) if self._malformed < _MOST_MALFORMED else None
        if meaning.action != "retry":
            return None
        self._faults += 1
        if self._faults >= self._limits.max_attempts:
            return None
        return max(meaning.wait or 0.0, self._spread(self._faults))

    def rejection(self, fault: HttpFault, now: float) -> float:
        """Return the seconds for which a 429 stops all sending, the endpoint's if given."""
        self._rejected += 1
        if self._rejected == 1:
            self._rejected_at = now
        asked = fault.wait or 0.0
        return asked if asked >= _SHORTEST_WAIT else self._spread(self._rejected)

    def rejected_since(self, now: float) -> float:
        """Return when the first 429 came; `now` if there was none."""
        return self._rejected_at if self._rejected else now

    def _spread(self, number: int) -> float:
        longest = min(_LONGEST_BACKOFF, self._limits.backoff * 2.0 ** (number - 1))
        return longest * self._jitter.uniform(0.5, 1.5)


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


class CircuitBreaker:
    """Decides when the way things go should end the run, and in what words.

    Args:
        where: The endpoint, for messages.
        keyless: Whether calls carry no key: what an endpoint says of a wrong one is then said of a missing one.
    """

    def __init__(self, limits: Limits, where: str, *, keyless: bool = False) -> None:
        self._keyless = keyless
        self._limits = limits
        self._where = redacted(where)
        self._failed_in_a_row = 0
        self._refused_in_a_row = 0
        self._served = False
        self._cut_prompts = 0

    def of_fault(self, fault: HttpFault) -> PollexError | None:
        """Return the error that ends the run because of one reply.

        What is refused while other calls are served is that call's own failure, a firewall's 403 for example.
        """
        if fault.action == "stop":
            self._refused_in_a_row += 1
            if self._served and not fault.concerns_all and self._refused_in_a_row < self._limits.failures:
                return None
            missing = fault.name == "key" and self._keyless
            return self._say(ModelRefused, fault.detail, NO_KEY if missing else fault.remedy)
        if (fault.wait or 0.0) > self._limits.max_wait:
            what = f"the endpoint asks to wait {fault.wait:g} s, more than max_wait={self._limits.max_wait:g}"
            return self._say(ModelUnavailable, what, "resume later")
        return None

    def note_served(self) -> None:
        """Note that a call was answered."""
        self._served, self._refused_in_a_row = True, 0

    def of_starving(self) -> PollexError:
        """Return the error that ends a run of which nothing was accepted for `max_wait`."""
        what = f"nothing but HTTP 429 for {self._limits.max_wait:g} s"
        return self._say(ModelUnavailable, what, "resume later, or ask for a higher rate limit")

    def of_outage(self, fault: HttpFault) -> PollexError:
        """Return the error for an endpoint that was down for `max_wait`."""
        what = f"no answer for {self._limits.max_wait:g} s, the last attempt failed with {fault.name}: {fault.detail}"
        return self._say(ModelUnavailable, what, "check the endpoint with `pollex doctor`, then resume")

    def waiting(self, fault: HttpFault) -> str:
        """Describe an outage at its beginning."""
        until = f"waiting up to {self._limits.max_wait:g} s for it (max_wait)"
        return f"{self._where}: {fault.name}: {fault.detail}; {until}"

    def of_outcome(self, outcome: Outcome, *, own: bool = False) -> PollexError | None:
        """Return the error that ends the run because too many calls came to this.

        Args:
            own: Whether it is known to be the call's own failure, as others were answered meanwhile.
        """
        failed = isinstance(outcome, Failed | Malformed)
        self._failed_in_a_row = self._failed_in_a_row + (not own) if failed else 0
        if self._failed_in_a_row >= self._limits.failures:
            what = f"{self._failed_in_a_row} calls in a row failed, the last with {outcome.detail}"
            return self._say(ModelUnavailable, what, "check the endpoint with `pollex doctor`, then resume")
        self._cut_prompts += isinstance(outcome, SilentlyTruncated)
        if self._cut_prompts >= self._limits.cut_prompts:
            what = f"the endpoint cuts long prompts without saying so: {outcome.detail}"
            return self._say(ModelRefused, what, "raise the server's context window (num_ctx in Ollama), then resume")
        return None

    def _say(self, kind: Callable[..., PollexError], what: str, remedy: str) -> PollexError:
        return kind(what, where=self._where, remedy=remedy)
