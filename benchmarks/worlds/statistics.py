"""What figures promise: users that come back, confounds, intervals and shares of good ones, in worlds without texts.

Pools of 40 rubrics, 250 labels a world. Answers and thumbs are drawn, and all that learning does
with them is done: the halvings, the choice, cross-fitting, intervals. What is true is read off
40,000 further conversations.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from pollex.graphs.learn.assemble import CHOICE_WIDENING_FACTOR, reconcile_standings_with_evidence
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import assess_scores_against_labels, compute_auc
from pollex.measures.drift import (
    count_values_in_bins,
    is_drift_significant,
    make_bin_edges,
    measure_stability_of_bin_counts,
)
from pollex.measures.intervals import widen_interval_of_figure
from pollex.measures.share import estimate_share_from_probabilities
from pollex.rubrics.learning.circumstances import (
    Circumstance,
    assign_numbers_to_equal_bins,
    find_explaining_circumstance,
)
from pollex.rubrics.records import LIKELY_LEVEL, PROVEN_LEVEL, StandingRecord
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.worth import compute_evidence_of_rubric, compute_share_with_interval
from worlds import Outcome, world
from worlds.arrays import RUBRICS, ArrayWorld, learned

LABELS = 250
TRUTH = 40_000
USERS = 25
EFFECTIVE = 3
"""Rubrics of each side on which thumbs hang."""
Rng = np.random.Generator


def runs_of(quick: bool, full: int) -> range:
    """Return the numbers of the worlds: a few in the small form."""
    return range(2 if quick else full)


def share_told(hits: list[bool]) -> str:
    """Return a share with Wilson's interval."""
    found = compute_share_with_interval(sum(hits), len(hits))
    return f"{found.value or 0:.3f} [{found.low or 0:.3f}, {found.high or 0:.3f}], n = {found.n}"


def planted(rng: Rng) -> Callable[[int], tuple[Bools, Bools]]:
    """Return what draws conversations in which three rubrics of each side move thumbs."""
    rates = rng.uniform(0.08, 0.35, RUBRICS)
    effects = np.zeros(RUBRICS)
    effects[:EFFECTIVE] = -rng.uniform(0.6, 1.4, EFFECTIVE)
    effects[RUBRICS // 2 : RUBRICS // 2 + EFFECTIVE] = rng.uniform(0.6, 1.4, EFFECTIVE)

    def draw(n: int) -> tuple[Bools, Bools]:
        held = rng.random((n, RUBRICS)) < rates
        return held, rng.random(n) < expit(0.3 + (held - rates) @ effects)

    return draw


@world("intervals")
def intervals(quick: bool) -> Outcome:
    """Measure how often intervals hold what is true: of AUC, of proven rubrics, and of the share of good ones."""
    hits: dict[str, list[bool]] = {"AUC": [], "elsewhere": [], "gap": [], "good": [], "alarm": []}
    gaps: list[tuple[float, float]] = []
    for number in runs_of(quick, 300):
        rng = np.random.default_rng([7, number])
        draw = planted(rng)
        held, up = draw(LABELS)
        further, thumbs = draw(TRUTH)
        small = ArrayWorld(held, up)
        found = learned(small)
        netsat = ArrayWorld(further, thumbs).values[:, found.order].sum(axis=1)
        own = small.values[:, found.order].sum(axis=1)

        figure = assess_scores_against_labels(
            found.above, up, 0.0, np.zeros(LABELS, dtype=bool), rng
        ).auc
        hits["AUC"].append(
            within(
                widen_interval_of_figure(figure, CHOICE_WIDENING_FACTOR),
                compute_auc(netsat, thumbs),
            )
        )
        for column in found.order.tolist():
            told = told_of(small, found.p, found.known, column)
            if told is None:
                continue
            sign = 1.0 if column < RUBRICS // 2 else -1.0
            there, elsewhere = (
                float((~thumbs[side]).mean()) for side in (further[:, column], ~further[:, column])
            )
            hits["elsewhere"].append(within(told.down_without, elsewhere))
            hits["gap"].append(within(told.gap, sign * (there - elsewhere)))
            gaps.append((told.gap.value or 0.0, sign * (there - elsewhere)))
        hits["good"].append(
            within(good_of(found.above, up, own, netsat[:1000]), float(thumbs.mean()))
        )
        edges = make_bin_edges(own)
        counts = [count_values_in_bins(values, edges) for values in (own, netsat[:LABELS])]
        hits["alarm"].append(
            is_drift_significant(measure_stability_of_bin_counts(*counts, np.random.default_rng(0)))
        )

    said, true = np.mean(gaps, axis=0) if gaps else (0.0, 0.0)
    rows = [
        ("95 % interval of AUC holds that of the set", share_told(hits["AUC"])),
        ("that of a proven rubric's share elsewhere holds it", share_told(hits["elsewhere"])),
        ("that of a proven rubric's gap holds it", share_told(hits["gap"])),
        ("gap of proven rubrics, said and true", f"{said:.3f} and {true:.3f}, n = {len(gaps)}"),
        ("that of the share of good ones holds it", share_told(hits["good"])),
        ("conversations of the same kind are called unlike", share_told(hits["alarm"])),
    ]
    figures = {name: [sum(each), len(each)] for name, each in hits.items()} | {
        "gap said": said,
        "gap true": true,
    }
    bars = {
        f"intervals hold at their rate: {name}": quick or float(np.mean(hits[name])) >= 0.93
        for name in ("AUC", "elsewhere", "gap", "good")
    }
    return Outcome(
        rows,
        figures,
        bars | {"alarms on the same kind ≤ .05": quick or np.mean(hits["alarm"]) <= 0.05},
    )


def within(figure: object, truth: float) -> bool:
    """Tell whether an interval holds the truth."""
    low = getattr(figure, "low", None)
    high = getattr(figure, "high", None)
    return low is not None and high is not None and low <= truth <= high


def told_of(small: ArrayWorld, p: Floats, known: Bools, column: int):  # type: ignore[no-untyped-def]
    """Return what is told of a rubric that is proven; None for others."""
    rows = known[:, column]
    if p[column] > PROVEN_LEVEL or not rows.any():
        return None
    side = "sat" if small.sat[column] else "dsat"
    rubric = Rubric(id=f"r{column}", polarity=side, text=f"r{column}")
    standing = StandingRecord(p=float(p[column]), n=len(small.up), by="halvings")
    worth = compute_evidence_of_rubric(small.held[rows, column], small.up[rows])
    told, shrunk = reconcile_standings_with_evidence(
        [rubric], {rubric.id: standing}, {rubric.id: worth}
    )
    return shrunk[rubric.id] if told[rubric.id].word == "proven" else None


def good_of(above: Floats, up: Bools, own: Floats, further: Floats):  # type: ignore[no-untyped-def]
    """Estimate the share of good ones of further conversations by probabilities that the labels calibrate."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0).fit(own[:, None], up)
    honest = LogisticRegression(C=1.0).fit(above[:, None], up).predict_proba(above[:, None])[:, 1]
    error = float(np.sqrt(np.square(honest - up).mean() / len(up)))
    return estimate_share_from_probabilities(model.predict_proba(further[:, None])[:, 1], error)


@world("users that come back")
def users_that_come_back(quick: bool) -> Outcome:
    """Let thumbs hang on the user alone, and rubrics, too: known by a field, and taken for independent."""
    rows = []
    figures = {}
    bars = {}
    for name, grouped in (("named by a field", True), ("taken for independent", False)):
        false = []
        likely = []
        aucs = []
        held = []
        for number in runs_of(quick, 100):
            rng = np.random.default_rng([8, number])
            user = rng.integers(0, USERS, LABELS)
            habit = rng.beta(0.8, 0.8, (USERS, RUBRICS))[user] * 0.5
            up = rng.random(LABELS) < rng.beta(0.7, 0.7, USERS)[user]
            found = learned(
                ArrayWorld(rng.random((LABELS, RUBRICS)) < habit, up, user), grouped=grouped
            )
            figure = assess_scores_against_labels(
                found.above, up, 0.0, np.zeros(LABELS, dtype=bool), rng, together=found.blocks
            ).auc  # of users that nobody has seen, it is that of guessing
            false.append(bool((found.p <= PROVEN_LEVEL).any()))
            likely.append(bool((found.p <= LIKELY_LEVEL).any()))
            aucs.append(figure.value or 0.5)
            held.append(within(widen_interval_of_figure(figure, CHOICE_WIDENING_FACTOR), 0.5))
        rows += [
            (f"users {name}: a false proven rubric", share_told(false)),
            (f"users {name}: a false proven or likely one", share_told(likely)),
            (
                f"users {name}: AUC said, where .5 is true",
                f"{np.mean(aucs):.3f}; interval holds it {share_told(held)}",
            ),
        ]
        figures[name] = {
            "proven": sum(false),
            "likely": sum(likely),
            "auc": float(np.mean(aucs)),
            "n": len(false),
        }
        if grouped:
            bars["users named by a field: false proven or likely ≤ .02"] = (
                quick or float(np.mean(likely)) <= 0.02
            )
    return Outcome(rows, figures, bars)


Draw = Callable[[Rng], tuple[Bools, Bools, Ints]]


def by_stratum(down: Floats, held: Floats, stratum: Ints, rng: Rng) -> tuple[Bools, Bools, Ints]:
    """Draw thumbs and a rubric that hang on a circumstance alone."""
    return rng.random(len(stratum)) < held, rng.random(len(stratum)) >= down, stratum


def of_length(rng: Rng) -> tuple[Bools, Bools, Ints]:
    """Longer conversations go wrong, and have the rubric more often."""
    length = rng.lognormal(size=LABELS)
    place = length.argsort().argsort() / LABELS
    return by_stratum(
        0.15 + 0.65 * place, 0.05 + 0.6 * place, assign_numbers_to_equal_bins(length), rng
    )


def of_time(rng: Rng) -> tuple[Bools, Bools, Ints]:
    """A week in which a system failed."""
    week = rng.integers(0, 8, LABELS)
    bad = week == 5
    return by_stratum(np.where(bad, 0.9, 0.3), np.where(bad, 0.8, 0.15), week, rng)


def of_field(levels: int) -> Draw:
    """Return what draws a field of so many values on which thumbs hang."""

    def draw(rng: Rng) -> tuple[Bools, Bools, Ints]:
        value = rng.integers(0, levels, LABELS)
        part = value / (levels - 1)
        return by_stratum(0.2 + 0.6 * part, 0.1 + 0.5 * part, value, rng)

    return draw


def of_paradox(rng: Rng) -> tuple[Bools, Bools, Ints]:
    """Simpson's: the rubric helps in each segment, and comes more often in the one that goes wrong."""
    segment = rng.integers(0, 2, LABELS)
    held = rng.random(LABELS) < np.array([0.12, 0.75])[segment]
    down = rng.random(LABELS) < np.array([0.2, 0.85])[segment] - 0.1 * held
    return held, ~down, segment


CONFOUNDS: dict[str, Draw] = {
    "length": of_length,
    "week": of_time,
    "tariff": of_field(3),
    "language": of_field(2),
    "prompt version": of_field(4),
    "segment, turned over (Simpson)": of_paradox,
}


@world("confounds")
def confounds(quick: bool) -> Outcome:
    """Let thumbs hang on a circumstance that a rubric comes with; then on the rubric, which comes with it, too."""
    rows = []
    figures = {}
    bars = {}
    for name, draw in CONFOUNDS.items():
        found = []
        wrong = []
        for number in range(20 if quick else 200):
            rng = np.random.default_rng([9, number])
            held, up, stratum = draw(rng)
            found.append(
                find_explaining_circumstance(held, up, [Circumstance(name, stratum)]) is not None
            )
            caused = rng.random(LABELS) >= np.where(held, 0.7, 0.3)
            wrong.append(
                find_explaining_circumstance(held, caused, [Circumstance(name, stratum)])
                is not None
            )
        rows.append((f"thumbs by {name} alone: the rubric goes along with it", share_told(found)))
        rows.append(
            (f"thumbs by the rubric, which comes with {name}: taken from it", share_told(wrong))
        )
        figures[name] = {"found": sum(found), "wrong": sum(wrong), "n": len(found)}
        bars[f"{name}: found ≥ .8, and wrongly ≤ .05"] = quick or (
            np.mean(found) >= 0.8 and np.mean(wrong) <= 0.05
        )
    return Outcome(rows, figures, bars)
