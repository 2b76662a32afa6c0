"""The record of what a calibrator was fitted on, a file beside it."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, NonNegativeInt, ValidationError

from pollex.calibration import CALIBRATOR_FILE_NAME
from pollex.outputs import write_text
from pollex.rooms.questionnaire.formats.answers import AnswerTable
from pollex.rooms.questionnaire.formats.judgments import JudgmentTable

TRAINING_FILE_NAME = "training.json"


class TrainingRecord(BaseModel):
    """The labels that a calibrator was fitted on, as far as known.

    Attributes:
        labels: Number of answers to the main question; None if unknown.
        shift: Column of groups that the model was chosen by.
        text_hashes: Texts and their answers; None if unknown.
        arrays_sha256: Hash of the calibrator's arrays, to detect that it was replaced.
    """

    labels: NonNegativeInt | None = None
    shift: str | None = None
    text_hashes: tuple[str, ...] | None = None
    arrays_sha256: str = ""
    files: tuple[str, ...] = ()

    def seen(self, table: AnswerTable) -> int | None:
        """Count the texts that the calibrator was fitted on; None if unknown."""
        known_hashes = None
        if self.text_hashes is not None:
            known_hashes = frozenset(self.text_hashes)
        if known_hashes is None:
            return None
        return sum(row_hash in known_hashes for row_hash in _hash_rows(table))


def write_training_record(
    calibrator: Path,
    table: AnswerTable,
    judged: JudgmentTable,
    shift: str | None,
    files: Sequence[str],
) -> None:
    """Write the training record beside the file of a calibrator that was saved."""
    # texts with a judgment of any question have taught it
    used = np.isin(np.arange(len(table.texts)), judged.judgments.row).tolist()
    learned_hashes = []
    for row_hash, learnt in zip(_hash_rows(table), used, strict=True):
        if learnt:
            learned_hashes.append(row_hash)
    record = TrainingRecord(
        labels=judged.judgments.of_question(judged.questionnaire.index()).labels,
        shift=shift,
        text_hashes=tuple(learned_hashes),
        arrays_sha256=TrainingRecord.model_validate_json(calibrator.read_bytes()).arrays_sha256,
        files=tuple(files),
    )
    write_text(
        calibrator.with_name(TRAINING_FILE_NAME),
        record.model_dump_json(indent=2),
        named=False,
    )


def is_training_record_file(path: Path) -> bool:
    """Tell whether a file is a training record, of whichever calibrator."""
    try:
        return bool(TrainingRecord.model_validate_json(path.read_bytes()).arrays_sha256)
    except ValidationError:
        return False


def read_training_record(folder: Path) -> TrainingRecord:
    """Read a calibrator's training record; unknown if it is missing or another's.

    Args:
        folder: The calibrator's folder or its JSON file.
    """
    calibrator = folder / CALIBRATOR_FILE_NAME if folder.is_dir() else folder
    try:
        beside = calibrator.with_name(TRAINING_FILE_NAME).read_bytes()
        training_record = TrainingRecord.model_validate_json(beside)
        # Of the calibrator's own file only the hash of its arrays is read here.
        calibrator_record = TrainingRecord.model_validate_json(calibrator.read_bytes())
    except (OSError, ValidationError):
        return TrainingRecord()

    is_its_own = training_record.arrays_sha256 == calibrator_record.arrays_sha256
    if is_its_own:
        return training_record
    return TrainingRecord()


def _hash_rows(table: AnswerTable) -> list[str]:
    # in one order of bytes, so that equal rows have equal hashes
    rows = np.ascontiguousarray(table.X)
    hashes: list[str] = []
    # the text and its answers, parted by a zero byte: with other answers it counts as another text
    for text, row in zip(table.texts, rows, strict=True):
        hashes.append(
            hashlib.sha256(
                text.encode("utf-8", "surrogatepass") + b"\0" + row.tobytes()
            ).hexdigest()[:16]
        )

    return hashes
