"""What the user allows a run, and what of it is used up."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pollex.errors import LimitReached, WrongUse
from pollex.gateway.outcomes import Usage

_PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens, in whatever currency the user thinks in.

    Attributes:
        read: For prompt tokens.
        written: For completion tokens.
    """

    read: float
    written: float

    def __post_init__(self) -> None:
        if not (0 <= self.read < math.inf and 0 <= self.written < math.inf):
            raise WrongUse(
                f"prices of {self.read:g} and {self.written:g} for a million tokens",
                remedy="give numbers from 0 on: --price-in, --price-out",
            )

    def cost(self, prompt: int, completion: int) -> float:
        """Of that many tokens."""
        return (prompt * self.read + completion * self.written) / _PER_MILLION


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard, how long and how much.

    Attributes:
        concurrency: Most calls out at once; the endpoint may allow fewer.
        deadline: Seconds after which a sent call is given up. It is not sent again in this run, since the endpoint may
            be working on it, and bill it.
        max_attempts: Most times that a call is sent while the network or the server fails.
        backoff: Seconds, about, before a call that failed is sent again; doubled each further time.
        max_wait: Most seconds to wait for an endpoint that asks to; beyond, the run pauses.
        max_calls: Most calls sent, attempts included.
        max_cost: Most money, known costs plus estimates where the endpoint doesn't count tokens.
        price: Needed for `max_cost`.
        failures: So many calls failing in a row pause the run.
        cut_prompts: So many silently truncated prompts stop the run.
    """

    concurrency: int = 64
    deadline: float = 120.0
    max_attempts: int = 4
    backoff: float = 0.5
    max_wait: float = 300.0
    max_calls: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    failures: int = 10
    cut_prompts: int = 3

    def __post_init__(self) -> None:
        counted = min(self.concurrency, self.max_attempts, self.failures, self.cut_prompts)
        if counted < 1 or not self.deadline > 0:  # NaN is above nothing
            raise WrongUse("a limit is below 1", remedy="give positive numbers for concurrency, deadline and attempts")
        for name in ("max_wait", "max_calls", "max_cost"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                option = f"--{name.replace('_', '-')}"
                raise WrongUse(f"{option} {value:g}", remedy="give a number from 0 on, or leave it out")
        if self.max_cost is not None and self.price is None:
            raise WrongUse("--max-cost needs prices", remedy="add --price-in and --price-out")


class Budget:
    """Counts calls and money against `Limits`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.calls = 0
        self.cost = 0.0

    def take(self) -> None:
        """Counts one call about to be sent.

        Raises:
            LimitReached: It may not be sent.
        """
        limits = self._limits
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            raise LimitReached(f"--max-calls {limits.max_calls} reached", remedy="resume with a higher limit")
        if limits.max_cost is not None and self.cost >= limits.max_cost:
            raise LimitReached(f"--max-cost {limits.max_cost:g} reached", remedy="resume with a higher limit")
        self.calls += 1

    def spend(self, usage: Usage) -> None:
        """Adds what a reply cost."""
        if self._limits.price is not None:
            self.cost += self._limits.price.cost(usage.prompt or 0, usage.completion or 0)
