"""Labels, raters and users in a table of their own are joined to the log by a key, and it is said which."""

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.logs import Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.proposal import UnmappedLog
from pollex.formats.read_logs import read_logs

SIGNS = {"positive": "+", "negative": "-", "none": "0"}
LABELS = ["good", "bad", "good", "bad", None, "good"]
READ = "+-+-0+"


def turns_of(number: int) -> list[tuple[str, str]]:
    return [
        ("user", f"Where is my order {number}, please?"),
        ("assistant", f"Order {number} comes on Friday."),
        ("user", f"Thank you for number {number}!"),
        ("assistant", "You are welcome, as always."),
    ]


def save(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def flat(names: tuple[str, str, str], ids: list[Any]) -> list[dict[str, Any]]:
    id_, role, text = names
    return [
        {id_: key, role: speaker, text: words}
        for number, key in enumerate(ids)
        for speaker, words in turns_of(number)
    ]


def signs(logs: Logs) -> str:
    assert [[turn.content for turn in talk.turns] for talk in logs] == [
        [words for _, words in turns_of(number)] for number in range(len(logs))
    ]
    return "".join(SIGNS[talk.label.value] for talk in logs)


def read_or_follow(*paths: Path) -> Logs:
    """Read files; where a way to read them is proposed, read them so."""
    try:
        return read_logs(list(paths))
    except UnmappedLog as error:
        options: dict[str, Any] = dict(error.options)
        options |= {
            name: parse_name_pairs(options[name])
            for name in ("columns", "roles")
            if name in options
        }
        return read_logs(list(paths), options=ReadOptions(**options))


IDS = [f"k-{number}a" for number in range(6)]


@pytest.mark.parametrize(
    ("names", "key", "label"),
    [
        (("conversation_id", "role", "content"), "conv_ref", "Were you helped?"),
        (("session", "who", "words"), "Session", "rating"),
        (("dialog", "speaker", "text"), "about", "verdict"),
    ],
)
def test_labels_in_a_second_file_are_joined_by_the_values_of_a_key_of_another_name(
    names: tuple[str, str, str], key: str, label: str, tmp_path: Path
) -> None:
    log = save(tmp_path / "log.csv", flat(names, IDS))
    rows = [
        {"nr": n, key: id_, label: value}
        for n, (id_, value) in enumerate(zip(IDS, LABELS, strict=True))
    ]
    survey = save(tmp_path / "survey.csv", [*rows[::-1], {"nr": 9, key: "k-99z", label: "bad"}])
    logs = read_or_follow(log, survey)
    assert signs(logs) == READ
    told = " ".join(logs.notes)
    assert f"survey.csv is joined to the log: its {key!r} is {names[0]!r}" in told
    assert "1 row names nothing in the log" in told


def test_ratings_that_have_ids_of_their_own_are_joined_by_the_chat_that_they_name(
    tmp_path: Path,
) -> None:
    with closing(sqlite3.connect(tmp_path / "desk.db")) as database:
        database.execute("CREATE TABLE customers (id INTEGER, plan TEXT)")
        database.execute("CREATE TABLE chats (id INTEGER, customer_id INTEGER, channel TEXT)")
        database.execute(
            "CREATE TABLE chat_lines (id INTEGER, chat_id INTEGER, author TEXT, body TEXT)"
        )
        database.execute("CREATE TABLE chat_ratings (id INTEGER, chat_id INTEGER, thumb TEXT)")
        # the ratings' own ids are also those of customers, and of other chats than they rate
        for number, label in reversed([*enumerate(LABELS)]):
            chat = 501 + number
            database.execute("INSERT INTO customers VALUES (?, 'S')", (number + 1,))
            database.execute("INSERT INTO chats VALUES (?, ?, 'web')", (chat, number + 1))
            if label:
                rating = (6 - number, chat, {"good": "up", "bad": "down"}[label])
                database.execute("INSERT INTO chat_ratings VALUES (?, ?, ?)", rating)
        for number in range(len(LABELS)):
            for place, (speaker, words) in enumerate(turns_of(number)):
                side = {"user": "customer", "assistant": "bot"}[speaker]
                line = (number * 9 + place, 501 + number, side, words)
                database.execute("INSERT INTO chat_lines VALUES (?, ?, ?, ?)", line)
        database.commit()
    assert signs(read_or_follow(tmp_path / "desk.db")) == READ


def test_votes_on_messages_under_usual_names_join_a_log_of_unknown_names(tmp_path: Path) -> None:
    people = [{"id": 1, "name": "Helper"}]
    people += [{"id": 100 + number, "name": f"P{number}"} for number in range(6)]
    lines: list[dict[str, Any]] = []
    votes: list[dict[str, Any]] = []
    for number, label in enumerate(LABELS):
        for speaker, words in turns_of(number):
            sender = 1 if speaker == "assistant" else 100 + number
            place = 7000 + len(lines)
            lines.append({"id": place, "chat_id": number, "sender_id": sender, "text": words})
        if label:
            vote = {"good": "+1", "bad": "-1"}[label]
            votes.append({"message_id": place, "user_id": 100 + number, "vote": vote})
    paths = [
        save(tmp_path / f"{name}.csv", rows)
        for name, rows in (("users", people), ("messages", lines), ("votes", votes))
    ]
    assert signs(read_or_follow(*paths)) == READ


def test_of_several_raters_in_a_second_file_the_majority_counts(tmp_path: Path) -> None:
    log = save(tmp_path / "log.csv", flat(("dialog", "speaker", "text"), IDS))
    rated = [
        {"dialog": id_, "annotator": f"a{n}", "rating": value if n else "bad"}
        for id_, value in zip(IDS, LABELS, strict=True)
        if value
        for n in range(3)
    ]
    assert signs(read_or_follow(log, save(tmp_path / "rated.csv", rated))) == READ


def test_raters_in_columns_side_by_side_count_by_their_majority(tmp_path: Path) -> None:
    log = save(tmp_path / "log.csv", flat(("dialog", "speaker", "text"), IDS))
    rated = [
        {"dialog": id_, "rater_ann": value, "rater_bo": value, "rater_cy": "skip"}
        for id_, value in zip(IDS, LABELS, strict=True)
    ]
    assert signs(read_or_follow(log, save(tmp_path / "rated.csv", rated))) == READ


def test_tables_of_a_database_are_joined_and_a_thumb_on_a_message_is_its_conversations(
    tmp_path: Path,
) -> None:
    with closing(sqlite3.connect(tmp_path / "chat.db")) as database:
        database.execute("CREATE TABLE users (id INTEGER, email TEXT)")
        database.execute("CREATE TABLE chats (id INTEGER, user_id INTEGER, title TEXT)")
        database.execute(
            "CREATE TABLE messages (id INTEGER, chat_id INTEGER, sender TEXT, body TEXT)"
        )
        database.execute("CREATE TABLE votes (id INTEGER, message_id INTEGER, value TEXT)")
        place = 0
        for number, label in enumerate(LABELS, start=1):
            database.execute("INSERT INTO users VALUES (?, ?)", (number, f"u{number}@example.org"))
            database.execute("INSERT INTO chats VALUES (?, ?, 'Order')", (number, number))
            for speaker, words in turns_of(number - 1):
                place += 1
                row = (place, number, {"user": "visitor", "assistant": "bot"}[speaker], words)
                database.execute("INSERT INTO messages VALUES (?, ?, ?, ?)", row)
            if label:
                up_or_down = {"good": "up", "bad": "down"}[label]
                database.execute("INSERT INTO votes VALUES (?, ?, ?)", (number, place, up_or_down))
        database.commit()
    assert signs(read_or_follow(tmp_path / "chat.db")) == READ


def test_files_of_one_talk_each_are_joined_by_their_names(tmp_path: Path) -> None:
    chats = tmp_path / "chats"
    chats.mkdir()
    for number, id_ in enumerate(IDS):
        lines = [
            f"{ {'user': 'Ann', 'assistant': 'Shop'}[speaker] }: {words}"
            for speaker, words in turns_of(number)
        ]
        (chats / f"Chat {id_}.txt").write_text("\n".join(lines))
    rated = [
        {"file": f"Chat {id_}.txt", "rating": value} for id_, value in zip(IDS, LABELS, strict=True)
    ]
    logs = read_or_follow(chats, save(tmp_path / "ratings.csv", rated))
    assert signs(logs) == READ


def test_two_logs_of_different_columns_stay_two_logs(tmp_path: Path) -> None:
    first = save(tmp_path / "old.csv", flat(("conversation_id", "role", "content"), IDS))
    talks = [
        {
            "id": id_,
            "messages": [{"role": role, "content": words} for role, words in turns_of(6 + number)],
        }
        for number, id_ in enumerate(["m1", "m2", "m3", "m4", "m5"])
    ]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, talks)))
    assert len(read_logs([first, tmp_path / "new.jsonl"])) == 11


def test_numbers_that_are_the_same_by_chance_join_nothing(tmp_path: Path) -> None:
    log = save(
        tmp_path / "log.csv",
        flat(("conversation_id", "role", "content"), [str(number) for number in range(6)]),
    )
    prices = [{"article": number, "price": 10 + number} for number in range(6)]
    with pytest.raises(Exception, match="rows are bad"):
        read_logs([log, save(tmp_path / "prices.csv", prices)])


@pytest.mark.parametrize(
    ("ids", "keys"),
    [
        ([f"{number:04}" for number in range(6)], list(range(6))),
        (list(range(2154317, 2154323)), [f"{number}.0" for number in range(2154317, 2154323)]),
    ],
)
def test_labels_join_by_numbers_as_a_spreadsheet_saves_them(
    tmp_path: Path, ids: list[Any], keys: list[Any]
) -> None:
    log = save(tmp_path / "log.csv", flat(("chat_id", "speaker", "text"), ids))
    rows = [{"chat": key, "good?": "yn"[n % 2]} for n, key in enumerate(keys)]
    assert signs(read_or_follow(log, save(tmp_path / "labels.csv", rows))) == "+-" * 3


def test_large_numbers_with_decimals_are_different_keys(tmp_path: Path) -> None:
    keys = list(range(2154317, 2154323))
    log = save(tmp_path / "log.csv", flat(("chat_id", "speaker", "text"), keys))
    labels = tmp_path / "labels.jsonl"
    rows = [{"chat_id": float(key), "rating": ("good", "bad")[key % 2]} for key in keys]
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert signs(read_or_follow(log, labels)) == "-+" * 3
