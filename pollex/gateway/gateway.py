"""The one client of a model: sends, waits, and never pays twice for a reply."""

import asyncio
import logging
import random
from collections.abc import Collection
from dataclasses import replace
from http import HTTPStatus
from types import TracebackType
from typing import Self

from pollex.errors import Interrupted, LimitReached, PollexError
from pollex.gateway.batches.desk import Desk
from pollex.gateway.budget import Budget, Limits, UsageTable
from pollex.gateway.calls import (
    LEASE,
    Call,
    ContextExceeded,
    Failed,
    Kind,
    Ledger,
    Malformed,
    Outcome,
    Reply,
    Request,
    StoredCall,
    Usage,
    prompt_ceiling,
    prompt_estimate,
)
from pollex.gateway.endpoint import Endpoint
from pollex.gateway.limiter import Limiter
from pollex.gateway.responses import HttpFault, read
from pollex.gateway.retries import CircuitBreaker, Outage, RetryPolicy
from pollex.gateway.session import Session, SharedCall
from pollex.gateway.transport import ChatModel, connect
from pollex.text import printable

RETRYABLE: frozenset[Kind] = frozenset({"error", "unparsable", "context_exceeded", "silently_truncated"})
"""Outcomes with nothing in them that was paid for and can be used; a resumed run asks again."""

DRAIN_SECONDS = 30.0

_FIRST_LOOK, _LONGEST_LOOK = 0.05, 1.0
"""Seconds, about, after which another process's call is looked for."""

LOG = logging.getLogger(__name__)
"""Says when an endpoint is waited for: on standard error, unless the program that imports pollex wants it elsewhere."""


class Gateway:
    """Asks a model, within limits, through a ledger.

    `ask` may be called from any number of tasks of one event loop; once closed, from another loop's. What stops one
    call stops all: after the first refusal, used-up limit or `stop`, calls that are out come back and are
    recorded, and every other `ask` raises the same error.

    Attributes:
        used: Calls, tokens and outcomes of this run, by stage.

    Args:
        endpoint: Where to ask, or any LangChain chat model.
        ledger: Who remembers what was paid.
        retry_outcomes: Kinds of recorded outcomes that are asked again; add `refused` for `--retry-refused`.
        window: Tokens that fit the model's context; None leaves it to the endpoint to say.
        budget: What it shares with other gateways, whose calls and money count together; None: one of its own.
        desk: Where calls wait for a provider's batch; None asks all of them at once.
    """

    def __init__(
        self,
        endpoint: Endpoint | ChatModel,
        ledger: Ledger,
        limits: Limits | None = None,
        *,
        retry_outcomes: Collection[Kind] = RETRYABLE,
        window: int | None = None,
        budget: Budget | None = None,
        desk: Desk | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.limits = limits or Limits()
        self.used = UsageTable()
        self._ledger = ledger
        self._retry_outcomes = frozenset(retry_outcomes)
        self._window = window
        self._budget = budget or Budget(self.limits)
        self._health = CircuitBreaker(self.limits, f"{endpoint.model} at {endpoint.shown}", keyless=endpoint.keyless)
        self._session: Session | None = None
        self._stopped: PollexError | None = None
        self._desk = desk
        if desk is not None:
            desk.serve(self.used, self._budget, self.stop, self._flights)
        self._jitter = random.Random()  # only spreads retries over time; enters no result

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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
        flight = session.flights.get(request.key)
        if flight is None or flight.abandoned:
            flight = session.start(request.key, lambda flight: self._settle(session, request, flight))
        try:
            return await flight.wait()
        except asyncio.CancelledError:
            if self._stopped is not None and flight.task.cancelled():
                raise self._error() from None
            raise

    def stop(self, error: PollexError | None = None) -> None:
        """Send nothing more; calls that are out still come back."""
        if self._stopped is None:
            self._stopped = error or Interrupted("stopped", remedy="resume to go on")
        if self._session is not None:
            self._session.limiter.close(self._error)
        if self._desk is not None:
            self._desk.drop(self._error)

    async def close(self) -> None:
        """Wait for calls that are out and end the connections. Another `ask` opens new ones."""
        session, self._session = self._session, None
        if self._desk is not None:
            await self._desk.close()
        if session is not None:
            await session.drain(DRAIN_SECONDS)
            await session.open.aclose()

    async def _opened(self) -> Session:
        if self._session is None:
            limiter = Limiter(self.limits.concurrency, self.limits.spacing)
            wire = connect(self.endpoint, self.limits.concurrency)
            self._session = Session(wire, limiter, Outage(self.limits.failures, self.limits.backoff))
            if self._stopped is not None:
                limiter.close(self._error)
            await anext(self._session.open)  # takes no turn of the loop
        return self._session

    def _flights(self) -> int:
        return len(self._session.flights) if self._session is not None else 0

    def _error(self) -> PollexError:
        """Return the error that stopped the run, as a new object for each waiter."""
        error = self._stopped or Interrupted("stopped")
        return type(error)(error.what, where=error.where, remedy=error.remedy, option=error.options)

    async def _settle(self, session: Session, request: Request, flight: SharedCall) -> Outcome:
        """Process a call until it has an outcome."""
        stored = await self._ledger.lookup(request.key)
        outcome = self._known(stored, request) or self._too_long(request.call)
        if outcome is None and self._desk is not None and self._desk.takes(request):
            if self._stopped is not None:
                raise self._error()
            await self._desk.leave(request, _attempts_so_far(stored) + 1)
        if outcome is None:
            outcome = await self._send_until_settled(session, request, flight, stored)
            if error := self._health.of_outcome(outcome, own=session.outage.is_own(request.key)):
                self.stop(error)
        outcome = replace(outcome, key=request.key)
        self.used.settle(request.call.stage, outcome)
        return outcome

    def _known(self, stored: StoredCall | None, request: Request) -> Outcome | None:
        if stored is None:
            return None
        meaning = read(Reply.stored(stored), request.call)
        outcome = _failed(meaning) if isinstance(meaning, HttpFault) else meaning
        if outcome.kind in self._retry_outcomes and not self._just_failed(meaning, request, stored):
            return None
        return outcome

    def _just_failed(self, meaning: Outcome | HttpFault, request: Request, stored: StoredCall) -> bool:
        """Return whether a batch that this command fetched brought a failure that would only come again."""
        if self._desk is None or request.key not in self._desk.fresh:
            return False
        passing = isinstance(meaning, HttpFault) and meaning.action in ("retry", "wait")
        return not passing or _attempts_so_far(stored) >= self.limits.max_attempts

    def _too_long(self, call: Call) -> Outcome | None:
        if self._window is None:
            return None
        room = self._window - (call.max_tokens or 0)
        if prompt_ceiling(call.messages) <= room or (needed := prompt_estimate(call.messages)) <= room:
            return None
        needed += call.max_tokens or 0
        return ContextExceeded(detail=f"about {needed} tokens needed, the window has {self._window}")

    async def _send_until_settled(
        self, session: Session, request: Request, flight: SharedCall, stored: StoredCall | None
    ) -> Outcome:
        patience = RetryPolicy(self.limits, self._jitter)
        number, sent = _attempts_so_far(stored), 0
        while True:
            meaning = await self._attempt(session, request, flight, patience, number + 1)
            if meaning is None:
                stored = await self._from_elsewhere(request.key)
                if outcome := self._known(stored, request):
                    return replace(outcome, attempts=sent)
                number = _attempts_so_far(stored)
                continue
            number, sent = number + 1, sent + 1
            if isinstance(meaning, Outcome) and not isinstance(meaning, Malformed):
                return replace(meaning, attempts=sent)
            if isinstance(meaning, HttpFault) and meaning.action == "wait":
                if not self._starved(session, patience):
                    continue
            elif isinstance(meaning, HttpFault) and meaning.action == "retry" and session.outage.begun:
                if self._waits(session.outage, meaning, sent):
                    continue
            elif (seconds := patience.backoff(meaning)) is not None:
                await asyncio.sleep(seconds)
                continue
            outcome = _failed(meaning) if isinstance(meaning, HttpFault) else meaning
            return replace(outcome, attempts=sent)

    async def _from_elsewhere(self, key: str) -> StoredCall | None:
        """Wait until another process has the reply to a call that it sent, or has given it up."""
        pause = _FIRST_LOOK
        while await self._ledger.is_out(key):
            if self._stopped is not None:
                raise self._error()
            await asyncio.sleep(pause * self._jitter.uniform(0.5, 1.5))
            pause = min(2 * pause, _LONGEST_LOOK)
        return await self._ledger.lookup(key)

    async def _attempt(
        self, session: Session, request: Request, flight: SharedCall, patience: RetryPolicy, number: int
    ) -> Outcome | HttpFault | None:
        """Send once, and hold the slot until the reply is recorded; None where another process does.

        At most as many calls as slots can therefore be paid twice.
        """
        given_at = await session.limiter.acquire(first=number > 1 and not session.outage.begun)
        flight.sent = True
        try:
            reply = await self._exchange(session, request, number)
            if reply is None:
                return None
            meaning = read(reply, request.call)
            self._note(session, request.key, meaning, given_at)
            self._adapt(session.limiter, meaning, given_at, patience)
            self._bill(request.call, reply, meaning)
            return meaning
        finally:
            flight.sent = False
            session.limiter.release()

    async def _exchange(self, session: Session, request: Request, number: int) -> Reply | None:
        """Intent, call, record; a ledger that fails ends the run. None where another process sends it."""
        call = request.call
        try:
            self._budget.take()
            about = {"stage": call.stage, "item": call.item, "request": request.body.decode()}
            if not await self._ledger.intend(request.key, number, about, max(LEASE, 1.1 * self.limits.deadline)):
                self._budget.give_back()
                return None
            if self._stopped is not None and not isinstance(self._stopped, LimitReached | Interrupted):
                raise self._error()  # a reply could not be kept, or is refused to all: this one's would be, too
            self.used.send(call.stage)
            reply = await session.wire.send(request, self.limits.deadline)
            await self._ledger.record(request.key, number, reply.facts(number), reply.body)
        except PollexError as error:
            self.stop(error)
            raise
        except Exception as error:
            self.stop(
                PollexError(f"the ledger failed: {error}", remedy="free disk space or repair the store, then resume")
            )
            raise
        return reply

    def _adapt(self, limiter: Limiter, meaning: Outcome | HttpFault, given_at: float, patience: RetryPolicy) -> None:
        fault = meaning if isinstance(meaning, HttpFault) else None
        if fault is not None and (error := self._health.of_fault(fault)):
            self.stop(error)
            raise self._error()
        if fault is not None and fault.action == "wait":
            limiter.reject(given_at, patience.rejection(fault, asyncio.get_running_loop().time()))
        elif fault is None:
            self._health.note_served()
            limiter.accept()

    def _note(self, session: Session, key: str, meaning: Outcome | HttpFault, given_at: float) -> None:
        """Count consecutive faults; hold calls back during an outage. Timeouts don't count."""
        if isinstance(meaning, HttpFault) and meaning.action == "retry":
            now = asyncio.get_running_loop().time()
            if session.outage.note_fault(key, meaning, given_at, now):
                LOG.warning("%s", printable(self._health.waiting(meaning)))
            if session.outage.begun:
                session.limiter.hold(session.outage.pause(now))
        elif not (isinstance(meaning, HttpFault) and meaning.name == "timeout"):
            session.outage.note_answer()

    def _waits(self, outage: Outage, fault: HttpFault, sent: int) -> bool:
        """Return whether a call is sent again during an outage.

        Raises:
            ModelUnavailable: It has gone on for `max_wait`, and for more calls than may be at fault themselves.
        """
        lasts, most = outage.lasts(asyncio.get_running_loop().time()), self.limits.max_attempts
        if outage.widespread:
            if lasts <= self.limits.max_wait or outage.faults < most:
                return True
            self.stop(self._health.of_outage(fault))
            raise self._error()
        return lasts <= min(self.limits.max_wait, self.limits.doubt) or sent < most

    def _starved(self, session: Session, patience: RetryPolicy) -> bool:
        """Return whether a call got only 429 for too long; end if all did."""
        now = asyncio.get_running_loop().time()
        since = patience.rejected_since(now)
        if now - since <= self.limits.max_wait:
            return False
        if session.limiter.accepted_at < since:
            self.stop(self._health.of_starving())
            raise self._error()
        return True

    def _bill(self, call: Call, reply: Reply, meaning: Outcome | HttpFault) -> None:
        """Count tokens of replies that an endpoint charges for, or may."""
        if reply.status != HTTPStatus.OK and reply.problem != "timeout":
            return
        usage = meaning.usage if isinstance(meaning, Outcome) else Usage()
        self.used.bill(call.stage, usage)
        if not usage.known and self.limits.price is not None:
            usage = Usage(prompt=prompt_estimate(call.messages), completion=call.max_tokens or 0)
        self._budget.spend(usage)


def _failed(fault: HttpFault) -> Failed:
    return Failed(fault=fault.name, detail=f"{fault.name}: {fault.detail}" if fault.detail else fault.name)


def _attempts_so_far(stored: StoredCall | None) -> int:
    return int(stored.outcome.get("attempt", 0)) if stored is not None else 0
