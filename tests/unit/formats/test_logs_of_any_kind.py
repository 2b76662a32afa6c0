"""Kinds of logs that nobody planned for: documents, events, two tables, wide tables, files of text and of SQLite."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from test_inference import SAID, THUMBS, told, turns_of, wanted

from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.read_logs import read_logs, read_logs_from_rows

SIDES = {"user": "Kunde", "assistant": "Bot"}
FACES = {"up": "😀", "down": "😠"}


def as_proposed(source: Any) -> Logs:
    """Return a log as it is read at once, or with what its error proposes."""
    read: Any = (
        read_logs_from_rows
        if isinstance(source, list) and isinstance(source[0], dict)
        else read_logs
    )
    try:
        return read(source)
    except BadInput as error:
        found: dict[str, Any] = dict(error.options)
        if not found.keys() & {"columns", "roles"}:
            raise
        named = {
            name: parse_name_pairs(found[name]) for name in ("columns", "roles") if name in found
        }
        return read(source, options=ReadOptions(**{**found, **named}))


def in_file(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(
        content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), "utf-8"
    )
    return path


def talks(**more: Sequence[Any]) -> list[dict[str, Any]]:
    """Return each talk as an object with a list of turns and a rating, and further values."""
    return [
        {
            "nr": f"G{n}",
            "verlauf": [{"rolle": SIDES[role], "nachricht": words} for role, words in turns_of(n)],
            "bewertung": {"sterne": 5 if THUMBS[n] == "up" else 1},
            **{name: values[n] for name, values in more.items()},
        }
        for n in range(4)
    ]


DOCUMENTS: dict[str, Any] = {
    "a list in an object": {"exported": "2026-10-10", "gespraeche": talks()},
    "a list deeper": {"_embedded": {"conversations": talks()}, "page": {"number": 1}},
    "objects by their ids": {
        one["nr"]: {name: one[name] for name in one if name != "nr"} for one in talks()
    },
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_conversations_are_found_in_a_document(kind: str, tmp_path: Path) -> None:
    assert told(as_proposed(in_file(tmp_path, "export.json", DOCUMENTS[kind]))) == wanted()


def test_a_list_with_the_newest_first_is_read_from_its_end() -> None:
    rows = talks()
    for row in rows:
        for minute, turn in enumerate(row["verlauf"]):
            turn["zeit"] = f"2026-10-03T09:{minute:02}:00Z"
        row["verlauf"].reverse()
    assert told(as_proposed(rows)) == wanted()


def test_turns_in_lists_of_lists_are_one_talk() -> None:
    rows = [
        {"nr": one["nr"], "parts": [{"phrases": one["verlauf"]}], "thumb": THUMBS[n]}
        for n, one in enumerate(talks())
    ]
    assert told(as_proposed(rows)) == wanted()


def test_events_between_turns_are_no_turns_and_one_may_be_the_thumb() -> None:
    rows = []
    for n in range(4):
        rows.append({"event": "session_started", "session": f"x{n}"})
        for role, words in turns_of(n):
            kind = "user_utterance" if role == "user" else "bot_utterance"
            rows.append({"event": kind, "session": f"x{n}", "payload": {"text": words}})
        value = "positive" if THUMBS[n] == "up" else "negative"
        rows.append({"event": "feedback_given", "session": f"x{n}", "payload": {"value": value}})
    assert told(as_proposed(rows)) == wanted()


def test_a_table_of_talks_has_the_thumbs_of_a_table_of_messages(tmp_path: Path) -> None:
    chats = "".join(f"{n},k{n},{THUMBS[n]}\n" for n in range(4))
    said = "".join(
        f'{n},{SIDES[role]},"{words}"\n' for n in range(4) for role, words in turns_of(n)
    )
    one = in_file(tmp_path, "chats.csv", "chat_id,customer,thumb\n" + chats)
    other = in_file(tmp_path, "messages.csv", "chat_id,sender_kind,body\n" + said)
    assert told(as_proposed([one, other])) == wanted()


def test_thumbs_of_a_second_file_find_talks_by_an_id_of_any_name(tmp_path: Path) -> None:
    messages = [[{"role": role, "content": words} for role, words in turns_of(n)] for n in range(4)]
    rows = [json.dumps({"talk_id": f"q{n}", "messages": messages[n]}) for n in range(4)]
    votes = [
        json.dumps({"talk": f"q{n}", "vote": "👍" if THUMBS[n] == "up" else "👎"}) for n in range(4)
    ]
    files = [
        in_file(tmp_path, "talks.jsonl", "\n".join(rows)),
        in_file(tmp_path, "votes.jsonl", "\n".join(votes)),
    ]
    assert told(read_logs(files)) == wanted()


def test_a_column_for_each_turn_is_a_talk() -> None:
    rows = []
    for n in range(4):
        row: dict[str, Any] = {"session": f"s{n}"}
        for number, (question, answer) in enumerate(SAID[n], start=1):
            row |= {f"question_{number}": question, f"answer_{number}": answer}
        rows.append(row | {"rating": 5 if THUMBS[n] == "up" else 1})
    assert told(as_proposed(rows)) == wanted()


def test_raters_of_talks_without_ids_are_a_majority(tmp_path: Path) -> None:
    rows = [
        {"item": f"i{n}", "rater": f"r{person}", "transcript": told_messages(n), "verdict": said}
        for n in range(4)
        for person, said in enumerate([THUMBS[n], THUMBS[n], "up"])
    ]
    logs = read_logs_from_rows(rows, options=ReadOptions(label_field="verdict"))
    assert told(logs) == wanted()
    assert any("label is the majority's" in note for note in logs.notes)


def told_messages(number: int) -> list[dict[str, str]]:
    return [{"role": role, "content": words} for role, words in turns_of(number)]


def test_what_a_model_was_sent_and_what_came_are_one_talk() -> None:
    rows = []
    for n in range(4):
        *before, last = [
            {"message.role": role, "message.content": words} for role, words in turns_of(n)
        ]
        rows.append(
            {
                "span": f"s{n}",
                "llm.input_messages": json.dumps(before),
                "llm.output_messages": json.dumps([last]),
            }
        )
    assert told(read_logs_from_rows(rows)) == wanted(False)
    nested = [
        {
            "session_id": f"s{n}",
            "meta": {
                "input": {"messages": told_messages(n)[:-1]},
                "output": {"messages": told_messages(n)[-1:]},
            },
        }
        for n in range(4)
    ]
    assert told(read_logs_from_rows(nested)) == wanted(False)


def test_chainlits_database_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "chainlit.db"
    with sqlite3.connect(path) as database:
        database.executescript(
            """CREATE TABLE threads (id, createdAt, name, userId, userIdentifier, tags, metadata);
            CREATE TABLE steps (id, name, type, threadId, parentId, input, output, createdAt);
            CREATE TABLE feedbacks (id, forId, threadId, value, comment);
            INSERT INTO threads VALUES ('t', '2026-01-01', 'T', 'u', 'ada', NULL, '{}');
            INSERT INTO steps VALUES ('s', '', 'user_message', 't', NULL, '', 'Hello?', '2026-01-01T00:00:01Z');
            INSERT INTO steps VALUES ('a', '', 'assistant_message', 't', NULL, '', 'Hi.', '2026-01-01T00:00:02Z');
            INSERT INTO feedbacks VALUES ('f', 'a', 't', 0, 'short');"""
        )
    [talk] = read_logs([path])
    assert [turn.content for turn in talk.turns] == ["Hello?", "Hi."]
    assert (talk.label.value, talk.judge, talk.feedback[0].comment) == ("negative", "ada", "short")


def test_a_sqlite_file_is_read_table_by_table(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE utterances (session_key, party, content, verdict)")
        rows = [
            (f"k{n}", SIDES[role], words, THUMBS[n])
            for n in range(4)
            for role, words in turns_of(n)
        ]
        database.executemany("INSERT INTO utterances VALUES (?, ?, ?, ?)", rows)
    database.close()
    assert told(as_proposed(path)) == wanted()


def test_talks_of_a_text_stand_below_titles(tmp_path: Path) -> None:
    lines = []
    for n in range(4):
        lines += [
            f"=== Chat {n} ===",
            *(f"[09:0{n}:00] {SIDES[role]}: {words}" for role, words in turns_of(n)),
            "",
        ]
    assert told(as_proposed(in_file(tmp_path, "chats.txt", "\n".join(lines)))) == wanted(False)


def test_questions_and_answers_in_a_cell_are_turns() -> None:
    def cell(number: int) -> str:
        return "\n".join(f"Q: {question}\nA: {answer}" for question, answer in SAID[number])

    rows = [
        {"ticket": n, "dialogue": cell(n), "helpful": "Yes" if THUMBS[n] == "up" else "No"}
        for n in range(4)
    ]
    assert told(as_proposed(rows)) == wanted()


def test_faces_and_flags_of_messages_are_thumbs() -> None:
    for value in (FACES, {"up": ["vote-up"], "down": ["vote-down"]}):
        rows = talks()
        for n, row in enumerate(rows):
            row["verlauf"][-1]["flags"] = value[THUMBS[n]]
            del row["bewertung"]
        assert told(as_proposed(rows)) == wanted()


def test_the_one_column_that_is_plainly_a_thumb_is_taken_and_told() -> None:
    rows = [
        {
            "uid": n,
            "prompt": SAID[n][0][0],
            "completion": SAID[n][0][1],
            "ok": int(THUMBS[n] == "up"),
        }
        for n in range(4)
    ]
    logs = read_logs_from_rows(rows)
    assert [label for label, _ in told(logs)] == [label for label, _ in wanted()]
    assert any(
        "labels come from 'ok', the one column that looks like a thumb" in note
        for note in logs.notes
    )
    two = [row | {"user_rating": "up"} for row in rows]
    assert {label for label, _ in told(read_logs_from_rows(two))} == {"none"}


def test_each_file_is_a_talk_where_no_column_names_one(tmp_path: Path) -> None:
    files = [
        in_file(
            tmp_path,
            f"{n}.json",
            [{"wer": SIDES[role], "was": words} for role, words in turns_of(n)],
        )
        for n in range(4)
    ]
    assert told(as_proposed(files)) == wanted(False)


def test_a_column_of_speakers_is_never_proposed_as_words() -> None:
    rows = [
        {
            "id": f"t{n}",
            "runs": [
                {"input": {"by": "user", "said": q}, "output": {"said": a}} for q, a in SAID[n]
            ],
        }
        for n in range(4)
    ]
    assert told(as_proposed(rows)) == wanted(False)


def refused(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the options that the error of some rows proposes."""
    with pytest.raises(BadInput, match="say what these labels mean") as error:
        read_logs_from_rows(rows)
    return dict(error.value.options)


def test_what_unknown_words_for_thumbs_mean_is_proposed_where_it_is_plain() -> None:
    words = {"up": "Good, I'm satisfied", "down": "Bad, I'm unsatisfied"}
    rows = [
        {"id": str(n), "messages": told_messages(n), "thumb": words[THUMBS[n]]} for n in range(4)
    ]
    options = refused(rows)
    assert options == {"positive": '"Good, I\'m satisfied"', "negative": '"Bad, I\'m unsatisfied"'}
    assert told(read_logs_from_rows(rows, options=ReadOptions(**options))) == wanted()
    assert refused([row | {"thumb": f"kind {n}"} for n, row in enumerate(rows)]) == {}


def test_rows_of_a_second_file_say_what_their_label_may_be(tmp_path: Path) -> None:
    talks_said = [
        json.dumps({"session_id": f"q{n}", "messages": told_messages(n)}) for n in range(4)
    ]
    words = {"up": "acceptable", "down": "unacceptable"}
    labels = "".join(f"q{n},{words[THUMBS[n]]}\n" for n in range(4))
    files = [
        in_file(tmp_path, "talks.jsonl", "\n".join(talks_said)),
        in_file(tmp_path, "labels.csv", "session_id,quality\n" + labels),
    ]
    with pytest.raises(BadInput) as error:
        read_logs(files, options=ReadOptions(confirm=True))
    options: dict[str, Any] = dict(error.value.options)
    assert options == {
        "label_field": "quality",
        "positive": "acceptable",
        "negative": "unacceptable",
    }
    assert told(read_logs(files, options=ReadOptions(**options))) == wanted()
    # its name and its values leave no doubt
    assert told(read_logs(files)) == wanted()
