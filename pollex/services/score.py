"""Score conversations with a rubric set, or measure the set on labeled ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import BadRow, Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.peer_scores import requests_of
from pollex.formats.scores import rows as score_rows
from pollex.formats.scores import write_scores
from pollex.formats.write import draft_of, require_format, require_writable
from pollex.graphs.context import Progress
from pollex.graphs.score.run import Scored, scores_of
from pollex.graphs.score.run import score as run_graph
from pollex.measures.drift import Stability, is_unlike, stability_of_counts
from pollex.reports.page import file_of
from pollex.reports.scores import Tally, scores_page
from pollex.rubrics.netsat import Score
from pollex.rubrics.records import SpreadRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.thumb_model import judges_wanted
from pollex.services.exchange import aims_of, require_form, write_requests
from pollex.services.judging import judging
from pollex.services.logs import Sources, files_of, logs_from, names_of
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.pieces import Cut, Stream, nothing
from pollex.services.results import (
    Shown,
    Usage,
    counted,
    support_json,
    usage_json,
    used,
)
from pollex.services.telemetry import exporting
from pollex.services.workspace import Workspace, workspace
from pollex.text import Told, encoded

FEWEST = 20
"""Conversations below which drift is not looked for."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ScoreResult(Shown):
    """The result of scoring.

    Attributes:
        scores: In the conversations' order; None if they were written to `out`.
        outcomes: Number of conversations by outcome.
        drift: How unlike NetSAT is spread, beside the conversations that the set was learned on; None if unknown.
        asked: Conversations that a model was asked about because their label was in doubt; None without a cascade.
    """

    columns = ("id", "decision", "probability", "netsat", "label", "confident", "outcome")

    run: str
    rubrics: RubricSet
    out: Path | None
    scores: tuple[Score, ...] | None
    outcomes: dict[str, int]
    n: int
    bad_rows: tuple[BadRow, ...] = ()
    usage: Usage | None = None
    asked: int | None = None
    page: Path | None = None
    drift: Stability | None = None

    @property
    def complete(self) -> bool:
        """Whether every row and conversation was scored."""
        return not self.bad_rows and not self.outcomes.keys() - {"scored"}

    @property
    def headline(self) -> str:
        return counted(self.outcomes)

    def records(self) -> Iterator[dict[str, Any]]:
        return score_rows(self.scores or (), self.rubrics)

    def export(self, *, as_: str, logs: Iterable[Conversation] = ()) -> list[dict[str, Any]]:
        """Return the scores as another tool's requests, such as `langfuse`; see `pollex.export_scores`."""
        require_form(as_)
        return requests_of(as_, self.scores or (), self.rubrics, aims_of(logs)).requests

    def told(self) -> Told:
        """Yield what scoring came to."""
        yield counted(self.outcomes)
        yield from used(self.usage)
        if self.asked is not None:
            yield f"The model was asked about {self.asked} of {self.n}, whose label was in doubt"
        yield f"Probabilities: {self.support_text}"
        page = f" and {self.page}" if self.page else ""
        yield f"Wrote {self.out}{page} ({self.rubrics.judge.name}; run {self.run})"

    def as_json(self) -> dict[str, Any]:
        about = {"run": self.run, "out": self.out and str(self.out), "judge": self.rubrics.judge.name}
        read = {"outcomes": self.outcomes, "n": self.n, "bad_rows": encoded(self.bad_rows)}
        read |= {} if self.asked is None else {"asked": self.asked}
        unlike = {} if self.drift is None else {"drift": asdict(self.drift), "unlike": self.unlike}
        calibrated = {"calibrated": False} if self.unlike else {}
        return about | read | support_json(self.rubrics) | calibrated | unlike | usage_json(self.usage)

    @property
    def unlike(self) -> bool:
        """Whether these conversations are unlike those of the set: its probabilities may not be calibrated here."""
        return is_unlike(self.drift)

    @property
    def support_text(self) -> str:
        """How far the probabilities are to be trusted, in words."""
        if self.drift is None or not self.unlike:
            return str(self.rubrics.support)
        value = f"stability index {self.drift.value:.2f}"
        return f"not known to be calibrated here: conversations are unlike those that the set was learned on ({value})"


def score(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    out: Path | None = None,
    form: str | None = None,
    judges: Sequence[str] = (),
    costs: tuple[float, float] = (1.0, 1.0),
    cascade: Path | RubricSet | None = None,
    wide: bool = False,
    workers: int | None = None,
    trace: Literal["batch", "each"] = "batch",
    events: str | None = None,
    no_texts: bool = False,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> ScoreResult:
    """Score conversations with a rubric set; a file of rows gets a page beside it.

    Args:
        out: Where a row a conversation is written; its ending says how. None: the result holds the scores.
        form: The tool whose requests are written to `out`, in place of rows.
        judges: Annotators whose own probabilities are wanted beside that of an unknown one; `all` for all.
        costs: Of a bad conversation taken for good, and of a good one taken for bad: they move the decision.
        cascade: The set whose model is asked about conversations inside the uncertainty window.
        wide: Whether each rubric has a column of its own.
        workers: Processes for a set that asks no model; None: one a core where the log is large.
        trace: Whether such a set's run keeps a span a batch, or two for `each` conversation, which takes longer.
        events: Address of an OpenTelemetry collector that each score is sent to; None: nobody's.
        no_texts: Whether the store keeps nothing of what was said, and no prompts.

    Raises:
        BadInput: A file or row can't be read.
        BadRubrics: The rubrics were edited after θ was fitted.
        WrongUse: An annotator is not known, or the set's judge has to be confirmed.
    """
    page = None
    rubric_set, full = unedited(rubrics), None if cascade is None else unedited(cascade)
    asked = judges_wanted(rubric_set.thumb_model, judges) if judges else ()  # to rebuild the model takes a second
    if form is not None and out is not None:
        require_form(form)
        require_writable(out, *files_of(rubrics, logs))
    elif out is not None:
        require_format(out, *files_of(rubrics, logs))
    read = logs_from(logs, reading.for_scores(), progress)
    if run.dry_run:
        from pollex.services.plan import Planned, plan_scoring  # the roles of a model come with it

        raise Planned(plan_scoring(read.conversations, rubric_set, run, model))
    with exporting(events, rubric_set.rubrics_digest) as emit, workspace(run, progress, read) as opened:
        opened.store.texts = not no_texts
        arguments = {"logs": names_of(logs), "rubrics": names_of(rubrics)[0], "out": out and str(out)}
        doubtful, spread = 0, Spread(rubric_set.spread, emit)
        whole = trace == "batch" and rubric_set.judge.built_in and rubric_set.starter is None
        cut = Cut(asked, costs, workers) if whole else None
        if cut is not None and form is None and full is None:
            tally, stream = Tally(rubric_set), Stream(spread.watch)
            with stream.into(out, rubric_set, asked, wide=wide, tally=tally):
                work = scored_by(opened, read, rubric_set, model, arguments, "score", replace(cut, told=stream.take))
                scored, usage = opened.run(work)
            if len(read) >= FEWEST:
                progress.note(stream.cost(rubric_set, len(read)))
            return ScoreResult(
                run=scored.run,
                rubrics=rubric_set,
                out=out,
                page=None if out is None else write_page(tally, read, out, names_of(rubrics)[0]),
                scores=tuple(stream.kept) if out is None else None,
                drift=spread.drift(),
                outcomes=dict(scored.counts),
                n=len(read),
                bad_rows=read.bad_rows,
                usage=usage,
            )
        scored, usage = opened.run(scored_by(opened, read, rubric_set, model, arguments, "score", cut))
        scores = scores_of(opened.store, scored.run, rubric_set, read.conversations, asked, costs)
        if full is not None:
            scores, doubtful, usage = with_doubtful_asked(opened, read, scores, full, model, arguments, costs)
        scores = spread.watch(scores)
        kept = tuple(scores) if out is None else None
        if form is not None and out is not None:
            write_form(out, form, scores, rubric_set, read, progress)
        elif out is not None:
            tally = Tally(rubric_set)
            write_scores(out, tally.watch(opened.over("write", scores, len(read))), rubric_set, asked, full, wide=wide)
            page = write_page(tally, read, out, names_of(rubrics)[0])
        return ScoreResult(
            run=scored.run,
            rubrics=rubric_set,
            out=out,
            page=page,
            scores=kept,
            drift=spread.drift(),
            outcomes=dict(scored.counts),
            n=len(read),
            bad_rows=read.bad_rows,
            usage=usage,
            asked=None if full is None else doubtful,
        )


class Spread:
    """Counts of NetSAT in the bins of a set, as scores pass; each is sent as an event, too, where that is wanted."""

    def __init__(self, learned: SpreadRecord | None, emit: Callable[[Score], None] | None = None) -> None:
        self._learned, self._emit = learned, emit
        self._counts = [0] * len(learned.counts) if learned else []

    def watch(self, scores: Iterable[Score]) -> Iterator[Score]:
        """Yield the scores, each counted."""
        for one in scores:
            if self._learned is not None and one.netsat is not None:
                self._counts[bisect_right(self._learned.edges, one.netsat)] += 1
            if self._emit is not None:
                self._emit(one)
            yield one

    def drift(self) -> Stability | None:
        """Compare the counts with those of the set; None for fewer than twenty conversations."""
        return None if self._learned is None else drift_from(self._learned, self._counts)


def drift_from(learned: SpreadRecord, counts: Sequence[int]) -> Stability | None:
    """Compare counts of NetSAT with those of a set, in its bins; None for fewer than twenty conversations."""
    if min(sum(counts), sum(learned.counts)) < FEWEST:
        return None
    then, now = (np.array(each, dtype=np.float64) for each in (learned.counts, counts))
    return stability_of_counts(then, now, np.random.default_rng(0))


def with_doubtful_asked(
    opened: Workspace,
    read: Logs,
    scores: Iterable[Score],
    full: RubricSet,
    model: ModelOptions,
    arguments: dict[str, Any],
    costs: tuple[float, float],
) -> tuple[Iterator[Score], int, Usage | None]:
    """Score the conversations whose label is in doubt with the set that asks a model, too.

    Returns:
        The scores, the model's in place of the first; how many were in doubt; the model's usage.
    """
    first = list(scores)
    doubtful = [c for c, one in zip(read, first, strict=True) if one.confident is False]
    kept = Logs(conversations=tuple(doubtful), fingerprint=read.fingerprint)
    again, usage = opened.run(scored_by(opened, kept, full, model, arguments, "score"))
    return merged(first, scores_of(opened.store, again.run, full, doubtful, costs=costs)), len(doubtful), usage


def write_form(
    out: Path, form: str, scores: Iterable[Score], rubric_set: RubricSet, read: Logs, progress: Progress
) -> None:
    """Write the scores as another tool's requests; say for which conversations there is none."""
    for id_, why in write_requests(out, form, scores, rubric_set, read.conversations).left_out:
        progress.note(f"Note: nothing is written for {id_:.60}: {why}")


def merged(first: Sequence[Score], second: Iterable[Score]) -> Iterator[Score]:
    """Yield the first scores, and the second in their place where a conversation has one."""
    better = {score.conversation_id: score for score in second if score.netsat is not None}
    yield from (better.get(score.conversation_id, score) for score in first)


def write_page(tally: Tally, read: Logs, out: Path, rubrics: str) -> Path | None:
    """Write the page of scores beside the file of rows; none beside a stream."""
    if not out.is_file():
        return None
    page = out.with_suffix(".html")
    if page.exists() and file_of(page) != out.name:  # somebody else's
        page = out.with_name(f"{out.stem}-scores.html")
    with draft_of(page) as draft:
        draft.write_text(scores_page(tally, read.conversations, out.name, Path(rubrics).name), encoding="utf-8")
    return page


def unedited(rubrics: Path | RubricSet) -> RubricSet:
    """Return the rubric set.

    Raises:
        BadRubrics: It can't be read, or was edited after θ was fitted.
    """
    if isinstance(rubrics, RubricSet):
        rubrics.require_unedited()
        return rubrics
    found = RubricSet.load(rubrics)
    found.require_unedited(str(rubrics))
    return found


async def scored_by(
    opened: Workspace,
    logs: Logs,
    rubric_set: RubricSet,
    model: ModelOptions,
    arguments: dict[str, Any],
    command: Literal["score", "evaluate", "label"],
    cut: Cut | None = None,
) -> tuple[Scored, Usage | None]:
    """Score conversations in a run of `command`, by the judge that the set has.

    Args:
        cut: How a set that asks no model does its work in batches; None: one conversation after the other.
    """
    async with judging(model, rubric_set, opened.store) as staff:
        opened.announce(staff)
        pool = None if cut is None else cut.pool(rubric_set, staff, len(logs))
        with pool or nullcontext():
            scored = await run_graph(
                logs.conversations,
                rubric_set,
                judge=staff.roles.judge,
                data_fingerprint=logs.fingerprint,
                setting=opened.setting(arguments, staff),
                command=command,
                whole=None if pool is None else pool.scores,
                told=nothing if cut is None else cut.told,
            )
        return scored, Usage.of(staff)
