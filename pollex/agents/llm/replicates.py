"""One more run of the same calls: a door that draws their chance anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pollex.agents.llm.asking import Asker, Door
from pollex.gateway.calls import Call
from pollex.gateway.capabilities import Capabilities
from pollex.gateway.outcomes import Outcome

STRIDE = 1000
"""Numbers of a run's own samples and second tries; those of the next run begin behind them, so that none are shared."""


@dataclass(frozen=True)
class Replicate:
    """See `agents.llm.asking.Door`.

    A call of another replicate has another key: it is paid by itself, and found again by itself. Its seed is another,
    too, for an endpoint that obeys seeds would give all runs one answer; and its temperature is that of samples.

    Attributes:
        seeds: How many a run uses by itself, one for each of its samples.
    """

    door: Door
    capabilities: Capabilities
    number: int
    temperature: float
    seeds: int = 1

    async def ask(self, call: Call) -> Outcome:
        """What became of the call in this run."""
        seed = None if call.seed is None else call.seed + self.seeds * self.number
        drawn = replace(call, replicate=call.replicate + STRIDE * self.number, seed=seed, temperature=self.temperature)
        return await self.door.ask(self.capabilities.fit(drawn))


def again(asker: Asker, number: int, seeds: int = 1) -> Asker:
    """The asker as it asks in its run of that number; see `Replicate`."""
    door = Replicate(asker.door, asker.capabilities, number, asker.options.temperature, seeds)
    return replace(asker, door=door)
