"""A proof of changes against the old prompt, as arrays: what each look and the verdict read.

Answers are on the scale 0 … 1, better is higher. A missing answer is NaN, and never a score: an effect that is to be
called better must hold with missing new replies as failing and missing old ones as not, too.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.looks import BETTER, GOING, LOOKS, WORSE, bounds_at_equal_steps, bounds_to, decided
from pollex.measures.paired_effects import (
    LONGEST,
    MARGIN,
    ONE_SIDED,
    PairedEffect,
    by_length,
    called_worse,
    cleared,
    effect,
    of_users,
    p_of_drop,
    smallest_effect,
    upper_bound,
    upper_bound_of_difference,
    z_of,
)

FAILING, FINE, ANY = 0, 1, 2
"""Strata: contexts where the target failed, where its occasion went well, and any others."""
OLD, NAIVE, CEILING = 0, 1, 2
"""Arms: the first is the old prompt; the others' are those of headroom."""
ROOM = 0.08
"""Of the scale: less than this is not worth a proof."""
FEWEST_USERS, UNTRIED = 2, {"found": False, "said": "not tried: too few replies", "n": 0}
GuardrailState = Literal["worse", "cleared", "open"]


@dataclass(frozen=True)
class Guardrail:
    """What a change does to something that it doesn't aim at.

    Attributes:
        more: Users that are still needed to clear it; 0 unless it is open.
    """

    name: str
    effect: PairedEffect
    state: GuardrailState
    more: int = 0


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


class ProofEnd(NamedTuple):
    """How the proof of one change ended: the outcome, the look, from 0, and the level of its bounds.

    Attributes:
        fraction: Of the users, where a cap of calls or cost ended it between looks; 0: it ended as planned.
    """

    outcome: int
    look: int
    alpha: float
    fraction: float = 0.0

    @property
    def bounds(self) -> Sequence[float]:
        """Bounds on |z| at each look."""
        if self.fraction:
            return bounds_to(self.look, self.fraction, self.alpha)
        return bounds_at_equal_steps(LOOKS, self.alpha)


@dataclass
class ProofArrays:
    """Answers about replies under several prompts.

    Attributes:
        values: `[context, arm, reply, question]`; the target is question 0. NaN: missing, or not asked yet.
        sizes: Positive quantities that shouldn't grow by half, by name `[context, arm, reply]`; NaN: no reply.
        stratum: `[context]`.
        user: Number of each context's user `[context]`.
        wave: Look before which each context is asked, from 0 `[context]`.
        names: Of the questions.
    """

    values: Floats
    stratum: Ints
    user: Ints
    wave: Ints
    names: Sequence[str]
    sizes: Mapping[str, Floats] = field(default_factory=dict)

    def differences(self, look: int, arm: int = 1, *, worst: bool = False) -> Floats:
        """Return new minus old `[context, question]` of what is asked up to a look; NaN where an arm has nothing."""
        pair = self.values[:, [OLD, arm]]
        if worst:
            pair[:, 0][np.isnan(pair[:, 0])] = 1.0
            pair[:, 1][np.isnan(pair[:, 1])] = 0.0
        found = np.diff(mean_of_known(pair), axis=1)[:, 0]
        found[self.wave > look] = np.nan
        return np.asarray(found)

    def users_of(self, difference: Floats, stratum: int | None = None) -> Floats:
        """Return the mean difference of each user `[user]` in the contexts of a stratum, or in all."""
        where = np.ones(len(self.user), bool) if stratum is None else self.stratum == stratum
        return of_users(difference[where], self.user[where])

    def guardrails(self, look: int, arm: int = 1, margin: float = MARGIN) -> list[Guardrail]:
        """Measure all but the target over all contexts; sizes as −ln(new / old), which may fall by ln 1.5."""
        difference, limit = self.differences(look, arm), float(np.log(LONGEST))
        rows = [(name, difference[:, q], margin, 0.0) for q, name in enumerate(self.names) if q]
        rows += [(name, -self.log_ratio(name, look, arm), limit, limit) for name in self.sizes]
        users = [(name, self.users_of(each), least, shift) for name, each, least, shift in rows]
        known = [one for one in users if len(one[1]) >= FEWEST_USERS]
        if not known:
            return []
        worse = called_worse(np.array([float(p_of_drop(one + shift)) for _, one, _, shift in known]))
        found = []
        for (name, one, least, _), bad in zip(known, worse, strict=True):
            state: GuardrailState = "worse" if bad else "cleared" if cleared(one, least) else "open"
            needed = 1.645 * float(one.std(ddof=1)) / max(least + float(one.mean()), 0.01)
            more = max(1, int(np.ceil(needed**2)) - len(one)) if state == "open" else 0
            found.append(Guardrail(name, effect(one, n=len(one)), state, more))
        return found

    def primary(self, arm: int, ended: ProofEnd) -> Primary:
        """Measure the target where it failed, with the interval of the look at which the proof ended."""
        look, bound = ended.look, ended.bounds[ended.look]
        difference = self.differences(look, arm)[:, 0]
        values = self.users_of(difference, FAILING)
        n = int((~np.isnan(difference[self.stratum == FAILING])).sum())
        if len(values) < FEWEST_USERS:
            nothing = PairedEffect(0.0, -1.0, 1.0, 0.0, n, len(values))
            return Primary(nothing, nothing, look + 1, ended.outcome, 1.0, length=False)
        worst = self.users_of(self.differences(look, arm, worst=True)[:, 0], FAILING)
        ratio = self.users_of(np.where(np.isnan(difference), np.nan, self.log_ratio("length", look, arm)), FAILING)
        return Primary(
            effect(values, bound, n),
            effect(worst, bound, int(((self.stratum == FAILING) & (self.wave <= look)).sum())),
            look + 1,
            ended.outcome,
            smallest_effect(float(values.std(ddof=1)), len(values), bound),
            length=len(values) > FEWEST_USERS and bool(by_length(values, ratio)),
        )

    def log_ratio(self, name: str, look: int, arm: int = 1) -> Floats:
        """Return ln(new / old) of a size `[context]`."""
        mean = mean_of_known(np.log(np.maximum(self.sizes[name], 1e-9)))
        found = mean[:, arm] - mean[:, OLD]
        found[self.wave > look] = np.nan
        return np.asarray(found)

    def keep(self, known: Bools, look: int) -> float:
        """Leave out contexts for good, where a cap ended the work on a look; return the fraction of users that is left.

        Args:
            known: Whether all replies to a context came `[context]`; those of later looks never do.
        """
        failing = self.stratum == FAILING
        self.wave[~known] = LOOKS
        return len(set(self.user[failing & (self.wave <= look)])) / max(len(set(self.user[failing])), 1)

    def looked(
        self, look: int, alpha: float, ended: Mapping[int, ProofEnd], fraction: float = 0.0
    ) -> dict[int, ProofEnd]:
        """Decide on each change that is still open, by Holm: the clearest first, at a stricter level with more of them.

        Args:
            ended: By arm, what earlier looks decided.
            fraction: See `ProofEnd`.
        """
        found, arms = dict(ended), self.values.shape[1] - 1
        rejected = sum(one.outcome in (BETTER, WORSE) for one in found.values())
        first = ProofEnd(GOING, look, alpha, fraction)
        z = {arm: self.primary(arm, first).effect.z for arm in range(1, arms + 1) if arm not in found}
        for arm in sorted(z, key=lambda one: -abs(z[one])):
            at = first._replace(alpha=alpha / max(1, arms - rejected))
            guards = self.guardrails(look, arm)
            clear = bool(guards) and all(one.state == "cleared" for one in guards)
            outcome = int(decided(np.array([z[arm]]), look, at.bounds, np.array([clear]))[0])
            rejected += outcome in (BETTER, WORSE)
            if outcome != GOING:
                found[arm] = at._replace(outcome=outcome)
        return found

    def score(self, look: int, arm: int) -> float:
        """Return what a selection goes by: the effect, less twice each guardrail's drop beyond its noise."""
        difference = self.differences(look, arm)
        target, *guards = (self.users_of(difference[:, q]) for q in range(len(self.names)))
        drops = [max(0.0, -float(upper_bound(one))) for one in guards if len(one) >= FEWEST_USERS]
        return (float(target.mean()) if len(target) else -1.0) - 2 * sum(drops)

    def flattered(self) -> dict[str, Any]:
        """Tell whether the judge believes replies that only claim to do well."""
        values = self.users_of(self.differences(0)[:, 0], FAILING)
        if len(values) < FEWEST_USERS:
            return UNTRIED | {"n": len(values)}
        fooled = float(z_of(values)) > ONE_SIDED
        said = "this judge can be talked into this rubric: only people or thumbs can prove it" if fooled else ""
        return {"found": fooled, "said": said, **asdict(effect(values))}

    def preferred(self, wins: Floats) -> dict[str, Any]:
        """Return the share of pairs in which a reader without rubrics prefers the new reply.

        Args:
            wins: 1, ½ or 0; NaN: no answer `[context]`.
        """
        values = self.users_of(wins - 0.5)
        if len(values) < FEWEST_USERS:
            return {"value": None, "low": None, "high": None, "n": len(values), "against": False}
        one = effect(values, n=int((~np.isnan(wins)).sum()))
        share = {"value": one.value + 0.5, "low": max(0.0, one.low + 0.5), "high": min(1.0, one.high + 0.5), "n": one.n}
        return share | {"against": float(z_of(values)) < -ONE_SIDED}

    def headroom(self) -> dict[str, Any]:
        """Tell whether replies still fail, and whether any prompt mends that.

        Returns:
            As JSON values `room`, the old prompt where it went well minus where it failed, with its upper one-sided
            95 % bound; `naive` and `ceiling`, effects of a plain sentence and of a hint for each context; `ended`, why
            nothing is to be proposed, empty to go on.
        """
        old = mean_of_known(self.values)[:, OLD, 0]
        fine, fails = self.users_of(old, FINE), self.users_of(old, FAILING)
        room, high = float(fine.mean() - fails.mean()), float(upper_bound_of_difference(fine, fails))
        naive, best = (self.users_of(self.differences(0, arm)[:, 0], FAILING) for arm in (NAIVE, CEILING))
        ceiling_high = float(upper_bound(best))
        ended = "no prompt mends this here: it lacks knowledge or tools" if ceiling_high < ROOM else ""
        if high < ROOM:
            ended = "it no longer fails more there than elsewhere, with this model and prompt"
        found = {"room": room, "room_high": high, "naive": asdict(effect(naive)), "ceiling": asdict(effect(best))}
        return found | {"ceiling_high": ceiling_high, "ended": ended}

    def traffic(self, look: int, arm: int, shares: Sequence[float]) -> float | None:
        """Return the effect per conversation of traffic; None where a stratum has no contexts.

        Args:
            shares: Of conversations, by stratum.
        """
        difference, total = self.differences(look, arm)[:, 0], 0.0
        for stratum, share in enumerate(shares):
            mine = difference[(self.stratum == stratum) & ~np.isnan(difference)]
            if share and not len(mine):
                return None
            total += share * float(mine.mean()) if share else 0.0
        return total


def mean_of_known(values: Floats) -> Floats:
    """Return means over replies `[context, arm, …]` of `[context, arm, reply, …]`; NaN where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an arm without a reply has no mean
        return np.asarray(np.nanmean(values, axis=2))


def verdict_of(primary: Primary, guards: Sequence[Guardrail], against: Sequence[str] = ()) -> tuple[str, list[str]]:
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
    needs = [f"open: {one.name}, needs about {one.more} more users" for one in guards if one.state == "open"]
    return "judged better", needs
