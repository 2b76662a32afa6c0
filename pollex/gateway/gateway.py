"""The one client of a model: sends, waits, and never pays twice for a reply."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import TracebackType
from typing import Self

from typing_extensions import TypeIs

from pollex.errors import Interrupted, LimitReached, ModelRefused, ModelUnavailable, PollexError
from pollex.gateway.batches.desk import ModelBatchQueue
from pollex.gateway.budget import Budget, Limits, UsageTable
from pollex.gateway.calls import (
    CALL_LEASE_SECONDS,
    Call,
    CompletedReply,
    ContextExceeded,
    EmptyReply,
    FailedCall,
    Ledger,
    MalformedReply,
    Outcome,
    OutcomeKind,
    Reply,
    Request,
    StoredReply,
    TruncatedPrompt,
    Usage,
    compute_upper_prompt_token_bound,
    estimate_prompt_tokens,
    estimate_tokens,
)
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.limiter import RateLimiter
from pollex.gateway.redaction import redact_secrets
from pollex.gateway.responses import HttpFault, interpret_reply
from pollex.gateway.transport import ChatModel, ModelConnection, open_connection
from pollex.text import escape_controls


class SharedCall:
    """Shared work on one key.

    It has no owner: if an asker is canceled, a sent call is still received and recorded, while an
    unsent one is dropped.

    Attributes:
        sent: Whether a call was sent, so that ending the work would lose a paid reply.
        abandoned: Whether the work was ended before it had a result.
    """

    def __init__(self, work: Callable[[SharedCall], Coroutine[None, None, Outcome]]) -> None:
        self.sent = False
        self.abandoned = False
        self._askers = 0
        self.task = asyncio.ensure_future(work(self))
        # Marks an error as retrieved, in case all askers were canceled.
        self.task.add_done_callback(
            lambda task: None if task.cancelled() else task.exception() and None
        )

    async def wait(self) -> Outcome:
        """Wait for the outcome."""
        self._askers += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._askers -= 1
            if not self._askers:
                self.abandon()

    def abandon(self) -> None:
        """End the work, unless a call is out."""
        if not self.sent and not self.task.done():
            self.abandoned = True
            self.task.cancel()


@dataclass(slots=True)
class GatewaySession:
    """Connections, slots and calls that are out."""

    wire: ModelConnection
    limiter: RateLimiter
    outage: OutageTracker
    flights: dict[str, SharedCall] = field(default_factory=dict)
    open: AsyncGenerator[None] = field(init=False)

    def __post_init__(self) -> None:
        self.open = self._open()

    async def _open(self) -> AsyncGenerator[None]:
        """Keep connections open until the generator is closed.

        `asyncio.run` closes generators without an owner when its loop ends.
        """
        try:
            yield
        finally:
            await self.wire.close()

    def start(
        self, key: str, work: Callable[[SharedCall], Coroutine[None, None, Outcome]]
    ) -> SharedCall:
        """Return a new flight, to be found under `key` until it is over."""
        flight = self.flights[key] = SharedCall(work)

        def forget(_: object) -> None:
            if self.flights.get(key) is flight:
                del self.flights[key]

        flight.task.add_done_callback(forget)
        return flight

    async def drain(self, seconds: float) -> None:
        """End what was not sent, and waits up to `seconds` for what was."""
        flights = list(self.flights.values())
        for flight in flights:
            flight.abandon()

        if not flights:
            return

        _, late = await asyncio.wait(
            [flight.task for flight in flights],
            timeout=seconds,
        )
        for task in late:
            task.cancel()

        await asyncio.gather(*late, return_exceptions=True)


NO_KEY_HINT = "no key was sent: set OPENAI_API_KEY"
_MAX_USELESS_REPLIES = 2
"""Times that a reply is paid for in which there is nothing to read: a second one is seldom better than the first."""
_MAX_BACKOFF_SECONDS = 30.0
_MAX_OUTAGE_PAUSE_SECONDS = 8.0


class CallRetries:
    """One call's attempts in this run.

    Network and server faults count towards `max_attempts`, replies that are malformed or empty may
    come twice, and 429 counts nothing: it costs time, not money, up to `max_wait`.

    Attributes:
        rejected_at: When the first 429 came; None before any.
    """

    def __init__(self, limits: Limits, jitter: random.Random) -> None:
        self._limits = limits
        self._jitter = jitter
        self._faults = 0
        self._useless = 0
        self.rejected_at: float | None = None

    def backoff(self, meaning: HttpFault | MalformedReply | EmptyReply) -> float | None:
        """Return the seconds to wait before the next try; None if there is none."""
        if isinstance(meaning, MalformedReply | EmptyReply):
            self._useless += 1
            if self._useless < _MAX_USELESS_REPLIES:
                return self._spread(self._useless)
            return None

        if meaning.action != "retry":
            return None

        self._faults += 1
        if self._faults >= self._limits.max_attempts:
            return None
        return max(meaning.wait or 0.0, self._spread(self._faults))

    def note_fault(self) -> None:
        """Count a fault of a call after which it is sent again without `backoff`."""
        self._faults += 1

    def note_rejection(self, now: float) -> None:
        """Note a 429; the first one counts."""
        if self.rejected_at is None:
            self.rejected_at = now

    def _spread(self, number: int) -> float:
        longest = min(_MAX_BACKOFF_SECONDS, self._limits.backoff * 2.0 ** (number - 1))
        return longest * self._jitter.uniform(0.5, 1.5)


class OutageTracker:
    """Faults in a row, on one event loop.

    A server is away when it can't be reached or says so (HTTP 502, 503, 504), or when as many
    different calls failed since its last answer as may fail in a row. While it is away one call at
    a time tries it, after pauses that double, each time another one if there is one. A call that
    failed and fails again after others were answered begins no outage: that is its own failure.

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
        return not self.answered or not self.few

    @property
    def few(self) -> bool:
        """Whether so few different calls failed that they may be the reason themselves."""
        return len(self._calls) < self._failures

    def lasts(self, now: float) -> float:
        """Return the seconds since the first fault after the last answer."""
        return now - self._since

    def is_own(self, key: str) -> bool:
        """Return whether others were answered since this call failed first."""
        return self._failed_at.get(key, self._answers) < self._answers

    def note_fault(
        self,
        key: str,
        fault: HttpFault,
        sent_at: float,
        now: float,
    ) -> bool:
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
        # not another of those that were out together
        if begins or sent_at >= self._paused_until:
            self._pause = min(_MAX_OUTAGE_PAUSE_SECONDS, max(2 * self._pause, self._first_pause))
            self._paused_until = now + max(self._pause, fault.wait or 0.0)

        return begins

    def note_answer(self, useless_to: str | None = None) -> None:
        """End the outage, if there is one. Where too many calls failed, it says nothing against any of them.

        Args:
            useless_to: The call that was answered by nothing that can be read; None where it was
                answered.
        """
        if len(self._calls) >= self._failures:
            self._failed_at.clear()

        self._calls.clear()
        self._pause = 0.0
        self.faults = 0
        self.answered = True
        if useless_to is None:
            self._answers += 1
        else:
            self._failed_at.setdefault(useless_to, self._answers)

    def pause(self, now: float) -> float:
        """Return the seconds for which nothing is to be sent."""
        if self.begun:
            return max(0.0, self._paused_until - now)
        return 0.0


class CircuitBreaker:
    """Decides when the way things go should end the run, and in what words.

    Args:
        where: The endpoint, for messages.
        keyless: Whether calls carry no key: what an endpoint says of a wrong one is then said of a
            missing one.
        served: Whether the endpoint has answered other calls before, those of its probe.
    """

    def __init__(
        self,
        limits: Limits,
        where: str,
        *,
        keyless: bool = False,
        served: bool = False,
    ) -> None:
        self._keyless = keyless
        self._limits = limits
        self._where = redact_secrets(where)
        self._failed_in_a_row = 0
        self._refused_in_a_row = 0
        self._served = False
        self._probe_served = served
        self._cut_prompts = 0
        self._answered = False
        self._useless = set[str]()

    def of_fault(self, fault: HttpFault) -> PollexError | None:
        """Return the error that ends the run because of one reply.

        What is refused while other calls are served is that call's own failure, a firewall's 403
        for example.
        """
        if fault.action == "stop":
            self._refused_in_a_row += 1
            served = self._served or (self._probe_served and fault.concerns_one)
            if served and not fault.concerns_all and self._refused_in_a_row < self._limits.failures:
                return None

            missing = fault.name == "key" and self._keyless
            return self._say(
                ModelRefused,
                fault.detail,
                NO_KEY_HINT if missing else fault.hint,
            )
        if (fault.wait or 0.0) > self._limits.max_wait:
            what = f"the endpoint asks to wait {fault.wait:g} s, more than max_wait={self._limits.max_wait:g}"
            return self._say(ModelUnavailable, what, "resume later")
        return None

    def note_served(self) -> None:
        """Note that a call was answered."""
        self._served = True
        self._refused_in_a_row = 0

    def note_known_answer(self) -> None:
        """Note that a call was answered in an earlier run: not all that the endpoint writes is useless."""
        self._answered = True

    def of_reply(self, key: str, reply: Outcome) -> PollexError | None:
        """Return the error for an endpoint whose first replies are all such that nothing can be read.

        Then no call is sent a second time: what is wrong is the endpoint, and not these calls.
        """
        if not is_useless_reply(reply):
            self._answered = True
        if self._answered:
            return None

        self._useless.add(key)
        if len(self._useless) < self._limits.failures:
            return None
        return self._failing(len(self._useless), reply)

    def _failing(self, count: int, last: Outcome) -> PollexError:
        what = f"{count} calls in a row failed, the last with {last.detail}"
        hint = "check the endpoint with `pollex doctor`, then resume"
        return self._say(ModelUnavailable, what, hint)

    def of_starving(self) -> PollexError:
        """Return the error that ends a run of which nothing was accepted for `max_wait`."""
        what = f"nothing but HTTP 429 for {self._limits.max_wait:g} s"
        return self._say(
            ModelUnavailable,
            what,
            "resume later, or ask for a higher rate limit",
        )

    def of_outage(self, fault: HttpFault) -> PollexError:
        """Return the error for an endpoint that was down for `max_wait`."""
        what = f"no answer for {self._limits.max_wait:g} s, the last attempt failed with {fault.name}: {fault.detail}"
        hint = "check the endpoint with `pollex doctor`, then resume"
        error = ModelUnavailable(what, where=self._where, hint=hint)
        error.fault = fault.name

        return error

    def waiting(self, fault: HttpFault) -> str:
        """Describe an outage at its beginning."""
        until = f"waiting up to {self._limits.max_wait:g} s for it (max_wait)"
        return f"{self._where}: {fault.name}: {fault.detail}; {until}"

    def of_outcome(self, outcome: Outcome, *, is_own_failure: bool = False) -> PollexError | None:
        """Return the error that ends the run because too many calls came to this.

        Args:
            is_own_failure: Whether it is known to be the call's own failure, as others were answered
                meanwhile.
        """
        # failures in a row: another call's answer ends the row
        if isinstance(outcome, FailedCall) or is_useless_reply(outcome):
            self._failed_in_a_row = self._failed_in_a_row + (not is_own_failure)
        else:
            self._failed_in_a_row = 0

        if self._failed_in_a_row >= self._limits.failures:
            return self._failing(self._failed_in_a_row, outcome)

        # prompts that were cut without a word, in the whole run
        self._cut_prompts += isinstance(outcome, TruncatedPrompt)
        if self._cut_prompts >= self._limits.cut_prompts:
            what = f"the endpoint cuts long prompts without saying so: {outcome.detail}"
            return self._say(
                ModelRefused,
                what,
                "raise the server's context window (num_ctx in Ollama), then resume",
            )

        return None

    def _say(
        self,
        kind: Callable[..., PollexError],
        what: str,
        hint: str,
    ) -> PollexError:
        return kind(what, where=self._where, hint=hint)


RETRYABLE_OUTCOMES: frozenset[OutcomeKind] = frozenset(
    {"error", "empty", "unparsable", "context_exceeded", "silently_truncated"}
)
"""Outcomes with nothing in them that was paid for and can be used; a resumed run asks again."""

MAX_DRAIN_SECONDS = 30.0

_FIRST_LEDGER_CHECK_SECONDS, _MAX_SECONDS_BETWEEN_LEDGER_CHECKS = 0.05, 1.0
"""Seconds, about, after which another process's call is looked for."""

LOGGER = logging.getLogger(__name__)
"""Says when an endpoint is waited for: on standard error, unless the program that imports pollex wants it elsewhere."""


class Gateway:
    """Asks a model, within limits, through a ledger.

    `ask` may be called from any number of tasks of one event loop; once closed, from another
    loop's. What stops one call stops all: after the first refusal, used-up limit or `stop`, calls
    that are out come back and are recorded, and every other `ask` raises the same error.

    Attributes:
        used: Calls, tokens and outcomes of this run, by stage.

    Args:
        endpoint: Where to ask, or any LangChain chat model.
        ledger: Who remembers what was paid.
        retry_outcomes: Kinds of recorded outcomes that are asked again; add `refused` for
            `--retry-refused`.
        window: Tokens that fit the model's context; None leaves it to the endpoint to say.
        budget: What it shares with other gateways, whose calls and money count together; None: one
            of its own.
        desk: Where calls wait for a provider's batch; None asks all of them at once.
        drain_seconds: Most that calls which are out are waited for when it is closed.
        served: Whether the endpoint has answered before: what it then refuses first may be that
            call's own failure.
    """

    def __init__(
        self,
        endpoint: Endpoint | ChatModel,
        ledger: Ledger,
        limits: Limits | None = None,
        *,
        retry_outcomes: Collection[OutcomeKind] = RETRYABLE_OUTCOMES,
        window: int | None = None,
        budget: Budget | None = None,
        desk: ModelBatchQueue | None = None,
        drain_seconds: float = MAX_DRAIN_SECONDS,
        served: bool = False,
    ) -> None:
        self.endpoint = endpoint
        self._drain_seconds = drain_seconds
        self.limits = limits or Limits()
        self.used = UsageTable()
        self._ledger = ledger
        self._retry_outcomes = frozenset(retry_outcomes)
        self._window = window
        self._budget = budget or Budget(self.limits)
        self._health = CircuitBreaker(
            self.limits,
            f"{endpoint.model} at {endpoint.shown}",
            keyless=endpoint.keyless,
            served=served,
        )
        self._session: GatewaySession | None = None
        self._stopped: PollexError | None = None
        self._desk = desk
        if desk is not None:
            desk.serve(self.used, self._budget, self.stop, self._flights)

        self._jitter = random.Random()  # only spreads retries over time; enters no result

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def ask(self, call: Call) -> Outcome:
        """Return the outcome of `call`, from the ledger if it is there.

        Tasks that ask the same at the same time share one call.

        Raises:
            ModelRefused: The endpoint will never serve calls as they are configured.
            ModelUnavailable: The endpoint can't serve now; the run may be resumed.
            LimitReached: A limit is used up; the run may be resumed.
            Interrupted: `stop` was called.
        """
        session = await self._opened()
        request = self.endpoint.request(call)
        # who asks the same at the same time waits for the same call
        flight = session.flights.get(request.key)
        if flight is None or flight.abandoned:
            flight = session.start(
                request.key,
                lambda flight: self._settle(session, request, flight),
            )

        try:
            return await flight.wait()
        except asyncio.CancelledError:
            if self._stopped is not None and flight.task.cancelled():
                raise self._error() from None
            raise

    def stop(self, error: PollexError | None = None) -> None:
        """Send nothing more; calls that are out still come back."""
        if self._stopped is None:
            self._stopped = error or Interrupted("stopped", hint="resume to go on")
        if self._session is not None:
            self._session.limiter.close(self._error)
        if self._desk is not None:
            self._desk.drop(self._error)

    async def close(self) -> None:
        """Wait for calls that are out and end the connections. Another `ask` opens new ones."""
        session = self._session
        self._session = None
        if self._desk is not None:
            await self._desk.close()
        if session is not None:
            await session.drain(self._drain_seconds)
            await session.open.aclose()

    async def _opened(self) -> GatewaySession:
        if self._session is None:
            limiter = RateLimiter(
                self.limits.concurrency,
                self.limits.spacing,
                backoff=self.limits.backoff,
            )
            wire = open_connection(self.endpoint, self.limits.concurrency)
            self._session = GatewaySession(
                wire,
                limiter,
                OutageTracker(self.limits.failures, self.limits.backoff),
            )
            if self._stopped is not None:
                limiter.close(self._error)
            await anext(self._session.open)  # takes no turn of the loop

        return self._session

    def _flights(self) -> int:
        if self._session is not None:
            return len(self._session.flights)
        return 0

    def _error(self) -> PollexError:
        """Return the error that stopped the run, as a new object for each waiter."""
        error = self._stopped or Interrupted("stopped")
        return type(error)(
            error.what,
            where=error.where,
            hint=error.hint,
            option=error.options,
        )

    async def _settle(
        self,
        session: GatewaySession,
        request: Request,
        flight: SharedCall,
    ) -> Outcome:
        # from the ledger, or known to be too long; else from a batch, else sent now
        stored = await self._ledger.lookup(request.key)
        outcome = self._known(stored, request) or self._too_long(request.call)
        if isinstance(outcome, CompletedReply):
            self._health.note_known_answer()
        if outcome is None and self._desk is not None and self._desk.takes(request):
            if self._stopped is not None:
                raise self._error()
            await self._desk.leave(request, _count_stored_attempts(stored) + 1)

        if outcome is None:
            outcome = await self._send_until_settled(
                session,
                request,
                flight,
                stored,
            )
            # what an earlier run paid for in vain, too, says nothing of other calls
            own = session.outage.is_own(request.key)
            own = own or (stored is not None and is_useless_reply(outcome))
            if error := self._health.of_outcome(outcome, is_own_failure=own):
                self.stop(error)

        outcome = replace(outcome, key=request.key)
        self.used.settle(request.call.stage, outcome)
        return outcome

    def _known(self, stored: StoredReply | None, request: Request) -> Outcome | None:
        if stored is None:
            return None

        meaning = interpret_reply(Reply.stored(stored), request.call)
        outcome = _make_failed_call(meaning) if isinstance(meaning, HttpFault) else meaning
        # what was paid for in vain may be asked again
        if outcome.kind in self._retry_outcomes and not self._just_failed(meaning, request, stored):
            return None
        return outcome

    def _just_failed(
        self,
        meaning: Outcome | HttpFault,
        request: Request,
        stored: StoredReply,
    ) -> bool:
        """Return whether a batch that this command fetched brought a failure that would only come again."""
        if self._desk is None or request.key not in self._desk.fresh:
            return False

        passing = isinstance(meaning, HttpFault) and meaning.action in ("retry", "wait")
        return not passing or _count_stored_attempts(stored) >= self.limits.max_attempts

    def _too_long(self, call: Call) -> Outcome | None:
        if self._window is None:
            return None

        # a bound that is quick to compute first, then the estimate
        room = self._window - (call.max_tokens or 0)
        if (
            compute_upper_prompt_token_bound(call.messages) <= room
            or (needed := estimate_prompt_tokens(call.messages)) <= room
        ):
            return None

        needed += call.max_tokens or 0
        return ContextExceeded(
            detail=f"about {needed} tokens needed, the window has {self._window}"
        )

    async def _send_until_settled(
        self,
        session: GatewaySession,
        request: Request,
        flight: SharedCall,
        stored: StoredReply | None,
    ) -> Outcome:
        # attempts count on from those that the ledger has
        patience = CallRetries(self.limits, self._jitter)
        number = _count_stored_attempts(stored)
        sent = 0
        while True:
            meaning = await self._attempt(
                session,
                request,
                flight,
                patience,
                number + 1,
            )
            if meaning is None:
                stored = await self._from_elsewhere(request.key)
                if outcome := self._known(stored, request):
                    return replace(outcome, attempts=sent)
                number = _count_stored_attempts(stored)
                continue

            # it was sent and paid for, whatever came
            number = number + 1
            sent = sent + 1
            if isinstance(meaning, Outcome) and not is_useless_reply(meaning):
                return replace(meaning, attempts=sent)
            if isinstance(meaning, HttpFault) and meaning.action == "wait":
                if not self._starved(session, patience):
                    continue
            elif (
                isinstance(meaning, HttpFault)
                and meaning.action == "retry"
                and session.outage.begun
            ):
                if session.outage.few:  # the call itself may be the reason
                    patience.note_fault()
                if self._waits(session.outage, meaning, sent):
                    continue
            elif (seconds := patience.backoff(meaning)) is not None:
                await asyncio.sleep(seconds)
                continue

            if isinstance(meaning, HttpFault):
                outcome = _make_failed_call(meaning)
            else:
                outcome = meaning

            return replace(outcome, attempts=sent)

    async def _from_elsewhere(self, key: str) -> StoredReply | None:
        """Wait until another process has the reply to a call that it sent, or has given it up."""
        # looks come at growing distances, so that many waiters don't crowd the ledger
        pause = _FIRST_LEDGER_CHECK_SECONDS
        while await self._ledger.is_out(key):
            if self._stopped is not None:
                raise self._error()
            await asyncio.sleep(pause * self._jitter.uniform(0.5, 1.5))
            pause = min(2 * pause, _MAX_SECONDS_BETWEEN_LEDGER_CHECKS)

        return await self._ledger.lookup(key)

    async def _attempt(
        self,
        session: GatewaySession,
        request: Request,
        flight: SharedCall,
        patience: CallRetries,
        number: int,
    ) -> Outcome | HttpFault | None:
        """Send once, and hold the slot until the reply is recorded; None where another process does.

        At most as many calls as slots can therefore be paid twice.
        """
        await self._budget.enter()
        try:
            return await self._attempt_in_turn(
                session,
                request,
                flight,
                patience,
                number,
            )
        finally:
            self._budget.leave()

    async def _attempt_in_turn(
        self,
        session: GatewaySession,
        request: Request,
        flight: SharedCall,
        patience: CallRetries,
        number: int,
    ) -> Outcome | HttpFault | None:
        """Send once, as `_attempt` does, when the limiter has a slot."""
        # the slot is held until the reply is recorded
        given_at = await session.limiter.acquire(first=number > 1 and not session.outage.begun)
        flight.sent = True
        try:
            reply = await self._exchange(session, request, number)
            if reply is None:
                return None
            meaning = interpret_reply(reply, request.call)
            self._note(session, request.key, meaning, given_at)
            self._adapt(session.limiter, meaning, given_at, patience)
            self._bill(request.call, reply, meaning)
            if isinstance(meaning, Outcome) and (
                error := self._health.of_reply(request.key, meaning)
            ):
                self.stop(error)
                raise self._error()
            return meaning
        finally:
            flight.sent = False
            session.limiter.release(given_at)

    async def _exchange(
        self, session: GatewaySession, request: Request, number: int
    ) -> Reply | None:
        """Intent, call, record; a ledger that fails ends the run. None where another process sends it."""
        call = request.call
        try:
            # the intent is on disk before anything is sent
            self._budget.take()
            about = {
                "stage": call.stage,
                "item": call.item,
                "request": request.body.decode(),
            }
            if not await self._ledger.intend(
                request.key, number, about, max(CALL_LEASE_SECONDS, 1.1 * self.limits.deadline)
            ):
                self._budget.give_back()
                return None

            if self._stopped is not None and not isinstance(
                self._stopped, LimitReached | Interrupted
            ):
                # a reply could not be kept, or is refused to all: this one's would be, too
                raise self._error()

            self.used.stage(call.stage).sent += 1
            reply = await session.wire.send(request, self.limits.deadline)
            await self._ledger.record(
                request.key,
                number,
                reply.facts(number),
                reply.body,
            )
        except PollexError as error:
            self.stop(error)
            raise
        except Exception as error:
            self.stop(
                PollexError(
                    f"the ledger failed: {error}",
                    hint="free disk space or repair the store, then resume",
                )
            )
            raise

        return reply

    def _adapt(
        self,
        limiter: RateLimiter,
        meaning: Outcome | HttpFault,
        given_at: float,
        patience: CallRetries,
    ) -> None:
        fault = meaning if isinstance(meaning, HttpFault) else None
        if fault is not None and (error := self._health.of_fault(fault)):
            self.stop(error)
            raise self._error()

        if fault is not None and fault.action == "wait":
            patience.note_rejection(asyncio.get_running_loop().time())
            limiter.reject(given_at, fault.wait)
        elif fault is None:
            self._health.note_served()
            # an endpoint that answers nothing is not asked faster
            limiter.accept(given_at, grows=not is_useless_reply(meaning))

    def _note(
        self,
        session: GatewaySession,
        key: str,
        meaning: Outcome | HttpFault,
        given_at: float,
    ) -> None:
        """Count consecutive faults; hold calls back during an outage. Timeouts don't count."""
        if isinstance(meaning, HttpFault) and meaning.action == "retry":
            now = asyncio.get_running_loop().time()
            if session.outage.note_fault(key, meaning, given_at, now):
                LOGGER.warning("%s", escape_controls(self._health.waiting(meaning)))
            if session.outage.begun:
                session.limiter.hold(session.outage.pause(now))
        elif not (isinstance(meaning, HttpFault) and meaning.name == "timeout"):
            useless = not isinstance(meaning, HttpFault) and is_useless_reply(meaning)
            session.outage.note_answer(useless_to=key if useless else None)

    def _waits(self, outage: OutageTracker, fault: HttpFault, sent: int) -> bool:
        """Return whether a call is sent again during an outage.

        Raises:
            ModelUnavailable: It has gone on for `max_wait`, and for more calls than may be at fault
                themselves.
        """
        # one call alone may be at fault itself: it has its attempts and no more
        lasts = outage.lasts(asyncio.get_running_loop().time())
        most = self.limits.max_attempts
        if outage.widespread:
            if lasts <= self.limits.max_wait or outage.faults < most:
                return True
            self.stop(self._health.of_outage(fault))
            raise self._error()

        return sent < most

    def _starved(self, session: GatewaySession, patience: CallRetries) -> bool:
        """Return whether a call got only 429 for too long; end if all did."""
        now = asyncio.get_running_loop().time()
        # refused since then; the whole endpoint, if nothing was accepted since
        if patience.rejected_at is None:
            since = now
        else:
            since = patience.rejected_at

        if now - since <= self.limits.max_wait:
            return False
        if session.limiter.accepted_at < since:
            self.stop(self._health.of_starving())
            raise self._error()
        return True

    def _bill(
        self,
        call: Call,
        reply: Reply,
        meaning: Outcome | HttpFault,
    ) -> None:
        """Count tokens of replies that an endpoint charges for, or may; an error is none, whatever its status."""
        # what timed out may be charged, too
        answered = reply.status == HTTPStatus.OK and not isinstance(meaning, HttpFault | FailedCall)
        if not answered and reply.problem != "timeout":
            return

        # where the endpoint counts no tokens, they are estimated
        if isinstance(meaning, Outcome):
            usage = meaning.usage
        else:
            usage = Usage()

        estimated = None
        if not usage.known:
            if isinstance(meaning, Outcome):
                written = estimate_tokens(meaning.text)
            else:
                written = 0

            estimated = Usage(
                prompt=estimate_prompt_tokens(call.messages),
                completion=written,
            )

        self.used.bill(call.stage, usage, estimated=estimated)
        if not usage.known and self.limits.price is not None:
            usage = Usage(
                prompt=estimate_prompt_tokens(call.messages),
                completion=call.max_tokens or 0,
            )

        self._budget.spend(usage)


def is_useless_reply(meaning: Outcome | HttpFault) -> TypeIs[MalformedReply | EmptyReply]:
    """Tell whether a reply was paid for in vain: nothing in it can be read as an answer."""
    return isinstance(meaning, MalformedReply | EmptyReply)


def _make_failed_call(fault: HttpFault) -> FailedCall:
    return FailedCall(
        fault=fault.name,
        detail=f"{fault.name}: {fault.detail}" if fault.detail else fault.name,
    )


def _count_stored_attempts(stored: StoredReply | None) -> int:
    if stored is not None:
        return int(stored.outcome.get("attempt", 0))
    return 0
