"""Messages in any usual spelling, as turns.

Only words become words: images and files leave their kind in brackets, since the turns around them may speak of them;
a model's reasoning, marks of steps and citations are left out; what a tool answered becomes a turn of the tool's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pollex.conversations.conversation import Role, Turn
from pollex.errors import BadInput
from pollex.text import parse_json

SPELLINGS: dict[Role, str] = {
    "user": "user human customer client visitor guest caller person usr enduser prompter usermessage lead contact",
    "assistant": """assistant gpt chatgpt ai bot chatbot agent model support operator advisor representative machine
        apimessage assistantmessage admin fin""",
    "system": "system developer instruction instructions",
    "tool": "tool function functioncall toolcall observation toolresult ipython environment",
}
ROLES: dict[str, Role] = {spelling: role for role, line in SPELLINGS.items() for spelling in line.split()}

ROLE_NAMES = ("role", "from", "speaker", "sender", "author")
TEXT_NAMES = ("content", "value", "text", "message", "utterance")
PART_NAMES = ("parts", "contentParts", "content_parts")
KIND_NAMES = ("type", "kind", "event")

_TEXT_PARTS = frozenset(["text", "input_text", "output_text", "refusal", "inputText", "outputText"])
_LEFT_OUT = frozenset(
    [
        "thinking",
        "redacted_thinking",
        "reasoning",
        "reasoning_content",
        "think",
        "thought",
        "step-start",
        "step-finish",
        "source",
        "citation",
        "citations",
        "agent_update",
        "status",
        "profile",
        "web_search_call",
        "file_search_call",
        "summary_text",
    ]
)
_CALLS = frozenset(
    [
        "tool_use",
        "tool_call",
        "tool-call",
        "function_call",
        "functionCall",
        "server_tool_use",
        "mcp_call",
        "custom_tool_call",
        "computer_call",
        "local_shell_call",
    ]
)
_RESULTS = frozenset(["tool_result", "tool_call_response", "tool-result", "functionResponse"])
_KINDS = {
    **dict.fromkeys(("image_url", "input_image", "image-url", "inlineData"), "image"),
    **dict.fromkeys(("input_audio", "audio_url"), "audio"),
    **dict.fromkeys(("input_file", "document", "file_url", "uri", "blob", "file_data", "media"), "file"),
}
_DECORATION = re.compile(r"((?<!user)(?<!api)(?<!assistant)message(chunk)?$)|[^a-z]")
_EMBEDDED = re.compile(r"(!\[[^\]]*\]\()?data:(\w+)/[\w.+-]+(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=_-]+\)?")
_MEDIA = re.compile(r"@@@langfuseMedia:type=(\w+)/[^@]*@@@")


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
        return _without_data(content)
    if isinstance(content, list):
        parts = [text for part in content if (text := _part(part)) is not None]
        return "\n".join(parts)
    raise BadInput(f"a turn's content is {_kind(content)}", remedy="make it text or a list of content parts")


def turn_of(message: object) -> Turn:
    """A message as OpenAI, ShareGPT or LangChain write it, where it is one turn.

    Raises:
        BadInput: It can't be read, or holds tools' results beside its own words.
    """
    turns = turns_in(message)
    if len(turns) == 1:
        return turns[0]
    raise BadInput(f"a message holds {len(turns)} turns", remedy="read it by turns_in")


def turns_in(message: object) -> tuple[Turn, ...]:
    """The turns that one message holds; more than one where tools' results stand among its parts."""
    if not isinstance(message, Mapping):
        raise BadInput(f"a turn is {_kind(message)}", remedy="write each turn as an object with role and content")
    message = _unwrapped(message)
    if str(message.get("type")) in _ITEMS:
        return _item(message)
    role = role_of(_spoken_by(message))
    name = next((name for name in TEXT_NAMES if message.get(name) is not None), None)
    name = name or next((name for name in TEXT_NAMES if name in message), None)
    parts = next((message[name] for name in PART_NAMES if isinstance(message.get(name), list)), None)
    beside = _beside(message)
    if name is None and parts is None and not beside:
        raise BadInput("a turn has no text", remedy=f"put the words in one of: {', '.join(TEXT_NAMES)}")
    content = parts if parts is not None else message[name] if name else None
    if isinstance(content, list) and any(_is_result(part) for part in content):
        return tuple(_parted(role, content, beside))
    text = json.dumps(content, ensure_ascii=False) if role == "tool" and isinstance(content, dict) else text_of(content)
    return (Turn(role=role, content="\n".join(filter(None, [text, *beside])) if beside else text),)


def turns_of(messages: object) -> tuple[Turn, ...]:
    """A list of messages, or the same as JSON text, as tables hold it; null is a conversation without turns."""
    if isinstance(messages, str):
        messages = _parsed(messages)
    if messages is None:
        return ()
    if not isinstance(messages, list):
        raise BadInput(f"the turns are {_kind(messages)}", remedy="write them as a list of messages")
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        try:
            turns.extend(turns_in(message))
        except BadInput as error:
            raise BadInput(error.what, where=f"turn {index}", remedy=error.remedy) from None
    return tuple(turns)


def is_list_of_turns(value: object) -> bool:
    """Whether a field may hold turns: a list, or JSON text of one."""
    return isinstance(value, list) or (isinstance(value, str) and value.lstrip()[:1] == "[")


def written(value: object) -> str:
    """A tool's result as text: words as they are, parts by their words, anything else as JSON."""
    if value is None or isinstance(value, str):
        return _without_data(value or "")
    if isinstance(value, list) and all(
        isinstance(part, Mapping) and str(part.get("type")) in _TEXT_PARTS for part in value
    ):
        return text_of(value)
    return _without_data(json.dumps(value, ensure_ascii=False))


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


def _without_data(text: str) -> str:
    """Words without the bytes of images and files that some tools write into them."""
    if ";base64," in text:
        text = _EMBEDDED.sub(lambda found: f"[{_medium(found.group(2))}]", text)
    if "@@@langfuseMedia:" in text:
        text = _MEDIA.sub(lambda found: f"[{_medium(found.group(1))}]", text)
    return text


def _medium(kind: str) -> str:
    return kind if kind in ("image", "audio", "video") else "file"


def _unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """LangChain's two envelopes: `{"type", "data"}`, and `{"lc", "id": [… class], "kwargs"}`."""
    if isinstance(kwargs := message.get("kwargs"), Mapping):
        path = message.get("id")
        return {"type": path[-1] if isinstance(path, list) and path else None, **kwargs}
    if isinstance(data := message.get("data"), Mapping):
        return {**data, "type": message.get("type")}
    return message


_ITEMS = frozenset(
    [
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "reasoning",
        "web_search_call",
    ]
)
"""Items of OpenAI's Responses that are no messages."""


def _item(item: Mapping[str, Any]) -> tuple[Turn, ...]:
    if item["type"].endswith("_output"):
        return (Turn(role="tool", content=written(item.get("output"))),)
    if item["type"] in _CALLS:
        return (Turn(role="assistant", content=_tool_call(item)),)
    return ()


def _part_kind(part: object) -> str:
    if not isinstance(part, Mapping):
        return "text" if isinstance(part, str) else ""
    named = next((part[name] for name in KIND_NAMES if name in part), None)
    if named is None:
        named = next(
            (name for name in ("functionCall", "functionResponse", "inlineData", "fileData") if name in part), "text"
        )
    return named if isinstance(named, str) else ""


def _is_result(part: object) -> bool:
    kind = _part_kind(part)
    if kind in _RESULTS or kind.endswith("_tool_result"):
        return True
    return isinstance(part, Mapping) and _tool_named(part, kind) is not None and _output(part) is not None


def _tool_named(part: Mapping[str, Any], kind: str) -> str | None:
    """The tool that a part of the AI SDK or of LibreChat calls and answers in one."""
    if kind == "dynamic-tool":
        return str(part.get("toolName"))
    if kind.startswith("tool-") and kind not in _CALLS | _RESULTS:
        return kind.removeprefix("tool-")
    inner = part.get("tool_call")
    return str(inner.get("name")) if kind == "tool_call" and isinstance(inner, Mapping) else None


def _output(part: Mapping[str, Any]) -> object:
    inner = part.get("tool_call")
    return (inner if isinstance(inner, Mapping) else part).get("output")


def _parted(role: Role, parts: list[Any], beside: list[str]) -> Iterator[Turn]:
    """The turns of a message among whose parts are tools' results."""
    words: list[str] = []
    for part in parts:
        if not _is_result(part):
            words += [text] if (text := _part(part)) is not None else []
            continue
        if name := _tool_named(part, _part_kind(part)):
            words.append(f"[tool call: {name}]")
        if words:
            yield Turn(role=role, content="\n".join(words))
        words = []
        yield Turn(role="tool", content=_result(part))
    if words or beside:
        yield Turn(role=role, content="\n".join([*words, *beside]))


def _result(part: Mapping[str, Any]) -> str:
    kind = _part_kind(part)
    if kind == "functionResponse" and isinstance(inner := part.get("functionResponse"), Mapping):
        return written(inner.get("response"))
    if kind == "tool_call_response":
        return written(part.get("response", part.get("result")))
    found = _output(part)
    return written(part.get("content", part.get("result")) if found is None else found)


def _part(part: object) -> str | None:
    """The words of a part, or its kind in brackets; None for what nobody said."""
    if isinstance(part, str):
        return _without_data(part)
    kind = _part_kind(part)
    if not isinstance(part, Mapping) or not kind:
        raise BadInput(f"a content part is {_kind(part)}", remedy="write each part as an object with a type")
    if kind in _LEFT_OUT or kind.startswith(("data-", "source-")) or part.get("thought") is True:
        return None
    if kind in _TEXT_PARTS:
        return _words(part)
    if kind in _CALLS or _tool_named(part, kind) is not None:
        return _tool_call(part)
    if kind in _RESULTS:
        return _result(part)
    if kind == "error":
        return "[error]"
    return f"[{_placeholder(part, kind)}]"


def _words(part: Mapping[str, Any]) -> str:
    found = next((part[name] for name in ("text", "refusal", "content") if part.get(name) is not None), None)
    return text_of(found.get("value") if isinstance(found, Mapping) else found)


def _placeholder(part: Mapping[str, Any], kind: str) -> str:
    """The kind of a part that isn't text, by its type or its media type."""
    found = part.get(kind)
    inner = found if isinstance(found, Mapping) else part
    media = [part.get("modality"), *(inner.get(n) for n in ("mime_type", "mimeType", "mediaType", "media_type"))]
    for name in media:
        if isinstance(name, str) and (medium := _medium(name.partition("/")[0])) != "file":
            return medium
    return _KINDS.get(kind, "file" if kind == "fileData" else kind)


def _beside(message: Mapping[str, Any]) -> list[str]:
    """What an assistant's message says or does beside its content, which is often null then.

    A refusal, what was spoken in place of written, and `[tool call: name]` for each call, also of the old kind.
    """
    audio, call = message.get("audio"), message.get("function_call")
    said = [message.get("refusal"), audio.get("transcript") if isinstance(audio, Mapping) else None]
    named = {_tool_call(part) for part in _listed(message.get("content")) if _part_kind(part) in _CALLS}
    calls = [*_listed(message.get("tool_calls")), *([call] if isinstance(call, Mapping) else [])]
    texts = [text for text in said if isinstance(text, str) and text]
    return texts + [text for one in calls if (text := _tool_call(one)) not in named]


def _listed(calls: object) -> list[Mapping[str, Any]]:
    there = calls if isinstance(calls, Iterable) and not isinstance(calls, str) else ()
    return [call for call in there if isinstance(call, Mapping)]


def _tool_call(call: Mapping[str, Any]) -> str:
    inner = next((call[n] for n in ("function", "functionCall", "tool_call") if isinstance(call.get(n), Mapping)), call)
    name = inner.get("name", inner.get("toolName"))
    kind = call.get("type")
    if name is None and isinstance(kind, str) and kind.startswith("tool-"):
        name = kind.removeprefix("tool-")
    return f"[tool call: {name}]"


def _kind(value: object) -> str:
    """What a JSON value is, for people."""
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
