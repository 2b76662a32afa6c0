"""Use case of calibration: report on a calibrator, beside simpler models."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.storage import JSON_NAME, load_each
from pollex.conversations.conversation import Conversation
from pollex.formats.answers import Issue, naturally
from pollex.formats.fields import ReadOptions
from pollex.formats.files import find_files
from pollex.formats.read_tables import read_answers, read_judgments
from pollex.formats.write import draft_of, require_writable
from pollex.graphs.context import NullProgress, Progress
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import Quality
from pollex.measures.intervals import FEWEST, LEVEL, Figure
from pollex.reports.calibration import CalibrationData, PredictedScores, TailText, calibration_page
from pollex.services.calibrate import TablesRead, faults_json, groups_of
from pollex.services.logs import logs_from
from pollex.services.results import Result
from pollex.services.training_record import TRAINING, training_of
from pollex.text import Rows, Told

RESAMPLES = 200
PLACES = 61
"""At which a density is drawn."""
TAIL, LONGEST_TAIL = 0.1, 10
"""Share of the texts that is the lower tail, and the most of them that are listed."""
MOST_GROUPS, MOST_JUDGES = 8, 60


def predicted_of(
    models: Mapping[str, JudgedEstimator],
    X: Floats,
    texts: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    logs: Mapping[str, Conversation],
    rng: np.random.Generator,
) -> Iterator[PredictedScores]:
    """Yield what is predicted of all texts and of each subset, for each question whose answers have an order.

    Args:
        models: By question, each tuned to its own.
        groups: By column, the group of each text.
        logs: Conversations by the id of the text.
    """
    named = np.array(texts, dtype=object)
    for question, model in models.items():
        scale = model.questionnaire_.scale(question)
        if not scale.ordinal or not len(named):
            continue
        judges = model.judges_
        if len(judges) > MOST_JUDGES:
            judges = tuple(rng.choice(np.array(judges, dtype=object), MOST_JUDGES, replace=False))
        each = model.predict_each(X, judges, question)
        mesh = np.linspace(min(scale.values), max(scale.values), PLACES)
        for column, group, rows in _subsets(groups, len(named)):
            yield _predicted(question, column, group, mesh, each[rows], named[rows], logs, rng)


def _subsets(groups: Mapping[str, Sequence[str]], texts: int) -> Iterator[tuple[str, str, Ints]]:
    yield "", "", np.arange(texts)
    for column, labels in groups.items():
        names = sorted({label for label in labels if label}, key=naturally)
        if 1 < len(names) <= MOST_GROUPS:
            yield from ((column, name, np.flatnonzero(np.array(labels, dtype=object) == name)) for name in names)


def _predicted(
    question: str,
    column: str,
    group: str,
    mesh: Floats,
    each: Floats,
    texts: np.ndarray[tuple[int], np.dtype[np.object_]],
    logs: Mapping[str, Conversation],
    rng: np.random.Generator,
) -> PredictedScores:
    scores = each.mean(axis=1)
    kernel = _kernel(mesh, scores)
    count, judges = each.shape
    draws, means = [], []
    for _ in range(RESAMPLES if count >= FEWEST else 0):
        weights = rng.multinomial(count, np.full(count, 1 / count))
        again = each @ (rng.multinomial(judges, np.full(judges, 1 / judges)) / judges)
        draws.append(kernel @ _counts(mesh, again, weights))
        means.append(float(again @ weights) / count)
    tails = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    low, high = np.quantile(draws, tails, axis=0).tolist() if draws else ([], [])
    least, most = np.quantile(means, tails).tolist() if means else (None, None)
    order = np.argsort(scores, kind="stable")[: min(LONGEST_TAIL, max(1, round(TAIL * count)))]
    return PredictedScores(
        question=question,
        column=column,
        group=group,
        mean=Figure(float(scores.mean()), least, most, n=count, units=count),
        mesh=mesh.tolist(),
        density=(kernel @ _counts(mesh, scores, np.ones(count))).tolist(),
        low=low,
        high=high,
        tail=tuple(
            TailText(texts[place], float(scores[place]), getattr(logs.get(texts[place]), "turns", ()))
            for place in order.tolist()
        ),
    )


def _counts(mesh: Floats, scores: Floats, weights: Floats | Ints) -> Floats:
    """Return the share of the texts nearest to each place of the mesh `[place]`."""
    step = mesh[1] - mesh[0]
    nearest = np.clip(np.rint((scores - mesh[0]) / step), 0, len(mesh) - 1).astype(np.int64)
    return np.asarray(np.bincount(nearest, weights, len(mesh)) / weights.sum())


def _kernel(mesh: Floats, scores: Floats) -> Floats:
    """Return a normal kernel between places `[place, place]`, mirrored at the ends: no answer lies beyond them.

    Its width is Silverman's rule of thumb (1986, "Density Estimation", eq. 3.31).
    """
    middle = np.subtract(*np.quantile(scores, [0.75, 0.25])) / 1.34
    spread = min(float(scores.std()), float(middle)) or float(scores.std())
    width = max(0.9 * spread * len(scores) ** -0.2, 1.5 * (mesh[1] - mesh[0]))
    first, last = mesh[0], mesh[-1]
    images = (mesh, 2 * first - mesh, 2 * last - mesh)
    away = [(mesh[:, None] - image[None, :]) / width for image in images]
    return np.asarray(sum(np.exp(-0.5 * one**2) for one in away) / (width * np.sqrt(2 * np.pi)))


SOURCE = "source"
"""Column of a table of judgments that says where each came from, as the application exports it."""


@dataclass(frozen=True)
class CalibrationReport(Result):
    """A calibrator's held-out figures, those of simpler models, and their page."""

    out: Path
    tables: TablesRead
    data: CalibrationData

    @property
    def faults(self) -> tuple[Issue, ...]:
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
        return self.of(
            *("out", "model=data.title", *(f"{name}=data.{name}" for name in ("main", "texts", "labels", "judges"))),
            *(
                "calibrated=data.support.enough",
                "missing_labels=data.support.missing",
                "learned_from=data.learned_from",
            ),
        ) | {
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


def _figures(assessment: Quality | None) -> dict[str, Any] | None:
    if assessment is None:
        return None
    return {name: _measured(value) for name, value in vars(assessment).items() if isinstance(value, Figure)}


def _measured(figure: Figure | None) -> dict[str, Any] | None:
    return None if figure is None else asdict(figure)
