"""Every log shape, by one contract for all readers and by what each alone has to understand."""

import json
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.log_shapes.readers import READERS, Reader, reader_of
from pollex.formats.log_shapes.turns import role_of, text_of, turns_in
from pollex.formats.read_logs import read_logs

EXAMPLES = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))
each_reader = pytest.mark.parametrize("reader", READERS, ids=[reader.name for reader in READERS])


def logs_from(folder: Path, *rows: dict[str, Any], **options: Any) -> Logs:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_logs(path, options=ReadOptions(**options))


def said(logs: Logs) -> list[list[tuple[str, str]]]:
    return [[(turn.role, turn.content) for turn in conversation.turns] for conversation in logs]


@each_reader
def test_a_reader_makes_one_labelled_conversation_of_its_example(reader: Reader, tmp_path: Path) -> None:
    logs = logs_from(tmp_path, *EXAMPLES[reader.name])
    assert said(logs) == [[("user", "Hello"), ("assistant", "Good day")]]
    assert logs.conversations[0].id == "a"
    assert logs.conversations[0].label is Label.POSITIVE


@each_reader
def test_no_two_readers_recognise_the_same_example(reader: Reader) -> None:
    assert [reader_of(row) for row in EXAMPLES[reader.name]] == [reader] * len(EXAMPLES[reader.name])


@each_reader
def test_a_reader_refuses_rather_than_crashes_when_every_field_is_of_the_wrong_kind(reader: Reader) -> None:
    for wrong in (7, True, [1], [[]], {"a": {}}, [{"role": []}], "[", '["x"]', [{"from": "human"}], [None]):
        row = dict.fromkeys(EXAMPLES[reader.name][0], wrong)
        try:
            reader.read(row) if reader.recognises(row) else reader_of(row)
        except BadInput as error:
            assert error.remedy  # noqa: PT017


def test_an_unknown_shape_says_what_the_row_has_and_which_shapes_are_known() -> None:
    with pytest.raises(BadInput, match=r"the row has said, heard → known shapes: .*ShareGPT"):
        reader_of({"said": "a", "heard": "b"})


def test_a_row_of_two_shapes_is_refused_with_both_names() -> None:
    with pytest.raises(BadInput, match=r"ShareGPT and messages|messages and ShareGPT"):
        reader_of({"messages": [], "conversations": []})


@pytest.mark.parametrize(
    ("spelling", "role"),
    [
        ("User", "user"),
        ("human", "user"),
        (" CUSTOMER ", "user"),
        ("HumanMessage", "user"),
        ("gpt", "assistant"),
        ("AIMessageChunk", "assistant"),
        ("bot", "assistant"),
        ("agent", "assistant"),
        ("developer", "system"),
        ("function", "tool"),
        ("function_call", "assistant"),
        ("ToolMessage", "tool"),
    ],
)
def test_usual_spellings_of_roles_are_known(spelling: str, role: str) -> None:
    assert role_of(spelling) == role


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


def test_content_that_is_a_number_is_refused() -> None:
    with pytest.raises(BadInput, match="content is a number"):
        text_of(42)


def test_a_tool_call_without_words_leaves_its_name() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "book", "arguments": "{}"}}]}
    assert turns_in(call)[0].content == "[tool call: book]"


def test_what_an_assistant_says_or_does_beside_its_content_is_not_lost() -> None:
    beside = {
        "refusal": "I can't help with that.",
        "audio": {"id": "x", "transcript": "As I said aloud."},
        "function_call": {"name": "book", "arguments": "{}"},
    }
    message = {"role": "assistant", "content": None}
    assert turns_in(message | beside)[0].content == "I can't help with that.\nAs I said aloud.\n[tool call: book]"
    assert turns_in(message | dict.fromkeys(beside))[0].content == ""


def test_both_envelopes_of_langchain_messages_are_opened() -> None:
    constructor = {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "hi"}}
    assert turns_in(constructor)[0].role == "assistant"
    assert turns_in({"type": "human", "data": {"content": "hi"}})[0].role == "user"


def test_an_empty_conversation_is_kept_and_has_a_state_of_its_own(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, {"id": "a", "messages": []}, {"id": "b", "messages": None})
    assert [c.not_scorable for c in logs] == ["no turn with text", "no turn with text"]
