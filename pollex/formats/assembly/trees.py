"""Conversations from messages: in the order of time, or along one path of a tree."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from pollex.conversations.conversation import Turn
from pollex.formats.assembly.log_parts import Message
from pollex.text import JsonDict, JsonObject


class BuiltConversation(NamedTuple):
    """A joined conversation.

    Attributes:
        turns: Its turns.
        places: By the id of a message, span or trace, the index of the last turn that it brought;
            None for one whose turns were replaced by a later try.
        errors: Descriptions of failures.
        facts: Fields for the metadata.
        way: How it was joined, for people.
    """

    turns: tuple[Turn, ...]
    places: dict[str, int | None]
    errors: tuple[str, ...]
    facts: JsonDict
    way: str


def build_conversation_from_messages(
    messages: Sequence[Message],
    shown: str | None,
    thumbed: Sequence[str],
) -> BuiltConversation:
    """Build the conversation of some messages.

    Args:
        messages: In the files' order, each key once.
        shown: The key of the message that the tool shows last, where it says so.
        thumbed: Keys of messages with a thumb, the newest last.
    """
    tree = any(message.tree for message in messages)
    if tree:
        path = _choose_tree_path(messages, shown, thumbed)
    else:
        path = sort_messages(messages)

    user = next((message.author for message in path), None)
    turns: list[Turn] = []
    places: dict[str, int | None] = {message.key: None for message in messages if message.key}
    # whoever speaks first is the user, where only the authors tell who speaks
    for message in path:
        theirs = user is not None and message.author == user
        for turn in message.turns:
            turns.append(Turn(role="user", content=turn.content) if theirs else turn)
        # a message that brought no turn has the place of the last one before it
        if message.key:
            places[message.key] = len(turns) - 1 if turns else 0

    error_texts = []
    for message in path:
        if message.error:
            error_texts.append(message.error)

    errors = tuple(error_texts)
    facts = merge_fields_of_facts([message.facts for message in path])
    return BuiltConversation(
        tuple(turns),
        places,
        errors,
        facts,
        "path of a tree" if tree else "messages in order",
    )


class HasTime(Protocol):
    """Anything that was said at a time."""

    @property
    def at(self) -> float | None: ...


TimedT = TypeVar("TimedT", bound=HasTime)


def sort_messages(messages: Sequence[TimedT], newest_first: bool = False) -> list[TimedT]:
    """Sort messages by time; ties, and all where a time is missing, keep the file's order, from its oldest row on.

    Args:
        newest_first: Whether the file begins with its newest row, where these messages don't tell.
    """
    # the first and the last time tell the direction, unless they are equal
    times = []
    for message in messages:
        if message.at is not None:
            times.append(message.at)

    if times and times[0] != times[-1]:
        newest_first = times[0] > times[-1]

    ordered = list(reversed(messages) if newest_first else messages)
    # where a time is missing, the file's order is all that is known
    if len(times) < len(messages):
        return ordered
    return sorted(ordered, key=lambda message: message.at or 0)


def merge_fields_of_facts(facts: Sequence[JsonObject]) -> JsonDict:
    """Return each field's value if all agree, else the list of its different values; of objects, field by field."""
    values_by_name: dict[str, list[object]] = {}
    for fields in facts:
        for name, value in fields.items():
            if value in (None, "", [], {}):
                continue
            values = values_by_name.setdefault(name, [])
            if value not in values:
                values.append(value)

    return {name: _merge_values(values) for name, values in values_by_name.items()}


def _merge_values(values: list[Any]) -> object:
    if len(values) == 1:
        return values[0]
    if all(isinstance(value, Mapping) for value in values):
        return merge_fields_of_facts(values)
    return values


def _choose_tree_path(
    messages: Sequence[Message],
    shown: str | None,
    thumbed: Sequence[str],
) -> list[Message]:
    """Return the path from the first message to the leaf that counts.

    That is the leaf that the tool shows, unless all thumbs are on other tries. Otherwise it is the
    newest leaf below the last thumbed message, or the newest of all.
    """
    by_key: dict[str | None, Message] = {
        message.key: message for message in messages if message.key
    }
    # what the tool shows, unless all thumbs are on other tries
    current = _climb_to_root(by_key, shown)
    if current and (not thumbed or _list_message_keys(current) & set(thumbed)):
        return current

    # else the newest leaf below a thumb, or of least rank
    parents = {message.parent for message in messages}
    leaves = [
        message for message in sort_messages(messages) if message.key and message.key not in parents
    ]
    paths = [_climb_to_root(by_key, leaf.key) for leaf in leaves]
    # the newest thumb decides
    for key in reversed(thumbed):
        if with_it := [path for path in paths if key in _list_message_keys(path)]:
            return with_it[-1]

    # the least sum of ranks comes last, and of equal sums the newest leaf
    paths.sort(key=lambda path: -sum(message.rank for message in path))
    return current or (paths[-1] if paths else list(messages))


def _list_message_keys(path: Sequence[Message]) -> set[str | None]:
    return {message.key for message in path}


def _climb_to_root(by_key: Mapping[str | None, Message], key: str | None) -> list[Message]:
    path: list[Message] = []
    # a circle of parents ends where it closes
    visited: set[str | None] = set()
    while key in by_key and key not in visited:
        visited.add(key)
        path.append(by_key[key])
        key = by_key[key].parent

    return path[::-1]
