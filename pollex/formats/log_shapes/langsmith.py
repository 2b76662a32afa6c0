"""LangSmith exports: a run a row, what went in and what came out.

A trace's feedback hangs at its root, so a run below another is no conversation of its own. The runs of one chat thread
repeat each other's turns; the thread becomes the group, which keeps them on one side of a split.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.errors import BadInput
from pollex.formats.log_shapes.shape import Draft, Fields, Reader
from pollex.formats.log_shapes.turns import turns_of
from pollex.text import parse_json, printable

HISTORY_NAMES = ("chat_history", "history")
THREAD_NAMES = ("thread_id", "session_id", "conversation_id")
QUESTION_NAMES = ("input", "question", "query", "prompt")
GENERATED_NAMES = ("generations", "choices")
ANSWER_NAMES = ("output", "answer", "response", "result", "text", "content")


def _recognises(fields: Fields) -> bool:
    return "inputs" in fields and "outputs" in fields


def _opened(value: object) -> object:
    """JSON text, as Parquet and CSV exports hold it, opened; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return parse_json(value)
    except ValueError as error:
        raise BadInput(f"not JSON: {error}", remedy="export the run again") from None


def _messages(value: object) -> list[Any]:
    """A list of messages; chat models' runs wrap it in a list of prompts, of which a chat has one."""
    if not isinstance(value, list):
        return []
    return value[0] if len(value) == 1 and isinstance(value[0], list) else value


def _said(values: Mapping[str, Any], names: tuple[str, ...], role: str) -> list[Any]:
    """What one side of a run said: its messages, or its only text."""
    if messages := _messages(values.get("messages")):
        return messages
    value = next((values[name] for name in names if values.get(name)), None)
    if value is None and len(values) == 1:
        value = next(iter(values.values()))
    if isinstance(value, Mapping):
        return [value if value.keys() & {"role", "type", "kwargs"} else {"role": role, **value}]
    return _messages(value) or ([{"role": role, "content": value}] if value else [])


def _generated(outputs: Mapping[str, Any]) -> list[Any]:
    """A chat model's output as LangChain (`generations`) and OpenAI's wrapper (`choices`) record it."""
    first: Any = next((outputs[name] for name in GENERATED_NAMES if outputs.get(name)), None)
    while isinstance(first, list) and first:
        first = first[0]
    if not isinstance(first, Mapping):
        return []
    return [first.get("message") or {"role": "assistant", "content": first.get("text")}]


def _side(value: object) -> Mapping[str, Any]:
    opened = _opened(value) or {}
    if not isinstance(opened, Mapping):
        raise BadInput("inputs or outputs aren't an object", remedy="export the runs as LangSmith records them")
    return opened


def _turns(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> tuple[Turn, ...]:
    """The history, what was asked and what was answered; an output that repeats its input's turns is said once."""
    history = next((inputs[name] for name in HISTORY_NAMES if name in inputs), None)
    asked = {name: value for name, value in inputs.items() if name not in HISTORY_NAMES}
    before = turns_of([*_messages(history), *_said(asked, QUESTION_NAMES, "user")])
    after = turns_of(_generated(outputs) or _said(outputs, ANSWER_NAMES, "assistant"))
    turns = after if after[: len(before)] == before else before + after
    if not any(turn.role == "user" for turn in turns):
        _require_named(asked, QUESTION_NAMES, "user")
    if not turns or turns[-1].role != "assistant":
        _require_named(outputs, ANSWER_NAMES, "assistant")
    return turns


def _require_named(values: Mapping[str, Any], names: tuple[str, ...], role: str) -> None:
    """Refuses a side that said nothing, though any of its fields may have the words."""
    if len(values) > 1 and any(values.values()) and not values.keys() & {"messages", *names, *GENERATED_NAMES}:
        have = printable(", ".join(values), 100)
        raise BadInput(f"which field has what the {role} said? There are {have}", remedy=f"call it {names[0]}")


def _feedback(stats: object) -> dict[str, Any]:
    """The only feedback key's mean, as the field `feedback`; with several keys the user says which one counts."""
    means = {k: v.get("avg") for k, v in stats.items() if isinstance(v, Mapping)} if isinstance(stats, Mapping) else {}
    return {"feedback": next(iter(means.values()))} if len(means) == 1 else {}


def _thread(extra: object) -> dict[str, Any]:
    metadata = extra.get("metadata") if isinstance(extra, Mapping) else None
    if not isinstance(metadata, Mapping):
        return {}
    return {"group": next((metadata[name] for name in THREAD_NAMES if metadata.get(name)), None)}


def _read(fields: Fields) -> Draft | None:
    if fields.get("parent_run_id"):
        return None
    opened = {name: _opened(fields[name]) for name in ("extra", "feedback_stats") if name in fields}
    rest = {name: value for name, value in fields.items() if name not in ("inputs", "outputs")} | opened
    found = _feedback(opened.get("feedback_stats")) | _thread(opened.get("extra"))
    return Draft(_turns(_side(fields["inputs"]), _side(fields["outputs"])), found | rest)


READER = Reader(
    name="LangSmith",
    shape='a run a row, "inputs": {…}, "outputs": {…}, "feedback_stats": {…}',
    recognises=_recognises,
    read=_read,
    example=(
        {
            "id": "a",
            "run_type": "chain",
            "inputs": {"messages": [{"type": "human", "content": "Hello"}]},
            "outputs": {"output": {"type": "ai", "content": "Good day"}},
            "feedback_stats": {"thumbs": {"n": 1, "avg": 1.0}},
        },
    ),
)
