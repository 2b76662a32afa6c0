"""Help of verbs: options in groups, the rare ones only with `--help-all`."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import click

from pollex.cli.settings import SetOption, get_setting_help
from pollex.usecases.use_case import VerbOption

WHOLE_HELP_KEY = "pollex.help_all"
OPTIONS_OF_EVERY_VERB = ("as_json", "dry_run", "settings")
"""Options that verbs have besides those of their use case."""

OPTION_TITLES = ("Data", "Rubrics", "Question", "Model", "Limits", "Output")
"""Of options; others stand at the end."""


class VerbGroup(click.Group):
    """A group whose commands are described in whole sentences, under titles where it has any.

    A command of a room names its title itself, as `help_title`.
    """

    titles: ClassVar[Mapping[str, Collection[str]]] = {}
    """Names of commands by the title that they stand under, in their order; others stand under the last one."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all commands, each with its first sentence."""
        commands = self.list_commands(ctx)
        # commands that no title names, in the order of their names
        rest = dict.fromkeys(commands)
        for names in self.titles.values():
            for name in names:
                rest.pop(name, None)  # of a room that was taken away

        titles = dict(self.titles) or {"Commands": ()}
        last = list(titles)[-1]
        # a room's command may name its title; others stand under the last
        own_titles = {}
        for name in rest:
            own_titles[name] = getattr(self.get_command(ctx, name), "help_title", "") or last

        for title, names in titles.items():
            others = []
            for name in rest:
                if own_titles[name] == title:
                    others.append(name)

            shown = []
            for name in (*names, *others):
                if name in commands:
                    shown.append(name)

            with formatter.section(title):
                formatter.write_dl([(name, self.said_of(ctx, name)) for name in shown])

    def said_of(self, ctx: click.Context, name: str) -> str:
        """Return the first sentence of a command's help."""
        command = self.get_command(ctx, name)
        if command:
            return command.get_short_help_str(limit=1000)
        return ""


class VerbCommand(click.Command):
    """A command whose options are shown in groups.

    Args:
        declared: Its options as a use case declares them.
    """

    def __init__(
        self,
        *args: Any,
        declared: Mapping[str, VerbOption],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.declared = declared
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=show_whole_help,
                help="Show this message with all options, and exit.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; suggest `--set` for an option that is a setting."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            # `--no-canary` asks for the setting `canary`, too
            name = error.option_name.lstrip("-").removeprefix("no-").replace("-", "_")
            settings = []
            for parameter in self.params:
                if isinstance(parameter, SetOption):
                    settings.append(parameter.names)

            if settings and name in settings[0]:
                raise click.UsageError(
                    f"{error.option_name} is a setting: give it as --set {name}=VALUE",
                    ctx,
                ) from None

            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups."""
        everything = ctx.meta.get(WHOLE_HELP_KEY, False)
        options = []
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                options.append(parameter)

        rows = {}
        for option in options:
            rows[str(option.name)] = option.get_help_record(ctx)

        # rare options are shown by `--help-all` alone
        rare = set()
        for name, declared in self.declared.items():
            if declared.place == "rare" and not everything:
                rare.add(name)

        records = {}
        for name, row in rows.items():
            if row and name not in rare:
                records[name] = row

        # options that every verb has stand under Output
        groups = {}
        for name, declared in self.declared.items():
            groups[name] = declared.group

        titles = dict.fromkeys(OPTIONS_OF_EVERY_VERB, "Output") | groups
        # each option stands under one title; what is left comes last
        for title in OPTION_TITLES:
            shown = []
            for name in list(records):
                if titles.get(name) == title:
                    shown.append(records.pop(name))

            if shown:
                with formatter.section(title):
                    formatter.write_dl(shown)

        if records:
            with formatter.section("Other"):
                formatter.write_dl(list(records.values()))

        # `--set` is one option, whose help lists all settings
        for option in options:
            if everything and isinstance(option, SetOption):
                with formatter.section("Settings (--set NAME=VALUE)"):
                    formatter.write_dl(
                        [(name, get_setting_help(option.declared[name])) for name in option.names]
                    )


def show_whole_help(
    ctx: click.Context,
    _option: click.Parameter,
    requested: bool,
) -> None:
    """Print the whole help, and end."""
    if requested:
        ctx.meta[WHOLE_HELP_KEY] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
