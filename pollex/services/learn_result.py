"""The result of a learning run, with its files."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs
from pollex.formats.write import require_distinct_outputs, require_writable_output_path
from pollex.measures.classification import Assessment
from pollex.outputs import write_text
from pollex.reports.learning import (
    SkippedItem,
    describe_better_plain_method,
    list_caveats_of_report,
    list_shown_ids,
    name_conversations_to_read,
    render_learning_page,
)
from pollex.reports.page import read_rubric_file_of_page
from pollex.rubrics.headlines import has_proven_deed_of_assistant
from pollex.rubrics.learning.results import LabelledScore, Learned
from pollex.rubrics.lint import LintMark
from pollex.rubrics.records import CalibratorRecord, describe_guarantee
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import JUDGED_ANEW_NOTE
from pollex.runs.options import RunOptions
from pollex.runs.usage import ModelUsage, make_usage_json, render_usage_by_stage
from pollex.services.few_thumbs import FewThumbsAdvice
from pollex.services.logs import list_unscorable
from pollex.services.results import (
    METRIC_NAMES,
    TabularResult,
    describe_figures,
    describe_probabilities,
    make_calibrator_json,
    make_figures_json,
)
from pollex.services.sets import (
    ID_CHARACTERS_SHOWN,
    describe_rubrics,
    lint_rubrics,
    make_rubric_line,
)
from pollex.text import (
    JsonDict,
    TerminalLine,
    TerminalLines,
    format_count,
    render_first_lines,
    render_notes,
)

REPORT_FILE_NAME = "report.html"


def require_distinct_paths(out: Path, *read: str) -> None:
    """Refuse output paths that overwrite each other or an input."""
    # the report lies beside the set, and must not be the same file as it or as an input
    require_writable_output_path(out, *read, regular=True)
    report = choose_report_path(out)
    require_distinct_outputs(out, report)
    require_writable_output_path(report, *read, named=False)


def choose_report_path(out: Path) -> Path:
    """Return the report's path; with the set's name if another set's report, or somebody's page, is there."""
    usual = out.with_name(REPORT_FILE_NAME)
    if not usual.exists():
        return usual

    # a report may be written anew where it is of this set, or of one that is gone
    owner = read_rubric_file_of_page(usual)
    is_of_this_set = owner == out.name
    is_left_over = owner is not None and not (out.parent / owner).is_file()
    if is_of_this_set or is_left_over:
        return usual
    return out.with_name(f"{out.stem}-{REPORT_FILE_NAME}")


KEY_FIGURES = ("auc", "accuracy", "confident_accuracy")


@dataclass(frozen=True, kw_only=True, repr=False)
class LearnResult(TabularResult):
    """The result of a learning run.

    Attributes:
        out: File of the rubric set; None if not written.
        report: File of the report; None if not written.
        scores: Scores of the labeled conversations, for plots.
        means: By rubric, its mean answer in each class.
        skipped: Rows read but not learned from, and why.
        conversations: Conversations that the report shows, by id.
        marks: Of rubrics that are hard to judge.
        few: What is told in place of figures where thumbs are too few for any.
    """

    run: str
    rubrics: RubricSet
    out: Path | None
    report: Path | None
    scores: tuple[LabelledScore, ...]
    means: dict[str, tuple[float | None, float | None]]
    skipped: tuple[SkippedItem, ...]
    all_taken: bool
    usage: ModelUsage | None = None
    conversations: Mapping[str, Conversation] = field(default_factory=dict)
    marks: tuple[LintMark, ...] = ()
    few: FewThumbsAdvice | None = None

    def page(self, path: str = "rubrics.json", store: str = ".pollex") -> str:
        """Render the report as HTML; `path` and `store` are for the commands in it."""
        return render_learning_page(
            self.rubrics,
            self.scores,
            self.skipped,
            means=self.means,
            conversations=self.conversations,
            marks=self.marks,
            path=path,
            store=store,
        )

    @property
    def headline(self) -> str:
        return repr(self.rubrics)

    def records(self) -> list[dict[str, object]]:
        return self.rubrics.records()

    @property
    def complete(self) -> bool:
        """Whether every row and conversation was processed."""
        return self.all_taken

    def told(self, verbose: bool = False) -> TerminalLines:
        """Yield rubrics, three figures and the report's path; everything if verbose."""
        rubrics = self.rubrics
        # few thumbs give hints, and no figures
        if self.few is not None:
            yield from self.few.thumbs.told()
            yield from _describe_hints(rubrics)
            yield from self._written()
            yield from self.few.told()
            return

        for caveat in list_caveats_of_report(rubrics):
            yield TerminalLine(caveat, "bold")

        # without a finding, the conversation that is most worth reading
        if not has_proven_deed_of_assistant(rubrics.rubrics) and (
            worst := name_conversations_to_read(self.scores, at_chance=bool(rubrics.at_chance))
        ):
            yield worst
        yield from describe_rubrics(rubrics, verbose)
        if rubrics.tone is not None and rubrics.tone.clear:
            yield rubrics.tone.told
        if behind := describe_better_plain_method(rubrics):
            yield behind

        # rubrics that were adapted without a change are told only if asked for
        adapted = []
        for change in rubrics.adapted:
            if verbose or change.does != "kept":
                adapted.append(str(change))

        sides = {"held out": rubrics.held_out, "training": rubrics.training}
        yield from render_first_lines("rubric was adapted", "rubrics were adapted", adapted)
        # all figures, or the key ones of held-out conversations, where there are any
        if verbose:
            yield from describe_figures(sides)
            # how many the set's own window is sure of: the figures have windows of their own
            netsats = []
            probabilities = []
            for score in self.scores:
                if score.side == "held_out" and score.netsat is not None:
                    netsats.append(score.netsat)
                    probabilities.append(np.nan if score.probability is None else score.probability)

            if rubrics.held_out and netsats:
                certain = rubrics.window.certain(np.array(netsats), np.array(probabilities))
                confident_share = certain.count(True) / len(certain)
                windows = "Held-out yield is of windows fitted without these conversations"
                yield f"{windows}; the set's own has {confident_share:.3f}"

            yield from _describe_details(rubrics)
            yield from render_usage_by_stage(self.usage)
        else:
            side, assessment = next(
                (side, assessment) for side, assessment in sides.items() if assessment is not None
            )
            figures = "; ".join(_describe_figure(assessment, name) for name in KEY_FIGURES)
            if rubrics.held_out:
                on = f"Measured on {rubrics.measured_on}"
            else:
                on = f"{side.capitalize()} (n = {assessment.n})"

            yield f"{on}: {figures}"
            # how a starter does, and what was judged anew, is told at once; other notes are counted
            if rubrics.starter:
                starter = f"Starter {rubrics.starter.source}: "
            else:
                starter = JUDGED_ANEW_NOTE

            for note in rubrics.notes:
                if note.startswith((JUDGED_ANEW_NOTE, starter)):
                    yield note
            if rubrics.notes:
                yield f"{format_count(len(rubrics.notes), 'note')} on how to read them: in the report, or here with -v"
            if self.usage is not None:
                yield self.usage.summary

        yield from self._written()

    def _written(self) -> TerminalLines:
        if self.out is not None:
            names = set(self.rubrics.roles.values())
            # who works alone in one role and with another in the next is named once
            within = {
                name for name in names if any(other.startswith(f"{name} and ") for other in names)
            }
            who = ", ".join(sorted(names - within))
            yield f"Wrote {self.out} and {self.report} ({who}; run {self.run})"

    def as_json(self) -> JsonDict:
        rubrics = self.rubrics
        never_came_up = {}
        for r in rubrics.rubrics:
            if r.never_came_up:
                never_came_up[r.id] = asdict(r.never_came_up)
        return (
            self.of("run", "rubrics=out", "report", "roles=rubrics.roles")
            | {
                "sat": sum(r.polarity == "sat" for r in rubrics.rubrics),
                "dsat": sum(r.polarity == "dsat" for r in rubrics.rubrics),
                "theta": rubrics.theta,
                "window": [rubrics.window.lower, rubrics.window.upper],
                "guaranteed_window": rubrics.guaranteed and asdict(rubrics.guaranteed),
                "policy": rubrics.policy,
                "alpha": rubrics.alpha,
                "training": make_figures_json(rubrics.training),
                "held_out": make_figures_json(rubrics.held_out) or None,
                "probabilities": make_calibrator_json(rubrics),
                "reach": rubrics.reach and rubrics.reach.model_dump(),
                "found_nothing": rubrics.found_nothing and asdict(rubrics.found_nothing),
                "never_came_up": never_came_up,
                "marks": [asdict(mark) for mark in self.marks],
                "notes": list(rubrics.notes),
                "adapted": [change.model_dump() for change in rubrics.adapted],
                "skipped": [{"where": s.where, "reason": s.reason} for s in self.skipped],
            }
            | make_usage_json(self.usage)
        )


def _describe_figure(assessment: Assessment, name: str) -> str:
    """Write a figure with its name, or why it is none."""
    figure = assessment.shown(name)
    if figure.value is None:
        return f"{METRIC_NAMES[name]}: {figure.undefined}"
    return f"{METRIC_NAMES[name]} {figure}"


def _describe_details(rubrics: RubricSet) -> TerminalLines:
    """Yield the window with a guarantee, baselines, probabilities and notes."""
    if rubrics.guaranteed:
        yield f"Window with a guarantee: {describe_guarantee(rubrics.guaranteed)}"

    # only a baseline that was compared on held-out labels says anything
    for baseline in rubrics.baselines:
        if baseline.held_out and baseline.advantage:
            auc = baseline.held_out.auc
            ahead = baseline.advantage
            yield f"Baseline {baseline.name}: held-out AUC {auc}; the rubrics' AUC minus that: {ahead}"

    if record := rubrics.calibrator:
        yield f"Probabilities: {rubrics.support}, by {record.chosen}{describe_lead(record)}"
        # where nothing was held out, both are the same figures, and are told once
        for side, figures in (
            ("held out", record.held_out),
            ("training, cross-fitted", record.training),
        ):
            if figures is not None and (side == "held out" or figures != record.held_out):
                yield f"  {side} (n = {figures.n}): {describe_probabilities(figures)}"

    yield from render_notes(rubrics.notes)


def describe_lead(record: CalibratorRecord) -> str:
    """Describe how far the chosen model's log-loss lies from that of NetSAT's curve; empty without comparison."""
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.candidates import PLAIN_NETSAT_NAME

    losses = {row.name: row.log_loss for row in record.compared}
    if (
        record.chosen == PLAIN_NETSAT_NAME
        or not {PLAIN_NETSAT_NAME, record.chosen} <= losses.keys()
    ):
        return ""

    less = losses[PLAIN_NETSAT_NAME] - losses[record.chosen]
    side = "over" if less < 0 else "under"
    return f"; cross-validated log-loss {abs(less):.3f} {side} that of {PLAIN_NETSAT_NAME}'s curve"


def _describe_hints(rubrics: RubricSet) -> TerminalLines:
    """Yield what is there in a log, of which too few thumbs can tell."""
    yield TerminalLine("What is there, as hints without figures:", "bold")
    for rubric in rubrics.rubrics:
        if rubric.polarity == "sat":
            side = "usually a good sign"
        else:
            side = "usually a bad sign"

        quote = [f"“{' '.join(quote.text.split())}”" for quote in rubric.quotes[:1]]
        yield make_rubric_line(rubric.text, [side, *quote, f"id {rubric.id[:ID_CHARACTERS_SHOWN]}"])


def write_learn_result(
    read: Logs,
    learned: Learned,
    usage: ModelUsage | None,
    out: Path | None,
    run: RunOptions,
    few: FewThumbsAdvice | None = None,
) -> LearnResult:
    """Write the rubric set and its report if asked for, and return the result."""
    # of all conversations only those that the report names go with it
    named = set(list_shown_ids(learned.rubric_set, learned.scores))
    # one conversation without reasons or score makes the result incomplete
    failed = learned.unextracted or any(score.netsat is None for score in learned.scores)
    named_conversations = {}
    for c in read:
        if c.id in named:
            named_conversations[c.id] = c
    result = LearnResult(
        run=learned.run,
        rubrics=learned.rubric_set,
        out=out,
        report=choose_report_path(out) if out else None,
        scores=learned.scores,
        means=learned.means,
        skipped=tuple(list_left_out(read, learned)),
        all_taken=not (failed or read.bad_rows or list_unscorable(read)),
        usage=usage,
        conversations=named_conversations,
        marks=lint_rubrics(learned.rubric_set, run=run).marks,
        few=few,
    )
    if out is not None:
        result.rubrics.save(out)
        write_text(
            choose_report_path(out),
            result.page(str(out), str(run.store)),
            named=False,
        )

    return result


def list_left_out(logs: Logs, learned: Learned) -> list[SkippedItem]:
    """Return everything that was read and not learned from, with its reason."""
    # a list for each reason to be left out; the gravest reason comes first in the end
    rows = []
    for row in logs.bad_rows:
        rows.append(SkippedItem(f"{row.source}:{row.line}", row.reason, row.hint))

    odd = []
    for id_, reason in list_unscorable(logs):
        odd.append(SkippedItem(id_, f"can't be judged: {reason}"))

    tie = "its text has as many thumbs up as down"
    repeats = []
    for a, b in logs.repeated.items():
        repeats.append(
            SkippedItem(
                a,
                tie if a == b else f"has the text of {b}, which counts once",
            )
        )

    unlabelled = []
    for c in logs:
        if c.label is Label.NONE:
            unlabelled.append(SkippedItem(c.id, "no label: kept for scoring"))

    silent = []
    for id_, unanswered in learned.unextracted.items():
        silent.append(
            SkippedItem(
                id_,
                f"no reasons: {unanswered.outcome}: {unanswered.detail}",
            )
        )

    failed = []
    for s in learned.scores:
        if s.netsat is None:
            failed.append(SkippedItem(s.conversation_id, f"unanswered: {s.outcome}"))

    return [*rows, *odd, *silent, *failed, *repeats, *unlabelled]
