"""Parts of a message's content: text, tool calls and results, and placeholders in brackets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pollex.conversations.tools import ToolCall, ToolResult
from pollex.errors import BadInput

KIND_NAMES = ("type", "kind", "event")
_TEXT_PARTS = frozenset(["text", "input_text", "output_text", "refusal", "inputText", "outputText"])
_LEFT_OUT = frozenset(
    (
        *("thinking", "redacted_thinking", "reasoning", "reasoning_content", "think", "thought", "step-start"),
        *("step-finish", "source", "citation", "citations", "agent_update", "status", "profile"),
        *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
        *("mcp_list_tools", "summary_text", "token_budget"),
    )
)
CALLS = frozenset(
    (
        *("tool_use", "tool_call", "tool-call", "function_call", "functionCall", "server_tool_use", "mcp_call"),
        *("mcp_tool_use", "executableCode", "tool-invocation", "custom_tool_call", "computer_call"),
        *("local_shell_call",),
    )
)
_RESULTS = frozenset(["tool_result", "tool_call_response", "tool-result", "functionResponse", "codeExecutionResult"])
_KEYED = {
    name: kind
    for kind in ("functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult")
    for name in (kind, re.sub("([A-Z])", r"_\1", kind).lower())
}
"""Kinds of parts that are told by a key that has a value, as Gemini's JSON and its Python package write them."""
_KINDS = {
    **dict.fromkeys(("image_url", "input_image", "image-url", "image_file", "inlineData"), "image"),
    **dict.fromkeys(("input_audio", "audio_url"), "audio"),
    **dict.fromkeys(("input_file", "document", "file_url", "uri", "blob", "file_data", "media"), "file"),
}
_EMBEDDED = re.compile(r"(!\[[^\]]*\]\()?data:(\w+)/[\w.+-]+(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=_-]+\)?")
_MEDIA = re.compile(r"@@@langfuseMedia:type=(\w+)/[^@]*@@@")


def text_of(content: object) -> str:
    """Return the text of a message: strings, or the text parts of a list.

    A part that isn't text leaves its kind in brackets, `[image]`, since the turns around it may refer to it.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return _without_data(content)
    if isinstance(content, list):
        parts = [text for part in content if (text := words_of(part)) is not None]
        return "\n".join(parts)
    raise BadInput(f"a turn's content is {kind_of(content)}", remedy="make it text or a list of content parts")


def written(value: object) -> str:
    """Convert a tool's result to text: strings, parts by their text, others as JSON."""
    if value is None or isinstance(value, str):
        return _without_data(value or "")
    if isinstance(value, list) and all(
        isinstance(part, Mapping) and str(part.get("type")) in _TEXT_PARTS for part in value
    ):
        return text_of(value)
    return _without_data(json.dumps(value, ensure_ascii=False))


def _without_data(text: str) -> str:
    """Remove the bytes of images and files that some tools write into text."""
    if ";base64," in text:
        text = _EMBEDDED.sub(lambda found: f"[{_medium(found.group(2))}]", text)
    if "@@@langfuseMedia:" in text:
        text = _MEDIA.sub(lambda found: f"[{_medium(found.group(1))}]", text)
    return text


def _medium(kind: str) -> str:
    return kind if kind in ("image", "audio", "video") else "file"


def part_kind(part: object) -> str:
    """Return the kind of a part, by type or only key; empty if unknown."""
    if not isinstance(part, Mapping):
        return "text" if isinstance(part, str) else ""
    named = next((part[name] for name in KIND_NAMES if name in part), None)
    if named is None:
        named = next((kind for name, kind in _KEYED.items() if part.get(name) is not None), "text")
    return named if isinstance(named, str) else ""


def is_result(part: object) -> bool:
    """Return whether a part is a tool's result, possibly together with the call."""
    kind = part_kind(part)
    if kind in _RESULTS or kind.endswith("_tool_result"):
        return True
    return isinstance(part, Mapping) and tool_named(part, kind) is not None and _output(part) is not None


def tool_named(part: Mapping[str, Any], kind: str) -> str | None:
    """Return the tool of a part of the AI SDK or LibreChat with its result."""
    if kind == "dynamic-tool":
        return str(part.get("toolName"))
    inner = next((part[name] for name in _INNER if isinstance(part.get(name), Mapping)), None)
    if kind in ("tool_call", "tool-invocation") and inner is not None:
        return str(inner.get("name", inner.get("toolName")))
    return kind.removeprefix("tool-") if kind.startswith("tool-") and kind not in CALLS | _RESULTS else None


_INNER = ("tool_call", "toolInvocation")
"""Where parts of LibreChat and of the AI SDK's fourth version keep a call together with its result."""


def _output(part: Mapping[str, Any]) -> object:
    inner = next((part[name] for name in _INNER if isinstance(part.get(name), Mapping)), part)
    found = next((inner[name] for name in ("output", "errorText") if inner.get(name) is not None), None)
    return inner.get("result") if found is None and inner is not part else found


def result_of(part: Mapping[str, Any]) -> str:
    """Return a tool's result as text."""
    kind = part_kind(part)
    if isinstance(inner := _keyed(part, kind), Mapping):
        return written(inner.get("response", inner.get("output")))
    if kind == "tool_call_response":
        return written(part.get("response", part.get("result")))
    found = _output(part)
    if isinstance(found, Mapping) and found.keys() >= {"type", "value"}:  # as the AI SDK types what a tool answered
        found = found["value"]
    return written(part.get("content", part.get("result")) if found is None else found)


def _keyed(part: Mapping[str, Any], kind: str) -> object:
    return next((part[name] for name, known in _KEYED.items() if known == kind and part.get(name) is not None), None)


def words_of(part: object) -> str | None:
    """Return the text of a part, or its kind in brackets; None for hidden and for empty parts."""
    if part is None:
        return None
    if isinstance(part, str):
        return _without_data(part)
    kind = part_kind(part)
    if not isinstance(part, Mapping) or not kind:
        raise BadInput(f"a content part is {kind_of(part)}", remedy="write each part as an object with a type")
    if kind in _LEFT_OUT or kind.startswith(("data-", "source-")) or part.get("thought") is True:
        return None
    if kind in _TEXT_PARTS:
        return _words(part)
    if kind in CALLS or tool_named(part, kind) is not None:
        return call_of(part).mark
    if kind in _RESULTS:
        return result_of(part)
    if kind == "error":
        return "[error]"
    return f"[{_placeholder(part, kind)}]"


def _words(part: Mapping[str, Any]) -> str:
    found = next((part[name] for name in ("text", "refusal", "content") if part.get(name) is not None), None)
    return text_of(found.get("value") if isinstance(found, Mapping) else found)


def _placeholder(part: Mapping[str, Any], kind: str) -> str:
    """Return the kind of a part that isn't text, by type or media type."""
    found = _keyed(part, kind) or part.get(kind)
    inner = found if isinstance(found, Mapping) else part
    media = [part.get("modality"), *(inner.get(n) for n in ("mime_type", "mimeType", "mediaType", "media_type"))]
    for name in media:
        if isinstance(name, str) and (medium := _medium(name.partition("/")[0])) != "file":
            return medium
    return _KINDS.get(kind, "file" if kind == "fileData" else kind)


_CALLED = ("function", "functionCall", "function_call", "custom", *_INNER)


def attached(files: object) -> list[str]:
    """Return the mark of each file beside a message: an image by its type, media type or name, or another file."""
    found = files if isinstance(files, list) else []
    return ["[image]" if _IMAGE.search(" ".join(map(str, _facts_of(one)))) else "[file]" for one in found]


_IMAGE = re.compile(r"(?i)\bimage\b|\.(png|jpe?g|gif|webp|heic|svg)\b")
_FILE_NAMES = ("type", "contentType", "content_type", "mime", "mimeType", "mediaType", "name", "file_name", "filename")


def _facts_of(file: object) -> list[object]:
    return [file.get(name) for name in _FILE_NAMES] if isinstance(file, Mapping) else [file]


def call_of(call: object) -> ToolCall:
    """Read a call of a tool in any recorded form; one of odd shape has no name, and is kept as its arguments."""
    if not isinstance(call, Mapping):
        return ToolCall(name="", arguments=written(call))
    inner = next((call[name] for name in _CALLED if isinstance(call.get(name), Mapping)), call)
    name = inner.get("name", inner.get("toolName"))
    if name is None and part_kind(call) == "executableCode":
        code = _keyed(call, "executableCode")
        inner, name = code if isinstance(code, Mapping) else call, "code"
    kind = call.get("type")
    if name is None and isinstance(kind, str) and kind.startswith("tool-"):
        name = kind.removeprefix("tool-")
    given = next((one[key] for one in (inner, call) for key in _ARGUMENTS if one.get(key) not in (None, "")), None)
    id_ = next((one[key] for one in (call, inner) for key in _CALL_IDS if one.get(key) not in (None, "")), None)
    if name is None:
        return ToolCall(name="", arguments=_arguments(call))
    return ToolCall(name=str(name), arguments=_arguments(given), id=None if id_ is None else str(id_))


_ARGUMENTS = ("arguments", "args", "input", "parameters", "rawInput", "tool_input", "toolInput", "code", "action")
_CALL_IDS = ("call_id", "toolCallId", "tool_call_id", "tool_use_id", "tool_id", "id")
_RESULT_IDS = ("tool_call_id", "toolCallId", "tool_use_id", "call_id", "tool_id")


def _arguments(given: object) -> str:
    """Return arguments as text: JSON, but for the text of a tool that takes one."""
    if given is None or isinstance(given, str):
        return given or ""
    return json.dumps(given, ensure_ascii=False, default=str)


def result_beside(part: Mapping[str, Any]) -> ToolResult | None:
    """Return what a result's message or part says beside its content; None if nothing."""
    inside = (*(part.get(name) for name in _INNER), _keyed(part, part_kind(part)))
    inner = next((one for one in inside if isinstance(one, Mapping)), part)
    own = inner.get("id") if inner is not part or "response" in part else None
    ids = (*(one.get(key) for one in (part, inner) for key in _RESULT_IDS), own)
    id_ = next((str(one) for one in ids if one), None)
    given = next((one[key] for one in (part, inner) for key in ("error", "errorText") if one.get(key)), None)
    if isinstance(given, Mapping):
        given = given.get("message") or given
    flags = (part.get("is_error"), part.get("isError"), part.get("status") == "error")
    error = written(given) if given not in (None, True) else "failed" if given or True in flags else ""
    return ToolResult(id=id_, error=error) if id_ or error else None


def kind_of(value: object) -> str:
    """Describe the type of a JSON value."""
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
