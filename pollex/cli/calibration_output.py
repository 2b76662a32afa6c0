"""Lines and tables of `pollex calibrate`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pollex.cli.output import cell, figure_text, table
from pollex.cli.session import Screen
from pollex.formats.columns import Fault
from pollex.measures.intervals import FEWEST
from pollex.services.calibrate import FittedCalibrator, Predicted, TablesRead
from pollex.services.calibration_report import CalibrationReport
from pollex.services.training_record import TRAINING
from pollex.text import count


def show_fitted(screen: Screen, found: FittedCalibrator, next_command: str) -> None:
    """Print the tables read, the model chosen, and the next command."""
    show_tables(screen, found.tables)
    for line in found.choice:
        screen.say(line)
    screen.say(f"{found.model}: {found.support}")
    if len(found.questions) > 1:
        screen.say(f"Predicts {', '.join(found.questions)}, each by a calibrator of its own")
    for name, why in found.refused.items():
        screen.say(f"Note: none for {name!r}: {why}", "yellow")
    screen.say(f"Wrote {found.out}. Measure it next: {next_command}")


def show_predicted(screen: Screen, found: Predicted) -> None:
    """Print warnings, and what was written."""
    show_faults(screen, found.faults)
    if found.unknown_judges:
        names = ", ".join(found.unknown_judges)
        screen.say(f"Note: unknown judges get the shared part: {names}", "yellow")
    if optimistic := optimism(found.learned_from):
        screen.say(f"Note: {optimistic}", "yellow")
    asked = f", {count(len(found.questions), 'question')}" if len(found.questions) > 1 else ""
    supported = "" if found.support is None else f"; {found.support}"
    screen.say(f"Wrote {found.out}: {count(found.texts, 'text')}{asked}, {found.model}{supported}")


def optimism(learned_from: int | None) -> str:
    """Warn of predictions for texts that the calibrator may have been fitted on."""
    if learned_from is None:
        return (
            f"there is no {TRAINING} of this calibrator, so it isn't known which texts it was fitted on: "
            "predictions of those look better than they are"
        )
    if not learned_from:
        return ""
    return f"the calibrator was fitted on {learned_from} of these texts: predictions of those look better than they are"


def show_report(screen: Screen, found: CalibrationReport) -> None:
    """Print the comparison with simpler models, and where the page is."""
    show_tables(screen, found.tables)
    data = found.data
    made = table(f"held out, {data.labels} labels", "log-loss", "RMSE", "Pearson", "smECE")
    for model in data.compared:
        if model.assessment is None:
            made.add_row(cell(model.title), cell(f"not fitted: {model.why_not}"))
            continue
        error: Any = model.assessment.smece
        resampled = error.low is not None or data.own.smece.low is None
        figures = (getattr(model.assessment, name) for name in ("log_loss", "rmse", "pearson"))
        shown = [
            *map(figure_text, figures),
            figure_text(error) if resampled or error.value is None else f"{error.value:.3f}",
        ]
        made.add_row(*map(cell, [model.title, *shown]))
    screen.console.print(made)
    if data.texts < FEWEST:
        screen.say(f"No interval: fewer than {FEWEST} texts are behind the figures.")
    screen.say(f"{data.title}: {data.support}")
    screen.say(f"Wrote {found.out}")


def show_tables(screen: Screen, read: TablesRead) -> None:
    """Print what was read, and what was left out."""
    unnamed = f"; {count(read.unnamed, 'judgment names', 'judgments name')} none" if read.unnamed else ""
    screen.say(
        f"{count(read.texts, 'text')} with answers to {count(read.questions, 'question')}; "
        f"{count(read.judgments, 'judgment')}, "
        f"{read.judged_main} of them of the main question {read.main!r}; {count(read.judges, 'judge')}{unnamed}",
    )
    show_faults(screen, read.faults)


def show_faults(screen: Screen, faults: Iterable[Fault]) -> None:
    """Print what was left out, in yellow, and what is worth knowing."""
    for fault in faults:
        screen.say(f"{'Left out' if fault.left_out else 'Note'}: {fault}", "yellow" if fault.left_out else None)
