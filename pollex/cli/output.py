"""Output of the verbs: figures, rubrics, outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pollex.cli.rubric_lines import show_rubrics
from pollex.cli.session import Screen
from pollex.formats.label_requests import Row
from pollex.measures.classification import Assessment
from pollex.measures.intervals import FEWEST, Figure
from pollex.rubrics.alone import ANEW
from pollex.rubrics.guarantee import guarantee_text, in_words
from pollex.rubrics.records import CalibratorRecord, ProbabilityFigures
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.results import FIGURES, Usage
from pollex.text import count, printable

if TYPE_CHECKING:
    from pollex.services.doctor import Health
    from pollex.services.evaluate import Evaluation
    from pollex.services.label import NextConversations
    from pollex.services.label_texts import NextTexts
    from pollex.services.learn_result import LearnResult
    from pollex.services.plan import CallPlan
    from pollex.services.score import ScoreResult
    from pollex.services.score_parts import PartsResult


def show_rows(console: Console, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Show a table of those columns that the rows have."""
    if not rows:
        return
    shown = [name for name in columns if rows[0].get(name) is not None]
    made = table(*shown)
    for row in rows:
        made.add_row(*(cell(f"{v:.3f}" if isinstance(v := row[name], float) else str(v), 80) for name in shown))
    console.print(made)


LISTED = 10

WITHOUT_INTERVAL = (
    f"No interval: fewer than {FEWEST} conversations, in all or in a class, are behind the figure; those of one "
    "group or with one text count as one."
)


def figure_text(figure: Figure | None) -> str:
    """Format a figure with its interval, or the reason why it is undefined."""
    if figure is None:
        return ""
    if figure.value is None:
        return f"undefined: {figure.undefined}"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}  (n = {figure.n}, no interval)"
    return f"{figure.value:.3f}  [{figure.low:.3f}, {figure.high:.3f}]"


def show_figures(session: Screen, sides: Mapping[str, Assessment | None]) -> None:
    """Show metrics with 95 % intervals, one column for each side."""
    shown = {name: figures for name, figures in sides.items() if figures is not None}
    made = table("", *(f"{name} (n = {f.n}: {f.positives} up, {f.negatives} down)" for name, f in shown.items()))
    for key, name in FIGURES.items():
        made.add_row(name, *(figure_text(getattr(figures, key)) for figures in shown.values()))
    session.console.print(made)
    if any(lacks_interval(getattr(figures, key)) for figures in shown.values() for key in FIGURES):
        session.say(WITHOUT_INTERVAL)


def lacks_interval(figure: Figure) -> bool:
    """Return whether a figure has a value, but no interval."""
    return figure.value is not None and figure.low is None


def show_probabilities(session: Screen, rubrics: RubricSet) -> None:
    """Show the probability model, its log-loss, and whether it may be called calibrated."""
    record = rubrics.calibrator
    if record is None:
        return
    session.say(f"Probabilities: {rubrics.support}, by {record.chosen}{ahead(record)}")
    for side, found in (("held out", record.held_out), ("training, cross-fitted", record.training)):
        if found is not None:
            session.say(f"  {side} (n = {found.n}): {probabilities_told(found)}")


def ahead(record: CalibratorRecord) -> str:
    """Describe how far the chosen model is ahead of NetSAT's curve; empty without comparison."""
    from pollex.calibration.candidates import PLAIN  # scikit-learn comes with it, and takes a second to import

    found = [row for row in record.compared if row.name == PLAIN]
    if not found or record.chosen == PLAIN:
        return ""
    return f"; cross-validated log-loss {found[0].behind:.3f} ± {found[0].error:.3f} under that of {PLAIN}'s curve"


def probabilities_told(found: ProbabilityFigures) -> str:
    """Format log-loss and Brier score with intervals, and those of the class share."""
    return (
        f"log-loss {figure_text(found.log_loss)}, Brier {figure_text(found.brier)}; "
        f"the share of positive ones alone has {figure_text(found.share_log_loss)} and {figure_text(found.share_brier)}"
    )


def list_some(session: Screen, one: str, more: str, lines: Sequence[str]) -> None:
    """Show a count with its noun, and the first lines."""
    if not lines:
        return
    session.say(f"{count(len(lines), one, more)}:", style="yellow")
    for line in lines[:LISTED]:
        session.say(f"  {line}")
    if len(lines) > LISTED:
        session.say(f"  and {len(lines) - LISTED} more")


def show_outcomes(session: Screen, counts: Mapping[str, int]) -> None:
    """Show the number of conversations by outcome."""
    session.say(", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in counts.items()))


def show_used(screen: Screen, usage: Usage | None) -> None:
    """Show calls, tokens and cost by stage, where a model worked."""
    if usage is None:
        return
    screen.console.print(usage_table(usage))
    if len(models := usage.table.models) > 1:
        listed = ", ".join(f"{model} {fingerprint} × {n}".strip() for (model, fingerprint), n in models.items())
        screen.say(f"Note: several models answered: {listed}", style="yellow")


def usage_table(usage: Usage) -> Table:
    """Make a table of usage by stage, and the sum; with costs if known."""
    costs = [] if usage.price is None else ["cost"]
    made = table("stage", "calls", "sent", "known", "tokens in", "tokens out", *costs, "outcomes")
    for name, row in usage.rows.items():
        outcomes = ", ".join(f"{count} {kind}" for kind, count in sorted(row.outcomes.items()))
        cost = row.cost(usage.price)
        shown_cost = "unknown" if cost is None else f"{cost:.4f}"
        numbers = (row.asked, row.sent, row.known, row.prompt, row.completion)
        made.add_row(name, *map(str, numbers), *([shown_cost] if costs else []), outcomes)
    return made


def show_plan(screen: Screen, plan: CallPlan) -> None:
    """Show what would be asked, and what to know of the figures."""
    for name, each in plan.models:
        if len(plan.models) > 1:
            screen.say(f"{name}:")
        screen.console.print(usage_table(Usage(each, plan.price)))
    for note in plan.notes:
        screen.say(note)


def table(*columns: str) -> Table:
    """Make a table without borders."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for column in columns:
        made.add_column(column)
    return made


def cell(text: str, limit: int = 200) -> Text:
    """Foreign text as a cell: no markup, no control characters."""
    return Text(printable(text, limit))


def show_scores(screen: Screen, result: ScoreResult) -> None:
    """Show what scoring came to."""
    show_outcomes(screen, result.outcomes)
    show_used(screen, result.usage)
    if result.asked is not None:
        screen.say(f"The model was asked about {result.asked} of {result.n}, whose label was in doubt")
    screen.say(f"Probabilities: {result.support_text}")
    page = f" and {result.page}" if result.page else ""
    screen.say(f"Wrote {result.out}{page} ({result.rubrics.judge.name}; run {result.run})")


def show_parts(screen: Screen, result: PartsResult) -> None:
    """Show what scoring into parts came to."""
    show_outcomes(screen, result.outcomes)
    screen.say(f"Probabilities: {result.rubrics.support}")
    if result.lost:
        screen.say(f"{count(len(result.lost), 'unit')} failed; the same command tries them again", "yellow")
    parts = f"{count(len(result.parts), 'part')}, {result.there} of them from before"
    screen.say(f"Wrote {result.out} ({parts}; {result.rubrics.judge.name})")


def show_evaluation(screen: Screen, found: Evaluation) -> None:
    """Show how well a rubric set does on labeled conversations."""
    show_figures(screen, {f"{found.n} labeled": found.figures})
    show_guarantee(screen, found)
    smooth = f", smECE {figure_text(found.probability.smece)}" if found.probability.smece else ""
    about = f"Probabilities ({found.rubrics.support}; n = {found.probability.n})"
    screen.say(f"{about}: {probabilities_told(found.probability)}{smooth}")
    if found.probability_auc is not None:
        screen.say(f"Probabilities rest on a starter, too; their AUC is {figure_text(found.probability_auc)}")
    show_outcomes(screen, found.outcomes)
    show_used(screen, found.usage)
    screen.say(f"Judge: {found.rubrics.judge.name}; run {found.run}")
    for warning in found.warnings:
        screen.say(f"Note: {warning}", "yellow")


def show_guarantee(screen: Screen, found: Evaluation) -> None:
    """Show yield and precision of the guaranteed window, and what it guarantees."""
    if (record := found.rubrics.guaranteed) is None or (measured := found.guarantee) is None:
        return
    kept = f"yield {counted(measured.yield_rate)}; right outside it {counted(measured.accuracy)}"
    screen.say(f"Window with a guarantee ({guarantee_text(record)}): {kept}")
    for side, label, place, precision in (
        (record.upper, "positive", "over", measured.positive),
        (record.lower, "negative", "at most", measured.negative),
    ):
        if side.threshold is not None:
            screen.say(f"  {label} {place} {side.threshold:.1f}: right {counted(precision)}")


def counted(metric: Figure) -> str:
    """Format a share with its interval and number."""
    said = figure_text(metric)
    return said if metric.value is None else f"{said} of {metric.n}"


KEY_FIGURES = ("auc", "accuracy", "confident_accuracy")


def show_learned(screen: Screen, result: LearnResult) -> None:
    """Show rubrics, three figures and the report's path; everything if verbose."""
    from pollex.reports.learning import caveats  # templates take a tenth of a second, and learning has loaded them

    rubrics = result.rubrics
    for caveat in caveats(rubrics):
        screen.say(caveat, "bold")
    show_rubrics(screen, rubrics)
    sides = {"held out": rubrics.held_out, "training": rubrics.training}
    if screen.verbose:
        show_figures(screen, sides)
        show_learning_details(screen, rubrics)
        show_used(screen, result.usage)
    else:
        side, found = next((side, found) for side, found in sides.items() if found is not None)
        figures = "; ".join(f"{FIGURES[name]} {figure_text(getattr(found, name))}" for name in KEY_FIGURES)
        screen.say(f"{side.capitalize()} (n = {found.n}): {figures}")
        for note in rubrics.notes:
            if note.startswith((ANEW, f"Starter {rubrics.starter.source}: " if rubrics.starter else ANEW)):
                screen.say(note)
        if rubrics.notes:
            screen.say(f"{count(len(rubrics.notes), 'note')} on how to read them: in the report, or here with -v")
    if result.out is not None:
        who = ", ".join(sorted(set(rubrics.roles.values())))
        screen.say(f"Wrote {result.out} and {result.report} ({who}; run {result.run})")


def show_learning_details(screen: Screen, rubrics: RubricSet) -> None:
    """Show the window with a guarantee, baselines, probabilities and notes."""
    if rubrics.guaranteed:
        screen.say(f"Window with a guarantee: {in_words(rubrics.guaranteed)}")
    for baseline in rubrics.baselines:
        if baseline.held_out and baseline.advantage:
            auc, ahead = figure_text(baseline.held_out.auc), figure_text(baseline.advantage)
            screen.say(f"Baseline {baseline.name}: held-out AUC {auc}; the rubrics' AUC minus that: {ahead}")
    show_probabilities(screen, rubrics)
    for note in rubrics.notes:
        screen.say(f"Note: {note}", "yellow")


def show_next_conversations(screen: Screen, found: NextConversations) -> None:
    """Show the conversations to label next."""
    show_rows(screen.console, found.rows, ("id", "probability", "entropy", "judge", "begins"))
    if found.unlabelled:
        of = count(found.unlabelled, "conversation")
        screen.say(f"{len(found.rows)} of {of} without a label, those whose labels help most first")
    else:
        screen.say("Every conversation has a label already.")
    show_outcomes(screen, found.outcomes)
    show_used(screen, found.usage)
    screen.say(f"Probabilities: {found.rubrics.support}")
    if found.out is not None:
        screen.say(f"Wrote {found.out}")


def show_next_texts(screen: Screen, found: NextTexts) -> None:
    """Show the texts to label next, and whom to ask."""
    for fault in found.faults:
        screen.say(f"Note: {fault}", "yellow")
    show_rows(screen.console, found.rows, ("text_id", "judge", "expected", "entropy"))
    screen.say(f"Labels of {found.question!r} to ask for: {len(found.rows)}; {found.model}")
    if found.support:
        screen.say(f"Predictions: {found.support}")
    if found.out is not None:
        screen.say(f"Wrote {found.out}")


def show_health(screen: Screen, health: Health) -> None:
    """Show what was examined, and what to know of the roles."""
    made = table("", "", "found")
    for finding in health.findings:
        found = f"{finding.found} → {finding.remedy}" if finding.remedy else finding.found
        made.add_row("ok" if finding.well else "BAD", finding.what, cell(found))
    screen.console.print(made)
    for note in health.notes:
        screen.say(note)
