"""Figures of predicted distributions against people's answers, with 95 % intervals, and reliability diagrams.

    errors         of the expected answer (RMSE), of the distribution (log-loss, Brier, smECE)
    correlations   of the expected answer with the given one (Pearson, Spearman, Kendall's tau-b),
    quadratic kappa

A figure that needs an order is undefined for a question whose answers have none. Distributions of
grades, and distances between two judges' grades of the same texts, are here, too.

Source of smECE: Błasiok and Nakkiran 2024, "Smooth ECE: Principled Reliability Diagrams via Kernel
Smoothing", arXiv:2309.12236. A question with several answers is looked at one answer against the
rest.

How often an answer was given at a probability, in a bin or smoothed, has Wilson's interval (Wilson
1927, doi:10.1080/01621459.1927.10502953), with texts for its n, as if each had one judgment: that
is exact where it has, and too wide where those of a text don't all agree. To a bootstrap an answer
that none of ten gave is beyond doubt.

Source of the Wasserstein distance as the area between distribution functions: Vallender 1974,
doi:10.1137/1118101.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from pollex.measures.arrays import Bools, Floats, Ints, assign_numbers_to_names
from pollex.measures.intervals import (
    BOOTSTRAP_RESAMPLES,
    CONFIDENCE_LEVEL,
    Figure,
    Measure,
    assign_numbers_to_units,
    compute_interval_bounds_from_resamples,
    draw_resample_weights,
    estimate_figures_on_same_resamples,
    make_figure_from_resamples,
    make_weighted_mean_statistic,
)

RESAMPLES_OF_SMOOTH_CALIBRATION_ERROR = 200
RELIABILITY_CURVE_POINTS = 101
MIN_PREDICTIONS_IN_BIN = 10
MAX_RELIABILITY_BINS = 8
NORMAL_QUANTILE_OF_95_INTERVAL = 1.959964
"""Half width of the 95 % interval of a standard normal variable."""


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram:
    """The content of a reliability diagram of one answer.

    Attributes:
        mesh: Predicted probabilities `[mesh]` from 0 to 1.
        curve: How often the answer was given at them, smoothed `[mesh]`.
        low: Lower end of the curve's 95 % band `[mesh]`. What smoothing itself bends is not in it.
        high: Upper end.
        density: How many predictions there are at them, of mean 1 `[mesh]`. Where it is near 0 the
            curve says nothing.
        width: Standard deviation of the kernel.
        bins: The same without smoothing.
    """

    value: float
    mesh: Floats
    curve: Floats
    low: Floats
    high: Floats
    density: Floats
    width: float
    smece: Figure
    bins: tuple[PredictionBin, ...]


@dataclass(frozen=True)
class PredictionBin:
    """Judgments whose predicted probabilities are next to each other.

    Attributes:
        predicted: Mean predicted probability.
        share: How often the answer was given, with its interval.
    """

    predicted: float
    share: Figure


def estimate_smooth_calibration_error(
    proba: Floats,
    answer: Ints,
    text: Ints,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES_OF_SMOOTH_CALIBRATION_ERROR,
) -> tuple[Figure, list[Figure]]:
    """Compute the smoothed calibration error, as mean over answers and for each answer.

    Resampling adds noise to every smoothed share and so drives the error up, by about as much as
    the sample itself did: the interval is the basic one, drawn out to the value where it would end
    under it. It is no test of calibration: where there is no error at all, it reaches down to 0 in
    about half of the samples of 60 and a third of those of 200.

    Args:
        proba: `[judgment, option]`.
        answer: Place of the option that was chosen `[judgment]`.
        text: Which text each judgment is of `[judgment]`.
    """
    options = proba.shape[1]
    if len(answer) < 2:
        if len(answer):
            reason = "fewer than two judgments"
        else:
            reason = "no judgments"

        nothing = Figure(
            None,
            n=len(answer),
            undefined=reason,
            units=len(answer),
        )
        return nothing, [nothing] * options

    # errors of the data itself `[option]`, and of each resample `[resample, option]`
    hits = np.eye(options)[answer]
    codes = assign_numbers_to_units(text)
    values = _compute_smooth_errors_of_answers(proba, hits, np.ones((1, len(answer))))[0]
    resampled_errors = []
    for weights in draw_resample_weights(codes, resamples, rng):
        resampled_errors.append(_compute_smooth_errors_of_answers(proba, hits, weights))
    draws = np.concatenate(
        [
            np.zeros((0, options)),
            *resampled_errors,
        ]
    )
    # an interval for each answer, and for the mean over answers
    n = len(answer)
    texts = int(codes.max()) + 1
    by_answer = []
    for value, draw in zip(values, draws.T, strict=True):
        by_answer.append(
            make_figure_from_resamples(
                float(value),
                draw,
                n,
                texts,
                kind="basic",
            )
        )

    return make_figure_from_resamples(
        float(values.mean()), draws.mean(axis=1), n, texts, kind="basic"
    ), by_answer


def _compute_smooth_errors_of_answers(proba: Floats, hits: Floats, weights: Floats) -> Floats:
    # each resample as rows, as often as it drew them
    copies = []
    for row in weights:
        copies.append(np.repeat(np.arange(len(proba)), row.astype(int)))

    options = proba.shape[1]
    # of two answers, one is the mirror image of the other
    apart = 1 if options == 2 else options
    errors = np.array(
        [
            [
                compute_smooth_calibration_error(proba[rows, option], hits[rows, option])[0]
                for option in range(apart)
            ]
            for rows in copies
        ]
    )
    return np.broadcast_to(errors, (len(copies), options))


def make_reliability_diagrams(
    proba: Floats,
    answer: Ints,
    text: Ints,
    values: tuple[float, ...],
) -> list[ReliabilityDiagram]:
    """Return a diagram for each answer, its smECE without an interval; none when there are fewer than two judgments.

    Args:
        proba: `[judgment, option]`.
        answer: Place of the option that was chosen `[judgment]`.
        text: Which text each judgment is of `[judgment]`.
        values: What each option is worth.
    """
    if len(answer) < 2:
        return []

    errors = estimate_smooth_calibration_error(proba, answer, text)[1]
    hits = np.eye(len(values))[answer]
    reliabilities: list[ReliabilityDiagram] = []
    for value, error, probability, hit in zip(values, errors, proba.T, hits.T, strict=True):
        reliabilities.append(
            ReliabilityDiagram(
                value=value,
                smece=error,
                bins=tuple(bin_predictions_by_probability(probability, hit, text)),
                **_make_reliability_curve(probability, hit, text),
            )
        )

    return reliabilities


def smooth_hits_over_probabilities(
    probability: Floats,
    hit: Floats,
    weights: Floats,
    mesh: Floats,
    width: float,
) -> Floats:
    """Smooth hits over probabilities by kernel regression `[resample, mesh]`.

    The kernel is a normal density that is reflected at 0 and 1, where a plain one would lose mass.

    Args:
        probability: `[judgment]`.
        hit: `[judgment]`.
        weights: `[resample, judgment]`.
    """
    kernel, _ = _evaluate_reflected_normal_kernel(probability, mesh, width)
    below = weights @ kernel
    shares: Floats = np.divide(
        (weights * hit) @ kernel,
        below,
        out=np.full(below.shape, np.nan),
        where=below > 0,
    )
    return shares


def _evaluate_reflected_normal_kernel(
    probability: Floats,
    mesh: Floats,
    width: float,
) -> tuple[Floats, Floats]:
    """Evaluate the reflected normal density of mesh points around probabilities, without norm.

    Five images on either side: farther ones contribute less than e⁻⁷ of the nearest, even at width
    1.

    Returns:
        `[judgment, mesh]`, divided by the largest of each mesh point, which a narrow kernel would
        round to 0; and these `[mesh]`.
    """
    # images of the mesh on either side of 0 and 1
    images = np.concatenate(
        [shift + sign * mesh for shift in (-4, -2, 0, 2, 4) for sign in (1, -1)]
    )
    # logarithms first: a narrow kernel would underflow `[judgment, image, mesh]`
    logs = -(((probability[:, None] - images) / width) ** 2) / 2
    logs = logs.reshape(len(probability), -1, len(mesh))
    top = logs.max(axis=(0, 1))
    return np.exp(logs - top).sum(axis=1), np.exp(top)


def _make_reliability_curve(probability: Floats, hit: Floats, text: Ints) -> dict[str, Any]:
    # the curve, and how much it rests on, at each point of the mesh
    _, width = compute_smooth_calibration_error(probability, hit)
    mesh = np.linspace(0, 1, RELIABILITY_CURVE_POINTS)
    kernel, scale = _evaluate_reflected_normal_kernel(probability, mesh, width)
    density = kernel.sum(axis=0) * scale
    curve = smooth_hits_over_probabilities(probability, hit, np.ones((1, len(hit))), mesh, width)[0]
    low, high = compute_wilson_bounds(
        curve, _count_effective_texts_behind_share(kernel, assign_numbers_to_units(text))
    )

    return {
        "mesh": mesh,
        "curve": curve,
        "low": low,
        "high": high,
        "density": density / density.mean(),
        "width": width,
    }


def _count_effective_texts_behind_share(kernel: Floats, codes: Ints) -> Floats:
    """Return the effective number of texts behind a smoothed share `[mesh]`.

    Source: Kish 1965, "Survey Sampling", on the effective size of a sample with weights.

    Args:
        kernel: `[judgment, mesh]`.
        codes: The text of each judgment, from 0 on without gaps `[judgment]`.
    """
    # weights summed by text: judgments of one text count together `[text, mesh]`
    weights = np.zeros((int(codes.max()) + 1, kernel.shape[1]))
    np.add.at(weights, codes, kernel)
    return np.asarray(weights.sum(axis=0) ** 2 / (weights**2).sum(axis=0))


def compute_wilson_bounds(share: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """Return both ends of the 95 % score interval of shares of n, any shape."""
    p = np.asarray(share, dtype=np.float64)
    size = np.asarray(n, dtype=np.float64)
    below = 1 + NORMAL_QUANTILE_OF_95_INTERVAL * NORMAL_QUANTILE_OF_95_INTERVAL / size
    center = (
        p + NORMAL_QUANTILE_OF_95_INTERVAL * NORMAL_QUANTILE_OF_95_INTERVAL / (2 * size)
    ) / below
    half = (
        NORMAL_QUANTILE_OF_95_INTERVAL
        * np.sqrt(
            p * (1 - p) / size
            + NORMAL_QUANTILE_OF_95_INTERVAL * NORMAL_QUANTILE_OF_95_INTERVAL / (4 * size * size)
        )
        / below
    )

    return np.maximum(center - half, 0.0), np.minimum(center + half, 1.0)


def bin_predictions_by_probability(
    probability: Floats,
    hit: Floats | Bools,
    text: Ints,
) -> list[PredictionBin]:
    """Bin predictions by probability into at most 8 bins of at least 10.

    Equal probabilities stay in one bin.

    Args:
        probability: `[judgment]`.
        hit: Whether what was predicted came true `[judgment]`.
        text: Judgments with the same number count as one in the intervals `[judgment]`.
    """
    # bins of equal counts; equal probabilities end up in the same one
    bin_count = min(max(len(probability) // MIN_PREDICTIONS_IN_BIN, 1), MAX_RELIABILITY_BINS)
    cuts = np.zeros(0)
    if len(probability):
        quantiles = np.arange(1, bin_count) / bin_count
        cuts = np.quantile(probability, quantiles, method="lower")

    numbers = np.searchsorted(np.unique(cuts), probability, side="left")

    # the share of hits in each bin, with Wilson's interval over texts
    bins = []
    for number in np.unique(numbers):
        part = np.flatnonzero(numbers == number)
        share = float(hit[part].mean())
        texts = len(np.unique(text[part]))
        low, high = map(float, compute_wilson_bounds(share, texts))
        bins.append(
            PredictionBin(
                float(probability[part].mean()),
                Figure(share, low, high, len(part), units=texts),
            )
        )

    return bins


RESIDUAL_GRID_POINTS = 1000
"""Steps of the grid that residuals are rounded to; more for a narrow kernel."""
MIN_KERNEL_WIDTH = 0.001


def compute_smooth_calibration_error(probability: Floats, hit: Floats) -> tuple[float, float]:
    """Compute smECE of probabilities and hits `[judgment]`, and the width of its kernel.

    The width is the largest that isn't above the error itself, found by halving ten times.
    """
    # bisection for the width that equals the error at it
    low = 0.0
    width = 1.0
    for _ in range(10):
        middle = (low + width) / 2
        if middle < MIN_KERNEL_WIDTH or middle < _measure_error_at_width(middle, probability, hit):
            low = middle
        else:
            width = middle

    return _measure_error_at_width(width, probability, hit), width


def _measure_error_at_width(width: float, probability: Floats, hit: Floats) -> float:
    """Compute the mean distance of smoothed hits from smoothed probabilities; the kernel is reflected at 0 and 1."""
    from scipy.ndimage import gaussian_filter1d  # only this figure needs it

    # each judgment is shared out between the two neighbouring points of a grid
    steps = max(RESIDUAL_GRID_POINTS, round(10 / width))
    below = np.minimum((probability * steps).astype(int), steps - 1)
    share = probability * steps - below

    def smooth(mass: Floats) -> Floats:
        on_lower = np.bincount(below, mass * (1 - share), steps + 1)
        on_upper = np.bincount(below + 1, mass * share, steps + 1)
        grid = on_lower + on_upper

        return np.asarray(
            gaussian_filter1d(
                grid,
                width * steps,
                mode="mirror",
                radius=steps // 2,
            )
        )

    return float(np.abs(smooth(probability - hit)).sum() / smooth(np.ones_like(probability)).sum())


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for one question, and people's answers to it.

    Attributes:
        proba: `[judgment, option]`, rows that sum to 1.
        answer: Index of the chosen option `[judgment]`.
        text: Which text each judgment is of `[judgment]`.
        values: Value of each option.
        ordinal: Whether the options are ordered as their values are.
    """

    proba: Floats
    answer: Ints
    text: Ints
    values: tuple[float, ...]
    ordinal: bool = True

    def __len__(self) -> int:
        return len(self.answer)

    @cached_property
    def expected(self) -> Floats:
        """Expected answer Σ p·value `[judgment]`."""
        return np.asarray(self.proba @ np.array(self.values))

    @cached_property
    def given(self) -> Floats:
        """Value of the chosen answer `[judgment]`."""
        return np.array(self.values)[self.answer]

    @cached_property
    def nearest(self) -> Ints:
        """Index of the option nearest to the expected answer `[judgment]`; the lower of two."""
        return np.asarray(
            np.abs(self.expected[:, None] - np.array(self.values)).argmin(axis=1),
            dtype=np.int64,
        )

    def where(self, keep: Bools | Ints) -> Predictions:
        """Return those that `keep` picks."""
        return Predictions(
            self.proba[keep],
            self.answer[keep],
            self.text[keep],
            self.values,
            self.ordinal,
        )


@dataclass(frozen=True)
class PredictionQuality:
    """All figures of one set of predictions.

    Attributes:
        log_loss: Mean −log p of the given answer, in nats.
        brier: Mean Σ (p − 1[given])² over the options, 0 to 2.
        smece: Mean over the answers of each one's smoothed calibration error. A constant can have
            0: read it beside the log-loss.
        kappa: Cohen's with quadratic weights, between the given answer and the option nearest to
            the expected one.
        smece_of: By the answer's value.
    """

    n: int
    texts: int
    rmse: Figure
    pearson: Figure
    spearman: Figure
    kendall: Figure
    log_loss: Figure
    brier: Figure
    kappa: Figure
    smece: Figure
    smece_of: dict[float, Figure]


def assess_predictions(
    predictions: Predictions,
    rng: np.random.Generator | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
    smece_resamples: int = RESAMPLES_OF_SMOOTH_CALIBRATION_ERROR,
    smooth: bool = True,
) -> PredictionQuality:
    """Measure predictions; what can't be measured is undefined, never an error.

    Args:
        rng: None: values without intervals.
        smece_resamples: As `resamples`, for smECE, which is slow.
        smooth: False: without smECE, whose package alone takes seconds to load.
    """
    # quick figures share their resamples; smECE has fewer of its own
    quick = estimate_figures_on_same_resamples(
        make_prediction_measures(predictions), predictions.text, rng, resamples
    )
    texts = len(np.unique(predictions.text))
    if smooth:
        mean, by_answer = estimate_smooth_calibration_error(
            predictions.proba,
            predictions.answer,
            predictions.text,
            rng,
            smece_resamples,
        )
    else:
        mean = Figure(
            None,
            n=len(predictions),
            undefined="not asked for",
            units=texts,
        )
        by_answer = [mean] * len(predictions.values)

    return PredictionQuality(
        n=len(predictions),
        texts=texts,
        smece=mean,
        smece_of=dict(zip(predictions.values, by_answer, strict=True)),
        **quick,
    )


def assess_predictions_by_group(
    predictions: Predictions,
    of: Sequence[Hashable] | npt.NDArray[np.generic],
    rng: np.random.Generator | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
    smece_resamples: int = RESAMPLES_OF_SMOOTH_CALIBRATION_ERROR,
) -> dict[Hashable, PredictionQuality]:
    """Measure each judge, or each subgroup, by itself.

    Args:
        of: Whose each judgment is `[judgment]`: the judge's name, the system, the topic.
    """
    codes = assign_numbers_to_names(of)
    qualities = {}
    for code, label in enumerate(dict.fromkeys(of)):
        qualities[label] = assess_predictions(
            predictions.where(codes == code), rng, resamples, smece_resamples
        )
    return qualities


def compute_answer_log_losses(proba: Floats, answer: Ints) -> Floats:
    """Compute −log p of the given answer `[judgment]`, in nats; infinite at probability 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(proba[np.arange(len(answer)), answer]))


def compute_entropy_of_distributions(proba: Floats) -> Floats:
    """Compute −Σ p log p in nats of distributions `[…, option]`; NaN stays NaN."""
    logs = np.log(proba, out=np.zeros_like(proba), where=proba > 0)
    return np.asarray(-(proba * logs).sum(axis=-1) + 0.0)  # no −0


def compute_variance_of_distributions(proba: Floats, values: Sequence[float]) -> Floats:
    """Compute the variance of the answer's value `[row]` under distributions `[row, option]`."""
    worth = np.array(values)
    mean = proba @ worth
    return np.asarray((proba * (worth - mean[:, None]) ** 2).sum(axis=1))


def compute_brier_scores(proba: Floats, answer: Ints) -> Floats:
    """Compute Σ (p − 1[given])² over the options `[judgment]`. Source: Brier 1950."""
    return np.asarray(((proba - np.eye(proba.shape[1])[answer]) ** 2).sum(axis=1))


def compute_platt_targets(answers: Ints, options: int) -> Floats:
    """Compute what a uniform prior expects of one more judgment each `[judgment, option]`.

    (n + 1)/(n + K) for the given answer, which was given n times, and 1/(n + K) for the K − 1
    others. With two options these are Platt's (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2).

    Source: Platt 1999, "Probabilistic outputs for support vector machines".
    """
    counts = np.bincount(answers, minlength=options)[answers].astype(np.float64)
    targets = np.repeat(1 / (counts + options), options).reshape(
        len(answers),
        options,
    )
    targets[np.arange(len(answers)), answers] = (counts + 1) / (counts + options)

    return targets


def estimate_difference_of_prediction_measure(
    first: Predictions,
    second: Predictions,
    measure: str,
    rng: np.random.Generator | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
) -> Figure:
    """Subtract a measure of `second` from that of `first`, on the same resamples.

    Args:
        measure: `rmse`, `pearson`, `spearman`, `kendall`, `log_loss`, `brier` or `kappa`.
    """
    first_measure = make_prediction_measures(first)[measure]
    second_measure = make_prediction_measures(second)[measure]
    figure = Measure(
        lambda weights: first_measure.statistic(weights) - second_measure.statistic(weights),
        first_measure.undefined or second_measure.undefined,
        first_measure.empty,
    )
    return estimate_figures_on_same_resamples({measure: figure}, first.text, rng, resamples)[
        measure
    ]


def make_prediction_measures(predictions: Predictions) -> dict[str, Measure]:
    """Return each measure as a statistic of weights, and why it is undefined."""
    from pollex.measures.correlations import (  # who scores needs none
        make_kendall_statistic,
        make_pearson_statistic,
        make_spearman_statistic,
        make_weighted_kappa_statistic,
    )

    # expected and given answers `[judgment]`
    expected = predictions.expected
    answers = predictions.given
    # why figures that need an order, or different answers, are undefined
    unordered = "" if predictions.ordinal else "its answers have no order"
    constant = unordered or _describe_constant_side(expected, answers)
    losses = compute_answer_log_losses(predictions.proba, predictions.answer)
    impossible = int(np.isinf(losses).sum())
    rated = (predictions.nearest, predictions.answer)
    square = make_weighted_mean_statistic((expected - answers) ** 2)

    return {
        "rmse": Measure(lambda weights: np.sqrt(square(weights)), unordered),
        "pearson": Measure(make_pearson_statistic(expected, answers), constant),
        "spearman": Measure(make_spearman_statistic(expected, answers), constant),
        "kendall": Measure(make_kendall_statistic(expected, answers), constant),
        "log_loss": Measure(
            make_weighted_mean_statistic(losses),
            f"{impossible} of {len(losses)} given answers had probability 0" if impossible else "",
        ),
        "brier": Measure(
            make_weighted_mean_statistic(
                compute_brier_scores(predictions.proba, predictions.answer)
            )
        ),
        "kappa": Measure(
            make_weighted_kappa_statistic(*rated),
            unordered,
            "all predictions and answers are one and the same",
        ),
    }


def _describe_constant_side(expected: Floats, answers: Floats) -> str:
    if len(answers) < 2:
        return "fewer than two judgments"
    if np.ptp(answers) == 0:
        return "all answers are alike"
    # Σ p·value of one and the same distribution differs by rounding.
    if np.ptp(expected) <= 1e-12 * np.abs(expected).max():
        return "all predictions are alike"
    return ""


PREDICTION_MEASURE_NAMES = tuple(
    field.name
    for field in dataclasses.fields(PredictionQuality)
    if field.name not in ("n", "texts", "smece_of")
)
"""The measures, in the order of a `PredictionQuality`."""


def estimate_mean_grade(grades: Floats, rng: np.random.Generator) -> Figure:
    """Compute the mean; undefined without grades, without an interval where all are alike.

    Args:
        grades: `[text]`, one a text; NaN is a text without one, which counts for nothing.
    """
    present = grades[~np.isnan(grades)]
    figure = estimate_figures_on_same_resamples(
        {"mean": Measure(make_weighted_mean_statistic(present))}, np.arange(len(present)), rng
    )["mean"]
    if len(present) and np.ptp(present) == 0:
        # All resamples are alike then, too, and would call the mean certain.
        return replace(figure, low=None, high=None)
    return figure


def compute_cumulative_shares_of_grades(grades: Floats, levels: Floats) -> Floats:
    """Compute the share of grades up to each level `[level]`; NaN without grades.

    Args:
        grades: `[text]`; NaN counts for nothing.
    """
    present = grades[~np.isnan(grades)]
    if not len(present):
        return np.full(len(levels), np.nan)

    return np.asarray(
        np.searchsorted(np.sort(present), levels, side="right") / len(present),
        float,
    )


def estimate_grade_agreement(
    grades: Floats,
    human: Floats,
    rng: np.random.Generator,
) -> dict[str, Figure]:
    """Compute how far a judge's grades agree with people's of the same texts: Pearson, Spearman, Krippendorff's alpha.

    Distributions may be alike where right grades are given to wrong answers; these then are near 0
    or below.

    Args:
        grades: `[text]`; NaN is missing, and that text doesn't count.
        human: People's grades `[text]`.
    """
    from pollex.measures.correlations import (  # as above
        make_interval_alpha_statistic,
        make_pearson_statistic,
        make_spearman_statistic,
    )

    # only texts that both graded
    both = ~(np.isnan(grades) | np.isnan(human))
    x = grades[both]
    y = human[both]
    why = "one of them gives all the same grade"
    measures = {
        "pearson": make_pearson_statistic,
        "spearman": make_spearman_statistic,
        "alpha": make_interval_alpha_statistic,
    }
    measurements = {}
    for name, make in measures.items():
        measurements[name] = Measure(make(x, y), empty=why)

    figures = estimate_figures_on_same_resamples(measurements, np.arange(len(x)), rng)
    if not (x == y).all():
        return figures
    # All resamples of grades that are the same are perfect, too, which doesn't make it certain.
    return {name: replace(figure, low=None, high=None) for name, figure in figures.items()}


def estimate_areas_between_grade_distributions(
    judges: dict[str, Floats],
    human: Floats,
    rng: np.random.Generator,
    resamples: int = BOOTSTRAP_RESAMPLES,
) -> dict[str, Figure]:
    """Compute the area between each judge's cumulative distribution and people's, in grades.

    The area is 0 where both are the same. With two judges or more, `a - b` is how much farther a is
    from people than b, on the same resamples; it is noise where its interval contains 0. On few
    texts it is too small where one judge is near people: noise drives up an area near 0 more than a
    large one.

    Args:
        judges: Grades by judge `[text]`; NaN is missing. Only texts that all of them and people
            graded count.
        human: People's grades `[text]`.
    """
    # only texts that people and all judges graded
    both = ~np.isnan(np.stack([human, *judges.values()])).any(axis=0)
    n = int(both.sum())
    pairs = {}
    for name, grades in judges.items():
        pairs[name] = _GradePair.of(grades[both], human[both])

    differences = {}
    for a, b in combinations(pairs, 2):
        differences[f"{a} - {b}"] = (a, b)

    if not n:
        return dict.fromkeys(
            [*pairs, *differences],
            Figure(None, undefined="no grades in common", units=0),
        )

    # areas of all resamples, by judge, on the same resamples for the differences
    weights = list(draw_resample_weights(np.arange(n), resamples, rng))
    drawn = {}
    for name, pair in pairs.items():
        drawn[name] = np.concatenate([[], *(pair.areas(w) for w in weights)])

    values = {}
    for name, pair in pairs.items():
        values[name] = float(pair.areas(np.ones((1, n)))[0])

    # each judge's area beside those where texts have their two grades swapped
    figures = {}
    for name, pair in pairs.items():
        swaps = (rng.choice([1.0, -1.0], size=w.shape) for w in weights)
        alike = np.concatenate([[], *map(pair.areas, swaps)])
        figures[name] = _make_figure_of_area_between_distributions(
            values[name],
            drawn[name],
            alike,
            n,
        )

    # differences between two judges
    for name, (a, b) in differences.items():
        value = values[a] - values[b]
        figures[name] = Figure(
            value,
            *_choose_widest_interval(value, drawn[a] - drawn[b], n),
            n,
            units=n,
        )

    return figures


@dataclass(frozen=True, eq=False)
class _GradePair:
    """A judge's and people's grades as step functions F and G on common levels.

    Attributes:
        below: F − G of each text `[text, level]`.
        widths: From each level to the next `[level − 1]`.
    """

    below: Floats
    widths: Floats

    @classmethod
    def of(cls, grades: Floats, human: Floats) -> _GradePair:
        levels = np.unique(np.concatenate([grades, human]))
        return cls(
            (grades[:, None] <= levels).astype(float) - (human[:, None] <= levels),
            np.diff(levels),
        )

    def areas(self, weights: Floats) -> Floats:
        """Compute ∫ |F − G| `[resample]`; a text of weight −1 has its grades swapped."""
        gaps = np.abs(weights @ self.below)[:, :-1] / np.abs(weights).sum(axis=1, keepdims=True)
        return np.asarray(gaps @ self.widths, float)


def _make_figure_of_area_between_distributions(
    value: float,
    draws: Floats,
    alike: Floats,
    texts: int,
) -> Figure:
    """Give an area its interval, which begins at 0 if a permutation test fails.

    Args:
        alike: Areas with a text's two grades swapped at random `[draw]`: a permutation test.
    """
    low, high = _choose_widest_interval(value, draws, texts)
    if low is not None and value <= np.quantile(alike, CONFIDENCE_LEVEL):
        low = 0.0

    return Figure(
        value,
        None if low is None else max(0.0, low),
        high,
        texts,
        units=texts,
    )


def _choose_widest_interval(
    value: float, draws: Floats, texts: int
) -> tuple[float | None, float | None]:
    """Compute the interval, mirrored at the value or moved back, whichever reaches further.

    Resampling drives up an area, even one of 0, and that of one judge more than another's. The
    sample itself did the same if the true area is small, and did not if it is large; the sample
    can't say which. Either interval alone holds the truth only 70 to 85 times of 100.
    """
    if len(draws) < 2:
        return None, None

    low, high = compute_interval_bounds_from_resamples(draws, texts)
    moved = float(draws.mean()) - value
    return min(value, 2 * value - high, low - moved), max(value, 2 * value - low, high - moved)
