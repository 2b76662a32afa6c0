"""What `pollex why` says of a rubric: as sure as its standing, and with what is counted."""

import numpy as np
from rubric_set_by_hand import rubric

from pollex.rubrics.records import StandingRecord
from pollex.rubrics.worth import compute_evidence_of_rubric
from pollex.services.history import RubricOrigin

WORTH = compute_evidence_of_rubric(np.arange(40) < 15, np.arange(40) >= 20)


def test_a_hint_is_not_told_to_go_along_with_thumbs_and_has_no_interval() -> None:
    for p, begins, difference in (
        (0.9, "May go along with thumbs down: ", "80 points more in these conversations."),
        (0.01, "Goes along with thumbs down: ", "80 points more (95 % 52 to 91)."),
    ):
        standing = StandingRecord(p=p, n=40, by="held-out")
        told = rubric(1, "dsat").model_copy(update={"worth": WORTH, "standing": standing})
        origin = RubricOrigin(told, ("built-in",), (), {}, "learn-1")
        lines = [getattr(line, "text", line) for line in origin.told()]
        assert lines[0].startswith(begins)
        assert lines[2].endswith("adjusted for all rubrics that were looked at; 40 conversations")
        assert lines[3].endswith(difference)
