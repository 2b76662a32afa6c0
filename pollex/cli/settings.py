"""Rare settings as `--set NAME=VALUE`, instead of an option for each."""

import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

import click

from pollex.errors import ProposedOptions
from pollex.runs.options import LEARN_SETTINGS_BY_SYSTEM_NAME
from pollex.usecases.use_case import VerbOption

SETTINGS_KEY = "pollex.settings"

PLACE_SETTINGS = {"events"}
"""Settings that name a place and are no path."""

TRUTH_WORDS = {
    "true": True,
    "yes": True,
    "1": True,
    "false": False,
    "no": False,
    "0": False,
}


class SetOption(click.Option):
    """The option `--set` of one verb.

    Attributes:
        declared: All options of the verb: any can be set.
        names: Those that are given this way alone.
    """

    def __init__(self, declared: Mapping[str, VerbOption]) -> None:
        self.declared = declared
        self.names = tuple(name for name, option in declared.items() if option.place == "setting")
        super().__init__(
            ["--set", "settings"],
            multiple=True,
            metavar="NAME=VALUE",
            is_eager=True,
            expose_value=False,
            callback=keep_settings,
            help="A rare setting; repeatable. `--help-all` lists them.",
        )


def keep_settings(
    context: click.Context,
    option: click.Parameter,
    texts: tuple[str, ...],
) -> None:
    """Parse the settings and keep them for the use case."""
    assert isinstance(option, SetOption)
    values = context.meta.setdefault(SETTINGS_KEY, {})
    for text in texts:
        # a dash is taken as in options: `--set max-cost=1`
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in option.declared or not equals:
            near = get_close_matches(name, option.names, n=1)
            hint = ""
            if near and equals:
                hint = f" Did you mean {near[0]}?"
            raise click.BadParameter(
                f"{text!r} is not NAME=VALUE with a name of {', '.join(option.names)}.{hint}"
            )

        values[name] = parse_setting(option.declared[name], value)


def apply_preset(context: click.Context, option: click.Parameter, name: str | None) -> str | None:  # noqa: ARG001
    """Take a system's settings for what isn't given."""
    # an option gets another default, and a setting a value
    options = {parameter.name for parameter in context.command.params}
    sets = LEARN_SETTINGS_BY_SYSTEM_NAME[name] if name else {}
    context.default_map = {
        **(context.default_map or {}),
        **{setting: sets[setting] for setting in sets if setting in options},
    }
    # what was given by `--set` stays
    values = context.meta.setdefault(SETTINGS_KEY, {})
    values |= {setting: sets[setting] for setting in sets if setting not in options | values.keys()}

    return name


def describe_preset(context: click.Context, name: str) -> str:
    """Tell with which options a system runs: its own, and in place of some those that were given."""
    values = context.params | context.meta[SETTINGS_KEY]
    settings = {setting: values[setting] for setting in LEARN_SETTINGS_BY_SYSTEM_NAME[name]}
    return f"As {name}: {spell_options_of_command(context.command, settings)}"


def parse_setting(option: VerbOption, value: str) -> object:
    """Return a setting's value in its type; what describes itself in `JudgeSettings` is checked there."""
    name = option.name
    # settings without help are fields of `JudgeSettings`, which checks them
    kind = option.kind if option.help else str
    # an empty path would be the current folder
    if not value.strip() and (kind is Path or name in PLACE_SETTINGS):
        raise click.BadParameter(f"{name} is empty: give a place, or leave the setting out")
    if isinstance(kind, tuple):
        if value not in kind:
            raise click.BadParameter(f"{name} is one of {', '.join(kind)}, not {value!r}")
        return value

    # what it should be, for the error
    what = kind.__name__ if option.parse is None else option.metavar
    try:
        if option.parse:
            return option.parse(value)
        if kind is bool:
            return TRUTH_WORDS[value.lower()]
        return kind(value)
    except (KeyError, ValueError):
        raise click.BadParameter(f"{name} is a {what}, and {value!r} is none") from None


def get_setting_help(option: VerbOption) -> str:
    """Return a setting's help."""
    if option.help:
        return option.help

    from pollex.rubrics.judge_settings import JudgeSettings  # pydantic is not needed for --help

    field = JudgeSettings.model_fields[option.name]
    return f"{field.description}" + (f" Default: {field.default}." if field.default else "")


def spell_options_of_command(command: click.Command, options: ProposedOptions) -> str:
    """Spell options as one types them for a command: `--label-field stars`, or `--set thumbs=last`."""
    settings: set[str] = set()
    for parameter in command.params:
        if isinstance(parameter, SetOption):
            settings.update(parameter.names)
    # by field, the name under which an option is typed
    flags = {}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            flags[parameter.name] = parameter.opts[0].lstrip("-")

    named = []
    for name, value in options.items():
        named.append((name if name in settings else flags.get(name, name), value))
    return " ".join(_spell_option(name, value, setting=name in settings) for name, value in named)


def _spell_option(name: str, value: object, *, setting: bool) -> str:
    if setting:
        if value is not None:
            return f"--set {shlex.quote(f'{name}={value}')}"
        return f"--set {name}=VALUE"

    option = f"--{name.replace('_', '-')}"
    if value is None or value is True:
        return option
    return f"{option} {shlex.quote(str(value))}"
