"""Inputs and outputs of a run, in any recorded form, as turns."""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from pollex.conversations.conversation import Role, Turn
from pollex.errors import BadInput
from pollex.formats.log_shapes.turns import (
    is_content_part,
    is_langchain_envelope,
    read_message_turns,
    read_turns,
)
from pollex.text import JsonDict, JsonObject, parse_json

HISTORY_FIELD_NAMES = ("chat_history", "history")
MESSAGES_FIELD_NAMES = (
    "messages",
    "contents",
    "input_messages",
    "inputMessages",
    "prompt_messages",
)
QUESTION_TEXT_NAMES = (
    "input",
    "question",
    "query",
    "prompt",
    "user_input",
    "user_message",
    "message",
    "text",
    "content",
)
ANSWER_TEXT_NAMES = (
    "output",
    "answer",
    "response",
    "result",
    "completion",
    "reply",
    "text",
    "content",
    "output_text",
    "message",
    "final_output",
)
GENERATED_FIELD_NAMES = ("generations", "choices", "candidates")
WRAPPER_FIELD_NAMES = ("kwargs", "inputs", "outputs", "values", "value", "args", "request", "data")
KNOWN_FIELD_NAMES = (
    *HISTORY_FIELD_NAMES,
    *MESSAGES_FIELD_NAMES,
    *GENERATED_FIELD_NAMES,
    *WRAPPER_FIELD_NAMES,
    "role",
    "lc",
)
SYSTEM_PROMPT_NAMES = (
    "system",
    "instructions",
    "system_instruction",
    "systemInstruction",
    "system_instructions",
)
_SYSTEM_PROMPT_NAME_SET = frozenset(SYSTEM_PROMPT_NAMES)


_PYTHON_LITERAL_PATTERN = re.compile(r"\s*\[?\{'")
_LIST_INDEX_PATTERN = re.compile(r"\d+")


class RunSide(NamedTuple):
    """The input or the output of a run.

    Attributes:
        history: Whether it was a list of messages and not one text.
        sure: Whether it is known to be what was said; else it is shown as it stands, unless a
            model's call tells more.
    """

    turns: tuple[Turn, ...]
    history: bool
    sure: bool = True


def parse_nested_json(value: object, times: int = 2) -> Any:
    """Parse JSON text, up to twice nested, or Python's writing of it; return any other value as it is."""
    for _ in range(times):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            return value
        try:
            value = parse_json(value)
        except ValueError:
            return _parse_python_literal(str(value))

    return value


RETRIEVER_SPAN_KINDS = frozenset(("retriever", "retrieval"))
"""Kinds of spans that look for documents, in lower case."""

DOCUMENT_LIST_NAMES = ("documents", "output", "outputs", "results", "result", "nodes")
"""Fields in which the output of such a span may have them, if it is no list itself."""


def list_retrieved_documents(kind: str, output: object) -> list[object]:
    """Return the documents that a span looked for and found; nothing of spans of other kinds."""
    if kind.casefold() not in RETRIEVER_SPAN_KINDS:
        return []

    documents = parse_nested_json(output)
    if isinstance(documents, Mapping):
        inner = (parse_nested_json(documents.get(name)) for name in DOCUMENT_LIST_NAMES)
        documents = next((value for value in inner if isinstance(value, list)), [])

    return documents if isinstance(documents, list) else []


def _parse_python_literal(text: str) -> object:
    """Parse what Python writes for objects and lists, as data frames do in the cells of a CSV file."""
    if _PYTHON_LITERAL_PATTERN.match(text) is None:
        return text

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def nest_dotted_names(flat: JsonObject) -> object:
    """Nest names with dots into objects; objects with only numbered names into lists."""
    tree: JsonDict = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        node = tree
        for part in path:
            inner = node.setdefault(part, {})
            # a path that leads through a plain value has no place, and is left out
            if not isinstance(inner, dict):
                break
            node = inner
        else:
            node[last] = (
                [
                    nest_dotted_names(element) if isinstance(element, Mapping) else element
                    for element in value
                ]
                if isinstance(value, list)
                else value
            )

    return _convert_numbered_objects(tree)


def flatten_to_dotted_names(tree: JsonObject, before: str = "") -> JsonDict:
    """Return objects inside one another as names with dots; lists stay as they are."""
    flat: JsonDict = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            inner = flatten_to_dotted_names(value, f"{before}{name}.")
        else:
            inner = {}

        flat |= inner or {f"{before}{name}": value}

    return flat


def _convert_numbered_objects(tree: object) -> object:
    if not isinstance(tree, dict):
        return tree

    inner = {name: _convert_numbered_objects(value) for name, value in tree.items()}
    if inner and all(_LIST_INDEX_PATTERN.fullmatch(name) for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner


WrittenForm = Literal["words", "json", "either"]
"""What a text is: what was said, of which only what can be nothing but messages is parsed; a tool's writing of a value,
as in the cells of a CSV file; or one of these, and only objects are parsed then."""


def read_run_input(value: object, written: WrittenForm = "either") -> RunSide | None:
    """Read the input of a run as turns; None if unreadable."""
    return _read_side(value, "user", QUESTION_TEXT_NAMES, written)


def read_run_output(value: object, written: WrittenForm = "either") -> RunSide | None:
    """Read the output of a run as turns, likewise; an object that no reader knows is shown as JSON, and isn't sure."""
    side = _read_side(value, "assistant", ANSWER_TEXT_NAMES, written)
    if (
        side is None
        and isinstance(value, Mapping)
        and any(inner not in (None, "", [], {}) for inner in value.values())
    ):
        return _make_unsure_side(
            "assistant",
            json.dumps(value, ensure_ascii=False, default=str),
        )

    return side


_SILENT_SPAN_KINDS = frozenset(
    [
        "tool",
        *RETRIEVER_SPAN_KINDS,
        "embedding",
        "embeddings",
        "reranker",
        "guardrail",
        "evaluator",
        "event",
        "parser",
    ]
)


def is_silent_kind(kind: str) -> bool:
    """Return whether spans of a kind, such as tools, never have the conversation's messages."""
    return kind.casefold() in _SILENT_SPAN_KINDS


def read_call_sides(
    sent: object,
    received: object,
    *,
    silent: bool = False,
    written: WrittenForm = "either",
) -> JsonDict:
    """Return what a `ModelCall` has of its input and output; nothing of a silent one."""
    if silent:
        return make_call_sides(None, None)

    # how one side is written shows how to read texts of the other
    texts = []
    for value in (sent, received):
        if isinstance(value, str):
            texts.append(value)

    if written == "either" and any(isinstance(value, Mapping | list) for value in (sent, received)):
        written = "words"  # no object stands in a text there
    elif (
        written == "either"
        and texts
        and all(parse_nested_json(value, 1) != value for value in texts)
    ):
        written = "json"

    return make_call_sides(read_run_input(sent, written), read_run_output(received, written))


def make_call_sides(before: RunSide | None, after: RunSide | None) -> JsonDict:
    """Return the sides of a `ModelCall` as its `before`, `after`, `history` and `unsure`."""
    named = (("before", before), ("after", after))
    turns = {}
    for name, side in named:
        if side and side.sure:
            turns[name] = side.turns

    unsure = {}
    for name, side in named:
        if side and not side.sure:
            unsure[name] = side.turns

    return {
        **turns,
        "history": bool(before and before.sure and before.history),
        "unsure": unsure,
    }


def _read_side(
    value: object,
    role: Role,
    names: Sequence[str],
    written: WrittenForm,
) -> RunSide | None:
    try:
        return _read_side_value(value, role, names, 0, written)
    except BadInput:
        return None


def _read_side_value(
    value: object,
    role: Role,
    names: Sequence[str],
    depth: int,
    written: WrittenForm,
) -> RunSide | None:
    if isinstance(value, str):
        return _read_text_side(value, role, names, depth, written)
    if isinstance(value, list):
        return _read_listed_side(value, role)
    if isinstance(value, Mapping) and depth < MAX_NESTING_DEPTH:
        return _read_object_side(value, role, names, depth)
    return None


MAX_NESTING_DEPTH = 4
"""Objects inside one another that are looked into."""


def _read_text_side(
    value: str,
    role: Role,
    names: Sequence[str],
    depth: int,
    written: WrittenForm,
) -> RunSide | None:
    """Read a text: messages in JSON, a tool's writing of an object, or what was said."""
    parsed = parse_nested_json(value)
    # a tool's own JSON is opened once, and what is in it are words
    if written == "json" and isinstance(once := parse_nested_json(value, 1), str):
        return _read_text_side(once, role, names, depth, "words")

    # messages are told in any text; other objects only where a tool writes them
    if isinstance(parsed, Mapping | list):
        with suppress(BadInput):
            if side := _read_message_side(parsed, role):
                return side

    if isinstance(parsed, list) and written != "words":
        with suppress(BadInput):
            if side := _read_listed_side(parsed, role):
                return side

    if isinstance(parsed, Mapping) and written != "words" and depth < MAX_NESTING_DEPTH:
        with suppress(BadInput):
            if parsed.keys() & {*names, *KNOWN_FIELD_NAMES} and (
                side := _read_object_side(parsed, role, names, depth)
            ):
                return side

        # an object that nobody knows may be what was said
        return _make_unsure_side(role, value)
    if value.strip():
        return RunSide(_make_content_turns(role, value), False)
    return None


def _make_unsure_side(role: Role, words: str) -> RunSide:
    return RunSide((Turn(role=role, content=words),), False, sure=False)


def _read_message_side(value: JsonObject | list[object], role: Role) -> RunSide | None:
    """Read what can be nothing but messages or parts of one; None for any other object or list."""
    if isinstance(value, list):
        values = value
        while len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        objects = [value for value in values if isinstance(value, Mapping)]
        whole = bool(values) and len(objects) == len(values)
        # all are messages, or all are parts of one
        if whole and (all(map(_is_message_object, objects)) or all(map(is_content_part, objects))):
            return _read_listed_side(values, role)
        return None
    if isinstance(
        next((value[name] for name in MESSAGES_FIELD_NAMES if value.get(name)), None), list
    ):
        return _read_messages_side(value, role)
    # a role alone is no message: words or calls belong to it
    if _is_message_object(value) and value.keys() & {
        "content",
        "parts",
        "tool_calls",
        "kwargs",
        "data",
    }:
        return RunSide(read_message_turns(value), True)

    generated = next(
        (value[name] for name in GENERATED_FIELD_NAMES if isinstance(value.get(name), list)),
        None,
    )
    if generated:
        return read_generated_turns(generated)
    return None


def _make_content_turns(role: Role, content: object) -> tuple[Turn, ...]:
    return read_message_turns({"role": role, "content": content})


def _read_listed_side(values: Sequence[object], role: Role) -> RunSide | None:
    """Read a list of messages, of lists, of content parts, or with one text."""
    # a batch of one is its only item
    while len(values) == 1 and isinstance(values[0], list):
        values = values[0]

    if not values:
        return None

    texts = []
    for value in values:
        if isinstance(value, str):
            texts.append(value)

    if len(texts) == len(values) == 1:
        return _read_text_side(texts[0], role, (), 0, "words")

    # messages, choices of an interface, or the parts of one message
    values = [_parse_message(value) for value in values]
    values_in_role = []
    for value in values:
        values_in_role.append(
            {"role": role, **value} if isinstance(value, Mapping) and "parts" in value else value
        )

    values = values_in_role
    objects = []
    for value in values:
        if isinstance(value, Mapping):
            objects.append(value)

    if len(objects) < len(values):
        return None
    if all(
        isinstance(choice.get("message"), Mapping) and "role" not in choice for choice in objects
    ):
        return read_generated_turns(objects)
    # parts without any role are one message
    if not any(map(_is_message_object, objects)):
        if all("type" in value for value in objects):
            return RunSide(_make_content_turns(role, values), False)
        return None
    return RunSide(read_turns(values), True)


def _parse_message(value: object) -> object:
    """Return the message in JSON text; any other value as it is."""
    parsed = parse_nested_json(value)
    if isinstance(parsed, Mapping) and _is_message_object(parsed):
        return parsed
    return value


def _read_object_side(
    value: JsonObject,
    role: Role,
    names: Sequence[str],
    depth: int,
) -> RunSide | None:
    # messages, a message, a model's choices, a usual name, an envelope, or the only text
    if side := _read_messages_side(value, role):
        return side
    if _is_message_object(value):
        return RunSide(read_message_turns(value), True)

    for name in GENERATED_FIELD_NAMES:
        if isinstance(value.get(name), list) and (side := read_generated_turns(value[name])):
            return side

    # the first usual name with a value decides, readable or not
    for name in names:
        if value.get(name) not in (None, "", [], {}):
            return _read_side_value(value[name], role, names, depth + 1, "words")

    for name in WRAPPER_FIELD_NAMES:
        written: WrittenForm = "words" if name == "value" else "either"
        if value.get(name) and (
            side := _read_wrapped_side(value[name], role, names, depth + 1, written)
        ):
            return side

    texts = []
    for inner in value.values():
        if isinstance(inner, str) and inner.strip():
            texts.append(inner)

    if len(texts) == 1 and len(value) == 1:
        return _read_text_side(texts[0], role, (), 0, "words")
    return None


def _read_wrapped_side(
    value: object,
    role: Role,
    names: Sequence[str],
    depth: int,
    written: WrittenForm,
) -> RunSide | None:
    """Read what stands in an envelope; of a function's arguments, the one that is a sentence or stands alone."""
    side = _read_side_value(value, role, names, depth, written)
    if side is not None or not isinstance(value, list):
        if side is None or side.sure:
            return side
        return None

    sentences = []
    for argument in value:
        if isinstance(argument, str) and " " in argument.strip():
            sentences.append(argument)

    if len(sentences) == 1:
        return _read_text_side(sentences[0], role, (), 0, "words")
    return None


def _read_messages_side(value: JsonObject, role: Role) -> RunSide | None:
    name = next((name for name in MESSAGES_FIELD_NAMES if value.get(name)), None)
    history = next(
        (value[name] for name in HISTORY_FIELD_NAMES if isinstance(value.get(name), list)),
        None,
    )
    if name is None and history is None:
        return None

    # the system prompt, earlier turns, then the messages or the question
    turns = make_system_turns(value)
    if history:
        turns += read_turns(history)

    messages = None
    if name is not None:
        messages = parse_nested_json(value[name])
    # a text in place of the messages is one turn
    if name is not None and isinstance(messages, str):
        return RunSide(turns + _make_content_turns(role, messages), bool(turns))
    if name is not None and (
        side := _read_listed_side(messages if isinstance(messages, list) else [messages], role)
    ):
        return RunSide(turns + side.turns, True)
    # a history without messages: the question stands beside it, and no deeper
    if history is not None and name is None:
        rest = {}
        for key, inner in value.items():
            if key not in HISTORY_FIELD_NAMES:
                rest[key] = inner

        side = _read_object_side(
            rest,
            role,
            QUESTION_TEXT_NAMES if role == "user" else ANSWER_TEXT_NAMES,
            3,
        )
        return RunSide(turns + (side.turns if side else ()), True)

    return None


def make_system_turns(value: JsonObject) -> tuple[Turn, ...]:
    """Return the system prompt of a request, as a turn; empty if there is none."""
    if _SYSTEM_PROMPT_NAME_SET.isdisjoint(value):  # as in most rows
        return ()

    prompt = next((value[name] for name in SYSTEM_PROMPT_NAMES if value.get(name)), None)
    if isinstance(prompt, Mapping):
        prompt = prompt.get("parts", prompt.get("text", prompt.get("content")))
    if isinstance(prompt, str | list):
        return read_message_turns({"role": "system", "content": prompt})
    return ()


def _is_message_object(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    if (
        value.keys() & {"role", "from", "author"}
        or is_langchain_envelope(value)
        or ("data" in value and "type" in value)
    ):
        return True

    kind = str(value.get("type"))
    spoken = (
        "human",
        "ai",
        "system",
        "tool",
        "message",
        "function_call",
        "function_call_output",
        "AIMessageChunk",
    )
    return kind in spoken and bool(value.keys() & {"content", "name", "output", "call_id"})


def read_generated_turns(choices: object) -> RunSide | None:
    """Read an answer of OpenAI (`choices`), LangChain (`generations`) or Gemini (`candidates`)."""
    # the first choice of the first batch
    first: object = choices
    while isinstance(first, list) and first:
        first = first[0]

    if not isinstance(first, Mapping):
        return None
    # Gemini's candidates have an object with parts as their content
    if isinstance(content := first.get("content"), Mapping):
        return RunSide(read_message_turns({"role": "assistant", **content}), True)

    # older interfaces give a text in place of a message
    message = first.get("message") or {"role": "assistant", "content": first.get("text", "")}
    if isinstance(message, Mapping) and not message.keys() & {"role", "kwargs", "type"}:
        message = {"role": "assistant", **message}

    return RunSide(read_message_turns(message), True)


REPLY_FIELD_NAMES = (
    "response",
    "full_response",
    "completion",
    "choices",
    "candidates",
    "answer",
    "output",
    "reply",
    "model_output",
    "bot_response",
    "assistant_message",
)


def find_answer(fields: JsonObject) -> tuple[str, tuple[Turn, ...]] | None:
    """Return the field with a model's answer beside what was asked, and its turns; None if there is none."""
    for name in REPLY_FIELD_NAMES:
        if fields.get(name) not in (None, "", [], {}):
            if name in GENERATED_FIELD_NAMES:
                value = {name: fields[name]}
            else:
                value = fields[name]

            if side := read_run_output(value, "words"):
                return name, side.turns

    return None
