"""Numbers of a rubric set that somebody handed on: each is finite."""

import re
from pathlib import Path

import numpy as np
import pytest
from rubric_set_by_hand import rubric_set

from pollex.errors import BadRubrics
from pollex.rubrics.learning.measured import measure_share_with_leading_act
from pollex.rubrics.rubric_set import RubricSet


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_refused(number: str, tmp_path: Path) -> None:
    rubric_set().save(path := tmp_path / "r.json")
    changed = re.sub(r'"theta": [^,]+', f'"theta": {number}', path.read_text())
    path.write_text(changed)
    with pytest.raises(BadRubrics, match=f"{number} is no finite number"):
        RubricSet.load(path)


def test_where_no_act_leads_there_is_no_share_that_it_reaches() -> None:
    down, covered = np.arange(20) < 8, np.arange(20) < 6
    some, none = (
        measure_share_with_leading_act(down, covered, np.arange(20), any_leads=any_leads)
        for any_leads in (True, False)
    )
    assert (some.value, some.n) == (0.75, 8)
    assert (none.value, none.n) == (None, 8)
    assert none.undefined == "no act leads on the side of what goes wrong"
