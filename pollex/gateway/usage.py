"""Calls, tokens and cost by stage: planned before a run, used after it, in the same table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from pollex.gateway.calls import Call
from pollex.gateway.limits import Price
from pollex.gateway.outcomes import Outcome, Usage
from pollex.gateway.tokens import prompt_estimate


@dataclass(slots=True)
class StageUsage:
    """One row of the table.

    Attributes:
        asked: Calls that came to an outcome, or that are planned.
        sent: HTTP calls, attempts included.
        known: Calls for which nothing was sent: the ledger had the reply, or the prompt was longer than the window.
        prompt: Tokens read, of the calls that were counted.
        completion: Tokens written, of the calls that were counted.
        uncounted: Calls sent whose tokens the endpoint didn't count.
        outcomes: How many of each kind; they sum to `asked` in a table of what was used.
    """

    asked: int = 0
    sent: int = 0
    known: int = 0
    prompt: int = 0
    completion: int = 0
    uncounted: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def cost(self, price: Price | None) -> float | None:
        """None where it can't be told: no price, or tokens that nobody counted. Never a guess, never 0 for unknown."""
        if price is None or self.uncounted:
            return None
        return price.cost(self.prompt, self.completion)

    def __iadd__(self, other: StageUsage) -> StageUsage:
        self.asked += other.asked
        self.sent += other.sent
        self.known += other.known
        self.prompt += other.prompt
        self.completion += other.completion
        self.uncounted += other.uncounted
        self.outcomes += other.outcomes
        return self


@dataclass(slots=True)
class UsageTable:
    """Rows by stage, in the order in which stages began.

    Attributes:
        models: How often each model and fingerprint answered; more than one means that it was swapped during the run.
    """

    stages: dict[str, StageUsage] = field(default_factory=dict)
    models: Counter[tuple[str, str]] = field(default_factory=Counter)

    def stage(self, name: str) -> StageUsage:
        """The row of a stage, made where there is none."""
        return self.stages.setdefault(name, StageUsage())

    @property
    def total(self) -> StageUsage:
        """The sum of all rows."""
        total = StageUsage()
        for row in self.stages.values():
            total += row
        return total

    def plan(self, calls: Iterable[Call], *, completion: int) -> None:
        """Adds calls that would be sent, at an estimated number of tokens to write each."""
        for call in calls:
            row = self.stage(call.stage)
            row.asked += 1
            row.sent += 1
            row.prompt += prompt_estimate(call.messages)
            row.completion += completion

    def settle(self, stage: str, outcome: Outcome) -> None:
        """Adds a call that came to an outcome."""
        row = self.stage(stage)
        row.asked += 1
        row.known += outcome.attempts == 0
        row.outcomes[outcome.kind] += 1
        if outcome.model:
            self.models[outcome.model, outcome.fingerprint] += 1

    def send(self, stage: str) -> None:
        """Adds an HTTP call."""
        self.stage(stage).sent += 1

    def bill(self, stage: str, usage: Usage) -> None:
        """Adds the tokens of one call that is charged for, or may be: one without a reply too."""
        row = self.stage(stage)
        row.uncounted += not usage.known
        row.prompt += usage.prompt or 0
        row.completion += usage.completion or 0
