"""No verb and no function loses an option that it had, as `doors.toml` tells; run this file to write that anew."""

import inspect
import tomllib
from pathlib import Path

import click
from verbs import verbs

import pollex
from pollex.cli.main import pollex as main
from pollex.cli.settings import SetOption

KEPT = Path(__file__).with_name("doors.toml")


def options_of(command: click.Command) -> list[str]:
    """Names of what a verb takes, settings too."""
    spelled = [
        name.lstrip("-")
        for one in command.params
        if isinstance(one, click.Option)
        for name in one.opts
    ]
    settings = [name for one in command.params if isinstance(one, SetOption) for name in one.names]

    return sorted({*spelled, *settings})


def arguments_of(name: str) -> list[str]:
    """Names of what a function takes; what is given by name alone has a star."""
    found = inspect.signature(getattr(pollex, name)).parameters.values()
    return [
        f"{'*' * (one.kind is one.KEYWORD_ONLY)}{one.name}"
        for one in found
        if one.kind is not one.VAR_KEYWORD
    ]


def functions() -> list[str]:
    """Public functions."""
    return [name for name in pollex.__all__ if inspect.isfunction(getattr(pollex, name))]


def test_no_verb_loses_an_option() -> None:
    now = {verb: set(options_of(command)) for verb, command in verbs(main)}
    before = tomllib.loads(KEPT.read_text("utf-8"))["verbs"]
    assert {
        verb: lost for verb, names in before.items() if (lost := {*names} - now.get(verb, set()))
    } == {}


def test_no_function_loses_an_argument() -> None:
    now = {name: {*arguments_of(name)} for name in functions()}
    before = tomllib.loads(KEPT.read_text("utf-8"))["functions"]
    assert {
        name: lost for name, names in before.items() if (lost := {*names} - now.get(name, set()))
    } == {}


if __name__ == "__main__":
    doors = {
        "verbs": {verb: options_of(command) for verb, command in verbs(main)},
        "functions": {name: arguments_of(name) for name in functions()},
    }
    lines = [f"[{title}]\n" + "".join(f'"{name}" = {names}\n' for name, names in each.items())
             for title, each in doors.items()]  # fmt: skip
    KEPT.write_text(
        "# Written by `python tests/house/test_doors.py`.\n" + "\n".join(lines), "utf-8"
    )
