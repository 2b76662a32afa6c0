"""Questions from Python ask the model that is given, a LangChain chat object too, and say who answered."""

import asyncio
import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from protocol_server import ProtocolServer
from small_log import small_log, write_log
from web_site import client_of, made_app

import pollex
from pollex.errors import WrongUse
from pollex.store.store import Store

QUESTION = {
    "question_id": 1,
    "question": "Why?",
    "reference": "Because.",
    "category": "logical",
    "answer": "So.",
}
TASK = "Was the task completed?"


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        yield running


@pytest.fixture
def chat(server: ProtocolServer) -> ChatOpenAI:
    return ChatOpenAI(model="fake-model", base_url=server.url, api_key="none")  # type: ignore[arg-type]


def test_judge_asks_a_chat_model_each_run_and_names_it_but_not_beside_a_panel(
    server: ProtocolServer, chat: ChatOpenAI, tmp_path: Path
) -> None:
    with pytest.raises(WrongUse, match="a panel beside a chat model"):
        pollex.judge(small_log()[:2], TASK, panel=["other"], model=chat, store=tmp_path)
    assert server.counts()["received"] == 0
    given: dict[str, Any] = {"runs": 3, "variant": "v0", "model": chat, "store": tmp_path}
    told = pollex.judge(small_log()[:2], TASK, **given).as_json()
    assert (told["judge"], told["runs"]["asked"]) == ("fake-model, prompt v0", 6)
    assert server.counts()["paid"] >= 6
    assert pollex.judge(small_log()[:2], TASK, **given).as_json()["outcomes"] == told["outcomes"]


async def test_the_page_of_a_run_that_graded_has_means_figures_and_an_answer_with_its_comparison(
    chat: ChatOpenAI, tmp_path: Path
) -> None:
    rows = [QUESTION | {"question_id": n, "answer": f"So {n}.", "people": 2 + n} for n in range(6)]
    arguments: dict[str, Any] = {
        "plain": True,
        "human_field": "people",
        "model": chat,
        "store": tmp_path / "store",
    }
    found = await asyncio.to_thread(
        pollex.grade, write_log(tmp_path / "q.jsonl", rows), **arguments
    )
    with Store.open(tmp_path / "store") as store:
        async with client_of(made_app(store)) as client:
            page = (await client.get(f"/runs/{found.run}")).text
    assert "<h2>How it ran</h2>" in page
    for said in (
        "Distribution",
        "Means by category and dimension",
        "Agreement with people",
        "One answer",
    ):
        assert f"<h2>{said}" in page
    compared = [str(row["comparison"]) for row in found.records()]
    assert any(one and escape(one) in page for one in compared)


def test_answer_and_grade_ask_a_chat_model_and_name_it(
    server: ProtocolServer, chat: ChatOpenAI, tmp_path: Path
) -> None:
    questions = write_log(tmp_path / "q.jsonl", [QUESTION])
    answered = pollex.answer(questions, out=tmp_path / "a.jsonl", model=chat, store=tmp_path)
    assert (answered.model, answered.outcomes) == ("fake-model", {"answered": 1})
    paid = server.counts()["paid"]
    graded = pollex.grade(questions, answers=tmp_path / "a.jsonl", model=chat, store=tmp_path)
    assert (graded.judge, graded.outcomes) == ("fake-model", {"graded": 1})
    assert server.counts()["paid"] > paid >= 1


def test_simulate_asks_a_chat_model_and_names_it(tmp_path: Path) -> None:
    (tmp_path / "topics.toml").write_text(
        '[[topics]]\nid = "a"\ntext = "A lamp."\n[[personas]]\nid = "b"\ntext = "Calm."'
    )
    said = {"text": "Hello?", "ends": True, "conversation": "yes", "pursues": "yes", "human": "no"}
    said["turns"] = [{"role": role, "text": "Hi.", "sources": []} for role in ("user", "assistant")]
    with ProtocolServer(
        script=[{"do": "message", "match": "DATA ", "content": json.dumps(said)}]
    ) as server:
        chat = ChatOpenAI(model="fake-model", base_url=server.url, api_key="none")  # type: ignore[arg-type]
        found = pollex.simulate(tmp_path / "topics.toml", ["DS1"], model=chat, store=tmp_path)
        assert server.counts()["paid"] >= 2
    assert (found.model, [one.metadata["system"] for one in found.dialogues]) == (
        "fake-model",
        ["DS1"],
    )


def test_review_takes_what_people_chose_and_asks_nobody_again(tmp_path: Path) -> None:
    judged = pollex.judge(small_log(), TASK, options=("yes", "no"), tau=0.0, store=tmp_path)
    assert judged.as_json()["judge"] == "built-in (no LLM)"
    waiting = [row["id"] for row in judged.records() if row["rating"] is None]
    assert waiting
    found = pollex.review(judged.judged.run, {waiting[0]: "no", "nobody": "yes"}, store=tmp_path)
    rows = {row["id"]: row for row in found.records()}
    assert rows[waiting[0]]["rating"] == "no"
    assert [id_ for id_, row in rows.items() if row["rating"] is None] == waiting[1:]
    unheard = pollex.review(judged.judged.run, dict.fromkeys(waiting, "perhaps"), store=tmp_path)
    assert [row["id"] for row in unheard.records() if row["rating"] is None] == waiting[1:]
