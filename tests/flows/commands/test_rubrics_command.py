"""Rubrics edited beside their set: what counts when, what is kept, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest
from protocol_server import ProtocolServer
from rubric_set_by_hand import rubric, rubric_set
from small_log import small_log, write_log
from small_runs import Learnt, Pollex

from pollex import diff_sets
from pollex.errors import BadRubrics
from pollex.rubrics.edits import get_edits_path, read_edits_file
from pollex.rubrics.rubric_set import RubricSet


@pytest.fixture
def mine(learnt: Learnt, tmp_path: Path) -> Path:
    """A rubric set of one's own, with all that lies beside it."""
    for file in learnt.rubrics.parent.glob("rubrics*"):
        if file.is_file():
            shutil.copy(file, tmp_path / file.name)
    return tmp_path / learnt.rubrics.name


def changed(path: Path, before: str, after: str) -> None:
    text = get_edits_path(path).read_text(encoding="utf-8")
    assert before in text
    get_edits_path(path).write_text(text.replace(before, after, 1), encoding="utf-8")


def test_an_edit_counts_once_it_is_fitted_its_note_stays_and_learn_does_not_overwrite_it(
    pollex: Pollex, mine: Path, learnt: Learnt, store: Path
) -> None:
    first, second = RubricSet.load(mine).rubrics[:2]
    changed(mine, f'id = "{second.id}"', f'id = "{second.id}"\n#')
    changed(mine, "on = true", "on = false")
    changed(mine, 'note = ""', 'note = "said twice"')
    assert [rubric.id for rubric in RubricSet.load(mine).off] == [first.id]
    log = write_log(Path("log.jsonl"), small_log()[:24])
    given = (log, "--rubrics", mine, "--store", store)
    refused = pollex("score", *given)
    assert (refused.code, "edited after θ was fitted" in refused.err) == (1, True)
    assert pollex("refit", *given).code == 0
    fitted = RubricSet.load(mine)
    assert first.id not in {rubric.id for rubric in fitted.rubrics}
    assert [(rubric.id, rubric.source, rubric.note) for rubric in fitted.off] == [
        (first.id, first.source, "said twice")
    ]
    assert not fitted.edited
    assert pollex("score", *given, "--out", "s.jsonl").code == 0
    before = get_edits_path(mine).read_bytes()
    refused = pollex("learn", learnt.log, "--out", mine, "--store", "none")
    assert (refused.code, "a person edited this rubric set" in refused.err) == (2, True)
    assert "pollex refit" in refused.err
    assert (get_edits_path(mine).read_bytes(), Path("none").exists()) == (before, False)
    changed(mine, "on = false", "on = true")
    assert first.id in {rubric.id for rubric in RubricSet.load(mine).rubrics}


def test_a_reworded_rubric_is_judged_as_before_or_anew_with_figures_of_both(
    pollex: Pollex, mine: Path, learnt: Learnt, store: Path
) -> None:
    first, second = RubricSet.load(mine).rubrics[:2]
    kept = pollex(
        "rubrics", "reword", mine, first.id, "The user speaks of Lisbon.", "--store", learnt.store
    )
    assert "It is still judged by" in kept.out
    anew = (
        "rubrics",
        "reword",
        mine,
        second.id,
        "The user speaks of rain.",
        "--judge-anew",
        "--store",
        learnt.store,
    )
    told = " ".join(pollex(*anew).out.split())
    assert "Judged anew: “The user speaks of rain.” is judged by likeness" in told
    assert told.count("AUC alone") == told.count("it holds in") == 2
    log = write_log(Path("log.jsonl"), small_log()[:24])
    fitted = " ".join(pollex("refit", log, "--rubrics", mine, "--store", store).out.split())
    assert fitted.count("Judged anew: ") == 1
    by = {rubric.id: rubric.source for rubric in RubricSet.load(mine).rubrics}
    assert (by[first.id], by[second.id]) == (first.source, "person")
    assert not any(entry.judge_anew for entry in read_edits_file(get_edits_path(mine))), (
        "it is fitted now"
    )


def test_rubrics_are_added_reworded_and_removed_by_their_ids_and_differences_are_told(
    pollex: Pollex, mine: Path, learnt: Learnt
) -> None:
    found = RubricSet.load(mine).rubrics
    entries = read_edits_file(get_edits_path(mine))
    assert [(e.id, e.text, e.polarity, e.on) for e in entries] == [
        (r.id, r.text, r.polarity, True) for r in found
    ]
    first, second, words = *found[:2], 'The user says "ok"\nand leaves.'
    added = pollex(
        "rubrics", "add", mine, words, "--polarity", "sat", "--note", "of Anna", "--json"
    ).last["changed"]
    assert pollex("rubrics", "reword", mine, added, "The user says good-bye.").code == 0
    assert (
        pollex("rubrics", "reword", mine, second.id[:6], second.text.replace("The", "This", 1)).code
        == 0
    )
    assert pollex("rubrics", "remove", mine, first.id).code == 0
    rows = {row["id"]: row for row in pollex("rubrics", "list", mine, "--json").last["rubrics"]}
    assert first.id not in rows
    assert (rows[added]["text"], rows[added]["note"]) == ("The user says good-bye.", "of Anna")
    assert pollex("rubrics", "remove", mine, "nothing").code == 2
    # its id is taken, whatever it says now
    assert pollex("rubrics", "add", mine, words, "--polarity", "sat").code == 2
    told = pollex("rubrics", "diff", learnt.rubrics, mine, "--json").last
    kinds = {row["id"]: row["kind"] for row in told["changes"]}
    assert (kinds[first.id], kinds[second.id], told["counts"]["added"]) == ("gone", "reworded", 1)
    assert diff_sets(learnt.rubrics, mine).counts == told["counts"]
    shown = pollex("rubrics", "diff", learnt.rubrics, mine).out
    assert "[-The-]" in shown
    assert "{+This+}" in shown


def test_edits_that_are_broken_or_in_two_places_are_refused_by_name(mine: Path) -> None:
    first = RubricSet.load(mine).rubrics[0]
    text = mine.read_text(encoding="utf-8")
    mine.write_text(
        text.replace(f'"text": "{first.text}"', '"text": "In the JSON."', 1), encoding="utf-8"
    )
    with pytest.raises(BadRubrics, match="changed in the JSON file"):
        RubricSet.load(mine)
    get_edits_path(mine).write_text(
        '[[rubrics]]\ntext = "x"\npolarity = "good"\n', encoding="utf-8"
    )
    with pytest.raises(BadRubrics, match="polarity"):
        RubricSet.load(mine)


@pytest.mark.nightly
def test_a_model_words_marked_rubrics_better(pollex: Pollex) -> None:
    texts = (
        "The assistant always names the price and books.",
        "The user fails to get the keys and leaves.",
    )
    spoken = [
        rubric(n, "sat").model_copy(update={"text": text, "source": "person"})
        for n, text in enumerate(texts)
    ]
    rubric_set(rubrics=tuple(spoken)).save(Path("r.json"))
    said = [
        {"i": 1, "texts": ["The assistant names the price.", "The assistant always books."]},
        {"i": 2, "texts": ["The user leaves without keys."]},
        {"i": 7, "texts": ["The user asks nothing."]},
    ]
    with ProtocolServer(
        script=[{"match": "marks", "do": "message", "content": json.dumps({"better": said})}]
    ) as server:
        asking = (
            "rubrics",
            "lint",
            "r.json",
            "--model",
            "m",
            "--base-url",
            server.url,
            "--store",
            "s",
            "--json",
        )
        ended = pollex(*asking)
        paid = server.counts()["paid"]
        again = pollex(*asking)
        # the endpoint is probed anew; the words aren't bought twice
        assert server.counts()["paid"] == 2 * paid - 1
    assert ended.code == 0, ended.err
    better = {mark["id"]: mark["better"] for mark in ended.last["marks"] if "joined" in mark["why"]}
    assert better == {
        "rubric0": ["The assistant names the price."],
        "rubric1": ["The user leaves without keys."],
    }
    assert (ended.last["worded_by"], again.last["marks"]) == ("m", ended.last["marks"])
