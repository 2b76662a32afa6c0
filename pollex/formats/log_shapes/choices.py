"""Answers of which somebody chose one: the others were never said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from pollex.formats.log_shapes.turns import ROLE_FIELD_NAMES
from pollex.formats.names import is_named_as_part, split_name_words
from pollex.text import JsonDict, JsonObject

TurnT = TypeVar("TurnT")

CHOSEN_FIELD_NAMES = frozenset(
    ("if_chosen", "is_chosen", "isChosen", "chosen", "is_selected", "isSelected", "selected")
)
"""Fields that say whether somebody chose an answer of several."""
_CHOSEN_MARK_WORDS = (
    "chosen",
    "selected",
    "picked",
    "accepted",
    "active",
    "preferred",
    "shown",
    "sent",
)
CANDIDATE_CHOSEN_FIELD_NAMES = CHOSEN_FIELD_NAMES.union(
    *((mark, f"is_{mark}", f"is{mark.capitalize()}") for mark in _CHOSEN_MARK_WORDS)
)
"""Fields that say so in a list beside a question, where nothing but candidates stands."""
POINTER_NAME_WORDS = frozenset("chosen selected picked accepted active current preferred".split())  # noqa: SIM905
"""Words in names of fields that name the chosen answer by its id or its place."""
INDEX_NAME_WORDS = frozenset("index idx position".split())  # noqa: SIM905
CANDIDATE_ID_NAMES = ("id", "candidate_id", "candidateId", "uuid", "key", "name")
YES_VALUES = (True, "true", "True", "TRUE", "yes", 1, "1")
NO_VALUES = (False, "false", "False", "FALSE", "no", 0, "0")
MAX_SEARCH_DEPTH = 4
"""Objects inside one another in which candidates are looked for."""


def is_unchosen(message: object) -> bool:
    """Return whether a message says that nobody chose it."""
    if not isinstance(message, dict) or CHOSEN_FIELD_NAMES.isdisjoint(message):
        return False
    return any(message.get(name) in (False, "false", "False") for name in CHOSEN_FIELD_NAMES)


def drop_unchosen(messages: object) -> Any:
    """Return a list without the answers that nobody chose, where others are marked as chosen."""
    if not isinstance(messages, list) or not any(map(is_unchosen, messages)):
        return messages

    marked = []
    for message in messages:
        if isinstance(message, Mapping) and any(
            message.get(name) is True for name in CHOSEN_FIELD_NAMES
        ):
            marked.append(message)

    if marked:
        return [message for message in messages if not is_unchosen(message)]
    return messages


def drop_unchosen_turns(
    turns: Sequence[TurnT],
    fields_of: Callable[[TurnT], JsonObject],
    role_of: Callable[[TurnT], str],
) -> list[TurnT]:
    """Return the turns of a table without answers that follow each other of which others are marked as chosen."""
    spoken: list[TurnT] = []
    for answers in _iterate_same_role_runs(turns, role_of):
        marks = [_read_chosen_mark(fields_of(turn)) for turn in answers]
        several = len(answers) > 1 and role_of(answers[0]) == "assistant"
        if several and True in marks and False in marks:
            answers = [turn for turn, mark in zip(answers, marks, strict=True) if mark is not False]
        spoken += answers

    return spoken


def _iterate_same_role_runs(
    turns: Sequence[TurnT], role_of: Callable[[TurnT], str]
) -> Iterator[list[TurnT]]:
    """Yield the turns that follow each other with the same role."""
    run: list[TurnT] = []
    for turn in turns:
        if run and role_of(run[-1]) != role_of(turn):
            yield run
            run = []
        run.append(turn)

    if run:
        yield run


def _read_chosen_mark(fields: JsonObject) -> bool | None:
    """Return whether an answer of a table was chosen; None where nothing says it."""
    value = next((fields[name] for name in CHOSEN_FIELD_NAMES if name in fields), None)
    if value in YES_VALUES:
        return True
    if value in NO_VALUES:
        return False
    return None


def keep_chosen_answers(fields: JsonDict) -> JsonDict:
    """Return a row with the chosen answer in place of each list of candidates; the same row where it has none."""
    if _CONTAINER_TYPES.isdisjoint(map(type, fields.values())):  # as in most tables
        return fields
    return _replace_candidates(fields, 0)


_CONTAINER_TYPES = frozenset((dict, list))


def _replace_candidates(holder: JsonDict, depth: int) -> JsonDict:
    # a row is copied only where something in it changes
    settled = holder
    for name, value in holder.items():
        kind = type(value)
        if kind is dict and depth < MAX_SEARCH_DEPTH:
            inner: object = _replace_candidates(value, depth + 1)
        elif kind is list and value and type(value[0]) is dict:
            inner = _replace_candidate_list(holder, name, value, depth)
        else:
            continue

        if inner is value:
            continue
        if settled is holder:
            settled = dict(holder)
        settled[name] = inner
        # the fields of the chosen one take the place of the list
        if isinstance(value, list) and not isinstance(inner, list):
            settled = _merge_chosen_fields(settled, name, inner)

    return settled


def _replace_candidate_list(
    holder: JsonObject,
    name: str,
    items: list[Any],
    depth: int,
) -> object:
    """Return the chosen one of some candidates, None where all were left; a list of anything else, settled inside."""
    if any(type(item) is not dict for item in items):
        return items

    marks = _list_chosen_marks(holder, name, items)
    if marks.count(True) == 1:
        return items[marks.index(True)]
    if marks and len(items) > 1 and not any(marks):
        return None
    if depth >= MAX_SEARCH_DEPTH:
        return items

    # most messages hold nothing that may be candidates
    inner = items
    for place, item in enumerate(items):
        if _CONTAINER_TYPES.isdisjoint(map(type, item.values())):
            continue
        if (settled := _replace_candidates(item, depth + 1)) is not item:
            inner = list(inner) if inner is items else inner
            inner[place] = settled

    return inner


def _list_chosen_marks(
    holder: JsonObject,
    name: str,
    items: Sequence[JsonObject],
) -> list[bool]:
    """Return of each candidate whether it was chosen; none for lists of something else."""
    flags = CANDIDATE_CHOSEN_FIELD_NAMES.intersection(items[0])
    pointers = []
    for field in holder:
        if field != name and _is_pointer_name(field):
            pointers.append(field)

    if not (flags or pointers) or not all(map(_has_spoken_words, items)):
        return []

    # a yes or no in each of the candidates
    for flag in flags:
        values = [item.get(flag) for item in items]
        marked = all(value in YES_VALUES or value in NO_VALUES for value in values)
        if marked and not _are_turns_of_several(items):
            marks = [value in YES_VALUES for value in values]
            if True in marks or flag in CHOSEN_FIELD_NAMES:
                return marks

    if len(items) < 2 or _are_turns_of_several(items):
        return []

    # a field beside the list that names the chosen one by its place or its id
    for pointer in pointers:
        value = holder[pointer]
        if isinstance(value, bool | list | dict):
            continue
        if (
            not INDEX_NAME_WORDS.isdisjoint(split_name_words(pointer))
            and isinstance(value, int)
            and 0 <= value < len(items)
        ):
            return [place == value for place in range(len(items))]

        for id_name in CANDIDATE_ID_NAMES:
            marks = []
            for item in items:
                marks.append(value is not None and item.get(id_name) == value)

            if marks.count(True) == 1:
                return marks

    return []


@lru_cache(maxsize=1024)
def _is_pointer_name(name: str) -> bool:
    """Return whether a field's name may name which of several was chosen."""
    return not POINTER_NAME_WORDS.isdisjoint(split_name_words(name))


@lru_cache(maxsize=1024)
def _is_words_name(name: str) -> bool:
    return is_named_as_part(name, "text") or is_named_as_part(name, "assistant")


def _has_spoken_words(item: JsonObject) -> bool:
    """Return whether an item has what somebody may say."""
    return any(
        isinstance(value, str | list | dict) and _is_words_name(name)
        for name, value in item.items()
    )


def _are_turns_of_several(items: Sequence[JsonObject]) -> bool:
    """Return whether items are turns of several speakers, and no answers to one question."""
    speakers = set()
    for item in items:
        for name in ROLE_FIELD_NAMES:
            if name in item:
                speakers.add(str(item[name]))

    return len(speakers) > 1


def _merge_chosen_fields(holder: JsonDict, name: str, chosen: Any) -> JsonDict:
    """Return what holds candidates with the fields of the chosen one.

    Fields of the same name that differ stay apart: the chosen one stands under the list's name then.
    """
    rest = {}
    for field, value in holder.items():
        if field != name:
            rest[field] = value

    if chosen is None:
        return rest

    # longer texts of one name that differ are two different things
    differing = []
    for field, value in chosen.items():
        if (
            isinstance(value, str)
            and " " in value.strip()
            and rest.get(field) not in (None, "", value)
        ):
            differing.append(field)

    if differing:
        return {**rest, name: chosen}

    filled = {}
    for field, value in rest.items():
        if value not in (None, ""):
            filled[field] = value

    return {**rest, **chosen, **filled}
