"""Controls of a form, made of a use case's fields: what is typed in them is a use case, and a command."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic.fields import FieldInfo

from pollex.prompts.domain import DomainProfile
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.services.results import Result
from pollex.usecases.families import ModelCallOptions
from pollex.usecases.use_case import REQUIRED, UseCase, VerbOption, iterate_options
from pollex.web.doors.hooks import UseCaseDoor
from pollex.web.faults import RequestError

OPTION_PREFIX = "o-"
"""What the name of a use case's control begins with in a form."""
ASSISTANT_PREFIX = "assistant-"
"""What the name of a control of the assistant's model begins with."""
PROFILE_PREFIX = "domain-"
"""What the name of a control of the domain profile begins with."""

ControlKind = Literal[
    "choice",
    "yes",
    "whole",
    "number",
    "line",
    "lines",
    "text",
    "log",
    "logs",
    "set",
    "rubric",
    "models",
    "profile",
]
"""How a field is given: `yes` is a box to tick, `lines` are several values, `text` becomes a file."""

KINDS_BY_OPTION: Mapping[str, ControlKind] = {
    "logs": "logs",
    "sources": "logs",
    "new": "log",
    "against": "log",
    "labels": "log",
    "rubrics": "set",
    "starter": "set",
    "cascade": "set",
    "domain": "profile",
    "target": "rubric",
    "profiles": "models",
    "prompt": "text",
    "edit": "text",
}
"""Fields that name a file or a run: what is chosen or written in the browser instead."""

LABELS_BY_OPTION: Mapping[str, str] = {
    "logs": "Log",
    "base_url": "Base URL",
    "profiles": "The assistant",
    "by_batch": "By batch",
    "id_field": "Field of the id",
    "label_field": "Field of the label",
    "messages_field": "Field of the turns",
    "judge_field": "Field of the annotator",
    "group_field": "Field of the user or group",
    "comment_field": "Field of the comment",
    "max_bad": "Malformed rows, at most",
    "max_calls": "Calls, at most",
    "max_cost": "Cost, at most",
    "max_wait": "Wait for the endpoint, at most",
    "price": "Price",
    "rubrics": "Rubric set",
    "starter": "Set learned elsewhere",
    "rubrics_from": "Rubrics written by hand",
    "domain": "Domain profile",
    "out": "Name",
    "new": "New conversations",
    "against": "Baseline",
    "fail_if": "Fails if",
    "no_prompts": "Keep no prompts",
    "system": "As",
    "purpose": "For",
    "edit": "The changed prompt",
    "prompt": "The assistant’s prompt",
    "target": "Rubric to aim at",
}
"""Names of fields that say too little in words."""

HELPS: Mapping[str, str] = {
    "model": "Its name, as its server knows it.",
    "base_url": "Address of a server that speaks OpenAI’s protocol. Empty: the one that this "
    "server’s settings name, else OpenAI’s.",
    "max_calls": "The run stops there. What it has done is kept, and its page goes on with it.",
    "max_cost": "In dollars. The run stops there, and its page goes on with it. It takes a price.",
    "price": "In dollars, of a million tokens read and of a million written, such as 0.15:0.60.",
}
"""What fields are for, where the words of a terminal say too little or something else here."""

GROUP_TITLES: Mapping[str, str] = {
    "Data": "How the log is read",
    "Rubrics": "Rubrics",
    "Question": "Chance",
    "Other": "How it is done",
    "Model": "How the model is asked",
    "Limits": "Limits of the model",
    "Output": "Output",
}
"""Groups of fields, as headings in their order."""

MODEL_OPTIONS = ("model", "base_url", "price", "max_cost", "max_calls")
"""Fields that stand with the model."""


@dataclass(frozen=True)
class Control:
    """One field of a form.

    Attributes:
        name: Of the form's field.
        choices: Values with words, of a choice.
        usual: Value where nothing was typed yet.
        needed: Whether it can't be left empty.
        least: Least value of a number; `most` likewise; None for no bound.
    """

    option: VerbOption
    label: str
    help: str
    kind: ControlKind
    usual: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    needed: bool = False

    @property
    def name(self) -> str:
        """Name of the form's field."""
        return OPTION_PREFIX + self.option.name

    @property
    def step(self) -> str:
        """Step of a number."""
        return "1" if self.kind == "whole" else "any"

    def read(self, text: str) -> Any:
        """Return what was typed as the use case takes it; None for nothing.

        Raises:
            RequestError: It can't be that.
        """
        typed = text.strip()
        if not typed:
            if self.needed:
                raise RequestError(f"{self.label} is missing", hint="fill it in")
            return None

        try:
            return self._value(typed)
        except ValueError:
            raise RequestError(f"{self.label}: {typed[:80]!r} is none", hint=self.help) from None

    def _value(self, typed: str) -> object:
        option = self.option
        if self.kind == "choice" and typed not in {value for value, _ in self.choices}:
            raise ValueError
        if self.kind == "choice" and option.kind is bool:
            return typed == "yes"
        if self.kind == "yes":
            return True
        if self.kind in ("whole", "number"):
            number = int(typed) if self.kind == "whole" else float(typed)
            if not math.isfinite(number):
                raise ValueError
            return number
        if self.kind == "lines":
            lines = []
            for line in typed.splitlines():
                if line.strip():
                    lines.append(line.strip())
            return tuple(lines)
        # only checked here: the use case reads the text itself
        if option.parse is not None:
            option.parse(typed)

        return typed


def make_controls(use_case: type[UseCase[Result]], door: UseCaseDoor) -> Iterator[Control]:
    """Yield a control for each field that can be given in the browser."""
    for option in iterate_options(use_case):
        # no control for what only Python takes, nor for what this form leaves out
        if option.door != "python" and door.reason_against(option.name) is None:
            yield _make_control(option, door)


def _make_control(option: VerbOption, door: UseCaseDoor) -> Control:
    # what the form says of a field comes before what a terminal says
    usual = door.usual.get(option.name, option.usual)
    kind = _choose_kind(option)
    choices = []
    words = door.answers.get(option.name, {})
    for value, word in _list_choices(option):
        choices.append((value, words.get(value, word)))
    return Control(
        option=option,
        label=door.labels.get(option.name) or get_label("logs" if kind == "logs" else option.name),
        help=door.helps.get(option.name) or write_help(option),
        kind=kind,
        usual=_write_default(usual),
        choices=tuple(choices),
        needed=option.usual is REQUIRED and kind not in ("logs",),
    )


def _choose_kind(option: VerbOption) -> ControlKind:
    # a field that names a file or a run is chosen in the browser; a number of that name is a setting
    if option.name in KINDS_BY_OPTION and option.kind not in (int, float):
        return KINDS_BY_OPTION[option.name]
    if isinstance(option.kind, tuple) or option.presets is not None:
        return "choice"
    # a box can only say yes: where yes is usual, no has to be a choice
    if option.kind is bool:
        return "yes" if option.usual is False else "choice"
    if option.parse is not None:
        return "line"
    if option.many:
        return "lines"

    numbers: dict[object, ControlKind] = {int: "whole", float: "number"}
    return numbers.get(option.kind, "line")


def _list_choices(option: VerbOption) -> tuple[tuple[str, str], ...]:
    """Return the values of a choice with words; what is usual comes first, as nothing chosen."""
    words: Sequence[str] = ()
    if option.presets is not None:
        words = list(option.presets)
    elif isinstance(option.kind, tuple):
        words = option.kind
    elif option.kind is bool and option.usual is not False:
        words = ("yes", "no")

    if not words:
        return ()

    # an empty choice stands for the usual value, unless that is one of the words
    nothing = () if isinstance(option.usual, str) and option.usual in words else (("", "as usual"),)
    return (*nothing, *((word, word) for word in words))


def _write_default(value: object) -> str:
    """Return a default as a form has it."""
    if value is REQUIRED or value in (None, (), "", False):
        return ""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


@cache
def get_label(name: str) -> str:
    """Return a field's name in words."""
    return LABELS_BY_OPTION.get(name) or name.replace("_", " ").capitalize()


def write_help(option: VerbOption) -> str:
    """Return what a field is for, without the spellings of a terminal."""
    if option.name == "rubrics":
        return "Learned before. Its page says how far to trust it."
    if option.name in HELPS:
        return HELPS[option.name]

    text = replace_options_by_labels(option.help or _get_description(option.name))
    # a terminal writes its default in brackets; here it becomes a sentence
    return re.sub(r"\s*\[default: (.*)\]$", r" If nothing is given: \1.", text)


def replace_options_by_labels(text: str) -> str:
    """Return a text with the labels of fields in place of a terminal's options."""
    return re.sub(r"`?--([a-z][a-z-]*)`?", lambda match: _quote_label(match[1]), text)


def _quote_label(flag: str) -> str:
    return f"“{get_label(flag.replace('-', '_'))}”"


def _get_description(name: str) -> str:
    """Return the words of the setting that describes itself; none for what its kind explains."""
    field = JudgeSettings.model_fields.get(name)
    if field is None:
        return ""

    usual = f" Default: {field.default}." if field.default else ""
    return f"{field.description}{usual}"


@dataclass(frozen=True)
class ControlGroup:
    """Controls under one heading."""

    title: str
    controls: tuple[Control, ...]


def group_controls(controls: Sequence[Control]) -> list[ControlGroup]:
    """Sort controls by their groups; a group without any is left out."""
    by_title = {}
    for title in GROUP_TITLES:
        controls_of_group = []
        for control in controls:
            if control.option.group == title:
                controls_of_group.append(control)
        by_title[title] = tuple(controls_of_group)

    groups: list[ControlGroup] = []
    for title, those in by_title.items():
        if those:
            groups.append(ControlGroup(GROUP_TITLES[title], those))

    return groups


def asks_a_model(use_case: type[UseCase[Result]]) -> bool:
    """Return whether a use case may ask a model, so that a plan of its calls can be shown first."""
    return issubclass(use_case, ModelCallOptions) and use_case.plans


def names_a_model(use_case: type[UseCase[Result]]) -> bool:
    """Return whether people name the model, and not a rubric set."""
    return any(
        option.name == "model" and option.door != "python" for option in iterate_options(use_case)
    )


def make_option_words(option: VerbOption, value: object) -> list[str]:
    """Return the words of a command that give a field a value.

    A value stands in the same word as its option: one that begins with a dash is no option.
    """
    if value is None or value == () or (value is False and option.place != "setting"):
        return []
    if option.place == "argument":
        if isinstance(value, tuple):
            return list(value)
        return [str(value)]

    # settings share one option, each with its name in the value
    values = value if isinstance(value, tuple) else (value,)
    if option.place == "setting":
        typed = [{True: "yes", False: "no"}.get(value, value) for value in values]
        words: list[str] = []
        for text in typed:
            words.extend(("--set", f"{option.name}={text}"))
        return words

    flag = f"--{(option.flag or option.name).replace('_', '-')}"
    if value is True:
        return [flag]
    return [f"{flag}={value}" for value in values]


def list_profile_questions() -> Mapping[str, FieldInfo]:
    """Return the fields of a domain profile, each with its question."""
    return DomainProfile.questions()


def read_profile(typed: Mapping[str, str]) -> DomainProfile | None:
    """Return the domain profile that was typed; what is left empty is as for any assistant.

    Returns:
        None where nothing was typed.

    Raises:
        RequestError: A text is too long.
    """
    neutral = DomainProfile.neutral().model_dump()
    values_typed: dict[str, object] = {}
    for name in list_profile_questions():
        text = typed.get(PROFILE_PREFIX + name, "").strip()
        # fields with several values have one on each line
        if text and isinstance(neutral[name], tuple):
            typed_lines = []
            for line in text.splitlines():
                if line.strip():
                    typed_lines.append(line.strip())
            values_typed[name] = tuple(typed_lines)
        elif text:
            values_typed[name] = " ".join(text.split())

    if not values_typed:
        return None

    try:
        return DomainProfile.model_validate(neutral | values_typed)
    except ValueError as error:
        raise RequestError(
            "the domain profile is too long",
            hint="at most 2,000 characters a field",
        ) from error


def write_command(words: Sequence[str]) -> str:
    """Return a command as one types it."""
    return shlex.join(["pollex", *words])
