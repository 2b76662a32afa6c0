"""Score conversations with a rubric set, or measure the set on labeled ones."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import BadRow, Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.scores import iterate_score_rows as score_rows
from pollex.formats.scores import open_score_file
from pollex.formats.write import require_format, require_writable
from pollex.graphs.context import ConversationIndex, Progress
from pollex.graphs.run import carry_out_run
from pollex.measures.drift import Stability, is_unlike, measure_count_stability
from pollex.measures.intervals import Figure
from pollex.outputs import write_text
from pollex.reports.page import file_of
from pollex.reports.scores import ScoreTally, scores_page
from pollex.rubrics.records import SpreadRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score, ScoreColumns, list_requested_judges
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.roles import hire_judge
from pollex.runs.run import RunSettings, begin_or_resume_run, digest_json, kept_ids
from pollex.runs.usage import ModelUsage, usage_by_stage
from pollex.runs.workspace import Workspace, workspace
from pollex.services.logs import Sources, files_of, logs_from, names_of
from pollex.services.named_sets import name_of, read_set
from pollex.services.results import (
    Shown,
    describe_share,
    describe_unread,
    line_of_outcomes,
    support_json,
)
from pollex.services.scorer import BatchScorer, ScoringPool
from pollex.store.resume import BATCH, count_outcomes, count_unread, list_scored_ids, scores_of
from pollex.store.rows import conversation_rows, rubric_rows
from pollex.text import TerminalLines

FEWEST = 20
"""Conversations below which drift is not looked for."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ScoreResult(Shown):
    """The result of scoring.

    Attributes:
        scores: In the conversations' order; None if they were written to `out`.
        outcomes: Number of conversations by outcome.
        good: Share of good conversations: the mean of their probabilities.
        decided_good: Share that is decided to be good.
        unread: Answers that could not be read, and why one of them.
        drift: How unlike NetSAT is spread, beside the conversations that the set was learned on;
            None if unknown.
        asked: Conversations that a model was asked about because their label was in doubt; None
            without a cascade.
    """

    fine = ("scored",)
    columns = ("id", "decision", "probability", "netsat", "label", "confident", "outcome")

    run: str
    rubrics: RubricSet
    out: Path | None
    scores: tuple[Score, ...] | None
    outcomes: dict[str, int]
    n: int
    bad_rows: tuple[BadRow, ...] = ()
    usage: ModelUsage | None = None
    asked: int | None = None
    page: Path | None = None
    drift: Stability | None = None
    good: Figure | None = None
    decided_good: float | None = None
    unread: tuple[int, str] = (0, "")

    def records(self) -> Iterator[dict[str, Any]]:
        ids = [rubric.id for rubric in self.rubrics.rubrics]
        return score_rows(ScoreColumns.of(self.scores or (), ids), self.rubrics)

    def export(self, *, as_: str, logs: Iterable[Conversation] = ()) -> list[dict[str, Any]]:
        """Return the scores as another tool's requests, such as `langfuse`; see `pollex.export_scores`."""
        from pollex.services.hooks import score_forms  # other tools alone need it

        forms = score_forms()
        return forms.requests(as_, self.scores or (), self.rubrics, logs)

    def told(self) -> TerminalLines:
        """Yield what scoring came to."""
        yield line_of_outcomes(self.outcomes)
        yield from describe_unread(*self.unread)
        yield from usage_by_stage(self.usage)
        if self.asked is not None:
            yield f"The model was asked about {self.asked} of {self.n}, whose label was in doubt"

        yield from describe_share(self.good, self.decided_good, self.rubrics)
        yield f"Probabilities: {self.support_text}"
        page = f" and {self.page}" if self.page else ""
        yield f"Wrote {self.out}{page} ({self.rubrics.judge.name}; run {self.run})"

    def as_json(self) -> dict[str, Any]:
        return (
            self.of("run", "out", "judge=rubrics.judge.name", "outcomes", "n", "bad_rows")
            | ({} if self.asked is None else self.of("asked"))
            | support_json(self.rubrics)
            | self.of("good", "decided_good", "at_chance=rubrics.at_chance")
            | ({"calibrated": False} if self.unlike else {})
            | ({} if self.drift is None else self.of("drift", "unlike"))
            | self.of("usage")
        )

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
        out: Where a row a conversation is written; its ending says how. None: the result holds the
            scores.
        form: The tool whose requests are written to `out`, in place of rows.
        judges: Annotators whose own probabilities are wanted beside that of an unknown one; `all`
            for all.
        costs: Of a bad conversation taken for good, and of a good one taken for bad: they move the
            decision.
        cascade: The set whose model is asked about conversations inside the uncertainty window.
        wide: Whether each rubric has a column of its own.
        workers: Processes for a set that asks no model; None: one a core where the log is large.
        trace: Whether such a set's run keeps a span a batch, or two for `each` conversation, which
            takes longer.
        events: Address of an OpenTelemetry collector that each score is sent to; None: nobody's.
        no_texts: Whether the store keeps nothing of what was said, and no prompts.

    Raises:
        BadInput: A file or row can't be read.
        BadRubrics: The rubrics were edited after θ was fitted.
        WrongUse: An annotator is not known, or the set's judge has to be confirmed.
    """
    rubric_set = read_unedited(rubrics, run.store)
    full = None
    if cascade is not None:
        full = read_unedited(cascade, run.store)

    # to rebuild the model takes a second
    if judges:
        annotators = list_requested_judges(rubric_set.thumb_model, judges)
    else:
        annotators = ()

    # another tool's requests, or rows in a format that the ending names
    if form is not None and out is not None:
        from pollex.services.hooks import score_forms  # as in `export`

        score_forms().require(form)
        require_writable(out, *files_of(rubrics, logs))
    elif out is not None:
        require_format(out, *files_of(rubrics, logs))

    # labels are not needed for scores
    read = logs_from(logs, reading.for_scores(), progress)
    # what a judge on a model is shown is settled by the set
    if not rubric_set.judge.built_in:
        from pollex.agents.llm.evidence import note_cut_sources  # the roles of a model come with it

        if note := note_cut_sources(read, rubric_set.judge.options.sources):
            progress.note(note)

    if run.dry_run:
        # the roles of a model come with it
        from pollex.services.dry_run import Planned, plan_scoring

        raise Planned(plan_scoring(read.conversations, rubric_set, run, model))

    # rows get a page and columns; requests of another tool don't
    file = out if form is None else None
    with (
        _sending(events, rubric_set) as emit,
        workspace(run, progress, read) as opened,
        ScoreSinks(rubric_set, file, annotators, full, wide=wide, emit=emit) as scores,
    ):
        # said before the run begins, as everything that is stored depends on it
        opened.store.texts = not no_texts
        arguments = {
            "logs": names_of(logs),
            "rubrics": names_of(rubrics)[0],
            "out": out and str(out),
        }
        # with a cascade scores are final only after the model was asked
        first = list[Score]()
        doubtful = None
        report = scores.take if full is None else first.extend
        scored, usage = scored_by(
            opened,
            read,
            rubric_set,
            model,
            arguments,
            "score",
            report,
            annotators,
            costs,
            workers=workers,
            trace=trace,
        )
        if full is not None:
            better, doubtful, usage = with_doubtful_asked(
                opened,
                read,
                first,
                rubric_set,
                full,
                model,
                arguments,
                costs,
            )
            scores.take(better)
        # where nothing was paid for, the time of a conversation is worth knowing
        elif rubric_set.judge.built_in and len(read) >= FEWEST:
            progress.note(scores.cost(len(read)))

        if form is not None and out is not None:
            write_form(out, form, scores.each(), rubric_set, read, progress)
        # only a model's replies can be unreadable
        if usage is not None:
            not_read = count_unread(opened.store, scored.run)
        else:
            not_read = (0, "")

    return ScoreResult(
        run=scored.run,
        rubrics=rubric_set,
        out=out,
        page=None if file is None else write_page(scores.tally, read, file, names_of(rubrics)[0]),
        scores=tuple(scores.each()) if out is None else None,
        drift=scores.drift(),
        good=scores.tally.good,
        decided_good=scores.tally.decided,
        outcomes=dict(scored.counts),
        n=len(read),
        bad_rows=read.bad_rows,
        usage=usage,
        asked=doubtful,
        unread=not_read,
    )


@contextmanager
def _sending(events: str | None, rubrics: RubricSet) -> Iterator[Callable[[Score], None] | None]:
    if events is None:
        yield None
    else:
        from pollex.services.telemetry import exporter_of  # few want it

        with exporter_of(events, rubrics.rubrics_digest) as emit:
            yield emit


class ScoreSinks:
    """Where scores go as they come: a file with its page, events, and the counts of NetSAT in the bins of a set.

    Without a file they are kept.

    Attributes:
        tally: What the page shows.
    """

    def __init__(
        self,
        rubrics: RubricSet,
        file: Path | None,
        judges: Sequence[str],
        other: RubricSet | None,
        *,
        wide: bool,
        emit: Callable[[Score], None] | None,
    ) -> None:
        self.tally = ScoreTally(rubrics)
        self._rubrics, self._emit, self._kept = rubrics, emit, list[ScoreColumns]()
        self._counts = np.zeros(
            len(rubrics.spread.counts) if rubrics.spread else 0,
            np.int64,
        )
        # without a file the batches stay in memory
        self._file = (
            open_score_file(file, rubrics, judges, other, wide=wide)
            if file
            else nullcontext(self._kept.append)
        )
        self._begun = cpu_seconds()

    def __enter__(self) -> Self:
        self._put = self._file.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def take(self, scores: ScoreColumns) -> None:
        """Take the scores of a batch, in the order of the conversations."""
        # counts in the bins of the set, whose own counts they are compared with
        if (learned := self._rubrics.spread) is not None:
            netsats = [netsat for netsat in scores.column("netsat") if netsat is not None]
            bins = np.searchsorted(learned.edges, netsats, side="right")
            self._counts += np.bincount(bins, minlength=len(self._counts))

        # events go out one by one, the file gets the whole batch
        for score in scores if self._emit else ():
            self._emit(score)  # type: ignore[misc]  # only where there is one

        self.tally.count(scores)
        self._put(scores)

    def each(self) -> Iterator[Score]:
        """Yield the scores that were kept."""
        return (score for scores in self._kept for score in scores)

    def drift(self) -> Stability | None:
        """Compare the counts with those of the set; None for fewer than twenty conversations."""
        if self._rubrics.spread is None:
            return None
        return drift_from(self._rubrics.spread, self._counts.tolist())

    def cost(self, count: int) -> str:
        """Say what a conversation cost."""
        embedded = BatchScorer(self._rubrics).reads_vectors
        ms = 1000 * (cpu_seconds() - self._begun) / count
        return f"{ms:.1f} ms of CPU a conversation, {'some of its turns embedded' if embedded else 'no embedding'}"


def cpu_seconds() -> float:
    """Return processor seconds of this process and of those of its children that ended."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def drift_from(learned: SpreadRecord, counts: Sequence[int]) -> Stability | None:
    """Compare counts of NetSAT with those of a set, in its bins; None for fewer than twenty conversations."""
    if min(sum(counts), sum(learned.counts)) < FEWEST:
        return None

    # the seed is fixed: the same counts give the same interval
    then, now = (np.array(bin_counts, dtype=np.float64) for bin_counts in (learned.counts, counts))
    return measure_count_stability(then, now, np.random.default_rng(0))


def with_doubtful_asked(
    opened: Workspace,
    read: Logs,
    first: Sequence[Score],
    rubrics: RubricSet,
    full: RubricSet,
    model: ModelOptions,
    arguments: dict[str, Any],
    costs: tuple[float, float],
) -> tuple[ScoreColumns, int, ModelUsage | None]:
    """Score the conversations whose label is in doubt with the set that asks a model, too.

    Returns:
        The scores, the model's in place of the first; how many were in doubt; the model's usage.
    """
    # a score that is missing is not in doubt: `confident` is None there
    doubtful = [c for c, score in zip(read, first, strict=True) if score.confident is False]
    logs = Logs(conversations=tuple(doubtful), fingerprint=read.fingerprint)
    second = list[Score]()
    _, usage = scored_by(
        opened,
        logs,
        full,
        model,
        arguments,
        "score",
        second.extend,
        costs=costs,
    )
    # where the model gave no score, the first one stays
    better = {score.conversation_id: score for score in second if score.netsat is not None}
    merged = [better.get(score.conversation_id, score) for score in first]
    # the columns of both sets, each rubric once
    ids = tuple(
        dict.fromkeys(rubric.id for asked_set in (rubrics, full) for rubric in asked_set.rubrics)
    )

    return ScoreColumns.of(merged, ids), len(doubtful), usage


def write_form(
    out: Path,
    form: str,
    scores: Iterable[Score],
    rubric_set: RubricSet,
    read: Logs,
    progress: Progress,
) -> None:
    """Write the scores as another tool's requests; say for which conversations there is none."""
    from pollex.services.hooks import score_forms  # as in `export`

    forms = score_forms()
    for id_, why in forms.write(out, form, scores, rubric_set, read.conversations):
        progress.note(f"Note: nothing is written for {id_:.60}: {why}")


def write_page(
    tally: ScoreTally,
    read: Logs,
    out: Path,
    rubrics: str,
) -> Path | None:
    """Write the page of scores beside the file of rows; none beside a stream."""
    if not out.is_file():
        return None

    page = out.with_suffix(".html")
    if page.exists() and file_of(page) != out.name:  # somebody else's
        page = out.with_name(f"{out.stem}-scores.html")

    write_text(
        page,
        scores_page(tally, read.conversations, out.name, Path(rubrics).name),
        named=False,
    )
    return page


def read_unedited(rubrics: Path | str | RubricSet, store: Path | None = None) -> RubricSet:
    """Return the rubric set, which `store` may have; see `named_sets.read_set`.

    Raises:
        BadRubrics: It can't be read, or was edited after θ was fitted.
    """
    rubric_set = read_set(rubrics, store)
    rubric_set.require_unedited(name_of(rubrics))
    return rubric_set


def scored_by(
    opened: Workspace,
    logs: Logs,
    rubric_set: RubricSet,
    model: ModelOptions,
    arguments: dict[str, Any],
    command: Literal["score", "evaluate", "label"],
    report: Callable[[ScoreColumns], None],
    judges: Sequence[str] = (),
    costs: tuple[float, float] = (1.0, 1.0),
    *,
    workers: int | None = None,
    trace: Literal["batch", "each"] = "batch",
) -> tuple[Scored, ModelUsage | None]:
    """Score conversations in a run of `command`, by the judge that the set has.

    Where no model is asked, batches are scored at once; a starter's answers are kept beside.

    Args:
        report: Told the scores in batches, in the order of the conversations, for these judges and
            costs.
        workers: Processes that score batches, and `trace` the run's spans; see `score`.
    """
    # whole batches are scored where nobody is asked, and nobody wants to see each conversation
    whole = rubric_set.judge.built_in and rubric_set.starter is None and trace == "batch"

    async def scored() -> tuple[Scored, ModelUsage | None]:
        conversations = logs.conversations
        async with await hire_judge(
            model, rubric_set, opened.store, conversations=conversations
        ) as staff:
            opened.announce(staff)
            judge = staff.roles.judge
            # with its vectors
            scorer = BatchScorer(
                rubric_set,
                judges,
                costs,
                staff.embedder.model,
                judge,
            )
            # worker processes are of use only for whole batches
            with (
                ScoringPool.for_log(scorer, len(logs), workers) if whole else nullcontext() as pool
            ):
                scored_run = await run_scoring(
                    logs.conversations,
                    rubric_set,
                    judge=judge,
                    data_fingerprint=logs.fingerprint,
                    setting=opened.setting(arguments, staff),
                    command=command,
                    whole=None if pool is None else pool.scores,
                    report=report,
                )

            return scored_run, ModelUsage.of(staff)

    # otherwise the scores are read from the store, in the order of the log
    scored_run, usage = opened.run(scored())
    for batch_scores in (
        ()
        if whole
        else scores_of(opened.store, scored_run.run, rubric_set, logs.conversations, judges, costs)
    ):
        report(batch_scores)

    return scored_run, usage


async def run_scoring(
    conversations: Sequence[Conversation],
    rubric_set: RubricSet,
    *,
    judge: Judge,
    data_fingerprint: str,
    setting: RunSettings,
    command: Literal["score", "evaluate", "label"] = "score",
    whole: Callable[[Sequence[Conversation]], Awaitable[ScoreColumns]] | None = None,
    report: Callable[[ScoreColumns], None] = lambda _scores: None,
) -> Scored:
    """Score conversations with a rubric set; `scores_of` reads the scores.

    Args:
        whole: What scores batches at once, for a judge that asks nobody.
        report: Told each batch's scores, in the order of the conversations; only with `whole`.
    """
    from pollex.graphs.score import ScoreContext, ScoreWork, build

    # a second start with the same data, rubrics and judge resumes the run
    fingerprint = {
        "data": data_fingerprint[:12],
        "rubrics": digest_json(rubric_set.model_dump(mode="json")),
        "judge": judge.fingerprint,
    }
    netsat = rubric_set.scorer_of()  # one that can't be rebuilt begins no run
    async with begin_or_resume_run(command, fingerprint, setting, [judge.name]) as run:
        store = setting.store
        if not store.value(
            "SELECT count(*) FROM facts WHERE run = ? AND kind = 'rubric'", [run.id]
        ):
            # so that a trace can tell what was asked
            store.put(rubric_rows(run.id, rubric_set.all_rubrics))

        # a resumed run has stored some conversations already; whole batches are stored with scores
        stored_ids = kept_ids(store, run.id)
        for start in range(0, 0 if whole else len(conversations), BATCH):
            new = [c for c in conversations[start : start + BATCH] if c.id not in stored_ids]
            await store.write(conversation_rows(run.id, new))
        shelf = ConversationIndex(conversations)
        # outcomes that may be others the next time count as not done
        done = list_scored_ids(store, run.id, setting.retry_outcomes)
        # whole batches cost little, and are scored again rather than read from the store
        live = ScoreWork(
            **setting.of_run(run.id),
            stage="score",
            total=len(shelf),
            pending={id_: None for id_ in shelf if whole or id_ not in done},
            outcomes=Counter({} if whole else count_outcomes(store, run.id, done)),
            fine=frozenset({"scored"}),
            workers=[judge.name],
            shelf=shelf,
            whole=whole,
            report=report,
            scored=done,
            stored_ids=stored_ids,
            judge=judge,
            questions=rubric_set.questions,
            netsat=netsat,
        )
        state = await carry_out_run(
            build(),
            live,
            ScoreContext.of(setting.arguments),
            anew=whole is not None,
        )

    return Scored(run.id, state["outcomes"])


@dataclass(frozen=True)
class Scored:
    """The result of a scoring run; `scores_of` reads the scores."""

    run: str
    counts: dict[str, int]
