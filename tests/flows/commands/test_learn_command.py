"""`pollex learn`: what it refuses, what it leaves out, what it writes."""

import io
import json
import random
import re
from pathlib import Path

import pytest
from small_log import row, same_but_for_time, small_log, write_log
from small_runs import Learnt, Pollex

from pollex.cli.interview import PoolEditor
from pollex.cli.session import Screen
from pollex.reports.learning import caveats
from pollex.rubrics.edits import read_rubrics
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection.policies import POLICIES
from pollex.usecases.learn import LearnRubrics
from pollex.usecases.use_case import options_of

ESCAPE = "\x1b[2J\x1b]0;owned\x07"


def test_a_bad_row_stops_the_run_until_it_is_put_up_with(pollex: Pollex, tmp_path: Path, store: Path) -> None:
    log = write_log(tmp_path / "log.jsonl", small_log())
    with log.open("a") as file:
        file.write('{"id": "broken", "messages": [{"role": "user"\n')
    refused = pollex("learn", log, "--store", store)
    assert refused.code == 1
    assert f"{log}:49" in refused.err
    assert "--max-bad 1" in refused.err
    ended = pollex("learn", log, "--store", store, "--max-bad", 1, "--json")
    assert ended.code == 3
    assert any(skipped["where"] == f"{log}:49" for skipped in ended.last["skipped"])
    assert f"{log}:49" in ended.err


def test_help_lists_every_policy() -> None:
    (told,) = [one.help for one in options_of(LearnRubrics) if one.name == "policy"]
    assert set(re.findall(r"[a-z_]+", told)) >= POLICIES.keys()


def test_what_is_learnt_is_written_told_and_kept(learnt: Learnt) -> None:
    told = learnt.ended.last
    assert len(learnt.ended.out.splitlines()) == 1
    assert "built-in (no LLM)" in learnt.ended.err
    assert all(caveat in learnt.ended.err for caveat in caveats(RubricSet.load(learnt.rubrics)))
    assert told["roles"] == dict.fromkeys(("extractor", "summarizer", "deduplicator", "judge"), "built-in (no LLM)")
    written = json.loads(learnt.rubrics.read_text(encoding="utf-8"))
    assert (told["theta"], told["alpha"], told["run"]) == (written["theta"], written["alpha"], written["run"])
    assert (told["sat"], told["dsat"]) == tuple(
        sum(rubric["polarity"] == kind for rubric in written["rubrics"]) for kind in ("sat", "dsat")
    )
    assert 1 <= told["sat"] <= 10
    assert told["policy"] == written["policy"] == "greedy"
    assert told["guaranteed_window"] == written["guaranteed"]
    assert written["guaranteed"]["n"] == told["training"]["n"]
    assert written["guaranteed"]["upper"]["threshold"] is None  # it takes 46 labels on a side, and there are 48 in all
    assert "With a guarantee" in Path(told["report"]).read_text(encoding="utf-8")
    assert told["held_out"]["n"] == told["training"]["n"] == 48  # all teach, and five folds measure
    assert written["data"]["folds"] == 5
    reasons = {reason["id"]: reason for reason in written["reasons"]}
    turns = {one["id"]: [turn["content"] for turn in one["messages"]] for one in small_log()}
    for rubric in written["rubrics"]:
        assert rubric["reason_ids"]
        for id_ in rubric["reason_ids"]:
            for quote in reasons[id_]["quotes"]:
                assert quote["text"] in turns[quote["conversation_id"]][quote["turn"]]
    page = Path(told["report"]).read_text(encoding="utf-8")
    assert "<html" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def test_how_far_the_set_reaches_is_measured_by_rubrics_that_did_not_see_it(learnt: Learnt) -> None:
    reach, held_out = learnt.ended.last["reach"], learnt.ended.last["held_out"]
    assert reach["coverage"]["n"] == reach["recall_down"]["n"] == held_out["negatives"]
    assert reach["false_alarms"]["n"] == reach["recall_up"]["n"] == held_out["positives"]
    assert {figure["n"] for figure in reach["correlation"].values()} == {held_out["n"]}
    names = {baseline.name for baseline in RubricSet.load(learnt.rubrics).baselines}
    assert reach["beside"] in names - {"constant"}
    assert reach["more"]["n"] == held_out["n"]


@pytest.mark.nightly
def test_a_second_run_in_another_store_on_shuffled_rows_learns_the_same_to_the_last_digit(
    pollex: Pollex, tmp_path: Path, learnt: Learnt
) -> None:
    rows = small_log()
    random.Random(1).shuffle(rows)
    ended = pollex("learn", write_log(tmp_path / "shuffled.jsonl", rows), "--store", tmp_path / "other")
    assert ended.code == 0
    assert same_but_for_time(tmp_path / "rubrics.json") == same_but_for_time(learnt.rubrics)


@pytest.mark.nightly
def test_nothing_held_out_is_said_and_leaves_no_figures(pollex: Pollex, learnt: Learnt, store: Path) -> None:
    given = ("--rubrics-from", "generic", "--test-fraction", 0)  # which are fitted alone, so nothing is made anew
    ended = pollex("learn", learnt.log, *given, "--store", store, "--json", "-v")
    assert ended.code == 0
    assert ended.last["held_out"] is None
    assert ended.last["training"]["n"] == 48
    assert any("Nothing was held out" in note for note in ended.last["notes"])
    assert "Nothing was held out" in ended.err
    assert "nan" not in ended.said.lower().split()


@pytest.mark.nightly
def test_odd_conversations_are_listed_counted_and_not_learnt_from(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    odd = [
        row("empty", [], thumbs="up"),
        row("one-sided", ["Anybody there?"], thumbs="down"),
        row("silent", ["", "  "], thumbs="down"),
        row("unlabelled", ["Hello.", "Hello, what can I do?"]),
        small_log()[0],
        row(f"{ESCAPE}hostile\u202e", ["", ESCAPE], thumbs="up"),
    ]
    log = write_log(tmp_path / f"log{ESCAPE.replace('/', '')}.jsonl", [*small_log(), *odd])
    ended = pollex("learn", log, "--store", store)
    assert ended.code == 3
    assert "53 conversations: 26 up, 26 down, 1 without a label" in ended.out
    assert "1 identical duplicate counts once" in ended.out
    assert "empty: no turn with text" in ended.out
    assert "one-sided: no assistant turn" in ended.out
    assert not set(ended.said) & set("\x1b\x07\u202e")
    written = json.loads((tmp_path / "rubrics.json").read_text(encoding="utf-8"))
    assert written["data"]["not_scorable"] == 4
    assert (written["data"]["training"], written["data"]["held_out"]) == (48, 48)
    assert [run["status"] for run in pollex("runs", "--store", store, "--json").last["runs"]] == ["partial"]
    assert written["theta"] == json.loads(learnt.rubrics.read_text(encoding="utf-8"))["theta"]


@pytest.mark.nightly
def test_users_whose_conversations_go_together_are_so_many_and_no_more(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    rows = [one | {"user": f"u{number % 8}"} for number, one in enumerate(small_log())]
    log, rubrics = write_log(tmp_path / "users.jsonl", rows), tmp_path / "rubrics.json"
    half = ("--test-fraction", "0.5")
    told = pollex("learn", log, "--out", rubrics, "--group-field", "user", "--store", store, "--json", *half).last
    # Of 8 users 4 are held out: too few for an interval, however many conversations they have.
    assert (told["held_out"]["n"], told["training"]["n"]) == (24, 24)
    assert "delta_netsat" not in told["held_out"]["intervals"]
    assert any("the 48 labeled conversations count as 8." in n for n in told["notes"])
    assert any("need at least 5." in note for note in told["notes"])
    assert told["probabilities"]["held_out"]["intervals"] == {}
    assert not any("count as" in note for note in learnt.ended.last["notes"])
    by_itself, by_user = (
        pollex("evaluate", log, "--rubrics", rubrics, *by, "--store", store, "--json")
        for by in ((), ("--group-field", "user"))
    )
    alone, grouped = by_itself.last, by_user.last
    # 48 conversations are not too few: those of a user count as one, and that is said.
    assert "(n = 48, no interval)" in by_user.said
    assert "those of one group or with one text count as one" in " ".join(by_user.said.split())
    assert "no interval" not in by_itself.said.lower()
    assert alone["delta_netsat"] == grouped["delta_netsat"]
    assert "delta_netsat" in alone["intervals"].keys() - grouped["intervals"].keys()  # 4 users have thumbs up
    assert alone["probability"]["intervals"]["gain"] != grouped["probability"]["intervals"]["gain"]


def test_rubrics_by_hand_are_told_how_they_are_judged_and_which_of_them_tell_nothing(
    pollex: Pollex, learnt: Learnt, tmp_path: Path
) -> None:
    by_hand = (
        ('The user says "thanks".', "sat"),
        ("The assistant can't do what was asked, and the user gives up on it.", "dsat"),
        ("The assistant recites a long poem about volcanoes.", "dsat"),
    )
    entries = (f"[[rubrics]]\ntext = {json.dumps(text)}\npolarity = '{side}'\n" for text, side in by_hand)
    (tmp_path / "mine.toml").write_text("".join(entries), encoding="utf-8")
    ended = pollex("learn", learnt.log, "--rubrics-from", "mine.toml", "--out", "mine.json", "-v", "--store", "s")
    for by in ("the words that it quotes", "an event", "likeness of turns to its words, which is weak"):
        assert f"is judged by {by}" in ended.out
    alone = {one.text: one.alone for one in RubricSet.load("mine.json").rubrics}
    ways = {text: found.by for text, found in alone.items() if found}
    assert ways == dict(zip((text for text, _ in by_hand), ("words", "event", "likeness"), strict=True))
    assert all(found and found.auc.n == 24 and found.share.n == 24 for found in alone.values())
    assert "is answered “" in ended.out


def test_a_run_waits_at_its_pool_for_an_edited_file_and_refuses_a_wrong_one_while_it_waits_on(
    pollex: Pollex, tmp_path: Path, store: Path
) -> None:
    log = write_log(tmp_path / "log.jsonl", small_log())
    asked = ("learn", log, "--out", "mine.json", "--store", store, "--review", "pool")
    ended = pollex(*asked)
    pool = tmp_path / "mine.pool.toml"
    assert ended.code == 130
    assert "waits for you at its pool" in ended.err
    assert "--review pool --resume" in ended.err
    before = read_rubrics(pool)
    first, *others = pool.read_text("utf-8").split("[[rubrics]]")[1:]
    for wrong, why in (("", "Field required"), (f"[[rubrics]]{first}" * 2, "occurs twice")):
        pool.write_text(wrong, encoding="utf-8")
        assert why in pollex(*asked, "--resume").err
        assert not (tmp_path / "mine.json").exists()
    own = "The assistant says when it will be back."
    rest = "".join(f"[[rubrics]]{one}" for one in others)
    pool.write_text(f'{rest}\n[[rubrics]]\ntext = "{own}"\npolarity = "sat"\n', encoding="utf-8")
    assert pollex(*asked, "--resume").code in (0, 3)
    found = RubricSet.load(tmp_path / "mine.json")
    known = {one.text for one in (*found.rubrics, *found.dropped)}
    assert before[0].text not in known
    assert {own, *(one.text for one in before[1:])} <= known
    assert any(one.reason_ids for one in found.rubrics), "those that stayed keep their reasons"


def test_a_pool_is_edited_at_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pool = [{"id": str(n), "text": f"Text {n}.", "polarity": "sat", "reasons": 1, "quote": ""} for n in range(1, 4)]
    lines = "what\n2 9\n1\n1: Other words.\n+ dsat My own.\n\nq\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    with Screen() as screen:
        editor = PoolEditor(screen)
        rows = editor({"pool": pool})
        assert [(row["id"], row["text"], row["polarity"]) for row in rows or ()] == [
            ("2", "Other words.", "sat"),
            ("3", "Text 3.", "sat"),
            ("", "My own.", "dsat"),
        ]
        assert editor({"pool": pool, "refused": "'My own.' stands there twice"}) is None, "q leaves it for later"
    shown = capsys.readouterr()
    assert "take out rubrics 3 and 5" in shown.out
    assert "Not taken: 'My own.' stands there twice" in shown.out
