"""`pollex.judge` and `pollex.grade` ask the model that is given, a LangChain chat object too, and say who answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_openai import ChatOpenAI
from protocol_server import ProtocolServer
from small_log import small_log

import pollex
from pollex.errors import WrongUse

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
