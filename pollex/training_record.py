"""What a calibrator was fitted on: kept beside it, for people, and hashes by which its texts are known again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.calibration.kept import JSON_NAME, packed
from pollex.calibration.tables.answers import AnswerTable
from pollex.calibration.tables.judged import JudgmentTable
from pollex.export import draft_of

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator  # scikit-learn comes with it, and takes a second to import

TRAINING = "training.json"
ARRAYS = "arrays_sha256"
"""Of the calibrator that the record is of, as the calibrator names it: another may have taken its place since."""


@dataclass(frozen=True)
class TrainingRecord:
    """What a calibrator was fitted on, as far as that is known.

    Attributes:
        labels: How many answers to the main question; None where nobody knows.
        shift: The column of groups that the model was chosen by.
        hashes: Of the texts; None where nobody knows.
    """

    labels: int | None = None
    shift: str | None = None
    hashes: frozenset[str] | None = None

    def seen(self, table: AnswerTable) -> int | None:
        """How many of these texts the calibrator learnt from; None where nobody knows."""
        return None if self.hashes is None else sum(one in self.hashes for one in _hashes(table))


def keep_training(
    folder: Path, model: JudgedEstimator, table: AnswerTable, judged: JudgmentTable, about: Mapping[str, Any]
) -> None:
    """Writes the record of a calibrator that was saved.

    Args:
        about: JSON values; of these `labels` and `shift` are read again.
    """
    learnt = np.zeros(len(table.texts), dtype=bool)
    learnt[judged.judgments.row] = True
    hashes = [one for one, used in zip(_hashes(table), learnt.tolist(), strict=True) if used]
    record = {**about, ARRAYS: packed(model).facts[ARRAYS], "text_hashes": hashes}
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    with draft_of(folder / TRAINING) as draft:
        draft.write_text(f"{text}\n", encoding="utf-8", errors="replace")


def training_of(folder: Path) -> TrainingRecord:
    """What a calibrator was fitted on; nothing is known where that isn't kept, or is of another calibrator.

    Args:
        folder: The calibrator's, or its JSON file.
    """
    calibrator = folder / JSON_NAME if folder.is_dir() else folder
    kept = _facts(calibrator.with_name(TRAINING))
    if kept.get(ARRAYS) != _facts(calibrator).get(ARRAYS):
        return TrainingRecord()
    labels, shift, hashes = kept.get("labels"), kept.get("shift"), kept.get("text_hashes")
    return TrainingRecord(
        labels=labels if type(labels) is int and labels >= 0 else None,
        shift=shift if isinstance(shift, str) else None,
        hashes=frozenset(hashes) if isinstance(hashes, list) and all(isinstance(one, str) for one in hashes) else None,
    )


def _facts(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _hashes(table: AnswerTable) -> list[str]:
    """By id and answers: the same id in another log is another text."""
    rows = np.ascontiguousarray(table.X)
    return [
        hashlib.sha256(text.encode("utf-8", "surrogatepass") + b"\0" + row.tobytes()).hexdigest()[:16]
        for text, row in zip(table.texts, rows, strict=True)
    ]
