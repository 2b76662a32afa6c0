"""Messages in any usual spelling, as turns.

Only words become words: images and files leave their kind in brackets, since the turns around them may speak of them;
a model's reasoning, marks of steps and citations are left out; what a tool answered becomes a turn of the tool's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from pollex.conversations.conversation import Role, Turn
from pollex.conversations.tools import ToolCall
from pollex.errors import BadInput
from pollex.formats.log_shapes.parts import (
    CALLS,
    call_of,
    is_result,
    kind_of,
    part_kind,
    result_beside,
    result_of,
    text_of,
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


class UnknownRole(BadInput):
    """A turn by somebody whom no spelling names."""

    def __init__(self, spelling: str) -> None:
        self.spelling = spelling[:40]
        known = ", ".join(sorted(ROLES))
        super().__init__(f"unknown role {self.spelling!r}", remedy=f"rename it to one of: {known}")


def role_of(spelling: object) -> Role:
    """Return the role for `human`, `gpt`, `AIMessage` …; raise `BadInput` for unknown ones."""
    if not isinstance(spelling, str):
        raise BadInput(f"a turn's role is {kind_of(spelling)}, not text", remedy="name who speaks: user or assistant")
    role = ROLES.get(spelling) or ROLES.get(_DECORATION.sub("", spelling.strip().casefold()))
    if role is None:
        raise UnknownRole(spelling)
    return role


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
    said, beside, odd = _beside(message)
    if name is None and parts is None and not (said or beside or odd):
        raise BadInput("a turn has no text", remedy=f"put the words in one of: {', '.join(TEXT_NAMES)}")
    content = parts if parts is not None else message[name] if name else None
    if _DECORATION.sub("", str(speaker).casefold()) in CALLING:
        return (_called(role, content),)
    within = calls_in(content)
    beside = [call for call in beside if call.mark not in {known.mark for known in within}]
    if isinstance(content, list) and any(is_result(part) for part in content):
        return tuple(_parted(role, content, said, [*beside, *odd]))
    text = json.dumps(content, ensure_ascii=False) if role == "tool" and isinstance(content, dict) else text_of(content)
    marks = [call.mark for call in beside if call.mark not in text]
    result = result_beside(message) if role == "tool" else None
    return (
        Turn(
            role=role,
            content="\n".join(filter(None, [text, *said, *marks])) if said or marks else text,
            calls=(*within, *beside, *odd),
            result=result,
        ),
    )


def calls_in(content: object) -> list[ToolCall]:
    """Return the calls among the parts of a message, whose marks `text_of` writes."""
    parts = content if isinstance(content, list) else []
    return [call_of(part) for part in parts if isinstance(part, Mapping) and _is_call(part)]


def _is_call(part: Mapping[str, Any]) -> bool:
    kind = part_kind(part)
    return kind in CALLS or tool_named(part, kind) is not None


def _called(role: Role, content: object) -> Turn:
    """Format a turn that is a call: an object with a name, possibly as JSON text."""
    if isinstance(content, str) and content.lstrip()[:1] == "{":
        with suppress(ValueError):
            content = parse_json(content)
    if isinstance(content, Mapping) and "name" in content:
        call = call_of(content)
        return Turn(role=role, content=call.mark, calls=(call,))
    return Turn(role=role, content=text_of(content))


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
            error.where = f"turn {index}"
            raise
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
        yield Turn(role="tool", content=written(item.get("output")), result=result_beside(item))
    elif item["type"] in CALLS and item.get("name"):
        call = call_of(item)
        yield Turn(role="assistant", content=call.mark, calls=(call,))
        if item.get("output"):
            yield Turn(role="tool", content=written(item["output"]), result=result_beside({**item, "call_id": call.id}))


def _parted(role: Role, parts: list[Any], said: list[str], beside: list[ToolCall]) -> Iterator[Turn]:
    """Yield the turns of a message with tool results among its parts."""
    words: list[str] = []
    calls: list[ToolCall] = []
    for part in parts:
        if not is_result(part):
            words += [text] if (text := words_of(part)) is not None else []
            calls += calls_in([part])
            continue
        if tool_named(part, part_kind(part)):
            calls.append(call := call_of(part))
            words.append(call.mark)
        if words:
            yield Turn(role=role, content="\n".join(words), calls=tuple(calls))
        words, calls = [], []
        yield Turn(role="tool", content=result_of(part), result=result_beside(part))
    if words or said or beside:
        marks = [call.mark for call in beside if call.name]
        yield Turn(role=role, content="\n".join([*words, *said, *marks]), calls=(*calls, *beside))


def _beside(message: Mapping[str, Any]) -> tuple[list[str], list[ToolCall], list[ToolCall]]:
    """Return what an assistant's message has besides its content, which is often null then.

    That is a refusal or an audio transcript; the calls, also in the old form; and what stands in their place and is no
    object, kept as calls without a name.
    """
    audio, call = message.get("audio"), message.get("function_call")
    said = [message.get("refusal"), audio.get("transcript") if isinstance(audio, Mapping) else None]
    listed = [*_listed(message.get("tool_calls")), *([call] if isinstance(call, Mapping) else [])]
    calls = [call_of(one) for one in listed if isinstance(one, Mapping)]
    odd = [call_of(one) for one in listed if not isinstance(one, Mapping) and one is not None]
    return [text for text in said if isinstance(text, str) and text], calls, odd


def _listed(calls: object) -> list[object]:
    """Return what stands in the place of calls as a list, also from JSON text."""
    if isinstance(calls, str) and calls.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            calls = parse_json(calls)
    if isinstance(calls, list | tuple):
        return list(calls)
    return [calls] if calls and calls == calls else []  # NaN stands for nothing in tables
