"""`runs`, `trace`, `why`, `doctor`, `domain` and `demo`: what they show of what was done."""

import io
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from small_log import Ended, small_log, write_log
from small_runs import Learnt, Pollex

from pollex.prompts.domain import DomainProfile
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.store import Store
from pollex.text import escape_controls


def test_the_version_is_told_and_a_verb_that_is_none_is_refused_with_the_nearest(
    pollex: Pollex,
) -> None:
    assert version("pollex") in pollex("--version").out
    assert pollex("nonsense").code == 2
    assert "(Did you mean 'learn'?)" in pollex("lern").err


def test_a_store_that_somebody_works_in_can_be_looked_into(pollex: Pollex, learnt: Learnt) -> None:
    alone = pollex("trace", "last", "--store", learnt.store)
    with Store.open(learnt.store):
        beside = pollex("trace", "last", "--store", learnt.store)
        assert (beside.out, beside.err) == (alone.out, "")
        ended = pollex("runs", "--store", learnt.store, "--json")
        (run,) = ended.last["runs"]
        assert (run["command"], run["status"], run["roles"]) == (
            "learn",
            "done",
            ["built-in (no LLM)"],
        )
        assert run["id"] == learnt.ended.last["run"]
        rubric = RubricSet.load(learnt.rubrics).rubrics[0]
        assert "label " in pollex("why", learnt.rubrics, rubric.id, "--store", learnt.store).out
        doctor = pollex("doctor", "--store", learnt.store, "--json")
    assert not alone.err
    assert (doctor.code, doctor.last["well"], doctor.last["roles"]) == (
        0,
        True,
        "built-in (no LLM)",
    )
    found = {finding["what"]: finding["found"] for finding in doctor.last["findings"]}
    assert "53aa51172d14" in found["embeddings"]
    assert found["store"].endswith(": 1 run")
    Path("ruined").mkdir()
    Path("ruined/store.sqlite").write_bytes(b"this is no database" * 300)
    ruined = pollex("doctor", "--store", "ruined", "--json")
    assert (ruined.code, ruined.last["well"]) == (1, False)


def test_a_trace_counts_every_role_call_of_the_run(pollex: Pollex, learnt: Learnt) -> None:
    ended = pollex("trace", "last", "--store", learnt.store, "--json")
    assert ended.last["run"]["roles"] == ["built-in (no LLM)"]
    (graph,) = ended.last["tree"]
    inner = {branch["name"]: branch for branch in graph["branches"]}
    assert (graph["name"], graph["kind"]) == ("learn", "graph")
    assert (inner["extract"]["count"], inner["judge_pool"]["count"]) == (48, 96), (
        "SAT and DSAT are asked apart"
    )
    once = {"fit_extractor", "deduplicate", "fit_judge", "select", "assess"}
    assert {name: inner[name]["count"] for name in once} == dict.fromkeys(once, 1)
    assert {"summarize_sat", "summarize_dsat"} <= inner.keys()
    assert not any(branch["errors"] for branch in graph["branches"])
    kept: Any = RubricSet.load(learnt.rubrics).calibrator
    decided = f"{kept.chosen}: {kept.why}"
    assert inner["calibrate"]["told"] == decided
    assert all(branch["ms"] >= branch["longest_ms"] > 0 for branch in graph["branches"])
    plain = pollex("trace", "last", "--store", learnt.store).out
    assert all(said in plain for said in ("extract × 48", decided[:60], "built-in (no LLM)"))


def test_a_conversations_trace_shows_turns_steps_reasons_answers_and_score(
    pollex: Pollex, learnt: Learnt
) -> None:
    def traced(*given: str) -> Ended:
        return pollex("trace", *given, "--store", learnt.store)

    reasons = json.loads(learnt.rubrics.read_text(encoding="utf-8"))["reasons"]
    arguments = ("last", "--conversation", reasons[0]["conversation_id"])
    told = traced(*arguments, "--json").last
    assert told["side"] == "train"
    assert {step["name"] for step in told["steps"]} == {"extract", "judge_pool"}
    assert reasons[0] in told["extraction"]["reasons"]
    assert told["score"]["netsat"] is not None
    plain = traced(*arguments).out
    for turn in told["conversation"]["turns"]:
        assert turn["content"] in plain
    assert "NetSAT" in plain
    for missing in ("nobody\x1b[2J", "caf\udce9"):
        ended = traced("last", "--conversation", missing)
        assert (ended.code, "\x1b" in ended.said, "unexpected" in ended.err) == (2, False, False)
    ended = traced("score-9")
    assert (ended.code, "`pollex runs` lists them" in ended.err) == (2, True)


def test_a_scoring_runs_trace_says_what_was_asked_in_words(pollex: Pollex, learnt: Learnt) -> None:
    log = write_log(Path("log.jsonl"), small_log()[:2])
    pollex("score", log, "--rubrics", learnt.rubrics, "--out", "s.csv", "--store", "s")
    trace = pollex("trace", "last", "--conversation", small_log()[0]["id"], "--store", "s")
    for rubric in RubricSet.load(learnt.rubrics).rubrics:
        assert f"{rubric.id}  {rubric.text}" in trace.out
    assert "(built-in (no LLM));" in trace.out


def test_why_leads_from_a_rubric_to_the_turns_that_it_came_from(
    pollex: Pollex, learnt: Learnt
) -> None:
    rubric = json.loads(learnt.rubrics.read_text(encoding="utf-8"))["rubrics"][0]
    told = pollex("why", learnt.rubrics, rubric["id"][:6], "--store", learnt.store, "--json").last
    assert {reason["id"] for reason in told["reasons"]} == set(rubric["reason_ids"])
    turns = {one["id"]: [turn["content"] for turn in one["messages"]] for one in small_log()}
    for id_, conversation in told["conversations"].items():
        assert [turn["content"] for turn in conversation["turns"]] == turns[id_]
    plain = pollex("why", learnt.rubrics, rubric["id"], "--store", learnt.store).out
    assert rubric["text"] in plain
    assert "built-in (no LLM)" in plain
    assert (
        rubric["quotes"][0]["text"]
        in pollex("why", learnt.rubrics, rubric["id"], "--store", "none").out
    )


@pytest.mark.nightly
def test_why_tells_conversations_by_what_the_user_began_with_and_not_by_the_prompt_they_share(
    pollex: Pollex,
) -> None:
    rows = small_log(12)
    begun = {one["id"]: one["messages"][0]["content"] for one in rows}
    for one in rows:
        one["messages"].insert(0, {"role": "system", "content": "You repair bicycles."})
    pollex("learn", write_log(Path("prompted.jsonl"), rows), "--out", "r.json", "--store", "s")
    arguments = ("why", "r.json", RubricSet.load("r.json").rubrics[0].id, "--store", "s")
    shown = pollex(*arguments).out
    conversations = pollex(*arguments, "--json").last["conversations"]
    assert conversations
    for id_ in conversations:
        assert f": {escape_controls(begun[id_], 100)}" in shown
    assert "You repair bicycles." not in shown


def test_why_shows_a_long_rubric_whole_with_its_id_behind_it_and_hostile_text_reaches_no_terminal(
    pollex: Pollex, learnt: Learnt
) -> None:
    hostile = "\x1b[2J[bold]\u202eowned[/bold]\x07"
    rubrics = json.loads(learnt.rubrics.read_text(encoding="utf-8"))
    rubrics["rubrics"][0]["text"] = long = "The assistant " + "patiently " * 80 + "explains."
    rubrics["rubrics"][1]["text"] = hostile
    Path("rubrics.json").write_text(json.dumps(rubrics), encoding="utf-8")
    id_ = rubrics["rubrics"][0]["id"]
    ended = pollex("why", "rubrics.json", id_)
    assert long[:-1] in ended.out
    assert f"\n({id_}, " in ended.out
    log = write_log(Path("log.jsonl"), small_log()[:20])
    hostile_set = "rubrics.json"
    for arguments in (
        ("why", hostile_set, "zz"),
        ("why", hostile_set, "q"),
        ("refit", log, "--rubrics", hostile_set),
    ):
        ended = pollex(*arguments)
        assert ended.said
        assert not set(ended.said) & set("\x1b\x07\u202e")


def test_why_tells_what_became_of_a_dropped_rubric_and_refuses_an_unclear_id(
    pollex: Pollex, learnt: Learnt
) -> None:
    written = json.loads(learnt.rubrics.read_text(encoding="utf-8"))
    dropped = written["dropped"]
    for one in dropped[:3]:
        arguments = ("why", learnt.rubrics, one["id"], "--store", learnt.store)
        ended = pollex(*arguments, "--json")
        assert ended.code == 0
        assert f"not in the set: {one['reason']}" in pollex(*arguments).out
        assert {reason["conversation_id"] for reason in ended.last["reasons"]} == ended.last[
            "conversations"
        ].keys()
        for reason in ended.last["reasons"]:
            turns = ended.last["conversations"][reason["conversation_id"]]["turns"]
            assert all(
                quote["text"] in turns[quote["turn"]]["content"] for quote in reason["quotes"]
            )
            assert reason["polarity"] == one["polarity"]
        assert len(ended.last["reasons"]) == one["support"]
    elsewhere = pollex("why", learnt.rubrics, dropped[0]["id"])
    assert f"its reasons are in the store of run {learnt.ended.last['run']}" in elsewhere.out
    written["dropped"][0]["support"] = 0
    Path("written.json").write_text(json.dumps(written), encoding="utf-8")
    assert "no reasons: a person wrote it" in pollex("why", "written.json", dropped[0]["id"]).out
    unclear = pollex("why", learnt.rubrics, "")
    assert (unclear.code, "an id that begins with" in unclear.err) == (1, True)


def test_a_domain_profile_is_written_from_answers_and_never_over_another(
    pollex: Pollex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(out: str) -> Ended:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        return pollex("domain", "new", "--out", out)

    lists = {"expectations": ["Be quick.", "Be right."], "notes": []}
    fields = [name for name in DomainProfile.questions() if name not in lists]
    answers = [line for name in DomainProfile.questions() for line in
               ([*lists[name], ""] if name in lists else [f"the {name}"])]  # fmt: skip
    stdin = "\n".join(answers) + "\n"
    ended = asked("mine.toml")
    assert (ended.code, ended.err) == (0, "")
    profile = DomainProfile.load(Path("mine.toml"))
    assert (profile.expectations, profile.notes) == (("Be quick.", "Be right."), ())
    assert [getattr(profile, name) for name in fields] == [f"the {name}" for name in fields]
    below = asked("our profiles/mine.toml")
    assert "--domain 'our profiles/mine.toml'" in below.out
    assert DomainProfile.load(Path("our profiles/mine.toml")) == profile
    for out, why in {
        "mine.toml/below.toml": "is not a writable folder",
        "mine.toml": "there already",
    }.items():
        refused = asked(out)
        assert (refused.code, refused.out, why in refused.err) == (2, "", True), "nothing is asked"


def test_what_the_page_for_agents_says_of_json_is_there(learnt: Learnt, pollex: Pollex) -> None:
    page = (Path(__file__).parents[3] / "docs" / "agents.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `([a-z ]+)` \| (.+) \|$", page.partition("<!-- shapes -->")[2], re.MULTILINE
    )
    shapes = {
        verb: re.findall(r"`([a-z0-9_]+)`(?![^(]*\))", re.sub(r"\([^)]*\)", "", keys))
        for verb, keys in rows
    }
    told = {
        "inspect": pollex("inspect", learnt.log, "--json"),
        "learn": learnt.ended,
        "runs": pollex("runs", "--store", learnt.store, "--json"),
        "rubrics list": pollex("rubrics", "list", learnt.rubrics, "--json"),
    }
    missing = {
        verb: set(shapes[verb]) - json.loads(one.out.splitlines()[-1]).keys()
        for verb, one in told.items()
    }
    assert missing == {verb: set() for verb in told}
