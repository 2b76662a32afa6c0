"""Answers of which somebody chose one: the others were never said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from pollex.formats.log_shapes.turns import ROLE_NAMES
from pollex.formats.names import is_called, words_of

T = TypeVar("T")

CHOSEN = frozenset(
    ("if_chosen", "is_chosen", "isChosen", "chosen", "is_selected", "isSelected", "selected")
)
"""Fields that say whether somebody chose an answer of several."""
_MARKS = ("chosen", "selected", "picked", "accepted", "active", "preferred", "shown", "sent")
CHOSEN_OF_CANDIDATES = CHOSEN.union(
    *((mark, f"is_{mark}", f"is{mark.capitalize()}") for mark in _MARKS)
)
"""Fields that say so in a list beside a question, where nothing but candidates stands."""
POINTERS = frozenset("chosen selected picked accepted active current preferred".split())  # noqa: SIM905
"""Words in names of fields that name the chosen answer by its id or its place."""
PLACES = frozenset("index idx position".split())  # noqa: SIM905
IDS = ("id", "candidate_id", "candidateId", "uuid", "key", "name")
YES = (True, "true", "True", "TRUE", "yes", 1, "1")
NO = (False, "false", "False", "FALSE", "no", 0, "0")
DEEPEST = 4
"""Objects inside one another in which candidates are looked for."""


def is_left(message: object) -> bool:
    """Return whether a message says that nobody chose it."""
    if not isinstance(message, dict) or CHOSEN.isdisjoint(message):
        return False
    return any(message.get(name) in (False, "false", "False") for name in CHOSEN)


def drop_left(messages: Any) -> Any:
    """Return a list without the answers that nobody chose, where others are marked as chosen."""
    if not isinstance(messages, list) or not any(map(is_left, messages)):
        return messages

    marked = []
    for message in messages:
        if isinstance(message, Mapping) and any(message.get(name) is True for name in CHOSEN):
            marked.append(message)

    if marked:
        return [message for message in messages if not is_left(message)]
    return messages


def without_left_turns(
    turns: Sequence[T],
    fields_of: Callable[[T], Mapping[str, Any]],
    role_of: Callable[[T], str],
) -> list[T]:
    """Return the turns of a table without answers that follow each other of which others are marked as chosen."""
    spoken: list[T] = []
    for answers in _iterate_runs(turns, role_of):
        marks = [_find_mark(fields_of(turn)) for turn in answers]
        several = len(answers) > 1 and role_of(answers[0]) == "assistant"
        if several and True in marks and False in marks:
            answers = [turn for turn, mark in zip(answers, marks, strict=True) if mark is not False]
        spoken += answers

    return spoken


def _iterate_runs(turns: Sequence[T], role_of: Callable[[T], str]) -> Iterator[list[T]]:
    """Yield the turns that follow each other with the same role."""
    run: list[T] = []
    for turn in turns:
        if run and role_of(run[-1]) != role_of(turn):
            yield run
            run = []
        run.append(turn)

    if run:
        yield run


def _find_mark(fields: Mapping[str, Any]) -> bool | None:
    """Return whether an answer of a table was chosen; None where nothing says it."""
    value = next((fields[name] for name in CHOSEN if name in fields), None)
    if value in YES:
        return True
    if value in NO:
        return False
    return None


def keep_chosen_alone(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the chosen answer in place of each list of candidates; the same row where it has none."""
    if _CONTAINERS.isdisjoint(map(type, fields.values())):  # as in most tables
        return fields
    return _settle_candidates(fields, 0)


_CONTAINERS = frozenset((dict, list))


def _settle_candidates(holder: dict[str, Any], depth: int) -> dict[str, Any]:
    # a row is copied only where something in it changes
    settled = holder
    for name, value in holder.items():
        kind = type(value)
        if kind is dict and depth < DEEPEST:
            inner: Any = _settle_candidates(value, depth + 1)
        elif kind is list and value and type(value[0]) is dict:
            inner = _settle_list(holder, name, value, depth)
        else:
            continue

        if inner is value:
            continue
        if settled is holder:
            settled = dict(holder)
        settled[name] = inner
        # the fields of the chosen one take the place of the list
        if isinstance(value, list) and not isinstance(inner, list):
            settled = _merge_chosen(settled, name, inner)

    return settled


def _settle_list(
    holder: Mapping[str, Any],
    name: str,
    items: list[Any],
    depth: int,
) -> Any:
    """Return the chosen one of some candidates, None where all were left; a list of anything else, settled inside."""
    if any(type(item) is not dict for item in items):
        return items

    marks = _list_marks(holder, name, items)
    if marks.count(True) == 1:
        return items[marks.index(True)]
    if marks and len(items) > 1 and not any(marks):
        return None
    if depth >= DEEPEST:
        return items

    # most messages hold nothing that may be candidates
    inner = items
    for place, item in enumerate(items):
        if _CONTAINERS.isdisjoint(map(type, item.values())):
            continue
        if (settled := _settle_candidates(item, depth + 1)) is not item:
            inner = list(inner) if inner is items else inner
            inner[place] = settled

    return inner


def _list_marks(
    holder: Mapping[str, Any],
    name: str,
    items: Sequence[Mapping[str, Any]],
) -> list[bool]:
    """Return of each candidate whether it was chosen; none for lists of something else."""
    flags = CHOSEN_OF_CANDIDATES.intersection(items[0])
    pointers = []
    for field in holder:
        if field != name and _names_pointer(field):
            pointers.append(field)

    if not (flags or pointers) or not all(map(_has_words, items)):
        return []

    # a yes or no in each of the candidates
    for flag in flags:
        values = [item.get(flag) for item in items]
        marked = all(value in YES or value in NO for value in values)
        if marked and not _are_turns(items):
            marks = [value in YES for value in values]
            if True in marks or flag in CHOSEN:
                return marks

    if len(items) < 2 or _are_turns(items):
        return []

    # a field beside the list that names the chosen one by its place or its id
    for pointer in pointers:
        value = holder[pointer]
        if isinstance(value, bool | list | dict):
            continue
        if (
            not PLACES.isdisjoint(words_of(pointer))
            and isinstance(value, int)
            and 0 <= value < len(items)
        ):
            return [place == value for place in range(len(items))]

        for id_name in IDS:
            marks = []
            for item in items:
                marks.append(value is not None and item.get(id_name) == value)

            if marks.count(True) == 1:
                return marks

    return []


@lru_cache(maxsize=1024)
def _names_pointer(name: str) -> bool:
    """Return whether a field's name may name which of several was chosen."""
    return not POINTERS.isdisjoint(words_of(name))


@lru_cache(maxsize=1024)
def _names_words(name: str) -> bool:
    return is_called(name, "text") or is_called(name, "assistant")


def _has_words(item: Mapping[str, Any]) -> bool:
    """Return whether an item has what somebody may say."""
    return any(
        isinstance(value, str | list | dict) and _names_words(name) for name, value in item.items()
    )


def _are_turns(items: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether items are turns of several speakers, and no answers to one question."""
    speakers = set()
    for item in items:
        for name in ROLE_NAMES:
            if name in item:
                speakers.add(str(item[name]))

    return len(speakers) > 1


def _merge_chosen(holder: dict[str, Any], name: str, chosen: Any) -> dict[str, Any]:
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
