"""Rows that name what they answer: a thread's first message, or the message before."""

from collections.abc import Callable
from typing import Any

import pytest

from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.proposal import UnmappedLog
from pollex.formats.read_logs import read_logs_from_rows

TALKS = [
    [
        (f"Where is parcel number {n} of my order?", f"Parcel {n} comes on Friday."),
        (f"Thanks a lot for looking up {n}!", f"You are welcome, and {n} is safe."),
        (f"Can I still change the address of {n}?", f"Until it ships, {n} can go elsewhere."),
    ]
    for n in range(8)
]
SPOKEN = [[text for pair in talk for text in pair] for talk in TALKS]


def rows_of(parent_of: Callable[[int, int], str]) -> list[dict[str, Any]]:
    """Return the rows of all talks, of which those of two are mixed; every talk ends with a reaction."""
    rows = [
        {
            "ts": f"m{talk}.{place}",
            "answers": parent_of(talk, place),
            "is_bot": str(place % 2 == 1).upper(),
            "words": text,
            "reactions": ["", "+1 (1)", "-1::skin-tone-3 (2), eyes (1)"][
                (place == 5) * (1 + talk % 2)
            ]
            or ("eyes (1)" if place == 0 else ""),
        }
        for talk, texts in enumerate(SPOKEN)
        for place, text in enumerate(texts)
    ]
    return [*rows[3:6], *rows[:3], *rows[6:]]


def of_thread(talk: int, place: int) -> str:
    return f"m{talk}.0" if place else ""


def of_message_before(talk: int, place: int) -> str:
    return f"m{talk}.{place - 1}" if place else ""


@pytest.mark.parametrize("parent_of", [of_thread, of_message_before])
def test_a_row_belongs_to_the_talk_of_the_row_that_it_answers(
    parent_of: Callable[[int, int], str],
) -> None:
    rows = rows_of(parent_of)
    with pytest.raises(UnmappedLog, match="begins so") as error:
        read_logs_from_rows(rows)
    proposed: dict[str, Any] = dict(error.value.options)
    columns = dict(parse_name_pairs(proposed["columns"]))
    assert (columns["parent"], columns["id"], columns["label"]) == ("answers", "ts", "reactions")
    options = ReadOptions(
        columns=parse_name_pairs(proposed["columns"]), roles=parse_name_pairs(proposed["roles"])
    )
    logs = read_logs_from_rows(rows, options=options)
    read = {conversation.id: conversation for conversation in logs}
    assert sorted(read) == [f"m{talk}.0" for talk in range(8)]
    for talk in range(1, 8):
        turns = [turn.content for turn in read[f"m{talk}.0"].turns]
        assert turns == SPOKEN[talk]
        assert read[f"m{talk}.0"].label.value == ("negative" if talk % 2 else "positive")


def test_many_people_in_one_file_are_not_proposed_as_one_talk() -> None:
    rows = [
        {"at": f"2026-11-0{1 + talk} 10:0{place}", "is_bot": place % 2 == 1, "words": text}
        for talk, texts in enumerate(SPOKEN)
        for place, text in enumerate([*texts, *texts])
    ]
    with pytest.raises(UnmappedLog, match="no way to read it was found"):
        read_logs_from_rows(rows)


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ("parent=answers,role=is_bot,text=words", "no column is named as their id"),
        ("parent=answers,id=ts,conversation=c,role=is_bot,text=words", "two ways"),
    ],
)
def test_a_parent_needs_the_id_of_rows_and_no_conversation(columns: str, fault: str) -> None:
    with pytest.raises(WrongUse, match=fault):
        read_logs_from_rows(
            rows_of(of_thread), options=ReadOptions(columns=parse_name_pairs(columns))
        )
