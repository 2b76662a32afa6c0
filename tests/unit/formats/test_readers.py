"""Every log shape, by one contract for all readers and by what each alone has to understand."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.log_shapes.readers import READERS, reader_of
from pollex.formats.log_shapes.turns import role_of, text_of, turns_in
from pollex.formats.read_logs import read_logs

EXAMPLES = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))


def logs_from(folder: Path, *rows: dict[str, Any], **options: Any) -> Logs:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_logs(path, options=ReadOptions(**options))


def said(logs: Logs) -> list[list[tuple[str, str]]]:
    return [[(turn.role, turn.content) for turn in conversation.turns] for conversation in logs]


def test_a_reader_alone_recognises_its_example_and_makes_one_labelled_conversation_of_it(tmp_path: Path) -> None:
    for reader in READERS:
        rows = EXAMPLES[reader.name]
        assert [reader_of(row) for row in rows] == [reader] * len(rows)
        logs = logs_from(tmp_path, *rows)
        assert said(logs) == [[("user", "Hello"), ("assistant", "Good day")]], reader.name
        assert (logs.conversations[0].id, logs.conversations[0].label) == ("a", Label.POSITIVE)


def test_a_reader_refuses_rather_than_crashes_when_every_field_is_of_the_wrong_kind() -> None:
    wrongs: list[Any] = [7, True, [1], [[]], {"a": {}}, [{"role": []}], "[", '["x"]', [{"from": "human"}], [None]]
    for reader, wrong in itertools.product(READERS, wrongs):
        row = dict.fromkeys(EXAMPLES[reader.name][0], wrong)
        try:
            reader.read(row) if reader.recognises(row) else reader_of(row)
        except BadInput as error:
            assert error.remedy  # noqa: PT017
        except Exception as error:
            raise AssertionError(f"{reader.name} of {wrong!r}") from error


def test_a_row_of_no_shape_or_of_two_is_refused_with_the_shapes(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the row has said, heard → known shapes: .*ShareGPT"):
        reader_of({"said": "a", "heard": "b"})
    with pytest.raises(BadInput, match=r"ShareGPT and messages|messages and ShareGPT"):
        reader_of({"messages": [], "conversations": []})
    empty = logs_from(tmp_path, {"id": "a", "messages": []}, {"id": "b", "messages": None})
    assert [c.not_scorable for c in empty] == ["no turn with text", "no turn with text"]


def test_usual_spellings_of_roles_are_known() -> None:
    for role, spellings in {
        "user": ("User", "human", " CUSTOMER ", "HumanMessage"),
        "assistant": ("gpt", "AIMessageChunk", "bot", "agent", "function_call"),
        "system": ("developer",),
        "tool": ("function", "ToolMessage"),
    }.items():
        assert {role_of(spelling) for spelling in spellings} == {role}


def test_text_parts_are_kept_and_others_leave_their_kind() -> None:
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:…"}},
        {"type": "input_audio", "input_audio": {}},
        {"type": "tool_use", "name": "search"},
        "bare",
    ]
    assert text_of(parts) == "Look:\n[image]\n[audio]\n[tool call: search]\nbare"
    assert text_of(None) == ""
    with pytest.raises(BadInput, match="content is a number"):
        text_of(42)


def test_what_an_assistant_says_or_does_beside_its_content_is_not_lost() -> None:
    beside = {
        "refusal": "I can't help with that.",
        "audio": {"id": "x", "transcript": "As I said aloud."},
        "function_call": {"name": "book", "arguments": "{}"},
    }
    message = {"role": "assistant", "content": None}
    assert turns_in(message | beside)[0].content == "I can't help with that.\nAs I said aloud.\n[tool call: book]"
    assert turns_in(message | dict.fromkeys(beside))[0].content == ""
    constructor = {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "hi"}}
    assert turns_in(constructor)[0].role == "assistant"
    assert turns_in({"type": "human", "data": {"content": "hi"}})[0].role == "user"
