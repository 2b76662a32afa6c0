"""Questions from Python ask the model that is given, a LangChain chat object too, and say who answered."""

import asyncio
import json
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest
from langchain_openai import ChatOpenAI
from protocol_server import ProtocolServer
from small_log import small_log
from web_site import client_of, made_app

import pollex
from pollex.errors import WrongUse
from pollex.store.store import Store

QUESTION = {"question_id": 1, "question": "Why?", "reference": "Because.", "category": "logical", "answer": "So."}


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        yield running


@pytest.fixture
def chat(server: ProtocolServer) -> ChatOpenAI:
    return ChatOpenAI(model="fake-model", base_url=server.url, api_key="none")  # type: ignore[arg-type]


def test_judge_asks_a_chat_model_each_run_and_names_it(
    server: ProtocolServer, chat: ChatOpenAI, tmp_path: Path
) -> None:
    found = pollex.judge(small_log()[:4], "Was the task completed?", runs=3, variant="v0", model=chat, store=tmp_path)
    told = found.as_json()
    assert told["judge"] == "fake-model, prompt v0"
    assert told["runs"]["asked"] == 12
    assert server.counts()["paid"] >= 12
    again = pollex.judge(small_log()[:4], "Was the task completed?", runs=3, variant="v0", model=chat, store=tmp_path)
    assert again.as_json()["outcomes"] == told["outcomes"]


def test_judge_without_a_model_says_that_it_is_built_in(tmp_path: Path) -> None:
    found = pollex.judge(small_log()[:8], "Was the task completed?", store=tmp_path)
    assert found.as_json()["judge"] == "built-in (no LLM)"


def test_a_panel_beside_a_chat_model_is_refused(chat: ChatOpenAI, server: ProtocolServer, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="a panel beside a chat model"):
        pollex.judge(small_log()[:2], "Was the task completed?", panel=["other"], model=chat, store=tmp_path)
    assert server.counts()["received"] == 0


def test_grade_asks_a_chat_model_and_names_it(server: ProtocolServer, chat: ChatOpenAI, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps(QUESTION), "utf-8")
    found = pollex.grade(tmp_path / "q.jsonl", model=chat, store=tmp_path)
    assert (found.judge, found.outcomes) == ("fake-model", {"graded": 1})
    assert server.counts()["paid"] >= 1


async def test_the_page_of_a_run_that_graded_has_means_figures_and_an_answer_with_its_comparison(
    chat: ChatOpenAI, tmp_path: Path
) -> None:
    rows = [QUESTION | {"question_id": n, "answer": f"So {n}.", "people": 2 + n} for n in range(6)]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    arguments = {"plain": True, "human_field": "people", "model": chat, "store": tmp_path / "store"}
    found = await asyncio.to_thread(pollex.grade, tmp_path / "q.jsonl", **arguments)  # type: ignore[arg-type]
    with Store.open(tmp_path / "store") as store:
        async with client_of(made_app(store)) as client:
            page = (await client.get(f"/runs/{found.run}")).text
    assert page.count("<h2>") == 4
    for said in ("Distribution", "Means by category and dimension", "Agreement with people", "One answer"):
        assert f"<h2>{said}" in page
    compared = [str(row["comparison"]) for row in found.records()]
    assert any(one and escape(one) in page for one in compared)


def test_answer_asks_a_chat_model_and_names_it(server: ProtocolServer, chat: ChatOpenAI, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps(QUESTION), "utf-8")
    found = pollex.answer(tmp_path / "q.jsonl", out=tmp_path / "a.jsonl", model=chat, store=tmp_path)
    assert (found.model, found.outcomes) == ("fake-model", {"answered": 1})
    assert server.counts()["paid"] >= 1
    graded = pollex.grade(tmp_path / "q.jsonl", answers=tmp_path / "a.jsonl", model=chat, store=tmp_path)
    assert graded.outcomes == {"graded": 1}


def test_simulate_asks_a_chat_model_and_names_it(tmp_path: Path) -> None:
    (tmp_path / "topics.toml").write_text(
        '[[topics]]\nid = "a"\ntext = "A lamp."\n[[personas]]\nid = "b"\ntext = "Calm."'
    )
    said = {"text": "Hello?", "ends": True, "conversation": "yes", "pursues": "yes", "human": "no"}
    said["turns"] = [{"role": role, "text": "Hi.", "sources": []} for role in ("user", "assistant")]
    with ProtocolServer(script=[{"do": "message", "match": "DATA ", "content": json.dumps(said)}]) as server:
        chat = ChatOpenAI(model="fake-model", base_url=server.url, api_key="none")  # type: ignore[arg-type]
        found = pollex.simulate(tmp_path / "topics.toml", ["DS1"], model=chat, store=tmp_path)
        assert server.counts()["paid"] >= 2
    assert (found.model, [one.metadata["system"] for one in found.dialogues]) == ("fake-model", ["DS1"])


def test_review_takes_what_people_chose_and_asks_nobody_again(tmp_path: Path) -> None:
    options = ("yes", "no")
    judged = pollex.judge(small_log(), "Was the task completed?", options=options, tau=0.0, store=tmp_path)
    waiting = [row["id"] for row in judged.records() if row["rating"] is None]
    assert waiting
    found = pollex.review(judged.judged.run, {waiting[0]: "no", "nobody": "yes"}, store=tmp_path)
    rows = {row["id"]: row for row in found.records()}
    assert rows[waiting[0]]["rating"] == "no"
    assert [id_ for id_, row in rows.items() if row["rating"] is None] == waiting[1:]
    unheard = pollex.review(judged.judged.run, dict.fromkeys(waiting, "perhaps"), store=tmp_path)
    assert [row["id"] for row in unheard.records() if row["rating"] is None] == waiting[1:]
