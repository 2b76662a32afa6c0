"""The form in which a person corrects how a log is read: what it sends, as options of reading.

Each list has a mark behind what is shown now: where nothing else was chosen, what was said before stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pollex.errors import WrongUse
from pollex.formats.mapping import CONVERSATION_PART_NAMES, OPTION_BY_PART
from pollex.services.log_view import (
    group_speakers_by_role,
    group_values_by_label,
    map_columns_to_parts,
    map_parts_to_columns,
)
from pollex.usecases.inspect import InspectLogs
from pollex.usecases.use_case import VerbOption, iterate_options
from pollex.web.controls import LABELS_BY_OPTION

COLUMN_PREFIX = "col-"
SPEAKER_PREFIX = "who-"
VALUE_PREFIX = "val-"
READING_PREFIX = "opt-"
UNCHANGED_MARK = "!"
"""Behind a choice that is the one shown."""
MAPPING_OPTIONS = ("columns", "roles")
RULE_OPTIONS = ("positive", "negative", "unrated")
OPTIONS_NOT_SHOWN = ("domain", "progress", "store", "resume", "sources")
MAX_MAPPING_CHARACTERS = 8000

KNOWN_PART_WORDS = {
    "": "nothing of these",
    "conversation": "which conversation",
    "role": "who speaks",
    "text": "what was said",
    "user": "what the user said",
    "assistant": "what the assistant said",
    "messages": "a list of turns",
    "label": "the thumb or rating",
    "comment": "a comment with the thumb",
    "time": "when",
    "turn": "number of the turn",
    "group": "the user or group",
    "judge": "who gave the thumb",
    "prompt": "version of the prompt",
    "sources": "documents shown",
    "fill": "empty cells hold what stands above",
    "parent": "the row that this one answers",
    "id": "the row's own id",
}
ROLE_WORDS = {
    "user": "the user",
    "assistant": "the assistant",
    "system": "the system",
    "tool": "a tool",
    "none": "no turn",
}
WORDS_BY_COUNT = {"up": "up", "down": "down", "none": "not rated"}
PART_WORDS = {part: KNOWN_PART_WORDS.get(part, part) for part in ("", *CONVERSATION_PART_NAMES)}
"""Parts that a column may be, in words; one that has none yet by its name."""


@dataclass(frozen=True)
class OptionField:
    """A field for an option of reading.

    Attributes:
        choices: Words to choose from; none for what is typed.
        is_number: Whether a number is typed.
    """

    name: str
    label: str
    help: str
    choices: tuple[str, ...] = ()
    is_number: bool = False


def list_option_fields() -> list[OptionField]:
    """Return fields for all options of reading, from the use case that looks at logs."""
    from pollex.usecases.families import (
        ColumnReaderOptions,  # its fields are a model's, and no reading
    )

    of_model = {option.name for option in iterate_options(ColumnReaderOptions)}
    # no fields for the model, for what has lists of its own, and for what no page gives
    parts_wanted = []
    for option in iterate_options(InspectLogs):
        if option.name not in {*of_model, *MAPPING_OPTIONS, *OPTIONS_NOT_SHOWN}:
            parts_wanted.append(option)

    return [_make_field(option) for option in parts_wanted]


def _make_field(option: VerbOption) -> OptionField:
    label = LABELS_BY_OPTION.get(option.name, option.name.replace("_", " ").capitalize())
    if isinstance(option.kind, tuple):
        return OptionField(option.name, label, option.help, option.kind)
    # a choice and no box, as nothing may be said, too
    if option.kind is bool:
        return OptionField(option.name, label, option.help, ("yes", "no"))

    return OptionField(
        option.name,
        label,
        option.help,
        is_number=option.kind is int,
    )


def read_options(form_fields: Mapping[str, object]) -> dict[str, object]:
    """Return options of reading from what a form sent.

    Raises:
        WrongUse: Two columns are chosen for one part, or a choice is none of those offered.
    """
    options = dict(_read_typed(form_fields))
    # mappings as they were come along, written as JSON
    for name in MAPPING_OPTIONS:
        if mapping := _read_mapping(str(form_fields.get(f"{READING_PREFIX}{name}", ""))):
            options[name] = mapping

    before = map_columns_to_parts(options)
    # parts of columns: one change replaces the mapping and all fields that name a column
    parts, changed = _read_choices(form_fields, COLUMN_PREFIX, PART_WORDS)
    if changed:
        for name in ("columns", *OPTION_BY_PART.values()):
            options.pop(name, None)
        options |= map_parts_to_columns({path: part for path, part in parts.items() if part})
        _drop_values_of_moved_columns(before, map_columns_to_parts(options), options)

    # who speaks: one change replaces all roles
    speakers, changed = _read_choices(form_fields, SPEAKER_PREFIX, {"": "", **ROLE_WORDS})
    if changed:
        options.pop("roles", None)
        options |= group_speakers_by_role(speakers)

    # values of the label: one change replaces the rules
    values, changed = _read_choices(form_fields, VALUE_PREFIX, WORDS_BY_COUNT)
    if changed:
        for name in RULE_OPTIONS:
            options.pop(name, None)
        options |= group_values_by_label(values)

    return options


def _drop_values_of_moved_columns(
    before: Mapping[str, str],
    now: Mapping[str, str],
    options: dict[str, object],
) -> None:
    """Drop what was said of a column's values, where another column has its part now."""
    for part, names in (("label", RULE_OPTIONS), ("role", ("roles",))):
        if _get_path_of_part(part, before) != _get_path_of_part(part, now):
            for name in names:
                options.pop(name, None)


def _get_path_of_part(part: str, parts: Mapping[str, str]) -> str:
    return next((path for path, named in parts.items() if named == part), "")


def _read_typed(form_fields: Mapping[str, object]) -> Mapping[str, object]:
    options: dict[str, object] = {}
    for option_field in list_option_fields():
        text = str(form_fields.get(f"{READING_PREFIX}{option_field.name}", "")).strip()
        if not text:
            continue
        if option_field.choices == ("yes", "no"):
            options[option_field.name] = text == "yes"
        elif option_field.is_number:
            if not text.isdecimal() or len(text) > 9:
                raise WrongUse(
                    f"{option_field.label} is no number: {text!r:.40}",
                    hint="type digits",
                )

            # 0 is usual for malformed rows, and not said
            if option_field.name != "max_bad" or int(text):
                options[option_field.name] = int(text)
        elif option_field.choices and text not in option_field.choices:
            hint = f"choose one of {', '.join(option_field.choices)}"
            raise WrongUse(f"{option_field.label} is {text!r:.40}", hint=hint)
        else:
            options[option_field.name] = text

    return options


def _read_mapping(text: str) -> dict[str, Any]:
    """Return a mapping as the form carries it; nothing of one that somebody made up."""
    try:
        if 0 < len(text) <= MAX_MAPPING_CHARACTERS:
            mapping = json.loads(text)
        else:
            mapping = {}
    except (ValueError, RecursionError):
        return {}

    if not isinstance(mapping, dict):
        return {}

    # nothing but texts, or lists of texts, under their names
    sound_mapping = {}
    for name, value in mapping.items():
        if isinstance(value, str) or (
            isinstance(value, list) and all(isinstance(word, str) for word in value)
        ):
            sound_mapping[name] = value
    return sound_mapping


def _read_choices(
    form_fields: Mapping[str, object],
    begins: str,
    choices: Mapping[str, str],
) -> tuple[dict[str, str], bool]:
    """Return what was chosen in the lists of a kind, and whether anything differs from what was shown."""
    chosen: dict[str, str] = {}
    changed = False
    for name, value in form_fields.items():
        if not name.startswith(begins):
            continue
        word = str(value)
        if word.removesuffix(UNCHANGED_MARK) not in choices:
            what = f"{word!r:.40} is none of the choices"
            raise WrongUse(what, hint="choose one of those in the list")
        chosen[name[len(begins) :]] = word.removesuffix(UNCHANGED_MARK)
        changed |= not word.endswith(UNCHANGED_MARK)

    return chosen, changed
