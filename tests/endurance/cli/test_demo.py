"""`pollex demo`, on the log that comes with pollex."""

import json
from pathlib import Path

import pytest
from small_runs import Pollex

from pollex.rubrics.rubric_set import RubricSet


def test_the_demo_learns_and_scores_the_bundled_log(pollex: Pollex, tmp_path: Path) -> None:
    ended = pollex("demo", "--json", "--out", "my demo")
    assert ended.code == 0
    assert "pollex trace last --store 'my demo/.pollex'" in ended.err
    learnt, scored = map(json.loads, ended.out.splitlines())
    # all teach, and folds measure
    assert learnt["held_out"]["n"] == learnt["training"]["n"] == 400
    assert scored["outcomes"] == {"scored": 480}
    rubrics = RubricSet.load(tmp_path / "my demo" / "rubrics.json")
    leading = [rubric for rubric in rubrics.rubrics if rubric.headlined]
    assert rubrics.reach
    assert [point.labels for point in rubrics.reach.curve] == [80, 160, 240, 320]
    assert rubrics.reach.curve[-1].auc.value == pytest.approx(learnt["held_out"]["auc"])
    assert rubrics.reach.more.low is not None
    assert {rubric.stands for rubric in leading} <= {"proven", "likely"}
    assert "dsat" in {rubric.polarity for rubric in leading}
    assert all(rubric.quotes and rubric.worth for rubric in leading)
    assert "built-in (no LLM)" in ended.err
    made = {path.name for path in (tmp_path / "my demo").iterdir()}
    (arrays,) = (name for name in made if name.endswith(".safetensors"))
    assert made - {arrays} == {
        "rubrics.json",
        "rubrics.rubrics.toml",
        "report.html",
        "scores.jsonl",
        "scores.html",
        ".pollex",
    }


@pytest.mark.nightly  # test_remedy_run.py proves changes of planted prompts
def test_without_a_recording_the_demo_proves_a_change_of_a_planted_assistants_prompt_and_says_so(
    pollex: Pollex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the package alone
    monkeypatch.setattr("pollex.cli.demo.find_bundled_recording", lambda: tmp_path)
    ended = pollex("demo", "--remedy", "--json")
    assert ended.code == 0, ended.err
    assert "This assistant is planted" in ended.err
    assert "nothing of any model" in ended.err
    found = ended.last
    assert (found["verdict"], found["level"]) == ("judged better", "R")
    assert "-" not in {line[:1] for line in found["edits"][0]["diff"].splitlines()[2:]}
    assert (tmp_path / "pollex-demo" / "remedy.html").exists()
