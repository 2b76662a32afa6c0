"""The pages that a newcomer reads, and the help of every verb, name only what exists."""

import re
from collections.abc import Iterator

import click
import pytest
from rooms import FOLDERS, ROOT
from verbs import verbs

from pollex.cli.main import pollex

PAGES = ("README.md", "CONTRIBUTING.md")
DOCS = ("docs/benchmarks.md", "docs/methods.md", "docs/models.md", "docs/tutorial.md")
TARGETS = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def command_of(verb: str) -> click.Command | None:
    """The command of that name: `score`, or `calibrate fit`."""
    command: click.Command | None = pollex
    for word in verb.split():
        command = (
            command.get_command(click.Context(command), word)
            if isinstance(command, click.Group)
            else None
        )
    return command


def helps(command: click.Command = pollex) -> Iterator[str]:
    """The help of every verb."""
    yield command.help or ""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from helps(inner)


def commands() -> list[tuple[str, list[str]]]:
    """Every `pollex VERB --option …` of pages and helps: the verb and its options; a line's comment is no part of it.

    A command stands in an indented block or between backticks, where it may go on over a line's
    end.
    """
    texts = [*map(text_of, (*PAGES, *DOCS)), *helps()]
    blocks = [
        re.findall(r"^ +(pollex [a-z].*)$|`(pollex [a-z][^`]*)`", text, re.MULTILINE)
        for text in texts
    ]
    lines = [
        re.split(r" #| {3,}|[|&<]", block or inline)[0].split()
        for found in blocks
        for block, inline in found
    ]
    return [(verb_of(words), re.findall(r"--[a-z-]+", " ".join(words[2:]))) for words in lines]


def verb_of(words: list[str]) -> str:
    """The verb of a command line; behind the name of a group the group's own verb belongs to it."""
    return (
        " ".join(words[1:3])
        if len(words) > 2 and isinstance(command_of(words[1]), click.Group)
        else words[1]
    )


def test_every_command_of_the_pages_exists_with_its_options() -> None:
    for verb, options in commands():
        command = command_of(verb)
        assert command is not None, f"there is no `pollex {verb}`"
        assert set(options) <= {name for parameter in command.params for name in parameter.opts}
        if "--max-cost" in options:  # it is refused without them
            assert {"--price"} <= set(options)


def test_the_readme_shows_the_three_things_that_people_use_pollex_for() -> None:
    assert {"learn", "score", "trace"} <= {verb for verb, _ in commands()}


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_of_a_page_exists(page: str) -> None:
    named = re.findall(r"(?:^ {4}|`)make ([a-z]+)", text_of(page), re.MULTILINE)
    assert "test" in named
    assert set(named) <= set(TARGETS)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_a_file(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", text_of(page))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_security_names_every_verb_that_may_ask_a_model_and_every_key() -> None:
    asking = {
        verb for verb, one in verbs(pollex) if "base_url" in {option.name for option in one.params}
    }
    keys = set(
        re.findall(
            r"[A-Z_]+_(?:KEY|TOKEN)\b", text_of("pollex/rooms/exchange/formats/peers/interfaces.py")
        )
    )
    assert {"score", "remedy run", "LANGSMITH_API_KEY"} <= asking | keys
    assert [
        name for name in sorted(asking | keys) if f"`{name}" not in text_of("SECURITY.md")
    ] == []


def test_contributing_says_where_each_room_is() -> None:
    rooms = set(FOLDERS.values()) - {"examples", "pollex"}
    missing = [folder for folder in rooms if f"`{folder}/`" not in text_of("CONTRIBUTING.md")]
    assert missing == []


def test_the_readme_is_a_screen_and_a_half() -> None:
    prose = re.sub(r"^\|.*$", "", text_of("README.md"), flags=re.MULTILINE)
    assert len(prose.split()) <= 900
