"""Verbs made of use cases: click's options from fields, and the way from what was typed to a result that is shown."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli.help import VerbCommand, VerbGroup
from pollex.cli.session import (
    DONE_EXIT_CODE,
    PARTLY_DONE_EXIT_CODE,
    Screen,
    announce_stop,
    print_json,
    show_result,
)
from pollex.cli.settings import (
    SETTINGS_KEY,
    SetOption,
    apply_preset,
    describe_preset,
    spell_options_of_command,
)
from pollex.errors import WrongUse
from pollex.rooms import find_module, find_modules
from pollex.runs.options import RunOptions
from pollex.text import NextCommand
from pollex.usecases.families import ModelCallOptions
from pollex.usecases.use_case import (
    REQUIRED,
    USE_CASES_BY_MODULE,
    CallContext,
    TerminalUseCase,
    UseCase,
    VerbOption,
    iterate_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pollex.cli.interview import Interview, PoolEditor
    from pollex.conversations.conversation import Conversation
    from pollex.services.results import Result


def write_typed_command() -> str:
    """Return the command without `--resume`; empty if the verb can't be resumed."""
    arguments = sys.argv[1:]
    home = None
    if arguments:
        home = find_module("usecases", arguments[0])
    if home is None:
        return ""

    import_module(home)
    # the first word names a module, which may have several verbs
    if not any(use_case.resumable for use_case in USE_CASES_BY_MODULE[home]):
        return ""
    # `label next` makes no run of these
    if any(argument.startswith("--calibrator") for argument in arguments):
        return ""

    from pollex.gateway.redaction import redact_secrets  # what plain commands don't need

    other_arguments = []
    for a in arguments:
        if a != "--resume":
            other_arguments.append(a)

    return redact_secrets(
        shlex.join(["pollex", *other_arguments]),
        collect_typed_secrets(),
    )


def write_typed_command_with(options: str, names: list[str]) -> str:
    """Return the command that was typed with further options, which take the place of those of their names."""
    words: list[str] = []
    # the value behind an option that is replaced goes with it
    for word in sys.argv[1:]:
        if not (words and words[-1] in names):
            words.append(word)
        else:
            words[-1] = ""

    remaining = []
    for word in words:
        if word and word.partition("=")[0] not in names:
            remaining.append(word)

    return f"{shlex.join(['pollex', *remaining])} {options}"


def write_resume_command() -> str:
    """Return the command that resumes the run; empty if the verb can't be resumed."""
    typed = write_typed_command()
    return typed and f"{typed} --resume"


def collect_typed_secrets() -> list[str]:
    """Collect the key and what the addresses on the command line hold."""
    from pollex.gateway.redaction import find_secrets_in_address

    # an address may hold a password
    addresses = []
    for argument in sys.argv:
        if "http" in argument:
            addresses.append(argument[argument.find("http") :])

    address_secrets: list[str] = []
    for url in addresses:
        address_secrets.extend(find_secrets_in_address(url))
    secrets = {
        os.environ.get("OPENAI_API_KEY", ""),
        *address_secrets,
    }
    # the longest first, so that a part of it isn't replaced before the whole
    return sorted(secrets, key=len, reverse=True)


make_json_option = partial(
    click.Option,
    ["--json", "as_json"],
    is_flag=True,
    help="Print one JSON object as the last line.",
)
make_dry_run_option = partial(
    click.Option,
    ["--dry-run"],
    is_flag=True,
    help="Show calls, tokens and, with prices, cost; make no call.",
)


def make_module_command(name: str) -> click.Command:
    """Make the verb of a module of use cases; a group, where it has several."""
    homes = find_modules("usecases", name)
    if not homes:
        raise WrongUse(
            f"there is no verb {name!r}",
            hint="pip install 'pollex[all]' has those of all rooms",
        )

    # a module's use cases register themselves when it is imported
    modules = [import_module(home) for home in homes]
    use_cases = []
    for home in homes:
        use_cases.extend(USE_CASES_BY_MODULE[home])

    commands = {}
    for use_case in use_cases:
        commands[use_case.verb] = make_use_case_command(use_case)

    # a module with one verb, or a group of several: `label next`, `label queue`
    if name in commands:
        command = commands[name]
    else:
        inner = {verb.partition(" ")[2]: command for verb, command in commands.items()}
        settings = {"help_option_names": ["-h", "--help", "--help-all"]}
        command = VerbGroup(
            name,
            commands=inner,
            help=inspect.getdoc(modules[0]),
            context_settings=settings,
        )

    titles = []
    for use_case in use_cases:
        if use_case.help_title:
            titles.append(use_case.help_title)

    command.help_title = titles[0] if titles else ""  # type: ignore[attr-defined]
    return command


def make_use_case_command(kind: type[UseCase[Result]]) -> click.Command:
    """Make the verb of a use case."""
    # options that only Python has are left out
    declared = {}
    for option in iterate_options(kind):
        if option.door != "python":
            declared[option.name] = option

    params = []
    for option in declared.values():
        if option.place != "setting":
            params.append(make_parameter(option))

    # what speaks for itself has neither `--json` nor `--dry-run`
    if issubclass(kind, TerminalUseCase):
        return VerbCommand(
            kind.verb,
            params=params,
            callback=partial(run_terminal_use_case, kind),
            help=inspect.getdoc(kind),
            declared=declared,
        )

    # only what calls a model has calls to count
    counted = issubclass(kind, ModelCallOptions)
    if any(option.place == "setting" for option in declared.values()):
        settings = [SetOption(declared)]
    else:
        settings = []

    params += [make_json_option(), *([make_dry_run_option()] if counted else []), *settings]
    return VerbCommand(
        kind.verb,
        params=params,
        callback=partial(run_typed_use_case, kind),
        help=inspect.getdoc(kind),
        declared=declared,
    )


def make_parameter(option: VerbOption) -> click.Parameter:
    """Make what click parses."""
    required = option.usual is REQUIRED
    shared: dict[str, Any] = {
        "type": choose_click_type(option),
        "required": required,
        "metavar": option.metavar,
    }
    if option.place == "argument":
        # no default where it must be given, or may be given several times
        shared |= {} if required or option.many else {"default": option.usual}
        return click.Argument(
            [option.name],
            nargs=-1 if option.many else 1,
            **shared,
        )

    names = [f"--{(option.flag or option.name).replace('_', '-')}", option.name]
    more: dict[str, Any] = {"multiple": True} if option.many else {}
    # a flag takes no value
    if option.kind is bool:
        more = {"is_flag": True}
        shared["type"] = None
    elif not required and option.usual not in (None, (), ""):
        more |= {"default": option.usual, "show_default": True}

    # a preset is read before other options, whose defaults it sets
    if option.presets is not None:
        more |= {"is_eager": True, "callback": apply_preset}
    if option.name == "verbose":
        names.insert(0, "-v")

    return click.Option(
        names,
        help=option.help,
        envvar=list(option.env) or None,
        **shared,
        **more,
    )


def choose_click_type(option: VerbOption) -> click.ParamType[object] | None:
    """Return click's type of an option."""
    # a parser of its own, words to choose from, a path, bounds, or a plain type
    if option.parse is not None:
        return ParsedParamType(option)
    if words := option.presets or (option.kind if isinstance(option.kind, tuple) else ()):
        return click.Choice(list(words))
    if option.kind is Path:
        return click.Path(
            path_type=Path,
            file_okay=option.name != "store",
            exists=option.exists,
        )

    if option.least is not None:
        if option.kind is int:
            most = None
            if option.most is not None:
                most = int(option.most)
            return click.IntRange(int(option.least), most)

        return click.FloatRange(option.least, option.most)

    return click.types.convert_type(option.kind)


class ParsedParamType(click.ParamType[object]):
    """What a function of the option makes of a text."""

    def __init__(self, option: VerbOption) -> None:
        self.option = option
        self.name = option.metavar or option.name

    def convert(
        self,
        value: str,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> object:
        """Return the value; one that was made already stays."""
        assert self.option.parse is not None, "only such options have this type"
        try:
            return self.option.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def spell_next_command(command: NextCommand) -> str:
    """Return what to type for a command with options by their names."""
    name, _, inner = command.verb.partition(" ")
    verb = make_module_command(name)
    if inner:
        assert isinstance(verb, click.Group), f"{name} is a group of verbs"
        verb = verb.commands[inner]

    words = [shlex.join(["pollex", *command.verb.split(), *command.sources])]
    for option, value in command.options.items():
        values = value if isinstance(value, tuple) else (value,)
        for each_value in values:
            words.append(spell_options_of_command(verb, {option: each_value}))

    return " ".join(words)


def make_interview(screen: Screen, find: Callable[[str], Conversation]) -> Interview:
    """Ask the person at the terminal; see `Interview`."""
    # what holds conversations is not needed for --help
    from pollex.cli.interview import Interview

    return Interview(screen, find)


def make_pool_editor(screen: Screen) -> PoolEditor | None:
    """Have the person at the terminal edit a pool; None where nobody sits at one."""
    from pollex.cli.interview import PoolEditor  # as above

    if sys.stdin.isatty():
        return PoolEditor(screen)
    return None


def run_terminal_use_case(kind: type[TerminalUseCase], **typed: object) -> object:
    """Have a use case do what was typed, and return the exit code."""
    settings = {}
    for name, value in typed.items():
        if value is not None:
            settings[name] = value

    return kind(**settings).work()


def confirm(question: str) -> None:
    """Ask a person for a yes.

    Raises:
        WrongUse: Nobody is there to be asked.
        click.Abort: They say no.
    """
    # a closed input, as of cron, has no line
    try:
        is_confirmed = sys.stdin is not None and click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        is_confirmed = None

    if sys.stdin is None or is_confirmed is None:
        raise WrongUse("nobody is there to say yes", hint="send without a question", option="yes")
    if not is_confirmed:
        raise click.Abort


def run_typed_use_case(kind: type[UseCase[Result]], as_json: bool, **typed: object) -> int:
    """Carry out what was typed, show its result or print JSON, and return the exit code."""
    context = click.get_current_context()
    dry_run = issubclass(kind, ModelCallOptions) and typed.pop("dry_run")
    # what was given by `--set` counts before options of the same name
    typed_values = {}
    for name, value in typed.items():
        if value is not None:
            typed_values[name] = value

    values = typed_values | context.meta.get(SETTINGS_KEY, {})
    use_case = kind(**values).typed()
    if use_case.to_confirm:
        confirm(use_case.to_confirm)

    run = RunOptions(on_interrupt=announce_stop, typed=write_typed_command())
    with Screen(
        as_json=as_json or use_case.data, verbose=bool(values.get("verbose")), apart=use_case.apart
    ) as screen:
        call_context = CallContext(
            screen,
            run,
            partial(make_interview, screen),
            partial(make_pool_editor, screen),
        )
        result: Result
        if dry_run:
            plan = use_case.plan(call_context)
            # the plan begins with the settings of the system that it is of
            if (system := values.get("system")) and SETTINGS_KEY in context.meta:
                plan = replace(plan, notes=(describe_preset(context, system), *plan.notes))
            result = plan
        else:
            result = use_case.perform(call_context)

    # what the printer needs of the use case; a plan needs nothing
    needed = () if dry_run else use_case.shown_with
    # of a view JSON is all that was asked for; a run tells what it did, too
    if not (as_json and use_case.apart):
        show_result(
            screen,
            result.told(**{name: getattr(use_case, name) for name in needed}),
            spell_next_command,
        )

    if as_json:
        print_json(result.as_json())

    # a code of the use case itself comes before the usual ones
    code = use_case.exit_code(result)
    if code is not None:
        return code
    if result.complete:
        return DONE_EXIT_CODE
    return PARTLY_DONE_EXIT_CODE
