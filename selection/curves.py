"""What a plot of the precision curves needs, for one set of scores."""

from __future__ import annotations

from dataclasses import dataclass

from pollex.selection.losses import GRID, Bools, Floats, precision_curves, require_both_classes


@dataclass(frozen=True)
class PrecisionPlot:
    """Precision against threshold, beside the tanh curves that the sharpness loss holds it against.

    Attributes:
        thresholds: θ `[grid]`, from the lowest to the highest score.
        plus: Prec+ `[grid]`; the last threshold, which nothing scores over, carries the value before it.
        minus: Prec− `[grid]`.
        target_plus: `[grid]`.
        target_minus: `[grid]`.
        positives_over: Positive conversations scoring over θ `[grid]`.
        negatives_over: Negative ones.
        theta: θ_c.
        spread: s, the pooled standard deviation.
        base_rate: Share of positive conversations.
        sharpness: LS.
    """

    thresholds: tuple[float, ...]
    plus: tuple[float, ...]
    minus: tuple[float, ...]
    target_plus: tuple[float, ...]
    target_minus: tuple[float, ...]
    positives_over: tuple[int, ...]
    negatives_over: tuple[int, ...]
    theta: float
    spread: float
    base_rate: float
    positives: int
    negatives: int
    sharpness: float


def precision_plot(scores: Floats, positive: Bools, grid: int = GRID) -> PrecisionPlot:
    """The curves of NetSAT scores `[conversation]` and their labels.

    Raises:
        BadLabels: All labels are alike.
    """
    require_both_classes(positive)
    curves = precision_curves(scores[None, positive], scores[None, ~positive], grid)
    positives, negatives = int(positive.sum()), int((~positive).sum())
    return PrecisionPlot(
        thresholds=tuple(curves.thresholds[0].tolist()),
        plus=tuple(curves.plus[0].tolist()),
        minus=tuple(curves.minus[0].tolist()),
        target_plus=tuple(curves.target_plus[0].tolist()),
        target_minus=tuple(curves.target_minus[0].tolist()),
        positives_over=tuple(curves.over[0, 0].astype(int).tolist()),
        negatives_over=tuple(curves.over[1, 0].astype(int).tolist()),
        theta=float(curves.theta[0]),
        spread=float(curves.spread[0]),
        base_rate=positives / (positives + negatives),
        positives=positives,
        negatives=negatives,
        sharpness=float(curves.sharpness[0]),
    )
