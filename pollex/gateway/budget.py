"""Calls, tokens and cost by stage, planned before a run and used after it."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from dataclasses import dataclass, field, replace

from pollex.errors import LimitReached, WrongUse
from pollex.gateway.calls import Outcome, Usage


@dataclass(slots=True)
class StageUsage:
    """One row of the table.

    Attributes:
        asked: Calls that came to an outcome, or that are planned.
        sent: HTTP calls, attempts included.
        known: Calls for which nothing was sent: the ledger had the reply, or the prompt was longer
            than the window.
        prompt: Tokens read, of the calls that were counted.
        completion: Tokens written, of the calls that were counted.
        uncounted: Calls sent whose tokens the endpoint didn't count.
        prompt_estimated: Tokens read of these, estimated from the texts.
        completion_estimated: Tokens written of these, likewise.
        apart: Whether these calls may go into batches.
        batched: Prompt and completion tokens, of these, that were charged at the price of batches.
        outcomes: How many of each kind; they sum to `asked` in a table of what was used.
    """

    asked: int = 0
    sent: int = 0
    known: int = 0
    prompt: int = 0
    completion: int = 0
    uncounted: int = 0
    prompt_estimated: int = 0
    completion_estimated: int = 0
    apart: bool = False
    batched: tuple[int, int] = (0, 0)
    outcomes: Counter[str] = field(default_factory=Counter)

    def cost(self, price: Price | None) -> float | None:
        """Return the cost; None if the price or some token counts are unknown."""
        if price is None or self.uncounted:
            return None
        return price.cost(self.prompt, self.completion) - price.discount * price.cost(*self.batched)

    def estimated_cost(self, price: Price | None) -> float | None:
        """Return the cost with estimates for what the endpoint didn't count; None without a price."""
        if price is None:
            return None

        tokens = self.prompt + self.prompt_estimated, self.completion + self.completion_estimated
        return price.cost(*tokens) - price.discount * price.cost(*self.batched)

    def __iadd__(self, other: StageUsage) -> StageUsage:
        for name in ("asked", "sent", "known", "prompt", "completion", "uncounted"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

        for name in ("prompt_estimated", "completion_estimated"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

        self.batched = (self.batched[0] + other.batched[0], self.batched[1] + other.batched[1])
        self.outcomes += other.outcomes
        return self


@dataclass(slots=True)
class UsageTable:
    """Rows by stage, in the order in which stages began.

    Attributes:
        models: How often each model and fingerprint answered; more than one means that it was
            swapped during the run.
    """

    stages: dict[str, StageUsage] = field(default_factory=dict)
    models: Counter[tuple[str, str]] = field(default_factory=Counter)

    def stage(self, name: str) -> StageUsage:
        """Return the row of a stage, made where there is none."""
        return self.stages.setdefault(name, StageUsage())

    @property
    def total(self) -> StageUsage:
        """The sum of all rows."""
        total = StageUsage()
        for row in self.stages.values():
            total += row
        return total

    def settle(self, stage: str, outcome: Outcome) -> None:
        """Add a call that came to an outcome."""
        row = self.stage(stage)
        row.asked += 1
        row.known += outcome.attempts == 0
        row.outcomes[outcome.kind] += 1
        if outcome.model:
            self.models[outcome.model, outcome.fingerprint] += 1

    def bill(
        self,
        stage: str,
        usage: Usage,
        *,
        estimated: Usage | None = None,
        by_batch: bool = False,
    ) -> None:
        """Add the tokens of one call that is or may be charged, even without reply.

        Args:
            estimated: Tokens by the texts, for what `usage` doesn't tell.
        """
        row = self.stage(stage)
        prompt = usage.prompt or 0
        completion = usage.completion or 0
        row.uncounted += not usage.known
        row.prompt += prompt
        row.completion += completion

        if estimated is not None:
            row.prompt_estimated += (estimated.prompt or 0) if usage.prompt is None else 0
            row.completion_estimated += (
                (estimated.completion or 0) if usage.completion is None else 0
            )

        if by_batch:
            row.batched = (row.batched[0] + prompt, row.batched[1] + completion)


_TOKENS_PER_PRICE_UNIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens, in the user's currency.

    Attributes:
        read: For prompt tokens.
        written: For completion tokens.
        discount: Share of the price that calls by batch don't cost.
    """

    read: float
    written: float
    discount: float = 0.5

    def __post_init__(self) -> None:
        if not (0 <= self.read < math.inf and 0 <= self.written < math.inf):
            raise WrongUse(
                f"prices of {self.read:g} and {self.written:g} for a million tokens",
                hint="give numbers from 0 on",
                option="price",
            )

        if not 0 <= self.discount <= 1:
            what = f"a discount of {self.discount:g}"
            raise WrongUse(
                what,
                hint="give a share from 0 to 1",
                option="batch_discount",
            )

    def cost(self, prompt: int, completion: int) -> float:
        """Compute the price of these numbers of tokens."""
        return (prompt * self.read + completion * self.written) / _TOKENS_PER_PRICE_UNIT


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on concurrency, time and cost.

    Attributes:
        concurrency: Most calls out at once; the endpoint may allow fewer.
        deadline: Seconds after which a sent call is given up. It is not sent again in this run,
            since the endpoint may be working on it, and bill it.
        max_attempts: Most times that a call is sent while the network or the server fails.
        backoff: Seconds, about, before a call that failed is sent again; doubled each further time.
        max_wait: Most seconds to wait for an endpoint that is away or asks for a pause; then the
            run ends.
        max_calls: Most calls sent, attempts included.
        calls_per_minute: Most calls sent in a minute; None: as many as the endpoint takes.
        max_cost: Most money, known costs plus estimates where the endpoint doesn't count tokens.
        price: Needed for `max_cost`.
        failures: So many calls failing in a row pause the run.
        cut_prompts: So many silently truncated prompts stop the run.
    """

    concurrency: int = 64
    deadline: float = 120.0
    max_attempts: int = 4
    backoff: float = 0.5
    max_wait: float = 120.0
    max_calls: int | None = None
    calls_per_minute: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    failures: int = 10
    cut_prompts: int = 3

    def __post_init__(self) -> None:
        if self.calls_per_minute is None:
            a_minute = 1
        else:
            a_minute = self.calls_per_minute

        # whole numbers from 1 on
        counted = min(
            self.concurrency,
            self.max_attempts,
            self.failures,
            self.cut_prompts,
            a_minute,
        )
        if counted < 1 or not self.deadline > 0:  # NaN is above nothing
            raise WrongUse(
                "a limit is below 1",
                hint="give positive numbers for concurrency, calls a minute, deadline and attempts",
            )

        for name in ("max_wait", "max_calls", "max_cost"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise WrongUse(
                    f"{name} is {value:g}",
                    hint="give a number from 0 on, or leave it out",
                    option=name,
                )

        if self.max_cost is not None and self.price is None:
            raise WrongUse(
                "a limit of costs needs prices",
                hint="add them",
                option={"price": "0.15:0.60"},
            )

    @property
    def spacing(self) -> float:
        """Seconds between two calls at least; 0 without a limit of calls a minute."""
        return 60 / self.calls_per_minute if self.calls_per_minute else 0.0

    def shared(self, workers: int) -> Limits:
        """Return the part of one of so many workers, in what is not leased: concurrency and calls a minute."""
        a_minute = None
        if self.calls_per_minute is not None:
            a_minute = max(1, self.calls_per_minute // workers)

        return replace(
            self,
            concurrency=max(1, self.concurrency // workers),
            calls_per_minute=a_minute,
        )


def write_way_on(limit: float) -> str:
    """Return what to do where a limit of calls or cost is reached."""
    # a run that may send nothing would end here each time it was resumed
    if limit == 0:
        return "0 lets nothing be sent: give a larger limit, or look at --dry-run for what it takes"
    return "resume: what was answered is kept, and the limit counts anew"


SECONDS_BETWEEN_BUDGET_CHECKS = 0.02
"""Seconds between two looks whether a call may be out."""


class Budget:
    """Counts calls and money against `Limits`.

    Args:
        whole: What all of it counts against, too: that of a command which asks several models at
            their own prices.
    """

    def __init__(self, limits: Limits, whole: Budget | None = None) -> None:
        self._limits = limits
        self._whole = whole
        self.calls = 0
        self.cost = 0.0
        self._out = 0
        self._dearest = 0.0
        self._paid = False

    @property
    def has_room(self) -> bool:
        """Whether one more call may be out: all that are out and it can't come to more than one call over `max_cost`.

        Until a first call has told what one costs, one at a time is out.
        """
        # all that are out, each as dear as the dearest so far, must stay within the limit
        most = self._limits.max_cost
        has_money = (
            most is None
            or not self._out
            or (self._paid and self.cost + self._out * self._dearest < most)
        )
        return has_money and (self._whole is None or self._whole.has_room)

    async def enter(self) -> None:
        """Wait until one more call may be out, and count it; `leave` ends that."""
        while not self.has_room:  # noqa: ASYNC110 - of several loops and gateways, which an event is not for
            await asyncio.sleep(SECONDS_BETWEEN_BUDGET_CHECKS)
        self._count_out(1)

    def leave(self) -> None:
        """Count a call as no longer out."""
        self._count_out(-1)

    def _count_out(self, change: int) -> None:
        self._out += change
        if self._whole is not None:
            self._whole._count_out(change)

    def take(self) -> None:
        """Count one call about to be sent.

        Raises:
            LimitReached: It may not be sent.
        """
        limits = self._limits
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            raise LimitReached(
                f"max_calls {limits.max_calls} reached",
                hint=write_way_on(limits.max_calls),
                option="max_calls",
            )

        if limits.max_cost is not None and self.cost >= limits.max_cost:
            raise LimitReached(
                f"max_cost {limits.max_cost:g} reached",
                hint=write_way_on(limits.max_cost),
                option="max_cost",
            )

        if self._whole is not None:
            self._whole.take()

        self.calls += 1

    def give_back(self) -> None:
        """Count one call less: it is not sent after all."""
        self.calls -= 1
        if self._whole is not None:
            self._whole.give_back()

    def spend(self, usage: Usage, *, by_batch: bool = False) -> None:
        """Add what a reply cost, or may cost."""
        if (price := self._limits.price) is not None:
            share = 1 - price.discount if by_batch else 1.0
            self._pay(share * price.cost(usage.prompt or 0, usage.completion or 0))

    def _pay(self, cost: float) -> None:
        self.cost += cost
        self._dearest = max(self._dearest, cost)
        self._paid = True
        if self._whole is not None:
            self._whole._pay(cost)
