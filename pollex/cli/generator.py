"""Verbs made of use cases: click's options from fields, and the way from what was typed to a result that is shown."""

import inspect
import os
import shlex
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from pollex.cli.help import Group, Verb
from pollex.cli.session import DONE, PARTLY, Screen, announce_stop, print_json, show
from pollex.cli.settings import VALUES, SetOption, preset, preset_told, spell
from pollex.errors import WrongUse
from pollex.rooms import module_named, modules_named
from pollex.services.options import RunOptions
from pollex.text import Command
from pollex.usecases.families import Calls
from pollex.usecases.use_case import (
    NEEDED,
    VERBS,
    AtTerminal,
    Crew,
    UseCase,
    VerbOption,
    options_of,
)


def typed_command() -> str:
    """Return the command without `--resume`; empty if the verb can't be resumed."""
    arguments = sys.argv[1:]
    home = module_named("usecases", arguments[0]) if arguments else None
    if home is None:
        return ""
    import_module(home)
    if not any(use_case.resumable for use_case in VERBS[home]):
        return ""
    # `label next` makes no run of these
    if any(argument.startswith("--calibrator") for argument in arguments):
        return ""
    from pollex.gateway.redaction import redact  # what plain commands don't need

    return redact(
        shlex.join(["pollex", *(a for a in arguments if a != "--resume")]), secrets_given()
    )


def command_with(options: str, names: list[str]) -> str:
    """Return the command that was typed with further options, which take the place of those of their names."""
    words: list[str] = []
    for word in sys.argv[1:]:
        if not (words and words[-1] in names):
            words.append(word)
        else:
            words[-1] = ""
    kept = [word for word in words if word and word.partition("=")[0] not in names]
    return f"{shlex.join(['pollex', *kept])} {options}"


def resume_command() -> str:
    """Return the command that resumes the run; empty if the verb can't be resumed."""
    typed = typed_command()
    return typed and f"{typed} --resume"


def secrets_given() -> list[str]:
    """Collect the key and what the addresses on the command line hold."""
    from pollex.gateway.redaction import secrets_of_address

    addresses = [argument[argument.find("http") :] for argument in sys.argv if "http" in argument]
    secrets = {
        os.environ.get("OPENAI_API_KEY", ""),
        *(secret for url in addresses for secret in secrets_of_address(url)),
    }
    return sorted(secrets, key=len, reverse=True)


JSON = partial(
    click.Option,
    ["--json", "as_json"],
    is_flag=True,
    help="Print one JSON object as the last line.",
)
DRY_RUN = partial(
    click.Option,
    ["--dry-run"],
    is_flag=True,
    help="Show calls, tokens and, with prices, cost; make no call.",
)


def command_in(name: str) -> click.Command:
    """Make the verb of a module of use cases; a group, where it has several."""
    homes = modules_named("usecases", name)
    if not homes:
        raise WrongUse(
            f"there is no verb {name!r}", remedy="pip install 'pollex[all]' has those of all rooms"
        )
    modules = [import_module(home) for home in homes]
    use_cases = [use_case for home in homes for use_case in VERBS[home]]
    commands = {use_case.verb: command_of(use_case) for use_case in use_cases}
    if name in commands:
        command = commands[name]
    else:
        inner = {verb.partition(" ")[2]: command for verb, command in commands.items()}
        settings = {"help_option_names": ["-h", "--help", "--help-all"]}
        command = Group(
            name, commands=inner, help=inspect.getdoc(modules[0]), context_settings=settings
        )
    titles = [use_case.help_title for use_case in use_cases if use_case.help_title]
    command.help_title = titles[0] if titles else ""  # type: ignore[attr-defined]
    return command


def command_of(kind: type[UseCase[Any]]) -> click.Command:
    """Make the verb of a use case."""
    known = {one.name: one for one in options_of(kind) if one.door != "python"}
    params = [parameter_of(one) for one in known.values() if one.place != "setting"]
    if issubclass(kind, AtTerminal):
        return Verb(
            kind.verb,
            params=params,
            callback=partial(left_to, kind),
            help=inspect.getdoc(kind),
            known=known,
        )
    counted = issubclass(kind, Calls)
    settings = [SetOption(known)] if any(one.place == "setting" for one in known.values()) else []
    params += [JSON(), *([DRY_RUN()] if counted else []), *settings]
    return Verb(
        kind.verb,
        params=params,
        callback=partial(carry_out, kind),
        help=inspect.getdoc(kind),
        known=known,
    )


def parameter_of(one: VerbOption) -> click.Parameter:
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


def type_of(one: VerbOption) -> click.ParamType[Any] | None:
    """Return click's type of an option."""
    if one.parse is not None:
        return Parsed(one)
    if words := one.presets or (one.kind if isinstance(one.kind, tuple) else ()):
        return click.Choice(list(words))
    if one.kind is Path:
        return click.Path(path_type=Path, file_okay=one.name != "store", exists=one.exists)
    if one.least is not None:
        if one.kind is int:
            most = None if one.most is None else int(one.most)
            return click.IntRange(int(one.least), most)
        return click.FloatRange(one.least, one.most)
    return click.types.convert_type(one.kind)


class Parsed(click.ParamType[Any]):
    """What a function of the option makes of a text."""

    def __init__(self, one: VerbOption) -> None:
        self.one = one
        self.name = one.metavar or one.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value; one that was made already stays."""
        assert self.one.parse is not None, "only such options have this type"
        try:
            return self.one.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def typed_out(command: Command) -> str:
    """Return what to type for a command with options by their names."""
    name, _, inner = command.verb.partition(" ")
    verb = command_in(name)
    if inner:
        assert isinstance(verb, click.Group), f"{name} is a group of verbs"
        verb = verb.commands[inner]
    words = [shlex.join(["pollex", *command.verb.split(), *command.sources])]
    for option, value in command.options.items():
        values = value if isinstance(value, tuple) else (value,)
        words += [spell(verb, {option: each_value}) for each_value in values]
    return " ".join(words)


def interview(screen: Screen, *given: Any, **named: Any) -> Any:
    """Ask the person at the terminal; see `Interview`."""
    # what holds conversations is not needed for --help
    from pollex.cli.interview import Interview

    return Interview(screen, *given, **named)


def editor(screen: Screen) -> Any:
    """Have the person at the terminal edit a pool; None where nobody sits at one."""
    from pollex.cli.interview import PoolEditor  # as above

    return PoolEditor(screen) if sys.stdin.isatty() else None


def left_to(kind: type[AtTerminal], **typed: Any) -> Any:
    """Have a use case do what was typed, and return the exit code."""
    return kind(**{name: value for name, value in typed.items() if value is not None}).work()


def carry_out(kind: type[UseCase[Any]], as_json: bool, **typed: Any) -> int:
    """Carry out what was typed, show its result or print JSON, and return the exit code."""
    context = click.get_current_context()
    dry_run = issubclass(kind, Calls) and typed.pop("dry_run")
    given = {name: value for name, value in typed.items() if value is not None} | context.meta.get(
        VALUES, {}
    )
    asked = kind(**given).typed()
    if asked.to_confirm:
        click.confirm(asked.to_confirm, abort=True, err=True)
    run = RunOptions(on_interrupt=announce_stop, typed=typed_command())
    with Screen(
        as_json=as_json or asked.data, verbose=bool(given.get("verbose")), apart=asked.apart
    ) as screen:
        crew = Crew(screen, run, partial(interview, screen), partial(editor, screen))
        result = asked.plan(crew) if dry_run else asked.perform(crew)
    if dry_run and (system := given.get("system")) and VALUES in context.meta:
        result = replace(result, notes=(preset_told(context, system), *result.notes))
    needed = () if dry_run else asked.shown_with
    show(screen, result.told(**{name: getattr(asked, name) for name in needed}), typed_out)
    if as_json:
        print_json(result.as_json())
    code = asked.exit_code(result)
    return code if code is not None else DONE if result.complete else PARTLY
