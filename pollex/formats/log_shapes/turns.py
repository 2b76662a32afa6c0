"""Messages in any usual spelling, as turns.

Only words become words: images and files leave their kind in brackets, since the turns around them may speak of them;
a model's reasoning, marks of steps and citations are left out; what a tool answered becomes a turn of the tool's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from pollex.conversations.conversation import Role, Turn
from pollex.errors import BadInput
from pollex.formats.log_shapes.parts import (
    CALLS,
    is_result,
    kind_of,
    part_kind,
    result_of,
    text_of,
    tool_call,
    tool_named,
    words_of,
    written,
)
from pollex.text import parse_json

SPELLINGS: dict[Role, str] = {
    "user": "user human customer client visitor guest caller person usr enduser prompter usermessage lead contact",
    "assistant": """assistant gpt chatgpt ai bot chatbot agent model support operator advisor representative machine
        apimessage assistantmessage admin fin functioncall toolcall""",
    "system": "system developer instruction instructions",
    "tool": "tool function observation toolresult ipython environment",
}
ROLES: dict[str, Role] = {spelling: role for role, line in SPELLINGS.items() for spelling in line.split()}
ROLE_NAMES = ("role", "from", "speaker", "sender", "author")
TEXT_NAMES = ("content", "value", "text", "message", "utterance")
PART_NAMES = ("parts", "contentParts", "content_parts")
CALLING = ("functioncall", "toolcall")
"""Roles of turns that are calls and no words."""
_PLAIN = frozenset({"role", "content"})
"""Fields of most messages: what is looked for in others takes four times as long as reading these."""
_DECORATION = re.compile(r"((?<!user)(?<!api)(?<!assistant)message(chunk)?$)|[^a-z]")


def role_of(spelling: object) -> Role:
    """Return the role for `human`, `gpt`, `AIMessage` …; raise `BadInput` for unknown ones."""
    if not isinstance(spelling, str):
        raise BadInput(f"a turn's role is {kind_of(spelling)}, not text", remedy="name who speaks: user or assistant")
    role = ROLES.get(spelling) or ROLES.get(_DECORATION.sub("", spelling.strip().casefold()))
    if role is None:
        known = ", ".join(sorted(ROLES))
        raise BadInput(f"unknown role {spelling[:40]!r}", remedy=f"rename it to one of: {known}")
    return role


def turn_of(message: object) -> Turn:
    """Read a message of OpenAI, ShareGPT or LangChain as one turn.

    Raises:
        BadInput: It can't be read, or holds tools' results beside its own words.
    """
    turns = turns_in(message)
    if len(turns) == 1:
        return turns[0]
    raise BadInput(f"a message holds {len(turns)} turns", remedy="read it by turns_in")


def turns_in(message: object) -> tuple[Turn, ...]:
    """Read the turns of one message; several if its parts include tool results."""
    if not isinstance(message, Mapping):
        raise BadInput(f"a turn is {kind_of(message)}", remedy="write each turn as an object with role and content")
    if message.keys() == _PLAIN and isinstance(message["role"], str) and isinstance(message["content"], str):
        return (Turn(role=role_of(message["role"]), content=text_of(message["content"])),)
    message = _unwrapped(message)
    if "role" not in message and is_item(message.get("type")):
        return tuple(_item(message))
    speaker = _spoken_by(message)
    role = role_of(speaker)
    name = next((name for name in TEXT_NAMES if message.get(name) is not None), None)
    name = name or next((name for name in TEXT_NAMES if name in message), None)
    parts = next((message[name] for name in PART_NAMES if isinstance(message.get(name), list)), None)
    beside = _beside(message)
    if name is None and parts is None and not beside:
        raise BadInput("a turn has no text", remedy=f"put the words in one of: {', '.join(TEXT_NAMES)}")
    content = parts if parts is not None else message[name] if name else None
    if _DECORATION.sub("", str(speaker).casefold()) in CALLING:
        return (Turn(role=role, content=_called(content)),)
    if isinstance(content, list) and any(is_result(part) for part in content):
        return tuple(_parted(role, content, beside))
    text = json.dumps(content, ensure_ascii=False) if role == "tool" and isinstance(content, dict) else text_of(content)
    return (Turn(role=role, content="\n".join(filter(None, [text, *beside])) if beside else text),)


def _called(content: object) -> str:
    """Format a turn that is a call: an object with a name, possibly as JSON text."""
    if isinstance(content, str) and content.lstrip()[:1] == "{":
        with suppress(ValueError):
            content = parse_json(content)
    return tool_call(content) if isinstance(content, Mapping) and "name" in content else text_of(content)


def turns_of(messages: object) -> tuple[Turn, ...]:
    """Read a list of messages, or its JSON text; null gives no turns."""
    if isinstance(messages, str):
        messages = _parsed(messages)
    if messages is None:
        return ()
    if not isinstance(messages, list):
        raise BadInput(f"the turns are {kind_of(messages)}", remedy="write them as a list of messages")
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        try:
            turns.extend(turns_in(message))
        except BadInput as error:
            raise BadInput(error.what, where=f"turn {index}", remedy=error.advice) from None
    return tuple(turns)


def is_list_of_turns(value: object) -> bool:
    """Return whether a field may hold turns: a list, or JSON text of one."""
    return isinstance(value, list) or (isinstance(value, str) and value.lstrip()[:1] == "[")


def _spoken_by(message: Mapping[str, Any]) -> object:
    role = next((message[name] for name in ROLE_NAMES if name in message), message.get("type"))
    if isinstance(role, Mapping):
        role = role.get("role", role.get("type"))
    if role is None:
        raise BadInput("a turn has no role", remedy=f"name who speaks in one of: {', '.join(ROLE_NAMES)}")
    return role


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


def is_item(kind: object) -> bool:
    """Return whether an item of OpenAI's Responses is a call, its output, or hidden, and no message."""
    return str(kind).endswith(("_call", "_call_output")) or kind in _HIDDEN


_HIDDEN = ("reasoning", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction")


def _item(item: Mapping[str, Any]) -> Iterator[Turn]:
    if item["type"].endswith("_output"):
        yield Turn(role="tool", content=written(item.get("output")))
    elif item["type"] in CALLS and item.get("name"):
        yield Turn(role="assistant", content=tool_call(item))
        if item.get("output"):
            yield Turn(role="tool", content=written(item["output"]))


def _parted(role: Role, parts: list[Any], beside: list[str]) -> Iterator[Turn]:
    """Yield the turns of a message with tool results among its parts."""
    words: list[str] = []
    for part in parts:
        if not is_result(part):
            words += [text] if (text := words_of(part)) is not None else []
            continue
        if name := tool_named(part, part_kind(part)):
            words.append(f"[tool call: {name}]")
        if words:
            yield Turn(role=role, content="\n".join(words))
        words = []
        yield Turn(role="tool", content=result_of(part))
    if words or beside:
        yield Turn(role=role, content="\n".join([*words, *beside]))


def _beside(message: Mapping[str, Any]) -> list[str]:
    """Return an assistant's text besides its content, which is often null then.

    That is a refusal, an audio transcript, and `[tool call: name]` for each call, also in the old form.
    """
    audio, call = message.get("audio"), message.get("function_call")
    said = [message.get("refusal"), audio.get("transcript") if isinstance(audio, Mapping) else None]
    named = {tool_call(part) for part in _listed(message.get("content")) if part_kind(part) in CALLS}
    calls = [*_listed(message.get("tool_calls")), *([call] if isinstance(call, Mapping) else [])]
    texts = [text for text in said if isinstance(text, str) and text]
    return texts + [text for one in calls if (text := tool_call(one)) not in named]


def _listed(calls: object) -> list[Mapping[str, Any]]:
    there = calls if isinstance(calls, Iterable) and not isinstance(calls, str) else ()
    return [call for call in there if isinstance(call, Mapping)]
