"""What coding agents are told: small pages, sealed as data, of thirty conversations that want to command them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_words import ATTACKS, hostile, items_in
from web_site import conversation, made_store

from pollex.errors import PollexError
from pollex.rooms.exchange.cli.agent_server import AGENT_TOOL_NAMES
from pollex.rooms.exchange.services.agent_tools import MAX_TEXT_CHARACTERS, ROWS_A_PAGE, AgentTools


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store of thirty conversations whose ids and turns are hostile."""
    with made_store(tmp_path_factory.mktemp("agents") / ".pollex", n=30, words=hostile) as store:
        yield store.folder


def test_what_is_not_there_is_refused_with_what_to_give(folder: Path) -> None:
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("why", {"rubric": "zzz"}, "no rubrics have an id that begins"),
        ("rubrics", {"rubric_set": "zzz"}, "there is no such rubric set"),
        ("scores", {"thumb": "sideways"}, "give up, down, none"),
        ("scores", {"offset": -1}, "offset is negative"),
        ("conversation", {"run": "last", "conversation": "zzz"}, "no such conversation"),
        ("compare", {"first": "zzz", "second": "last"}, "there is no run"),
    ]
    for name, given, says in refused:
        with pytest.raises(PollexError, match=says):
            getattr(AgentTools(folder), name)(**given)


def test_no_conversation_leaves_the_boundary_and_none_changes_the_store(folder: Path) -> None:
    tools = AgentTools(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*.parquet")}
    texts = ""
    for number in range(30):
        one = conversation(number, hostile)
        head, *turns = items_in(tools.conversation("learn", one.id))
        assert [turn["said"] for turn in turns] == [
            turn.content[:MAX_TEXT_CHARACTERS] for turn in one.turns
        ]
        assert head["conversation"] == one.id[:MAX_TEXT_CHARACTERS]
        if number < 5:
            items_in(tools.trace("learn", one.id))
        texts += "".join(turn["said"] for turn in turns)
    assert [attack for attack in ATTACKS if attack not in texts] == []
    for answer in (
        tools.rubrics(),
        tools.scores("learn"),
        tools.scores("learn", thumb="down"),
        tools.trace("learn"),
    ):
        items_in(answer)
    for rubric in items_in(tools.rubrics())[1:]:
        items_in(tools.why(rubric["id"]))
    assert {path: path.read_bytes() for path in folder.rglob("*.parquet")} == before


def test_an_answer_is_a_page_and_says_where_the_next_begins(folder: Path) -> None:
    tools = AgentTools(folder)
    seen = list[str]()
    offset = 0
    while True:
        head, *rows = items_in(tools.scores("learn", offset=offset))
        assert (head["shown"], head["from"], len(rows) <= ROWS_A_PAGE) == (len(rows), offset, True)
        seen += [row["id"] for row in rows]
        if "next" not in head:
            break
        offset = head["next"]
    assert (len(seen), len(set(seen))) == (head["of"], head["of"])


def test_every_tool_says_what_it_does_and_without_texts_gives_figures_and_ids_alone(
    folder: Path,
) -> None:
    assert all(getattr(AgentTools, name).__doc__ for name in AGENT_TOOL_NAMES)
    tools = AgentTools(folder, texts=False)
    one = conversation(4, hostile)
    assert items_in(tools.conversation("learn", one.id))[1] == {"turn": 0, "role": "user"}
    assert all("text" not in row for row in items_in(tools.rubrics()))
    for rubric in items_in(tools.rubrics())[1:]:
        assert all(
            row.keys() <= {"conversation", "turn"} for row in items_in(tools.why(rubric["id"]))[1:]
        )


def test_a_conversation_s_trace_has_its_score_and_answers(folder: Path) -> None:
    tools = AgentTools(folder)
    one = conversation(4, hostile)
    _, step, score, *answers = items_in(tools.trace("learn", one.id))
    assert (step["name"], score["outcome"]) == ("judge", "scored")
    assert [list(answer)[:3] for answer in answers] == [
        ["text", "question_id", "probabilities"]
    ] * 2
    hidden = items_in(AgentTools(folder, texts=False).trace("learn", one.id))
    assert not any({"text", "justification"} & row.keys() for row in hidden)


def test_a_tool_of_a_room_answers_as_all_others_do(folder: Path) -> None:
    for tool in AgentTools(folder).of_rooms().values():
        assert tool.__doc__
        head, *rows = items_in(tool())
        assert head["shown"] == len(rows) <= ROWS_A_PAGE
