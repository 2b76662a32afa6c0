"""Verbs have few options, and the help names all of them."""

import click
from verbs import LOGS, counts, verbs

from pollex.cli.main import pollex
from pollex.cli.settings import SetOption

MOST = {
    "learn": 31,
    "judge": 22,
    "check": 22,
    "serve": 23,
    "refit": 23,
    "remedy run": 23,
    "remedy plan": 23,
}
"""Maximum numbers of options; 21 for any other verb."""


def test_a_verb_has_few_options() -> None:
    for verb, number in counts().items():
        assert number <= MOST.get(verb, 21), verb


def test_every_help_teaches_by_example() -> None:
    assert [
        verb
        for verb, one in verbs(pollex)
        if f"pollex {verb}" not in one.get_help(click.Context(one))
    ] == []


def test_every_verb_that_reads_logs_says_alike_how_they_are_read() -> None:
    names = {
        verb: (command, {one.name for one in command.params}) for verb, command in verbs(pollex)
    }
    readers = {verb: command for verb, (command, own) in names.items() if own & {"logs", "sources"}}
    assert {"score", "learn", "judge", "inspect"} <= readers.keys()
    for verb, command in readers.items():
        assert {one.name for one in command.params} >= set(LOGS), verb
        assert not [
            one
            for one in command.params
            if isinstance(one, SetOption) and set(one.names) & set(LOGS)
        ], verb


def test_the_help_has_five_groups_and_cuts_no_description() -> None:
    groups = [pollex, *inner_groups()]
    shown = [
        group.get_help(click.Context(group, max_content_width=80, terminal_width=80))
        for group in groups
    ]
    assert not [
        line for text in shown for line in text.splitlines()[1:] if line.endswith(("...", "…"))
    ]
    titles = [
        line.rstrip(":")
        for line in shown[0].splitlines()
        if line.endswith(":") and not line.startswith(" ")
    ]
    assert titles == ["Options", "Start", "Look", "Improve", "Release", "More"]
    assert all(
        shown[0].count(f"\n  {name} ") == 1 for name in pollex.list_commands(click.Context(pollex))
    )


def inner_groups() -> list[click.Group]:
    """Return the verbs that have verbs."""
    context = click.Context(pollex)
    every = (pollex.get_command(context, name) for name in pollex.list_commands(context))
    return [one for one in every if isinstance(one, click.Group)]
