"""`pollex learn`: what it refuses, what it leaves out, what it writes."""

import io
import json
import random
import re
from pathlib import Path

import pytest
from small_log import row, same_but_for_time, small_log, write_log
from small_runs import Learnt, Pollex

from pollex import Scorer
from pollex.cli.interview import PoolEditor
from pollex.cli.session import Screen
from pollex.errors import ModelUnavailable, WrongUse
from pollex.reports.learning import list_caveats_of_report
from pollex.rubrics.edits import read_rubrics
from pollex.rubrics.headlines import list_rubrics_contradicted_by_thumbs
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics
from pollex.runs.options import LEARN_SETTINGS_BY_SYSTEM_NAME

ESCAPE = "\x1b[2J\x1b]0;owned\x07"


def test_a_bad_row_stops_the_run_until_it_is_put_up_with_and_nothing_held_out_leaves_no_figures(
    pollex: Pollex, store: Path
) -> None:
    log = write_log(Path("log.jsonl"), small_log(12))
    with log.open("a") as file:
        file.write('{"id": "broken", "messages": [{"role": "user"\n')
    two = (("sat", "thanks"), ("dsat", "useless"))
    entries = (
        f"[[rubrics]]\ntext = 'The user says \"{word}\".'\npolarity = '{side}'\n"
        for side, word in two
    )
    Path("mine.toml").write_text("".join(entries), encoding="utf-8")
    learning = ("learn", log, "--store", store, "--rubrics-from", "mine.toml", "--test-fraction", 0)
    refused = pollex(*learning)
    assert refused.code == 1
    assert f"{log}:25" in refused.err
    assert "--max-bad 1" in refused.err
    ended = pollex(*learning, "--max-bad", 1, "--json", "-v")
    assert ended.code == 3
    assert any(skipped["where"] == f"{log}:25" for skipped in ended.last["skipped"])
    assert f"{log}:25" in ended.err
    assert (ended.last["held_out"], ended.last["training"]["n"]) == (None, 24)
    assert any("Nothing was held out" in note for note in ended.last["notes"])
    assert "Nothing was held out" in ended.err
    assert "nan" not in ended.said.lower().split()


def test_what_is_learnt_is_written_told_and_kept(learnt: Learnt) -> None:
    told = learnt.ended.last
    assert len(learnt.ended.out.splitlines()) == 1
    assert "built-in (no LLM)" in learnt.ended.err
    assert all(
        caveat in learnt.ended.err
        for caveat in list_caveats_of_report(RubricSet.load(learnt.rubrics))
    )
    assert told["roles"] == dict.fromkeys(
        ("extractor", "summarizer", "deduplicator", "judge"), "built-in (no LLM)"
    )
    written = json.loads(learnt.rubrics.read_text(encoding="utf-8"))
    assert (told["theta"], told["alpha"], told["run"]) == (
        written["theta"],
        written["alpha"],
        written["run"],
    )
    kinds = [rubric["polarity"] for rubric in written["rubrics"]]
    assert (told["sat"], told["dsat"]) == (kinds.count("sat"), kinds.count("dsat"))
    assert 1 <= told["sat"] <= 10
    assert not list_rubrics_contradicted_by_thumbs(RubricSet.load(learnt.rubrics).rubrics), (
        "what went the other way has left"
    )
    assert told["policy"] == written["policy"] == "greedy"
    assert told["guaranteed_window"] == written["guaranteed"]
    assert written["guaranteed"]["n"] == told["training"]["n"]
    # it takes 46 labels on a side, and there are 48 in all
    assert written["guaranteed"]["upper"]["threshold"] is None
    # all teach, and five folds measure
    assert told["held_out"]["n"] == told["training"]["n"] == 48
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
    assert "With a guarantee" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    # by rubrics that did not see it
    reach = told["reach"]
    held_out = told["held_out"]
    assert reach["coverage"]["n"] == reach["recall_down"]["n"] == held_out["negatives"]
    assert reach["false_alarms"]["n"] == reach["recall_up"]["n"] == held_out["positives"]
    assert {figure["n"] for figure in (*reach["correlation"].values(), reach["more"])} == {
        held_out["n"]
    }
    assert reach["beside"] in {
        baseline.name for baseline in RubricSet.load(learnt.rubrics).baselines
    } - {"constant"}


@pytest.mark.nightly
def test_a_second_run_in_another_store_on_shuffled_rows_learns_the_same_to_the_last_digit(
    pollex: Pollex, learnt: Learnt
) -> None:
    rows = small_log()
    random.Random(1).shuffle(rows)
    ended = pollex("learn", write_log(Path("shuffled.jsonl"), rows), "--store", "other")
    assert ended.code == 0
    assert same_but_for_time(Path("rubrics.json")) == same_but_for_time(learnt.rubrics)


@pytest.mark.nightly
def test_odd_conversations_are_listed_counted_and_not_learnt_from(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    odd = [
        row("empty", [], thumbs="up"),
        row("one-sided", ["Anybody there?"], thumbs="down"),
        row("silent", ["", "  "], thumbs="down"),
        row("unlabelled", ["Hello.", "Hello, what can I do?"]),
        small_log()[0],
        row(f"{ESCAPE}hostile\u202e", ["", ESCAPE], thumbs="up"),
    ]
    log = write_log(Path(f"log{ESCAPE.replace('/', '')}.jsonl"), [*small_log(), *odd])
    ended = pollex("learn", log, "--store", store)
    assert ended.code == 3
    assert "53 conversations: 26 up, 26 down, 1 without a label" in ended.out
    assert "1 identical duplicate counts once" in ended.out
    assert "empty: no turn with text" in ended.out
    assert "one-sided: no assistant turn" in ended.out
    assert not set(ended.said) & set("\x1b\x07\u202e")
    written = json.loads(Path("rubrics.json").read_text(encoding="utf-8"))
    assert written["data"]["not_scorable"] == 4
    assert (written["data"]["training"], written["data"]["held_out"]) == (48, 48)
    assert [run["status"] for run in pollex("runs", "--store", store, "--json").last["runs"]] == [
        "partial"
    ]
    assert written["theta"] == json.loads(learnt.rubrics.read_text(encoding="utf-8"))["theta"]


@pytest.mark.nightly
def test_users_whose_conversations_go_together_are_so_many_and_no_more(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    rows = [one | {"user": f"u{number % 8}"} for number, one in enumerate(small_log())]
    log = write_log(Path("users.jsonl"), rows)
    alone = ("--group-field", "none")
    told = pollex("learn", log, "--store", store, "--json", "--test-fraction", "0.5").last
    # Of 8 users 4 are held out: too few for an interval, however many conversations they have.
    assert (told["held_out"]["n"], told["training"]["n"]) == (24, 24)
    assert "delta_netsat" not in told["held_out"]["intervals"]
    assert told["probabilities"]["held_out"]["intervals"] == {}
    for said in ("the 48 labeled conversations count as 8.", "need at least 5."):
        assert any(said in note for note in told["notes"])
    assert not any("count as" in note for note in learnt.ended.last["notes"])
    evaluating = ("evaluate", log, "--rubrics", "rubrics.json", "--store", store, "--json")
    alone = pollex(*evaluating, *alone)
    grouped = pollex(*evaluating)
    # 48 conversations are not too few: those of a user count as one, and that is said.
    assert "(n = 48, no interval)" in grouped.said
    assert "those of one group or with one text count as one" in " ".join(grouped.said.split())
    assert "no interval" not in alone.said.lower()
    assert alone.last["delta_netsat"] == grouped.last["delta_netsat"]
    # 4 users have thumbs up
    assert "delta_netsat" in alone.last["intervals"].keys() - grouped.last["intervals"].keys()
    gains = [one.last["probability"]["intervals"]["gain"] for one in (alone, grouped)]
    assert gains[0] != gains[1]


def test_rubrics_by_hand_are_told_how_they_are_judged_and_which_of_them_tell_nothing(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    by_hand = (
        ('The user says "thanks".', "sat"),
        ("The assistant can't do what was asked, and the user gives up on it.", "dsat"),
        ("The assistant recites a long poem about volcanoes.", "dsat"),
    )
    entries = (
        f"[[rubrics]]\ntext = {json.dumps(text)}\npolarity = '{side}'\n" for text, side in by_hand
    )
    Path("mine.toml").write_text("".join(entries), encoding="utf-8")
    ended = pollex(
        "learn",
        learnt.log,
        "--rubrics-from",
        "mine.toml",
        "--out",
        "mine.json",
        "-v",
        "--store",
        store,
    )
    assert "windows fitted without these conversations" in ended.out
    for by in (
        "the words that it quotes",
        "an event",
        "likeness of turns to its words, which is weak",
    ):
        assert f"is judged by {by}" in ended.out
    alone = {one.text: one.alone for one in RubricSet.load("mine.json").rubrics}
    ways = {text: found.by for text, found in alone.items() if found}
    assert ways == dict(
        zip((text for text, _ in by_hand), ("words", "event", "likeness"), strict=True)
    )
    assert all(found and found.auc.n == 24 and found.share.n == 24 for found in alone.values())
    assert "is answered “" in ended.out


def test_a_run_waits_at_its_pool_for_an_edited_file_and_refuses_a_wrong_one_while_it_waits_on(
    pollex: Pollex, store: Path
) -> None:
    log = write_log(Path("log.jsonl"), small_log(12))
    asked = ("learn", log, "--out", "mine.json", "--store", store, "--review", "pool")
    ended = pollex(*asked)
    pool = Path("mine.pool.toml")
    assert ended.code == 75
    assert "waits for you at its pool" in ended.err
    assert "--review pool --resume" in ended.err
    before = read_rubrics(pool)
    others = pool.read_text("utf-8").split("[[rubrics]]")[2:]
    pool.write_text("", encoding="utf-8")
    assert "Field required" in pollex(*asked, "--resume").err
    assert not Path("mine.json").exists()
    own = "The assistant says when it will be back."
    # the same text twice is one rubric
    rest = "".join(f"[[rubrics]]{one}" for one in [*others, others[0]])
    pool.write_text(f'{rest}\n[[rubrics]]\ntext = "{own}"\npolarity = "sat"\n', encoding="utf-8")
    assert pollex(*asked, "--resume", "--rubrics-from", pool).code in (0, 3)
    found = RubricSet.load(Path("mine.json"))
    known = {one.text for one in (*found.rubrics, *found.dropped)}
    assert not any("the set was better" in one.reason for one in found.dropped), (
        "labels said what stays"
    )
    assert before[0].text not in known
    assert {own, *(one.text for one in before[1:])} <= known
    assert any(one.support for one in found.dropped), "those that stayed keep their reasons"
    fork = ("--from", f"{found.run}:deduplicate", "--rubrics-from", pool, "--out", "fork.json")
    assert pollex("learn", log, "--store", store, *fork).code in (0, 3)
    assert RubricSet.load("fork.json").held_out == found.held_out


def test_a_pool_is_edited_at_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = [
        {"id": str(n), "text": f"Text {n}.", "polarity": "sat", "reasons": 1, "quote": ""}
        for n in range(1, 4)
    ]
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
        assert editor({"pool": pool, "refused": "'My own.' stands there twice"}) is None, (
            "q leaves it for later"
        )
    shown = capsys.readouterr()
    assert "take out rubrics 3 and 5" in shown.out
    assert "Not taken: 'My own.' stands there twice" in shown.out


def test_further_signals_stand_beside_rubrics_and_change_no_figure(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    rows = [
        {**row, "retried": row.get("thumbs") == "down" and n % 3 > 0}
        for n, row in enumerate(small_log())
    ]
    log = write_log(Path("log.jsonl"), rows)
    fields = ("--label-field", "thumbs", "--label-field", "retried:down")
    assert pollex("learn", log, *fields, "--out", "beside.json", "--store", store).code == 0
    alone, beside = (RubricSet.load(path) for path in (learnt.rubrics, Path("beside.json")))
    assert (alone.theta, alone.held_out) == (beside.theta, beside.held_out)
    assert [rubric.id for rubric in alone.rubrics] == [rubric.id for rubric in beside.rubrics]
    assert {one.signal for rubric in beside.rubrics for one in rubric.signals} == {"retried:down"}
    assert not any(rubric.signals for rubric in alone.rubrics)
    (page,) = (path for path in Path().glob("*.html"))
    assert re.search(
        r"also [\d.]+ times as many “retried”: \d+ % of \d+, \d+ % of \d+ elsewhere",
        page.read_text("utf-8"),
    )


MODEL = ("--model", "m", "--base-url", "http://127.0.0.1:1/v1")
TOLD = {
    "rubicon": "--method rubicon --set without=built-in --set prompts=paper --set reasons=3",
    "spur": "--method spur --set without=ds,cdp --set prompts=paper",
    "generic": "--rubrics-from generic",
    "adapted": "--rubrics-from generic --set adapt=yes",
}


def planned(pollex: Pollex, learnt: Learnt, *given: str) -> str:
    ended = pollex("learn", learnt.log, "--dry-run", "--store", "new", *given)
    assert ended.code == 0, ended.err
    return next(line for line in ended.out.splitlines() if line.startswith("As "))


def test_a_plan_tells_what_a_system_sets_and_what_is_given_wins_whatever_its_place(
    pollex: Pollex, learnt: Learnt
) -> None:
    assert TOLD.keys() == set(LEARN_SETTINGS_BY_SYSTEM_NAME)
    for system, more in TOLD.items():
        scale = "numeric" if system == "spur" else "likert-domain"
        paper = f"As {system}: --set policy=greedy --budget 10 --set scale={scale} "
        assert planned(pollex, learnt, "--as", system, *MODEL) == paper + more
    for given in (
        ("--set", "policy=ucb", "--as", "rubicon"),
        ("--as", "rubicon", "--set", "policy=ucb"),
    ):
        told = planned(pollex, learnt, *given, "--budget", "6", *MODEL)
        assert "--set policy=ucb --budget 6 --set scale=likert-domain" in told


def test_reasons_batches_and_rubrics_a_batch_change_the_plan(
    pollex: Pollex, learnt: Learnt
) -> None:
    def calls(*given: str) -> dict[str, int]:
        plan = pollex(
            "learn", learnt.log, "--dry-run", "--store", "new", "--json", *MODEL, *given
        ).last["plan"]
        return {stage: plan[stage]["calls"] for stage in ("summarize", "deduplicate")}

    usual = calls()
    assert calls("--set", "reasons=1")["summarize"] < usual["summarize"]
    assert calls("--set", "mini_batch=10")["summarize"] > usual["summarize"]
    assert calls("--set", "new_rubrics=5")["deduplicate"] * 2 == usual["deduplicate"]


def test_help_shows_groups_and_help_all_the_settings_too(pollex: Pollex) -> None:
    few = pollex("learn", "--help").out
    every = pollex("learn", "--help-all").out
    assert all(f"\n{title}:" in few for title in ("Data", "Rubrics", "Model", "Limits", "Output"))
    assert "on_duplicate" in every
    assert "on_duplicate" not in few
    assert "\n  recipe " in pollex("calibrate", "fit", "--help-all").out
    assert pollex("calibrate", "--help-all").out == pollex("calibrate", "--help").out


@pytest.mark.nightly
def test_a_setting_counts(pollex: Pollex, learnt: Learnt, store: Path) -> None:
    assert (
        pollex(
            "learn", learnt.log, "--set", "policy=greedy", "--set", "alpha=1", "--store", store
        ).code
        == 0
    )
    found = RubricSet.load("rubrics.json")
    assert (found.policy, found.alpha) == ("greedy", 1.0)


def test_an_embedding_model_that_a_set_names_is_not_loaded_before_the_user_names_it_too(
    pollex: Pollex, learnt: Learnt
) -> None:
    Path("model").mkdir()
    Path("model/config.json").write_text("{broken")
    found = RubricSet.load(learnt.rubrics)
    judge = found.judge.model_copy(update={"options": JudgeSettings(embedding_model="./model")})
    theirs = found.model_copy(update={"judge": judge})
    theirs.save(Path("theirs.json"))
    log = write_log(Path("log.jsonl"), small_log()[:4])
    for verb in (["score"], ["evaluate"], ["refit"], ["label", "next"]):
        arguments = (*verb, learnt.log, "--rubrics", "theirs.json", "--store", "new")
        for plan in ((), ("--dry-run",)):
            ended = pollex(*arguments, *plan)
            assert (ended.code, "the rubric set's judge embeds with './model'" in ended.err) == (
                2,
                True,
            ), verb
    confirmed = ("--rubrics", "theirs.json", "--store", "new", "--set", "embedding_model=./model")
    assert pollex("score", log, *confirmed).code == 0  # the set's rubrics read no vectors
    ended = pollex("label", "next", learnt.log, *confirmed)
    assert (ended.code, "can't be loaded" in ended.err) == (1, True)
    # a set whose judge is a model, with that model named
    model = judge.model_copy(update={"kind": "llm", "name": "m"})
    found.model_copy(update={"judge": model}).save(Path("of-a-model.json"))
    for verb in (["score"], ["evaluate"], ["refit"], ["label", "next"]):
        Path("scores.parquet").unlink(missing_ok=True)  # another store doesn't know whose it is
        at = ("--store", "newer", "--base-url", "http://127.0.0.1:9/v1")
        ended = pollex(*verb, learnt.log, "--rubrics", "of-a-model.json", *at)
        assert (ended.code, "judge embeds with './model'" in ended.err) == (2, True), ended.err
    # which reads vectors
    rubrics = (found.rubrics[0].model_copy(update={"source": "person"}), *found.rubrics[1:])
    theirs = theirs.model_copy(update={"rubrics": rubrics, "rubrics_digest": hash_rubrics(rubrics)})
    with pytest.raises(WrongUse, match="judge embeds with") as caught:
        Scorer(theirs)
    assert "embedding_model='./model'" in caught.value.advice
    with pytest.raises(ModelUnavailable, match="can't be loaded"):
        Scorer(theirs, embedding_model="./model").score(small_log()[0])
