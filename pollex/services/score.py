"""Score conversations with a rubric set.

`score` tells it in four steps: parse what is asked for, plan its calls, run, report. Below it stand
the steps, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pollex.conversations.logs import Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.write import require_known_ending, require_writable_output_path
from pollex.graphs.context import Progress
from pollex.outputs import write_text
from pollex.reports.page import read_rubric_file_of_page
from pollex.reports.scores import ScoreTally, render_scores_page
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score, ScoreColumns, list_requested_judges
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.roles import restore_judge
from pollex.runs.score_runs import ScoringResult, run_scoring
from pollex.runs.usage import ModelUsage
from pollex.runs.workspace import Workspace, open_workspace
from pollex.services.logs import Sources, list_file_names, list_source_names, logs_from
from pollex.services.named_sets import name_rubric_set, read_rubric_set
from pollex.services.score_result import FEWEST_SCORES_FOR_DRIFT, ScoreOutputs, ScoreResult
from pollex.services.scorer import BatchScorer, ScoringPool
from pollex.store.resume import count_unreadable_answers, iterate_scores


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
    # parse; labels are not needed for scores
    task = parse_task(logs, rubrics, cascade, judges, costs, out, form, run)
    read = logs_from(logs, reading.for_scores(), progress)
    tell_of_cut_sources(read, task.rubric_set, progress)

    # plan
    if run.dry_run:
        from pollex.services.dry_run import (  # a model's roles come with it
            DryRunEnded,
            plan_scoring_calls,
        )

        raise DryRunEnded(plan_scoring_calls(read.conversations, task.rubric_set, run, model))

    # run
    with (
        _open_event_sender(events, task.rubric_set) as emit,
        open_workspace(run, progress, read) as opened,
        task.sinks(wide=wide, emit=emit) as sinks,
    ):
        # said before the run begins, as everything that is stored depends on it
        opened.store.texts = not no_texts
        log_score = score_log(opened, read, task, sinks, model, workers=workers, trace=trace)
        if form is not None and out is not None:
            write_scores_as_form(out, form, sinks.each(), task.rubric_set, read, progress)

    # report
    return make_score_result(read, task, sinks, log_score)


@dataclass(frozen=True)
class ScoreTask:
    """What is to be scored by, and where scores go.

    Attributes:
        full: The set whose model is asked about what is in doubt; None without a cascade.
        annotators: Those whose own probabilities are wanted.
        file: Where rows go, which get a page and columns; None for another tool's requests.
        arguments: As the run keeps them.
    """

    rubric_set: RubricSet
    full: RubricSet | None
    annotators: Sequence[str]
    costs: tuple[float, float]
    out: Path | None
    file: Path | None
    arguments: dict[str, Any]

    def sinks(self, *, wide: bool, emit: Callable[[Score], None] | None) -> ScoreOutputs:
        """Return where the scores go."""
        return ScoreOutputs(
            self.rubric_set, self.file, self.annotators, self.full, wide=wide, emit=emit
        )


@dataclass(frozen=True)
class LogScore:
    """How the scoring of a log went.

    Attributes:
        asked: Conversations that a model was asked about because their label was in doubt; None
            without a cascade.
        unread: Answers that could not be read, and why one of them.
    """

    scored: ScoringResult
    usage: ModelUsage | None
    asked: int | None
    unread: tuple[int, str]


def parse_task(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    cascade: Path | RubricSet | None,
    judges: Sequence[str],
    costs: tuple[float, float],
    out: Path | None,
    form: str | None,
    run: RunOptions,
) -> ScoreTask:
    """Read the sets, and refuse what can't be done before any conversation is read.

    Raises:
        BadRubrics: The rubrics were edited after θ was fitted.
        WrongUse: An annotator is not known, or nothing can be written at `out`.
    """
    rubric_set = read_unedited(rubrics, run.store)
    full = None if cascade is None else read_unedited(cascade, run.store)
    # to rebuild the model takes a second
    annotators = list_requested_judges(rubric_set.thumb_model, judges) if judges else ()
    # another tool's requests, or rows in a format that the ending names
    if form is not None and out is not None:
        from pollex.services.hooks import get_score_forms  # other tools alone need it

        get_score_forms().require(form)
        require_writable_output_path(out, *list_file_names(rubrics, logs))
    elif out is not None:
        require_known_ending(out, *list_file_names(rubrics, logs))
        # rows that go into a pipe have no page
        if out.is_file() or not out.exists():
            require_writable_output_path(page_of(out), *list_file_names(rubrics, logs), named=False)

    arguments = {
        "logs": list_source_names(logs),
        "rubrics": list_source_names(rubrics)[0],
        "out": out and str(out),
    }
    file = out if form is None else None
    return ScoreTask(rubric_set, full, annotators, costs, out, file, arguments)


def read_unedited(rubrics: Path | str | RubricSet, store: Path | None = None) -> RubricSet:
    """Return the rubric set, which `store` may have; see `named_sets.read_rubric_set`.

    Raises:
        BadRubrics: It can't be read, or was edited after θ was fitted.
    """
    rubric_set = read_rubric_set(rubrics, store)
    rubric_set.require_unedited(name_rubric_set(rubrics))
    return rubric_set


@contextmanager
def _open_event_sender(
    events: str | None, rubrics: RubricSet
) -> Iterator[Callable[[Score], None] | None]:
    if events is None:
        yield None
    else:
        from pollex.services.telemetry import open_event_exporter  # few want it

        with open_event_exporter(events, rubrics.rubrics_digest) as emit:
            yield emit


def tell_of_cut_sources(logs: Logs, rubric_set: RubricSet, progress: Progress) -> None:
    """Tell which sources a judge on a model is shown in part, as the set settles it."""
    if not rubric_set.judge.built_in:
        from pollex.agents.llm.evidence import describe_cut_sources  # a model's roles come with it

        if note := describe_cut_sources(logs, rubric_set.judge.options.sources):
            progress.note(note)


def score_log(
    opened: Workspace,
    read: Logs,
    task: ScoreTask,
    sinks: ScoreOutputs,
    model: ModelOptions,
    *,
    workers: int | None,
    trace: Literal["batch", "each"],
) -> LogScore:
    """Score a log, and ask a model about what is in doubt where there is a cascade."""
    # with a cascade scores are final only after the model was asked
    first = list[Score]()
    asked = None
    scored, usage = score_in_run(
        opened,
        read,
        task.rubric_set,
        model,
        task.arguments,
        "score",
        sinks.take if task.full is None else first.extend,
        task.annotators,
        task.costs,
        workers=workers,
        trace=trace,
    )
    if task.full is not None:
        better, asked, usage = ask_about_doubtful(opened, read, first, task, task.full, model)
        sinks.take(better)
    # where nothing was paid for, the time of a conversation is worth knowing
    elif task.rubric_set.judge.built_in and len(read) >= FEWEST_SCORES_FOR_DRIFT:
        opened.progress.note(sinks.cost(len(read)))

    # only a model's replies can be unreadable
    unread = (0, "") if usage is None else count_unreadable_answers(opened.store, scored.run)
    return LogScore(scored, usage, asked, unread)


def score_in_run(
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
) -> tuple[ScoringResult, ModelUsage | None]:
    """Score conversations in a run of `command`, by the judge that the set has.

    Where no model is asked, batches are scored at once; a starter's answers are kept beside.

    Args:
        report: Told the scores in batches, in the order of the conversations, for these judges and
            costs.
        workers: Processes that score batches, and `trace` the run's spans; see `score`.
    """
    # whole batches are scored where nobody is asked, and nobody wants to see each conversation
    whole = rubric_set.judge.built_in and rubric_set.starter is None and trace == "batch"

    async def scored() -> tuple[ScoringResult, ModelUsage | None]:
        conversations = logs.conversations
        async with await restore_judge(
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
        else iterate_scores(
            opened.store, scored_run.run, rubric_set, logs.conversations, judges, costs
        )
    ):
        report(batch_scores)

    return scored_run, usage


def ask_about_doubtful(
    opened: Workspace,
    read: Logs,
    first: Sequence[Score],
    task: ScoreTask,
    full: RubricSet,
    model: ModelOptions,
) -> tuple[ScoreColumns, int, ModelUsage | None]:
    """Score the conversations whose label is in doubt with the set that asks a model, too.

    Returns:
        The scores, the model's in place of the first; how many were in doubt; the model's usage.
    """
    # a score that is missing is not in doubt: `confident` is None there
    doubtful = [c for c, score in zip(read, first, strict=True) if score.confident is False]
    logs = Logs(conversations=tuple(doubtful), fingerprint=read.fingerprint)
    second = list[Score]()
    _, usage = score_in_run(
        opened,
        logs,
        full,
        model,
        task.arguments,
        "score",
        second.extend,
        costs=task.costs,
    )
    # where the model gave no score, the first one stays
    better = {score.conversation_id: score for score in second if score.netsat is not None}
    merged = [better.get(score.conversation_id, score) for score in first]
    # the columns of both sets, each rubric once
    ids = tuple(dict.fromkeys(rubric.id for rubric in (*task.rubric_set.rubrics, *full.rubrics)))

    return ScoreColumns.of(merged, ids), len(doubtful), usage


def write_scores_as_form(
    out: Path,
    form: str,
    scores: Iterable[Score],
    rubric_set: RubricSet,
    read: Logs,
    progress: Progress,
) -> None:
    """Write the scores as another tool's requests; say for which conversations there is none."""
    from pollex.services.hooks import get_score_forms  # as in `export`

    forms = get_score_forms()
    for id_, why in forms.write(out, form, scores, rubric_set, read.conversations):
        progress.note(f"Note: nothing is written for {id_:.60}: {why}")


def make_score_result(
    read: Logs, task: ScoreTask, sinks: ScoreOutputs, log_score: LogScore
) -> ScoreResult:
    """Write the page beside a file of rows, and return the result."""
    page = None
    if task.file is not None:
        page = write_score_page(sinks.tally, read, task.file, task.arguments["rubrics"])

    return ScoreResult(
        run=log_score.scored.run,
        rubrics=task.rubric_set,
        out=task.out,
        page=page,
        scores=tuple(sinks.each()) if task.out is None else None,
        drift=sinks.drift(),
        good=sinks.tally.good,
        decided_good=sinks.tally.decided,
        outcomes=dict(log_score.scored.counts),
        n=len(read),
        bad_rows=read.bad_rows,
        usage=log_score.usage,
        asked=log_score.asked,
        unread=log_score.unread,
    )


def page_of(out: Path) -> Path:
    """Return the path of the page of scores; one with another ending if somebody's page is there."""
    usual = out.with_suffix(".html")
    if usual.exists() and read_rubric_file_of_page(usual) != out.name:
        return out.with_name(f"{out.stem}-scores.html")
    return usual


def write_score_page(
    tally: ScoreTally,
    read: Logs,
    out: Path,
    rubrics: str,
) -> Path | None:
    """Write the page of scores beside the file of rows; none beside a stream."""
    if not out.is_file():
        return None

    page = page_of(out)
    write_text(
        page,
        render_scores_page(tally, read.conversations, out.name, Path(rubrics).name),
        named=False,
    )
    return page
