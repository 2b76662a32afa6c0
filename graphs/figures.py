"""From `selection`'s metrics to the figures of a rubric set."""

from __future__ import annotations

from pollex.graphs.rubric_set import Figure, Figures
from pollex.selection.metrics import Assessment, Metric


def figure(metric: Metric) -> Figure:
    """A metric as a figure."""
    return Figure(value=metric.value, low=metric.low, high=metric.high, n=metric.n, undefined=metric.undefined)


def figures(found: Assessment) -> Figures:
    """All metrics of one set of conversations."""
    return Figures(
        n=found.n,
        positives=found.positives,
        negatives=found.negatives,
        auc=figure(found.auc),
        accuracy=figure(found.accuracy),
        precision=figure(found.precision),
        recall=figure(found.recall),
        f1=figure(found.f1),
        delta_netsat=figure(found.delta_netsat),
        yield_at_90=figure(found.yield_rate),
        confident_accuracy=figure(found.confident_accuracy),
    )
