"""Inputs and outputs of a run, in any recorded form, as turns."""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from pollex.conversations.conversation import Role, Turn
from pollex.errors import BadInput
from pollex.formats.log_shapes.turns import is_part, is_serialised, turns_in, turns_of
from pollex.text import parse_json

HISTORY_NAMES = ("chat_history", "history")
MESSAGE_NAMES = ("messages", "contents", "input_messages", "inputMessages", "prompt_messages")
QUESTION_NAMES = (
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
ANSWER_NAMES = (
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
GENERATED_NAMES = ("generations", "choices", "candidates")
WRAPPERS = ("kwargs", "inputs", "outputs", "values", "value", "args", "request", "data")
KNOWN_NAMES = (*HISTORY_NAMES, *MESSAGE_NAMES, *GENERATED_NAMES, *WRAPPERS, "role", "lc")
SYSTEM_NAMES = (
    "system",
    "instructions",
    "system_instruction",
    "systemInstruction",
    "system_instructions",
)
_SYSTEM = frozenset(SYSTEM_NAMES)


_PYTHON = re.compile(r"\s*\[?\{'")
_INDEX = re.compile(r"\d+")


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


def parse(value: object, times: int = 2) -> Any:
    """Parse JSON text, up to twice nested, or Python's writing of it; return any other value as it is."""
    for _ in range(times):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            return value
        try:
            value = parse_json(value)
        except ValueError:
            return _literal(str(value))

    return value


RETRIEVERS = frozenset(("retriever", "retrieval"))
"""Kinds of spans that look for documents, in lower case."""

DOCUMENT_LISTS = ("documents", "output", "outputs", "results", "result", "nodes")
"""Fields in which the output of such a span may have them, if it is no list itself."""


def retrieved_by(kind: str, output: object) -> list[Any]:
    """Return the documents that a span looked for and found; nothing of spans of other kinds."""
    if kind.casefold() not in RETRIEVERS:
        return []

    documents = parse(output)
    if isinstance(documents, Mapping):
        inner = (parse(documents.get(name)) for name in DOCUMENT_LISTS)
        documents = next((value for value in inner if isinstance(value, list)), [])

    return documents if isinstance(documents, list) else []


def _literal(text: str) -> Any:
    """Parse what Python writes for objects and lists, as data frames do in the cells of a CSV file."""
    if _PYTHON.match(text) is None:
        return text

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def nest(flat: Mapping[str, Any]) -> Any:
    """Nest names with dots into objects; objects with only numbered names into lists."""
    tree: dict[str, Any] = {}
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
                [nest(element) if isinstance(element, Mapping) else element for element in value]
                if isinstance(value, list)
                else value
            )

    return _lists(tree)


def flatten(tree: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return objects inside one another as names with dots; lists stay as they are."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            inner = flatten(value, f"{before}{name}.")
        else:
            inner = {}

        flat |= inner or {f"{before}{name}": value}

    return flat


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree

    inner = {name: _lists(value) for name, value in tree.items()}
    if inner and all(_INDEX.fullmatch(name) for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner


Written = Literal["words", "json", "either"]
"""What a text is: what was said, of which only what can be nothing but messages is parsed; a tool's writing of a value,
as in the cells of a CSV file; or one of these, and only objects are parsed then."""


def input_of(value: object, written: Written = "either") -> RunSide | None:
    """Read the input of a run as turns; None if unreadable."""
    return _side(value, "user", QUESTION_NAMES, written)


def output_of(value: object, written: Written = "either") -> RunSide | None:
    """Read the output of a run as turns, likewise; an object that no reader knows is shown as JSON, and isn't sure."""
    side = _side(value, "assistant", ANSWER_NAMES, written)
    if (
        side is None
        and isinstance(value, Mapping)
        and any(inner not in (None, "", [], {}) for inner in value.values())
    ):
        return _unsure(
            "assistant",
            json.dumps(value, ensure_ascii=False, default=str),
        )

    return side


def sides(
    sent: object,
    received: object,
    *,
    silent: bool = False,
    written: Written = "either",
) -> dict[str, Any]:
    """Return what a `ModelCall` has of its input and output; nothing of a silent one."""
    if silent:
        return of_sides(None, None)

    # how one side is written shows how to read texts of the other
    texts = []
    for value in (sent, received):
        if isinstance(value, str):
            texts.append(value)

    if written == "either" and any(isinstance(value, Mapping | list) for value in (sent, received)):
        written = "words"  # no object stands in a text there
    elif written == "either" and texts and all(parse(value, 1) != value for value in texts):
        written = "json"

    return of_sides(input_of(sent, written), output_of(received, written))


def of_sides(before: RunSide | None, after: RunSide | None) -> dict[str, Any]:
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


def _side(
    value: object,
    role: Role,
    names: Sequence[str],
    written: Written,
) -> RunSide | None:
    try:
        return _read(value, role, names, 0, written)
    except BadInput:
        return None


def _read(
    value: object,
    role: Role,
    names: Sequence[str],
    depth: int,
    written: Written,
) -> RunSide | None:
    if isinstance(value, str):
        return _of_text(value, role, names, depth, written)
    if isinstance(value, list):
        return _listed(value, role)
    if isinstance(value, Mapping) and depth < DEEPEST:
        return _object(value, role, names, depth)
    return None


DEEPEST = 4
"""Objects inside one another that are looked into."""


def _of_text(
    value: str,
    role: Role,
    names: Sequence[str],
    depth: int,
    written: Written,
) -> RunSide | None:
    """Read a text: messages in JSON, a tool's writing of an object, or what was said."""
    parsed = parse(value)
    # a tool's own JSON is opened once, and what is in it are words
    if written == "json" and isinstance(once := parse(value, 1), str):
        return _of_text(once, role, names, depth, "words")

    # messages are told in any text; other objects only where a tool writes them
    if isinstance(parsed, Mapping | list):
        with suppress(BadInput):
            if side := _as_messages(parsed, role):
                return side

    if isinstance(parsed, list) and written != "words":
        with suppress(BadInput):
            if side := _listed(parsed, role):
                return side

    if isinstance(parsed, Mapping) and written != "words" and depth < DEEPEST:
        with suppress(BadInput):
            if parsed.keys() & {*names, *KNOWN_NAMES} and (
                side := _object(parsed, role, names, depth)
            ):
                return side

        # an object that nobody knows may be what was said
        return _unsure(role, value)
    if value.strip():
        return RunSide(_turns_with_content(role, value), False)
    return None


def _unsure(role: Role, words: str) -> RunSide:
    return RunSide((Turn(role=role, content=words),), False, sure=False)


def _as_messages(value: Mapping[str, Any] | list[Any], role: Role) -> RunSide | None:
    """Read what can be nothing but messages or parts of one; None for any other object or list."""
    if isinstance(value, list):
        values = value
        while len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        objects = [value for value in values if isinstance(value, Mapping)]
        whole = bool(values) and len(objects) == len(values)
        # all are messages, or all are parts of one
        if whole and (all(map(_is_message, objects)) or all(map(is_part, objects))):
            return _listed(values, role)
        return None
    if isinstance(next((value[name] for name in MESSAGE_NAMES if value.get(name)), None), list):
        return _messages(value, role)
    # a role alone is no message: words or calls belong to it
    if _is_message(value) and value.keys() & {"content", "parts", "tool_calls", "kwargs", "data"}:
        return RunSide(turns_in(value), True)

    generated = next(
        (value[name] for name in GENERATED_NAMES if isinstance(value.get(name), list)),
        None,
    )
    if generated:
        return turns_generated(generated)
    return None


def _turns_with_content(role: Role, content: object) -> tuple[Turn, ...]:
    return turns_in({"role": role, "content": content})


def _listed(values: list[Any], role: Role) -> RunSide | None:
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
        return _of_text(texts[0], role, (), 0, "words")

    # messages, choices of an interface, or the parts of one message
    values = [_message_in(value) for value in values]
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
        return turns_generated(objects)
    # parts without any role are one message
    if not any(map(_is_message, objects)):
        if all("type" in value for value in objects):
            return RunSide(_turns_with_content(role, values), False)
        return None
    return RunSide(turns_of(values), True)


def _message_in(value: object) -> object:
    """Return the message in JSON text; any other value as it is."""
    parsed = parse(value)
    if isinstance(parsed, Mapping) and _is_message(parsed):
        return parsed
    return value


def _object(
    value: Mapping[str, Any],
    role: Role,
    names: Sequence[str],
    depth: int,
) -> RunSide | None:
    # messages, a message, a model's choices, a usual name, an envelope, or the only text
    if side := _messages(value, role):
        return side
    if _is_message(value):
        return RunSide(turns_in(value), True)

    for name in GENERATED_NAMES:
        if isinstance(value.get(name), list) and (side := turns_generated(value[name])):
            return side

    # the first usual name with a value decides, readable or not
    for name in names:
        if value.get(name) not in (None, "", [], {}):
            return _read(value[name], role, names, depth + 1, "words")

    for name in WRAPPERS:
        written: Written = "words" if name == "value" else "either"
        if value.get(name) and (side := _wrapped(value[name], role, names, depth + 1, written)):
            return side

    texts = []
    for inner in value.values():
        if isinstance(inner, str) and inner.strip():
            texts.append(inner)

    if len(texts) == 1 and len(value) == 1:
        return _of_text(texts[0], role, (), 0, "words")
    return None


def _wrapped(
    value: object,
    role: Role,
    names: Sequence[str],
    depth: int,
    written: Written,
) -> RunSide | None:
    """Read what stands in an envelope; of a function's arguments, the one that is a sentence or stands alone."""
    side = _read(value, role, names, depth, written)
    if side is not None or not isinstance(value, list):
        if side is None or side.sure:
            return side
        return None

    sentences = []
    for argument in value:
        if isinstance(argument, str) and " " in argument.strip():
            sentences.append(argument)

    if len(sentences) == 1:
        return _of_text(sentences[0], role, (), 0, "words")
    return None


def _messages(value: Mapping[str, Any], role: Role) -> RunSide | None:
    name = next((name for name in MESSAGE_NAMES if value.get(name)), None)
    history = next(
        (value[name] for name in HISTORY_NAMES if isinstance(value.get(name), list)),
        None,
    )
    if name is None and history is None:
        return None

    # the system prompt, earlier turns, then the messages or the question
    turns = system_of(value)
    if history:
        turns += turns_of(history)

    messages = None
    if name is not None:
        messages = parse(value[name])
    # a text in place of the messages is one turn
    if name is not None and isinstance(messages, str):
        return RunSide(turns + _turns_with_content(role, messages), bool(turns))
    if name is not None and (
        side := _listed(messages if isinstance(messages, list) else [messages], role)
    ):
        return RunSide(turns + side.turns, True)
    # a history without messages: the question stands beside it, and no deeper
    if history is not None and name is None:
        rest = {}
        for key, inner in value.items():
            if key not in HISTORY_NAMES:
                rest[key] = inner

        side = _object(
            rest,
            role,
            QUESTION_NAMES if role == "user" else ANSWER_NAMES,
            3,
        )
        return RunSide(turns + (side.turns if side else ()), True)

    return None


def system_of(value: Mapping[str, Any]) -> tuple[Turn, ...]:
    """Return the system prompt of a request, as a turn; empty if there is none."""
    if _SYSTEM.isdisjoint(value):  # as in most rows
        return ()

    prompt = next((value[name] for name in SYSTEM_NAMES if value.get(name)), None)
    if isinstance(prompt, Mapping):
        prompt = prompt.get("parts", prompt.get("text", prompt.get("content")))
    if isinstance(prompt, str | list):
        return turns_in({"role": "system", "content": prompt})
    return ()


def _is_message(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    if (
        value.keys() & {"role", "from", "author"}
        or is_serialised(value)
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


def turns_generated(choices: object) -> RunSide | None:
    """Read an answer of OpenAI (`choices`), LangChain (`generations`) or Gemini (`candidates`)."""
    # the first choice of the first batch
    first: Any = choices
    while isinstance(first, list) and first:
        first = first[0]

    if not isinstance(first, Mapping):
        return None
    # Gemini's candidates have an object with parts as their content
    if isinstance(content := first.get("content"), Mapping):
        return RunSide(turns_in({"role": "assistant", **content}), True)

    # older interfaces give a text in place of a message
    message = first.get("message") or {"role": "assistant", "content": first.get("text", "")}
    if isinstance(message, Mapping) and not message.keys() & {"role", "kwargs", "type"}:
        message = {"role": "assistant", **message}

    return RunSide(turns_in(message), True)


REPLIES = (
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


def answer_in(fields: Mapping[str, Any]) -> tuple[str, tuple[Turn, ...]] | None:
    """Return the field with a model's answer beside what was asked, and its turns; None if there is none."""
    for name in REPLIES:
        if fields.get(name) not in (None, "", [], {}):
            if name in GENERATED_NAMES:
                value = {name: fields[name]}
            else:
                value = fields[name]

            if side := output_of(value, "words"):
                return name, side.turns

    return None
