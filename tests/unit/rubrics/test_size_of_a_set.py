"""A rubric set that nobody could be asked about is refused before it is looked at."""

import json
from pathlib import Path

import pytest

from pollex.errors import BadRubrics
from pollex.rubrics.rubric_set import MAX_RUBRICS_OF_SET, MAX_SET_FILE_BYTES, RubricSet


def test_a_set_of_too_many_rubrics_and_a_file_that_is_too_large_are_told(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"format": 2, "rubrics": [{}] * (MAX_RUBRICS_OF_SET + 1)}))
    with pytest.raises(BadRubrics, match=r"r\.json.*it has 1001 rubrics: a set has at most 1000"):
        RubricSet.load(path)
    # a hole in the file takes no place on the disk
    with path.open("r+b") as file:
        file.truncate(MAX_SET_FILE_BYTES + 1)
    with pytest.raises(BadRubrics, match=r"r\.json.*larger than 64 MB"):
        RubricSet.load(path)
