"""Rare settings as `--set NAME=VALUE`, instead of an option for each."""

import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from pollex.errors import Options
from pollex.services.options import SYSTEMS
from pollex.usecases.use_case import VerbOption

VALUES = "pollex.settings"

PLACES = {"events"}
"""Settings that name a place and are no path."""

TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class SetOption(click.Option):
    """The option `--set` of one verb.

    Attributes:
        known: All options of the verb: any can be set.
        names: Those that are given this way alone.
    """

    def __init__(self, known: Mapping[str, VerbOption]) -> None:
        self.known = known
        self.names = tuple(name for name, one in known.items() if one.place == "setting")
        super().__init__(
            ["--set", "settings"],
            multiple=True,
            metavar="NAME=VALUE",
            is_eager=True,
            expose_value=False,
            callback=keep,
            help="A rare setting; repeatable. `--help-all` lists them.",
        )


def keep(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> None:
    """Parse the settings and keep them for the use case."""
    assert isinstance(option, SetOption)
    found = context.meta.setdefault(VALUES, {})
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in option.known or not equals:
            near = get_close_matches(name, option.names, n=1)
            hint = f" Did you mean {near[0]}?" if near and equals else ""
            raise click.BadParameter(
                f"{text!r} is not NAME=VALUE with a name of {', '.join(option.names)}.{hint}"
            )
        found[name] = parse_setting(option.known[name], value)


def preset(context: click.Context, option: click.Parameter, name: str | None) -> str | None:  # noqa: ARG001
    """Take a system's settings for what isn't given."""
    options = {one.name for one in context.command.params}
    sets = SYSTEMS[name] if name else {}
    context.default_map = {
        **(context.default_map or {}),
        **{each: sets[each] for each in sets if each in options},
    }
    found = context.meta.setdefault(VALUES, {})
    found |= {each: sets[each] for each in sets if each not in options | found.keys()}
    return name


def preset_told(context: click.Context, name: str) -> str:
    """Tell with which options a system runs: its own, and in place of some those that were given."""
    given = context.params | context.meta[VALUES]
    return f"As {name}: {spell(context.command, {each: given[each] for each in SYSTEMS[name]})}"


def parse_setting(one: VerbOption, value: str) -> Any:
    """Return a setting's value in its type; what describes itself in `JudgeSettings` is checked there."""
    name = one.name
    kind = one.kind if one.help else str
    if not value.strip() and (kind is Path or name in PLACES):
        raise click.BadParameter(f"{name} is empty: give a place, or leave the setting out")
    if isinstance(kind, tuple):
        if value not in kind:
            raise click.BadParameter(f"{name} is one of {', '.join(kind)}, not {value!r}")
        return value
    what = kind.__name__ if one.parse is None else one.metavar
    try:
        return (
            one.parse(value)
            if one.parse
            else TRUTHS[value.lower()]
            if kind is bool
            else kind(value)
        )
    except (KeyError, ValueError):
        raise click.BadParameter(f"{name} is a {what}, and {value!r} is none") from None


def help_of(one: VerbOption) -> str:
    """Return a setting's help."""
    if one.help:
        return one.help
    from pollex.rubrics.judge_settings import JudgeSettings  # pydantic is not needed for --help

    field = JudgeSettings.model_fields[one.name]
    return f"{field.description}" + (f" Default: {field.default}." if field.default else "")


def spell(command: click.Command, options: Options) -> str:
    """Spell options as one types them for a command: `--label-field stars`, or `--set thumbs=last`."""
    settings = {name for one in command.params if isinstance(one, SetOption) for name in one.names}
    flags = {
        one.name: one.opts[0].lstrip("-") for one in command.params if isinstance(one, click.Option)
    }
    named = (
        (name if name in settings else flags.get(name, name), value)
        for name, value in options.items()
    )
    return " ".join(_spelled(name, value, setting=name in settings) for name, value in named)


def _spelled(name: str, value: object, *, setting: bool) -> str:
    if setting:
        return (
            f"--set {shlex.quote(f'{name}={value}')}"
            if value is not None
            else f"--set {name}=VALUE"
        )
    option = f"--{name.replace('_', '-')}"
    return option if value is None or value is True else f"{option} {shlex.quote(str(value))}"
