"""Log shapes and exports of other tools, by one contract for all and by what may go wrong without a word."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.log_shapes.readers import LOG_SHAPE_READERS, find_reader
from pollex.formats.log_shapes.tools import (
    EXPORT_FORMATS,
    describe_nearest_format,
    find_export_format,
)
from pollex.formats.log_shapes.turns import extract_text, parse_role, read_message_turns
from pollex.formats.read_logs import read_logs

EXAMPLES = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))
"""Rows that make one conversation, labelled positive, with the turns “Hello” and “Good day”, by name."""


def logs_from(folder: Path, *rows: Any, **options: Any) -> Logs:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_logs(path, options=ReadOptions(**options))


def said(logs: Logs) -> list[list[tuple[str, str]]]:
    return [[(turn.role, turn.content) for turn in conversation.turns] for conversation in logs]


def test_an_export_makes_one_labelled_conversation_of_its_example_however_its_keys_are_spelled(
    tmp_path: Path,
) -> None:
    for export in (one for one in EXPORT_FORMATS if one.name in EXAMPLES):
        rows = EXAMPLES[export.name]
        logs = logs_from(tmp_path, *rows, pairs=True)
        assert said(logs)[0] == [("user", "Hello"), ("assistant", "Good day")], export.name
        assert logs.conversations[0].label is Label.POSITIVE, export.name
        assert export.name in logs.account.formats
        assert find_export_format(dict(reversed(rows[0].items()))) is export
        signs = {key.split(".")[0] for sign in export.signs for key in sign}
        loud = [
            {key.upper() if key in signs else key: value for key, value in row.items()}
            for row in rows
        ]
        try:
            assert said(logs_from(tmp_path, *loud, pairs=True))[0] == said(logs)[0], export.name
        except BadInput as error:
            assert error.hint  # noqa: PT017


def test_an_export_refuses_rather_than_crashes_when_fields_are_of_the_wrong_kind() -> None:
    wrongs: tuple[Any, ...] = (
        7,
        True,
        [1],
        [[]],
        {"a": {}},
        [{"role": []}],
        "[",
        '["x"]',
        [None],
        None,
        "x",
        0.5,
    )
    for export, wrong in itertools.product(EXPORT_FORMATS, wrongs):
        keys = {key.split(".")[0] for sign in export.signs for key in sign} | {*export.more.split()}
        try:
            list(export.read(dict.fromkeys(keys, wrong)))
        except BadInput as error:
            assert error.hint  # noqa: PT017
        except Exception as error:
            raise AssertionError(f"{export.name} of {wrong!r}") from error


@pytest.mark.parametrize(
    "odd", [10**400, 1e400, "--5", "²"], ids=["long", "infinite", "signs", "superscript"]
)
def test_numbers_that_are_none_end_in_conversations_or_in_words(
    odd: object, tmp_path: Path
) -> None:
    value = {"kvlistValue": {"values": [{"key": "content", "value": {"intValue": odd}}]}}
    record = {
        "eventName": "gen_ai.user.message",
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "timeUnixNano": odd,
    }
    score = {
        "name": "feedback",
        "source": "API",
        "dataType": "NUMERIC",
        "value": odd,
        "traceId": "t",
        "timestamp": odd,
    }
    message = {
        "message_tree_id": "a",
        "message_id": "m",
        "role": "prompter",
        "text": "Hello",
        "rank": odd,
    }
    rows: list[dict[str, Any]] = [
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [record | {"body": value}]}]}]},
        score,
        message | {"emojis": {"name": ["+1"], "count": [odd]}},
        {
            "instruction": "Hello",
            "completions": [{"response": "a", "overall_score": odd}, {"response": "b"}],
        },
        {"conversation_id": "a", "role": "user", "content": "Hello", "turn": odd},
    ]
    for row in rows:
        (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n")
        try:
            assert (
                len(read_logs(tmp_path / "log.jsonl", options=ReadOptions(max_bad=1, pairs=True)))
                > 0
            )
        except (BadInput, WrongUse) as error:
            assert error.what  # noqa: PT017


def test_a_row_that_lacks_a_formats_key_is_told_the_nearest_format(tmp_path: Path) -> None:
    row = {"name": "user-feedback", "source": "API", "dataType": "BOOLEAN", "value": 1}
    assert describe_nearest_format(row).startswith("it looks like Langfuse scores, but has no ")
    with pytest.raises(BadInput, match="it looks like Langfuse scores, but has no"):
        logs_from(tmp_path, row)


def test_a_reader_alone_recognises_its_example_and_makes_one_labelled_conversation_of_it(
    tmp_path: Path,
) -> None:
    for reader in LOG_SHAPE_READERS:
        rows = EXAMPLES[reader.name]
        assert [find_reader(row) for row in rows] == [reader] * len(rows)
        logs = logs_from(tmp_path, *rows)
        assert said(logs) == [[("user", "Hello"), ("assistant", "Good day")]], reader.name
        assert (logs.conversations[0].id, logs.conversations[0].label) == ("a", Label.POSITIVE)


def test_a_reader_refuses_rather_than_crashes_when_every_field_is_of_the_wrong_kind() -> None:
    wrongs: list[Any] = [
        7,
        True,
        [1],
        [[]],
        {"a": {}},
        [{"role": []}],
        "[",
        '["x"]',
        [{"from": "human"}],
        [None],
    ]
    for reader, wrong in itertools.product(LOG_SHAPE_READERS, wrongs):
        row = dict.fromkeys(EXAMPLES[reader.name][0], wrong)
        try:
            reader.read(row) if reader.recognises(row) else find_reader(row)
        except BadInput as error:
            assert error.hint  # noqa: PT017
        except Exception as error:
            raise AssertionError(f"{reader.name} of {wrong!r}") from error


def test_a_row_of_no_shape_or_of_two_is_refused_with_the_shapes(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the row has said, heard → known shapes: .*ShareGPT"):
        find_reader({"said": "a", "heard": "b"})
    with pytest.raises(BadInput, match=r"ShareGPT and messages|messages and ShareGPT"):
        find_reader({"messages": [], "conversations": []})
    empty = logs_from(tmp_path, {"id": "a", "messages": []}, {"id": "b", "messages": None})
    assert [c.not_scorable for c in empty] == ["no turn with text", "no turn with text"]


def test_usual_spellings_of_roles_are_known() -> None:
    for role, spellings in {
        "user": ("User", "human", " CUSTOMER ", "HumanMessage"),
        "assistant": ("gpt", "AIMessageChunk", "bot", "agent", "function_call"),
        "system": ("developer",),
        "tool": ("function", "ToolMessage"),
    }.items():
        assert {parse_role(spelling) for spelling in spellings} == {role}


def test_text_parts_are_kept_and_others_leave_their_kind() -> None:
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:…"}},
        {"type": "input_audio", "input_audio": {}},
        {"type": "tool_use", "name": "search"},
        "bare",
    ]
    assert extract_text(parts) == "Look:\n[image]\n[audio]\n[tool call: search]\nbare"
    assert extract_text(None) == ""
    with pytest.raises(BadInput, match="content is a number"):
        extract_text(42)


def test_what_an_assistant_says_or_does_beside_its_content_is_not_lost() -> None:
    beside = {
        "refusal": "I can't help with that.",
        "audio": {"id": "x", "transcript": "As I said aloud."},
        "function_call": {"name": "book", "arguments": "{}"},
    }
    message = {"role": "assistant", "content": None}
    assert (
        read_message_turns(message | beside)[0].content
        == "I can't help with that.\nAs I said aloud.\n[tool call: book]"
    )
    assert read_message_turns(message | dict.fromkeys(beside))[0].content == ""
    constructor = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "AIMessage"],
        "kwargs": {"content": "hi"},
    }
    assert read_message_turns(constructor)[0].role == "assistant"
    assert read_message_turns({"type": "human", "data": {"content": "hi"}})[0].role == "user"
