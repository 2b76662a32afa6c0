"""Help of verbs: options in groups, the rare ones only with `--help-all`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import click

from pollex.cli.settings import SetOption, described

ALL = "pollex.help_all"

GROUPS = {
    "Data": (
        *("label_field", "id_field", "messages_field", "judge_field", "group_field", "comment_field", "category_field"),
        "domain",
        *("answers", "human", "human_field", "positive", "negative", "max_bad", "encoding", "on_duplicate"),
    ),
    "Rubrics": (
        "rubrics",
        "rubrics_from",
        "budget",
        "policy",
        "probability",
        "method",
        "alpha",
        "test_fraction",
        "resamples",
        "batch",
        "minimum_class",
    ),
    "Question": (
        *("question", "options", "runs", "minimum", "panel", "tau", "tau_precision", "stop_early"),
        *("profile", "plain", "system", "max_tokens", "variant", "instructions", "seed"),
    ),
    "Model": (
        *("model", "base_url", "scale", "elicitation", "samples", "require", "value", "without", "canary"),
        *("straight_lining", "closing", "embedding_model", "langsmith"),
    ),
    "Limits": (
        *(
            "max_calls",
            "max_cost",
            "price",
            "concurrency",
            "deadline",
            "max_wait",
            "retry_refused",
            "no_prompts",
            "by_batch",
        ),
        *("wait",),
    ),
    "Output": (
        *(
            "out",
            "form",
            "verdicts",
            "accepted",
            "votes",
            "page",
            "report",
            "judges",
            "ask",
            "as_json",
            "resume",
            "dry_run",
            "store",
        ),
        *("verbose", "settings"),
    ),
}
"""Names of options by the title that they stand under; others stand at the end."""

RARE = frozenset(
    {
        *("id_field", "messages_field", "judge_field"),
        *("max_bad", "encoding", "on_duplicate", "minimum", "variant", "instructions", "seed", "max_tokens"),
        *("elicitation", "samples", "require", "value", "without", "canary", "straight_lining", "closing"),
        *("embedding_model", "langsmith", "concurrency", "deadline", "max_wait"),
        *("retry_refused", "no_prompts", "alpha", "resamples", "batch"),
    }
)
"""Options that few people need."""


class Group(click.Group):
    """A group whose commands are described in whole sentences, under titles where it has any."""

    titles: ClassVar[Mapping[str, Collection[str]]] = {}
    """Names of commands by the title that they stand under, in their order; others stand under the last one."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all commands, each with its first sentence."""
        rest = dict.fromkeys(self.list_commands(ctx))
        for names in self.titles.values():
            for name in names:
                del rest[name]
        titles = dict(self.titles) or {"Commands": ()}
        last = list(titles)[-1]
        for title, names in titles.items():
            shown = [*names, *rest] if title == last else names
            with formatter.section(title):
                formatter.write_dl([(name, self.said_of(ctx, name)) for name in shown])

    def said_of(self, ctx: click.Context, name: str) -> str:
        """Return the first sentence of a command's help."""
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=1000) if command else ""


class Verb(click.Command):
    """A command whose options are shown in groups.

    Args:
        rare: Further options that few people need of this verb.
        groups: Titles by the options that stand under them.
    """

    def __init__(
        self, *args: Any, rare: Collection[str] = (), groups: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.rare = RARE | frozenset(rare) if groups is None else frozenset(rare)
        self.groups = groups or {}
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=show_all,
                help="Show this message with all options, and exit.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; suggest `--set` for an option that is a setting."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-").removeprefix("no-").replace("-", "_")
            settings = [one.names for one in self.params if isinstance(one, SetOption)]
            if settings and name in settings[0]:
                raise click.UsageError(
                    f"{error.option_name} is a setting: give it as --set {name}=VALUE", ctx
                ) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups."""
        everything = ctx.meta.get(ALL, False)
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        rows = {str(one.name): one.get_help_record(ctx) for one in options}
        known = {name: row for name, row in rows.items() if row and (everything or name not in self.rare)}
        for title, names in GROUPS.items():
            own = [name for name in known if self.groups.get(name) == title]
            shown = [known.pop(name) for name in (own or names) if name in known]
            if shown:
                with formatter.section(title):
                    formatter.write_dl(shown)
        if known:
            with formatter.section("Other"):
                formatter.write_dl(list(known.values()))
        for one in options:
            if everything and isinstance(one, SetOption):
                with formatter.section("Settings (--set NAME=VALUE)"):
                    formatter.write_dl([(name, described(name, one.known.get(name))) for name in one.names])


def show_all(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print the whole help, and end."""
    if wanted:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
