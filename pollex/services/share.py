"""Estimate how many of all conversations are good, from the few that have labels."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import BadRow, Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.label_files import RANDOM, VOLUNTARY, GivenLabel
from pollex.formats.write import require_writable
from pollex.graphs.context import Progress
from pollex.measures.arrays import Floats
from pollex.measures.share import (
    FEWEST,
    Bounds,
    Dependence,
    Labeled,
    Share,
    adjusted_share,
    bounds_of_share,
    dependence_of_votes,
    share_at_random,
    wilson_share,
)
from pollex.reports.share import NamedEstimate, share_page
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.labeled_sample import Sample, grouped, labels_of, notes_on, sampled
from pollex.services.logs import Sources, files_of, logs_from
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.results import Shown
from pollex.services.score import score, unedited
from pollex.text import Rows, Told, notes_told

NO_SCORE = 0.5
"""Probability of a conversation without a score: it tells nothing."""

WAYS = {
    "at_random": "of all, from labels at random",
    "adjusted": "of all, if votes depend on the conversation alone",
    "voters": "of voters",
}
"""What is estimated, the first to read in front."""

DRAWN = {RANDOM: "at random", VOLUNTARY: "given voluntarily"}


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """The estimates from the labels of some conversations.

    Attributes:
        name: Of the group; empty for all conversations.
        labels: Number of labels by the way in which they were drawn.
        at_random: From labels at random; None where there are too few.
        voters: Share among those who voted; None where there are too few.
        adjusted: Of all, if votes depend on the conversation alone.
        bounds: Of all, if good and bad conversations vote unequally often.
        dependence: Whether votes depend on satisfaction; only labels at random can tell.
        missing: Labels that an estimate lacks, by the way in which they are drawn.
    """

    name: str
    conversations: int
    labels: Mapping[str, int]
    at_random: Share | None = None
    voters: Share | None = None
    adjusted: Share | None = None
    bounds: tuple[Bounds, ...] = ()
    dependence: Dependence | None = None
    missing: Mapping[str, int]

    @property
    def known(self) -> list[tuple[str, Share]]:
        """The estimates that there are, the first to read in front."""
        named = [(how, getattr(self, how)) for how in WAYS]
        return [(how, share) for how, share in named if share is not None]

    @property
    def needs(self) -> str:
        """What is missing for an estimate, in words; empty where nothing is."""
        parts = [f"{n} more labels {DRAWN[way]} are needed" for way, n in self.missing.items()]
        return "; ".join(parts)

    def explained(self) -> Told:
        """Yield what the figures mean, and what is missing."""
        if (share := self.at_random) is not None:
            if share.gain > 1:
                yield f"With scores, one label is worth {share.gain:.2f} labels here."
            if share.note:
                yield f"Labels at random: {share.note}."
        if self.adjusted is not None and self.adjusted.note:
            yield f"Votes: {self.adjusted.note}."
        if (test := self.dependence) is not None:
            said = "Votes depend on satisfaction" if test.p < 0.05 else "No sign that votes depend on satisfaction"
            yield (
                f"{said} (difference {test.difference:+.3f}, p = {test.p:.3f}; a factor of 2 would be found with "
                f"probability {test.power:.2f})."
            )
        if self.missing:
            yield f"No estimate from fewer than {FEWEST} labels: {self.needs}."


def cells_of(share: Share) -> tuple[str, str, str]:
    """Return a share, its interval and its labels."""
    return f"{share.value:.3f}", f"[{share.low:.3f}, {share.high:.3f}]", f"{share.n:,}"


@dataclass(frozen=True, kw_only=True, repr=False)
class ShareResult(Shown):
    """Share of good conversations over all, and by group.

    Attributes:
        by: The field of the groups; empty where none was asked for.
        notes: What the reader has to know.
    """

    columns = ("group", "of", "value", "low", "high", "n", "method")
    json_fields = ("all=total", "groups", "by", "notes", "page")

    total: Estimates
    groups: tuple[Estimates, ...]
    by: str
    notes: tuple[str, ...]
    page: Path | None = None
    bad_rows: tuple[BadRow, ...] = ()

    @property
    def headline(self) -> str:
        if not self.total.known:
            return "too few labels"
        best = self.total.known[0][1]
        return f"{best.value:.3f} [{best.low:.3f}, {best.high:.3f}], n = {best.n}, {best.method}"

    @property
    def lines(self) -> list[NamedEstimate]:
        """The estimates for all conversations, the one to read first in front."""
        return [NamedEstimate(WAYS[how], self.total.conversations, share) for how, share in self.total.known]

    @property
    def group_lines(self) -> list[NamedEstimate]:
        """A comparable estimate a group: from random labels if all have them, else adjusted."""
        how = "at_random" if self.total.at_random else "adjusted"
        return [NamedEstimate(one.name, one.conversations, getattr(one, how), one.needs) for one in self.groups]

    def records(self) -> list[dict[str, Any]]:
        return [
            {"group": one.name or "all", "of": how, "conversations": one.conversations} | asdict(share)
            for one in (self.total, *self.groups)
            for how, share in one.known
        ]

    def told(self) -> Told:
        """Yield the estimates for all conversations, then by group."""
        total = self.total
        yield f"Share of good conversations, of {total.conversations:,} in all"
        rows = [(WAYS[how], *cells_of(share)) for how, share in total.known]
        for bound in total.bounds:
            name = f"of all, if good and bad ones vote up to {bound.factor:g} times unequally"
            rows.append((name, "", f"[{bound.low:.3f}, {bound.high:.3f}]", ""))
        if rows:
            yield Rows(("", "share", "95 % interval", "labels"), rows)
        yield from total.explained()
        groups = []
        for one, line in zip(self.groups, self.group_lines, strict=True):
            why_not = ("–", line.why_not or "no labels of this kind", f"{sum(one.labels.values()):,}")
            groups.append((line.name, f"{line.conversations:,}", *(cells_of(line.share) if line.share else why_not)))
        if groups:
            yield Rows((self.by, "conversations", "share", "95 % interval", "labels"), groups)
        yield from notes_told(self.notes)
        if self.page:
            yield f"Wrote {self.page}"


def share(
    logs: Sources | Logs,
    rubrics: Path | RubricSet | None = None,
    *,
    labels: Path | None = None,
    by: str | None = None,
    drawn: str | None = None,
    page: Path | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> ShareResult:
    """Estimate the share of good conversations over all.

    Args:
        rubrics: A rubric set, which narrows the intervals most where it was learned from other conversations.
        labels: A file of labels; None: those of the logs.
        by: A field of the logs; `FIELD:week` (`day`, `month`) for times; `segment` for the topics of the log.
        drawn: How labels were drawn whose rows don't say it: `random` or `voluntary`.
        page: Where the page is written.

    Raises:
        BadLabels: There are no labels, or rows of `labels` don't say how they were drawn.
        WrongUse: No conversation has the field.
    """
    if page is not None:
        require_writable(page, *files_of(logs, rubrics, labels))
    read_in = logs_from(logs, reading, progress)
    conversations = [one for one in read_in if not one.not_scorable]
    given, bad = labels_of(conversations, labels, drawn, reading)
    notes = notes_on(given, conversations, drawn)
    rubric_set = None if rubrics is None else unedited(rubrics)
    probability = None
    if rubric_set is not None:
        shown = Logs(conversations=tuple(conversations), fingerprint=read_in.fingerprint)
        probability = probabilities(shown, rubric_set, run, model, progress)
    found = share_of(conversations, given, rubric_set, probability, by)
    found = replace(found, notes=(*notes, *found.notes), page=page, bad_rows=(*read_in.bad_rows, *bad))
    if page is not None:
        page.write_text(share_page(found), encoding="utf-8")
    return found


def share_of(
    conversations: Sequence[Conversation],
    given: Sequence[GivenLabel],
    rubric_set: RubricSet | None,
    probability: Floats | None,
    by: str | None = None,
) -> ShareResult:
    """Estimate the share from labels and scores that are at hand."""
    sample, notes = sampled(conversations, given, rubric_set, probability)
    masks = {} if by is None else grouped(conversations, by)
    return ShareResult(
        total=estimates("", sample),
        groups=tuple(estimates(name, sample.of(mask)) for name, mask in masks.items()),
        by=by or "",
        notes=tuple(notes),
    )


def probabilities(
    logs: Logs, rubric_set: RubricSet, run: RunOptions, model: ModelOptions, progress: Progress
) -> Floats:
    """Score all conversations, and return the probability of a thumb up `[conversation]`."""
    scored = score(logs, rubric_set, reading=ReadOptions(), run=run, model=model, progress=progress).scores or ()
    return np.array([NO_SCORE if one.probability is None else one.probability for one in scored], dtype=np.float64)


def estimates(name: str, sample: Sample) -> Estimates:
    """Estimate the share of some conversations in every way that their labels allow."""
    numbers = {RANDOM: int(sample.random.sum()), VOLUNTARY: int(sample.voted.sum())}
    missing = {way: FEWEST - n for way, n in numbers.items() if 0 < n < FEWEST}
    if not any(numbers.values()):
        missing = {RANDOM: FEWEST}
    found = Estimates(name=name, conversations=len(sample.good), labels=numbers, missing=missing)
    if numbers[RANDOM] >= FEWEST:
        found = replace(found, at_random=share_at_random(labeled_at_random(sample)))
    if numbers[VOLUNTARY] < FEWEST:
        return found
    known = (sample.voted, sample.liked, sample.of_votes, sample.voting)
    adjusted = adjusted_share(*known)
    return replace(
        found,
        voters=wilson_share(sample.liked[sample.voted], "of voters"),
        adjusted=adjusted,
        bounds=tuple(bounds_of_share(*known)),
        dependence=dependence_of_votes(found.at_random, adjusted, sample.of_votes) if found.at_random else None,
    )


def labeled_at_random(sample: Sample) -> Labeled:
    """Return the labels at random, and the probabilities of all other conversations."""
    mine, rest = sample.random, ~sample.random
    users = (None, None) if sample.user is None else (sample.user[mine], sample.user[rest])
    return Labeled(sample.good[mine], sample.of_random[mine], sample.of_random[rest], *users)
