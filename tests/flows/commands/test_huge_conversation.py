"""One conversation of 8 MB holds nobody up, and is named."""

import json
from pathlib import Path

import pytest
from small_log import small_log, write_log
from small_runs import Learnt, Pollex


@pytest.mark.nightly
def test_one_of_8_mb_is_named_and_one_of_thousands_of_turns_is_scored(
    tmp_path: Path, learnt: Learnt, store: Path, pollex: Pollex
) -> None:
    rows = small_log()[:3]
    asked = {"role": "user", "content": "Why does the build still fail? " * 20}
    answered = {"role": "assistant", "content": "Please run it again, and show me the error. " * 20}
    rows.insert(1, {"id": "huge", "messages": [asked, answered] * 5400})
    rows.insert(1, {"id": "long", "messages": [{**asked, "content": "Again?"}, {**answered, "content": "Yes."}] * 1000})
    log = write_log(tmp_path / "log.jsonl", rows)
    assert log.stat().st_size > 8_000_000
    ended = pollex("score", log, "--rubrics", learnt.rubrics, "--out", "s.jsonl", "--store", store)
    assert ended.code == 3
    assert "huge" in ended.err + ended.out
    found = {one["id"]: one["outcome"] for one in map(json.loads, (tmp_path / "s.jsonl").read_text().splitlines())}
    assert found == {row["id"]: "scored" for row in rows} | {"huge": "not_scorable"}
