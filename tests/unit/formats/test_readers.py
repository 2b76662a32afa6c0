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


def test_two_fields_with_turns_are_refused_unless_one_is_chosen(tmp_path: Path) -> None:
    row = {"id": "a", "chat": [{"role": "user", "content": "x"}], "turns": [{"role": "user", "content": "y"}]}
    with pytest.raises(BadInput, match="turns may be in turns and chat"):
        logs_from(tmp_path, row)
    assert said(logs_from(tmp_path, row, messages_field="chat")) == [[("user", "x")]]


def test_an_unknown_role_names_the_turn_and_the_known_roles(tmp_path: Path) -> None:
    row = {"id": "a", "messages": [{"role": "user", "content": "x"}, {"role": "narrator", "content": "y"}]}
    logs = logs_from(tmp_path, row, {**row, "id": "b", "messages": []}, max_bad=1)
    assert [str(bad).split(" → ")[0].rpartition("log.jsonl:")[2] for bad in logs.bad_rows] == [
        "1: turn 1: unknown role 'narrator'"
    ]
    assert "assistant" in logs.bad_rows[0].remedy


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


def test_turns_as_json_text_in_a_cell_are_opened(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('id,messages\na,"[{""role"": ""user"", ""content"": ""x""}]"\n', encoding="utf-8")
    assert said(read_logs(path)) == [[("user", "x")]]


def test_an_empty_conversation_is_kept_and_has_a_state_of_its_own(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, {"id": "a", "messages": []}, {"id": "b", "messages": None})
    assert [c.not_scorable for c in logs] == ["no turn with text", "no turn with text"]


# Flat tables


def table(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(("conversation_id", "turn", "role", "text", "thumbs"), row, strict=True)) for row in rows]


def test_turns_of_a_table_are_ordered_by_number_and_not_by_text(tmp_path: Path) -> None:
    rows = table(("a", "10", "bot", "ten", ""), ("b", "1", "user", "other", ""), ("a", "9", "user", "nine", "up"))
    logs = logs_from(tmp_path, *rows)
    assert said(logs) == [[("user", "nine"), ("assistant", "ten")], [("user", "other")]]
    assert [c.label for c in logs] == [Label.POSITIVE, Label.NONE]


def test_a_bad_turn_spoils_its_whole_conversation_and_no_other(tmp_path: Path) -> None:
    rows = table(
        ("a", 1, "user", "x", ""), ("b", 1, "user", "y", ""), ("a", 2, "ghost", "z", ""), ("a", 3, "bot", "", "")
    )
    logs = logs_from(tmp_path, *rows, max_bad=1)
    assert [c.id for c in logs] == ["b"]
    assert [(bad.line, "unknown role" in bad.reason) for bad in logs.bad_rows] == [(3, True)]


@pytest.mark.parametrize("turn", ["first", None, "nan", [1]])
def test_a_turn_number_that_is_none_is_refused(tmp_path: Path, turn: Any) -> None:
    with pytest.raises(BadInput, match="not a number"):
        logs_from(tmp_path, *table(("a", turn, "user", "x", "")))


def test_a_conversation_of_which_only_some_turns_are_numbered_is_refused(tmp_path: Path) -> None:
    first, second, third = table(("a", 1, "user", "x", ""), ("a", 2, "bot", "y", ""), ("a", 3, "user", "z", ""))
    del second["turn"]
    with pytest.raises(BadInput, match="1 of its 3 turns have no number → number all turns"):
        logs_from(tmp_path, first, second, third)
    for row in (first, third):
        del row["turn"]
    assert said(logs_from(tmp_path, first, second, third)) == [[("user", "x"), ("assistant", "y"), ("user", "z")]]


def test_turns_of_one_conversation_with_different_labels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="different values of the label"):
        logs_from(tmp_path, *table(("a", 1, "user", "x", "up"), ("a", 2, "bot", "y", "down")))


def test_a_turn_without_a_conversation_id_is_a_bad_row(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no conversation id"):
        logs_from(tmp_path, {"role": "user", "text": "x"})


def test_a_turn_of_a_table_may_have_an_id_of_its_own(tmp_path: Path) -> None:
    rows = [{"id": n, "conversation_id": "a", "role": role, "text": "x"} for n, role in enumerate(("user", "bot"))]
    (conversation,) = logs_from(tmp_path, *rows)
    assert (conversation.id, len(conversation.turns), conversation.metadata) == ("a", 2, {"id": [0, 1]})


def test_other_columns_of_a_table_become_one_value_or_a_list_of_them(tmp_path: Path) -> None:
    rows = [
        {"conversation_id": "a", "role": "user", "text": "x", "app": "web", "time": 1},
        {"conversation_id": "a", "role": "bot", "text": "y", "app": "web", "time": 2},
    ]
    assert logs_from(tmp_path, *rows).conversations[0].metadata == {"app": "web", "time": [1, 2]}


# LangSmith


def run(**fields: Any) -> dict[str, Any]:
    return {"id": "r", "run_type": "chain", "inputs": {}, "outputs": {}, **fields}


@pytest.mark.parametrize(("side", "role"), [("inputs", "user"), ("outputs", "assistant")])
def test_a_run_whose_words_may_be_in_any_of_its_fields_is_no_empty_conversation(
    tmp_path: Path, side: str, role: str
) -> None:
    with pytest.raises(BadInput, match=f"which field has the {role}'s text; there are draft, notes"):
        logs_from(tmp_path, run(**{side: {"draft": "Hello", "notes": "be kind"}}))
    for nothing in ({"draft": None, "notes": ""}, {"generations": [], "llm_output": {"tokens": 0}}):
        with pytest.raises(BadInput, match="no span has messages → turn the capture of messages on"):
            logs_from(tmp_path, run(**{side: nothing}))


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"input": "Hello"}, {"output": "Good day"}),
        ({"question": "Hello"}, {"answer": {"role": "assistant", "content": "Good day"}}),
        ({"messages": [[{"type": "human", "content": "Hello"}]]}, {"generations": [[{"text": "Good day"}]]}),
        (
            {"messages": [{"role": "user", "content": "Hello"}]},
            {"choices": [{"message": {"role": "assistant", "content": "Good day"}}]},
        ),
        (
            {"messages": [{"type": "human", "content": "Hello"}]},
            {"messages": [{"type": "human", "content": "Hello"}, {"type": "ai", "content": "Good day"}]},
        ),
        ({"chat_history": [{"type": "human", "content": "Hello"}], "input": ""}, {"output": "Good day"}),
        ({"chat_history": [{"type": "human", "content": "Hello"}], "user": "u", "app": "a"}, {"output": "Good day"}),
        (
            {"user": "u", "app": "a"},
            {"messages": [{"type": "human", "content": "Hello"}, {"type": "ai", "content": "Good day"}]},
        ),
        (
            {"messages": [{"type": "human", "content": "Hello"}, {"type": "ai", "content": "Good day"}]},
            {"steps": 3, "cost": 0.1},
        ),
        ('{"input": "Hello"}', '{"output": "Good day"}'),
    ],
)
def test_all_ways_in_which_a_run_records_its_messages_are_read(inputs: Any, outputs: Any, tmp_path: Path) -> None:
    logs = logs_from(tmp_path, run(inputs=inputs, outputs=outputs))
    assert said(logs) == [[("user", "Hello"), ("assistant", "Good day")]]


def test_inner_runs_are_skipped_and_counted(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, run(inputs={"input": "x"}, parent_run_id=None), run(id="s", parent_run_id="r"))
    assert (len(logs), logs.skipped) == (1, 1)
    assert any("1 row or span is an inner step of a trace" in note for note in logs.notes)


def test_a_thread_is_the_conversation_and_its_runs_are_put_together(tmp_path: Path) -> None:
    thread = {"metadata": {"thread_id": "t-1"}}
    runs = [
        run(
            id="2",
            inputs={"input": "And then?"},
            outputs={"output": "That is all."},
            extra=thread,
            start_time="2026-01-02",
        ),
        run(id="1", inputs={"input": "Hello"}, outputs={"output": "Good day"}, extra=thread, start_time="2026-01-01"),
    ]
    logs = logs_from(tmp_path, *runs)
    assert [c.id for c in logs] == ["t-1"]
    assert [content for _, content in said(logs)[0]] == ["Hello", "Good day", "And then?", "That is all."]


def test_one_of_several_feedback_keys_is_chosen_by_its_name(tmp_path: Path) -> None:
    stats = {"thumbs": {"n": 1, "avg": 0}, "tone": {"n": 1, "avg": 1}}
    talk = run(feedback_stats=stats, inputs={"input": "Hello"}, outputs={"output": "Good day"})
    assert logs_from(tmp_path, talk).conversations[0].label is Label.NEGATIVE
    assert logs_from(tmp_path, talk, label_field="tone").conversations[0].label is Label.POSITIVE
    with pytest.raises(BadInput, match="no row has the field of label_field='mood'"):
        logs_from(tmp_path, talk, label_field="mood")


def test_a_key_of_feedback_that_is_no_thumbs_name_is_no_label(tmp_path: Path) -> None:
    stats = {"correctness": {"n": 1, "avg": 1}}
    logs = logs_from(tmp_path, run(feedback_stats=stats, inputs={"input": "Hello"}, outputs={"output": "Good day"}))
    assert logs.conversations[0].label is Label.NONE
    assert any("1 'correctness'" in note and "label_field=" in note for note in logs.notes)
