"""Plain figures of rubrics for product managers: of each alone, and on conversations that they did not see.

Intervals: of shares Wilson 1927, doi:10.1080/01621459.1927.10502953; of differences Newcombe 1998,
    method 10,
doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, hypot, sqrt
from typing import Literal

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.distributions import (
    compute_answer_log_losses,
    compute_wilson_bounds,
    estimate_smooth_calibration_error,
)
from pollex.measures.intervals import (
    Figure,
    Measure,
    estimate_figures_on_same_resamples,
    make_weighted_mean_statistic,
)
from pollex.rubrics.records import (
    LIKELY_LEVEL,
    MIN_CONVERSATIONS_OF_SAME_OCCASION,
    PROVEN_LEVEL,
    ChosenRubric,
    CountedThumbs,
    JudgedBy,
    ProbabilityFigures,
    Record,
    RubricAlone,
    RubricEvidence,
    SignalShare,
    StandingRecord,
)
from pollex.rubrics.rubric import Polarity, has_rubrics_written_by_model
from pollex.text import round_estimate

CALIBRATION_ERROR_RESAMPLES = 100
"""A second."""


def measure_probability_quality(
    probability: Floats,
    positive: Bools,
    share: float,
    rng: np.random.Generator,
    together: Ints,
    *,
    smooth: bool = False,
) -> ProbabilityFigures:
    """Measure how true probabilities are, beside the share of positives that training had.

    Args:
        probability: Of positive `[conversation]`.
        positive: Labels `[conversation]`.
        share: Of positive training conversations.
        together: The block of each conversation; see `conversations.splits.number_dependent_blocks`.
        smooth: Whether to measure smECE, too: the package behind it takes seconds to import.
    """
    # both classes' probabilities `[conversation, 2]`
    proba = np.stack([1 - probability, probability], axis=1)
    thumb = positive.astype(np.int64)
    losses = compute_answer_log_losses(proba, thumb)
    constant = compute_answer_log_losses(np.full_like(proba, [1 - share, share]), thumb)
    # a thumb that had probability 0 makes the mean infinite, so there is no figure
    impossible = f"{n} given thumbs had probability 0" if (n := int(np.isinf(losses).sum())) else ""
    measures = {
        "log_loss": Measure(make_weighted_mean_statistic(losses), impossible),
        "brier": Measure(make_weighted_mean_statistic(np.square(probability - positive))),
        "share_log_loss": Measure(make_weighted_mean_statistic(constant)),
        "share_brier": Measure(make_weighted_mean_statistic(np.square(share - positive))),
        "gain": Measure(make_weighted_mean_statistic(constant - losses), impossible),
    }
    estimates = estimate_figures_on_same_resamples(measures, together, rng)
    if smooth:
        estimates["smece"] = estimate_smooth_calibration_error(
            proba, thumb, together, rng, CALIBRATION_ERROR_RESAMPLES
        )[0]

    return ProbabilityFigures(n=len(positive), **estimates)


FURTHER_LABELS_IN_FORECAST = 20
"""Labels whose worth is told."""


class CurvePoint(Record):
    """Mean AUC of rubrics that were chosen with so many labels."""

    labels: int
    auc: Figure


class Reach(Record):
    """How far a set reaches, on held-out conversations.

    Attributes:
        coverage: Share of thumbs down in which at least one headline rubric of dissatisfaction
            holds.
        false_alarms: Likewise of thumbs up.
        recall_up: Share of thumbs up that are decided to be good, by the probability.
        recall_down: Share of thumbs down that are decided to be bad.
        beside: The strongest plain method, by cross-validation on training conversations.
        recovered: (AUC − ½) of the rubrics over that of the strongest plain method.
        correlation: By side, mean correlation of its rubrics.
        curve: AUC by number of labels; empty where it was not measured, and `more` says why.
        more: What `FURTHER_LABELS_IN_FORECAST` labels more are worth in AUC.
    """

    coverage: Figure
    false_alarms: Figure
    recall_up: Figure
    recall_down: Figure
    beside: str
    recovered: Figure
    correlation: dict[Polarity, Figure]
    curve: tuple[CurvePoint, ...] = ()
    more: Figure


NORMAL_QUANTILE_95 = 1.96
FEW_CONVERSATIONS_OF_WORTH = 20
"""Conversations of one kind below which a difference that may be chance is put down to their number."""


def compute_share_with_interval(hits: int, n: int, units: int | None = None) -> Figure:
    """Compute a share of n conversations with its 95 % interval.

    Args:
        units: How many the n are if those that belong together count as one; None: each is alone.
    """
    if not n:
        return Figure(None, undefined="there is no such conversation")

    low, high = compute_wilson_bounds(hits / n, n if units is None else units)
    return Figure(hits / n, float(low), float(high), n, units=units)


def measure_share_among(rows: Bools, hit: Bools, together: Ints) -> Figure:
    """Compute how often it is a hit among some conversations; those of a block count as one in the interval.

    Args:
        rows: Which these are `[conversation]`.
        together: The block of each; see `conversations.splits.number_dependent_blocks` `[conversation]`.
    """
    n = int(rows.sum())
    # users or other units among these
    units = len(np.unique(together[rows]))
    return compute_share_with_interval(
        int((rows & hit).sum()),
        n,
        units if units < n else None,
    )


def compute_evidence_of_rubric(
    held: Bools,
    up: Bools,
    together: Ints | None = None,
    came_up: Bools | None = None,
    occasion: str = "",
) -> RubricEvidence:
    """Compute a rubric's worth from whether it held and the thumb, each [conversation].

    Args:
        together: Blocks, as in `measure_share_among`.
        came_up: Where its occasion came up `[conversation]`; None where it always does.
        occasion: See `RubricEvidence`.
    """
    # without blocks every conversation counts for itself
    if together is None:
        blocks = np.arange(len(up))
    else:
        blocks = together

    every = np.ones(len(held), dtype=bool)
    worth = RubricEvidence(
        holds=measure_share_among(every, held, blocks),
        down_with=measure_share_among(held, ~up, blocks),
        down_without=measure_share_among(~held, ~up, blocks),
    )
    # an occasion that always comes up says nothing, and is none
    if came_up is None or bool((came_up | held).all()):
        return worth

    within = measure_share_among(came_up & ~held, ~up, blocks)
    update = {
        "occasion": occasion,
        "came_up": measure_share_among(every, came_up | held, blocks),
        "down_within": within,
        "compared": choose_comparison(within),
    }
    return worth.model_copy(update=update)


def choose_comparison(within: Figure | None) -> Literal["occasion", "elsewhere"]:
    """Choose with which others a rubric is compared, by how many these are, and never by their thumbs.

    Args:
        within: Share of thumbs down where the occasion came up and the rubric doesn't hold.
    """
    if within is None:
        return "elsewhere"
    if count_independent_units_of_share(within) < MIN_CONVERSATIONS_OF_SAME_OCCASION:
        return "elsewhere"
    return "occasion"


def add_counted_thumbs(
    worth: RubricEvidence,
    held: Bools,
    up: Bools,
    together: Ints,
    came_up: Bools | None,
) -> RubricEvidence:
    """Add what is counted in all labeled conversations to what was measured on those that test a rubric.

    Args:
        held: Where the rubric holds, each [conversation]; `up`, `together` and `came_up` as in
            `compute_evidence_of_rubric`.
    """
    within = None
    # an occasion that always comes up says nothing, and is none
    if came_up is not None and not bool((came_up | held).all()):
        within = measure_share_among(came_up & ~held, ~up, together)

    # tested and counted figures are told beside each other: they are compared with the same others
    compared = choose_comparison(within)
    others = within
    if others is None or compared == "elsewhere":
        others = measure_share_among(~held, ~up, together)

    counted = CountedThumbs(
        holds=measure_share_among(np.ones(len(held), dtype=bool), held, together),
        there=measure_share_among(held, ~up, together),
        others=others,
        same_occasion=within,
    )
    return worth.model_copy(update={"counted": counted, "compared": compared})


def count_independent_units_of_share(share: Figure) -> int:
    """Return how many independent conversations a share is of."""
    return share.units or share.n


def shrink_evidence_for_rubric_choice(
    worth: RubricEvidence,
    side: Polarity,
    p: float,
    passed: float,
) -> RubricEvidence:
    """Shrink a rubric's shares for its having been chosen because they differ: what is to be expected elsewhere.

    The share of thumbs down over all conversations stays, and the difference around it shrinks.

    Args:
        p: Adjusted p-value of the rubric, and `passed` the largest one of its standing.
    """
    there = worth.down_with
    elsewhere = worth.down_without
    if there.value is None or elsewhere.value is None:
        return worth

    # so that a gap over 0 is what the rubric's side says
    sign = 1.0 if side == "dsat" else -1.0
    held = worth.holds.value or 0.0
    # thumbs down over all conversations, which stay as they are
    overall = held * there.value + (1 - held) * elsewhere.value
    # independent conversations: fewer where several are of one user
    units = []
    for figure in (there, elsewhere):
        units.append(figure.units or figure.n)

    # Of shares that are alike, as the test has it: a share of 0 or 1 in a few has no error of its
    # own.
    error = sqrt(overall * (1 - overall) * sum(1 / n for n in units))
    if not error:
        return worth

    from pollex.measures.selected import (
        estimate_mean_given_passed_threshold,
        find_threshold_passed_by_p_value,
    )

    # the difference in standard errors, less what being chosen adds to it
    z = sign * (there.value - elsewhere.value) / error
    shrunk = estimate_mean_given_passed_threshold(z, find_threshold_passed_by_p_value(z, p, passed))
    gap = Figure(
        shrunk.value * error,
        shrunk.low * error,
        shrunk.high * error,
        worth.holds.n,
    )

    def share(part: float, old: Figure, units_of_share: int) -> Figure:
        """Move a share of all by its part of the gap."""
        ends = []
        for end in (gap.low or 0.0, gap.value or 0.0, gap.high or 0.0):
            ends.append(overall + sign * part * end)

        # two errors add up as squares: that of the gap, and that of the share itself
        half = NORMAL_QUANTILE_95 * sqrt(overall * (1 - overall) / units_of_share)
        low, high = (hypot(ends[1] - end, half) for end in (min(ends), max(ends)))
        value = min(max(ends[1], 0.0), 1.0)

        return Figure(
            value,
            max(0.0, ends[1] - low),
            min(1.0, ends[1] + high),
            old.n,
            units=old.units,
        )

    # what the gap gives to one share it takes from the other, by their sizes
    moved = share(-held, elsewhere, sum(units))
    update = {
        "down_with": share(1 - held, there, sum(units)),
        "down_without": moved,
        "down_within": _move_occasion_share(worth.down_within, elsewhere, moved, held, gap),
        "gap": gap,
    }
    return worth.model_copy(update=update)


def _move_occasion_share(
    within: Figure | None,
    before: Figure,
    after: Figure,
    held: float,
    gap: Figure,
) -> Figure | None:
    """Move the share of the same occasion by as much as that of all others, of which it is a part.

    Being chosen for a large gap biases each conversation without the rubric alike.

    Args:
        before: Share of all others as it was, and `after` as it is shrunk.
        held: Share of conversations in which the rubric holds.
    """
    if within is None or within.value is None or within.low is None or within.high is None:
        return within

    # the share moves; its interval grows by the uncertainty of the gap
    value = within.value + (after.value or 0.0) - (before.value or 0.0)
    spread = held * ((gap.high or 0.0) - (gap.value or 0.0))
    low = value - hypot(within.value - within.low, spread)
    high = value + hypot(within.high - within.value, spread)
    value, low, high = (min(max(end, 0.0), 1.0) for end in (value, low, high))

    return Figure(value, low, high, within.n, units=within.units)


def measure_signal_share(
    signal: str,
    held: Bools,
    happened: Bools,
    together: Ints,
) -> SignalShare:
    """Compute how often a signal happened where a rubric held, and elsewhere, each [conversation]."""
    there, elsewhere = (measure_share_among(rows, happened, together) for rows in (held, ~held))
    return SignalShare(signal=signal, there=there, elsewhere=elsewhere)


def describe_signal_share(signal_share: SignalShare) -> str:
    """Describe a further signal; empty where it can't be compared."""
    there = signal_share.there
    elsewhere = signal_share.elsewhere
    if there.value is None or elsewhere.value is None:
        return ""

    # a field of yes and no is named as it is; of ratings the bad ones are counted
    name, _, side = signal_share.signal.rpartition(":")
    if name and side in ("up", "down"):
        named = name
    else:
        named = f"{signal_share.signal} down"

    shares = f"{format_percent(there)} of {there.n}, {format_percent(elsewhere)} of {elsewhere.n} elsewhere"
    if not elsewhere.value:
        return f"also {named}: {shares}"
    return f"also {there.value / elsewhere.value:.1f} times as many “{named}”: {shares}"


def describe_evidence_of_rubric(worth: RubricEvidence) -> str:
    """Describe in how many conversations a rubric holds, and thumbs down with it and in those it is compared with."""
    counted = get_counted_thumbs(worth)
    there = counted.there
    others = counted.others
    n = counted.holds.n
    if there.value is None:
        return f"Holds in none of the {n} conversations that test it."
    if others.value is None:
        return f"Holds in all {n} conversations that test it: {format_thumbs_down(there)}."
    if worth.compared == "occasion":
        # the occasion begins the sentence
        occasion = describe_occasion_of_worth(worth)
        occasion = f"{occasion[0].upper()}{occasion[1:]}"
        return (
            f"{occasion} ({there.n + others.n} of {n} conversations): {format_thumbs_down(there)} "
            f"where this holds, {format_hits(others)} where it doesn't."
        )

    holds = "Answers lean to it, most of them still “Neutral”," if worth.neutral else "Holds"
    return (
        f"{holds} in {there.n} of {n} conversations: {format_thumbs_down(there)}; "
        f"elsewhere {format_hits(others)}{explain_comparison(worth)}."
    )


def describe_evidence_with_difference(
    worth: RubricEvidence, standing: StandingRecord | None
) -> str:
    """Describe the same as `describe_evidence_of_rubric`, with the difference as in `describe_difference`."""
    difference = describe_difference(worth, standing)
    if not difference:
        return describe_evidence_of_rubric(worth)
    return f"{describe_evidence_of_rubric(worth).removesuffix('.')}; {difference}."


def get_counted_thumbs(worth: RubricEvidence) -> CountedThumbs:
    """Return what is counted in all labeled conversations; in sets of before, what was measured."""
    if worth.counted is not None:
        return worth.counted
    return CountedThumbs(
        holds=worth.holds,
        there=worth.down_with,
        others=worth.down_others,
        same_occasion=worth.down_within,
    )


def format_hits(share: Figure) -> str:
    """Write a share as counts, so that a reader can check it: `6 of 20 (30 %)`."""
    hits = (share.value or 0.0) * share.n
    # a share of a set of before that was shrunk is no count
    if abs(hits - round(hits)) > WHOLE_NUMBER_TOLERANCE:
        return f"{format_percent(share)} of {share.n}"
    return f"{round(hits)} of {share.n} ({format_percent(share)})"


def format_thumbs_down(share: Figure) -> str:
    """Write a share of thumbs down with its name: `32 of 40 thumbs down (80 %)`."""
    hits, has_counts, percent = format_hits(share).partition(" (")
    return f"{hits} thumbs down{has_counts}{percent}"


WHOLE_NUMBER_TOLERANCE = 1e-6


def describe_occasion_of_worth(worth: RubricEvidence) -> str:
    """Name the occasion on which a rubric can hold, for the middle of a sentence."""
    if worth.occasion:
        return f"when {worth.occasion}"
    return "where it could happen"


def explain_comparison(worth: RubricEvidence) -> str:
    """Say why a rubric is compared with all others though it has an occasion; empty where it has none."""
    counted = get_counted_thumbs(worth)
    if worth.compared == "occasion" or counted.same_occasion is None:
        return ""

    n = counted.same_occasion.n
    when = describe_occasion_of_worth(worth)
    if not n:
        return f", which are all others: each of the {counted.there.n} times {when}, it held"
    return f", which are all others: {when}, only {n} are without it, too few to compare with"


def describe_thumb_shares_of_rubric(worth: RubricEvidence, standing: StandingRecord | None) -> str:
    """Tell thumbs down in a few words: counts, with what they are compared, and the difference."""
    counted = get_counted_thumbs(worth)
    if counted.there.value is None:
        return f"holds in none of {counted.holds.n}"

    there = format_thumbs_down(counted.there)
    if counted.others.value is None:
        return f"{there}, and it holds everywhere"
    others = format_hits(counted.others)
    if worth.compared == "occasion":
        counts = f"{describe_occasion_of_worth(worth)}: {there}, {others} where it doesn't hold"
    else:
        counts = f"{there}, elsewhere {others}{explain_comparison(worth)}"
    return f"{counts}; {describe_difference(worth, standing)}"


def is_difference_chosen_by_size(worth: RubricEvidence, standing: StandingRecord | None) -> bool:
    """Tell whether a difference was chosen since it is large, and nothing lowers it for that.

    An interval of such a difference would promise that others see it, too.
    """
    if standing is None or worth.gap is not None:
        return False
    return standing.word == "hint" or standing.by == "halvings"


def describe_difference(worth: RubricEvidence, standing: StandingRecord | None) -> str:
    """Say by how many points thumbs down differ; empty where nothing can be compared.

    What was picked by halvings has the difference that is to be expected in new conversations, with
    its 95 % interval. Anything else has that of its counts, and no interval where it was chosen by
    its size.
    """
    counted = get_counted_thumbs(worth)
    difference = _bound_gap(counted.there, counted.others)
    expected = ""
    if worth.gap is not None:
        expected = "expected "
        difference = _bound_gap(worth.down_with, worth.down_others)
        # the gap over all conversations has an interval of its own
        if worth.compared == "elsewhere" and difference is not None:
            sign = 1 if difference[1] >= 0 else -1
            ends = (worth.gap.low, worth.gap.value, worth.gap.high)
            low, value, high = sorted(sign * (end or 0.0) for end in ends)
            difference = (low, value, high)

    if difference is None:
        return ""

    # told in the way that it goes, so that most numbers have no sign
    sign = -1 if difference[1] < 0 else 1
    # shares differ by 100 points at most
    told = sorted(max(-1.0, min(sign * end, 1.0)) for end in difference)
    least, points, most = map(format_points, told)
    way = "more" if sign > 0 else "fewer"
    if is_difference_chosen_by_size(worth, standing):
        return f"{points} points {way} in these conversations"
    return f"{expected}{points} points {way} (95 % {least} to {most})"


def format_points(difference: float) -> str:
    """Write a difference of shares in points of 100; what isn't 0 doesn't look like it."""
    points = 100 * difference
    digits = 0 if abs(points) >= 0.5 else 1
    return f"{points:.{digits}f}".replace("-", "−")


def _bound_gap(there: Figure, others: Figure) -> tuple[float, float, float] | None:
    """Return the difference of two shares between the ends of its 95 % interval; None without two shares."""
    if there.value is None or others.value is None:
        return None

    # Newcombe's interval: each bound adds up the distances of both shares to theirs
    gap = there.value - others.value
    low = hypot(there.value - (there.low or 0), (others.high or 0) - others.value)
    high = hypot((there.high or 0) - there.value, others.value - (others.low or 0))
    return gap - low, gap, gap + high


def describe_difference_and_test_of_rubric(
    worth: RubricEvidence, standing: StandingRecord | None, total: int = 0
) -> str:
    """Say what stands behind these counts: the difference, and on what it was measured.

    Args:
        total: Conversations with a thumb that figures of the set are of; 0 where nobody says so.
    """
    n = worth.holds.n
    measured = f"measured on {n} conversations"
    if total > n:
        measured = (
            f"measured on {n} of {total} conversations: what was learned without each of the others "
            "lacked it"
        )

    return "; ".join(filter(None, (describe_difference(worth, standing), measured)))


HOW_SURE_NOTE = (
    f"How sure: where nothing matters, luck makes anything “proven” in at most {PROVEN_LEVEL:.0%} of logs, "
    f"and “likely” in at most {LIKELY_LEVEL:.0%}; a “hint” may well be luck."
).replace("%", " %")

TESTED_BY: dict[str, str] = {
    "halvings": "These words come from halves of the log, which tested what the other halves chose.",
    "held-out": "Conversations that took no part in learning tested it.",
    "all": "All labels tested it, since nothing was chosen by them.",
}
"""What tested the rubrics, by `StandingRecord.by`."""


DIFFERENCE_CHOSEN_BY_SIZE_NOTE = (
    "A hint stands out because its difference is large in these conversations; in new ones it is "
    "mostly smaller, or none. So it has no interval."
)
"""Why a hint's difference is told without an interval."""


WRITTEN_FROM_BOTH_HALVES_NOTE = (
    "The model read all of these conversations when it wrote its rubrics. So for its rubrics these "
    "shares count luck in the choice alone, and luck may make more of them “proven” or “likely”."
)
"""What the levels of standings leave out where a model wrote rubrics from both halves."""


def describe_reading(rubrics: Sequence[ChosenRubric]) -> list[str]:
    """Say once how to read a list of findings: what earns them their word, and what their figures are."""
    notes = []
    standing = next((rubric.standing for rubric in rubrics if rubric.standing), None)
    if standing is not None:
        notes.append(f"{HOW_SURE_NOTE} {TESTED_BY[standing.by]}")
        if standing.by == "halvings" and has_rubrics_written_by_model(rubrics):
            notes.append(WRITTEN_FROM_BOTH_HALVES_NOTE)

    counts = [rubric.worth.counted for rubric in rubrics if rubric.worth and rubric.worth.counted]
    if counts:
        n = max(count.holds.n for count in counts)
        figures = f"Counts are of {n:,} labeled conversations."
        if any(rubric.worth and rubric.worth.gap for rubric in rubrics):
            figures += (
                " “Expected” is how much thumbs should differ in new conversations, in points of 100. "
                "It is made on the other halves, and lowered for luck, since what is picked stands out by luck, too."
            )
        # bars beside it show likeliest answers, which may be in the middle
        notes.append(f"{figures} “Holds” is an answer above the middle of its scale on average.")

    if any(
        rubric.worth and is_difference_chosen_by_size(rubric.worth, rubric.standing)
        for rubric in rubrics
    ):
        notes.append(DIFFERENCE_CHOSEN_BY_SIZE_NOTE)

    return notes


def do_thumbs_contradict_side(worth: RubricEvidence, side: Polarity) -> bool:
    """Tell whether thumbs go the other way than a rubric's side says: those that test it, or all."""
    if _do_shares_contradict(worth.down_with, worth.down_others, side):
        return True
    counted = worth.counted
    return counted is not None and _do_shares_contradict(counted.there, counted.others, side)


def _do_shares_contradict(there: Figure, others: Figure, side: Polarity) -> bool:
    if there.value is None or others.value is None:
        return False
    return there.value > others.value if side == "sat" else there.value < others.value


def describe_doubt_about_rubric(worth: RubricEvidence, side: Polarity) -> str:
    """Say why a rubric's difference can't be relied on; empty where it can, and where it held nowhere."""
    low, high = compute_interval_of_thumb_difference(worth)
    # shrunk figures are of what was clear before
    if low is None or high is None or worth.gap is not None:
        return ""

    held = worth.down_with.n
    # few independent conversations on either side
    few = (
        min(map(count_independent_units_of_share, (worth.down_with, worth.down_others)))
        < FEW_CONVERSATIONS_OF_WORTH
    )
    chance = low <= 0 <= high
    if do_thumbs_contradict_side(worth, side):
        # where only those that test it go the other way, it is told of these
        counted = get_counted_thumbs(worth)
        if _do_shares_contradict(counted.there, counted.others, side):
            held = counted.there.n

        why = f"not confirmed: it went the other way in the {held} where it holds"
        if chance and few:
            return f"{why}, which are too few to tell"
        return why
    if not chance:
        return ""
    if few:
        return f"too few to tell: it holds in {held} of {worth.holds.n}"
    return "no clear difference: it may be chance"


def compute_interval_of_thumb_difference(
    worth: RubricEvidence,
) -> tuple[float, float] | tuple[None, None]:
    """Compute the 95 % interval of the share of thumbs down with it minus that of what it is compared with."""
    difference = _bound_gap(worth.down_with, worth.down_others)
    if difference is None:
        return None, None
    if worth.gap is not None and worth.compared == "elsewhere":
        return worth.gap.low or 0.0, worth.gap.high or 0.0
    return difference[0], difference[2]


def format_percent(share: Figure) -> str:
    """Format a defined share as a whole percentage."""
    return f"{100 * (share.value or 0):.0f} %"


def format_interval_ends(share: Figure) -> str:
    """Return the ends of a share's interval."""
    return f"{100 * (share.low or 0):.0f}–{100 * (share.high or 0):.0f} %"


HELD_SHARE, DIFFERENCE_GAP, WIDE_GAP = 0.2, 0.15, 0.3
"""What `count_thumbs_needed` speaks of: something in a fifth of the conversations, and 15 or 30 points
of thumbs down."""
LABEL_FACTOR_OF_HALVING_TEST = 3.5
"""So many times the thumbs of one plain test it takes by halvings among 40 other rubrics, in simulated logs: at 1.05
times 22 of 100 were likely, at twice as many 45, at four times as many 98."""


def count_thumbs_needed(down: float, gap: float = DIFFERENCE_GAP) -> int:
    """Compute how many independent thumbs would make such a difference likely in about four of five logs.

    Two shares beside each other by the normal approximation, one-sided at 5 %: Fleiss, Levin and
    Paik 2003, "Statistical Methods for Rates and Proportions", section 4.4; times `LABEL_FACTOR_OF_HALVING_TEST`.

    Args:
        down: Share of thumbs down.
        gap: By how much it shifts that share.
    """
    # of the normal distribution: one-sided 5 % errors, and a power of 80 %
    quantiles = 1.645 + 0.842
    return ceil(
        LABEL_FACTOR_OF_HALVING_TEST
        * quantiles**2
        * down
        * (1 - down)
        / (HELD_SHARE * (1 - HELD_SHARE) * gap**2)
    )


def describe_missing_thumbs(thumbs: int, down: float) -> str:
    """Say in one sentence how many more thumbs would settle it.

    Args:
        thumbs: As many as there are.
        down: Share of thumbs down among them.
    """
    often = "something that happens in a fifth of the conversations"
    for gap in (WIDE_GAP, DIFFERENCE_GAP):
        shifts = f"shifts thumbs by {100 * gap:.0f} points"
        more = count_thumbs_needed(down, gap) - thumbs
        if more > 0:
            return (
                f"You have {thumbs:,} thumbs; about {round_estimate(10 * ceil(more / 10)):,} more, from different "
                f"users, would probably show whether {often} {shifts}."
            )
    return f"You have {thumbs:,} thumbs: enough to see whether {often} {shifts}."


MIN_SHARE_OF_NEARLY_CONSTANT_ANSWER = 0.9
"""A rubric with one answer in a greater share of conversations tells hardly anything."""

JUDGED_BY_IN_WORDS: dict[JudgedBy, str] = {
    "event": "an event",
    "signal": "a signal of how people sound",
    "words": "the words that it quotes",
    "likeness": "likeness of turns to its words, which is weak",
    "model": "the model",
    "distilled": "what was learned from the model's answers",
}

REWORD_HINTS: dict[JudgedBy, str] = {
    "event": "reword it as something that happens more often, or remove it",
    "signal": "reword it as something that users do more often, or remove it",
    "words": "quote words that are said more often, or remove it",
    "likeness": "name an act and an object of your domain, quote words that are said, or judge it with --model",
    "model": "name the occasion on which it can be told, or remove it",
    "distilled": "leave it to the model (`pollex distill --hard model`), or remove it",
}


@dataclass(frozen=True)
class Detector:
    """By what a rubric is judged, and how it does by itself.

    Attributes:
        auc: Of its values alone.
        worth: Where it holds; None where that wasn't measured.
    """

    by: JudgedBy
    auc: Figure
    worth: RubricEvidence | None

    def __str__(self) -> str:
        if self.auc.value is None:
            auc = "without an AUC"
        else:
            auc = f"AUC alone {self.auc.value:.2f}"

        if self.worth is None or self.worth.holds.value is None:
            return f"by {JUDGED_BY_IN_WORDS[self.by]}: {auc}"

        there = self.worth.down_with
        others = self.worth.down_others
        both = there.value is not None and others.value is not None
        if self.worth.compared == "occasion":
            place = "of the others of its occasion"
        else:
            place = "elsewhere"

        # shares only where both are known
        down = ""
        if both:
            down = (
                f", {format_percent(there)} of them thumbs down, {format_percent(others)} {place}"
            )

        judged_by = JUDGED_BY_IN_WORDS[self.by]
        holds = format_percent(self.worth.holds)
        return f"by {judged_by}: {auc}; it holds in {holds} of conversations{down}"


JUDGED_ANEW_NOTE = "Judged anew: "
"""How a note begins on a rubric that lost what it was judged by."""


def describe_new_judgment(text: str, before: Detector, now: Detector) -> str:
    """Say by what a rubric is judged now and was before, with AUC and shares."""
    return f"{JUDGED_ANEW_NOTE}“{text}” is judged {now}. Before, {before}."


def describe_new_judgments(
    before: Sequence[ChosenRubric], fitted: Sequence[ChosenRubric]
) -> list[str]:
    """Say it of each rubric that was fitted anew."""
    # detectors by rubric, before and now
    old, new = (
        {
            rubric.id: Detector(rubric.alone.by, rubric.alone.auc, rubric.worth)
            for rubric in rubrics
            if rubric.alone
        }
        for rubrics in (before, fitted)
    )
    anew = []
    for rubric in before:
        if rubric.anew and rubric.id in old and rubric.id in new:
            anew.append(rubric)

    return [describe_new_judgment(rubric.text, old[rubric.id], new[rubric.id]) for rubric in anew]


def is_rubric_nearly_constant(alone: RubricAlone | None) -> bool:
    """Tell whether a rubric has nearly always the same answer."""
    return alone is not None and (alone.share.value or 0.0) > MIN_SHARE_OF_NEARLY_CONSTANT_ANSWER
