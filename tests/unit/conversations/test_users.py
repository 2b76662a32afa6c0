"""A field that names the user groups conversations by itself, once its values show that it does."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Conversation, Turn
from pollex.conversations.logs import Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs
from pollex.formats.users import rank_user_field

ROWS = 24


def log_with(tmp_path: Path, fields: Callable[[int], dict[str, Any]], **options: Any) -> Logs:
    """Read a log whose rows have these fields beside their words."""
    rows = [
        {
            "id": f"c{row}",
            "messages": [
                {"role": "user", "content": f"question {row}"},
                {"role": "assistant", "content": "answer"},
            ],
            **fields(row),
        }
        for row in range(ROWS)
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return read_logs(path, options=ReadOptions(**options))


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        (lambda row: {"user_id": row % 6}, "user_id"),
        (lambda row: {"user": f"u{row % 6}"}, "user"),
        (lambda row: {"metadata": {"user": f"u{row % 6}", "plan": "free"}}, "metadata.user"),
        (lambda row: {"customer": f"Ms {row % 8}"}, "customer"),
        (lambda row: {"session": {"user": {"id": row % 5}}}, "session.user.id"),
        (lambda row: {"langfuse.user.id": f"u{row % 6}"}, "langfuse.user.id"),
        (lambda row: {"Kundennummer": 4711 + row % 7}, "Kundennummer"),
        (lambda row: {"clientId": row % 7, "client": "web"}, "clientId"),
        (lambda row: {"user": "guest", "account_id": row % 7}, "account_id"),
    ],
)
def test_a_field_that_names_users_groups_by_itself(
    tmp_path: Path, fields: Callable[[int], dict[str, Any]], path: str
) -> None:
    logs = log_with(tmp_path, fields)

    assert logs.group_field == path
    assert all(one.group for one in logs)
    assert [note for note in logs.notes if repr(path) in note and "group_field='none'" in note]


@pytest.mark.parametrize(
    "fields",
    [
        lambda row: {"user_id": row},  # one a row
        lambda row: {"user": ("free", "pro", "team")[row % 3]},  # three in all
        # channels
        lambda row: {"client": ("web", "ios", "android", "desktop", "api")[row % 5]},
        lambda row: {
            "user_rating": row % 5,
            "user_language": ["en", "de", "fr", "it", "es"][row % 5],
        },
        lambda row: {"user": "anonymous" if row % 2 else f"u{row}"},
    ],
)
def test_a_field_whose_values_are_no_users_groups_nothing(
    tmp_path: Path, fields: Callable[[int], dict[str, Any]]
) -> None:
    logs = log_with(tmp_path, fields)

    assert logs.group_field == ""
    assert not any(one.group for one in logs)


def test_none_as_group_field_lets_each_conversation_stand_alone(tmp_path: Path) -> None:
    logs = log_with(
        tmp_path, lambda row: {"user_id": row % 6, "group": row % 2}, group_field="none"
    )

    assert not any(one.group for one in logs)
    assert not [note for note in logs.notes if "user_id" in note]


def test_a_named_group_stands_over_the_field_of_users(tmp_path: Path) -> None:
    logs = log_with(
        tmp_path, lambda row: {"user_id": row % 6, "shop": f"s{row % 2}"}, group_field="shop"
    )

    assert {one.group for one in logs} == {"s0", "s1"}


def test_users_of_a_redacted_log_stay_apart_and_are_not_named(tmp_path: Path) -> None:
    logs = log_with(tmp_path, lambda row: {"user_email": f"p{row % 6}@example.org"}, redact="yes")

    groups = {one.group for one in logs}
    assert len(groups) == 6
    assert not any("example.org" in str(group) for group in groups)


def test_sessions_ratings_and_plurals_name_no_user() -> None:
    assert not [
        name
        for name in ("session.id", "user_type", "users", "client", "username_count")
        if rank_user_field(name)
    ]


def copies(tmp_path: Path, thumb: Callable[[int], str]) -> Logs:
    """Read a log in which each of six courses of a talk comes four times, with other replies."""

    def row(number: int) -> dict[str, Any]:
        course = number % 6
        said = (
            f"I want to change the address of my order of {course} lamps",
            "It goes to my office in the city",
        )
        turns = [
            turn
            for words in said
            for turn in (
                {"role": "user", "content": words},
                {"role": "assistant", "content": f"Reply {number}"},
            )
        ]
        return {"messages": turns, "thumbs": thumb(number)}

    return log_with(tmp_path, row)


def test_near_copies_whose_thumbs_are_alike_count_together_where_no_field_names_users(
    tmp_path: Path,
) -> None:
    logs = copies(tmp_path, lambda number: "up" if number % 6 < 3 else "down")

    assert len({one.group for one in logs}) == 6
    assert [note for note in logs.notes if "the user says the same" in note]


def test_one_question_of_many_users_whose_thumbs_differ_as_elsewhere_makes_no_group(
    tmp_path: Path,
) -> None:
    logs = copies(tmp_path, lambda number: "up" if number // 6 % 2 else "down")

    assert not any(one.group for one in logs)


@pytest.mark.parametrize(
    "signs",
    [
        "what_is 3rd, don't\tSTOP\x1c",
        "Straße – „müde“ naïve\u00a0x²",
        "कार्य ワード 🙂 e\u0301 \ud800",
    ],
)
def test_words_of_a_user_are_split_as_in_any_language_whatever_signs_stand_between(
    signs: str,
) -> None:
    said = [f"{signs} one two three four {number} five six" for number in range(2)]
    turns = [
        turn
        for words in said
        for turn in (Turn(role="user", content=words), Turn(role="assistant", content="yes"))
    ]
    lines = [" ".join(re.findall(r"\w+", words.casefold())) for words in said]
    expected = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert Conversation(id="c1", turns=tuple(turns)).asked_hash == expected
