"""Verbs made of use cases: click's options from fields, and the way from what was typed to a result that is shown."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from pollex.cli.help import Group, Verb
from pollex.cli.printer import shown
from pollex.cli.session import DONE, PARTLY, Screen, announce_stop, print_json
from pollex.cli.settings import VALUES, SetOption, keep, preset
from pollex.cli.typed import typed_command
from pollex.services.options import RunOptions
from pollex.usecases.families import Calls
from pollex.usecases.use_case import NEEDED, VERBS, Crew, Option, UseCase, options_of

HOME = "pollex.usecases"
JSON = partial(click.Option, ["--json", "as_json"], is_flag=True, help="Print one JSON object as the last line.")
OF_ALL = ("as_json", "dry_run", "settings")
DRY_RUN = partial(
    click.Option, ["--dry-run"], is_flag=True, help="Show calls, tokens and, with prices, cost; make no call."
)


def command_in(name: str) -> click.Command:
    """Make the verb of a module of use cases; a group, where it has several."""
    module = import_module(f"{HOME}.{name}")
    made = {kind.verb: command_of(kind) for kind in VERBS[module.__name__]}
    if name in made:
        return made[name]
    inner = {verb.partition(" ")[2]: each for verb, each in made.items()}
    return Group(name, commands=inner, help=inspect.getdoc(module))


def command_of(kind: type[UseCase[Any]]) -> click.Command:
    """Make the verb of a use case."""
    mine = {one.name: one for one in options_of(kind) if one.door != "python"}
    params = [parameter_of(one) for one in mine.values() if one.place != "setting"]
    settings = {name: one for name, one in mine.items() if one.place == "setting"}
    if settings:
        params.append(set_option(mine, tuple(settings)))
    params += [JSON(), *([DRY_RUN()] if issubclass(kind, Calls) else [])]
    groups = {name: one.group for name, one in mine.items()} | dict.fromkeys(OF_ALL, "Output")
    rare = frozenset(name for name, one in mine.items() if one.place == "rare")
    about = inspect.getdoc(kind)
    return Verb(kind.verb, params=params, callback=partial(ended, kind), help=about, groups=groups, rare=rare)


def parameter_of(one: Option) -> click.Parameter:
    """Make what click parses."""
    required = one.usual is NEEDED
    shared: dict[str, Any] = {"type": type_of(one), "required": required, "metavar": one.metavar}
    if one.place == "argument":
        shared |= {} if required or one.many else {"default": one.usual}
        return click.Argument([one.name], nargs=-1 if one.many else 1, **shared)
    names = [f"--{(one.flag or one.name).replace('_', '-')}", one.name]
    more: dict[str, Any] = {"multiple": True} if one.many else {}
    if one.kind is bool:
        more, shared["type"] = {"is_flag": True}, None
    elif not required and one.usual not in (None, (), ""):
        more |= {"default": one.usual, "show_default": True}
    if one.presets is not None:
        more |= {"is_eager": True, "callback": preset}
    if one.name == "verbose":
        names.insert(0, "-v")
    return click.Option(names, help=one.help, envvar=list(one.env) or None, **shared, **more)


def type_of(one: Option) -> click.ParamType[Any] | None:
    """Return click's type of an option."""
    if one.parse is not None:
        return Parsed(one)
    if isinstance(one.kind, tuple):
        return click.Choice(one.kind)
    if one.kind is Path:
        return click.Path(path_type=Path, file_okay=one.name != "store")
    if one.least is not None:
        return click.IntRange(one.least, one.most)
    return click.types.convert_type(one.kind)


class Parsed(click.ParamType[Any]):
    """What a function of the option makes of a text."""

    def __init__(self, one: Option) -> None:
        self.one, self.name = one, one.metavar or one.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value; one that was made already stays."""
        assert self.one.parse is not None, "only such options have this type"
        try:
            return self.one.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def set_option(mine: Mapping[str, Option], names: Sequence[str]) -> click.Option:
    """Make `--set`."""
    return SetOption(
        ["--set", "settings"],
        names=tuple(names),
        known=mine,
        multiple=True,
        metavar="NAME=VALUE",
        is_eager=True,
        expose_value=False,
        callback=keep,
        help="A rare setting; repeatable. `--help-all` lists them.",
    )


def ended(kind: type[UseCase[Any]], as_json: bool, dry_run: bool = False, **typed: Any) -> int:
    """Carry out what was typed, show its result or print JSON, and return the exit code."""
    context = click.get_current_context()
    given = {name: value for name, value in typed.items() if value is not None} | context.meta.get(VALUES, {})
    asked = kind(**given)
    run = RunOptions(on_interrupt=announce_stop, typed=typed_command())
    verbose = bool(given.get("verbose"))
    with Screen(as_json=as_json or asked.data, verbose=verbose, apart=asked.apart) as screen:
        crew = Crew(screen, run)
        result = asked.plan(crew) if dry_run else asked.carry_out(crew)
    shown(screen, result, asked)
    if as_json:
        print_json(result.as_json())
    return asked.exit_code(result) or (DONE if result.complete else PARTLY)
