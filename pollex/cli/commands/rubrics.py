"""`pollex rubrics`: what a rubric set says, edited and compared."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Group
from pollex.cli.options import URL, with_store
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.rubrics.rubric import Polarity


@click.group("rubrics", cls=Group)
def command() -> None:
    """List, edit and compare the rubrics of a set.

    NAME.rubrics.toml beside NAME.json is what people edit, by hand or with these commands: text, polarity, on or off,
    and a note. Changes count once they are fitted with `pollex refit`; `pollex learn` never overwrites them.
    """


rubrics_argument = click.argument("rubrics", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
note_option = click.option("--note", metavar="TEXT", help="A remark that stays with the rubric.")


@command.command("list")
@rubrics_argument
@json_option
def list_(rubrics: Path, as_json: bool) -> int:
    """List the rubrics of a set with their ids, as people edited them.

    \b
    Example
      pollex rubrics list rubrics.json
    """
    from pollex.cli.rubrics_output import show_set
    from pollex.services.edit import list_rubrics

    return cli.run(partial(list_rubrics, rubrics), show_set, as_json=as_json)


@command.command("add")
@rubrics_argument
@click.argument("text")
@click.option(
    "--polarity",
    type=click.Choice(["sat", "dsat"]),
    required=True,
    help="Polarity: `sat` describes good conversations, `dsat` bad ones.",
)
@note_option
@json_option
def add(rubrics: Path, text: str, polarity: Polarity, note: str | None, as_json: bool) -> int:
    """Add a rubric in your own words.

    \b
    Example
      pollex rubrics add rubrics.json "The assistant names the price before it books." --polarity sat
    """
    from pollex.cli.rubrics_output import show_edit
    from pollex.services.edit import add_rubric

    return cli.run(partial(add_rubric, rubrics, text, polarity, note=note or ""), show_edit, as_json=as_json)


@command.command("remove")
@rubrics_argument
@click.argument("rubric", metavar="ID")
@json_option
def remove(rubrics: Path, rubric: str, as_json: bool) -> int:
    """Take a rubric out; ID may be the beginning of its id.

    To leave a rubric out for a while, write `on = false` into NAME.rubrics.toml.

    \b
    Example
      pollex rubrics remove rubrics.json 3fd0
    """
    from pollex.cli.rubrics_output import show_edit
    from pollex.services.edit import remove_rubric

    return cli.run(partial(remove_rubric, rubrics, rubric), show_edit, as_json=as_json)


@command.command("reword")
@rubrics_argument
@click.argument("rubric", metavar="ID")
@click.argument("text")
@note_option
@click.option("--judge-anew", is_flag=True, help="Give up by what it was judged: its new words say what to look for.")
@with_store
def reword(rubrics: Path, rubric: str, text: str, note: str | None, judge_anew: bool, run: RunOptions) -> int:
    """Give a rubric other words; its id stays, and so does what it is judged by.

    \b
    Example
      pollex rubrics reword rubrics.json 3fd0 "The assistant says what a room costs."
    """
    from pollex.cli.rubrics_output import show_edit
    from pollex.services.edit import reword_rubric

    edit = partial(reword_rubric, rubrics, rubric, text, note=note, judge_anew=judge_anew, store=run.store)
    return cli.run(edit, show_edit, as_json=run.as_json)


@command.command("diff")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@json_option
def diff(before: Path, after: Path, as_json: bool) -> int:
    """Show what two rubric sets differ in: words, sides, order and figures.

    Rubrics with one id are the same rubric, and so are those of the same event and topic.

    \b
    Example
      pollex rubrics diff before.json after.json
    """
    from pollex.cli.rubrics_output import show_difference
    from pollex.services.set_differences import diff_sets

    return cli.run(partial(diff_sets, before, after), show_difference, as_json=as_json)


@command.command("lint")
@rubrics_argument
@click.option("--model", help="Model that words marked sentences better; default: rules, where one applies.")
@URL
@with_store
def lint(rubrics: Path, run: RunOptions, model: str | None, base_url: str | None) -> int:
    """Mark the rubrics that are hard to judge, with better words where there are some.

    Marked are a rubric in two parts, with "each", "all" or "only", with a presupposition, a near twin or a mirror of
    another, one that is all but constant on training conversations, and one that rests on one conversation.

    \b
    Examples
      pollex rubrics lint rubrics.json
      pollex rubrics lint rubrics.json --model MODEL
    """
    from pollex.cli.rubrics_output import show_marks
    from pollex.services.lint import lint_rubrics
    from pollex.services.options import ModelOptions

    asked = ModelOptions(model=model, base_url=base_url) if model else None
    return cli.run(partial(lint_rubrics, rubrics, run=run, model=asked), show_marks, as_json=run.as_json)
