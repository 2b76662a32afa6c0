"""A proof of one change against the old prompt, as arrays: what each look and the verdict read.

Answers are on the scale 0 … 1, better is higher. A missing answer is NaN, and never a score: an effect that is to be
called better must hold with missing new replies as failing and missing old ones as not, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.looks import BETTER, GOING, WORSE, decided
from pollex.measures.paired_effects import (
    MARGIN,
    PairedEffect,
    by_length,
    called_worse,
    cleared,
    effect,
    of_users,
    p_of_drop,
    smallest_effect,
)

FAILING, FINE, ANY = 0, 1, 2
"""Strata: contexts where the target failed, where its occasion went well, and any others."""
OLD, NEW = 0, 1
FEWEST_USERS = 2
Verdict = Literal["judged better", "not cleared", "no difference found", "worse"]
GuardrailState = Literal["worse", "cleared", "open"]


@dataclass(frozen=True)
class Guardrail:
    """What a change does to something that it doesn't aim at."""

    name: str
    effect: PairedEffect
    state: GuardrailState


@dataclass(frozen=True)
class Primary:
    """The effect on the target, at the look where the proof ended.

    Attributes:
        worst: The same with missing new replies as failing and missing old ones as not.
        look: From 1.
        smallest: Effect that so many users would have shown in 80 %.
        length: Whether it may be one of length alone.
    """

    effect: PairedEffect
    worst: PairedEffect
    look: int
    outcome: int
    smallest: float
    length: bool


@dataclass
class ProofArrays:
    """Answers of a proof.

    Attributes:
        values: `[context, arm, reply, question]`; the target is question 0. NaN: missing, or not asked yet.
        length: Characters of each reply `[context, arm, reply]`; NaN: no reply.
        stratum: `[context]`.
        user: Number of each context's user `[context]`.
        wave: Look before which each context is asked, from 0 `[context]`.
        names: Of the questions.
    """

    values: Floats
    length: Floats
    stratum: Ints
    user: Ints
    wave: Ints
    names: Sequence[str]

    def differences(self, look: int, *, worst: bool = False) -> Floats:
        """Return new minus old `[context, question]` of what is asked up to a look; NaN where an arm has nothing."""
        values = self.values.copy()
        if worst:
            values[:, OLD][np.isnan(values[:, OLD])] = 1.0
            values[:, NEW][np.isnan(values[:, NEW])] = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # an arm without a reply has no mean
            means = np.nanmean(values, axis=2)
        found = means[:, NEW] - means[:, OLD]
        found[self.wave > look] = np.nan
        return np.asarray(found)

    def users_of(self, difference: Floats, where: Bools) -> Floats:
        """Return the mean difference of each user in some contexts `[user]`, in the order in which they were asked."""
        return of_users(difference[where], self.user[where])

    def guardrails(self, look: int, margin: float = MARGIN) -> list[Guardrail]:
        """Measure all but the target over all contexts."""
        difference = self.differences(look)
        each = [self.users_of(difference[:, q], np.ones(len(self.user), bool)) for q in range(1, len(self.names))]
        known = [(name, one) for name, one in zip(self.names[1:], each, strict=True) if len(one) >= FEWEST_USERS]
        if not known:
            return []
        worse = called_worse(np.array([float(p_of_drop(one)) for _, one in known]))
        return [
            Guardrail(name, effect(one, n=len(one)), "worse" if bad else "cleared" if cleared(one, margin) else "open")
            for (name, one), bad in zip(known, worse, strict=True)
        ]

    def primary(self, look: int, bounds: Sequence[float], outcome: int = GOING) -> Primary:
        """Measure the target where it failed."""
        failing = self.stratum == FAILING
        values = self.users_of(self.differences(look)[:, 0], failing)
        worst = self.users_of(self.differences(look, worst=True)[:, 0], failing & (self.wave <= look))
        n = int((~np.isnan(self.differences(look)[failing, 0])).sum())
        if len(values) < FEWEST_USERS:
            nothing = PairedEffect(0.0, -1.0, 1.0, 0.0, n, len(values))
            return Primary(nothing, nothing, look + 1, outcome, 1.0, length=False)
        ratio = self.users_of(self.log_ratio(look), failing & ~np.isnan(self.differences(look)[:, 0]))
        return Primary(
            effect(values, bounds[look], n),
            effect(worst, bounds[look], int((failing & (self.wave <= look)).sum())),
            look + 1,
            outcome,
            smallest_effect(float(values.std(ddof=1)), len(values), bounds[look]),
            length=len(values) > FEWEST_USERS and bool(by_length(values, ratio)),
        )

    def log_ratio(self, look: int) -> Floats:
        """Return ln(new length / old length) `[context]`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            mean = np.nanmean(np.log(np.maximum(self.length, 1)), axis=2)
        found = mean[:, NEW] - mean[:, OLD]
        found[self.wave > look] = np.nan
        return np.asarray(found)

    def outcome_at(self, look: int, bounds: Sequence[float]) -> int:
        """Decide at a look; see `looks.decided`."""
        guards = self.guardrails(look)
        clear = bool(guards) and all(one.state == "cleared" for one in guards)
        z = np.array([self.primary(look, bounds).effect.z])
        return int(decided(z, look, bounds, np.array([clear]))[0])

    def traffic(self, look: int, shares: Sequence[float]) -> float | None:
        """Return the effect per conversation of traffic; None where a stratum has no contexts.

        Args:
            shares: Of conversations, by stratum.
        """
        difference, total = self.differences(look)[:, 0], 0.0
        for stratum, share in enumerate(shares):
            mine = difference[(self.stratum == stratum) & ~np.isnan(difference)]
            if share and not len(mine):
                return None
            total += share * float(mine.mean()) if share else 0.0
        return total


def verdict_of(primary: Primary, guards: Sequence[Guardrail], against: Sequence[str] = ()) -> tuple[Verdict, list[str]]:
    """Return the verdict, and what speaks against it or is open, the worst first.

    Args:
        against: What else speaks against an effect, in words.
    """
    if primary.outcome == WORSE:
        return "worse", []
    if primary.outcome != BETTER:
        return "no difference found", []
    said = [f"worse: {one.name}" for one in guards if one.state == "worse"]
    if primary.worst.low <= 0:
        said.append("not shown with missing new replies counted as failing")
    if primary.length:
        said.append("may be length: at equal length little of it is left, or replies grow by half")
    said += against
    if said:
        return "not cleared", said
    return "judged better", [f"open: {one.name}" for one in guards if one.state == "open"]
