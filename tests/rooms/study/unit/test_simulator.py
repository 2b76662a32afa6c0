"""Simulated dialogues: when they end, what each side is shown, and how passages of documents are found and quoted."""

import json

import pytest
from scripted import ABLE, SALT, Scripted

from pollex.agents.llm.asker import PromptAsker
from pollex.prompts.domain import DomainProfile
from pollex.rooms.study.agents.llm.simulator import (
    MAX_PASSAGE_CHARACTERS,
    DialogueScene,
    DialogueSimulator,
    DocumentPassage,
    PassageIndex,
    SimulatedDialogue,
    SimulatedPersona,
    SimulatedTopic,
    split_into_passages,
)
from pollex.rooms.study.prompts.simulate.systems import load_systems
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.judge_settings import JudgeSettings

TOPIC = SimulatedTopic("kettle", "You want to return a kettle.", ("returns.md",))
PERSONA = SimulatedPersona("hurried", "Short of time.")
DOCUMENTS = {
    "returns.md": "Return a faulty kettle\nwithin thirty days.",
    "lamps.md": "A lamp has a warranty.",
}
TURNS = 2


def user(text: str, *, ends: bool = False) -> str:
    return json.dumps({"text": text, "ends": ends})


def assistant(text: str, *quotes: str, ends: bool = False) -> str:
    sources = [{"document": 1, "quote": quote} for quote in quotes]
    return json.dumps({"text": text, "sources": sources, "ends": ends})


async def held(system: str, *replies: str) -> tuple[SimulatedDialogue | Unanswered, Scripted]:
    door = Scripted(queue=list(replies))
    asker = PromptAsker(door, ABLE, DomainProfile.neutral(), JudgeSettings(), SALT)
    simulator = DialogueSimulator(asker, PassageIndex(split_into_passages(DOCUMENTS)), TURNS)
    return await simulator.dialogue(DialogueScene(load_systems()[system], TOPIC, PERSONA)), door


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
async def test_a_dialogue_ends_by_one_of_the_rules(
    replies: list[str], ended: str, turns: int
) -> None:
    found, door = await held("DS4", *replies)
    assert isinstance(found, SimulatedDialogue)
    assert (found.ended, len(found.turns), len(door.history)) == (ended, turns, len(replies))


async def test_a_source_is_kept_only_if_its_document_has_the_quote() -> None:
    found, _ = await held(
        "DS4", user("A faulty kettle?"), assistant("Yes.", "within thirty days", "forty", ends=True)
    )
    assert isinstance(found, SimulatedDialogue)
    assert found.quotes == [{"turn": 1, "document": "returns.md", "quote": "within thirty days"}]
    assert [(source.name, source.turn) for source in found.sources] == [("returns.md", 1)]
    assert found.unproven == 1


def test_a_document_that_is_shown_again_keeps_its_number() -> None:
    dialogue, (first, second) = (
        SimulatedDialogue(),
        (DocumentPassage("a.md", "One."), DocumentPassage("b.md", "Two.")),
    )
    assert [item["document"] for item in dialogue.show([first])] == [1]
    dialogue.say("assistant", "Yes [1].")
    assert [item["document"] for item in dialogue.show([second, first])] == [2, 1]
    assert [(source.name, source.turn) for source in dialogue.sources] == [("a.md", 0), ("b.md", 1)]


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
async def test_a_whole_dialogue_is_one_call_with_the_documents_of_its_system(
    system: str, documents: bool
) -> None:
    sources = [{"document": 1, "quote": "a faulty kettle"}]
    turns = [
        {"role": "user", "text": "Kettle?", "sources": []},
        {"role": "assistant", "text": "Yes.", "sources": sources},
    ]
    found, door = await held(system, json.dumps({"turns": turns}))
    assert isinstance(found, SimulatedDialogue)
    (call,) = door.history
    assert ("thirty days" in str(call.messages[1]["content"])) is documents
    assert len(found.sources) == int(documents)
    assert found.unproven == int(not documents)


async def test_a_dialogue_of_one_side_is_none() -> None:
    found, _ = await held(
        "DS1", json.dumps({"turns": [{"role": "user", "text": "Hello?", "sources": []}]})
    )
    assert isinstance(found, Unanswered)
    assert found.outcome == "unparsable"


def test_no_word_of_a_long_document_is_lost() -> None:
    paragraphs = [f"{number} " * 200 for number in range(30)]
    found = split_into_passages({"long.md": "\n\n".join(paragraphs)})
    assert len(found) > 1
    assert max(len(passage.text) for passage in found) <= MAX_PASSAGE_CHARACTERS
    assert " ".join(passage.text for passage in found).split() == " ".join(paragraphs).split()


def test_the_passage_that_shares_words_is_found_and_no_other() -> None:
    index = PassageIndex(split_into_passages(DOCUMENTS))
    assert [passage.document for passage in index.best("which WARRANTY?", 5)] == ["lamps.md"]
    assert [passage.document for passage in index.named(["returns.md"], 5)] == ["returns.md"]
    assert index.best("xyzzy", 5) == index.best("", 5) == []
