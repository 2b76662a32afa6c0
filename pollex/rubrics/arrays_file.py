"""The arrays of a rubric set's calibrator, in a file named by their hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pollex.errors import BadCalibrator

DIGITS = 8
"""Of the hash, in the file's name."""

AGAIN = "fit it again: `pollex refit LOGS --rubrics …`"


def place_of(path: Path, facts: Mapping[str, Any]) -> Path:
    """Say where the arrays of the rubric set at `path` lie.

    Args:
        facts: Of the calibrator; see `calibration.storage.Packed`.

    Raises:
        BadCalibrator: They name no hash.
    """
    digest = facts.get("arrays_sha256")
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise BadCalibrator("arrays_sha256 is no hash of the calibrator's arrays", where=str(path), remedy=AGAIN)
    return path.with_name(f"{path.stem}-{digest[:DIGITS]}.safetensors")


def arrays_beside(path: Path, facts: Mapping[str, Any]) -> bytes:
    """Return the arrays of the rubric set at `path`.

    Raises:
        BadCalibrator: They can't be read, or are not the ones that were written with it.
    """
    place = place_of(path, facts)
    try:
        arrays = place.read_bytes()
    except OSError as error:
        raise BadCalibrator(
            f"the arrays of {path.name} can't be read: {error.strerror}",
            where=str(place),
            remedy=f"put the arrays that came with {path.name} there, under this name, or {AGAIN}",
        ) from error
    require_arrays(arrays, facts, str(place))
    return arrays


def require_arrays(arrays: bytes, facts: Mapping[str, Any], where: str) -> None:
    """Raise BadCalibrator where these are not the arrays that were written with the facts."""
    if hashlib.sha256(arrays).hexdigest() != facts.get("arrays_sha256"):
        raise BadCalibrator(
            "the arrays are not the ones that were written with the rubric set",
            where=where,
            remedy=f"put the file back that came with it, or {AGAIN}",
        )
