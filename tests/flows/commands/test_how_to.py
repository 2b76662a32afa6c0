"""The pages of docs/how-to say only what the command line knows."""

import re
import shlex
from pathlib import Path

import click

from pollex.cli.main import pollex

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted((DOCS / "how-to").glob("*.md"))
COMMAND = re.compile(r"(?:^    |`)(pollex [a-z][^`\n]*)", re.MULTILINE)


def test_every_command_of_a_page_has_its_verb_and_options() -> None:
    for page in [*PAGES, DOCS / "tutorial.md"]:
        context = click.Context(pollex)
        for line in COMMAND.findall(page.read_text(encoding="utf-8")):
            verb, *rest = shlex.split(line)[1:]
            command = pollex.get_command(context, verb)
            if isinstance(command, click.Group):
                command = command.get_command(context, rest[0])
            assert command is not None, line
            known = {name for parameter in command.params for name in parameter.opts}
            assert [word for word in rest if word.startswith("--") and word not in known] == [], (
                line
            )


def options_of(command: click.Command | None) -> set[str]:
    context = click.Context(pollex)
    inner = (
        [command.get_command(context, name) for name in command.list_commands(context)]
        if isinstance(command, click.Group)
        else []
    )
    own = {name for parameter in command.params for name in parameter.opts} if command else set()
    return own.union(*map(options_of, inner))


def test_every_option_that_a_page_names_by_itself_is_one_of_a_verbs() -> None:
    known = options_of(pollex) | {"--help"}
    for page in PAGES:
        assert set(re.findall(r"`(--[a-z-]+)", page.read_text(encoding="utf-8"))) <= known


def test_every_page_is_short_and_listed() -> None:
    listed = (PAGES[0].parent / "README.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert page.stem == "README" or f"({page.name})" in listed
        prose = re.sub(r"```.*?```\n", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        lines = [line for line in prose.splitlines() if line and not line.startswith("    ")]
        assert page.stem == "README" or len(lines) <= 20
