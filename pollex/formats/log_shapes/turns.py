"""Messages in any usual spelling, as turns.

Only words become words: images and files leave their kind in brackets, since the turns around them
may speak of them;
a model's reasoning, marks of steps and citations are left out; what a tool answered becomes a turn
of the tool's.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pollex.conversations.conversation import Role, ToolCall, ToolResult, Turn
from pollex.errors import BadInput
from pollex.formats.paths import parse_python_literal
from pollex.text import JsonObject, parse_json

PART_KIND_FIELDS = ("type", "kind", "event", "block_type", "content_type")
TEXT_PART_KINDS = frozenset(
    ["text", "input_text", "output_text", "refusal", "inputText", "outputText"]
)
_HIDDEN_PART_KINDS = frozenset(
    (
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
        "code_interpreter_call",
        "image_generation_call",
        "mcp_list_tools",
        "summary_text",
        "token_budget",
        "reasoningContent",
        "cachePoint",
    )
)
CALL_PART_KINDS = frozenset(
    (
        "tool_use",
        "tool_call",
        "tool-call",
        "function_call",
        "functionCall",
        "server_tool_use",
        "mcp_call",
        "mcp_tool_use",
        "executableCode",
        "tool-invocation",
        "custom_tool_call",
        "computer_call",
        "local_shell_call",
        "toolUse",
    )
)
_RESULT_PART_KINDS = frozenset(
    (
        "tool_result",
        "tool_call_response",
        "tool-result",
        "functionResponse",
        "codeExecutionResult",
        "toolResult",
        "tool_call_result",
        "function_result",
    )
)
_PART_KIND_BY_KEY = {
    name: kind
    for kind in (
        "functionCall",
        "functionResponse",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
    )
    for name in (kind, re.sub("([A-Z])", r"_\1", kind).lower())
}
"""Kinds of parts that are told by a key that has a value, as Gemini's JSON and its Python package write them."""
_SINGLE_KEY_PART_KINDS = frozenset(
    (
        "toolUse",
        "toolResult",
        "reasoningContent",
        "cachePoint",
        "guardContent",
        "citationsContent",
        "tool_call",
        "tool_call_result",
        "reasoning",
        "image",
        "document",
        "video",
        "file",
    )
)
"""Likewise in Bedrock's messages, Strands' and Haystack's."""
_MEDIUM_BY_PART_KIND = {
    **dict.fromkeys(("image_url", "input_image", "image-url", "image_file", "inlineData"), "image"),
    **dict.fromkeys(("input_audio", "audio_url"), "audio"),
    **dict.fromkeys(
        ("input_file", "document", "file_url", "uri", "blob", "file_data", "media"), "file"
    ),
}
_KNOWN_PART_KINDS = (
    TEXT_PART_KINDS
    | _HIDDEN_PART_KINDS
    | CALL_PART_KINDS
    | _RESULT_PART_KINDS
    | frozenset(_MEDIUM_BY_PART_KIND)
    | {"image", "audio", "video", "file"}
)
_EMBEDDED_DATA_PATTERN = re.compile(
    r"(!\[[^\]]*\]\()?data:(\w+)/[\w.+-]+(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=_-]+\)?"
)
_LANGFUSE_MEDIA_PATTERN = re.compile(r"@@@langfuseMedia:type=(\w+)/[^@]*@@@")


def extract_text(content: object) -> str:
    """Return the text of a message: strings, or the text parts of a list.

    A part that isn't text leaves its kind in brackets, `[image]`, since the turns around it may
    refer to it.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return _replace_embedded_data(content)
    if isinstance(content, list):
        parts = []
        for part in content:
            if (text := get_part_text(part)) is not None:
                parts.append(text)

        return "\n".join(parts)

    raise UnreadableTurns(
        f"a turn's content is {describe_json_type(content)}",
        hint="make it text or a list of content parts",
    )


def join_filled_lines(lines: Iterable[str | None]) -> str:
    """Return some lines as one text, without the empty ones."""
    return "\n".join(filter(None, lines))


def format_tool_result(value: object) -> str:
    """Convert a tool's result to text: strings, parts by their text, others as JSON."""
    if value is None or isinstance(value, str):
        return _replace_embedded_data(value or "")
    if isinstance(value, list) and all(
        isinstance(part, Mapping) and str(part.get("type")) in TEXT_PART_KINDS for part in value
    ):
        return extract_text(value)
    return _replace_embedded_data(json.dumps(value, ensure_ascii=False))


def _replace_embedded_data(text: str) -> str:
    """Remove the bytes of images and files that some tools write into text."""
    if ";base64," in text:
        text = _EMBEDDED_DATA_PATTERN.sub(lambda match: f"[{_name_medium(match.group(2))}]", text)
    if "@@@langfuseMedia:" in text:
        text = _LANGFUSE_MEDIA_PATTERN.sub(lambda match: f"[{_name_medium(match.group(1))}]", text)
    return text


def _name_medium(kind: str) -> str:
    return kind if kind in ("image", "audio", "video") else "file"


def detect_part_kind(part: object) -> str:
    """Return the kind of a part, by type or only key; empty if unknown."""
    if not isinstance(part, Mapping):
        return "text" if isinstance(part, str) else ""

    # the kind is named, or told by a key such as functionCall that has a value
    named = next((part[name] for name in PART_KIND_FIELDS if name in part), None)
    if named is None:
        named = next(
            (kind for name, kind in _PART_KIND_BY_KEY.items() if part.get(name) is not None),
            "text",
        )

    # a part of text that has no text may hold another kind under that kind's name
    if named == "text" and part.get("text") is None:
        named = next(
            (
                name
                for name in part
                if name in _SINGLE_KEY_PART_KINDS and isinstance(part[name], Mapping | list)
            ),
            named,
        )

    return named if isinstance(named, str) else ""


def is_content_part(value: object) -> bool:
    """Return whether an object is a part of a message of a known type, or holds something under its type's name."""
    kind = None
    if isinstance(value, Mapping):
        kind = value.get("type")
    # without a type: an object whose only key is its kind
    if kind is None and isinstance(value, Mapping):
        return len(value) == 1 and bool(value.keys() & (_SINGLE_KEY_PART_KINDS | {"text"}))
    if not isinstance(kind, str) or not isinstance(value, Mapping):
        return False
    return (
        kind in _KNOWN_PART_KINDS or kind in value or kind.startswith(("tool-", "data-", "source-"))
    )


def is_tool_result(part: object) -> bool:
    """Return whether a part is a tool's result, possibly together with the call."""
    kind = detect_part_kind(part)
    if kind in _RESULT_PART_KINDS or kind.endswith("_tool_result"):
        return True

    # a call that already has its output is a result as well
    return (
        isinstance(part, Mapping)
        and get_tool_name(part, kind) is not None
        and _get_part_output(part) is not None
    )


def get_tool_name(part: JsonObject, kind: str) -> str | None:
    if kind == "dynamic-tool":
        return str(part.get("toolName"))

    inner = next(
        (part[name] for name in _INNER_CALL_FIELDS if isinstance(part.get(name), Mapping)),
        None,
    )
    if kind in ("tool_call", "tool-invocation") and inner is not None:
        return str(next((inner[key] for key in _TOOL_NAME_FIELDS if key in inner), None))
    # `tool-NAME` is a call in the AI SDK; some kinds of others begin so, too
    if kind.startswith("tool-") and kind not in CALL_PART_KINDS | _RESULT_PART_KINDS:
        return kind.removeprefix("tool-")
    return None


_INNER_CALL_FIELDS = ("tool_call", "toolInvocation", "toolUse", "toolResult", "tool_call_result")
"""Where parts of LibreChat and of the AI SDK's fourth version keep a call together with its result; others keep one."""


def _get_part_output(part: JsonObject) -> object:
    inner = next(
        (part[name] for name in _INNER_CALL_FIELDS if isinstance(part.get(name), Mapping)),
        part,
    )
    output = next(
        (inner[name] for name in ("output", "errorText") if inner.get(name) is not None),
        None,
    )
    if output is None and inner is not part:
        return inner.get("result")
    return output


def format_part_result(part: JsonObject) -> str:
    kind = detect_part_kind(part)
    # Gemini's parts, then Bedrock's and Haystack's, then OpenTelemetry's
    if isinstance(inner := _get_keyed_content(part, kind), Mapping):
        return format_tool_result(inner.get("response", inner.get("output")))
    if kind in ("toolResult", "tool_call_result") and isinstance(part.get(kind), Mapping):
        result = part[kind]
        if "content" in result:
            return _format_bedrock_result(result["content"])
        return format_tool_result(result.get("result"))
    if kind == "tool_call_response":
        return format_tool_result(part.get("response", part.get("result")))

    output = _get_part_output(part)
    # as the AI SDK types what a tool answered
    if isinstance(output, Mapping) and output.keys() >= {"type", "value"}:
        output = output["value"]

    return format_tool_result(part.get("content", part.get("result")) if output is None else output)


def _format_bedrock_result(parts: object) -> str:
    """Return a result's parts as text; each is a text, JSON, or a file."""
    listed = parts if isinstance(parts, list) else [parts]
    texts = []
    for part in listed:
        texts.append(
            format_tool_result(part["json"])
            if isinstance(part, Mapping) and "json" in part
            else get_part_text(part)
        )

    return join_filled_lines(texts)


def _get_keyed_content(part: JsonObject, kind: str) -> object:
    return next(
        (
            part[name]
            for name, keyed_kind in _PART_KIND_BY_KEY.items()
            if keyed_kind == kind and part.get(name) is not None
        ),
        None,
    )


def get_part_text(part: object) -> str | None:
    """Return the text of a part, or its kind in brackets; None for hidden and for empty parts."""
    if part is None:
        return None
    if isinstance(part, str):
        return _replace_embedded_data(part)

    kind = detect_part_kind(part)
    if not isinstance(part, Mapping) or not kind:
        raise UnreadableTurns(
            f"a content part is {describe_json_type(part)}",
            hint="write each part as an object with a type",
        )
    # parts that nobody says: reasoning, data for a screen, sources
    if (
        kind in _HIDDEN_PART_KINDS
        or kind.startswith(("data-", "source-"))
        or part.get("thought") is True
    ):
        return None
    if kind in TEXT_PART_KINDS:
        return _get_part_words(part)
    if kind in CALL_PART_KINDS or get_tool_name(part, kind) is not None:
        return read_tool_call(part).mark
    if kind in _RESULT_PART_KINDS:
        return format_part_result(part)
    if kind == "error":
        return "[error]"
    return f"[{_make_media_mark(part, kind)}]"


def _get_part_words(part: JsonObject) -> str:
    words = next(
        (part[name] for name in ("text", "refusal", "content") if part.get(name) is not None),
        None,
    )
    # OpenAI's Assistants keep the words under `value`, Dialogflow in a list under `text`
    if isinstance(words, Mapping):
        words = next((words[name] for name in ("value", "content", "text") if name in words), None)
    return extract_text(words)


def _make_media_mark(part: JsonObject, kind: str) -> str:
    content = _get_keyed_content(part, kind) or part.get(kind)
    inner = content if isinstance(content, Mapping) else part
    # a media type tells images and sounds from other files
    media = [
        part.get("modality"),
        *(inner.get(n) for n in ("mime_type", "mimeType", "mediaType", "media_type")),
    ]
    for name in media:
        if isinstance(name, str) and (medium := _name_medium(name.partition("/")[0])) != "file":
            return medium

    return _MEDIUM_BY_PART_KIND.get(kind, "file" if kind == "fileData" else kind)


_CALL_BODY_FIELDS = ("function", "functionCall", "function_call", "custom", *_INNER_CALL_FIELDS)


def list_file_marks(files: object) -> list[str]:
    """Return the mark of each file beside a message: an image by its type, media type or name, or another file."""
    listed = files if isinstance(files, list) else []
    marks: list[str] = []
    for file in listed:
        marks.append(
            "[image]"
            if _IMAGE_PATTERN.search(" ".join(map(str, _list_file_facts(file))))
            else "[file]"
        )

    return marks


_IMAGE_PATTERN = re.compile(r"(?i)\bimage\b|\.(png|jpe?g|gif|webp|heic|svg)\b")
_FILE_TYPE_FIELDS = (
    "type",
    "contentType",
    "content_type",
    "mime",
    "mimeType",
    "mediaType",
    "name",
    "file_name",
    "filename",
)


def _list_file_facts(file: object) -> list[object]:
    if isinstance(file, Mapping):
        return [file.get(name) for name in _FILE_TYPE_FIELDS]
    return [file]


def read_tool_call(call: object) -> ToolCall:
    """Read a call of a tool in any recorded form; one of odd shape has no name, and is kept as its arguments."""
    if not isinstance(call, Mapping):
        return ToolCall(name="", arguments=format_tool_result(call))

    # the tool's name stands in the call or one level deeper
    inner = next(
        (call[name] for name in _CALL_BODY_FIELDS if isinstance(call.get(name), Mapping)),
        call,
    )
    name = next(
        (inner[key] for key in _TOOL_NAME_FIELDS if inner.get(key) is not None),
        None,
    )
    # code that Gemini runs is a call without a tool's name
    if name is None and detect_part_kind(call) == "executableCode":
        code = _get_keyed_content(call, "executableCode")
        inner = code if isinstance(code, Mapping) else call
        name = "code"

    kind = call.get("type")
    if name is None and isinstance(kind, str) and kind.startswith("tool-"):
        name = kind.removeprefix("tool-")

    # arguments are looked for in the inner object first, ids in the outer one
    arguments = _find_first_filled((inner, call), _ARGUMENT_FIELDS)
    id_ = _find_first_filled((call, inner), _CALL_ID_FIELDS)
    if name is None:
        return ToolCall(name="", arguments=_format_arguments(call))

    return ToolCall(
        name=str(name),
        arguments=_format_arguments(arguments),
        id=None if id_ is None else str(id_),
    )


def _find_first_filled(places: Iterable[JsonObject], names: Sequence[str]) -> object:
    """Return the first value under one of some names, place by place; None if there is none."""
    for place in places:
        for name in names:
            if place.get(name) not in (None, ""):
                return place[name]

    return None


_ARGUMENT_FIELDS = (
    "arguments",
    "tool_kwargs",
    "args",
    "input",
    "parameters",
    "rawInput",
    "tool_input",
    "toolInput",
    "params",
    "params_as_json",
    "code",
    "action",
)
_TOOL_NAME_FIELDS = ("name", "toolName", "tool_name", "apiName")
_RESULT_ID_FIELDS = (
    "toolUseId",
    "tool_call_id",
    "toolCallId",
    "tool_use_id",
    "call_id",
    "tool_id",
    "request_id",
)
_CALL_ID_FIELDS = (*_RESULT_ID_FIELDS, "id")
_RESULT_LIST_FIELDS = ("tool_results", "toolResults")
"""Where a message keeps what its tools answered."""
_RESULT_CONTENT_FIELDS = ("result_value", "result", "output", "content", "response")
"""Names of what a tool answered, in a message or an item without parts."""


def _format_arguments(arguments: object) -> str:
    """Return arguments as text: JSON, but for the text of a tool that takes one."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments, ensure_ascii=False, default=str)


def read_tool_result(part: JsonObject) -> ToolResult | None:
    """Return what a result's message or part says beside its content; None if nothing."""
    inside = (
        *(part.get(name) for name in (*_INNER_CALL_FIELDS, "additional_kwargs")),
        _get_keyed_content(part, detect_part_kind(part)),
    )
    inner = next(
        (envelope for envelope in inside if isinstance(envelope, Mapping)),
        part,
    )
    # the id of the call that it answers
    own_id = None
    if inner is not part or "response" in part:
        own_id = inner.get("id")
    if isinstance(origin := inner.get("origin"), Mapping):
        own_id = origin.get("id")

    ids = (*(place.get(key) for place in (part, inner) for key in _RESULT_ID_FIELDS), own_id)
    id_ = next((str(candidate) for candidate in ids if candidate), None)
    # what failed, in words where there are any
    cause = next(
        (place[key] for place in (part, inner) for key in ("error", "errorText") if place.get(key)),
        None,
    )
    if isinstance(cause, Mapping):
        cause = cause.get("message") or cause

    flags = (
        part.get("is_error"),
        part.get("isError"),
        "error" in (part.get("status"), inner.get("status")),
    )
    # an error in words says more than a mark that there was one
    if cause not in (None, True):
        error = format_tool_result(cause)
    else:
        error = ""
        if cause or True in flags:
            error = "failed"

    if id_ or error:
        return ToolResult(id=id_, error=error)
    return None


def describe_json_type(value: object) -> str:
    kinds: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }
    return kinds.get(type(value), "a number")


ROLE_SPELLINGS: dict[Role, str] = {
    "user": """user human customer client consumer visitor guest caller person usr enduser prompter usermessage lead
        contact""",
    "assistant": """assistant gpt chatgpt ai bot chatbot agent model support operator advisor representative machine
        apimessage assistantmessage admin fin functioncall toolcall toolcalls toolcallinvocation aiagent gemini""",
    "system": "system developer instruction instructions",
    "tool": "tool function observation toolresult toolresults toolcallresult ipython environment",
}
ROLE_BY_SPELLING: dict[str, Role] = {
    spelling: role for role, line in ROLE_SPELLINGS.items() for spelling in line.split()
}
ROLE_FIELD_NAMES = ("role", "from", "speaker", "sender", "author", "obj")
TEXT_FIELD_NAMES = ("content", "value", "text", "message", "utterance")
PARTS_FIELD_NAMES = ("parts", "contentParts", "content_parts", "blocks", "items")
CALL_ROLE_NAMES = ("functioncall", "toolcall", "toolcallinvocation")
"""Roles of turns that are calls and no words."""
_PLAIN_MESSAGE_FIELDS = frozenset({"role", "content"})
"""Fields of most messages: what is looked for in others takes four times as long as reading these."""
_ROLE_DECORATION_PATTERN = re.compile(r"((?<!user)(?<!api)(?<!assistant)message(chunk)?$)|[^a-z]")


class UnreadableTurns(BadInput):
    """What stands in the place of turns and is none."""


class UnknownRole(BadInput):
    """A turn by somebody whom no spelling names."""

    def __init__(self, spelling: str) -> None:
        self.spelling = spelling[:40]
        self.spellings = [self.spelling]
        known_roles = ", ".join(sorted(ROLE_BY_SPELLING))
        super().__init__(
            f"unknown role {self.spelling!r}",
            hint=f"rename it to one of: {known_roles}",
        )


def parse_role(spelling: object) -> Role:
    """Return the role for `human`, `gpt`, `AIMessage` …; raise `BadInput` for unknown ones."""
    if not isinstance(spelling, str):
        raise UnreadableTurns(
            f"a turn's role is {describe_json_type(spelling)}, not text",
            hint="name who speaks: user or assistant",
        )

    # the spelling as it stands, then without spaces, signs and `message` at its end
    role = ROLE_BY_SPELLING.get(spelling) or ROLE_BY_SPELLING.get(
        _ROLE_DECORATION_PATTERN.sub("", spelling.strip().casefold())
    )
    if role is None:
        raise UnknownRole(spelling)
    return role


def read_message_turns(message: object) -> tuple[Turn, ...]:
    """Read the turns of one message; several if its parts include tool results."""
    if not isinstance(message, dict):
        raise UnreadableTurns(
            f"a turn is {describe_json_type(message)}",
            hint="write each turn as an object with role and content",
        )

    # most messages have two fields, and need none of the searches below
    if (
        message.keys() == _PLAIN_MESSAGE_FIELDS
        and isinstance(message["role"], str)
        and isinstance(message["content"], str)
    ):
        return (Turn(role=parse_role(message["role"]), content=extract_text(message["content"])),)

    # envelopes, and messages of other shapes
    inner = message.get("message")
    if isinstance(inner, dict) and "role" in inner and "role" not in message:
        message = inner  # an envelope with what else is known of a message

    message = _unwrap_langchain_message(message)
    if _is_not_message(message):
        return ()

    from pollex.formats.log_shapes.dialects import (
        convert_dialect_message,  # plain messages don't need it
    )

    if (usual := convert_dialect_message(message)) is not None:
        return tuple(turn for usual_message in usual for turn in read_message_turns(usual_message))
    if "role" not in message and is_responses_item(message.get("type")):
        return tuple(_read_responses_item(message))

    return _read_usual_message(message)


class WordsBeside(NamedTuple):
    """What an assistant's message has beside its content.

    Attributes:
        spoken: A refusal, or the transcript of an audio.
        calls: Calls of tools, also in the old form.
        odd_calls: What stands in the place of calls and is no object, kept as calls without a name.
    """

    spoken: list[str]
    calls: list[ToolCall]
    odd_calls: list[ToolCall]


def _read_usual_message(message: JsonObject) -> tuple[Turn, ...]:
    """Read the turns of a message that says who speaks, and has words, parts or calls."""
    speaker = _get_speaker(message)
    role = parse_role(speaker)
    beside = _read_fields_beside_content(message)
    # what tools answered stands in a list of its own
    answered = next((message[key] for key in _RESULT_LIST_FIELDS if message.get(key)), None)
    if answered is not None:
        return (*_make_turns_without_results(message), *_iterate_result_turns(answered))

    parts = next(
        (message[name] for name in PARTS_FIELD_NAMES if isinstance(message.get(name), list)),
        None,
    )
    name = _find_content_field(message, role, has_parts=parts is not None)
    # in some logs a call is a role, and the message is the call
    is_call = _ROLE_DECORATION_PATTERN.sub("", str(speaker).casefold()) in CALL_ROLE_NAMES
    is_named_call = is_call and "name" in message
    if name is None and parts is None and not (any(beside) or is_named_call):
        raise UnreadableTurns(
            "a turn has no text",
            hint=f"put the words in one of: {', '.join(TEXT_FIELD_NAMES)}",
        )

    content = parts
    if content is None and name:
        content = message[name]
    if is_call:
        call = message if content is None and is_named_call else content
        return (_make_call_turn(role, call),)
    return _make_content_turns(message, role, name, content, beside)


def _find_content_field(
    message: JsonObject,
    role: Role,
    *,
    has_parts: bool,
) -> str | None:
    """Return the field that has a message's words: a filled one before an empty one; None if there is none."""
    name = next((name for name in TEXT_FIELD_NAMES if message.get(name) is not None), None)
    name = name or next((name for name in TEXT_FIELD_NAMES if name in message), None)
    # a tool's message may keep its answer under another name
    if role == "tool" and not has_parts and not (name and message[name]):
        name = next(
            (key for key in _RESULT_CONTENT_FIELDS if message.get(key) not in (None, "")),
            name,
        )

    return name


def _make_content_turns(
    message: JsonObject,
    role: Role,
    name: str | None,
    content: object,
    beside: WordsBeside,
) -> tuple[Turn, ...]:
    """Make the turns of a message; several where results of tools stand in it.

    Args:
        name: The field that the content is from; not used where it is a list of parts.
    """
    # a call in the content and beside it is one call
    calls_within = list_tool_calls(content)
    marks_within = {call.mark for call in calls_within}
    calls_beside = [call for call in beside.calls if call.mark not in marks_within]
    # a result among the parts ends a turn: the message becomes several
    if isinstance(content, list) and any(is_tool_result(part) for part in content):
        calls = [*calls_beside, *beside.odd_calls]
        return tuple(_read_parted_turns(role, content, beside.spoken, calls))

    is_data = isinstance(content, dict) or name in _RESULT_CONTENT_FIELDS[:3]
    if role == "tool" and is_data:
        text = format_tool_result(content)
    else:
        text = extract_text(content)

    # the turn: its words, then the marks of calls that the words don't have
    marks = [call.mark for call in calls_beside if call.mark not in text]
    words = text
    if beside.spoken or marks:
        words = join_filled_lines([text, *beside.spoken, *marks])

    turn = Turn(
        role=role,
        content=words,
        calls=(*calls_within, *calls_beside, *beside.odd_calls),
        result=read_tool_result(message) if role == "tool" else None,
    )
    answers = list(_iterate_answers_in_calls(message)) if calls_beside else []
    if not answers:
        return (turn,)

    # what a call answered stands before the words that came of it
    call_marks = "\n".join(call.mark for call in turn.calls)
    call_turn = Turn(role=role, content=call_marks, calls=turn.calls)
    last_turn = Turn(role=role, content=join_filled_lines([text, *beside.spoken]))
    if last_turn.content.strip():
        return (call_turn, *answers, last_turn)
    return (call_turn, *answers)


def _iterate_answers_in_calls(message: JsonObject) -> Iterator[Turn]:
    """Yield what tools answered where it stands in the calls themselves."""
    for call in _get_listed_calls(message):
        if not isinstance(call, Mapping):
            continue
        value = next(
            (call[key] for key in _RESULT_CONTENT_FIELDS if call.get(key) is not None),
            None,
        )
        # a list with a single answer stands for that answer
        if isinstance(value, list) and len(value) == 1:
            answer = value[0]
        else:
            answer = value

        # an answer may be a part with an id of its own; others have the id of their call
        if isinstance(answer, Mapping) and is_tool_result(answer):
            yield Turn(
                role="tool",
                content=format_part_result(answer),
                result=read_tool_result(answer),
            )
        elif value is not None:
            call_id = read_tool_call(call).id
            result = None
            if call_id:
                result = read_tool_result({**call, "call_id": call_id})
            yield Turn(role="tool", content=format_tool_result(value), result=result)


def _make_turns_without_results(message: JsonObject) -> tuple[Turn, ...]:
    """Return the turn of a message without what its tools answered; nothing where nothing else is in it."""
    rest = {}
    for key, value in message.items():
        if key not in _RESULT_LIST_FIELDS:
            rest[key] = value

    filled_turns = []
    for turn in read_message_turns(rest):
        if turn.content.strip() or turn.calls:
            filled_turns.append(turn)

    return tuple(filled_turns)


def _iterate_result_turns(answered: object) -> Iterator[Turn]:
    """Yield a turn for each answer of a tool that stands beside a message's words."""
    for answer in _list_calls(answered):
        if not isinstance(answer, Mapping):
            yield Turn(role="tool", content=format_tool_result(answer))
            continue
        value = next(
            (answer[key] for key in _RESULT_CONTENT_FIELDS if answer.get(key) is not None),
            None,
        )
        yield Turn(
            role="tool",
            content=format_tool_result(value),
            result=read_tool_result(answer),
        )


def _is_not_message(message: JsonObject) -> bool:
    """Return whether an object among messages defines a tool, or takes a message away."""
    if message.get("type") == "remove" or message.get("role") == "remove":
        return True

    content = message.get("content")
    # the definition of a tool has no arguments, as a call would have
    defined = None
    if isinstance(content, Mapping) and content.get("type") == "function":
        defined = content.get("function")

    return (
        message.get("role") == "tool"
        and isinstance(defined, Mapping)
        and "arguments" not in defined
    )


def list_tool_calls(content: object) -> list[ToolCall]:
    if isinstance(content, list):
        parts = []
        for part in content:
            if isinstance(part, Mapping):
                parts.append(part)
    else:
        parts = []

    kinds = [(part, detect_part_kind(part)) for part in parts]
    return [
        read_tool_call(part)
        for part, kind in kinds
        if kind in CALL_PART_KINDS or get_tool_name(part, kind) is not None
    ]


def _make_call_turn(role: Role, content: object) -> Turn:
    if isinstance(content, str) and content.lstrip()[:1] == "{":
        with suppress(ValueError):
            content = parse_json(content)

    if isinstance(content, Mapping) and "name" in content:
        call = read_tool_call(content)
        return Turn(role=role, content=call.mark, calls=(call,))
    return Turn(role=role, content=extract_text(content))


def read_turns(messages: object) -> tuple[Turn, ...]:
    """Read a list of messages, or its JSON text; null gives no turns."""
    # the whole list may be JSON text, or stand in an object around it
    if isinstance(messages, str):
        messages = _parse_turns_text(messages)
    if isinstance(messages, Mapping) and isinstance(messages.get("messages"), list):
        messages = messages["messages"]
    if messages is None:
        return ()
    if not isinstance(messages, list):
        raise UnreadableTurns(
            f"the turns are {describe_json_type(messages)}",
            hint="write them as a list of messages",
        )

    turns: list[Turn] = []
    for index, message in enumerate(messages):
        try:
            turns += read_message_turns(message)
        except BadInput as error:
            error.where = f"turn {index}"
            # all unknown roles are told at once, so that the user can name them together
            if isinstance(error, UnknownRole):
                error.spellings = list(_list_unknown_roles(messages))
            raise

    return tuple(turns)


def _list_unknown_roles(messages: Sequence[object]) -> dict[str, None]:
    """Return all roles of some messages that no spelling names, once and in order."""
    spellings: dict[str, None] = {}
    for message in messages:
        try:
            parse_role(_get_speaker(message) if isinstance(message, Mapping) else None)
        except UnknownRole as error:
            spellings[error.spelling] = None
        except BadInput:
            continue

    return spellings


def is_list_of_turns(value: object) -> bool:
    """Return whether a field may hold turns: a list, or JSON text of one."""
    return isinstance(value, list) or (isinstance(value, str) and value.lstrip()[:1] == "[")


def _get_speaker(message: JsonObject) -> object:
    role = next(
        (message[name] for name in ROLE_FIELD_NAMES if name in message),
        message.get("type"),
    )
    # an author may be an object with a role, as in exports of ChatGPT
    if isinstance(role, Mapping):
        role = role.get("role", role.get("type"))

    if role is None:
        raise UnreadableTurns(
            "a turn has no role",
            hint=f"name who speaks in one of: {', '.join(ROLE_FIELD_NAMES)}",
        )

    return role


def _parse_turns_text(text: str) -> object:
    try:
        return parse_json(text)
    except ValueError as error:
        # a list as Python writes it is read, too
        if not isinstance(value := parse_python_literal(text), str):
            return value
        raise UnreadableTurns(
            f"the turns aren't JSON: {error}",
            hint="write them as a JSON list of messages",
        ) from None


def _unwrap_langchain_message(message: JsonObject) -> JsonObject:
    """LangChain's two envelopes: `{"type", "data"}`, and `{"lc", "id": [… class], "kwargs"}`."""
    if is_langchain_envelope(message):
        path = message.get("id")
        kwargs = message["kwargs"]
        return {"type": path[-1] if isinstance(path, list) and path else None, **kwargs}
    if isinstance(data := message.get("data"), Mapping):
        return {**data, "type": message.get("type")}
    return message


def is_langchain_envelope(value: JsonObject) -> bool:
    """Return whether an object is LangChain's envelope of a message, and not the arguments of a function."""
    kwargs = value.get("kwargs")
    return isinstance(kwargs, Mapping) and (
        "content" in kwargs or isinstance(value.get("id"), list)
    )


def is_responses_item(kind: object) -> bool:
    """Return whether an item of OpenAI's Responses is a call, its output, or hidden, and no message."""
    return str(kind).endswith(("_call", "_call_output")) or kind in _HIDDEN_ITEM_TYPES


_HIDDEN_ITEM_TYPES = (
    "reasoning",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "compaction",
)


def _read_responses_item(item: JsonObject) -> Iterator[Turn]:
    if item["type"].endswith("_output"):
        yield Turn(
            role="tool",
            content=format_tool_result(item.get("output")),
            result=read_tool_result(item),
        )
    elif item["type"] in CALL_PART_KINDS and item.get("name"):
        call = read_tool_call(item)
        yield Turn(role="assistant", content=call.mark, calls=(call,))
        if item.get("output"):
            yield Turn(
                role="tool",
                content=format_tool_result(item["output"]),
                result=read_tool_result({**item, "call_id": call.id}),
            )


def _read_parted_turns(
    role: Role,
    parts: list[Any],
    spoken: list[str],
    beside: list[ToolCall],
) -> Iterator[Turn]:
    # each result ends a turn of the speaker; the tool's turn follows it
    words: list[str] = []
    calls: list[ToolCall] = []
    for part in parts:
        if not is_tool_result(part):
            words += [text] if (text := get_part_text(part)) is not None else []
            calls += list_tool_calls([part])
            continue

        # a part that is call and result in one: the call is said first
        if get_tool_name(part, detect_part_kind(part)):
            calls.append(call := read_tool_call(part))
            words.append(call.mark)
        if words:
            yield Turn(
                role=role,
                content="\n".join(words),
                calls=tuple(calls),
            )

        words = []
        calls = []
        yield Turn(
            role="tool",
            content=format_part_result(part),
            result=read_tool_result(part),
        )

    # refusals and calls beside the parts come last
    if words or spoken or beside:
        marks = [call.mark for call in beside if call.name]
        yield Turn(
            role=role,
            content="\n".join([*words, *spoken, *marks]),
            calls=(*calls, *beside),
        )


def _read_fields_beside_content(message: JsonObject) -> WordsBeside:
    """Return what an assistant's message has besides its content, which is often null then."""
    audio = message.get("audio")
    call = message.get("function_call")
    spoken = [
        message.get("refusal"),
        audio.get("transcript") if isinstance(audio, Mapping) else None,
    ]
    listed = [*_get_listed_calls(message), *([call] if isinstance(call, Mapping) else [])]
    calls = []
    odd_calls = []
    for entry in listed:
        if isinstance(entry, Mapping):
            calls.append(read_tool_call(entry))
        elif entry is not None:
            odd_calls.append(read_tool_call(entry))

    texts = [text for text in spoken if isinstance(text, str) and text]
    return WordsBeside(texts, calls, odd_calls)


def _get_listed_calls(message: JsonObject) -> list[object]:
    """Return a message's calls, which some libraries keep among further arguments alone."""
    further = message.get("additional_kwargs")
    places = (message, further) if isinstance(further, Mapping) else (message,)
    named = (place.get(name) for place in places for name in ("tool_calls", "toolCalls"))
    return next((calls for value in named if (calls := _list_calls(value))), [])


def _list_calls(calls: object) -> list[object]:
    """Return what stands in the place of calls as a list, also from JSON text."""
    if isinstance(calls, str) and calls.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            calls = parse_json(calls)
    if isinstance(calls, list | tuple):
        return list(calls)
    # NaN stands for nothing in tables
    if calls and calls == calls:
        return [calls]
    return []
