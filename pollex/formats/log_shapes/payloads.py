"""Inputs and outputs of a run, in any recorded form, as turns."""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pollex.conversations.conversation import Role, Turn
from pollex.errors import BadInput
from pollex.formats.log_shapes.turns import turns_in, turns_of
from pollex.text import parse_json

HISTORY_NAMES = ("chat_history", "history")
MESSAGE_NAMES = ("messages", "contents", "input_messages", "inputMessages", "prompt_messages")
QUESTION_NAMES = ("input", "question", "query", "prompt", "user_input", "user_message", "message", "text", "content")
ANSWER_NAMES = (
    *("output", "answer", "response", "result", "completion", "reply", "text", "content", "output_text"),
    *("message", "final_output"),
)
GENERATED_NAMES = ("generations", "choices", "candidates")
WRAPPERS = ("kwargs", "inputs", "outputs", "values", "value", "args", "request", "data")
SYSTEM_NAMES = ("system", "instructions", "system_instruction", "systemInstruction", "system_instructions")


_PYTHON = re.compile(r"\s*\[?\{'")
_INDEX = re.compile(r"\d+")


class RunSide(NamedTuple):
    """The input or the output of a run.

    Attributes:
        history: Whether it was a list of messages and not one text.
    """

    turns: tuple[Turn, ...]
    history: bool


def parse(value: object) -> Any:
    """Parse JSON text, up to twice nested, or Python's writing of it; return any other value as it is."""
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            return value
        try:
            value = parse_json(value)
        except ValueError:
            return _literal(str(value))
    return value


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
            if not isinstance(inner, dict):
                break
            node = inner
        else:
            node[last] = (
                [nest(one) if isinstance(one, Mapping) else one for one in value] if isinstance(value, list) else value
            )
    return _lists(tree)


def flatten(tree: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return objects inside one another as names with dots; lists stay as they are."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        inner = flatten(value, f"{before}{name}.") if isinstance(value, Mapping) else {}
        found |= inner or {f"{before}{name}": value}
    return found


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    inner = {name: _lists(value) for name, value in tree.items()}
    if inner and all(_INDEX.fullmatch(name) for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner


def input_of(value: object) -> RunSide | None:
    """Read the input of a run as turns; None if unreadable."""
    return _side(value, "user", QUESTION_NAMES)


def output_of(value: object) -> RunSide | None:
    """Read the output of a run as turns; None if unreadable."""
    return _side(value, "assistant", ANSWER_NAMES)


def sides(given: object, came: object, *, silent: bool = False) -> dict[str, Any]:
    """Return what a `Call` has of its input and output: `before`, `after` and `history`; nothing of a silent one."""
    before, after = (None, None) if silent else (input_of(given), output_of(came))
    return of_sides(before, after)


def of_sides(before: RunSide | None, after: RunSide | None) -> dict[str, Any]:
    """Return the sides of a `Call` as its `before`, `after` and `history`."""
    turns = {name: side.turns for name, side in (("before", before), ("after", after)) if side}
    return {**turns, "history": bool(before and before.history)}


def _side(value: object, role: Role, names: Sequence[str]) -> RunSide | None:
    try:
        return _read(parse(value), role, names)
    except BadInput:
        return None


def _read(value: object, role: Role, names: Sequence[str], depth: int = 0) -> RunSide | None:
    if isinstance(value, str):
        return RunSide(_said(role, value), False) if value.strip() else None
    if isinstance(value, list):
        return _listed(value, role)
    if isinstance(value, Mapping) and depth < 4:
        return _object(value, role, names, depth)
    return None


def _said(role: Role, content: object) -> tuple[Turn, ...]:
    return turns_in({"role": role, "content": content})


def _listed(values: list[Any], role: Role) -> RunSide | None:
    """Read a list of messages, of lists, of content parts, or with one text."""
    values = [parse(value) for value in values]
    while len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    if not values:
        return None
    if all(isinstance(value, str) for value in values):
        return RunSide(_said(role, values[0]), False) if len(values) == 1 else None
    values = [{"role": role, **one} if isinstance(one, Mapping) and "parts" in one else one for one in values]
    objects = [value for value in values if isinstance(value, Mapping)]
    if len(objects) == len(values) and all(
        isinstance(one.get("message"), Mapping) and "role" not in one for one in objects
    ):
        return turns_generated(objects)
    if len(objects) == len(values) and not any(_is_message(value) for value in objects):
        return RunSide(_said(role, values), False) if all("type" in value for value in objects) else None
    return RunSide(turns_of(values), True)


def _object(value: Mapping[str, Any], role: Role, names: Sequence[str], depth: int) -> RunSide | None:
    if side := _messages(value, role):
        return side
    if _is_message(value):
        return RunSide(turns_in(value), True)
    for name in GENERATED_NAMES:
        if isinstance(value.get(name), list) and (side := turns_generated(value[name])):
            return side
    for name in names:
        if value.get(name) not in (None, "", [], {}):
            return _read(parse(value[name]), role, names, depth + 1)
    for name in WRAPPERS:
        if value.get(name) and (side := _read(parse(value[name]), role, names, depth + 1)):
            return side
    texts = [inner for inner in value.values() if isinstance(inner, str) and inner.strip()]
    return RunSide(_said(role, texts[0]), False) if len(texts) == 1 and len(value) == 1 else None


def _messages(value: Mapping[str, Any], role: Role) -> RunSide | None:
    name = next((name for name in MESSAGE_NAMES if value.get(name)), None)
    history = next((value[name] for name in HISTORY_NAMES if isinstance(value.get(name), list)), None)
    if name is None and history is None:
        return None
    turns = system_of(value)
    if history:
        turns += turns_of(history)
    found = parse(value[name]) if name is not None else None
    if name is not None and (side := _listed(found if isinstance(found, list) else [found], role)):
        return RunSide(turns + side.turns, True)
    if history is not None and name is None:
        rest = {key: inner for key, inner in value.items() if key not in HISTORY_NAMES}
        side = _object(rest, role, QUESTION_NAMES if role == "user" else ANSWER_NAMES, 3)
        return RunSide(turns + (side.turns if side else ()), True)
    return None


def system_of(value: Mapping[str, Any]) -> tuple[Turn, ...]:
    """Return the system prompt of a request, as a turn; empty if there is none."""
    found = next((value[name] for name in SYSTEM_NAMES if value.get(name)), None)
    if isinstance(found, Mapping):
        found = found.get("parts", found.get("text", found.get("content")))
    return turns_in({"role": "system", "content": found}) if isinstance(found, str | list) else ()


def _is_message(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    if value.keys() & {"role", "kwargs", "from", "author"} or ("data" in value and "type" in value):
        return True
    kind = str(value.get("type"))
    spoken = ("human", "ai", "system", "tool", "message", "function_call", "function_call_output", "AIMessageChunk")
    return kind in spoken and bool(value.keys() & {"content", "name", "output", "call_id"})


def turns_generated(choices: object) -> RunSide | None:
    """Read an answer of OpenAI (`choices`), LangChain (`generations`) or Gemini (`candidates`)."""
    first: Any = choices
    while isinstance(first, list) and first:
        first = first[0]
    if not isinstance(first, Mapping):
        return None
    if isinstance(content := first.get("content"), Mapping):
        return RunSide(turns_in({"role": "assistant", **content}), True)
    message = first.get("message") or {"role": "assistant", "content": first.get("text", "")}
    if isinstance(message, Mapping) and not message.keys() & {"role", "kwargs", "type"}:
        message = {"role": "assistant", **message}
    return RunSide(turns_in(message), True)


REPLIES = (
    *("response", "full_response", "completion", "choices", "candidates", "answer", "output", "reply", "model_output"),
    *("bot_response", "assistant_message"),
)


def answer_in(fields: Mapping[str, Any]) -> tuple[str, tuple[Turn, ...]] | None:
    """Return the field with a model's answer beside what was asked, and its turns; None if there is none."""
    for name in REPLIES:
        if fields.get(name) not in (None, "", [], {}):
            value = {name: fields[name]} if name in GENERATED_NAMES else fields[name]
            if side := output_of(value):
                return name, side.turns
    return None
