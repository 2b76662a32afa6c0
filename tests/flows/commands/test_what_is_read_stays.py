"""No command writes over what it reads: a log, a table or a calibrator may be all that there is of it."""

import hashlib
from pathlib import Path

from small_runs import Learnt

from pollex.rubrics.rubric_set import RubricSet


def test_arrays_of_a_set_that_was_put_aside_are_not_removed(learnt: Learnt, tmp_path: Path) -> None:
    first = RubricSet.load(learnt.rubrics)
    arrays = b"other arrays"
    facts = first.calibrator.facts | {"arrays_sha256": hashlib.sha256(arrays).hexdigest()}
    calibrator = first.calibrator.model_copy(update={"facts": facts})
    second = first.model_copy(update={"calibrator": calibrator}).with_arrays(arrays)
    first.save(tmp_path / "rubrics.json")
    (tmp_path / "rubrics.json").rename(tmp_path / "rubrics.old")
    second.save(tmp_path / "rubrics.json")
    assert RubricSet.load(tmp_path / "rubrics.old") == first
