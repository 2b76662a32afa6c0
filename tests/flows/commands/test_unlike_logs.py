"""A set that is used on logs unlike its own says so instead of "calibrated"."""

from pathlib import Path

from small_log import small_log, write_log
from small_runs import Learnt, Pollex


def test_scores_of_logs_unlike_the_sets_own_are_not_called_calibrated(
    pollex: Pollex, learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    bad = [row for row in small_log(60, seed=5) if row["thumbs"] == "down"]
    given = ("--rubrics", learnt.rubrics, "--store", store, "--out", tmp_path / "scores.jsonl")
    unlike = pollex("score", write_log(tmp_path / "bad.jsonl", bad), *given, "--json").last
    assert unlike["unlike"]
    assert not unlike["calibrated"]
    assert "unlike those that the set was learned on" in pollex("score", tmp_path / "bad.jsonl", *given).out
    alike = pollex("score", learnt.log, *given, "--json").last
    assert not alike["unlike"]
    few = pollex("score", write_log(tmp_path / "few.jsonl", bad[:5]), *given, "--json").last
    assert "drift" not in few
