"""Several label fields: one is learned from, the others are shown beside each rubric."""

import re
from pathlib import Path

from small_log import small_log, write_log
from small_runs import Learnt, Pollex

from pollex.rubrics.rubric_set import RubricSet


def test_further_signals_stand_beside_rubrics_and_change_no_figure(
    tmp_path: Path, pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    rows = [{**row, "retried": row.get("thumbs") == "down" and n % 3 > 0} for n, row in enumerate(small_log())]
    log = write_log(tmp_path / "log.jsonl", rows)
    fields = ("--label-field", "thumbs", "--label-field", "retried:down")
    assert pollex("learn", log, *fields, "--out", tmp_path / "beside.json", "--store", store).code == 0
    alone, beside = (RubricSet.load(path) for path in (learnt.rubrics, tmp_path / "beside.json"))
    assert (alone.theta, alone.held_out) == (beside.theta, beside.held_out)
    assert [rubric.id for rubric in alone.rubrics] == [rubric.id for rubric in beside.rubrics]
    assert {one.signal for rubric in beside.rubrics for one in rubric.signals} == {"retried:down"}
    assert not any(rubric.signals for rubric in alone.rubrics)
    (page,) = (path for path in tmp_path.glob("*.html"))
    assert re.search(
        r"also [\d.]+ times as many “retried”: \d+ % of \d+, \d+ % of \d+ elsewhere", page.read_text("utf-8")
    )
