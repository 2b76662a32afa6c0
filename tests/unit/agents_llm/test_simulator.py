"""Simulated dialogues: when they end, which sources they keep, and what the assistant is shown."""

import json

import pytest
from scripted import ABLE, SALT, Scripted

from pollex.agents.llm.asker import Asker
from pollex.agents.llm.simulator import Dialogue, Passages, Persona, Scene, Simulator, Topic, passages_of
from pollex.prompts.domain import DomainProfile
from pollex.prompts.simulate.systems import systems
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.judge_settings import JudgeSettings

TOPIC = Topic("kettle", "You want to return a kettle.", ("returns.md",))
PERSONA = Persona("hurried", "Short of time.")
DOCUMENTS = {"returns.md": "Return a faulty kettle within thirty days.", "lamps.md": "A lamp has a warranty."}
TURNS = 2


def user(text: str, *, ends: bool = False) -> str:
    return json.dumps({"text": text, "ends": ends})


def assistant(text: str, *quotes: str, ends: bool = False) -> str:
    sources = [{"document": 1, "quote": quote} for quote in quotes]
    return json.dumps({"text": text, "sources": sources, "ends": ends})


async def held(system: str, *replies: str) -> tuple[Dialogue | Unanswered, Scripted]:
    door = Scripted(queue=list(replies))
    asker = Asker(door, ABLE, DomainProfile.neutral(), JudgeSettings(), SALT)
    simulator = Simulator(asker, Passages(passages_of(DOCUMENTS)), TURNS)
    return await simulator.dialogue(Scene(systems()[system], TOPIC, PERSONA)), door


@pytest.mark.parametrize(
    ("replies", "ended", "turns"),
    [
        ([user("Kettle?"), assistant("Yes.", ends=True)], "assistant", 2),
        ([user("Kettle?", ends=True), assistant("Yes.")], "user", 2),
        ([user("Kettle?"), assistant("Yes."), user("Thanks.", ends=True)], "user", 3),
        ([user("Kettle?"), assistant("Yes."), user("KETTLE? ")], "repeat", 2),
        ([user("Kettle?"), assistant("Yes."), user("Days?"), assistant("Thirty.")], "turns", 4),
    ],
)
async def test_a_dialogue_ends_by_one_of_the_rules(replies: list[str], ended: str, turns: int) -> None:
    found, door = await held("DS4", *replies)
    assert isinstance(found, Dialogue)
    assert (found.ended, len(found.turns), len(door.history)) == (ended, turns, len(replies))


async def test_a_source_is_kept_only_if_its_document_has_the_quote() -> None:
    found, _ = await held("DS4", user("A faulty kettle?"), assistant("Yes.", "within thirty days", "forty", ends=True))
    assert isinstance(found, Dialogue)
    assert found.sources == [{"turn": 1, "document": "returns.md", "quote": "within thirty days"}]
    assert found.unproven == 1


async def test_the_assistant_sees_neither_topic_nor_persona_and_the_user_no_document() -> None:
    _, door = await held("DS4", user("A faulty kettle?"), assistant("Yes.", ends=True))
    asked, answered = (str(call.messages[1]["content"]) for call in door.history)
    assert TOPIC.text in asked
    assert "thirty days" not in asked
    assert "thirty days" in answered
    assert TOPIC.text not in answered
    assert PERSONA.text not in answered


async def test_documents_are_found_by_the_query_where_the_model_writes_one() -> None:
    query = json.dumps({"query": "lamp warranty"})
    _, door = await held("DS5", user("A faulty kettle?"), query, assistant("Yes.", ends=True))
    shown = str(door.history[2].messages[1]["content"])
    assert "A lamp has a warranty." in shown
    assert "thirty days" not in shown


@pytest.mark.parametrize(("system", "documents"), [("DS1", False), ("DS2", True), ("DS3", True)])
async def test_a_whole_dialogue_is_one_call_with_the_documents_of_its_system(system: str, documents: bool) -> None:
    sources = [{"document": 1, "quote": "a faulty kettle"}]
    turns = [
        {"role": "user", "text": "Kettle?", "sources": []},
        {"role": "assistant", "text": "Yes.", "sources": sources},
    ]
    found, door = await held(system, json.dumps({"turns": turns}))
    assert isinstance(found, Dialogue)
    (call,) = door.history
    assert ("thirty days" in str(call.messages[1]["content"])) is documents
    assert len(found.sources) == int(documents)
    assert found.unproven == int(not documents)


async def test_a_dialogue_of_one_side_is_none() -> None:
    found, _ = await held("DS1", json.dumps({"turns": [{"role": "user", "text": "Hello?", "sources": []}]}))
    assert isinstance(found, Unanswered)
    assert found.outcome == "unparsable"
