"""Predictions of a calibrator as a file: Parquet, JSON lines or CSV, a row a text. It appears whole or not at all."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.calibration.estimator import Aggregate
from pollex.calibration.questionnaire import Scale
from pollex.errors import WrongUse
from pollex.formats.answers import AnswerTable
from pollex.formats.csv_rows import guarded
from pollex.formats.write import Source, draft_of, require_writable, write_parquet_of
from pollex.measures.arrays import Floats
from pollex.measures.distributions import entropy, variance

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator  # scikit-learn comes with it, and takes a second to import


Rows = Sequence[Mapping[str, Any]]

JUDGES = "STRUCT(judge VARCHAR, expected DOUBLE, entropy DOUBLE, probabilities DOUBLE[])[]"


def writer_for(path: Path, *read: Source) -> Callable[[Rows], None]:
    """What writes the format that the name ends in.

    Args:
        read: What the command reads.

    Raises:
        WrongUse: It ends in none that is known, or can't or may not be written there.
    """
    writers = {".parquet": _write_parquet, ".jsonl": _write_jsonl, ".csv": _write_csv}
    if path.suffix not in writers:
        raise WrongUse(
            f"no format ends in {path.suffix or 'nothing'!r}", where=str(path), remedy=f"use {', '.join(writers)}"
        )
    require_writable(path, *read)
    write = writers[path.suffix]

    def written(rows: Rows) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(path) as draft:
            write(draft, rows)

    return written


def rows_of_predictions(
    model: JudgedEstimator, table: AnswerTable, judges: Sequence[str] = (), aggregate: Aggregate | None = None
) -> list[dict[str, Any]]:
    """A row a text: what somebody unknown would say, each judge named, and those together."""
    scale = model.questionnaire_.scale()
    columns: dict[str, list[Any]] = {"text_id": list(table.texts)} | _spread(model.predict_proba(table.X), scale)
    if aggregate is not None and not scale.ordinal:
        raise WrongUse(
            f"the answers to {scale.question!r} have no order, so those of several judges are no one figure",
            remedy="leave out --aggregate",
        )
    if aggregate is not None:
        columns["aggregate"] = model.predict_for(table.X, list(judges) or None, aggregate).tolist()
    if judges:
        each = [_of_judge(model, table.X, judge, scale) for judge in judges]
        columns["judges"] = [list(of_text) for of_text in zip(*each, strict=True)]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def expected_of(proba: Floats, scale: Scale) -> list[float] | list[None]:
    """Expected answers; None each where the answers have no order, and so no mean."""
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


def _write_jsonl(draft: Path, rows: Rows) -> None:
    with draft.open("w", encoding="utf-8", errors="replace") as out:  # a judge's name may be no text
        out.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def _write_csv(draft: Path, rows: Rows) -> None:
    """Cells that a spreadsheet would run are guarded by an apostrophe, names of columns too; lists are JSON."""
    with draft.open("w", encoding="utf-8", errors="replace", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([guarded(name) for name in rows[0]])
        writer.writerows([_cell(value) for value in row.values()] for row in rows)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else guarded(value)


def _write_parquet(draft: Path, rows: Rows) -> None:
    types = {name: {"text_id": "VARCHAR", "judges": JUDGES}.get(name, "DOUBLE") for name in rows[0]}
    lines = draft.with_name(f"{draft.name}.jsonl")
    try:
        _write_jsonl(lines, rows)
        write_parquet_of(lines, draft, types)
    finally:
        lines.unlink(missing_ok=True)
