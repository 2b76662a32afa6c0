"""Predictions of a calibrator as rows of a file, one a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.calibration.estimator import Aggregate
from pollex.calibration.questionnaire import Scale
from pollex.errors import WrongUse
from pollex.formats.answers import AnswerTable
from pollex.measures.arrays import Floats
from pollex.measures.distributions import entropy, variance

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator  # scikit-learn comes with it, and takes a second to import


JUDGES = "STRUCT(judge VARCHAR, expected DOUBLE, entropy DOUBLE, probabilities DOUBLE[])[]"


def rows_of_predictions(
    model: JudgedEstimator, table: AnswerTable, judges: Sequence[str] = (), aggregate: Aggregate | None = None
) -> list[dict[str, Any]]:
    """Make one row for each text: predictions for an unknown, each named, and all judges."""
    scale = model.questionnaire_.scale()
    columns: dict[str, list[Any]] = {"text_id": list(table.texts)} | _spread(model.predict_proba(table.X), scale)
    if aggregate is not None and not scale.ordinal:
        raise WrongUse(
            f"the answers to {scale.question!r} have no order, so those of several judges are no one figure",
            remedy="leave it out",
            option="aggregate",
        )
    if aggregate is not None:
        columns["aggregate"] = model.predict_for(table.X, list(judges) or None, aggregate).tolist()
    if judges:
        each = [_of_judge(model, table.X, judge, scale) for judge in judges]
        columns["judges"] = [list(of_text) for of_text in zip(*each, strict=True)]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def expected_of(proba: Floats, scale: Scale) -> list[float] | list[None]:
    """Compute expected answers; None where the answers have no order, and so no mean."""
    if not scale.ordinal:
        return [None] * len(proba)
    found: list[float] = (proba @ np.array(scale.values)).tolist()
    return found


def _spread(proba: Floats, scale: Scale) -> dict[str, list[Any]]:
    spread = variance(proba, scale.values).tolist() if scale.ordinal else [None] * len(proba)
    return {
        "expected": expected_of(proba, scale),
        "variance": spread,
        "entropy": entropy(proba).tolist(),
    } | {f"p_{value:.15g}": column.tolist() for value, column in zip(scale.values, proba.T, strict=True)}


def _of_judge(model: JudgedEstimator, X: Floats, judge: str, scale: Scale) -> list[dict[str, Any]]:
    proba = model.predict_proba(X, [judge] * len(X))
    columns = expected_of(proba, scale), entropy(proba).tolist(), proba.tolist()
    return [
        {"judge": judge, "expected": expected, "entropy": bits, "probabilities": row}
        for expected, bits, row in zip(*columns, strict=True)
    ]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Name the columns of predictions, with DuckDB's types."""
    return {name: {"text_id": "VARCHAR", "judges": JUDGES}.get(name, "DOUBLE") for name in rows[0]}
