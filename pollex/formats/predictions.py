"""Predictions of a calibrator as rows of a file, one a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

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
KINDS = {"text_id": "VARCHAR", "question": "VARCHAR", "judges": JUDGES}

Trusted = Aggregate | Literal["unknown"]
"""How the answers of trusted judges become one, or that of an unknown judge in their place."""


def rows_of_predictions(
    model: JudgedEstimator,
    table: AnswerTable,
    judges: Sequence[str] = (),
    aggregate: Trusted = "mean",
    question: str | None = None,
) -> list[dict[str, Any]]:
    """Make one row for each text: the prediction of a question for trusted judges as one, and for each named.

    Args:
        judges: Who is trusted; nobody: all seen in training.
        aggregate: How their answers become one; `unknown`: the answer of somebody unknown in their place.
        question: Id; None: the main one.

    Raises:
        WrongUse: The answers have no order, and so no largest and no quantile; the question was not learned.
    """
    scale = model.questionnaire_.scale(question)
    if aggregate not in ("mean", "unknown") and not scale.ordinal:
        what = f"the answers to {scale.question!r} have no order, so those of several judges are no one figure"
        raise WrongUse(what, remedy="leave it out", option="aggregate")
    each = {judge: model.predict_proba(table.X, [judge] * len(table.X), scale.question) for judge in judges}
    if aggregate == "unknown":
        proba = model.predict_proba(table.X, question=scale.question)
    else:
        proba = model.proba_for(table.X, list(judges) or None, scale.question)
    named = {"text_id": list(table.texts), "question": [scale.question] * len(proba)}
    columns: dict[str, list[Any]] = named | _spread(proba, scale)
    if aggregate not in ("mean", "unknown"):
        how = cast("Aggregate", aggregate)
        columns["expected"] = model.predict_for(table.X, list(judges) or None, how, scale.question).tolist()
    if judges:
        told = [_of_judge(judge, found, scale) for judge, found in each.items()]
        columns["judges"] = [list(of_text) for of_text in zip(*told, strict=True)]
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


def _of_judge(judge: str, proba: Floats, scale: Scale) -> list[dict[str, Any]]:
    columns = expected_of(proba, scale), entropy(proba).tolist(), proba.tolist()
    return [
        {"judge": judge, "expected": expected, "entropy": bits, "probabilities": row}
        for expected, bits, row in zip(*columns, strict=True)
    ]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Name the columns of predictions, with DuckDB's types: questions may have different options."""
    names = dict.fromkeys(name for row in rows for name in row if name != "judges")
    ends = ["judges"] if "judges" in rows[0] else []
    return {name: KINDS.get(name, "DOUBLE") for name in [*names, *ends]}
