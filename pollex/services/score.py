"""Score conversations with a rubric set, or measure the set on labeled ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import BadRow, Logs, positives
from pollex.conversations.splits import block_ids
from pollex.errors import BadLabels
from pollex.formats.fields import ReadOptions
from pollex.formats.scores import rows as score_rows
from pollex.formats.scores import write_scores
from pollex.formats.write import draft_of, require_format, require_writable
from pollex.graphs.context import Progress
from pollex.graphs.score.run import Scored, scores_of
from pollex.graphs.score.run import score as run_graph
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import Assessment, WindowAssessment, assess, assess_window, auc_of_scores
from pollex.measures.intervals import Figure
from pollex.reports.page import file_of
from pollex.reports.scores import Tally, scores_page
from pollex.rubrics.figures import probability_figures
from pollex.rubrics.netsat import Score
from pollex.rubrics.records import ProbabilityFigures
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.thumb_model import judges_wanted
from pollex.selection.threshold import Window
from pollex.services.exchange import require_form, write_requests
from pollex.services.logs import Sources, files_of, logs_from, names_of
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.plan import CallPlan, plan_scoring
from pollex.services.results import (
    FIGURES,
    Usage,
    bad_rows_json,
    figures_json,
    probability_json,
    support_json,
    usage_json,
)
from pollex.services.roles import judging
from pollex.services.workspace import Workspace, workspace
from pollex.store.runs import Status
from pollex.text import html_table

if TYPE_CHECKING:
    from pandas import DataFrame

SEEN = {"learned_from": "the rubrics were learned from", "fitted_to": "θ was fitted to"}
"""How a conversation may have been used before, in words."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ScoreResult:
    """The result of scoring.

    Attributes:
        scores: In the conversations' order; None if they were written to `out`.
        outcomes: Number of conversations by outcome.
        asked: Conversations that a model was asked about because their label was in doubt; None without a cascade.
    """

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

    @property
    def complete(self) -> bool:
        """Whether every row and conversation was scored."""
        return not self.bad_rows and not self.outcomes.keys() - {"scored"}

    def __repr__(self) -> str:
        """Return the outcomes in a line."""
        return f"<Scores: {', '.join(f'{number} {outcome}' for outcome, number in self.outcomes.items())}>"

    def to_frame(self) -> DataFrame:
        """Return a pandas table with a row for each conversation; empty without scores."""
        from pandas import DataFrame  # it takes half a second to import

        return DataFrame(list(score_rows(self.scores or (), self.rubrics)))

    def _repr_html_(self) -> str:
        columns = ("id", "decision", "probability", "netsat", "label", "confident", "outcome")
        rows = [[row[name] for name in columns] for row in score_rows((self.scores or ())[:10], self.rubrics)]
        return html_table(repr(self), columns, rows)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        about = {"run": self.run, "out": self.out and str(self.out), "judge": self.rubrics.judge.name}
        read = {"outcomes": self.outcomes, "n": self.n, "bad_rows": bad_rows_json(self.bad_rows)}
        read |= {} if self.asked is None else {"asked": self.asked}
        return about | read | support_json(self.rubrics) | usage_json(self.usage)


@dataclass(frozen=True, kw_only=True, repr=False)
class Evaluation:
    """Figures of a rubric set on labeled conversations.

    Attributes:
        probability: Figures of the probabilities.
        guarantee: Figures of the window with a guarantee; None if the set has none.
        seen: Number of conversations that the set was made from, by use; see `SEEN`.
    """

    run: str
    rubrics: RubricSet
    n: int
    figures: Assessment
    probability: ProbabilityFigures
    guarantee: WindowAssessment | None
    seen: dict[str, int]
    outcomes: dict[str, int]
    bad_rows: tuple[BadRow, ...] = ()
    usage: Usage | None = None
    probability_auc: Figure | None = None

    @property
    def complete(self) -> bool:
        """Whether every row and conversation was scored."""
        return not self.bad_rows and not self.outcomes.keys() - {"scored"}

    @property
    def warnings(self) -> list[str]:
        """Reasons why the figures are too optimistic, if they are."""
        used = [(SEEN[how], number) for how, number in self.seen.items() if number]
        return [f"{how} {number} of these conversations: figures are too good." for how, number in used]

    def __repr__(self) -> str:
        """Return the AUC in a line."""
        auc = self.figures.auc
        value = f"undefined: {auc.undefined}" if auc.value is None else f"{auc.value:.3f}"
        return f"<Evaluation: AUC {value} (n = {self.n})>"

    def to_frame(self) -> DataFrame:
        """Return a pandas table of a row a metric, with its 95 % interval."""
        from pandas import DataFrame  # it takes half a second to import

        named = {name: getattr(self.figures, name) for name in FIGURES}
        return DataFrame(
            [{"metric": name, "value": f.value, "low": f.low, "high": f.high} for name, f in named.items()]
        )

    def _repr_html_(self) -> str:
        named = {title: getattr(self.figures, name) for name, title in FIGURES.items()}
        rows = [(title, f.value, f.low, f.high) for title, f in named.items()]
        return html_table(repr(self), ("metric", "value", "low", "high"), rows)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        window = self.rubrics.window
        limits = {"theta": self.rubrics.theta, "window": [window.lower, window.upper]}
        limits |= {"guaranteed_window": self._guarantee_json()}
        about = {"run": self.run, "judge": self.rubrics.judge.name, "outcomes": self.outcomes} | self.seen
        probability = {"probability": probability_json(self.probability)} | support_json(self.rubrics)
        if self.probability_auc is not None:
            probability["probability_auc"] = asdict(self.probability_auc)
        return figures_json(self.figures) | probability | limits | about | usage_json(self.usage)

    def _guarantee_json(self) -> dict[str, Any] | None:
        if (record := self.rubrics.guaranteed) is None or self.guarantee is None:
            return None
        sides = {"lower": record.lower.threshold, "upper": record.upper.threshold}
        promised = {"precision": record.precision, "delta": record.delta, "fitted_on": record.n}
        return sides | promised | asdict(self.guarantee)


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
    read = logs_from(logs, reading, progress)
    with workspace(run, progress) as opened:
        arguments = {"logs": names_of(logs), "rubrics": names_of(rubrics)[0], "out": out and str(out)}
        scored, usage = opened.run(_score(opened, read, rubric_set, model, arguments, "score"))
        scores = scores_of(opened.store, scored.run, rubric_set, read.conversations, asked, costs)
        doubtful: list[Conversation] = []
        if full is not None:
            first = list(scores)
            doubtful = [c for c, one in zip(read, first, strict=True) if one.confident is False]
            kept = Logs(conversations=tuple(doubtful), fingerprint=read.fingerprint)
            again, usage = opened.run(_score(opened, kept, full, model, arguments, "score"))
            scores = merged(first, scores_of(opened.store, again.run, full, doubtful, costs=costs))
        if form is not None and out is not None:
            written = write_requests(out, form, scores, rubric_set, read.conversations)
            for id_, why in written.left_out:
                progress.note(f"Note: nothing is written for {id_:.60}: {why}")
        elif out is not None:
            tally = Tally(rubric_set)
            write_scores(out, tally.watch(opened.over("write", scores, len(read))), rubric_set, asked, full, wide=wide)
            page = write_page(tally, read, out, names_of(rubrics)[0])
        return ScoreResult(
            run=scored.run,
            rubrics=rubric_set,
            out=out,
            page=page,
            scores=tuple(scores) if out is None else None,
            outcomes=dict(scored.counts),
            n=len(read),
            bad_rows=read.bad_rows,
            usage=usage,
            asked=None if full is None else len(doubtful),
        )


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


def plan_score(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    labelled: bool = False,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> CallPlan:
    """Plan what `score`, or with `labelled` `evaluate`, would ask."""
    rubric_set = unedited(rubrics)
    read = logs_from(logs, reading, progress)
    conversations = labelled_in(read, logs) if labelled else read.conversations
    return plan_scoring(conversations, rubric_set, run, model)


def evaluate(
    logs: Sources | Logs,
    rubrics: Path | RubricSet,
    *,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> Evaluation:
    """Measure a rubric set on labeled conversations.

    Raises:
        BadLabels: No conversation has a label.
        BadRubrics: The rubrics were edited after θ was fitted.
    """
    rubric_set = unedited(rubrics)
    read = logs_from(logs, reading, progress)
    labelled = labelled_in(read, logs)
    with workspace(run, progress) as opened:
        arguments = {"logs": names_of(logs), "rubrics": names_of(rubrics)[0]}
        kept = Logs(conversations=tuple(labelled), fingerprint=read.fingerprint)
        scored, usage = opened.run(_score(opened, kept, rubric_set, model, arguments, "evaluate"))
        scores = list(scores_of(opened.store, scored.run, rubric_set, labelled))
        measured, counts = measure(rubric_set, labelled, scores), dict(scored.counts)
        found = {"outcomes": counts, "auc": measured.auc.value}
        status: Status = "partial" if counts.keys() - {"scored"} else "done"
        opened.store.finish(scored.run, status, roles=[rubric_set.judge.name], result=found)
    return Evaluation(
        run=scored.run,
        rubrics=rubric_set,
        n=len(labelled),
        figures=measured,
        probability=likelihoods(rubric_set, labelled, scores),
        guarantee=check_guarantee(rubric_set, labelled, scores),
        probability_auc=area_of_probability(labelled, scores) if rubric_set.starter else None,
        seen=seen_before(rubric_set, labelled),
        outcomes=counts,
        bad_rows=read.bad_rows,
        usage=usage,
    )


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


def labelled_in(read: Logs, given: object) -> list[Conversation]:
    """Return the conversations with a label.

    Raises:
        BadLabels: None has one.
    """
    if labelled := [c for c in read if c.label is not Label.NONE]:
        return labelled
    where = ", ".join(names_of(given))
    raise BadLabels("no conversation has a label", where=where, remedy="name its field", option="label_field")


def seen_before(rubric_set: RubricSet, labelled: Sequence[Conversation]) -> dict[str, int]:
    """Count the conversations that the set was made from, by use; see `SEEN`."""
    known = {"learned_from": rubric_set.learned_from, "fitted_to": rubric_set.only_fitted_to}
    return {how: sum(c.text_hash[:16] in hashes for c in labelled) for how, hashes in known.items()}


def measure(rubric_set: RubricSet, labelled: Sequence[Conversation], scores: Iterable[Score]) -> Assessment:
    """Measure the conversations that have a score."""
    netsat, positive, blocks = scored_and_labelled(labelled, scores)
    window = Window(**rubric_set.window.model_dump())
    confident, rng = window.confident(netsat), np.random.default_rng(0)
    return assess(netsat, positive, rubric_set.theta, confident, rng, together=blocks)


def area_of_probability(labelled: Sequence[Conversation], scores: Iterable[Score]) -> Figure:
    """Measure the AUC of the probability."""
    pairs = [(s.probability, c) for s, c in zip(scores, labelled, strict=True) if s.probability is not None]
    scored = [c for _, c in pairs]
    probability, rng = np.array([p for p, _ in pairs], float), np.random.default_rng(0)
    return auc_of_scores(probability, positives(scored), rng, together=block_ids(scored))


def check_guarantee(
    rubric_set: RubricSet, labelled: Sequence[Conversation], scores: Iterable[Score]
) -> WindowAssessment | None:
    """Measure the window with a guarantee; None where the set has no such window."""
    if rubric_set.guaranteed is None:
        return None
    netsat, positive, blocks = scored_and_labelled(labelled, scores)
    window = rubric_set.guaranteed.window
    return assess_window(window.over(netsat), window.under(netsat), positive, blocks)


def scored_and_labelled(labelled: Sequence[Conversation], scores: Iterable[Score]) -> tuple[Floats, Bools, Ints]:
    """Return NetSAT, label and block of the conversations that have a score, each `[conversation]`."""
    pairs = [(s.netsat, c) for s, c in zip(scores, labelled, strict=True) if s.netsat is not None]
    scored = [c for _, c in pairs]
    return np.array([netsat for netsat, _ in pairs], float), positives(scored), block_ids(scored)


def likelihoods(rubric_set: RubricSet, labelled: Sequence[Conversation], scores: Iterable[Score]) -> ProbabilityFigures:
    """Measure how true the probabilities are of the conversations that have one."""
    pairs = [(s.probability, c) for s, c in zip(scores, labelled, strict=True) if s.probability is not None]
    probability, scored = np.array([p for p, _ in pairs], float), [c for _, c in pairs]
    share, rng = rubric_set.training.positives / rubric_set.training.n, np.random.default_rng(0)
    return probability_figures(probability, positives(scored), share, rng, block_ids(scored), smooth=True)


async def _score(
    opened: Workspace,
    logs: Logs,
    rubric_set: RubricSet,
    model: ModelOptions,
    arguments: dict[str, Any],
    command: Literal["score", "evaluate"],
) -> tuple[Scored, Usage | None]:
    async with judging(model, rubric_set, opened.store) as staff:
        opened.announce(staff)
        scored = await run_graph(
            logs.conversations,
            rubric_set,
            judge=staff.roles.judge,
            data_fingerprint=logs.fingerprint,
            setting=opened.setting(arguments, staff),
            command=command,
        )
        return scored, Usage.of(staff)
