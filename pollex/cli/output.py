"""What verbs print: figures, rubrics, outcomes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pollex.cli.session import Session
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.label_requests import Row
from pollex.formats.read_logs import read_logs
from pollex.gateway.budget import Price, StageUsage, UsageTable
from pollex.measures.classification import Assessment
from pollex.measures.intervals import FEWEST, Figure
from pollex.rubrics.records import CalibratorRecord, ProbabilityFigures
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.roles import Workers
from pollex.text import count, printable


def show_rows(console: Console, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """A table of those columns that the rows have."""
    if not rows:
        return
    shown = [name for name in columns if rows[0].get(name) is not None]
    made = table(*shown)
    for row in rows:
        made.add_row(*(cell(f"{v:.3f}" if isinstance(v := row[name], float) else str(v), 80) for name in shown))
    console.print(made)


FIGURES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "delta_netsat": "ΔNetSAT",
    "yield_rate": "yield at 90 %",
    "confident_accuracy": "accuracy outside the window",
}
LISTED = 10

WITHOUT_INTERVAL = (
    f"No interval: fewer than {FEWEST} conversations, in all or of a class, stand behind the figure; those of one "
    "group or with one text count as one."
)


def told(figure: Figure | None) -> str:
    """A figure with its interval, or why there is none."""
    if figure is None:
        return ""
    if figure.value is None:
        return f"undefined: {figure.undefined}"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}  (n = {figure.n}, no interval)"
    return f"{figure.value:.3f}  [{figure.low:.3f}, {figure.high:.3f}]"


def show_figures(session: Session, sides: Mapping[str, Assessment | None]) -> None:
    """Metrics with 95 % intervals, one column a side."""
    shown = {name: figures for name, figures in sides.items() if figures is not None}
    made = table("", *(f"{name} (n = {f.n}: {f.positives} up, {f.negatives} down)" for name, f in shown.items()))
    for key, name in FIGURES.items():
        made.add_row(name, *(told(getattr(figures, key)) for figures in shown.values()))
    session.console.print(made)
    if any(lacks_interval(getattr(figures, key)) for figures in shown.values() for key in FIGURES):
        session.say(WITHOUT_INTERVAL)


def lacks_interval(figure: Figure) -> bool:
    """Whether there is a figure, but no interval."""
    return figure.value is not None and figure.low is None


def show_probabilities(session: Session, rubrics: RubricSet) -> None:
    """Which model gives probabilities, how true they are, and whether they may be called calibrated."""
    record = rubrics.calibrator
    if record is None:
        return
    session.say(f"Probabilities: {rubrics.support}, by {record.chosen}{ahead(record)}")
    for side, found in (("held out", record.held_out), ("training, cross-fitted", record.training)):
        if found is not None:
            session.say(f"  {side} (n = {found.n}): {probabilities_told(found)}")


def ahead(record: CalibratorRecord) -> str:
    """By how much the chosen model is ahead of NetSAT's curve, in words; nothing where none were compared."""
    from pollex.calibration.thumbs import PLAIN  # scikit-learn comes with it, and takes a second to import

    found = [row for row in record.compared if row.name == PLAIN]
    if not found or record.chosen == PLAIN:
        return ""
    return f"; cross-validated log-loss {found[0].behind:.3f} ± {found[0].error:.3f} under that of {PLAIN}'s curve"


def probabilities_told(found: ProbabilityFigures) -> str:
    """Log-loss and Brier beside those of the class share, with intervals."""
    return (
        f"log-loss {told(found.log_loss)}, Brier {told(found.brier)}; the share of positive ones alone has "
        f"{told(found.share_log_loss)} and {told(found.share_brier)}"
    )


def probabilities_json(rubrics: RubricSet) -> dict[str, Any] | None:
    """The same for scripts; null where there is no calibrator."""
    if (record := rubrics.calibrator) is None:
        return None
    support = rubrics.support
    return {
        "chosen": record.chosen,
        "compared": [row.model_dump() for row in record.compared],
        "labels": record.labels,
        "calibrated": support.enough,
        "labels_missing": support.missing,
        "training": record.training and truth_json(record.training),
        "held_out": record.held_out and truth_json(record.held_out),
    }


def truth_json(found: ProbabilityFigures) -> dict[str, Any]:
    """Values by name with intervals beside them, null where undefined."""
    named: dict[str, Figure | None] = {name: getattr(found, name) for name in TRUTHS}
    measured = {name: figure for name, figure in named.items() if figure is not None}
    return {
        "n": found.n,
        **{name: figure.value for name, figure in measured.items()},
        "intervals": {name: [figure.low, figure.high] for name, figure in measured.items() if figure.low is not None},
        "undefined": {name: figure.undefined for name, figure in measured.items() if figure.undefined},
    }


TRUTHS = ("log_loss", "brier", "smece", "share_log_loss", "share_brier", "gain")


def show_rubrics(session: Session, rubrics: RubricSet) -> None:
    """The rubrics in the order of choice."""
    made = table("id", "kind", "rubric", "reasons", "chosen in resamples")
    for rubric in rubrics.rubrics:
        stability = rubric.choice.stability if rubric.choice else None
        share = "not measured" if stability is None else f"{100 * stability:.0f} %"
        made.add_row(cell(rubric.id), rubric.polarity.upper(), cell(rubric.text), str(len(rubric.reason_ids)), share)
    session.console.print(made)


def show_logs(session: Session, logs: Logs) -> None:
    """What was read, and what was left out, in a few lines."""
    up, down, none = (logs.counts.get(label, 0) for label in (Label.POSITIVE, Label.NEGATIVE, Label.NONE))
    session.say(f"{count(len(logs), 'conversation')}: {up} up, {down} down, {none} without a label")
    if logs.duplicates:
        session.say(f"{count(logs.duplicates, 'identical duplicate counts', 'identical duplicates count')} once")
    if logs.overruled:
        session.say(f"{count(logs.overruled, 'conversation')} gave way to another of the same id")
    for note in logs.notes:
        session.say(f"Note: {note}")
    for flag, ids in logs.flags.items():
        session.say(
            f"Note: {count(len(ids), 'conversation holds', 'conversations hold')} odd text ({flag}): {shortened(ids)}"
        )
    list_some(session, "bad row was left out", "bad rows were left out", [str(row) for row in logs.bad_rows])
    odd = [f"{id_}: {why}" for id_, why in not_scorable(logs)]
    list_some(session, "conversation can't be judged", "conversations can't be judged", odd)


def not_scorable(conversations: Iterable[Conversation]) -> list[tuple[str, str]]:
    """Conversations that no judge can be asked about, and why."""
    return [(c.id, c.not_scorable) for c in conversations if c.not_scorable]


def list_some(session: Session, one: str, more: str, lines: Sequence[str]) -> None:
    """A count, in the words for one or for more, and the first lines."""
    if not lines:
        return
    session.say(f"{count(len(lines), one, more)}:", style="yellow")
    for line in lines[:LISTED]:
        session.say(f"  {line}")
    if len(lines) > LISTED:
        session.say(f"  and {len(lines) - LISTED} more")


def shortened(ids: Sequence[str], most: int = 3) -> str:
    """The first ids of many."""
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")


def show_outcomes(session: Session, counts: Mapping[str, int]) -> None:
    """How many conversations came to what."""
    session.say(", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in counts.items()))


def figures_json(figures: Assessment | None) -> dict[str, Any]:
    """Figures as scripts want them: values by name, intervals beside them, null where undefined."""
    if figures is None:
        return {}
    found: dict[str, Figure] = {name: getattr(figures, name) for name in FIGURES}
    return {
        "n": figures.n,
        "positives": figures.positives,
        "negatives": figures.negatives,
        **{name: figure.value for name, figure in found.items()},
        "intervals": {name: [figure.low, figure.high] for name, figure in found.items() if figure.low is not None},
        "undefined": {name: figure.undefined for name, figure in found.items() if figure.undefined},
    }


def show_usage(session: Session, staff: Workers) -> None:
    """Calls, tokens and cost by stage, where a model worked; `known` are those that the ledger had, or never needed."""
    if staff.gateway is None:
        return
    session.console.print(usage_table(staff.gateway.used, staff.gateway.limits.price))
    if len(models := staff.gateway.used.models) > 1:
        listed = ", ".join(f"{model} {fingerprint} × {n}".strip() for (model, fingerprint), n in models.items())
        session.say(f"Note: several models answered: {listed}", style="yellow")


def usage_table(used: UsageTable, price: Price | None) -> Table:
    """A row a stage, and their sum; costs where there are prices."""
    costs = [] if price is None else ["cost"]
    made = table("stage", "calls", "sent", "known", "tokens in", "tokens out", *costs, "outcomes")
    for name, row in usage_rows(used).items():
        outcomes = ", ".join(f"{count} {kind}" for kind, count in sorted(row.outcomes.items()))
        cost = row.cost(price)
        told_cost = "unknown" if cost is None else f"{cost:.4f}"
        numbers = (row.asked, row.sent, row.known, row.prompt, row.completion)
        made.add_row(name, *map(str, numbers), *([told_cost] if costs else []), outcomes)
    return made


def usage_rows(used: UsageTable) -> dict[str, StageUsage]:
    """The stages and their sum."""
    return used.stages | {"all": used.total}


def usage_json(staff: Workers) -> dict[str, Any]:
    """The same for scripts; nothing where no model worked."""
    if staff.gateway is None:
        return {}
    probe = staff.capabilities.calls if staff.capabilities else 0
    return {"usage": usage_values(staff.gateway.used, staff.gateway.limits.price), "probe_calls": probe}


def usage_values(used: UsageTable, price: Price | None) -> dict[str, Any]:
    """`usage_table` for scripts."""
    return {
        name: {
            "calls": row.asked,
            "sent": row.sent,
            "known": row.known,
            "prompt_tokens": row.prompt,
            "completion_tokens": row.completion,
            "cost": row.cost(price),
            "outcomes": dict(row.outcomes),
        }
        for name, row in usage_rows(used).items()
    }


def table(*columns: str) -> Table:
    """A quiet table."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for column in columns:
        made.add_column(column)
    return made


def cell(text: str, limit: int = 200) -> Text:
    """Foreign text as a cell: no markup, no control characters."""
    return Text(printable(text, limit))


def print_json(values: dict[str, Any]) -> None:
    """One JSON object on the last line of standard output."""
    click.echo(json.dumps(values, ensure_ascii=True, allow_nan=False))


def logs_from(sources: Sequence[str], options: ReadOptions) -> Logs:
    """All conversations of some files. On a terminal a line says that they are being read, and goes again.

    Raises:
        BadInput: See `conversations.logs.read_logs`; so for the next.
        WrongUse: The options contradict each other or the log.
    """
    with Console(stderr=True).status("Reading the log"):
        return read_logs(sources, options=options)
