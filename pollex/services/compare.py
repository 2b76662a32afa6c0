"""Compare two samples of conversations: files, runs, or the values of a field."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.label_files import RANDOM, GivenLabel, labels_in, read_labels
from pollex.formats.write import require_writable
from pollex.graphs.context import Progress
from pollex.measures.drift import DRIFTED, Stability
from pollex.measures.intervals import Figure
from pollex.measures.share import FEWEST, Labeled, Share, difference_at_random, labels_for_difference
from pollex.measures.two_samples import conversations_for_difference, mean_differences, moved
from pollex.reports.share import compare_page
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.arms import Arm, Watch, arm_of_run, arms_of, units_of, watch
from pollex.services.labeled_sample import sampled
from pollex.services.logs import files_of
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.results import Shown
from pollex.services.score import unedited
from pollex.services.share import labeled_at_random
from pollex.store.store import Store
from pollex.text import Line, Rows, Told, notes_told

UNDERSTATED = (
    "Scores understate a difference in thumbs: of five points among thumbs, mean scores show about one and a half. "
    "Labels at random on both sides measure the difference itself."
)
LISTED = 10
"""Rubrics that moved which a terminal shows."""
BY_FOLDS = "a run that learns answers them without themselves, which is not to be compared with other answers"


@dataclass(frozen=True)
class RubricDifference:
    """The frequency or mean of a rubric in each sample.

    Attributes:
        difference: Mean answer of the second sample minus that of the first, on the rubric's 0 … 10.
        moved: Whether that is more than chance, with the false discovery rate over all rubrics bounded at .05.
    """

    id: str
    polarity: str
    text: str
    before: float
    after: float
    difference: Figure
    moved: bool


@dataclass(frozen=True, kw_only=True)
class SampleSize:
    """The sample size needed to detect a difference, with power .8.

    Attributes:
        difference: In mean probability, or in the share of good conversations.
        conversations: A side, for mean probabilities.
        labels: A side, at random, with scores; and without.
    """

    difference: float
    conversations: int
    labels: int
    labels_alone: int

    @property
    def headline(self) -> str:
        """The plan in a sentence."""
        return (
            f"To see a difference of {self.difference:.2g}: {self.conversations:,} conversations a side by mean "
            f"scores, or {self.labels:,} labels a side with scores ({self.labels_alone:,} without)."
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The second sample beside the first.

    Attributes:
        sizes: Conversations of each.
        paired: Conversations with the same id in both.
        share: Difference of the share of good conversations, from labels at random; None where a side has too few.
        labels: Labels at random of each.
        drift: How unlike NetSAT is spread.
        watch: All that differs without labels.
    """

    first: str
    second: str
    sizes: tuple[int, int]
    paired: int
    means: tuple[float, float]
    probability: Figure
    netsat: Figure
    rubrics: tuple[RubricDifference, ...]
    share: Share | None
    labels: tuple[int, int]
    plan: SampleSize
    drift: Stability
    watch: Watch
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class CompareResult(Shown):
    """Comparisons of each sample with the first.

    Attributes:
        unscored: Conversations without a score, which are left out.
    """

    json_fields = ("comparisons", "unscored", "page")

    comparisons: tuple[Comparison, ...]
    unscored: int
    page: Path | None = None

    @property
    def headline(self) -> str:
        return "; ".join(f"{one.second} − {one.first}: {one.probability.value:+.3f}" for one in self.comparisons)

    def records(self) -> list[dict[str, Any]]:
        rows = [(one.first, one.second, asdict(each)) for one in self.comparisons for each in one.rubrics]
        return [{"first": first, "second": second, **row} for first, second, row in rows]

    def told(self) -> Told:
        """Yield the difference to the first sample, and the rubrics that moved."""
        for one in self.comparisons:
            a, b = one.sizes
            n = f"{a} and {b}"
            yield Line(f"{one.second} compared with {one.first}", "bold")
            probability = f"mean P(thumb up), {one.means[0]:.3f} → {one.means[1]:.3f}"
            rows = [(probability, f"{one.probability:+.3f}", n), ("mean NetSAT", f"{one.netsat:+.3f}", n)]
            if (share := one.share) is not None:
                labels = f"{one.labels[0]} and {one.labels[1]} labels"
                ends = f"[{share.low:+.3f}, {share.high:+.3f}]"
                rows.append(("share of good ones", f"{share.value:+.3f}  {ends}", labels))
            yield Rows(("", "difference  [95 % interval]", "n"), rows)
            moved = [each for each in one.rubrics if each.moved]
            yield f"{len(moved)} of {len(one.rubrics)} rubrics moved by more than chance{':' if moved else '.'}"
            for each in moved[:LISTED]:
                yield f"  {each.polarity.upper():<4} {each.before:.2f} → {each.after:.2f}  {each.text}"
            yield one.plan.headline
            yield from notes_told(one.notes)
        if self.unscored:
            yield f"{self.unscored} conversations without a score were left out."
        if self.page:
            yield f"Wrote {self.page}"


def compare(
    samples: Sequence[str | Path] | Logs,
    rubrics: Path | RubricSet,
    *,
    by: str | None = None,
    baseline: str | None = None,
    labels: Path | None = None,
    drawn: str | None = None,
    see: float = 0.05,
    page: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> CompareResult:
    """Compare samples of conversations by scores, and by random labels if both have them.

    Args:
        samples: Two or more files, globs, or runs of the store; with `by`, logs that a field cuts into samples.
        baseline: The value of `by` that the others are compared with; None: the first.
        labels: A file of labels; None: those of the logs.
        drawn: How labels were drawn whose rows don't say it.
        see: The difference to plan for.

    Raises:
        WrongUse: There are fewer than two samples, or no such value.
    """
    if page is not None:
        require_writable(page, *files_of(samples, rubrics, labels))
    rubric_set = unedited(rubrics)

    arms, lost = arms_of(
        samples, rubric_set, by=by, baseline=baseline, reading=reading, run=run, model=model, progress=progress
    )
    given = None if labels is None else read_labels(labels, reading)[0]
    found = [compared(arms[0], arm, rubric_set, given, drawn, see) for arm in arms[1:]]
    if page is not None:
        page.write_text(compare_page(found), encoding="utf-8")
    return CompareResult(comparisons=tuple(found), unscored=lost, page=page)


def compare_runs(store: Store, first: str, second: str, rubric_set: RubricSet, see: float = 0.05) -> Comparison:
    """Compare two runs of an open store with one rubric set, as `compare` does."""
    a, b = (arm_of_run(store, name, rubric_set) for name in (first, second))
    return compared(a, b, rubric_set, None, None, see)


def compared(
    a: Arm, b: Arm, rubric_set: RubricSet, labels: list[GivenLabel] | None, drawn: str | None, see: float
) -> Comparison:
    """Compare two samples, without texts that a run learned from and answered without their own fold.

    Raises:
        WrongUse: One has no score, or none but of such texts.
    """
    a, b, left_out = comparable(a, b)
    for arm in (a, b):
        if not arm.conversations:
            what = "a score that can be compared" if left_out else "a score"
            raise WrongUse(f"{arm.name}: no conversation has {what}", remedy="look at `pollex score` on it")
    rng, second = np.random.default_rng(0), np.repeat([False, True], [len(a.conversations), len(b.conversations)])
    columns = {"p": np.append(a.probability, b.probability), "netsat": np.append(a.netsat, b.netsat)}
    answers = np.concatenate([a.values, b.values])
    columns |= {rubric.id: answers[:, place] for place, rubric in enumerate(rubric_set.rubrics)}
    found = mean_differences(columns, second, units_of([*a.conversations, *b.conversations]), rng)
    (left, n), (right, m) = (_labeled(arm, labels, drawn, rubric_set) for arm in (a, b))
    share = difference_at_random(left, right) if left and right else None
    watched = watch(a, b, rubric_set, rng)
    drift = watched.stability["netsat"]
    of_rubrics = {rubric.id: found[rubric.id] for rubric in rubric_set.rubrics}
    changed = moved(of_rubrics)
    rubrics = [
        RubricDifference(
            rubric.id,
            rubric.polarity,
            rubric.text,
            float(np.nanmean(a.values[:, place])),
            float(np.nanmean(b.values[:, place])),
            found[rubric.id],
            rubric.id in changed,
        )
        for place, rubric in enumerate(rubric_set.rubrics)
    ]
    return Comparison(
        first=a.name,
        second=b.name,
        sizes=(len(a.conversations), len(b.conversations)),
        paired=len({c.id for c in a.conversations} & {c.id for c in b.conversations}),
        means=(float(a.probability.mean()), float(b.probability.mean())),
        probability=found["p"],
        netsat=found["netsat"],
        rubrics=tuple(sorted(rubrics, key=lambda one: (not one.moved, -abs(one.difference.value or 0.0)))),
        share=share,
        labels=(n, m),
        plan=_plan(see, a, share),
        drift=drift,
        watch=watched,
        notes=(*left_out, *_notes(n, m, share, drift, b)),
    )


def comparable(a: Arm, b: Arm) -> tuple[Arm, Arm, list[str]]:
    """Return two samples without what only one of them scored, or answered by folds, and notes that say so.

    An answer to a training conversation comes from a scale that was learned without it; any other from the whole one.
    """
    notes = []
    for texts, what, why in (
        (a.folded ^ b.folded, "that the set was learned from", BY_FOLDS),
        (a.unscored | b.unscored, "without a score in the other", "a difference is one of answers to the same texts"),
    ):
        first, second = a.without(texts), b.without(texts)
        lost = [len(arm.conversations) - len(left.conversations) for arm, left in ((a, first), (b, second))]
        if any(lost):
            notes.append(f"left out are conversations {what}, {lost[0]} of {a.name} and {lost[1]} of {b.name}: {why}")
        a, b = first, second
    return a, b, notes


def _labeled(
    arm: Arm, labels: list[GivenLabel] | None, drawn: str | None, rubric_set: RubricSet
) -> tuple[Labeled | None, int]:
    """Return a sample's random labels with cross-fitted probabilities; None if too few."""
    mine = {c.id for c in arm.conversations}
    given = labels_in(arm.conversations, drawn or "") if labels is None else [
        one._replace(drawn=one.drawn or drawn or "") for one in labels if one.id in mine
    ]  # fmt: skip
    if (n := len({one.id for one in given if one.drawn == RANDOM})) < FEWEST:
        return None, n
    sample, _ = sampled(arm.conversations, given, rubric_set, arm.probability)
    return labeled_at_random(sample), n


def _plan(see: float, a: Arm, share: Share | None) -> SampleSize:
    """Compute the sample size for a difference, from labels or else from probabilities."""
    mean, spread = float(a.probability.mean()), float(a.probability.std())
    known = None if share is None else share.correlation
    expected = min(spread / max(np.sqrt(mean * (1 - mean)), 1e-6), 0.99)  # of a calibrated probability and its label
    correlation = expected if known is None else known
    with_scores, alone = (labels_for_difference(see, min(mean, 1 - see), r) for r in (correlation, 0.0))
    return SampleSize(
        difference=see,
        conversations=conversations_for_difference(see, spread),
        labels=with_scores,
        labels_alone=alone,
    )


def _notes(n: int, m: int, share: Share | None, drift: Stability, b: Arm) -> list[str]:
    notes = [] if share else [UNDERSTATED]
    if share is None and n + m:
        notes.append(f"{n} and {m} labels at random: a difference of shares takes {FEWEST} on each side")
    if drift.marked and drift.value >= DRIFTED:
        notes.append(f"conversations of {b.name} are unlike those before: probabilities may not be calibrated there")
    return notes
