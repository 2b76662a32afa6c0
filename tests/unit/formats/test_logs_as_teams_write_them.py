"""Logs as teams write them themselves: comments and labels under names of their own, and turns in other shapes."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Label, iterate_tool_uses
from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.log_shapes.readers import iterate_metadata_times
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.read_logs import read_logs, read_logs_from_rows
from pollex.rubrics.learning.circumstances import get_conversation_time_as_number

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
    columns = parse_name_pairs(proposed.pop("columns", ""))
    roles = parse_name_pairs(proposed.pop("roles", ""))
    return ReadOptions(columns=columns, roles=roles, **proposed)  # type: ignore[arg-type]


def propose(rows: Sequence[dict[str, Any]]) -> ReadOptions:
    with pytest.raises(BadInput) as raised:
        read_logs_from_rows(rows, options=ReadOptions(confirm=True))
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
    logs = read_logs_from_rows(
        whole_rows(thumb=THUMBS, **{name: ("fine", "too slow", None, None, "", "")})
    )
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
    assert comments_in(read_logs_from_rows(whole_rows(thumb=THUMBS, note=values))) == []


def test_of_two_columns_that_may_be_comments_none_is_taken_and_both_are_told() -> None:
    written = ("quite good", None, None, None, None, "far too slow")
    logs = read_logs_from_rows(whole_rows(thumb=THUMBS, why=written, survey_remark=written))
    assert comments_in(logs) == []
    assert "may be in 'why', 'survey_remark'" in " ".join(logs.notes)


def test_a_comment_in_a_row_of_the_thumb_alone_stays_with_it() -> None:
    rows = []
    for n, talk in enumerate(talks()):
        for side, words in talk:
            rows.append({"m": {"sid": f"c{n}", "by": side, "content": words}})
        rows.append({"m": {"sid": f"c{n}", "vote": "down", "voteText": f"no help {n}"}})
    columns = parse_name_pairs("conversation=m.sid,role=m.by,text=m.content,label=m.vote")
    logs = read_logs_from_rows(rows, options=ReadOptions(columns=columns))
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
    logs = read_logs_from_rows(rows, options=propose(rows))
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
    logs = read_logs_from_rows(rows, options=propose(rows))
    assert words_in(logs) == {f"c{n}": talk for n, talk in enumerate(talks())}


def test_who_greets_is_no_user_though_no_name_says_who_speaks() -> None:
    rows = []
    for n, talk in enumerate(talks()):
        rows.append({"chat": f"c{n}", "who": "Zoe", "said": "Hello! How can I help you today?"})
        for side, words in talk:
            rows.append({"chat": f"c{n}", "who": "X" if side == "user" else "Zoe", "said": words})
    logs = read_logs_from_rows(rows, options=propose(rows))
    assert [turn.role for turn in next(iter(logs)).turns] == ["assistant", "user", "assistant"]


def test_a_column_that_names_both_sides_goes_before_one_that_would_be_guessed() -> None:
    rows = rows_of_turns({"user": "user", "assistant": "bot"})
    for row in rows:
        row["type"] = "input" if row["who"] == "user" else "output"
    logs = read_logs_from_rows(rows, options=propose(rows))
    assert words_in(logs) == {f"c{n}": talk for n, talk in enumerate(talks())}


def test_a_third_name_that_answers_users_is_the_assistants() -> None:
    rows = rows_of_turns({"user": "visitor", "assistant": "ai_agent"})
    for n in range(3):
        rows.append({"chat": f"c{n}", "who": "user", "said": f"I want a person for {n}."})
        rows.append({"chat": f"c{n}", "who": "system", "said": "The chat was given to Lena."})
        rows.append({"chat": f"c{n}", "who": "user", "said": f"Are you there, in {n}?"})
        rows.append({"chat": f"c{n}", "who": "human_agent", "said": f"Lena here, for {n}."})
    logs = read_logs_from_rows(rows, options=propose(rows))
    assert [turn.role for turn in next(iter(logs)).turns][-1] == "assistant"


def test_the_id_of_mongodb_names_a_whole_conversation() -> None:
    rows = [
        {"_id": {"$oid": f"6f{n}"}, "messages": row["messages"]}
        for n, row in enumerate(whole_rows())
    ]
    assert [conversation.id for conversation in read_logs_from_rows(rows)] == [
        f"6f{n}" for n in range(6)
    ]


def calls_in(logs: Logs) -> list[tuple[str, str, str]]:
    calls = []
    for conversation in logs:
        for use in iterate_tool_uses(conversation.turns):
            answer = "" if use.result is None else conversation.turns[use.result].content
            calls.append((use.call.name, use.call.arguments, answer))
    return calls


def test_calls_of_tools_in_rows_of_a_program_are_calls() -> None:
    rows: list[dict[str, Any]] = []
    for n, talk in enumerate(talks()):
        (_, asked), (_, told) = talk
        about = {"cid": f"c{n}"}
        rows.append({**about, "event": "user_message", "text": asked})
        rows.append({**about, "event": "call", "tool": "find", "arguments": {"n": n}, "call_id": n})
        rows.append({**about, "event": "result", "tool": "find", "result": {"at": n}, "call_id": n})
        rows.append({**about, "event": "assistant_message", "text": told})
    logs = read_logs_from_rows(rows, options=propose(rows))
    assert calls_in(logs) == [("find", f'{{"n": {n}}}', f'{{"at": {n}}}') for n in range(6)]


def test_calls_of_tools_in_the_steps_of_an_agent_are_calls() -> None:
    rows = []
    for n, ((_, asked), (_, told)) in enumerate(talks()):
        call = {"type": "action", "tool": "find", "tool_input": {"n": n}, "observation": "here"}
        said = {"type": "human", "content": asked}
        rows.append({"run": f"c{n}", "steps": [said, call, {"type": "final", "content": told}]})
    logs = read_logs_from_rows(rows, options=propose(rows))
    assert calls_in(logs) == [("find", f'{{"n": {n}}}', "here") for n in range(6)]
    assert next(iter(logs)).turns[0].role == "user"


def test_talks_and_turns_under_keys_that_a_database_made_are_read(tmp_path: Path) -> None:
    tree = {}
    for n, talk in enumerate(talks()):
        turns = {f"-Ox{k}": {"from": side, "text": words} for k, (side, words) in enumerate(talk)}
        tree[f"-Na{n}"] = {"uid": "u", "messages": turns, "rating": ("good", "bad")[n % 2]}
    path = tmp_path / "export.json"
    path.write_text(json.dumps({"conversations": tree, "config": {"hello": "Hi there, you"}}))
    logs = read_logs(path)
    assert words_in(logs) == {f"-Na{n}": talk for n, talk in enumerate(talks())}


ESCAPED = "chat_id\trole\ttext\tnote\n" + "".join(
    f'{n}\tuser\tWhere is "it" now?\t\\N\n{n}\tassistant\tHere:\\n\\nat the depot {n}.\tso\n'
    for n in range(4)
)


def test_a_table_of_tabs_has_the_escapes_of_its_database(tmp_path: Path) -> None:
    path = tmp_path / "messages.tsv"
    path.write_text(ESCAPED, encoding="utf-8")
    first = next(iter(read_logs(path)))
    assert [turn.content for turn in first.turns] == [
        'Where is "it" now?',
        "Here:\n\nat the depot 0.",
    ]


def test_a_folder_in_a_table_of_tabs_is_no_escape(tmp_path: Path) -> None:
    path = tmp_path / "messages.tsv"
    rows = "".join(
        f"{n}\tuser\tWhere is C:\\new?\n{n}\tassistant\tIn D:\\tools\\{n}.\n" for n in range(4)
    )
    path.write_text("chat_id\trole\ttext\n" + rows, encoding="utf-8")
    assert next(iter(read_logs(path))).turns[0].content == "Where is C:\\new?"


def test_labels_join_by_phone_numbers_and_nps_is_proposed_by_its_name(tmp_path: Path) -> None:
    messages = []
    for n, talk in enumerate(talks()):
        for side, words in talk:
            way = {"user": "inbound", "assistant": "outbound"}[side]
            messages.append({"contact": f"+44790579656{n}", "direction": way, "body": words})
    marks = [{"phone": f"+44790579656{n}", "nps": nps} for n, nps in enumerate((9, 6, 8, 10, 7, 3))]
    files = [
        write_csv(tmp_path / "sms.csv", messages),
        write_csv(tmp_path / "survey.csv", marks),
    ]
    with pytest.raises(BadInput) as raised:
        read_logs(files)
    options = follow(raised.value)
    assert (options.positive, options.negative) == (">=9", "<=6")
    labels = [conversation.label.value for conversation in read_logs(files, options=options)]
    assert labels == ["positive", "negative", "none", "positive", "none", "negative"]


def test_plus_and_minus_are_sides_where_the_user_says_so(tmp_path: Path) -> None:
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps(CLAUDE), encoding="utf-8")
    marks = write_csv(
        tmp_path / "m.csv", [{"about": f"u-{n}", "vote": "+-"[n % 2]} for n in range(4)]
    )
    logs = read_logs([export, marks], options=ReadOptions(positive="+", negative="-"))
    labels = [conversation.label.value for conversation in logs][:4]
    assert labels == ["positive", "negative"] * 2


LEX = [
    {
        "sessionId": f"c{n}",
        "inputTranscript": asked,
        "messages": [{"content": told, "contentType": "PlainText"}],
        "bot": {"name": "b"},
        "requestId": f"r{n}",
    }
    for n, ((_, asked), (_, told)) in enumerate(talks())
]


def test_rows_of_an_export_are_read_out_of_those_of_a_service_of_logs(tmp_path: Path) -> None:
    events = [
        {"timestamp": n, "eventId": str(n), "message": json.dumps(row)} for n, row in enumerate(LEX)
    ]
    path = tmp_path / "events.json"
    path.write_text(json.dumps({"events": events, "searchedLogStreams": []}), encoding="utf-8")
    assert words_in(read_logs(path)) == {f"c{n}": talk for n, talk in enumerate(talks())}
    # thumbs beside them are of their talks
    rows = [{"sessionId": f"c{n}", "vote": "up" if n % 2 else "down"} for n in range(len(LEX))]
    logs = read_logs([path, write_csv(tmp_path / "votes.csv", rows)])
    labels = {talk.id: talk.label.value for talk in logs}
    assert labels == {f"c{n}": "positive" if n % 2 else "negative" for n in range(len(LEX))}


def test_what_somebody_says_is_no_row_of_an_export() -> None:
    said = json.dumps(LEX[0])
    rows = [
        {"conversation_id": "a", "role": "user", "message": said},
        {"conversation_id": "a", "role": "assistant", "message": "That is a line of a log."},
    ]
    assert next(iter(read_logs_from_rows(rows))).turns[0].content == said


def test_tables_of_lobechat_stand_in_its_state_and_keep_calls(tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = []
    for n, ((_, asked), (_, told)) in enumerate(talks()):
        call = {"id": f"k{n}", "apiName": "find", "arguments": '{"n": 1}'}
        about = {"topicId": f"c{n}", "sessionId": "s", "createdAt": 1_770_000_000_000 + n}
        messages.append({**about, "id": f"{n}a", "role": "user", "content": asked})
        messages.append(
            {**about, "id": f"{n}b", "role": "assistant", "content": "", "tools": [call]}
        )
        messages.append(
            {**about, "id": f"{n}c", "role": "tool", "content": "here", "tool_call_id": f"k{n}"}
        )
        messages.append({**about, "id": f"{n}d", "role": "assistant", "content": told})
        for k, message in enumerate(messages[-4:]):
            message["parentId"] = messages[-4 + k - 1]["id"] if k else None
    state = {
        "messages": messages,
        "sessions": [{"id": "s", "config": {"systemRole": "You are kind."}}],
        "topics": [{"id": "c0", "sessionId": "s", "title": "Where is it?"}],
    }
    path = tmp_path / "lobe.json"
    path.write_text(json.dumps({"exportType": "sessions", "state": state, "version": 7}))
    logs = read_logs(path)
    assert [conversation.id for conversation in logs] == [f"c{n}" for n in range(6)]
    assert calls_in(logs) == [("find", '{"n": 1}', "here")] * 6


def test_chats_of_lm_studio_have_the_selected_versions_and_their_files_as_ids(
    tmp_path: Path,
) -> None:
    marks = []
    for n, ((_, asked), (_, told)) in enumerate(talks()):
        versions = []
        for words in ("I can't help.", told):
            step = {"type": "contentBlock", "content": [{"type": "text", "text": words}]}
            versions.append({"role": "assistant", "steps": [step, {"type": "debugInfoBlock"}]})
        question = {"role": "user", "content": [{"type": "text", "text": asked}]}
        messages = [
            {"versions": [question], "currentlySelected": 0},
            {"versions": versions, "currentlySelected": 1},
        ]
        (tmp_path / f"{n}.conversation.json").write_text(
            json.dumps({"name": "chat", "messages": messages}), encoding="utf-8"
        )
        marks.append({"file": f"{n}.conversation.json", "verdict": ("good", "bad")[n % 2]})
    write_csv(tmp_path / "verdicts.csv", marks)
    logs = read_logs(tmp_path)
    assert words_in(logs) == {f"{n}.conversation": talk for n, talk in enumerate(talks())}
    assert [conversation.label.value for conversation in logs] == ["positive", "negative"] * 3


def test_chats_of_messenger_have_their_letters_and_their_order(tmp_path: Path) -> None:
    def broken(text: str) -> str:
        return text.encode().decode("latin-1")

    for n, ((_, asked), (_, told)) in enumerate(talks()):
        messages = [
            {"sender_name": broken("Vélo"), "timestamp_ms": 1_770_000_060_000, "content": told},
            {
                "sender_name": broken("Zoé"),
                "timestamp_ms": 1_770_000_000_000,
                "content": broken(f"{asked} Là ?"),
            },
        ]
        messages[0]["reactions"] = [{"reaction": broken("👎"), "actor": broken("Zoé")}]
        chat = {
            "participants": [{"name": broken("Zoé")}, {"name": broken("Vélo")}],
            "messages": messages,
            "title": broken("Zoé"),
            "thread_path": f"inbox/c{n}",
        }
        (tmp_path / f"{n}.json").write_text(json.dumps(chat), encoding="utf-8")
    logs = read_logs(tmp_path)
    first = next(iter(logs))
    assert [(turn.role, turn.content) for turn in first.turns] == [
        ("user", "Where is parcel 0? Là ?"),
        ("assistant", "Parcel 0 is at the depot."),
    ]
    assert first.label == "negative"
    assert "whoever has the chat's name is the user" in " ".join(logs.notes)
    turned = read_logs(
        tmp_path, options=ReadOptions(roles=parse_name_pairs("assistant=Zoé,user=*"))
    )
    assert [turn.role for turn in next(iter(turned)).turns] == ["assistant", "user"]


def test_an_answer_of_words_to_a_question_of_argilla_is_a_comment() -> None:
    rows = []
    for n, talk in enumerate(talks()):
        chat = [{"role": side, "content": words} for side, words in talk]
        answers = {"satisfied": [{"value": ("yes", "no")[n % 2]}], "remark": [{"value": "So so"}]}
        rows.append(
            {"id": str(n), "fields": {"chat": chat}, "responses": answers, "suggestions": {}}
        )
    logs = read_logs_from_rows(rows, options=ReadOptions(label_field="satisfied"))
    assert comments_in(logs) == ["So so"] * 6


def write_calls(kind: str, n: int) -> list[dict[str, Any]]:
    call = {"cid": f"c{n}", "event": f"{kind}_call", "name": "find", "arguments": {"n": n}}
    result = {"cid": f"c{n}", "event": f"{kind}_output", "output": "here", "call_id": n}
    return [call | {"call_id": n}, result]


@pytest.mark.parametrize(("kind", "expected"), [("function", 6), ("transaction", 0)])
def test_a_record_without_a_tool_is_a_call_where_its_kind_says_so(kind: str, expected: int) -> None:
    rows: list[dict[str, Any]] = []
    for n, ((_, asked), (_, told)) in enumerate(talks()):
        rows.append({"cid": f"c{n}", "event": "user_message", "text": asked})
        rows += write_calls(kind, n)
        rows.append({"cid": f"c{n}", "event": "assistant_message", "text": told})
    assert len(calls_in(read_logs_from_rows(rows, options=propose(rows)))) == expected


def named(side: str) -> str:
    return "Kunde" if side == "user" else "Bot"


CELLS = [
    {"nr": f"c{n}", "log": [[f"10:0{k}", named(side), words] for k, (side, words) in enumerate(t)]}
    for n, t in enumerate(talks())
]
BEFORE_COLONS = [
    {"nr": f"c{n}", "log": [f"{named(side)}: {words}" for side, words in talk]}
    for n, talk in enumerate(talks())
]


@pytest.mark.parametrize("rows", [CELLS, BEFORE_COLONS], ids=["cells", "before colons"])
def test_turns_may_be_cells_or_texts_with_names(rows: list[dict[str, Any]]) -> None:
    logs = read_logs_from_rows(rows, options=propose(rows))
    assert words_in(logs) == {f"c{n}": talk for n, talk in enumerate(talks())}


def test_turns_by_key_may_stand_under_the_ids_of_their_talks(tmp_path: Path) -> None:
    tree = {}
    for n, talk in enumerate(talks()):
        tree[f"c{n}"] = {f"-O{n}{k}": {"from": s, "text": w} for k, (s, w) in enumerate(talk)}
    path = tmp_path / "export.json"
    path.write_text(json.dumps({"messages": tree, "users": {"u1": {"name": "A B"}}}))
    assert words_in(read_logs(path)) == {f"c{n}": talk for n, talk in enumerate(talks())}


def test_documents_of_an_index_are_rows(tmp_path: Path) -> None:
    hits = []
    for n, talk in enumerate(talks()):
        for k, (side, words) in enumerate(talk):
            document = {"session_id": f"c{n}", "role": side, "content": words}
            hits.append({"_index": "chat", "_id": f"{n}-{k}", "_source": document})
    path = tmp_path / "search.json"
    path.write_text(json.dumps({"took": 3, "hits": {"total": 12, "hits": hits}}), encoding="utf-8")
    assert words_in(read_logs(path)) == {f"c{n}": talk for n, talk in enumerate(talks())}


def test_labels_of_many_columns_join_an_export_too(tmp_path: Path) -> None:
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps(CLAUDE), encoding="utf-8")
    marks = []
    for n in range(4):
        beside = {f"c{k}": f"some words of a form {k}" for k in range(9)}
        marks.append({"about": f"u-{n}", "rating": ["good", "bad"][n % 2], **beside})
    logs = read_logs([export, write_csv(tmp_path / "survey.csv", marks)])
    labels = [conversation.label.value for conversation in logs][:4]
    assert labels == ["positive", "negative"] * 2


def test_a_comment_beside_a_question_and_its_answer_counts_once() -> None:
    rows = []
    for n, ((_, asked), (_, told)) in enumerate(talks()):
        rows.append({"chat_id": f"c{n}", "question": asked, "answer": told})
        second = {"chat_id": f"c{n}", "question": f"And {n}?", "answer": f"No, not {n}."}
        rows.append(second | {"thumb": "down", "comment": f"no help {n}"})
    logs = read_logs_from_rows(rows)
    assert comments_in(logs) == [f"no help {n}" for n in range(6)]
    assert next(iter(logs)).feedback[0].turn == 3


def test_a_word_that_comes_again_and_again_is_no_comment_and_the_labels_own_object_goes_first() -> (
    None
):
    rows = []
    for n, talk in enumerate(talks()):
        events = [{"by": side, "said": words, "reason": "spoken"} for side, words in talk]
        marks = {"csat": 1 + 4 * (n % 2), "verbatim": f"no help {n}"}
        rows.append({"call": f"c{n}", "events": events, "survey": marks})
    options = propose(rows)
    assert dict(options.columns)["comment"] == "survey.verbatim"


def write_talks_as_text(path: Path, head: str, user: str, assistant: str) -> Path:
    parts = []
    for n, ((_, asked), (_, told)) in enumerate(talks(12), start=1):
        parts.append(f"{head.format(n=n)}\n{user}: {asked}\n{assistant}: {told}\n")
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("head", "id_"),
    [
        ("=== Chat {n} | 2026-05-04 08:{n:02}:00 ===", "Chat 3"),
        ("--- Fall {n} (04.05.2026 08:{n:02}:00) ---", "Fall 3"),
        ("=== Gespräch {n} | Datum: 04.05.2026 08:{n:02}:00 ===", "Gespräch 3"),
        (
            "=======\nTalk {n} from 2026-05-04T08:{n:02}:00",
            "Talk 3 from 2026-05-04T08:03:00",
        ),
    ],
)
def test_dates_in_headings_are_when_a_talk_began(tmp_path: Path, head: str, id_: str) -> None:
    logs = read_logs([write_talks_as_text(tmp_path / "chats.txt", head, "Gast", "Bot")])
    assert [*words_in(logs).values()] == [*talks(12)]
    third = logs.conversations[2]
    assert third.id == id_
    assert [*iterate_metadata_times(third.metadata)] == [1777881780]


def test_a_talk_began_when_its_first_turn_was_said(tmp_path: Path) -> None:
    path = write_talks_as_text(
        tmp_path / "log.txt",
        "----------",
        "[04.05.2026 08:03:00] Kunde",
        "[04.05.2026 08:03:09] Mitarbeiter",
    )
    logs = read_logs([path])
    assert len(logs) == 12
    assert [*iterate_metadata_times(logs.conversations[5].metadata)] == [1777881780]


@pytest.mark.parametrize(
    ("user", "assistant"),
    [
        ("Klant", "Klantenservice"),
        ("Kunde", "Kundendienst"),
        ("Cliente", "Servicio al cliente"),
        ("Customer", "Customer Care"),
        ("Cliente", "Atendimento ao cliente"),
    ],
)
def test_who_serves_customers_is_no_customer(tmp_path: Path, user: str, assistant: str) -> None:
    rows = []
    for n, ((_, asked), (_, told)) in enumerate(talks(12)):
        talk = f"(08:00:00) {user}: {asked}\n(08:00:37) {assistant}: {told}"
        rows.append({"number": f"n{n}", "gesprek": talk, "rating": ("good", "bad", "")[n % 3]})
    logs = read_logs([write_csv(tmp_path / "chats.csv", rows)])
    assert [*words_in(logs).values()] == [*talks(12)]
    assert [*words_in(logs)] == [f"n{n}" for n in range(12)]
    assert logs.counts[Label.POSITIVE] == 4


def test_exchanges_in_pairs_stand_under_the_ids_of_their_talks(tmp_path: Path) -> None:
    tree = {}
    expected = {}
    said = [*talks(24)]
    for n in range(12):
        expected[f"c{n}"] = [*said[2 * n], *said[2 * n + 1]]
        pairs = [[words for _, words in talk] for talk in said[2 * n : 2 * n + 2]]
        tree[f"c{n}"] = {"history": pairs, "thumb": ("👍", "👎", None)[n % 3]}
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"conversations": tree}))
    logs = read_logs(path)
    assert words_in(logs) == expected
    assert logs.counts[Label.POSITIVE] == logs.counts[Label.NEGATIVE] == 4


def test_no_sentence_is_proposed_as_who_speaks() -> None:
    rows = []
    for n in range(8):
        words = ["Where is my parcel?", "I will look for it in the depot at once."][n % 2]
        rows.append({"chat": f"c{n // 2}", "a": words, "b": "It is late, I am sorry for that."})
    with pytest.raises(BadInput) as raised:
        read_logs_from_rows(rows)
    assert "look for it" not in str(raised.value.options)


def test_stars_of_exchanges_that_share_their_conversation_are_read_with_it() -> None:
    rows = []
    for n, ((_, asked), (_, told)) in enumerate(talks(24)):
        stars = (5, 1, 3, 4)[n // 2 % 4]
        rows.append({"chat": f"c{n // 2}", "prompt": asked, "completion": told, "stars": stars})
    logs = read_logs_from_rows(rows)
    assert [len(conversation.turns) for conversation in logs] == [4] * 12
    assert logs.counts[Label.POSITIVE] == 6
    assert logs.counts[Label.NEGATIVE] == 3


def test_dutch_tables_have_their_dates_and_labels() -> None:
    rows = []
    for n, talk in enumerate(talks(12)):
        for minute, (side, words) in enumerate(talk):
            rows.append(
                {
                    "gesprek": f"N{n}",
                    "tijd": f"{n + 10}-05-2026 08:0{minute}",
                    "afzender": {"user": "Klant", "assistant": "Medewerker"}[side],
                    "bericht": words,
                    "tevredenheid": ("tevreden", "ontevreden", "geen mening")[n % 3],
                }
            )
    logs = read_logs_from_rows(rows)
    assert words_in(logs) == {f"N{n}": talk for n, talk in enumerate(talks(12))}
    assert {*logs.counts.values()} == {4}
    assert min(iterate_metadata_times(logs.conversations[0].metadata)) == 1778400000


def test_up_and_down_inside_a_field_are_one_label() -> None:
    rows = whole_rows(thumbs=[{"up": n == 0, "down": n == 1} for n in (0, 1, 2) * 2])
    logs = read_logs_from_rows(rows)
    sides = [conversation.label.value for conversation in logs]
    assert sides == ["positive", "negative", "none"] * 2


def test_raters_columns_beside_messages_are_the_label() -> None:
    said = ["up", "down", "-"] * 2
    others = ["down", "down", "-"] * 2
    rows = whole_rows(rater_1=said, rater_2=said, rater_3=others)
    logs = read_logs_from_rows(rows)
    sides = [conversation.label.value for conversation in logs]
    assert sides == ["positive", "negative", "none"] * 2


def test_a_question_in_a_header_is_no_conversation_and_the_session_is() -> None:
    rows = []
    for n, ((_, asked), (_, told)) in enumerate(talks(24)):
        useful = ("Ja", "Nein", "k. A.")[n // 2 % 3]
        words = {"Kundenfrage": asked, "Bot-Antwort": told}
        rows.append({"Sitzungs-ID": f"S{n // 2}", **words, "War das hilfreich?": useful})
    logs = read_logs_from_rows(rows)
    assert [*words_in(logs)] == [f"S{n}" for n in range(12)]
    assert {*logs.counts.values()} == {4}


def test_initials_say_nothing_of_who_speaks() -> None:
    rows = []
    for n, talk in enumerate(talks(12)):
        names = {"user": ("A. Lang", "B. Kurz", "C. Gross", "V. Klein")[n % 4]}
        for side, words in talk:
            name = names.get(side, "Kundenservice Nora")
            stars = (5, 1, 3)[n % 3]
            rows.append({"Ticket": n, "Verfasser": name, "Text": words, "Sternebewertung": stars})
    logs = read_logs_from_rows(rows, options=propose(rows))
    assert [*words_in(logs).values()] == [*talks(12)]
    assert {*logs.counts.values()} == {4}


def test_a_number_on_a_line_of_its_own_names_a_talk(tmp_path: Path) -> None:
    path = write_talks_as_text(
        tmp_path / "log.txt", "Conversación {n}", "[08:00] Usuario", "[08:01] Agente"
    )
    logs = read_logs(path)
    assert [*words_in(logs)] == [f"Conversación {n}" for n in range(1, 13)]
    assert [*words_in(logs).values()] == [*talks(12)]


def test_numbers_that_may_be_codes_are_asked_about_without_advice() -> None:
    logs = read_logs_from_rows(whole_rows(feedback=[2, 1, 0] * 2))
    note = next(note for note in logs.notes if "'feedback' holds ratings" in note)
    assert "say what they mean" in note
    assert "<=" not in note


def talk_as_chat(number: int) -> list[dict[str, str]]:
    return [
        {"from": "visitor", "message": ASKED[0].format(number)},
        {"from": "assistant", "message": TOLD[0].format(number)},
    ]


@pytest.mark.parametrize("name", ["session", "conversation", "ticket"])
def test_a_bare_name_with_a_word_that_looks_like_an_id_names_the_conversation(
    tmp_path: Path, name: str
) -> None:
    rows = [{name: f"w-{n}", "chat": talk_as_chat(n)} for n in range(4)]
    logs = read_logs(write_lines(tmp_path / "log.jsonl", rows))
    assert [one.id for one in logs] == ["w-0", "w-1", "w-2", "w-3"]


@pytest.mark.parametrize("value", ["morning", 1, "1", "of a guest", {"of": "w-1"}])
def test_a_session_that_names_several_conversations_is_no_id(tmp_path: Path, value: object) -> None:
    rows = [{"session": value, "chat": talk_as_chat(n)} for n in range(4)]
    logs = read_logs(write_lines(tmp_path / "log.jsonl", rows))
    assert len({one.id for one in logs}) == 4
    assert all(one.id.startswith("sha256-") for one in logs)


@pytest.mark.parametrize("name", ["started_at", "start_time", "opened_at"])
def test_a_conversation_is_known_to_be_of_the_time_it_began(tmp_path: Path, name: str) -> None:
    messages = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "In the depot."},
    ]
    rows = [{"conversation_id": "c1", name: "2026-11-03T09:00:00Z", "messages": messages}]
    (talk,) = read_logs(write_lines(tmp_path / "log.jsonl", rows))
    assert list(iterate_metadata_times(talk.metadata)) == [1793696400.0]
    assert get_conversation_time_as_number(talk.metadata) is not None
