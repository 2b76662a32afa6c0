"""`pollex remedy`: from a rubric to a change of the assistant's prompt."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Group, Verb
from pollex.cli.options import logs_argument, rubrics_option, with_logs, with_store
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions

target_option = click.option("--target", metavar="ID", help="The one rubric to aim at; all headlines if not set.")
prompt_option = click.option(
    "--prompt", type=click.Path(path_type=Path), metavar="FILE", help="The assistant's system prompt, or its template."
)


@click.group("remedy", cls=Group)
def command() -> None:
    """Find what to change in the assistant's prompt, and prove whether it helps.

    A rubric tells what costs thumbs. A remedy is a change of the assistant's prompt that mends it, asked on
    conversations that took no part in finding it.
    """


@command.command("brief", cls=Verb)
@logs_argument
@rubrics_option
@prompt_option
@target_option
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("brief.md"), show_default=True, help="Where it is written."
)
@with_logs("group_field")
@with_store
def brief_(
    logs: tuple[str, ...],
    rubrics: Path,
    prompt: Path | None,
    target: str | None,
    out: Path,
    reading: ReadOptions,
    run: RunOptions,
) -> int:
    """Tell what to change where: what fails in replies, how often, and what the prompt says of it. No model is asked.

    \b
    Example
      pollex remedy brief logs.jsonl --rubrics rubrics.json --prompt system.md --out brief.md
    """
    from pollex.cli.remedy_output import show_brief
    from pollex.services.remedy.brief import brief

    use_case = partial(brief, logs, rubrics, prompt=prompt, target=target, out=out, reading=reading, run=run)
    return cli.run(use_case, show_brief, as_json=run.as_json)


@command.command("cases", cls=Verb)
@logs_argument
@rubrics_option
@click.option("--to", required=True, metavar="TOOL", help="Tool: promptfoo, inspect, langsmith, mlflow or jsonl.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("cases"), show_default=True, help="Output folder.")
@prompt_option
@target_option
@click.option("--all", "every", is_flag=True, help="Also write the cases that a proof is left for.")
@with_logs("group_field")
@with_store
def cases_(
    logs: tuple[str, ...],
    rubrics: Path,
    to: str,
    out: Path,
    prompt: Path | None,
    target: str | None,
    every: bool,
    reading: ReadOptions,
    run: RunOptions,
) -> int:
    """Write regression cases for a test tool: replies that failed or went well, asked for again. No model is asked.

    \b
    Example
      pollex remedy cases logs.jsonl --rubrics rubrics.json --to promptfoo --out cases
    """
    from pollex.cli.remedy_output import show_cases
    from pollex.services.remedy.cases import cases

    use_case = partial(cases, logs, rubrics, to=to, out=out, target=target, prompt=prompt, every=every)
    return cli.run(partial(use_case, reading=reading, run=run), show_cases, as_json=run.as_json)
