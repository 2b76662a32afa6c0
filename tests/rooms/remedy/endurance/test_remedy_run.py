"""`pollex remedy run`: a team's own change of the prompt is proved on replies that are made now."""

import asyncio
import json
import random
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import duckdb
import pytest
from langchain_core.runnables import RunnableConfig
from protocol_server import ProtocolServer
from remedy_log import TARGET, read_table_log, table_log, table_rubrics
from small_log import Ended, write_log
from small_runs import Pollex
from web_site import client_of, made_app

import pollex as api
from pollex.conversations.conversation import Conversation, Label, ToolCall, Turn
from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.rooms.remedy.agents.assistant import (
    AssistantReply,
    CallableAssistant,
    FileAssistant,
    NoReply,
    ReplyRequest,
    ask_with_tools,
    build_assistant,
)
from pollex.rooms.remedy.conversations.reply_context import ReplyContext
from pollex.rubrics.answers import NEVER_CAME_UP_OPTION
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.rubrics.records import ChosenRubric, JudgeRecord
from pollex.rubrics.rubric import Quote, Reason
from pollex.rubrics.rubric_set import hash_rubrics
from pollex.store.store import Store

PROMPT = "You book tables.\n<!-- keep -->\nNever promise a refund.\n<!-- keep -->\nBe short.\n"
EDIT = "@@ -5,1 +5,2 @@\n Be short.\n+Offer another time where one fails.\n"
SHOP = """
import random

FAILS = "I'm sorry, I wasn't able to book a table for Friday at 6 pm."
WORKS = "I've booked a table for Friday at 6 pm. It costs $40."


def answer(messages, system):
    rng = random.Random(f"shop {messages}{system}")  # in whatever order replies are asked for
    chance = rng.random()
    if "REFUSE" in system and chance < 0.5:
        raise RuntimeError("no answer")
    mends = "another time" in system
    ends = " Is there anything else that I can do?" * rng.randint(0, 2)  # length is to tell nothing of success
    return (FAILS if chance < (0.1 if mends else 0.7) else WORKS) + ends


def worse(messages, system):
    return answer(messages, "" if "another time" in system else "another time")


def noise(messages, system):
    return random.choice([FAILS, WORKS])
"""
Run = Callable[..., Ended]


@pytest.fixture
def proving(pollex: Pollex, tmp_path: Path) -> Run:
    """Runs the command on a log of 160 conversations, with a shop of one's own."""
    table_rubrics(read_table_log(tmp_path / "log.jsonl", 160)).save(tmp_path / "rubrics.json")
    for name, text in {"system.md": PROMPT, "my.diff": EDIT, "shop.py": SHOP}.items():
        (tmp_path / name).write_text(text)
    known = (
        "log.jsonl",
        "--rubrics",
        "rubrics.json",
        "--group-field",
        "user",
        "--prompt",
        "system.md",
        "--json",
    )

    def run(*more: object, edit: str = "my.diff") -> Ended:
        return pollex("remedy", "run", *known, "--target", TARGET, "--edit", edit, *more)

    return run


def test_a_diff_that_does_not_apply_is_refused_with_its_hunk_and_line(
    proving: Run, tmp_path: Path
) -> None:
    (tmp_path / "bad.diff").write_text(EDIT.replace(" Be short.", " Be long."))
    ended = proving("--assistant", "shop:answer", edit="bad.diff")
    assert ended.code == 1
    assert (
        "bad.diff: hunk 1 doesn't apply at line 5: the prompt has 'Be short.', the diff 'Be long.'"
        in ended.err
    )


def test_a_protected_line_and_a_place_for_a_value_stay(proving: Run, tmp_path: Path) -> None:
    (tmp_path / "new.md").write_text(PROMPT.replace("Never promise a refund.\n", ""))
    ended = proving("--assistant", "shop:answer", edit="new.md")
    assert ended.code == 1
    assert "protected lines are changed, the first: 'Never promise a refund.'" in ended.err
    (tmp_path / "new.md").write_text(f"{PROMPT}Today is {{date}}.\n")
    assert (
        "places for values are changed" in proving("--assistant", "shop:answer", edit="new.md").err
    )
    (tmp_path / "new.md").write_text(PROMPT)
    assert "it changes nothing" in proving("--assistant", "shop:answer", edit="new.md").err


def test_with_several_prompts_a_change_names_its_own_and_has_a_name_of_its_own(
    proving: Run, tmp_path: Path
) -> None:
    (tmp_path / "app.md").write_text("Be kind.\n")
    several = ("--assistant", "shop:answer", "--prompt", "app=app.md")
    assert "the changes name no prompt, or several" in proving(*several, edit="web=my.diff").err
    assert "hunk 1 doesn't apply at line 5" in proving(*several, edit="app=my.diff").err
    assert proving(*several, "--dry-run").code == 0
    assert (
        "two are one: old, my, my"
        in proving("--assistant", "shop:answer", "--edit", "v2/my.md").err
    )


def test_too_few_failing_contexts_are_said_with_how_many_are_missing(
    proving: Run, pollex: Pollex, tmp_path: Path
) -> None:
    table_rubrics(read_table_log(tmp_path / "log.jsonl", 40)).save(tmp_path / "rubrics.json")
    ended = proving("--assistant", "shop:answer")
    assert ended.code == 1
    assert "20 failing replies of 20 users are too few for a proof" in ended.err
    assert "10 failing replies more" in " ".join(ended.err.split())


def test_an_assistant_that_can_not_be_imported_is_said(proving: Run) -> None:
    assert "can't be imported" in proving("--assistant", "shop:nobody").err
    assert "name the assistant once" in proving().err


def test_a_change_that_mends_is_judged_better_and_never_called_better(
    proving: Run, tmp_path: Path
) -> None:
    ended = proving("--assistant", "shop:answer")
    assert ended.code == 0, ended.err
    found = ended.last
    assert found["verdict"] == "judged better"
    assert found["level"] == "R"
    assert found["edits"][0]["primary"]["effect"]["low"] > 0
    assert "thumbs" in found["notes"][0]
    rows = duckdb.sql(f"SELECT * FROM '{tmp_path}/remedy-pairs.parquet'").df()
    rows = rows[rows["trial"] == "prove"]
    assert set(rows["arm"]) == {"old", "new"}
    assert (rows.groupby("context").size() == 4).all()
    assert (tmp_path / "remedy-edits" / "1.diff").read_text().count("+Offer") == 1
    again = proving("--assistant", "shop:answer").last
    # the same proof once more is none on used conversations
    assert (found["proof"], again["proof"]) == (1, 1)


def test_replies_that_are_made_anew_are_another_proof_and_the_same_ones_are_not(
    proving: Run,
) -> None:
    asked = ("noise", "noise", "answer", "noise", "answer")
    found = [proving("--assistant", f"shop:{name}").last for name in asked]
    assert [one["proof"] for one in found] == [1, 2, 3, 4, 3]
    assert len({one["registered"] for one in found}) == 1
    assert found[2]["edits"] == found[4]["edits"]


def test_a_harmful_change_ends_with_4_or_finds_no_difference_and_another_edit_is_the_second_proof(
    proving: Run, tmp_path: Path
) -> None:
    ended = proving("--assistant", "shop:worse")
    assert ended.last["verdict"] == "worse"
    assert ended.code == 4
    (tmp_path / "other.diff").write_text(EDIT.replace("Offer", "Always offer"))
    second = proving("--assistant", "shop:answer", edit="other.diff").last
    assert second["proof"] == 2
    assert any("its level is 0.025" in note for note in second["notes"])


def test_a_proof_of_another_store_counts_where_its_result_stands_in_the_folder(
    proving: Run, tmp_path: Path
) -> None:
    ledger = json.loads(
        (proving("--assistant", "shop:answer") and tmp_path / "remedy.json").read_text()
    )["ledger"]
    assert (
        ledger["number"],
        len(ledger["hashes"]) > 0,
        bool(ledger["log"] and ledger["prompt"]),
    ) == (1, True, True)
    (tmp_path / "remedy.json").rename(tmp_path / "earlier.json")
    (tmp_path / "other.diff").write_text(EDIT.replace("Offer", "Always offer"))
    # another store doesn't know whose the files of the first are
    fresh = ("--assistant", "shop:answer", "--store", tmp_path / "fresh", "--out", "fresh.json")
    assert proving(*fresh, edit="other.diff").last["proof"] == 2
    (tmp_path / "earlier.json").unlink()
    (tmp_path / "fresh.json").unlink()
    third = ("--assistant", "shop:answer", "--store", tmp_path / "third", "--out", "third.json")
    found = proving(*third, edit="other.diff").last
    assert found["proof"] == 1
    assert any("can't be known" in note for note in found["notes"])


def test_no_conversation_in_a_case_is_in_a_proof_and_a_run_goes_on_without_later_ones(
    proving: Run, pollex: Pollex, tmp_path: Path
) -> None:
    cases = (
        "remedy",
        "cases",
        "log.jsonl",
        "--rubrics",
        "rubrics.json",
        "--group-field",
        "user",
        "--to",
        "jsonl",
    )
    assert pollex(*cases, "--target", TARGET).code == 0
    known = {
        json.loads(line)["conversation"]
        for line in (tmp_path / "cases" / "cases.jsonl").read_text().splitlines()
    }
    assert len(known) > 10
    asked = ("--assistant", "shop:answer", "--set", "seed=1")
    assert proving(*asked).code == 0
    proved = duckdb.sql(
        f"SELECT DISTINCT conversation FROM '{tmp_path}/remedy-pairs.parquet'"
    ).fetchall()
    assert not known & {id_ for (id_,) in proved}
    assert pollex(*cases, "--all").code == 0
    assert proving(*asked, "--resume").code == 0


def test_what_a_prompt_makes_the_assistant_refuse_is_counted_and_no_score(
    proving: Run, tmp_path: Path
) -> None:
    (tmp_path / "refusing.diff").write_text(EDIT.replace("Offer", "REFUSE or offer"))
    found = proving("--assistant", "shop:answer", edit="refusing.diff").last
    assert found["missing"]["new"]["error"] > 20
    assert found["missing"]["old"] == {}
    assert found["verdict"] == "worse"
    worst = found["edits"][0]["primary"]["worst"]["value"]
    seen = found["edits"][0]["primary"]["effect"]["value"]
    assert worst < seen
    (came,) = [one for one in found["edits"][0]["guardrails"] if one["name"] == "a reply came"]
    assert came["state"] == "worse"


def test_an_assistant_that_never_answers_proves_nothing(proving: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "def answer(messages, system):\n    raise RuntimeError('down')\n"
    )
    ended = proving("--assistant", "shop:answer")
    assert ended.last["verdict"] == "not proven"
    assert "replies are missing" in ended.last["edits"][0]["against"][0]
    assert {one["state"] for one in ended.last["edits"][0]["guardrails"]} == {"unknown"}
    assert (
        ended.last["edits"][0]["primary"]["effect"]["low"],
        ended.last["edits"][0]["primary"]["effect"]["n"],
    ) == (
        -1.0,
        0,
    )
    assert ended.last["missing"]["new"]["error"] == ended.last["missing"]["old"]["error"]


def test_who_is_forgotten_is_in_no_reply_that_was_kept(
    proving: Run, pollex: Pollex, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(
        SHOP.replace("ends = ", "ends = ' FOR ' + messages[-1]['content'] + ")
    )
    assert proving("--assistant", "shop:answer").code == 0
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    kept = sqlite3.connect(tmp_path / ".pollex" / "store.sqlite")
    facts = "SELECT count(*) FROM facts WHERE payload LIKE ?"
    said = {row["id"]: f"%{row['messages'][0]['content']}%" for row in rows}
    asked = next(id_ for id_, words in said.items() if kept.execute(facts, [words]).fetchone()[0])
    ended = pollex("forget", "--conversation", asked)
    assert ended.code in (0, 3), ended.err  # 3: files of the result quote it, and are named
    assert kept.execute(facts, [said[asked]]).fetchone()[0] == 0


def test_a_models_set_is_judged_by_the_reply_alone_and_never_asked_more_than_planned(
    pollex: Pollex, tmp_path: Path, proving: Run
) -> None:
    with ProtocolServer() as server:
        logs = read_table_log(tmp_path / "log.jsonl", 160)
        rubrics = table_rubrics(logs).rubrics
        reasons = tuple(reason_of(rubric, logs) for rubric in rubrics[:2])
        quoted = tuple(one.model_copy(update={"reason_ids": (one.id,)}) for one in rubrics[:2])
        settings = JudgeSettings(place=server.url, scale="occasion", canary=False)
        judge = JudgeRecord(kind="llm", name="m", fingerprint="f00", options=settings)
        digest = hash_rubrics(quoted)
        made = table_rubrics(
            logs, rubrics=quoted, judge=judge, rubrics_digest=digest, reasons=reasons
        )
        made.save(tmp_path / "rubrics.json")
        asked = ("--assistant", "shop:answer", "--base-url", server.url)
        refused = proving(*asked)  # the server answers by chance
        assert refused.code == 2
        assert (
            "shown the reply alone, m answers otherwise than of whole conversations" in refused.err
        )
        fails = {"do": "message", "match": "able to book", "content": judgment("Strongly Agree")}
        fine = {
            "do": "message",
            "match": "of the last reply alone",
            "content": judgment("Disagree"),
        }
        never = {
            "do": "message",
            "match": "on Friday at 7 pm",
            "content": judgment(NEVER_CAME_UP_OPTION),
        }
        server.script([never, fails, fine])
        asked += ("--store", "other")
        plan = proving(*asked, "--dry-run").last["plan"]["judge"]["calls"]
        ended = proving(*asked)
        assert ended.code in (0, 4), ended.err
        assert ended.last["judge"] == "m"
        assert any("(κ) 0.9" in note or "(κ) 1.00" in note for note in ended.last["notes"])
        assert any(
            "the target's occasion never came up there" in note for note in ended.last["notes"]
        )
        replies = f"FROM '{tmp_path}/remedy-pairs.parquet' WHERE stratum <> 'any'"
        asked_for = str(duckdb.sql(f"SELECT DISTINCT conversation {replies}").fetchall())
        log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        without = [one["id"] for one in log if "on Friday at 7 pm" in one["messages"][0]["content"]]
        assert without
        assert not [one for one in without if f"'{one}'" in asked_for]
        # what is said alike twice is asked once
        assert 0 < ended.last["usage"]["judge"]["calls"] <= plan
        prompts = (
            sqlite3.connect(tmp_path / "other" / "store.sqlite")
            .execute("SELECT body FROM requests")
            .fetchall()
        )
        said = " ".join(str(body) for (body,) in prompts)
        assert "of the last reply alone" in said
        assert "Offer another time" not in said  # the judge sees no prompt
        assert "Be short" not in said


def judgment(answer: str) -> str:
    return json.dumps({"1": {"why": "so", "turns": [1], "answer": answer}})


def reason_of(rubric: ChosenRubric, logs: Logs) -> Reason:
    """Quotes of the assistant's turn in every conversation of a rubric's side."""
    side = Label.NEGATIVE if rubric.polarity == "dsat" else Label.POSITIVE
    quotes = tuple(
        Quote(conversation_id=one.id, turn=1, text=one.turns[1].content)
        for one in logs
        if one.label == side
    )
    return Reason(
        id=rubric.id,
        conversation_id="t000",
        polarity=rubric.polarity,
        text=rubric.text,
        quotes=quotes,
    )


def test_files_are_asked_once_and_arms_can_not_be_told_apart_in_them(
    proving: Run, tmp_path: Path
) -> None:
    ended = proving("--assistant", "asked")
    assert ended.code == 75
    todo = [
        json.loads(line) for line in (tmp_path / "asked" / "todo.jsonl").read_text().splitlines()
    ]
    systems = [one["messages"][0]["content"] for one in todo]
    assert systems.count(PROMPT) == sum("another time" in one for one in systems)
    assert all(set(one) == {"key", "messages"} for one in todo)
    assert systems[: len(todo) // 4] != [PROMPT] * (len(todo) // 4)
    asked = sorted(todo, key=lambda one: json.dumps(one["messages"]))
    replies = [
        {"key": one["key"], "reply": said(one["messages"][0]["content"], n)}
        for n, one in enumerate(asked)
    ]
    (tmp_path / "asked" / "replies.jsonl").write_text(
        "".join(f"{json.dumps(row)}\n" for row in replies)
    )
    ended = proving("--assistant", "asked", "--resume")
    assert ended.code == 0, ended.err
    assert ended.last["verdict"] == "judged better"


def said(system: str, key: int) -> str:
    """Answer by the place among all that is asked: keys and their order in the file are of the run alone."""
    rng = random.Random(key)
    fails = rng.random() < (0.1 if "another time" in system else 0.7)
    done = (
        "I'm sorry, I wasn't able to book a table."
        if fails
        else "I've booked a table for Friday at 6 pm."
    )
    return done + " Is there anything else that I can do?" * rng.randint(0, 2)


def test_a_reply_file_with_a_broken_line_is_refused_by_its_line(
    proving: Run, tmp_path: Path
) -> None:
    (tmp_path / "asked").mkdir()
    for broken in ('{"key": "c"}', '{"key": "c", "reply": ["b"]}'):
        (tmp_path / "asked" / "replies.jsonl").write_text(
            f'{{"key": "a", "reply": null}}\n{broken}\n'
        )
        ended = proving("--assistant", "asked")
        assert ended.code == 1
        assert "replies.jsonl:2" in ended.err


async def test_a_reply_of_null_is_a_missing_one_and_never_a_text(tmp_path: Path) -> None:
    (tmp_path / "replies.jsonl").write_text('{"key": "k", "reply": null}\n')
    request = ReplyRequest(key="k", item="c", system="", messages=[], seed=0)
    assert isinstance(await FileAssistant.of(tmp_path).reply(request), NoReply)


def test_an_endpoint_is_asked_as_planned_and_a_second_run_asks_nothing_again(
    proving: Run, tmp_path: Path
) -> None:
    with ProtocolServer() as server:
        table = f'[assistant]\nmodel = "m"\nbase_url = "{server.url}"\nprice_in = 1.0\nprice_out = 2.0\n'
        (tmp_path / "profiles.toml").write_text(table)
        plan = proving("--profiles", "profiles.toml", "--dry-run").last
        assert server.counts()["received"] == 0
        assert any("80 of 100 proofs" in note for note in plan["notes"])
        assert plan["plan"]["reply"]["completion_tokens"] > 10 * plan["plan"]["reply"]["calls"]
        ended = proving("--profiles", "profiles.toml")
        assert ended.code in (0, 4), ended.err
        asked = ended.last["usage"]["reply"]["calls"]
        look = ended.last["edits"][0]["primary"]["look"]
        assert asked <= plan["plan"]["reply"]["calls"]
        assert look == 4 or asked < plan["plan"]["reply"]["calls"]
        before = server.counts()["received"]
        again = proving("--profiles", "profiles.toml")
        assert server.counts()["received"] - before <= 6  # of the probe alone
        whole = [one.last | {"run": "", "usage": {}, "probe_calls": 0} for one in (ended, again)]
        assert whole[0] == whole[1]


def test_a_cap_of_calls_ends_a_proof_with_the_verdict_of_what_was_seen(
    proving: Run, tmp_path: Path
) -> None:
    fails = "I'm sorry, I wasn't able to book a table for Friday."
    works = "I've booked a table for Friday. It costs $40."
    with ProtocolServer() as server:
        mended = {"do": "message", "match": "another time", "content": works}
        server.script([mended, {"do": "message", "match": "book", "content": fails}])
        table = f'[assistant]\nmodel = "m"\nbase_url = "{server.url}"\nconcurrency = 4\n'
        (tmp_path / "profiles.toml").write_text(f"{table}max_calls = 30\n")
        ended = proving("--profiles", "profiles.toml")
        assert ended.code != 0
        assert "max_calls" in ended.err  # nothing was proven yet, so it can be gone on with
        (tmp_path / "profiles.toml").write_text(f"{table}max_calls = 290\n")
        asked = ("--profiles", "profiles.toml", "--set", "people=60")
        ended = proving(*asked)
        assert (ended.code, "pairs wait for people" in ended.err) == (75, True)
        # in flight and probes, too
        assert (received := server.counts()["received"]) <= 30 + 290 + 2 * 4 + 12
        pairs = [
            json.loads(line)
            for line in (tmp_path / "remedy-people" / "pairs.jsonl").read_text().splitlines()
        ]
        lines = [
            json.dumps({"key": one["key"], "choice": "1" if "booked" in one["1"] else "2"})
            for one in pairs
        ]
        (tmp_path / "remedy-people" / "choices.jsonl").write_text("\n".join(lines))
        found = proving(*asked, "--resume").last
        assert server.counts()["received"] - received <= 6  # of the probe alone
        assert found["verdict"] in ("better, people agree", "not cleared")
        assert any("ended the proof at" in note for note in found["notes"])
        assert (found["proof"], proving("--profiles", "profiles.toml").last["proof"]) == (1, 2)


def test_limits_of_the_command_hold_for_all_roles_together_and_batches_for_each(
    proving: Run, tmp_path: Path
) -> None:
    with ProtocolServer() as server:
        mended = {
            "do": "message",
            "match": "another time",
            "content": "I've booked a table for Friday. It costs $40.",
        }
        server.script(
            [
                mended,
                {
                    "do": "message",
                    "match": "book",
                    "content": "I'm sorry, I wasn't able to book one.",
                },
            ]
        )
        tables = (
            f'[{role}]\nmodel = "m"\nbase_url = "{server.url}"\n'
            for role in ("assistant", "second")
        )
        (tmp_path / "profiles.toml").write_text("".join(tables))
        asked = ("--profiles", "profiles.toml", "--set", "concurrency=4")
        assert "max_calls 30 reached" in proving(*asked, "--max-calls", 30).err
        assert server.counts()["received"] <= 30 + 2 * 12  # with probes
        assert (
            "max_cost 0.001 reached"
            in proving(*asked, "--set", "max_cost=0.001", "--set", "price=1:10").err
        )
        before = server.counts()["received"]
        ended = proving(*asked, "--max-calls", 290)
        notes = ended.last["notes"]
        assert any("ended the proof at" in note for note in notes), ended.err
        assert "no second reader compared the replies" in notes
        assert ended.last["edits"][0]["pair"] is None
        assert server.counts()["received"] - before <= 290 + 2 * 12
        before = server.counts()["received"]
        waits = proving(
            *asked, "--store", "other", "--out", "o.json", "--set", "batch_files=batches"
        )
        assert waits.code == 75, waits.err
        # other words of the target: all replies wait for them
        assert server.counts()["received"] == before + 1


def test_judge_and_assistant_see_no_name_of_an_arm(proving: Run, tmp_path: Path) -> None:
    (tmp_path / "seen.py").write_text(
        "import json\nfrom shop import answer\ndef kept(messages, system):\n"
        "    print(json.dumps([messages, system]), file=open('seen.jsonl', 'a'))\n    return answer(messages, system)\n"
    )
    assert proving("--assistant", "seen:kept").code == 0
    asked = [json.loads(line) for line in (tmp_path / "seen.jsonl").read_text().splitlines()]
    assert {system for _, system in asked} > {
        PROMPT,
        f"{PROMPT}Offer another time where one fails.\n",
    }
    assert not [m for messages, _ in asked for m in messages if m["role"] == "system"]
    assert all(messages[-1]["role"] in ("user", "tool") for messages, _ in asked)


def proved_in(folder: Path, **given: Any) -> Any:
    """What Python's `remedy` finds of the change in a folder."""
    return api.remedy(
        str(folder / "log.jsonl"),
        folder / "rubrics.json",
        group_field="user",
        prompt=folder / "system.md",
        target=TARGET,
        edit=folder / "my.diff",
        store=folder / "store",
        **given,
    )


def test_a_compiled_graph_is_an_assistant_in_python(proving: Run, tmp_path: Path) -> None:
    from langchain_core.messages import AIMessage
    from langgraph.graph import END, START, MessagesState, StateGraph

    def speak(state: MessagesState, config: RunnableConfig) -> dict[str, list[AIMessage]]:
        system = config["configurable"]["system"]
        return {
            "messages": [
                AIMessage(
                    said(
                        system,
                        crc32(f"{system}{[one.content for one in state['messages']]}".encode()),
                    )
                )
            ]
        }

    graph = StateGraph(MessagesState)
    graph.add_node("speak", speak)
    graph.add_edge(START, "speak")
    graph.add_edge("speak", END)
    with pytest.raises(WrongUse, match="the code of speak"):  # nobody can see what it does
        proved_in(tmp_path, assistant=graph.compile(name="shop"))
    found = proved_in(tmp_path, assistant=graph.compile(name="shop"), live_tools="yes")
    assert found.verdict == "judged better"
    assert found.record["assistant"] == "graph shop"
    assert len(found.to_frame()) == 1 + len(found.edits[0].guardrails)
    assert set(found.pairs()["arm"]) == {"old", "new", "flatterer"}


def test_tools_of_a_graph_act_only_where_that_is_said_and_not_on_personal_data(
    proving: Run, tmp_path: Path
) -> None:
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    def order(dish: str) -> str:
        """Order a dish."""
        return f"{dish} is ordered"

    def speak(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [AIMessage("I've booked a table for Friday at 6 pm. It costs $40.")]}

    graph = StateGraph(MessagesState)
    graph.add_node("speak", speak)
    graph.add_node("tools", ToolNode([order]))
    graph.add_edge(START, "speak")
    shop = graph.compile(name="shop")
    outer = StateGraph(MessagesState)
    outer.add_node("shop", shop)
    outer.add_edge(START, "shop")
    for one in (shop, outer.compile(name="outer")):
        with pytest.raises(WrongUse, match="doesn't: the code of speak, tools"):
            proved_in(tmp_path, assistant=one)
    notes = proved_in(tmp_path, assistant=shop, live_tools="yes").record["notes"]
    assert any(note.startswith("tools of the assistant") for note in notes)
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    rows[0]["messages"][0]["content"] += " My mail is ann@example.org."
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(WrongUse, match="1 conversations hold personal data"):
        proved_in(tmp_path, assistant=shop, live_tools="yes")
    assert proved_in(tmp_path, assistant=shop, live_tools="personal").edits


async def test_a_graph_that_ends_at_its_calls_gets_the_logged_results_and_each_message_once() -> (
    None
):
    from langchain_core.messages import AIMessage
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph

    def speak(state: MessagesState) -> dict[str, list[AIMessage]]:
        kinds = [one.type for one in state["messages"]]
        said = state["messages"][-1].content
        call = {"name": "find", "args": {"day": "Friday"}, "id": "b"}
        if kinds == ["human", "ai", "tool"]:
            return {"messages": [AIMessage([{"type": "text", "text": f"It is {said}."}])]}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    graph = StateGraph(MessagesState)
    graph.add_node("speak", speak)
    graph.add_edge(START, "speak")
    call = ToolCall(name="find", arguments='{"day": "Friday"}', id="a")
    turns = (Turn(role="user", content="A table?"), Turn(role="assistant", content="", calls=(call,)),
             Turn(role="tool", content="full"), Turn(role="assistant", content="Sorry."))  # fmt: skip
    request = ReplyRequest(
        key="k", item="c", system="", messages=[{"role": "user", "content": "A table?"}], seed=0
    )
    context = ReplyContext(Conversation(id="c", turns=turns), 1)
    shop = build_assistant(graph.compile(checkpointer=InMemorySaver()))
    for _ in range(2):
        assert await ask_with_tools(shop, request, context) == AssistantReply("It is full.")


async def test_calls_of_tools_get_what_was_logged_and_any_other_ends_as_diverged() -> None:
    call = ToolCall(name="find", arguments='{"day": "Friday", "people": 2}', id="a")
    logged = Conversation(
        id="c",
        turns=(
            Turn(role="user", content="A table?"),
            Turn(role="assistant", content="", calls=(call,)),
            Turn(role="tool", content="full"),
            Turn(role="assistant", content="Sorry."),
        ),
    )
    context = ReplyContext(logged, 1)
    request = ReplyRequest(
        key="k", item="c", system="", messages=[{"role": "user", "content": "A table?"}], seed=0
    )

    async def calling(messages: list[Any], system: str) -> str | AssistantReply:
        if messages[-1]["role"] == "tool":
            return f"It is {messages[-1]['content']}."
        given = '{"people": 2, "day": "Friday"}' if system != "other" else '{"people": 3}'
        return AssistantReply("", (ToolCall(name="find", arguments=given, id="b"),))

    found = await ask_with_tools(CallableAssistant(calling), request, context)
    assert found == AssistantReply("It is full.")
    other = await ask_with_tools(
        CallableAssistant(calling), replace(request, system="other"), context
    )
    assert isinstance(other, NoReply)
    assert other.kind == "diverged"
    mocks = {"find": lambda people: f"free for {people}"}
    found = await ask_with_tools(
        CallableAssistant(calling), replace(request, system="other"), context, mocks
    )
    assert found == AssistantReply("It is free for 3.")


def test_a_function_fills_the_prompts_template_and_leaves_conversations_out(
    proving: Run, tmp_path: Path
) -> None:
    (tmp_path / "system.md").write_text(f"{PROMPT}It is {{day}}.\n")

    def filled(text: str, conversation: Conversation) -> str | None:
        return None if conversation.id.endswith("6") else text.replace("{day}", "Monday")

    found = proved_in(
        tmp_path,
        assistant=lambda messages, system: said(system, crc32(f"{system}{messages}".encode())),
        live_tools="yes",  # this module has graphs, and nobody can see that the function has none
        render=filled,
    )
    assert found.record["left_out_by_prompt"] == 16
    assert found.verdict == "judged better"


def test_the_page_shows_replies_that_fell_as_text_and_a_run_is_shown_again(
    proving: Run, pollex: Pollex, tmp_path: Path
) -> None:
    hostile = SHOP.replace(
        "book a table for Friday", "<script>alert(1)</script> book a table for Friday"
    )
    (tmp_path / "shop.py").write_text(hostile)
    ended = proving("--assistant", "shop:answer")
    page = (tmp_path / "remedy.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert ended.last["verdict"] in page
    assert "+Offer another time" in page
    assert page.count("<details>") >= 5
    again = pollex("remedy", "show", "last", "--json").last
    assert again["edits"] == ended.last["edits"]
    assert pollex("remedy", "show", "learn-1").code == 2
    served = asyncio.run(run_page(tmp_path / ".pollex", ended.last["run"]))
    assert "+Offer another time" in served
    assert "<script>alert" not in served
    assert "&lt;script&gt;alert" in served


async def run_page(folder: Path, run: str) -> str:
    with Store.open(folder) as store:
        async with client_of(made_app(store)) as client:
            return (await client.get(f"/remedies/{run}?tab=pairs")).text


def test_what_was_promised_is_kept_beside_what_came_after_the_deployment(
    proving: Run, pollex: Pollex, tmp_path: Path
) -> None:
    run = proving("--assistant", "shop:answer").last["run"]
    old = table_log(60)
    new = [row | {"id": f"n{row['id']}"} for row in table_log(120, seed=5) if row["thumbs"] == "up"]
    rows = [row | {"prompt_version": "1"} for row in old] + [
        row | {"prompt_version": "2"} for row in new
    ]
    write_log(tmp_path / "new.jsonl", rows)
    known = (
        "remedy",
        "follow",
        run,
        "new.jsonl",
        "--rubrics",
        "rubrics.json",
        "--by",
        "prompt_version",
        "--json",
    )
    assert "--baseline" in pollex(*known).err  # which prompt is the old one isn't guessed
    ended = pollex(*known, "--baseline", "1")
    assert ended.code == 0, ended.err
    assert "2 − 1: " in ended.err
    assert pollex(*known, "--baseline", "2").last["figures"][0]["realised"] < 0
    first = ended.last["figures"][0]
    assert first["predicted"] > 0
    assert first["low"] > 0  # it fails less often since
    assert ended.last["believed"] is None  # one remedy tells nothing of others
    assert "predicted" in ended.err
    assert "conversations a side" in ended.last["plan"]
    # not what follow has scored
    assert pollex("remedy", "show", "last", "--json").last["run"] == run
    write_log(
        tmp_path / "new.jsonl",
        [*rows, *({**row, "id": f"b{row['id']}", "prompt_version": "3"} for row in old)],
    )
    assert (
        "prompt_version has several values beside '1': 2, 3"
        in pollex(*known, "--baseline", "1").err
    )
