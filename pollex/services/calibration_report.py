"""Use case of calibration: report on a calibrator, beside simpler models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pollex.calibration.storage import JSON_NAME, load_each
from pollex.conversations.conversation import Conversation
from pollex.formats.columns import Fault
from pollex.formats.fields import ReadOptions
from pollex.formats.files import find_files
from pollex.formats.read_tables import read_answers, read_judgments
from pollex.formats.write import draft_of, require_writable
from pollex.graphs.context import NullProgress, Progress
from pollex.measures.distributions import Assessment
from pollex.measures.intervals import FEWEST, Figure
from pollex.reports.calibration import CalibrationData, calibration_page
from pollex.services.calibrate import TablesRead, faults_json, groups_of
from pollex.services.logs import logs_from
from pollex.services.results import Result
from pollex.services.training_record import TRAINING, training_of
from pollex.text import Rows, Told

SOURCE = "source"
"""Column of a table of judgments that says where each came from, as the application exports it."""


@dataclass(frozen=True)
class CalibrationReport(Result):
    """A calibrator's held-out figures, those of simpler models, and their page."""

    out: Path
    tables: TablesRead
    data: CalibrationData

    @property
    def faults(self) -> tuple[Fault, ...]:
        return self.data.faults

    def told(self) -> Told:
        """Yield the comparison with simpler models, and where the page is."""
        yield from self.tables.told()
        data = self.data
        rows: list[tuple[str, ...]] = []
        for model in data.compared:
            if (found := model.assessment) is None:
                rows.append((model.title, f"not fitted: {model.why_not}"))
                continue
            resampled = found.smece.low is not None or data.own.smece.low is None or found.smece.value is None
            error = f"{found.smece}" if resampled else f"{found.smece.value:.3f}"
            rows.append((model.title, *(f"{one}" for one in (found.log_loss, found.rmse, found.pearson)), error))
        yield Rows((f"held out, {data.labels} labels", "log-loss", "RMSE", "Pearson", "smECE"), rows)
        if data.texts < FEWEST:
            yield f"No interval: fewer than {FEWEST} texts are behind the figures."
        yield f"{data.title}: {data.support}"
        yield f"Wrote {self.out}"

    def as_json(self) -> dict[str, Any]:
        data = self.data
        others = {
            m.title: {"figures": _figures(m.assessment), "behind": _measured(m.behind)} for m in data.compared[1:]
        }
        return {
            "out": str(self.out),
            "model": data.title,
            "main": data.main,
            "texts": data.texts,
            "labels": data.labels,
            "judges": data.judges,
            "calibrated": data.support.enough,
            "missing_labels": data.support.missing,
            "learned_from": data.learned_from,
            "choice": None if data.choice is None else data.choice.facts(),
            "figures": _figures(data.own),
            "alpha": _measured(data.agreement),
            "others": others,
            "subgroups": {
                column: {name: _figures(assessment) for name, assessment in groups.items()}
                for column, groups in data.subgroups.items()
            },
            "gains": {gain.question: _measured(gain.gain) for gain in data.gains},
            "learning": [asdict(point) for point in data.learning],
            "leverage": {each.question: asdict(each) for each in data.leverages},
            "predicted": [
                {"question": one.question, "column": one.column, "group": one.group, "mean": _measured(one.mean)}
                for one in data.predicted
            ],
            **faults_json(data.faults),
        }


def report_calibrator(
    folder: Path,
    answers: str,
    judgments: str,
    *,
    out: Path,
    seed: int = 0,
    quick: bool = False,
    texts: Sequence[str] = (),
    progress: Progress | None = None,
) -> CalibrationReport:
    """Measure a calibrator beside simpler models and write a page about it.

    Args:
        folder: A calibrator's folder.
        texts: Logs of the texts, for the page to show those that are predicted lowest.
        quick: Draw fewer resamples: rougher intervals, sooner.

    Raises:
        BadCalibrator: There is no calibrator, or it can't be trusted.
        BadInput: A table can't be read, or only one text has a judgment of the main question.
    """
    require_writable(out, answers, judgments, folder, folder / JSON_NAME, folder / TRAINING, *texts)
    read = logs_from(texts, ReadOptions(), progress or NullProgress()).conversations if texts else []
    tables, data = measure_calibrator(
        folder, answers, judgments, seed=seed, quick=quick, logs={one.id: one for one in read}, progress=progress
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(out) as draft:
        draft.write_text(calibration_page(data), encoding="utf-8", errors="replace")
    return CalibrationReport(out, tables, data)


def measure_calibrator(
    folder: Path,
    answers: str,
    judgments: str,
    *,
    seed: int = 0,
    quick: bool = False,
    logs: Mapping[str, Conversation] | None = None,
    progress: Progress | None = None,
) -> tuple[TablesRead, CalibrationData]:
    """Measure a calibrator beside simpler models; see `report_calibrator`."""
    find_files([answers, judgments])
    each, training = load_each(folder), training_of(folder)
    model = next(iter(each.values()))
    table = read_answers(answers, scales=model.questionnaire_.asked)
    judged = read_judgments(judgments, table, questionnaire=model.questionnaire_)
    from pollex.services.calibration_figures import (
        QUICK,
        Effort,
        as_fitted,
        bench_of,
        data_of,
        stage,
    )  # scikit-learn: a second
    from pollex.services.dashboard import predicted_of

    made, groups, unlike = as_fitted(model, training.shift, table, judged)
    bench = bench_of(table, judged, seed, groups, QUICK if quick else Effort(), progress or NullProgress())
    facts = {"pollex": version("pollex"), "calibrator": str(folder), "answers": answers, "judgments": judgments}
    if sources := groups_of(table, judged).get(SOURCE):
        rows = judged.judgments.of_question(judged.questionnaire.index()).row.tolist()
        counted = Counter(sources[row] or "unknown" for row in rows)
        facts["sources"] = ", ".join(f"{name} ({n:,})" for name, n in counted.most_common())
    with stage(bench.progress, "Predicting every question"):
        predicted = predicted_of(each, table.X, table.texts, groups_of(table, judged), logs or {}, bench.rng)
        data = replace(
            data_of(model, made, bench, table, judged, training.seen(table)),
            unlike=unlike,
            facts=facts,
            predicted=tuple(predicted),
        )
    return TablesRead.of(table, judged), data


def _figures(assessment: Assessment | None) -> dict[str, Any] | None:
    if assessment is None:
        return None
    return {name: _measured(value) for name, value in vars(assessment).items() if isinstance(value, Figure)}


def _measured(figure: Figure | None) -> dict[str, Any] | None:
    return None if figure is None else asdict(figure)
