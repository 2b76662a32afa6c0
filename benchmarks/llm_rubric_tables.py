"""What was computed, as tables and as a checklist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from averages import averaged
from llm_rubric_methods import (
    BASELINE,
    BEGUN,
    CHOSEN,
    CHOSEN_SHIFT,
    CURVE,
    CV,
    NETWORK,
    ORACLE,
    ORDINAL,
    REAL,
    SYSTEMS,
    Method,
    Published,
    ablations,
    bounds,
    everything,
    predictors,
)
from llm_rubric_runs import Done
from permutation import Tested, compared_losses
from small_form import table

from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import (
    PredictionQuality,
    Predictions,
    assess_predictions,
    compute_answer_log_losses,
)
from pollex.measures.intervals import Figure, Measure, estimate_figures_on_same_resamples
from pollex.measures.intervals import make_weighted_mean_statistic as mean_over

WITH_INTERVAL = ("rmse", "pearson", "log_loss")
SHOWN = ("rmse", "pearson", "spearman", "kendall", "log_loss", "smece")
RESAMPLES = 1000
SIGNIFICANT = 0.05
NOTHING = "–"


@dataclass(frozen=True, eq=False)
class Row:
    """All runs of one method in one place.

    Attributes:
        each: One assessment a run.
        interval: Of the mean over runs, for some measures.
    """

    runs: tuple[Predictions, ...]
    each: tuple[PredictionQuality, ...]
    interval: Mapping[str, Figure]
    seconds: float
    notes: tuple[str, ...]

    @classmethod
    def of(cls, done: Sequence[Done], seed: int = 0) -> Row:
        """From what was computed; runs in the order of their seeds."""
        ordered = sorted(done, key=lambda one: (one.task.seed, one.task.split))
        runs = tuple(one.predictions for one in ordered if one.predictions is not None)
        return cls(
            runs,
            tuple(assess_predictions(run) for run in runs),
            averaged(runs, WITH_INTERVAL, np.random.default_rng(seed), RESAMPLES),
            sum(one.seconds for one in ordered),
            tuple(one.note for one in ordered),
        )

    def mean(self, measure: str) -> float | None:
        """Over the runs; None when undefined in one."""
        return mean_of([getattr(one, measure).value for one in self.each])

    def deviation(self, measure: str) -> float | None:
        """Over the runs; None with fewer than two."""
        values = [getattr(one, measure).value for one in self.each]
        return float(np.std(values, ddof=1)) if len(values) > 1 and None not in values else None

    def smece_of(self, value: float) -> float | None:
        """Mean over the runs of one answer's error."""
        return mean_of([one.smece_of[value].value for one in self.each])

    def squared_errors(self) -> Floats:
        """Of each judgment, mean over the runs."""
        return np.asarray(np.mean([(run.expected - run.given) ** 2 for run in self.runs], axis=0))

    def against(self, other: Row | None) -> Tested | None:
        """Whether its squared errors differ from another row's; None without one, or with itself."""
        if other is None or other is self:
            return None
        return compared(self.squared_errors(), other.squared_errors(), self.runs[0].text)


Rows = Mapping[tuple[str, str], Row]
"""By key of the method and place."""


def rows_of(done: Iterable[Done]) -> dict[tuple[str, str], Row]:
    """Everything that is measured as a whole."""
    by: dict[tuple[str, str], list[Done]] = {}
    for one in done:
        if one.task.where in (CV, SYSTEMS, REAL):
            by.setdefault((one.task.key, one.task.where), []).append(one)
    return {key: Row.of(those) for key, those in by.items()}


def mean_of(values: Sequence[float | None]) -> float | None:
    """None when one is, or there is none."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def compared(losses: Floats, others: Floats, text: Ints) -> Tested:
    """Whether two methods' losses of the same judgments differ by more than chance."""
    return compared_losses(losses, others, text, np.random.default_rng(0), draws=5000)


ON_PAGES = (
    BASELINE, "ridge", "authors", NETWORK, BEGUN, ORDINAL, CHOSEN, CHOSEN_SHIFT, ORACLE,
)  # fmt: skip
"""Rows of the short tables."""


def short_table(rows: Rows, where: str) -> str:
    """The rows that a page shows, as Markdown."""
    head = ("", "RMSE", "Pearson", "log-loss", "smECE", "paper's Pearson", "runs")
    lines = []
    for key in ON_PAGES:
        if (row := rows.get((key, where))) is None:
            continue
        method = everything()[key]
        paper = {CV: method.synthetic, REAL: method.real}[where]
        figures = [_interval(row.interval[name], row.deviation(name)) for name in WITH_INTERVAL]
        published = NOTHING if paper is None else f"{paper[1]:.3f}"
        lines.append([method.title, *figures, _n(row.mean("smece")), published, str(len(row.runs))])
    return table(head, lines)


WITHIN = 0.01
"""By how much the network's RMSE may lie above that of the ordinal model."""


def bars(rows: Rows) -> dict[str, bool]:
    """The network of `calibrate fit` beside the ordinal model, where both were measured."""
    held = {}
    for where, title in ((CV, "synthetic"), (REAL, "real")):
        network = rows.get((BEGUN, where))
        ordinal = rows.get((ORDINAL, where))
        if network and ordinal:
            behind = (network.mean("rmse") or 0.0) - (ordinal.mean("rmse") or 0.0)
            bar = f"{title} (n = {len(network.runs[0].text)}), RMSE above the ordinal model's ≤ {WITHIN}"
            held[bar] = behind <= WITHIN
    return held


def first_table(rows: Rows, where: str) -> str:
    """Predictors of Q0 beside what the paper publishes."""
    chosen = CHOSEN if where == CV else CHOSEN_SHIFT
    return _table(predictors(), rows, where, chosen)


def bounds_table(rows: Rows, where: str) -> str:
    """Upper bounds."""
    return _table(bounds(), rows, where, ORACLE)


def systems_table(rows: Rows) -> str:
    """What leaving a synthetic system out says: by this the choice for other systems is made."""
    return _table(predictors(), rows, SYSTEMS, None)


def each_system_table(rows: Rows, systems: Sequence[str]) -> str:
    """The log-losses of that, by the system that was left out.

    Args:
        systems: Of each synthetic sheet.
    """
    of = np.array(systems)
    names = sorted(set(systems))
    lines = [_line("", [f"{name}, n {(of == name).sum()}" for name in names], (12,) * len(names))]
    for key, method in predictors().items():
        if (row := rows.get((key, SYSTEMS))) is not None:
            means = [float(_losses(row.runs)[of == name].mean()) for name in names]
            cells = [_n(mean if np.isfinite(mean) else None) for mean in means]
            lines.append(_line(method.title, cells, (12,) * len(names)))
    return "\n".join(lines)


def ablation_table(rows: Rows, of: str, where: str) -> str:
    """What leaving a part out does to one model: log-loss less that of the whole, on the same judgments."""
    whole = rows.get((of, where))
    if whole is None:
        return ""
    lines = [
        _line(
            "", ("log-loss", "Pearson", "Δ log-loss, 95 % interval", "p", "runs"), ABLATION_WIDTHS
        )
    ]
    cells = (
        _over_runs(whole, "log_loss"),
        _over_runs(whole, "pearson"),
        "",
        "",
        str(len(whole.runs)),
    )
    lines.append(_line("all of it", cells, ABLATION_WIDTHS))
    for key, method in ablations(of).items():
        if (row := rows.get((key, where))) is None:
            continue
        losses = [_losses(those.runs[: len(row.runs)]) for those in (row, whole)]
        cells = (
            _over_runs(row, "log_loss"), _over_runs(row, "pearson"),
            _interval(_gap(losses[0] - losses[1], row.runs[0].text), signed=True),
            _p(compared(losses[0], losses[1], row.runs[0].text)), str(len(row.runs)),
        )  # fmt: skip
        lines.append(_line(method.title, cells, ABLATION_WIDTHS))
    return "\n".join(lines)


def _over_runs(row: Row, measure: str) -> str:
    return _spread([getattr(one, measure).value for one in row.each])


def _losses(runs: Sequence[Predictions]) -> Floats:
    """−log p of each judgment, mean over the runs."""
    return np.asarray(
        np.mean([compute_answer_log_losses(run.proba, run.answer) for run in runs], axis=0)
    )


def _gap(losses: Floats, text: Ints) -> Figure:
    """Mean of differences, with its interval."""
    figure = Measure(mean_over(losses), "" if np.isfinite(losses).all() else "a loss is infinite")
    return estimate_figures_on_same_resamples(
        {"gap": figure}, text, np.random.default_rng(0), RESAMPLES
    )["gap"]


def calibration_table(rows: Rows, where: str) -> str:
    """smECE by answer beside the log-loss: a constant has no error and says nothing."""
    lines = [_line("", ("y = 1", "2", "3", "4", "mean", "log-loss", "Brier", "kappa"), (9,) * 8)]
    for key, method in everything().items():
        if (row := rows.get((key, where))) is not None and key not in {
            *ablations(NETWORK),
            *ablations(ORDINAL),
        }:
            cells = [_n(row.smece_of(value)) for value in row.runs[0].values]
            cells += [_n(row.mean(name)) for name in ("smece", "log_loss", "brier", "kappa")]
            lines.append(_line(method.title, cells, (9,) * 8))
    return "\n".join(lines)


def curve_table(done: Iterable[Done]) -> str:
    """Cross-validation with a part of the training dialogues, mean ± deviation over draws and splits."""
    widths = (8, 8, 16, 16, 16)
    lines = [_line("", ("share", "labels", "Pearson", "RMSE", "log-loss"), widths)]
    points = [point for one in done if one.task.where == CURVE for point in one.curve]
    title = next((everything()[one.task.key].title for one in done if one.task.where == CURVE), "")
    for share in sorted({point.share for point in points}):
        same = [point for point in points if point.share == share]
        each = [repeat for point in same for repeat in point.repeats]
        cells = [f"{share:.0%}", f"{np.mean([point.labels for point in same]):.0f}"]
        cells += [
            _spread([getattr(one, name).value for one in each])
            for name in ("pearson", "rmse", "log_loss")
        ]
        lines.append(_line(title, cells, widths))
    return "\n".join(lines)


WIDTHS = (29, 29, 9, 9, 29, 8, 9, 10, 28)
ABLATION_WIDTHS = (16, 16, 28, 8, 6)


def _table(methods: Mapping[str, Method], rows: Rows, where: str, chosen: str | None) -> str:
    names = (
        "RMSE", "Pearson", "Spearm.", "Kendall", "log-loss", "smECE", "p ≠ LLM", "p ≠ best", "paper: RMSE P S K",
    )  # fmt: skip
    lines = [_line("", names, WIDTHS)]
    baseline = rows.get((BASELINE, where))
    best = rows.get((chosen or "", where))
    for key, method in methods.items():
        if (row := rows.get((key, where))) is None:
            continue
        interval = {
            name: _interval(row.interval[name], row.deviation(name)) for name in WITH_INTERVAL
        }
        cells = (
            interval["rmse"], interval["pearson"], _n(row.mean("spearman")), _n(row.mean("kendall")),
            interval["log_loss"], _n(row.mean("smece")), _p(row.against(baseline)), _p(row.against(best)),
            _published({CV: method.synthetic, REAL: method.real}.get(where)),
        )  # fmt: skip
        lines.append(_line(method.title, cells, WIDTHS))
    return "\n".join(lines)


def _line(title: str, cells: Iterable[str], widths: Sequence[int]) -> str:
    return (
        f"{title:<34}"
        + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    ).rstrip()


def _n(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _interval(figure: Figure, deviation: float | None = None, signed: bool = False) -> str:
    if figure.value is None:
        return NOTHING
    sign = "+" if signed else ""
    over_runs = "" if deviation is None else f" ± {deviation:.3f}"
    ends = "" if figure.low is None else f" [{figure.low:{sign}.3f} {figure.high:{sign}.3f}]"
    return f"{figure.value:{sign}.3f}{over_runs}{ends}"


def _spread(values: Sequence[float | None]) -> str:
    mean = mean_of(values)
    if mean is None or len(values) < 2:
        return _n(mean)
    return f"{mean:.3f} ± {np.std([v for v in values if v is not None], ddof=1):.3f}"


def _p(test: Tested | None) -> str:
    if test is None or test.p is None:
        return NOTHING
    return f"{test.p:.3f}{'*' if test.p < SIGNIFICANT else ' '}"


def _published(figures: Published | None) -> str:
    return "" if figures is None else " ".join(f"{figure:.3f}" for figure in figures)
