"""A proof of changes against the old prompt, as arrays: what each look and the verdict read.

Answers are on the scale 0 … 1, better is higher. A missing answer is NaN, and never a score: an
effect that is to be called better must hold with missing new replies as failing and missing old
ones as not, too.

Effects are of one arm against another on the same conversations, with users as units. Their arrays
have users last, and may have any axes before: replicates of a simulation, or guardrails. Sources:
Student's t over clusters, Miller 2024, arXiv:2411.00640; sign flips of whole units, Fisher 1935,
"The Design of Experiments", section 21; Benjamini and Hochberg 1995,
doi:10.1111/j.2517-6161.1995.tb02031.x.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from math import expm1
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import false_discovery_control, norm, t

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import CONFIDENCE_LEVEL
from pollex.rooms.remedy.measures.advice import (
    SIZE_NAMES,
    VERDICT_PEOPLE_CAN_TELL,
    VERDICT_WITH_CAVEAT,
)
from pollex.rooms.remedy.measures.looks import (
    BETTER,
    DEFAULT_LOOKS,
    GOING,
    WORSE,
    compute_early_end_bounds,
    compute_equal_step_bounds,
    decide_at_look,
)
from pollex.text import JsonDict, round_estimate

FEW_USERS = 20
"""Users below which signs of whole users are flipped in place of Student's t."""
MOST_USERS_FOR_ALL_FLIPS = 12
DRAWN_FLIPS = 4095
DEFAULT_HARM_MARGIN = 0.10
"""Of the scale 0 … 1: a guardrail is cleared where a drop of so much is ruled out."""
FALSE_DISCOVERY_RATE = 0.10
"""Rate of false accusations among guardrails that are marked as worse.

The verdict has a stricter level, `FALLEN_GUARDRAILS_LEVEL`.
"""
FALLEN_GUARDRAILS_LEVEL, HARM_SHARE_OF_LEVEL = 0.001, 0.6
"""Levels of the verdict *worse*, one-sided: that of all guardrails of a change together, and what the target has of
its proof's level, .015 of the first proof's .025: a change of nothing is called worse in 2 % at
most."""
LIKELY_HARM_PROBABILITY, CERTAIN_HARM_PROBABILITY = 0.9, 0.99
"""Chances of harm, over all replies, that tell *likely harm*: the first where the effect is also beyond the margin."""
MAX_GROWTH_OF_REPLIES = 1.5
"""Growth of replies, or of what they cost, from which on it counts against a change."""
EQUAL_LENGTH_TOLERANCE = 0.05
"""Replies whose lengths differ by no more than this share are of equal length."""
LEAST_SHARE_ON_EACH_SIDE, FEWEST_USERS_ON_EACH_SIDE = 0.1, 2
"""Users with longer and with shorter new replies, without which the effect at equal length is no more than a line
drawn beyond what was seen."""
TWO_SIDED_Z = 1.96
ONE_SIDED_Z = 1.645


@dataclass(frozen=True)
class PairedEffect:
    """The mean difference of two arms, with its interval.

    Attributes:
        value: New minus old, in units of the scale 0 … 1; better is higher.
        z: The effect in standard errors, as a normal deviate.
        n: Contexts behind it.
        users: Units.
    """

    value: float
    low: float
    high: float
    z: float
    n: int
    users: int


def average_by_user(difference: Floats, user: Ints) -> Floats:
    """Return the mean difference of each user `[user]` from that of each context `[context]`; NaN is left out.

    Args:
        user: Number of each context's user `[context]`.
    """
    present = ~np.isnan(difference)
    _, codes = np.unique(user[present], return_inverse=True)
    return np.asarray(np.bincount(codes, difference[present]) / np.bincount(codes))


def compute_z(values: Floats) -> Floats:
    """Compute the deviate of the mean over users `[...]`, from Student's t over users.

    Few users go by `compute_flipped_p` instead.
    """
    n = values.shape[-1]
    error = np.maximum(values.std(axis=-1, ddof=1), 1e-9) / np.sqrt(n)
    ratio = values.mean(axis=-1) / error
    return np.asarray(np.sign(ratio) * norm.isf(np.maximum(t.sf(np.abs(ratio), n - 1), 1e-300)))


def estimate_effect(values: Floats, bound: float = TWO_SIDED_Z, n: int = 0) -> PairedEffect:
    """Estimate the effect from each user's mean difference, with the interval of a look's bound.

    Args:
        values: `[user]`; at least two.
        bound: On |z|.
        n: Contexts behind it.
    """
    # [user]: units are users, since conversations of one person are alike
    mean = float(values.mean())
    users = len(values)
    # few users: signs of whole users are flipped
    if users < FEW_USERS:
        flips = draw_sign_flips(users, np.random.default_rng(0))
        level = float(2 * norm.sf(bound))
        low, high = (find_flipped_interval_end(values, flips, level, side) for side in (-1, 1))
        z = float(np.sign(mean) * norm.isf(compute_flipped_p(values, flips) / 2))
        return PairedEffect(mean, low, high, z, n, users)

    # Student's t over users
    half = float(t.isf(norm.sf(bound), users - 1) * values.std(ddof=1) / np.sqrt(users))
    return PairedEffect(
        mean,
        mean - half,
        mean + half,
        float(compute_z(values)),
        n,
        users,
    )


def draw_sign_flips(users: int, rng: np.random.Generator) -> Floats:
    """Return signs of users `[flip, user]`: all of them for few users, else drawn; the first is as it is."""
    if users <= MOST_USERS_FOR_ALL_FLIPS:
        return np.array(list(product((1.0, -1.0), repeat=users)))

    drawn = rng.choice((1.0, -1.0), (DRAWN_FLIPS, users))
    return np.concatenate([np.ones((1, users)), drawn])


def compute_flipped_p(values: Floats, flips: Floats) -> float:
    """Compute the two-sided p-value of the mean by flipped signs."""
    means = np.abs(flips @ values)
    return float((means >= means[0] - 1e-12).mean())


def find_flipped_interval_end(
    values: Floats,
    flips: Floats,
    level: float,
    side: int,
) -> float:
    """Return an end of the interval of all effects that flipped signs don't rule out.

    Args:
        side: −1 for the lower end, 1 for the upper.
    """
    mean = float(values.mean())
    reach = float(np.abs(values - mean).max()) * 20 + 1e-6

    def kept(shift: float) -> float:
        return compute_flipped_p(values - mean - shift, flips) - level

    if kept(side * reach) >= 0:  # so few users that nothing is ruled out at this level
        return side * 1.0
    return mean + float(brentq(kept, 0.0, side * reach, xtol=1e-6))


def compute_drop_p(values: Floats) -> Floats:
    """Compute the one-sided p-value of a drop `[...]` over users."""
    return np.asarray(norm.cdf(compute_z(values)))


def compute_guardrail_p(values: Floats) -> float:
    """Return the p-value of a drop of one guardrail `[user]`.

    Few users that all differ alike have no spread: their signs are flipped, as for the target.
    """
    if len(values) < FEW_USERS:
        return float(norm.cdf(estimate_effect(values).z))
    return float(compute_drop_p(values))


def find_worse_guardrails(p: Floats) -> Bools:
    """Tell which guardrails are worse `[..., guardrail]`, by Benjamini and Hochberg over the last axis."""
    return np.asarray(false_discovery_control(p, axis=-1) <= FALSE_DISCOVERY_RATE)


def find_surely_fallen_guardrails(p: Floats) -> Bools:
    """Tell which guardrails fell for the verdict `[guardrail]`, by Holm.

    One false one is among them in `FALLEN_GUARDRAILS_LEVEL` of runs.

    Args:
        p: One-sided p-values of a drop.

    Source: Holm 1979, "A simple sequentially rejective multiple test procedure", Scandinavian
        Journal of Statistics 6.
    """
    # Holm: step down from the smallest p, never below the one before `[guardrail]`
    order = np.argsort(p, kind="stable")
    n = len(p)
    adjusted = np.maximum.accumulate(p[order] * (n - np.arange(n)))
    return np.asarray(adjusted[np.argsort(order)] <= FALLEN_GUARDRAILS_LEVEL)


def is_drop_ruled_out(values: Floats, margin: float = DEFAULT_HARM_MARGIN) -> Bools:
    """Tell whether the lower one-sided bound of an effect is above minus the margin `[...]`, over users."""
    return np.asarray(compute_upper_bound(-values) < margin)


def compute_upper_bound(values: Floats) -> Floats:
    """Compute the upper one-sided bound of a mean `[...]` over users."""
    n = values.shape[-1]
    return np.asarray(
        values.mean(axis=-1)
        + t.ppf(CONFIDENCE_LEVEL, n - 1) * values.std(axis=-1, ddof=1) / np.sqrt(n)
    )


def rules_out_drop(values: Floats, margin: float) -> bool:
    """Tell of the users of one guardrail `[user]` what `is_drop_ruled_out` tells; few go by flipped signs."""
    if len(values) < FEW_USERS:
        return estimate_effect(values, ONE_SIDED_Z).low > -margin
    return bool(is_drop_ruled_out(values, margin))


def spans_whole_scale(measured: PairedEffect) -> bool:
    """Tell whether an interval is the whole scale: so few users show nothing, however they differ."""
    return (measured.low, measured.high) == (-1.0, 1.0)


def compute_upper_bound_of_difference(first: Floats, second: Floats) -> Floats:
    """Compute the upper one-sided bound of `one`'s mean minus `other`'s `[...]`; their users are different ones."""
    n = first.shape[-1]
    m = second.shape[-1]
    error = np.sqrt(first.var(axis=-1, ddof=1) / n + second.var(axis=-1, ddof=1) / m)
    return np.asarray(
        first.mean(axis=-1) - second.mean(axis=-1) + t.ppf(CONFIDENCE_LEVEL, n + m - 2) * error
    )


def estimate_effect_at_equal_length(difference: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """Compute the effect at replies of equal length `[...]`, and its standard error.

    It is the intercept of the difference on the logarithm of the ratio of lengths.

    Args:
        difference: `[..., user]`.
        ratio: ln(new length / old length) `[..., user]`.

    Source: Dubois et al. 2024, arXiv:2404.04475.
    """
    # users are the last axis
    n = difference.shape[-1]
    mean = ratio.mean(axis=-1)
    centered = ratio - mean[..., None]
    spread = np.maximum((centered**2).sum(axis=-1), 1e-12)
    # least squares of the difference on ln(ratio); the intercept is the effect at equal length
    slope = (centered * difference).sum(axis=-1) / spread
    value = difference.mean(axis=-1) - slope * mean
    rest = difference - value[..., None] - slope[..., None] * ratio
    # a floor under the error: a line that fits exactly has no spread
    error = np.sqrt(
        np.maximum(
            (rest**2).sum(axis=-1) / (n - 2) * (1 / n + mean**2 / spread),
            1e-18,
        )
    )

    return np.asarray(value), np.asarray(error)


def spans_equal_length(ratio: Floats) -> Bools:
    """Tell whether lengths of both arms overlap, so that equal length is within what was seen `[...]`.

    Args:
        ratio: ln(new length / old length) `[..., user]`.
    """
    # replies of about equal length count on both sides
    tolerance = np.log1p(EQUAL_LENGTH_TOLERANCE)
    longer = (ratio > -tolerance).sum(axis=-1)
    shorter = (ratio < tolerance).sum(axis=-1)
    least = max(FEWEST_USERS_ON_EACH_SIDE, LEAST_SHARE_ON_EACH_SIDE * ratio.shape[-1])
    return np.asarray(np.minimum(longer, shorter) >= least)


def is_gain_kept_at_equal_length(difference: Floats, ratio: Floats) -> Bools:
    """Tell whether at equal length half of a gain is left, and it is above zero beyond chance `[...]`.

    Args:
        difference: `[..., user]`.
        ratio: ln(new length / old length) `[..., user]`.
    """
    value, error = estimate_effect_at_equal_length(difference, ratio)
    kept = (value >= difference.mean(axis=-1) / 2) & (value >= ONE_SIDED_Z * error)
    return np.asarray(spans_equal_length(ratio) & kept)


def is_gain_lost_at_equal_length(difference: Floats, ratio: Floats) -> Bools:
    """Tell whether at equal length less than half of a gain is left, and less than all beyond chance `[...]`.

    Where lengths don't overlap, or too little is certain, a gain is neither kept nor lost.

    Args:
        difference, ratio: As in `is_gain_kept_at_equal_length`.
    """
    value, error = estimate_effect_at_equal_length(difference, ratio)
    gain = difference.mean(axis=-1)
    lost = (value < gain / 2) & (value + ONE_SIDED_Z * error < gain)
    # what is above zero beyond chance isn't length alone
    return np.asarray(spans_equal_length(ratio) & lost & (value < ONE_SIDED_Z * error))


LengthDoubt = Literal["none", "likely", "longer", "shorter", "open"]
"""Whether a gain may be one of length alone; the last three: it can't be told."""
LENGTH_DOUBTS: dict[LengthDoubt, str] = {
    "likely": "may be length: at equal length less than half of the gain is left",
    "longer": "the new replies are all, or nearly all, longer: whether it is the length alone can't be told from these",
    "shorter": "the new replies are all, or nearly all, shorter: whether it is the length alone can't be told from "
    "these",
    "open": "at equal length the gain is smaller or less certain: how much of it is the length alone can't be told "
    "from these",
}


def find_length_doubt(difference: Floats, ratio: Floats) -> LengthDoubt:
    """Tell whether a gain may be one of length alone, or why that can't be told.

    Args:
        difference: `[user]`.
        ratio: ln(new length / old length) `[user]`.
    """
    # too few users for a line through them
    if len(ratio) <= FEWEST_USERS_OF_GUARDRAIL:
        return "none"
    if not spans_equal_length(ratio):
        return "longer" if ratio.mean() > 0 else "shorter"
    if is_gain_kept_at_equal_length(difference, ratio):
        return "none"
    return "likely" if is_gain_lost_at_equal_length(difference, ratio) else "open"


def compute_smallest_detectable_effect(
    spread: float, users: int, bound: float = TWO_SIDED_Z
) -> float:
    """Compute the smallest effect that so many users show with a power of .8.

    Args:
        spread: Standard deviation of a user's difference.
    """
    return float((bound + norm.ppf(0.8)) * spread / np.sqrt(users))


FAILING_STRATUM, FINE_STRATUM, ANY_STRATUM = 0, 1, 2
"""Strata: contexts where the target failed, where its occasion went well, and any others."""
OLD_ARM, NAIVE_ARM, CEILING_ARM = 0, 1, 2
"""Arms: the first is the old prompt; the others' are those of headroom."""
LEAST_HEADROOM_FOR_PROOF = 0.08
"""Of the scale: less than this is not worth a proof."""
FEWEST_USERS_OF_GUARDRAIL = 2
UNTRIED_HEADROOM_RECORD = {
    "found": False,
    "said": "not tried: too few replies",
    "n": 0,
}
TARGET_ELSEWHERE_NAME = "the target where it hadn't failed"
"""Name of a guardrail: what mends some replies may break others of the same kind."""
GuardrailState = Literal["worse", "cleared", "open", "unknown"]


@dataclass(frozen=True)
class GuardrailEffect:
    """What a change does to something that it doesn't aim at.

    Attributes:
        state: Unknown where no replies of both arms can be compared, or of so few users that nothing
            is ruled out.
        more: Users that are still needed to clear it; 0 unless it is open.
        fell: Whether it fell at the verdict's level; see `find_surely_fallen_guardrails`.
    """

    name: str
    effect: PairedEffect
    state: GuardrailState
    more: int = 0
    fell: bool = False


@dataclass(frozen=True)
class TargetEffect:
    """The effect on the target, at the look where the proof ended.

    Attributes:
        effect: Where it failed.
        everywhere: Over all contexts, those too where it hadn't failed: what tells harm.
        worst: The same with missing new replies as failing and missing old ones as not.
        look: From 1.
        smallest: Effect that so many users would have shown in 80 %.
        length: Whether it may be one of length alone, or can't be told from one.
    """

    effect: PairedEffect
    everywhere: PairedEffect
    worst: PairedEffect
    look: int
    outcome: int
    smallest: float
    length: LengthDoubt


class ProofEnd(NamedTuple):
    """How the proof of one change ended: the outcome, the look, from 0, and the level of its bounds.

    Attributes:
        fraction: Of the users, where a cap of calls or cost ended it between looks; 0: it ended as
            planned.
    """

    outcome: int
    look: int
    alpha: float
    fraction: float = 0.0

    @property
    def bounds(self) -> Sequence[float]:
        """Bounds on |z| at each look: of a gain, and of the interval."""
        return self._bounds_at(self.alpha)

    @property
    def harm_bounds(self) -> Sequence[float]:
        """Bounds on −z at each look, from which on the target is worse."""
        return self._bounds_at(self.alpha * HARM_SHARE_OF_LEVEL)

    def _bounds_at(self, alpha: float) -> Sequence[float]:
        if self.fraction:
            return compute_early_end_bounds(self.look, self.fraction, alpha)
        return compute_equal_step_bounds(DEFAULT_LOOKS, alpha)


@dataclass
class ProofArrays:
    """Answers about replies under several prompts.

    Attributes:
        values: `[context, arm, reply, question]`; the target is question 0. NaN: missing, or not
            asked yet.
        sizes: Positive quantities that shouldn't grow by half, by name `[context, arm, reply]`;
            NaN: no reply.
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
        pair = self.values[:, [OLD_ARM, arm]]
        # missing new replies count as failing, missing old ones as not
        if worst:
            pair[:, 0][np.isnan(pair[:, 0])] = 1.0
            pair[:, 1][np.isnan(pair[:, 1])] = 0.0

        # means over replies, new less old `[context, question]`
        difference = np.diff(average_known_replies(pair), axis=1)[:, 0]
        difference[self.wave > look] = np.nan
        return np.asarray(difference)

    def users_of(self, difference: Floats, stratum: int | None = None) -> Floats:
        """Return the mean difference of each user `[user]` in the contexts of a stratum, or in all."""
        if stratum is None:
            where = np.ones(len(self.user), bool)
        else:
            where = self.stratum == stratum

        return average_by_user(difference[where], self.user[where])

    def guardrails(
        self, look: int, arm: int = 1, margin: float = DEFAULT_HARM_MARGIN
    ) -> list[GuardrailEffect]:
        """Measure all that a change doesn't aim at.

        That is the target where it hadn't failed, everything else over all contexts, and sizes as
        −ln(new / old), which may fall by ln 1.5.
        """
        difference = self.differences(look, arm)
        # name, change `[context]`, the drop that is tolerated, and a shift of it in the test
        limit = float(np.log(MAX_GROWTH_OF_REPLIES))
        rows = []
        for question, name in enumerate(self.names):
            # the first question is the target itself, which is no guardrail
            if question:
                changes = self.known_change(
                    difference[:, question],
                    question,
                    look,
                    arm,
                )
                rows.append((name, changes, margin, 0.0))

        elsewhere = self.stratum != FAILING_STRATUM
        if elsewhere.any():
            rows.insert(
                0,
                (TARGET_ELSEWHERE_NAME, np.where(elsewhere, difference[:, 0], np.nan), margin, 0.0),
            )

        # a size that nobody told is no guardrail
        counted = []
        for name, size in self.sizes.items():
            if not np.isnan(size[:, OLD_ARM]).all():
                counted.append(name)

        for name in counted:
            rows.append((name, -self.log_ratio(name, look, arm), limit, limit))

        # by user; too few users tell nothing
        users = [
            (name, self.users_of(changes), least, shift) for name, changes, least, shift in rows
        ]
        measurable = []
        for row in users:
            if len(row[1]) >= FEWEST_USERS_OF_GUARDRAIL:
                measurable.append(row)

        guardrails = [
            GuardrailEffect(name, PairedEffect(0.0, -1.0, 1.0, 0.0, 0, len(changes)), "unknown")
            for name, changes, _, _ in users
            if len(changes) < FEWEST_USERS_OF_GUARDRAIL
        ]
        if not measurable:
            return guardrails

        # which fell, with the false ones among them bounded
        p = np.array([compute_guardrail_p(changes + shift) for _, changes, _, shift in measurable])
        worse = find_worse_guardrails(p)
        fell = find_surely_fallen_guardrails(p)
        for (name, changes, least, _), is_worse, sure in zip(measurable, worse, fell, strict=True):
            measured = estimate_effect(changes, n=len(changes))
            state: GuardrailState = "open"
            if spans_whole_scale(measured):
                state = "unknown"
            elif is_worse:
                state = "worse"
            elif rules_out_drop(changes, least):
                state = "cleared"

            # users that would clear it, if their changes go on like those seen
            more = 0
            if state == "open":
                room = max(least + float(changes.mean()), 0.01)
                needed = ONE_SIDED_Z * float(changes.std(ddof=1)) / room
                more = max(1, int(np.ceil(needed**2)) - len(changes))

            guardrails.append(GuardrailEffect(name, measured, state, more, bool(sure)))

        return guardrails

    def known_change(
        self,
        difference: Floats,
        question: int,
        look: int,
        arm: int,
    ) -> Floats:
        """Return the differences of a question `[context]`; NaN where it was at its worst in all replies of both arms.

        What can't fall any further isn't cleared by not falling.
        """
        here = self.values[self.wave <= look][:, [OLD_ARM, arm], :, question]
        if not np.nan_to_num(here).any():
            return np.full_like(difference, np.nan)
        return difference

    def primary(self, arm: int, ended: ProofEnd) -> TargetEffect:
        """Measure the target where it failed, with the interval of the look at which the proof ended."""
        # the change of the target where it failed `[context]`, and by user
        look = ended.look
        bound = ended.bounds[ended.look]
        difference = self.differences(look, arm)[:, 0]
        values = self.users_of(difference, FAILING_STRATUM)
        n = int((~np.isnan(difference[self.stratum == FAILING_STRATUM])).sum())
        if len(values) < FEWEST_USERS_OF_GUARDRAIL:
            nothing = PairedEffect(0.0, -1.0, 1.0, 0.0, n, len(values))
            return TargetEffect(
                nothing,
                nothing,
                nothing,
                look + 1,
                ended.outcome,
                1.0,
                length="none",
            )

        # the same where missing replies count against the change
        worst = self.users_of(self.differences(look, arm, worst=True)[:, 0], FAILING_STRATUM)
        # the same replies, as effects and as lengths
        ratio = np.where(np.isnan(difference), np.nan, self.log_ratio("length", look, arm))
        of_known_length = np.where(np.isnan(ratio), np.nan, difference)
        return TargetEffect(
            estimate_effect(values, bound, n),
            estimate_effect(self.users_of(difference), bound, int((~np.isnan(difference)).sum())),
            estimate_effect(
                worst, bound, int(((self.stratum == FAILING_STRATUM) & (self.wave <= look)).sum())
            ),
            look + 1,
            ended.outcome,
            compute_smallest_detectable_effect(float(values.std(ddof=1)), len(values), bound),
            length=find_length_doubt(
                self.users_of(of_known_length, FAILING_STRATUM),
                self.users_of(ratio, FAILING_STRATUM),
            ),
        )

    def log_ratio(self, name: str, look: int, arm: int = 1) -> Floats:
        """Return ln(new / old) of a size `[context]`."""
        mean = average_known_replies(np.log(np.maximum(self.sizes[name], 1e-9)))
        log_ratio = mean[:, arm] - mean[:, OLD_ARM]
        log_ratio[self.wave > look] = np.nan

        return np.asarray(log_ratio)

    def keep(self, complete: Bools, look: int) -> float:
        """Leave out contexts for good, where a cap ended the work on a look; return the fraction of users that is left.

        Args:
            known: Whether all replies to a context came `[context]`; those of later looks never do.
        """
        failing = self.stratum == FAILING_STRATUM
        self.wave[~complete] = DEFAULT_LOOKS
        users_left = len(set(self.user[failing & (self.wave <= look)]))
        return users_left / max(len(set(self.user[failing])), 1)

    def looked(
        self,
        look: int,
        alpha: float,
        ended: Mapping[int, ProofEnd],
        fraction: float = 0.0,
    ) -> dict[int, ProofEnd]:
        """Decide on each change that is still open, by Holm: the clearest first, at a stricter level with more of them.

        Args:
            ended: By arm, what earlier looks decided.
            fraction: See `ProofEnd`.
        """
        # deviates of the arms that are still open
        ends = dict(ended)
        arms = self.values.shape[1] - 1
        rejected = sum(end.outcome in (BETTER, WORSE) for end in ends.values())
        first = ProofEnd(GOING, look, alpha, fraction)
        z = {}
        for arm in range(1, arms + 1):
            if arm not in ends:
                z[arm] = self.primary(arm, first).effect.z

        # the clearest first; each rejection leaves a less strict level to the others
        for arm in sorted(z, key=lambda candidate_arm: -abs(z[candidate_arm])):
            at = first._replace(alpha=alpha / max(1, arms - rejected))
            guards = self.guardrails(look, arm)
            clear = bool(guards) and all(guardrail.state == "cleared" for guardrail in guards)
            outcome = int(
                decide_at_look(
                    np.array([z[arm]]), look, at.bounds, np.array([clear]), at.harm_bounds
                )[0]
            )
            rejected += outcome in (BETTER, WORSE)
            if outcome != GOING:
                ends[arm] = at._replace(outcome=outcome)

        return ends

    def score(self, look: int, arm: int) -> float:
        """Return what a selection goes by: the effect, less twice each guardrail's drop beyond its noise."""
        difference = self.differences(look, arm)
        target, *guards = (self.users_of(difference[:, q]) for q in range(len(self.names)))
        drops = []
        for changes in guards:
            if len(changes) >= FEWEST_USERS_OF_GUARDRAIL:
                drops.append(max(0.0, -float(compute_upper_bound(changes))))

        return (float(target.mean()) if len(target) else -1.0) - 2 * sum(drops)

    def flattered(self) -> dict[str, object]:
        """Tell whether the judge believes replies that only claim to do well."""
        # the flattering arm against the old one, where the target failed
        values = self.users_of(self.differences(0)[:, 0], FAILING_STRATUM)
        if len(values) < FEWEST_USERS_OF_GUARDRAIL:
            return UNTRIED_HEADROOM_RECORD | {"n": len(values)}

        # one-sided: only a gain by mere claims counts
        fooled = float(compute_z(values)) > ONE_SIDED_Z
        sentence = ""
        if fooled:
            sentence = (
                "this judge can be talked into this rubric: only people or thumbs can prove it"
            )

        return {
            "found": fooled,
            "said": sentence,
            **asdict(estimate_effect(values)),
        }

    def preferred(self, wins: Floats) -> JsonDict:
        """Return the share of pairs in which a reader without rubrics prefers the new reply.

        Args:
            wins: 1, ½ or 0; NaN: no answer `[context]`.
        """
        # ½ is no preference, so the effect is the distance from it
        values = self.users_of(wins - 0.5)
        if len(values) < FEWEST_USERS_OF_GUARDRAIL:
            return {
                "value": None,
                "low": None,
                "high": None,
                "n": len(values),
                "against": False,
            }

        # the mean preference, on the scale from 0 to 1
        preference = estimate_effect(values, n=int((~np.isnan(wins)).sum()))
        share = {
            "value": preference.value + 0.5,
            "low": max(0.0, preference.low + 0.5),
            "high": min(1.0, preference.high + 0.5),
            "n": preference.n,
        }
        return share | {"against": float(compute_z(values)) < -ONE_SIDED_Z}

    def headroom(self) -> JsonDict | None:
        """Tell whether replies still fail, and whether any prompt mends that.

        Returns:
            As JSON values `room`, the old prompt where it went well minus where it failed, with its
            upper one-sided 95 % bound; `naive` and `ceiling`, effects of a plain sentence and of a
            hint for each context; `ended`, why nothing is to be proposed, empty to go on. None
            where an arm has too few replies to tell.
        """
        # scores under the old prompt where it went well, and where it failed, by user
        old = average_known_replies(self.values)[:, OLD_ARM, 0]
        fine = self.users_of(old, FINE_STRATUM)
        fails = self.users_of(old, FAILING_STRATUM)
        # the plain sentence and the hints, each against the old prompt
        naive, best = (
            self.users_of(self.differences(0, arm)[:, 0], FAILING_STRATUM)
            for arm in (NAIVE_ARM, CEILING_ARM)
        )
        if min(map(len, (fine, fails, naive, best))) < FEWEST_USERS_OF_GUARDRAIL:
            return None

        # why nothing is to be proposed, if so
        room = float(fine.mean() - fails.mean())
        high = float(compute_upper_bound_of_difference(fine, fails))
        ceiling_high = float(compute_upper_bound(best))
        ended = ""
        if ceiling_high < LEAST_HEADROOM_FOR_PROOF:
            ended = "no prompt mends this here: it lacks knowledge or tools"
        if high < LEAST_HEADROOM_FOR_PROOF:
            ended = "it no longer fails more there than elsewhere, with this model and prompt"

        figures = {
            "room": room,
            "room_high": high,
            "naive": asdict(estimate_effect(naive)),
            "ceiling": asdict(estimate_effect(best)),
        }
        return figures | {"ceiling_high": ceiling_high, "ended": ended}

    def traffic(self, look: int, arm: int, shares: Sequence[float]) -> dict[str, float] | None:
        """Return the effect per conversation of traffic with its interval; None where it has none.

        Args:
            shares: Of conversations, by stratum.
        """
        difference = self.differences(look, arm)[:, 0]
        # strata are independent: their variances add up with squared shares
        total = 0.0
        variance = 0.0
        for stratum, share in enumerate(shares):
            users = self.users_of(difference, stratum)
            if share and len(users) < FEWEST_USERS_OF_GUARDRAIL:
                return None
            # a stratum without a share needs no users
            if share:
                total += share * float(users.mean())
                variance += share**2 * float(users.var(ddof=1)) / len(users)

        half = TWO_SIDED_Z * float(np.sqrt(variance))
        return {
            "value": total,
            "low": total - half,
            "high": total + half,
        }


def average_known_replies(values: Floats) -> Floats:
    """Return means over replies `[context, arm, …]` of `[context, arm, reply, …]`; NaN where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an arm without a reply has no mean
        return np.asarray(np.nanmean(values, axis=2))


def compute_harm_probability(effect: PairedEffect) -> float:
    """Compute the probability that an effect is below zero, by what was seen alone."""
    return float(norm.cdf(-effect.z))


def count_further_users_needed(primary: TargetEffect) -> int:
    """Compute how many more users tell an effect of the size that was seen from none in 80 %; 0 where it is none."""
    if not primary.effect.value:
        return 0

    # users grow with the square of the ratio of effects
    needed = primary.effect.users * (primary.smallest / abs(primary.effect.value)) ** 2
    return max(0, int(np.ceil(min(needed, 1e6))) - primary.effect.users)


def describe_chance_of_harm(primary: TargetEffect) -> str:
    """Say how likely harm is, and what it takes to know; empty where nothing speaks for harm."""
    speaks_for_harm = min(primary.effect.value, primary.everywhere.value) < 0
    if not speaks_for_harm or primary.effect.users < FEWEST_USERS_OF_GUARDRAIL:
        return ""

    more = count_further_users_needed(primary)
    more_users = f"; about {round_estimate(more):,} more users would tell" if more else ""
    chance = compute_harm_probability(primary.everywhere)
    return f"the chance that it does harm is {chance:.0%} by these replies{more_users}"


def is_harm_likely(primary: TargetEffect, margin: float = DEFAULT_HARM_MARGIN) -> bool:
    """Tell whether a proof that found no gain is to be called likely harm, by its replies to all contexts.

    An effect beyond the margin where the target failed needs the chance of harm `LIKELY_HARM_PROBABILITY`, any other
    one `CERTAIN_HARM_PROBABILITY`: of changes that do nothing 2 in 100 are called harm.
    """
    if primary.effect.users < FEWEST_USERS_OF_GUARDRAIL:
        return False

    chance = compute_harm_probability(primary.everywhere)
    return chance >= CERTAIN_HARM_PROBABILITY or (
        primary.effect.value < -margin and chance >= LIKELY_HARM_PROBABILITY
    )


def describe_growth(size: GuardrailEffect) -> str:
    """Say by how much a size of replies grew."""
    return f"replies grow by {expm1(-size.effect.value):.0%} in {size.name}"


def decide_verdict(
    primary: TargetEffect,
    guards: Sequence[GuardrailEffect],
    against: Sequence[str] = (),
    missing: str = "",
    margin: float = DEFAULT_HARM_MARGIN,
    *,
    against_judge: Sequence[str] = (),
) -> tuple[str, list[str]]:
    """Return the verdict, and what speaks against it or is open, the worst first.

    Harm comes first, wherever it is: a guardrail that fell for sure is enough, whatever the target
    does. One that is only marked as worse speaks against a gain. Replies that grow are a price: it
    is said, and is no harm.

    Args:
        against: What else speaks against an effect, in words.
        against_judge: Why the judge may have found an effect that people wouldn't see.
        missing: How many replies are missing; empty for none.
        margin: Of a drop that would be too much.
    """
    # guardrails by what they say
    grown = []
    for guard in guards:
        if guard.state == "worse" and guard.name in SIZE_NAMES:
            grown.append(describe_growth(guard))

    qualities = [guard for guard in guards if guard.name not in SIZE_NAMES]
    fell = []
    for guard in qualities:
        if guard.fell:
            fell.append(f"worse: {guard.name}")

    marked = []
    for guard in qualities:
        if guard.state == "worse" and not guard.fell:
            marked.append(f"may be worse: {guard.name}")

    unknown = []
    for guard in guards:
        if guard.state == "unknown":
            unknown.append(f"unknown: {guard.name}")

    lacks = [missing] if missing else []
    # harm first, then what found no gain, then what speaks against a gain
    if primary.outcome == WORSE or fell:
        return "worse", [*fell, *marked, *grown, *lacks]
    if primary.outcome != BETTER:
        harm = describe_chance_of_harm(primary)
        doubts = [harm, *marked, *grown] if harm else [*marked, *grown]
        if is_harm_likely(primary, margin):
            return "no gain, likely harm", [*doubts, *lacks]
        if missing:
            return "not proven", [missing, *doubts, *unknown]
        return "no difference found", [*doubts, *unknown]

    # a gain was shown: what else could explain it
    doubts = []
    if primary.worst.low <= 0:
        doubts.append("not shown with missing new replies counted as failing")

    doubts += [*marked, *against, *unknown]
    # some judges like long replies
    judge_doubts = [*against_judge]
    if primary.length == "likely":
        judge_doubts.insert(0, LENGTH_DOUBTS[primary.length])

    # what can't be told, and what it costs, are no reason to leave the gain
    caveats = [*grown]
    if primary.length not in ("none", "likely"):
        caveats.insert(0, LENGTH_DOUBTS[primary.length])

    if doubts:
        return "not cleared", [*doubts, *judge_doubts, *caveats, *lacks]
    if judge_doubts:
        return VERDICT_PEOPLE_CAN_TELL, [*judge_doubts, *caveats, *lacks]

    # nothing else speaks against it; open guardrails need more users
    needs = []
    for guard in guards:
        if guard.state == "open":
            needs.append(
                f"open: {guard.name}, needs about {round_estimate(guard.more):,} more users"
            )

    verdict = VERDICT_WITH_CAVEAT if caveats else "judged better"
    return verdict, [*caveats, *needs, *lacks]
