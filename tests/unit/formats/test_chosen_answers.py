"""Answers of which somebody chose one: the others are no turns, wherever the mark stands."""

import json
from pathlib import Path
from typing import Any

import pytest

from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs, read_logs_from_rows

QUESTIONS = ["Where is my tent?", "Is it open on Sunday?", "Can I return the boots?"]
CHOSEN = ["It comes on Friday.", "No, it is closed.", "Within two weeks, yes."]
LEFT = ["I can't say that.", "Yes, it is open.", "No, never at all."]
SPOKEN = [text for pair in zip(QUESTIONS, CHOSEN, strict=True) for text in pair]


def candidates(number: int, mark: dict[bool, Any]) -> list[dict[str, Any]]:
    """Return both answers; every second time the chosen one stands last."""
    pair = [
        {"id": f"a{number}", "content": CHOSEN[number], **mark[True]},
        {"id": f"b{number}", "content": LEFT[number], **mark[False]},
    ]
    return pair[:: -1 if number % 2 else 1]


def asked(number: int) -> dict[str, Any]:
    return {"role": "user", "content": QUESTIONS[number]}


FLAGS = [
    {True: {"selected": True}, False: {"selected": False}},
    {True: {"accepted": 1}, False: {"accepted": 0}},
]
UNMARKED: dict[bool, Any] = {True: {}, False: {}}


def of_messages(kind: int) -> list[dict[str, Any]]:
    if kind < 2:
        return [
            turn
            for n in range(3)
            for turn in (asked(n), {"role": "assistant", "variants": candidates(n, FLAGS[kind])})
        ]
    by_id = [{"chosen_id": f"a{n}"} for n in range(3)]
    by_place = [{"selectedIndex": n % 2} for n in range(3)]
    pointers = by_id if kind == 2 else by_place
    return [
        turn
        for n in range(3)
        for turn in (
            asked(n),
            {
                "role": "assistant",
                "content": "",
                "variants": candidates(n, UNMARKED),
                **pointers[n],
            },
        )
    ]


@pytest.mark.parametrize("kind", range(4))
def test_of_several_answers_in_a_message_the_chosen_one_alone_is_said(
    kind: int, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"id": "k", "messages": of_messages(kind), "thumb": "up"}) + "\n")
    logs = read_logs(log)
    [conversation] = logs
    assert [turn.content for turn in conversation.turns] == SPOKEN
    assert any("nobody chose" in note for note in logs.notes)


def test_of_several_rows_that_answer_one_question_the_chosen_one_alone_is_said() -> None:
    rows = [
        row
        for n in range(3)
        for row in (
            {**asked(n), "conversation_id": "k", "is_selected": None},
            *(
                {**answer, "role": "assistant", "conversation_id": "k"}
                for answer in candidates(
                    n,
                    {
                        True: {"is_selected": "true"},
                        False: {"is_selected": "false"},
                    },
                )
            ),
        )
    ]
    [conversation] = read_logs_from_rows(rows)
    assert [turn.content for turn in conversation.turns] == SPOKEN


def test_an_answer_without_another_stays_though_nobody_chose_it() -> None:
    rows = [
        {**asked(0), "conversation_id": "k", "is_selected": "false"},
        {"role": "assistant", "content": CHOSEN[0], "conversation_id": "k", "is_selected": "false"},
    ]
    [conversation] = read_logs_from_rows(rows)
    assert [turn.content for turn in conversation.turns] == SPOKEN[:2]


def test_people_of_whom_one_is_active_are_no_answers() -> None:
    people = [{"name": "Ana Lima", "active": True}, {"name": "Bo Berg", "active": False}]
    row = {"id": "k", "messages": [asked(0), {"role": "assistant", "content": CHOSEN[0]}]}
    [conversation] = read_logs_from_rows([{**row, "participants": people}], options=ReadOptions())
    assert conversation.metadata["participants"] == people
