"""A world with planted truth: how often replies fail, what an edit does to that, and judges with known faults."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, t

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.rooms.remedy.measures.looks import (
    BETTER,
    DEFAULT_LOOKS,
    GOING,
    NOTHING,
    WORSE,
    compute_equal_step_bounds,
    decide_at_look,
)
from pollex.rooms.remedy.measures.proofs import (
    ANY_STRATUM,
    FAILING_STRATUM,
    HARM_SHARE_OF_LEVEL,
    TWO_SIDED_Z,
    ProofArrays,
    compute_z,
)

GOOD, BAD, NOISE = 0.8, 0.25, 0.15
"""What a judge answers on average about replies that do well and that fail, and its spread, on the scale 0 … 1."""
ERRS = 0.12
"""Share of replies that a judge takes for the other kind."""
MOST = 6
"""Conversations of a user."""


@dataclass(frozen=True)
class Planted:
    """What an edit does.

    Attributes:
        mends: Share of failing replies that it mends.
        breaks: Share of fine replies that it breaks.
    """

    mends: float = 0.0
    breaks: float = 0.0

    def on(self, failing: Floats) -> Floats:
        """Return the chance to fail under the edit."""
        return failing * (1 - self.mends) + (1 - failing) * self.breaks


NULL = Planted()
HALF = Planted(0.5)
MOSTLY = Planted(0.8)


@dataclass
class RemedyWorld:
    """Conversations of users, whose replies fail with a chance of their own."""

    rng: np.random.Generator

    def chances(
        self, runs: int, users: int, share: float = 0.5, most: int = MOST
    ) -> tuple[Floats, Bools]:
        """Return the chance of each conversation to fail, and which conversations there are `[run, user, most]`."""
        own = self.rng.beta(share * 6, (1 - share) * 6, (runs, users, 1))
        failing = np.clip(own + self.rng.normal(0, 0.1, (runs, users, most)), 0.01, 0.99)
        there = np.arange(most) < self.rng.integers(1, most + 1, (runs, users, 1))
        return failing, there

    def answers(
        self, failing: Floats, replies: int, *, gullible: float = 0.0, errs: float = ERRS
    ) -> Floats:
        """Draw replies and a judge's answers, and return their mean `[...]`.

        Args:
            gullible: Share of failing replies that the judge believes to do well, as they claim.
        """
        return np.asarray(
            self.each_answer(failing, replies, gullible=gullible, errs=errs).mean(axis=-1)
        )

    def each_answer(
        self, failing: Floats, replies: int, *, gullible: float = 0.0, errs: float = ERRS
    ) -> Floats:
        """Draw replies and a judge's answers `[..., reply]`; see `answers`."""
        fails = self.rng.random((*failing.shape, replies)) < failing[..., None]
        seen = fails ^ (self.rng.random(fails.shape) < errs)
        seen &= self.rng.random(fails.shape) >= gullible
        return self.judged(seen)

    def judged(self, seen: Bools) -> Floats:
        """Return a judge's answers about replies that it takes for failing `[...]`."""
        return np.clip(np.where(seen, BAD, GOOD) + self.rng.normal(0, NOISE, seen.shape), 0, 1)

    def difference(
        self, runs: int, users: int, replies: int, edit: Planted, **world: float
    ) -> Floats:
        """Return each user's mean difference of new and old replies `[run, user]`."""
        failing, there = self.chances(runs, users, **world)  # type: ignore[arg-type]
        each = self.answers(edit.on(failing), replies) - self.answers(failing, replies)
        return mean_over(each, there)

    def proof(
        self, failing: int, others: int, edits: Sequence[Planted], shares: Sequence[float]
    ) -> ProofArrays:
        """Draw a whole proof: the target and guardrails, each with what the edit does to it.

        Args:
            failing: Users with a context where the target failed; half of the replies there fail
                again.
            others: Users with any other context.
            edits: What the edit does to each question; the target is the first.
            shares: How often each guardrail fails under the old prompt.
        """
        n = failing + others
        replies = 2
        values = np.zeros((n, 2, replies, len(edits)))
        for question, (edit, share) in enumerate(zip(edits, (0.5, *shares), strict=True)):
            chances = self.chances(1, n, share, most=1)[0][0, :, 0]
            for arm, each in enumerate((chances, edit.on(chances))):
                values[:, arm, :, question] = self.each_answer(each, replies)
        stratum = np.array([FAILING_STRATUM] * failing + [ANY_STRATUM] * others)
        waves = [np.arange(size) * DEFAULT_LOOKS // size for size in (failing, others)]
        sizes = {"length": np.exp(self.rng.normal(5, 0.3, (n, 2, replies)))}
        names = [f"question {number}" for number in range(len(edits))]
        return ProofArrays(values, stratum, np.arange(n), np.concatenate(waves), names, sizes)

    def truth(self, edit: Planted, share: float = 0.5) -> float:
        """Return the effect in a judge's units, from a large sample."""
        failing, _ = self.chances(2000, 500, share, most=1)
        seen = (1 - 2 * ERRS) * (edit.on(failing) - failing).mean()
        high, low = (
            np.clip(self.rng.normal(one, NOISE, 2_000_000), 0, 1).mean() for one in (GOOD, BAD)
        )
        return float(-seen * (high - low))


def mean_over(values: Floats, there: Bools) -> Floats:
    """Return the mean over a user's conversations `[run, user]`."""
    return np.asarray((values * there).sum(axis=-1) / there.sum(axis=-1))


@dataclass(frozen=True)
class Proofs:
    """Outcomes of many proofs.

    Attributes:
        outcome: `BETTER`, `WORSE` or `NOTHING` `[run]`.
        low, high: Interval of the look at which each ended `[run]`.
        users: Users until then `[run]`.
    """

    outcome: Ints
    low: Floats
    high: Floats
    users: Ints

    @property
    def better(self) -> float:
        """Share of runs that end above zero."""
        return float((self.outcome == BETTER).mean())

    @property
    def worse(self) -> float:
        """Share of runs that end below zero."""
        return float((self.outcome == WORSE).mean())


def proofs(values: Floats, alpha: float = 0.05, clear: Bools | None = None) -> Proofs:
    """Prove many edits with four looks each.

    Args:
        values: Each user's mean difference `[run, user]`.
        clear: Whether guardrails are cleared early `[run]`; None: in no run.
    """
    runs, n = values.shape
    bounds = compute_equal_step_bounds(alpha=alpha)
    harm_bounds = compute_equal_step_bounds(alpha=alpha * HARM_SHARE_OF_LEVEL)
    outcome = np.full(runs, GOING)
    low = np.zeros(runs)
    high = np.zeros(runs)
    used = np.full(runs, n)
    clear = np.zeros(runs, dtype=bool) if clear is None else clear
    for look, bound in enumerate(bounds):
        m = n * (look + 1) // len(bounds)
        seen = values[:, :m]
        found = decide_at_look(compute_z(seen), look, bounds, clear, harm_bounds)
        ends = (outcome == GOING) & (found != GOING)
        half = t.isf(norm.sf(bound), m - 1) * seen.std(axis=1, ddof=1) / np.sqrt(m)
        low[ends], high[ends] = (seen.mean(axis=1) - half)[ends], (seen.mean(axis=1) + half)[ends]
        outcome[ends], used[ends] = found[ends], m
    return Proofs(outcome, low, high, used)


__all__ = [
    "HALF",
    "MOSTLY",
    "NOTHING",
    "NULL",
    "TWO_SIDED_Z",
    "Planted",
    "Proofs",
    "RemedyWorld",
    "mean_over",
    "proofs",
]
