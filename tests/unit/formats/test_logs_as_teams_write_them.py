"""Logs as teams write them themselves: comments and labels under names of their own, and turns in other shapes."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.mapping import pairs
from pollex.formats.read_logs import read_logs, read_rows

ASKED = ("Where is parcel {}?", "Can I return order {}?", "Why was I charged twice for {}?")
TOLD = ("Parcel {} is at the depot.", "You have 30 days for order {}.", "I see one charge for {}.")


def talks(number: int = 6) -> Iterator[list[tuple[str, str]]]:
    """Yield talks of a question and an answer, each with words of its own."""
    for n in range(number):
        yield [("user", ASKED[n % 3].format(n)), ("assistant", TOLD[n % 3].format(n))]


def rows_of_turns(names: Mapping[str, str]) -> list[dict[str, Any]]:
    rows = []
    for n, talk in enumerate(talks()):
        for side, words in talk:
            rows.append({"chat": f"c{n}", "who": names[side], "said": words})
    return rows


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


def follow(error: BadInput) -> ReadOptions:
    """Return the options that an error proposes."""
    proposed = {name: str(value) for name, value in error.options.items()}
    columns = pairs(proposed.pop("columns", ""))
    roles = pairs(proposed.pop("roles", ""))
    return ReadOptions(columns=columns, roles=roles, **proposed)  # type: ignore[arg-type]


def propose(rows: Sequence[dict[str, Any]]) -> ReadOptions:
    with pytest.raises(BadInput) as raised:
        read_rows(rows)
    return follow(raised.value)


def words_in(logs: Logs) -> dict[str, list[tuple[str, str]]]:
    words: dict[str, list[tuple[str, str]]] = {}
    for conversation in logs:
        words[conversation.id] = [(turn.role, turn.content) for turn in conversation.turns]
    return words


def comments_in(logs: Logs) -> list[str]:
    comments = []
    for conversation in logs:
        comments.extend(feedback.comment for feedback in conversation.feedback)
    return comments


def whole_rows(**beside: Sequence[Any]) -> list[dict[str, Any]]:
    rows = []
    for n, talk in enumerate(talks()):
        messages = [{"role": side, "content": words} for side, words in talk]
        rows.append({"id": f"c{n}", "messages": messages})
        for name, values in beside.items():
            rows[-1][name] = values[n]
    return rows


THUMBS = ("up", "down", "up", None, None, "down")


@pytest.mark.parametrize("name", ["feedback_note", "why", "Anmerkung", "feedbackText", "verbatim"])
def test_a_column_that_is_filled_beside_thumbs_alone_has_the_comments(name: str) -> None:
    logs = read_rows(whole_rows(thumb=THUMBS, **{name: ("fine", "too slow", None, None, "", "")}))
    assert comments_in(logs) == ["fine", "too slow"]
    assert f"comments come from {name!r}" in " ".join(logs.notes)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(("a b", "c d", "e f", "g h", "i j", "k l"), id="also where nobody rated"),
        pytest.param(("good", "bad", "good", None, None, "bad"), id="a mark of its own"),
    ],
)
def test_a_column_that_says_something_else_has_no_comments(values: Sequence[Any]) -> None:
    assert comments_in(read_rows(whole_rows(thumb=THUMBS, note=values))) == []


def test_of_two_columns_that_may_be_comments_none_is_taken_and_both_are_told() -> None:
    written = ("quite good", None, None, None, None, "far too slow")
    logs = read_rows(whole_rows(thumb=THUMBS, why=written, survey_remark=written))
    assert comments_in(logs) == []
    assert "may be in 'why', 'survey_remark'" in " ".join(logs.notes)


def test_a_comment_in_a_row_of_the_thumb_alone_stays_with_it() -> None:
    rows = []
    for n, talk in enumerate(talks()):
        for side, words in talk:
            rows.append({"m": {"sid": f"c{n}", "by": side, "content": words}})
        rows.append({"m": {"sid": f"c{n}", "vote": "down", "voteText": f"no help {n}"}})
    columns = pairs("conversation=m.sid,role=m.by,text=m.content,label=m.vote")
    logs = read_rows(rows, options=ReadOptions(columns=columns))
    assert comments_in(logs) == [f"no help {n}" for n in range(6)]


CLAUDE = [
    {
        "uuid": f"u-{n}",
        "name": "",
        "chat_messages": [
            {"uuid": f"m-{n}-{k}", "sender": side.replace("user", "human"), "text": words}
            for k, (side, words) in enumerate(talk)
        ],
    }
    for n, talk in enumerate(talks())
]


@pytest.mark.parametrize("key", ["u-{}", "m-{}-1"])
@pytest.mark.parametrize("first", [True, False])
def test_labels_of_any_columns_are_joined_to_an_export_by_what_they_name(
    tmp_path: Path, key: str, first: bool
) -> None:
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps(CLAUDE), encoding="utf-8")
    marks = [
        {"about": key.format(n), "verdict": ("good", "bad")[n % 2], "remark": f"so {n}"}
        for n in range(4)
    ]
    labels = write_csv(tmp_path / "verdicts.csv", marks)
    logs = read_logs([labels, export] if first else [export, labels])
    assert [conversation.label.value for conversation in logs] == [
        *("positive", "negative") * 2,
        *("none", "none"),
    ]
    assert comments_in(logs) == [f"so {n}" for n in range(4)]
    assert "'verdict' the thumb (4 rows)" in " ".join(logs.notes)
    assert logs.account.rows[str(labels)] == {"labels": 4}


def test_rows_that_name_nothing_in_the_export_are_bad_rows(tmp_path: Path) -> None:
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps(CLAUDE), encoding="utf-8")
    marks = [{"about": f"x{n}", "verdict": ("good", "bad")[n % 2]} for n in range(4)]
    labels = write_csv(tmp_path / "verdicts.csv", marks)
    with pytest.raises(BadInput, match="4 rows are bad"):
        read_logs([export, labels])


PAIRS = [
    {"n": f"c{n}", "dialogue": [["Kunde" if side == "user" else "Bot", words] for side, words in t]}
    for n, t in enumerate(talks())
]
TEXTS = [
    {"chat_nr": f"c{n}", "said": [words for _, words in [*talk, *talk]]}
    for n, talk in enumerate(talks())
]


@pytest.mark.parametrize("rows", [PAIRS, TEXTS], ids=["pairs", "plain texts"])
def test_turns_that_are_no_objects_are_proposed_and_read(rows: list[dict[str, Any]]) -> None:
    logs = read_rows(rows, options=propose(rows))
    for conversation, talk in zip(logs, talks(), strict=True):
        assert [(turn.role, turn.content) for turn in conversation.turns][:2] == talk


def test_lines_above_a_talk_say_something_of_it(tmp_path: Path) -> None:
    for n, talk in enumerate(talks()):
        said = [
            f"[10:0{k}:00] {'Visitor' if side == 'user' else 'Assistant'}: {words}"
            for k, (side, words) in enumerate(talk)
        ]
        head = [f"Chat ID: c{n}", "Customer: a@example.org", f"Rating: {('up', 'down')[n % 2]}"]
        (tmp_path / f"{n}.txt").write_text("\n".join([*head, "", *said]) + "\n", encoding="utf-8")
    logs = read_logs(tmp_path)
    assert words_in(logs) == {f"c{n}": talk for n, talk in enumerate(talks())}
    assert [conversation.label.value for conversation in logs] == ["positive", "negative"] * 3


def test_a_first_turn_above_an_empty_line_is_no_head(tmp_path: Path) -> None:
    said = "Customer: Where is it?\nIt was due on Monday.\n\nBot: At the depot.\n\nAgent: It comes today.\n\nBot: Bye."
    (tmp_path / "talk.txt").write_text(said, encoding="utf-8")
    [conversation] = read_logs(tmp_path / "talk.txt")
    assert len(conversation.turns) == 4


def test_headings_in_markdown_begin_talks_and_those_of_an_answer_do_not(tmp_path: Path) -> None:
    parts = ["# Pilot", "", "Names are changed.", ""]
    for n, talk in enumerate(talks()):
        parts += [f"## Talk {n}", ""]
        for side, words in talk:
            parts += [f"**{side.title()}:** {words}", ""]
        parts += ["## Steps", "", "1. Wait.", "", f"_Feedback: {'👍👎'[n % 2]}_", ""]
    (tmp_path / "pilot.md").write_text("\n".join(parts), encoding="utf-8")
    logs = read_logs(tmp_path / "pilot.md")
    assert [conversation.id for conversation in logs] == [f"Talk {n}" for n in range(6)]
    assert [conversation.label.value for conversation in logs] == ["positive", "negative"] * 3
    for conversation in logs:
        assert conversation.turns[-1].content.endswith("## Steps\n\n1. Wait.")


def test_talks_in_cells_may_be_as_short_as_a_question_and_its_answer() -> None:
    rows = []
    for n, talk in enumerate(talks()):
        lines = [f"{'Kunde' if side == 'user' else 'Bot'}: {words}" for side, words in talk]
        rows.append({"Vorgang": f"c{n}", "Verlauf": "\n".join(lines)})
    logs = read_rows(rows, options=propose(rows))
    assert words_in(logs) == {f"c{n}": talk for n, talk in enumerate(talks())}


def test_who_greets_is_no_user_though_no_name_says_who_speaks() -> None:
    rows = []
    for n, talk in enumerate(talks()):
        rows.append({"chat": f"c{n}", "who": "Zoe", "said": "Hello! How can I help you today?"})
        for side, words in talk:
            rows.append({"chat": f"c{n}", "who": "X" if side == "user" else "Zoe", "said": words})
    logs = read_rows(rows, options=propose(rows))
    assert [turn.role for turn in next(iter(logs)).turns] == ["assistant", "user", "assistant"]


def test_a_column_that_names_both_sides_goes_before_one_that_would_be_guessed() -> None:
    rows = rows_of_turns({"user": "user", "assistant": "bot"})
    for row in rows:
        row["type"] = "input" if row["who"] == "user" else "output"
    logs = read_rows(rows, options=propose(rows))
    assert words_in(logs) == {f"c{n}": talk for n, talk in enumerate(talks())}


def test_a_third_name_that_answers_users_is_the_assistants() -> None:
    rows = rows_of_turns({"user": "visitor", "assistant": "ai_agent"})
    for n in range(3):
        rows.append({"chat": f"c{n}", "who": "user", "said": f"I want a person for {n}."})
        rows.append({"chat": f"c{n}", "who": "system", "said": "The chat was given to Lena."})
        rows.append({"chat": f"c{n}", "who": "user", "said": f"Are you there, in {n}?"})
        rows.append({"chat": f"c{n}", "who": "human_agent", "said": f"Lena here, for {n}."})
    logs = read_rows(rows, options=propose(rows))
    assert [turn.role for turn in next(iter(logs)).turns][-1] == "assistant"


def test_the_id_of_mongodb_names_a_whole_conversation() -> None:
    rows = [
        {"_id": {"$oid": f"6f{n}"}, "messages": row["messages"]}
        for n, row in enumerate(whole_rows())
    ]
    assert [conversation.id for conversation in read_rows(rows)] == [f"6f{n}" for n in range(6)]
