"""Calls of tools from every form in which exports have them, and sessions put together from traces."""

import json
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import (
    MAX_ARGUMENT_CHARS_SHOWN,
    Conversation,
    ToolCall,
    ToolResult,
    Turn,
    format_openai_messages,
    iterate_tool_uses,
)
from pollex.formats.assembly.log_parts import ModelCall
from pollex.formats.assembly.sessions import build_conversation_from_calls
from pollex.formats.log_shapes.turns import read_turns
from pollex.formats.read_logs import read_logs, read_logs_from_rows

ASKED = {"role": "user", "content": "Book it."}
ANSWERED = {"role": "assistant", "content": "Booked."}
GIVEN = {"day": "Friday", "n": 2}
WRITTEN = json.dumps(GIVEN)
USE = {"type": "tool_use", "id": "1", "name": "book", "input": GIVEN}
MESSAGES: dict[str, list[dict[str, Any]]] = {
    "OpenAI": [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "book", "arguments": WRITTEN}}
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "full", "error": "no room"},
    ],
    "LangChain": [
        {
            "type": "ai",
            "content": "",
            "tool_calls": [{"name": "book", "args": GIVEN, "id": "1", "type": "tool_call"}],
        },
        {"type": "tool", "tool_call_id": "1", "content": "full", "status": "error"},
    ],
    "LangChain, said twice": [
        {
            "type": "ai",
            "content": [USE],
            "tool_calls": [{"name": "book", "args": GIVEN, "id": "1"}],
        },
        {"type": "tool", "tool_call_id": "1", "content": "full", "status": "error"},
    ],
    "Anthropic": [
        {"role": "assistant", "content": [USE]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "full", "is_error": True}
            ],
        },
    ],
    "Responses": [
        {"type": "function_call", "id": "fc", "call_id": "1", "name": "book", "arguments": WRITTEN},
        {
            "type": "function_call_output",
            "call_id": "1",
            "output": "full",
            "error": {"message": "no room"},
        },
    ],
    "AI SDK": [
        {
            "role": "assistant",
            "parts": [
                {"type": "tool-book", "toolCallId": "1", "input": GIVEN, "errorText": "full"}
            ],
        }
    ],
    "OpenTelemetry": [
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "1", "name": "book", "arguments": GIVEN}],
        },
        {
            "role": "tool",
            "parts": [
                {"type": "tool_call_response", "id": "1", "response": "full", "error": "no room"}
            ],
        },
    ],
    "ShareGPT": [
        {"from": "function_call", "value": json.dumps({"name": "book", "arguments": GIVEN})}
    ],
}


@pytest.mark.parametrize("form", MESSAGES)
def test_calls_keep_arguments_and_id_and_results_the_call_and_the_error(form: str) -> None:
    turns = read_turns([ASKED, *MESSAGES[form], ANSWERED])
    calls = [call for turn in turns for call in turn.calls]
    assert [call.name for call in calls] == ["book"]
    assert json.loads(calls[0].arguments) == GIVEN
    assert turns[1].content == "[tool call: book]"
    assert turns[1].shown == f"[tool call: book] {calls[0].arguments}"
    if form == "ShareGPT":
        return
    assert calls[0].id == "1"
    assert turns[2].role == "tool"
    assert turns[2].result is not None
    assert turns[2].result.id == "1"
    assert turns[2].result.error
    assert turns[2].shown == "[failed] full"
    assert [use.result for use in iterate_tool_uses(turns)] == [2]


def test_what_stands_in_place_of_calls_is_kept_and_told_with_file_and_line(tmp_path: Path) -> None:
    odd: list[Any] = [
        "book Friday",
        7,
        [None, "book"],
        [{"arguments": {"n": 2}}],
        {"name": "book"},
        [],
    ]
    rows = [
        {
            "id": str(n),
            "messages": [ASKED, {"role": "assistant", "content": "Yes.", "tool_calls": calls}],
        }
        for n, calls in enumerate(odd)
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    logs = read_logs(path)
    assert len(logs) == len(odd)
    assert not logs.bad_rows
    shown = [conversation.turns[1].shown for conversation in logs]
    assert shown[0] == "Yes.\n[tool call: None] book Friday"
    assert shown[4] == "Yes.\n[tool call: book]"
    note = f"a tool call has no name, and is kept as it stands: {path}:1, {path}:2, {path}:3 and 1 more row"
    assert note in logs.notes


def test_the_hash_of_a_text_is_what_it_was_and_other_arguments_are_another_text() -> None:
    turns = read_turns([ASKED, *MESSAGES["OpenAI"], ANSWERED])
    whole = Conversation(id="1", turns=turns)
    bare = Conversation(
        id="1", turns=tuple(Turn(role=turn.role, content=turn.content) for turn in turns)
    )
    other = whole.turns[1].calls[0].model_copy(update={"arguments": "{}"})
    changed = (turns[0], turns[1].model_copy(update={"calls": (other,)}), *turns[2:])
    assert bare.text_hash == bare.words_hash == whole.words_hash
    assert (
        len({bare.text_hash, whole.text_hash, Conversation(id="1", turns=changed).text_hash}) == 3
    )
    assert read_turns(json.loads(json.dumps(format_openai_messages(whole)))) == turns, (
        "what is written is read back"
    )


def test_a_row_a_turn_has_its_calls_in_a_column() -> None:
    calls = json.dumps([{"id": "1", "function": {"name": "book", "arguments": WRITTEN}}])
    rows = [
        {"conversation_id": "a", "turn": 1, "role": "user", "text": "Book it."},
        {"conversation_id": "a", "turn": 2, "role": "assistant", "text": "", "tool_calls": calls},
        {"conversation_id": "a", "turn": 3, "role": "tool", "text": "full", "tool_call_id": "1"},
    ]
    _, call, result = next(iter(read_logs_from_rows(rows))).turns
    assert call.calls == (ToolCall(name="book", arguments=WRITTEN, id="1"),)
    assert result.result == ToolResult(id="1")


def test_parallel_calls_find_their_results_by_id_and_others_by_their_order() -> None:
    calls = (ToolCall(name="a", id="1"), ToolCall(name="b", id="2"), ToolCall(name="c"))
    results = [ToolResult(id="2"), ToolResult(id="1"), None]
    turns = [Turn(role="assistant", content="", calls=calls)]
    turns += [Turn(role="tool", content="x", result=result) for result in results]
    assert [(use.call.name, use.result) for use in iterate_tool_uses(turns)] == [
        ("a", 2),
        ("b", 1),
        ("c", 3),
    ]


def test_arguments_are_equal_whatever_their_order_and_are_shown_cut() -> None:
    assert (
        ToolCall(name="a", arguments='{"x": 1, "y": 2}').normalized
        == ToolCall(name="a", arguments='{"y":2,"x":1}').normalized
    )
    long = ToolCall(name="a", arguments="x " * 400)
    assert len(long.shown) == MAX_ARGUMENT_CHARS_SHOWN + 1
    assert ToolCall(name="a", arguments="[" * 100_000).normalized


EXAMPLES = ("Is 2 + 2 four?", "yes", "Is 2 + 2 five?", "no")
CALLED = (
    Turn(role="assistant", content="[tool call: look_up]"),
    Turn(role="tool", content="shipped"),
)


def turns(*lines: str) -> tuple[Turn, ...]:
    return tuple(
        Turn(role="assistant" if n % 2 else "user", content=line) for n, line in enumerate(lines)
    )


def trace(number: int, asked: tuple[Turn, ...], answer: str) -> ModelCall:
    answered = (Turn(role="assistant", content=answer),)
    name = f"t{number}"
    return ModelCall(
        name, name, None, "s", number, before=asked, after=answered, model=True, history=True
    )


def words(*calls: ModelCall) -> list[str]:
    return [turn.content for turn in build_conversation_from_calls(calls, {}).turns]


def test_examples_before_every_prompt_are_told_once_and_no_question_is_taken_for_an_edit() -> None:
    asked = [turns(*EXAMPLES, f"Is {n} odd?") for n in (1, 2, 3)]
    told = words(*(trace(n, before, f"answer {n}") for n, before in enumerate(asked, start=1)))
    assert told == [
        *EXAMPLES,
        "Is 1 odd?",
        "answer 1",
        "Is 2 odd?",
        "answer 2",
        "Is 3 odd?",
        "answer 3",
    ]


def test_tries_of_an_edited_turn_are_no_examples() -> None:
    first = trace(1, turns("Hello"), "Good day")
    tries = [trace(n, turns("Hello", "Good day", f"try {n}"), f"answer {n}") for n in (2, 3, 4)]
    assert words(first, *tries) == ["Hello", "Good day", "try 4", "answer 4"]


def test_tool_calls_that_later_histories_leave_out_are_kept() -> None:
    asked = turns("Where is A-17?")
    answer = "It was shipped."
    root = trace(1, asked, answer)._replace(model=False)
    inner = trace(1, (*asked, *CALLED), answer)._replace(span="inner", parent="t1")
    later = trace(2, turns("Where is A-17?", answer, "Thanks"), "You're welcome.")
    called = [turn.content for turn in CALLED]
    assert words(root, inner, later) == [
        "Where is A-17?",
        *called,
        answer,
        "Thanks",
        "You're welcome.",
    ]
    edited = trace(3, turns("Where is A-17?", answer, "And A-18?"), "At home.")
    assert words(root, inner, later, edited) == [
        "Where is A-17?",
        *called,
        answer,
        "And A-18?",
        "At home.",
    ]
