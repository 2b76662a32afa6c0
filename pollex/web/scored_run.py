"""What the scores of a run came to: how many conversations are good, the worst of them, and what has no answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pollex.measures.intervals import Figure, make_share_with_exact_interval
from pollex.store.runs import Run
from pollex.web.calibrated import LabelSource
from pollex.web.likeness import estimate_good_share
from pollex.web.listing import (
    ListedConversation,
    ListForm,
    add_labels,
    load_measured_columns,
    make_listing,
)
from pollex.web.reasons import find_reasons_of_set
from pollex.web.run_logs import identify_logs_of_run
from pollex.web.site import SCORING_COMMANDS, Site

MAX_WORST_SHOWN = 10
COMMANDS_WITH_REPORT = ("learn", "refit")
"""Commands whose runs are told by the report of the rubric set that they made."""

THUMB_SOURCES: tuple[tuple[LabelSource, str], ...] = (
    ("log", "in the log"),
    ("person", "by people"),
)
"""Whose thumbs are shown beside verdicts: of people, where the log has none."""


@dataclass(frozen=True)
class ThumbsBeside:
    """Thumbs of a run's conversations, beside the verdicts.

    Attributes:
        source: Whose thumbs they are, and `whose` in words.
        up: The share of thumbs up.
        agreeing: The share of verdicts that agree with the thumb, of conversations that the rubrics
            weren't learned from.
    """

    source: LabelSource
    whose: str
    up: Figure
    agreeing: Figure


@dataclass(frozen=True)
class OtherScores:
    """The scores of another run, to see a run's share beside them.

    Attributes:
        where: Which run it is, in words.
    """

    where: str
    run: Run
    good: Figure


@dataclass(frozen=True)
class ScoredRun:
    """What the scores of a run came to.

    Attributes:
        good: The share of good conversations; None where the set has no probability, or isn't there.
        has_set: Whether the store has the rubric set.
        calibrated: Whether probabilities say how sure verdicts are.
        worst: The conversations that are least likely good, the worst first.
        order: By what they are sorted.
        reasons: The sentence that spoke most for each verdict, by conversation.
        total: Conversations of the run.
        unscored: Those without a score.
        missing: Answers that are missing, and `lacking` the conversations that lack some.
    """

    good: Figure | None
    has_set: bool
    calibrated: bool
    thumbs: ThumbsBeside | None
    others: Sequence[OtherScores]
    worst: Sequence[ListedConversation]
    order: str
    reasons: dict[str, str]
    total: int
    unscored: int
    missing: int
    lacking: int


def summarize_scores(site: Site, run: Run) -> ScoredRun | None:
    """Return what a run's scores came to; None for one that goes on, or that a report tells of."""
    is_scoring = run.command in SCORING_COMMANDS and run.command not in COMMANDS_WITH_REPORT
    if not is_scoring or run.finished is None:
        return None

    good = estimate_good_share(site, run)
    order = "netsat" if good is None else "probability"
    form = ListForm.model_validate({"run": run.id, "sort": order, "n": MAX_WORST_SHOWN})
    listing = make_listing(site, form)
    has_score = listing.lens.verdict >= 0
    if not len(listing.lens):
        return None

    # rows without a score come last, and are no worst ones
    worst = [row for row in listing.rows() if row.good is not None]
    failed = listing.lens.failed
    return ScoredRun(
        good=good,
        has_set=site.set_of(run) is not None,
        calibrated=listing.calibrated,
        thumbs=compare_with_thumbs(site, run),
        others=list_other_scores(site, run),
        worst=worst,
        order=order,
        reasons=find_reasons_of_set(site, run, worst),
        total=len(listing.lens),
        unscored=int((~has_score).sum()),
        missing=int(failed.sum()),
        lacking=int((failed > 0).sum()),
    )


def compare_with_thumbs(site: Site, run: Run) -> ThumbsBeside | None:
    """Return the thumbs of a run's conversations beside its verdicts; of people, where the log has none."""
    measured = load_measured_columns(site, run)
    for source, whose in THUMB_SOURCES:
        lens = add_labels(site, measured, source)
        labeled = lens.label >= 0
        if not labeled.any():
            continue

        known = labeled & lens.unseen & (lens.differs >= 0)
        return ThumbsBeside(
            source,
            whose,
            make_share_with_exact_interval(int((lens.label == 1).sum()), int(labeled.sum())),
            make_share_with_exact_interval(
                int((known & (lens.differs == 0)).sum()),
                int(known.sum()),
                empty="the rubrics were learned from all of them",
            ),
        )

    return None


def list_other_scores(site: Site, run: Run) -> list[OtherScores]:
    """Return the scores of the last run before on the same log, and of the log that the set was learned from."""
    logs = identify_logs_of_run(run)
    named = site.set_of(run)
    own_log_run = None
    earlier = None
    for other in site.runs():
        if named is not None and other.id == named.run:
            own_log_run = other
        # of a log in memory nobody knows whether it is the same
        is_alike = other.command in SCORING_COMMANDS and identify_logs_of_run(other) == logs
        if logs and is_alike and earlier is None and other.started < run.started:
            earlier = other

    others = []
    if earlier is not None and (good := estimate_good_share(site, earlier)):
        others.append(OtherScores("The same log was scored before", earlier, good))
    if own_log_run not in (None, earlier) and (good := estimate_good_share(site, own_log_run)):
        others.append(OtherScores("In the log that the rubrics come from", own_log_run, good))

    return others
