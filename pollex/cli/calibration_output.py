"""What `pollex calibrate report` does: cross-fit, measure, draw."""

from __future__ import annotations

from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from pollex.calibration.storage import JSON_NAME, load
from pollex.cli.output import cell, print_json, table, told
from pollex.cli.progress import Bars
from pollex.formats.answers import AnswerTable
from pollex.formats.files import find_files
from pollex.formats.judgments import JudgmentTable
from pollex.formats.read_tables import read_answers, read_judgments
from pollex.formats.write import draft_of, require_writable
from pollex.measures.distributions import Assessment
from pollex.measures.intervals import FEWEST, Measured
from pollex.reports.calibration import calibration_page
from pollex.reports.calibration_data import CalibrationData
from pollex.services.calibrate import (
    TRAINING,
    TrainingRecord,
    faults_exit_code,
    faults_json,
    say,
    tell_tables,
    training_of,
)

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator  # scikit-learn comes with it, and takes a second to import


def report_command(
    folder: Path, answers: str, judgments: str, *, out: Path, seed: int, quick: bool, as_json: bool
) -> int:
    """Reads the tables, measures the calibrator beside others, writes the page, tells; the exit code."""
    console = Console(stderr=as_json)
    require_writable(out, answers, judgments, folder, folder / JSON_NAME, folder / TRAINING)
    find_files([answers, judgments])
    model = load(folder)
    table = read_answers(answers, scales=model.questionnaire_.asked)
    judged = read_judgments(judgments, table, questionnaire=model.questionnaire_)
    tell_tables(console, table, judged)
    facts = {"pollex": version("pollex"), "calibrator": str(folder), "answers": answers, "judgments": judgments}
    material = replace(_measured_beside_others(model, training_of(folder), table, judged, seed, quick), facts=facts)
    out.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(out) as draft:
        draft.write_text(calibration_page(material), encoding="utf-8", errors="replace")
    tell(console, material)
    say(console, f"Wrote {out}")
    if as_json:
        print_json({"out": str(out), **figures_json(material), **faults_json(material.faults)})
    return faults_exit_code(material.faults)


def _measured_beside_others(
    model: JudgedEstimator, training: TrainingRecord, table: AnswerTable, judged: JudgmentTable, seed: int, quick: bool
) -> CalibrationData:
    """All that the page shows, but for where it is from."""
    from pollex.services.calibration_report import (  # scikit-learn, as above
        QUICK,
        Effort,
        as_fitted,
        bench_of,
        material_of,
    )

    with Bars(Console(stderr=True)) as bars:
        made, groups, unlike = as_fitted(model, training.shift, table, judged)
        bench = bench_of(table, judged, seed, groups, QUICK if quick else Effort(), bars)
        return replace(material_of(model, made, bench, table, judged, training.seen(table)), unlike=unlike)


def tell(console: Console, material: CalibrationData) -> None:
    """The comparison in a table."""
    made = table(f"held out, {material.labels} labels", "log-loss", "RMSE", "Pearson", "smECE")
    for model in material.compared:
        if model.assessment is None:
            made.add_row(cell(model.title), cell(f"not fitted: {model.why_not}"))
            continue
        error: Any = model.assessment.smece
        resampled = error.low is not None or material.own.smece.low is None
        figures = (getattr(model.assessment, name) for name in ("log_loss", "rmse", "pearson"))
        shown = [*map(told, figures), told(error) if resampled or error.value is None else f"{error.value:.3f}"]
        made.add_row(*map(cell, [model.title, *shown]))
    console.print(made)
    if material.texts < FEWEST:
        say(console, f"No interval: fewer than {FEWEST} texts stand behind the figures.")
    say(console, f"{material.title}: {material.support}")


def figures_json(material: CalibrationData) -> dict[str, Any]:
    """For scripts: the calibrator's figures, the others beside it, and the rest of the page."""
    shown = {m.title: {"figures": _figures(m.assessment), "behind": _measured(m.behind)} for m in material.compared[1:]}
    return {
        "model": material.title,
        "main": material.main,
        "texts": material.texts,
        "labels": material.labels,
        "judges": material.judges,
        "calibrated": material.support.enough,
        "missing_labels": material.support.missing,
        "learnt_from": material.learnt_from,
        "choice": None if material.choice is None else material.choice.facts(),
        "figures": _figures(material.own),
        "alpha": _measured(material.agreement),
        "others": shown,
        "subgroups": {
            column: {name: _figures(assessment) for name, assessment in groups.items()}
            for column, groups in material.subgroups.items()
        },
        "gains": {gain.question: _measured(gain.gain) for gain in material.gains},
        "learning": [asdict(point) for point in material.learning],
        "leverage": {each.question: asdict(each) for each in material.leverages},
    }


def _figures(assessment: Assessment | None) -> dict[str, Any] | None:
    if assessment is None:
        return None
    found = {name: value for name, value in vars(assessment).items() if isinstance(value, Measured)}
    return {name: _measured(value) for name, value in found.items()}


def _measured(figure: Measured | None) -> dict[str, Any] | None:
    return None if figure is None else asdict(figure)
