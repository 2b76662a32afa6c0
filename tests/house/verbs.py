"""Verbs of the terminal with their numbers of options; `python tests/house/verbs.py` prints them."""

from collections.abc import Iterator

import click

from pollex.cli.main import pollex

LOGS = ("label_field", "positive", "negative", "id_field", "messages_field", "max_bad")
"""Options of all verbs that read logs."""


def counts() -> dict[str, int]:
    """Return how many options each verb has, but for those of all verbs that read logs: `--help-all` shows them all."""
    return {verb: sum(map(counted, command.params)) for verb, command in verbs(pollex)}


def counted(one: click.Parameter) -> bool:
    """Tell whether a parameter is an option of this verb; help and the usual ones of logs aren't counted."""
    return isinstance(one, click.Option) and one.name not in ("help", "help_all", *LOGS)


def verbs(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield the names and commands of a group, and of the groups in it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, "it is listed"
        if isinstance(command, click.Group):
            yield from verbs(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


if __name__ == "__main__":
    for verb, number in counts().items():
        click.echo(f"{number:3}  {verb}")
