"""One message in any usual spelling, as a turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pollex.conversations.conversation import Role, Turn
from pollex.errors import BadInput
from pollex.text import parse_json

SPELLINGS: dict[Role, str] = {
    "user": "user human customer client visitor guest caller person usr enduser",
    "assistant": "assistant gpt chatgpt ai bot chatbot agent model support operator advisor representative",
    "system": "system developer instruction instructions",
    "tool": "tool function functioncall toolcall observation toolresult ipython environment",
}
ROLES: dict[str, Role] = {spelling: role for role, line in SPELLINGS.items() for spelling in line.split()}

ROLE_NAMES = ("role", "from", "speaker", "sender", "author")
TEXT_NAMES = ("content", "value", "text", "message", "utterance")

_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_PLACEHOLDERS = {"image_url": "image", "input_image": "image", "input_audio": "audio", "input_file": "file"}
_DECORATION = re.compile(r"(message(chunk)?$)|[^a-z]")


def role_of(spelling: object) -> Role:
    """The role behind `human`, `gpt`, `AIMessage` …; `BadInput` for one that isn't known."""
    if not isinstance(spelling, str):
        raise BadInput(f"a turn's role is {_kind(spelling)}, not text", remedy="name who speaks: user or assistant")
    role = ROLES.get(_DECORATION.sub("", spelling.strip().casefold()))
    if role is None:
        known = ", ".join(sorted(ROLES))
        raise BadInput(f"unknown role {spelling[:40]!r}", remedy=f"rename it to one of: {known}")
    return role


def text_of(content: object) -> str:
    """The words of a message: text as it is, nothing for null, the text parts of a list of parts.

    A part that isn't text leaves its kind in brackets, `[image]`, since the turns around it may speak of it.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    raise BadInput(f"a turn's content is {_kind(content)}", remedy="make it text or a list of content parts")


def turn_of(message: object) -> Turn:
    """A message as OpenAI, ShareGPT or LangChain write it."""
    if not isinstance(message, Mapping):
        raise BadInput(f"a turn is {_kind(message)}", remedy="write each turn as an object with role and content")
    message = _unwrapped(message)
    role = next((message[name] for name in ROLE_NAMES if name in message), message.get("type"))
    if role is None:
        raise BadInput("a turn has no role", remedy=f"name who speaks in one of: {', '.join(ROLE_NAMES)}")
    name = next((name for name in TEXT_NAMES if name in message), None)
    beside = _beside(message)
    if name is None and not beside:
        raise BadInput("a turn has no text", remedy=f"put the words in one of: {', '.join(TEXT_NAMES)}")
    text = text_of(message[name]) if name else ""
    return Turn(role=role_of(role), content="\n".join(filter(None, [text, *beside])) if beside else text)


def turns_of(messages: object) -> tuple[Turn, ...]:
    """A list of messages, or the same as JSON text, as tables hold it; null is a conversation without turns."""
    if isinstance(messages, str):
        messages = _parsed(messages)
    if messages is None:
        return ()
    if not isinstance(messages, list):
        raise BadInput(f"the turns are {_kind(messages)}", remedy="write them as a list of messages")
    turns = []
    for index, message in enumerate(messages):
        try:
            turns.append(turn_of(message))
        except BadInput as error:
            raise BadInput(error.what, where=f"turn {index}", remedy=error.remedy) from None
    return tuple(turns)


def is_list_of_turns(value: object) -> bool:
    """Whether a field may hold turns: a list, or JSON text of one."""
    return isinstance(value, list) or (isinstance(value, str) and value.lstrip()[:1] == "[")


def _parsed(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise BadInput(f"the turns aren't JSON: {error}", remedy="write them as a JSON list of messages") from None


def _unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """LangChain's two envelopes: `{"type", "data"}`, and `{"lc", "id": [… class], "kwargs"}`."""
    if isinstance(kwargs := message.get("kwargs"), Mapping):
        path = message.get("id")
        return {"type": path[-1] if isinstance(path, list) and path else None, **kwargs}
    if isinstance(data := message.get("data"), Mapping):
        return {**data, "type": message.get("type")}
    return message


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or not isinstance(kind := part.get("type", "text"), str):
        raise BadInput(f"a content part is {_kind(part)}", remedy="write each part as an object with a type")
    if kind in _TEXT_PARTS:
        return text_of(part.get(_TEXT_PARTS[kind]))
    if kind == "tool_result":
        return text_of(part.get("content"))
    if kind == "tool_use":
        return f"[tool call: {part.get('name')}]"
    return f"[{_PLACEHOLDERS.get(kind, kind)}]"


def _beside(message: Mapping[str, Any]) -> list[str]:
    """What an assistant's message says or does beside its content, which is often null then.

    A refusal, what was spoken in place of written, and `[tool call: name]` for each call, also of the old kind.
    """
    audio, call = message.get("audio"), message.get("function_call")
    said = [message.get("refusal"), audio.get("transcript") if isinstance(audio, Mapping) else None]
    calls = [*_listed(message.get("tool_calls")), *([call] if isinstance(call, Mapping) else [])]
    return [text for text in said if isinstance(text, str) and text] + [_tool_call(one) for one in calls]


def _listed(calls: object) -> list[Mapping[str, Any]]:
    there = calls if isinstance(calls, Iterable) and not isinstance(calls, str) else ()
    return [call for call in there if isinstance(call, Mapping)]


def _tool_call(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    return f"[tool call: {(function if isinstance(function, Mapping) else call).get('name')}]"


def _kind(value: object) -> str:
    """What a JSON value is, for people."""
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
