"""No row vanishes: what is written is read again, and what looks odd is told."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.read_logs import read_logs, read_logs_from_rows

TABLES = 10 if settings().max_examples >= 200 else 2
"""How many tables an example makes of the default's: 2,000 in all at night, some 40 otherwise."""

WORDS = st.text(st.sampled_from("abc äß!?,;\"'\n{}[]:👍0159"), min_size=1, max_size=30).map(
    lambda text: f"w{text}w"
)
LABELS = st.sampled_from(["up", "down", ""])
NAMES: dict[str, list[str]] = {
    "conversation": [
        "conversation_id",
        "session_id",
        "thread_id",
        "chat_id",
        "conversationId",
        "gespräch",
    ],
    "role": ["role", "speaker", "sender", "from", "author", "wer"],
    "text": ["content", "text", "message", "utterance", "nachricht"],
    "label": ["rating", "feedback", "label", "thumb", "thumbs", "note"],
}
EXTRA = [
    *(
        "email",
        "phone_number",
        "identifier",
        "metadata",
        "title",
        "name",
        "user_id",
        "score_model",
        "flowData",
    ),
    *("feedback_message", "visibility", "createdDate", "url", "kind", "requester_id", "ticket_id"),
]
SPEAKERS = {
    "user": ["user", "human", "customer", "Kunde"],
    "assistant": ["assistant", "bot", "ai", "Berater"],
}

Talk = tuple[str, list[tuple[str, str]]]


@st.composite
def talks(draw: st.DrawFn) -> list[Talk]:
    """Draw conversations: a label, and turns of both sides."""
    number = draw(st.integers(1, 4))
    return [
        (
            draw(LABELS),
            [(("user", "assistant")[n % 2], draw(WORDS)) for n in range(draw(st.integers(2, 5)))],
        )
        for _ in range(number)
    ]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[dict[str, Any]], ReadOptions, list[Talk], str]:
    """Draw a table in which the conversations stand, and the options that name what has no usual name."""
    said = draw(talks())
    form = draw(st.sampled_from(["turns", "messages", "nested"]))
    names = {part: draw(st.sampled_from(spelled)) for part, spelled in NAMES.items()}
    speakers = {role: draw(st.sampled_from(spelled)) for role, spelled in SPEAKERS.items()}
    extra = {
        name: draw(st.sampled_from(["x", "7", "a@example.org"]))
        for name in draw(st.sets(st.sampled_from(EXTRA)))
    }
    gaps = draw(st.booleans())
    once = draw(st.booleans())
    rows: list[dict[str, Any]] = []
    for number, (label, turns) in enumerate(said):
        beside = extra if not gaps or number % 2 else {}
        own = {names["conversation"]: f"c{number}"}
        messages = [{names["role"]: speakers[role], names["text"]: words} for role, words in turns]
        if form == "turns":
            for place, message in enumerate(messages):
                rated = {names["label"]: label} if not once or place == len(messages) - 1 else {}
                rows.append({**own, **message, **beside, **rated})
        else:
            row = {**own, "messages": messages, **beside, names["label"]: label}
            rows.append({"payload": row} if form == "nested" else row)
    inside = "payload." if form == "nested" else ""
    columns = {part: inside + names[part] for part in ("conversation", "label")}
    columns |= {part: names[part] for part in ("role", "text")}
    columns |= {} if form == "turns" else {"messages": f"{inside}messages"}
    roles = [(role, name) for role, name in speakers.items() if name in ("Kunde", "Berater")]
    mapped = (
        form == "nested" or {"gespräch", "wer", "nachricht", "note"} & set(names.values()) or roles
    )
    options = (
        ReadOptions(columns=parse_name_pairs(columns), roles=tuple(roles))
        if mapped
        else ReadOptions()
    )
    return (
        rows,
        options,
        said,
        draw(st.sampled_from(["jsonl", "csv", "json"]) if form == "turns" else st.just("jsonl")),
    )


def written(path: Path, rows: list[dict[str, Any]], form: str) -> Path:
    path = path.with_suffix(f".{form}")
    if form == "csv":
        columns = list(dict.fromkeys(name for row in rows for name in row))
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, columns)
            table.writeheader()
            table.writerows(rows)
    else:
        lines = "\n".join(json.dumps(row) for row in rows)
        path.write_text(lines if form == "jsonl" else json.dumps(rows), encoding="utf-8")
    return path


def told(logs: Logs) -> list[Talk]:
    signs = {"positive": "up", "negative": "down", "none": ""}
    return [
        (signs[one.label.value], [(turn.role, turn.content) for turn in one.turns]) for one in logs
    ]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(tables(), min_size=TABLES, max_size=TABLES))
def test_each_table_gives_back_what_was_said_and_each_of_its_rows_is_accounted_for(
    tmp_path: Path, given_tables: list[tuple[list[dict[str, Any]], ReadOptions, list[Talk], str]]
) -> None:
    for rows, options, said, form in given_tables:
        path = written(tmp_path / "log", rows, form)
        logs = read_logs(path, options=options)
        assert told(logs) == said
        assert sum(logs.account.rows[str(path)].values()) == len(rows)


MESSAGES = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]


def test_rows_are_told_apart_by_what_became_of_them(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"id": "a", "messages": MESSAGES, "email": "x@example.org", "phone_number": "1"},
        {"id": "a", "messages": MESSAGES, "email": "x@example.org", "phone_number": "1"},
        {"conversation_id": "a", "rating": "up"},
        {"id": "u", "identifier": "somebody", "metadata": {}},
        [1],
    ]
    path = written(tmp_path / "log", rows, "jsonl")
    logs = read_logs(path, options=ReadOptions(max_bad=1))
    assert logs.account.rows == {
        str(path): {"turns": 1, "repeated": 1, "labels": 1, "beside": 1, "bad": 1}
    }
    assert logs.account.tables == {"tables without words": 1}


def test_a_rated_turn_is_a_turn_whatever_else_it_looks_like() -> None:
    turns = [{"conversation_id": "a", **turn} for turn in MESSAGES]
    for more in (
        {"rating": "up"},
        {"rating": "up", "feedback_message": "x"},
        {"ticket_id": 1, "requester_id": 2},
    ):
        logs = read_logs_from_rows([turns[0], turns[1] | {"rating": "up"} | more])
        assert told(logs) == [("up", [("user", "Hello"), ("assistant", "Good day")])]


def test_thumbs_of_a_table_of_turns_that_differ_are_taken_as_said() -> None:
    said = [
        ("user", "q", ""),
        ("assistant", "a", "up"),
        ("user", "r", ""),
        ("assistant", "b", "down"),
    ]
    rows = [
        {"conversation_id": "c", "role": role, "content": words, "thumb": thumb}
        for role, words, thumb in said
    ]
    found = {
        how: read_logs_from_rows(rows, options=ReadOptions(thumbs=how))
        for how in ("last", "worst", "each")
    }
    assert [one.label.value for one in found["last"]] == ["negative"]
    assert [one.label.value for one in found["worst"]] == ["negative"]
    assert [(one.id, one.label.value, len(one.turns), one.group) for one in found["each"]] == [
        ("c#1", "positive", 2, "c"),
        ("c#3", "negative", 4, "c"),
    ]
    assert sum(found["each"].account.rows["row"].values()) == len(rows)


def test_the_majority_of_raters_counts_and_their_agreement_is_told() -> None:
    votes = {"ann": "up", "ben": "down", "cem": "up"}
    rows = [
        {"conversation_id": "c", **turn, "rater": rater, "rating": vote}
        for rater, vote in votes.items()
        for turn in MESSAGES
    ]
    whole = [
        {"id": "c", "messages": MESSAGES, "rater": rater, "rating": vote}
        for rater, vote in votes.items()
    ]
    for table in (rows, whole):
        logs = read_logs_from_rows(table)
        assert [(one.label.value, len(one.turns)) for one in logs] == [("positive", 2)]
        assert any("1 of 3 pairs of raters agree" in note for note in logs.notes)
        each = read_logs_from_rows(table, options=ReadOptions(judge_field="rater"))
        assert [(one.judge, one.label.value) for one in each] == [
            ("ann", "positive"),
            ("ben", "negative"),
            ("cem", "positive"),
        ]


def test_the_majority_of_raters_counts_in_the_records_of_an_annotation_tool() -> None:
    def record(id_: str, *votes: str) -> dict[str, Any]:
        answers = [
            {"value": vote, "user_id": f"rater {n}", "status": "submitted"}
            for n, vote in enumerate(votes)
        ]
        return {"id": id_, "fields": {"chat": MESSAGES}, "responses": {"rating": answers}}

    logs = read_logs_from_rows(
        [record("a", "up", "down", "up"), record("b", "down", "down"), record("c", "up", "down")]
    )

    assert [one.label.value for one in logs] == ["positive", "negative", "none"]
    assert any(
        "2 of 5 pairs of raters agree; 1 with as many of each" in note for note in logs.notes
    )


def test_thumbs_of_nobody_knows_whom_that_differ_are_no_majority() -> None:
    answers = [{"value": vote, "status": "submitted"} for vote in ("up", "down", "up")]
    with pytest.raises(BadInput, match="3 thumbs that differ"):
        read_logs_from_rows(
            [{"id": "a", "fields": {"chat": MESSAGES}, "responses": {"rating": answers}}]
        )


def test_what_a_log_looks_like_is_told_where_it_is_out_of_the_ordinary() -> None:
    def notes(*turns: tuple[str, str]) -> str:
        messages = [{"role": role, "content": words} for role, words in turns]
        rows = [
            {
                "id": f"c{n}",
                "messages": [
                    m | {"content": m["content"] and f"{m['content']} {n}"} for m in messages
                ],
            }
            for n in range(4)
        ]
        return "\n".join(read_logs_from_rows(rows).notes)

    question = ("user", "q")
    assert notes(question, ("assistant", "a"), ("user", "r"), ("assistant", "b")) == ""
    assert "in 4 of 4 conversations turns of the assistant follow each other" in notes(
        question, ("assistant", "a"), ("assistant", "b")
    )
    assert "4 of 4 conversations have turns of one side alone, the user's (4)" in notes(
        question, ("user", "r")
    )
    assert "4 of 8 turns of user and assistant have no words" in notes(question, ("assistant", ""))
    same = [{"id": f"c{n}", "messages": MESSAGES, "n": n} for n in range(20)]
    assert "40 turns have 2 different texts" in "\n".join(read_logs_from_rows(same).notes)
