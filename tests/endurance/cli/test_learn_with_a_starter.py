"""`learn --starter`: a set that was learned elsewhere, and few labels of one's own."""

import json
from pathlib import Path

import pytest
from small_log import small_log, write_log
from small_runs import Learnt, Pollex

from pollex.rubrics.rubric_set import RubricSet
from pollex.services.rejudging import score_by_rubrics
from pollex.services.scorer import Scorer
from pollex.store.resume import read_answers, read_facts_by_id
from pollex.store.store import Store


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Ten labels, and twenty conversations without one."""
    rows = small_log(15, seed=9)
    for place, row in enumerate(rows):
        row["messages"][0]["content"] += f" My number is {place}."
        row["thumbs"] = row["thumbs"] if place < 10 else None
    return write_log(tmp_path / "few.jsonl", rows)


def test_a_starter_goes_along_in_the_set_and_everything_knows_it(
    pollex: Pollex, learnt: Learnt, few: Path, store: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new.json"
    arguments = (
        "learn",
        few,
        "--starter",
        learnt.rubrics,
        "--test-fraction",
        0,
        "--out",
        out,
        "--store",
        store,
    )
    ended = pollex(*arguments, "--json")
    assert ended.code == 0, ended.err
    found = RubricSet.load(out)
    assert found.starter is not None
    with Store.open(store, read_only=True) as kept:
        assert (
            RubricSet.parse(
                read_facts_by_id(kept, found.run, "rubric_set")[found.rubrics_digest]
            ).starter
            == found.starter
        )
    assert len(found.starter.rubrics) == len(RubricSet.load(learnt.rubrics).rubrics)
    assert set(found.starter.auc) == {"own", "starter", "both"}
    ids = {one.id for one in found.starter.rubrics}
    assert found.calibrator is not None
    assert ids < set(found.calibrator.rubrics), "one model reads the answers of both"
    assert any(
        note.startswith("Starter rubrics.json: AUC of this set alone")
        for note in ended.last["notes"]
    )

    assert "Starter rubrics.json: AUC of this set alone" in ended.err

    scored = pollex(
        "score",
        learnt.log,
        "--rubrics",
        out,
        "--out",
        tmp_path / "s.jsonl",
        "--store",
        store,
        "--json",
    )
    assert scored.code == 0, scored.err
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    thumbs = {
        row["id"]: row["thumbs"] for row in map(json.loads, learnt.log.read_text().splitlines())
    }
    good, bad = (
        [row["probability"] for row in rows if thumbs[row["id"]] == way] for way in ("up", "down")
    )
    # ten labels tell little, and the model knows it
    assert sum(good) / len(good) > sum(bad) / len(bad) + 0.1
    first = json.loads(learnt.log.read_text().splitlines()[0])
    alone = Scorer.load(out).score(first["messages"])
    assert alone.probability == pytest.approx(rows[0]["probability"])

    id_ = found.starter.rubrics[0].id
    assert found.starter.rubrics[0].text.rstrip(".") in " ".join(
        pollex("why", out, id_, "--store", store).out.split()
    )
    evaluated = pollex("evaluate", learnt.log, "--rubrics", out, "--store", store, "--json")
    assert evaluated.last["probability_auc"]["value"] > 0.7
    again = pollex(
        "refit", few, "--rubrics", out, "--out", tmp_path / "again.json", "--store", store
    )
    assert again.code == 0, again.err
    refitted = RubricSet.load(tmp_path / "again.json")
    assert refitted.starter is not None
    assert Scorer(refitted).score(first["messages"]).probability == pytest.approx(
        alone.probability, abs=1e-9
    )
    with Store.open(store, read_only=True) as opened:
        answers = read_answers(opened, scored.last["run"], ids=[first["id"]])
    (drafted,) = score_by_rubrics(found, found.rubrics, answers)
    assert drafted.probability == pytest.approx(alone.probability, abs=1e-9)


def test_without_a_starter_ten_labels_give_hints_alone(
    pollex: Pollex, few: Path, store: Path, tmp_path: Path
) -> None:
    out = tmp_path / "hints.json"
    ended = pollex("learn", few, "--store", store, "--test-fraction", 0, "--out", out)
    assert ended.code == 0, ended.err
    assert "to-label.jsonl" in ended.out
    assert "as hints without figures" in ended.out
    assert RubricSet.load(out).rubrics


def test_a_starter_of_another_judge_is_refused_with_words(
    pollex: Pollex, learnt: Learnt, few: Path, store: Path, tmp_path: Path
) -> None:
    stored = json.loads(learnt.rubrics.read_text())
    stored["judge"] |= {"kind": "llm", "name": "big-model", "learned": {}}
    stored["calibrator"] = None
    other = tmp_path / "other.json"
    other.write_text(json.dumps(stored))
    ended = pollex(
        "learn", few, "--starter", other, "--out", tmp_path / "new.json", "--store", store
    )
    assert "the starter other.json is judged by the model big-model" in ended.err
    assert "--model big-model" in ended.err
