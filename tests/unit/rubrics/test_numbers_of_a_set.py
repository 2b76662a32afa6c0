"""Numbers of a rubric set that somebody handed on: each is finite."""

import re
from pathlib import Path

import pytest
from rubric_set_by_hand import rubric_set

from pollex.errors import BadRubrics
from pollex.rubrics.rubric_set import RubricSet


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_refused(number: str, tmp_path: Path) -> None:
    rubric_set().save(path := tmp_path / "r.json")
    changed = re.sub(r'"theta": [^,]+', f'"theta": {number}', path.read_text())
    path.write_text(changed)
    with pytest.raises(BadRubrics, match=f"{number} is no finite number"):
        RubricSet.load(path)
