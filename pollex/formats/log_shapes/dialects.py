"""Messages as libraries of agents write them, in the usual spelling: role and content, calls and results as parts."""

import json
from collections.abc import Iterator, Mapping, Sequence

from pollex.formats.names import split_name_words
from pollex.text import JsonDict, JsonObject

MessageMapping = JsonObject

_PYDANTIC_ROLE_BY_KIND = {
    "system-prompt": "system",
    "user-prompt": "user",
    "text": "assistant",
    "tool-call": "assistant",
    "tool-return": "tool",
    "retry-prompt": "tool",
}
"""Who speaks in a part of Pydantic AI's messages; other kinds are thoughts."""
_AUTOGEN_HIDDEN_EVENTS = (
    "ThoughtEvent",
    "ModelClientStreamingChunkEvent",
    "MemoryQueryEvent",
    "CodeGenerationEvent",
)


_TOOL_NAME_FIELDS = ("tool", "tool_name", "toolName", "function", "function_name", "functionName")
_TOOL_ARGUMENT_FIELDS = (
    "tool_input",
    "toolInput",
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
)
_TOOL_RESULT_FIELDS = (
    "observation",
    "tool_output",
    "toolOutput",
    "tool_result",
    "result",
    "output",
    "response",
)
_TOOL_CALL_ID_FIELDS = ("call_id", "callId", "tool_call_id", "toolCallId")
"""What programs call a tool, what it was given, what came of it, and the id that both share."""


_CALL_KIND_WORDS = frozenset(("tool", "function", "action", "observation"))
"""Words in kinds of records of calls, and of what came of them."""


def convert_tool_step(fields: MessageMapping) -> JsonDict | None:
    """Return a program's own record of a call, of its result, or of both as a usual message; None for others.

    The caller sees to it that nobody says anything in it.
    """
    name = _find_first_filled(fields, _TOOL_NAME_FIELDS)
    given = _find_first_filled(fields, _TOOL_ARGUMENT_FIELDS)
    came = _find_first_filled(fields, _TOOL_RESULT_FIELDS)
    # where the kind of a record says that it is one, the name may be called so, or be missing
    kind = str(_find_first_filled(fields, ("type", "event", "kind", "step")) or "")
    if not isinstance(name, str) and not _CALL_KIND_WORDS.isdisjoint(split_name_words(kind)):
        answers = (
            came is not None
            and given is None
            and _find_first_filled(fields, _TOOL_CALL_ID_FIELDS) is not None
        )
        name = _find_first_filled(fields, ("name", "action")) or ("" if answers else None)
    if not isinstance(name, str) or (given is None and came is None):
        return None

    id_ = _find_first_filled(fields, _TOOL_CALL_ID_FIELDS)
    if given is None:
        content = came if isinstance(came, str) else json.dumps(came, ensure_ascii=False)
        return {"role": "tool", "content": content, "tool_call_id": id_}

    call = {"id": id_, "name": name, "arguments": given}
    if came is not None:
        call["result"] = came
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _find_first_filled(fields: MessageMapping, names: Sequence[str]) -> object:
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)


def is_dialect_message(message: MessageMapping) -> bool:
    """Return whether an object is a message of Pydantic AI, AutoGen or .NET, which has no usual role."""
    if _is_dotnet_message(message):
        return True
    if message.get("kind") in ("request", "response"):
        return isinstance(message.get("parts"), list)
    return "source" in message and str(message.get("type")).endswith(("Message", "Event"))


def convert_dialect_message(message: MessageMapping) -> list[JsonDict] | None:
    """Return a message of such a library as usual ones; None for any other message."""
    if message.get("kind") in ("request", "response") and isinstance(message.get("parts"), list):
        return list(_convert_pydantic_parts(message["parts"]))
    if "source" in message and str(message.get("type")).endswith(("Message", "Event")):
        return list(_convert_autogen_message(message))
    if _is_dotnet_message(message):
        return [_convert_dotnet_message(message)]
    return None


def _is_dotnet_message(message: MessageMapping) -> bool:
    """Return whether an object is a message of Semantic Kernel's chat history in .NET."""
    spoken = "role" not in message and "Role" in message
    return spoken and ("Items" in message or "Content" in message)


def _convert_pydantic_parts(parts: Sequence[object]) -> Iterator[JsonDict]:
    """Yield a request's parts one by one, and a response's together, since words and calls stand beside each other."""
    answer_parts: list[object] = []
    for part in parts:
        kind = None
        if isinstance(part, Mapping):
            kind = part.get("part_kind", part.get("kind"))
        role = _PYDANTIC_ROLE_BY_KIND.get(str(kind))
        if role == "assistant" and isinstance(part, Mapping):
            call = {
                **part,
                "type": "tool-call",
                "input": part.get("args"),
            }
            answer_parts.append(part.get("content") if kind == "text" else call)
        elif role == "tool" and isinstance(part, Mapping):
            # a retry without a tool is told to the model as by the user
            failed = "error" if kind == "retry-prompt" else None
            result = {
                "content": part.get("content"),
                "tool_call_id": part.get("tool_call_id"),
                "status": failed,
            }
            yield {"role": "tool" if part.get("tool_name") else "user", **result}
        elif role and isinstance(part, Mapping):
            yield {"role": role, "content": part.get("content")}

    if answer_parts:
        yield {"role": "assistant", "content": answer_parts}


def _convert_autogen_message(message: MessageMapping) -> Iterator[JsonDict]:
    """Yield a message of a team: calls and results are lists, and whoever isn't called user is an agent."""
    kind = str(message["type"])
    content = message.get("content")
    if (
        kind in _AUTOGEN_HIDDEN_EVENTS
        or kind == "ToolCallSummaryMessage"
        or kind == "HandoffMessage"
    ):
        return

    listed = content if isinstance(content, list) else []
    if kind == "ToolCallRequestEvent":
        calls = []
        for call in listed:
            if isinstance(call, Mapping):
                calls.append({**call, "type": "tool_call"})
        yield {
            "role": "assistant",
            "content": None,
            "tool_calls": calls,
        }
    elif kind == "ToolCallExecutionEvent":
        for result in listed:
            if isinstance(result, Mapping):
                yield {"role": "tool", **result}
    else:
        # what is neither text nor an object is an image
        parts = (
            [part if isinstance(part, str | Mapping) else "[image]" for part in listed]
            if listed
            else content
        )
        parts = (
            [_convert_autogen_part(part) for part in parts] if isinstance(parts, list) else parts
        )
        yield {
            "role": "user" if message["source"] in ("user", "User", "user_proxy") else "assistant",
            "content": parts,
        }


def _convert_autogen_part(part: object) -> object:
    if isinstance(part, Mapping) and "data" in part:
        return {"type": "image"}
    return part


def _convert_dotnet_message(message: MessageMapping) -> JsonDict:
    """Return a message of Semantic Kernel's chat history in .NET."""
    role = message["Role"]
    items = message.get("Items") or []
    parts = [
        _convert_dotnet_part(item) for item in items if isinstance(item, Mapping)
    ] or message.get("Content")

    return {
        "role": role.get("Label") if isinstance(role, Mapping) else role,
        "content": parts,
    }


def _convert_dotnet_part(item: MessageMapping) -> JsonDict:
    kind = str(item.get("$type"))
    if kind.startswith("FunctionCall"):
        # a function is called by the name of its plug-in and its own
        name = "-".join(
            filter(
                None,
                [item.get("PluginName"), item.get("FunctionName")],
            )
        )
        return {
            "type": "tool_call",
            "name": name,
            "arguments": item.get("Arguments"),
            "id": item.get("Id"),
        }

    if kind.startswith("FunctionResult"):
        return {
            "type": "tool_result",
            "tool_use_id": item.get("CallId"),
            "content": item.get("Result"),
        }
    if "Text" in item:
        return {"type": "text", "text": item["Text"]}
    return {"type": kind.removesuffix("Content").casefold() or "file"}
