"""`pollex simulate`: dialogues of a simulated user with systems, for where logs are private."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import out_option, with_endpoint, with_run
from pollex.cli.settings import CALLS, set_option

if TYPE_CHECKING:
    from pollex.services.options import ModelOptions, RunOptions


@click.command("simulate", cls=Verb)
@click.option("--topics", type=click.Path(path_type=Path), required=True, help="TOML file of topics and personas.")
@click.option("--systems", default="DS1", show_default=True, metavar="A,B,…", help="Systems: DS1, DS2, DS3, DS4, DS5.")
@click.option("--documents", type=click.Path(path_type=Path), help="Folder of documents; DS2 to DS5 need it.")
@click.option(
    "--turns",
    default=8,
    show_default=True,
    type=click.IntRange(min=1),
    help="Maximum number of user turns in DS4 and DS5.",
)
@click.option("--seed", default=0, show_default=True, help="Random seed, sent with every call.")
@out_option("dialogues.jsonl", "Output file, one row for each dialogue: .jsonl.")
@with_endpoint
@with_run
@set_option(*(name for name in CALLS if not name.startswith("batch_")))
def command(out: Path, systems: str, run: RunOptions, model: ModelOptions, **given: Any) -> int:
    """Simulate dialogues on topics, one for each system, topic and persona.

    DS1 writes a dialogue in one call, without documents. DS2 is given those that the topic names, DS3 the best five by
    BM25. In DS4 a user and an assistant take turns, with documents found for the dialogue so far; in DS5 the model
    writes the search query. Sources are kept if their quotes stand in the documents. Dialogues have no thumbs.

    \b
    Examples
      pollex simulate --topics topics.toml --systems DS1 --model M --dry-run
      pollex simulate --topics topics.toml --systems DS3,DS4 --documents help/ --model M --out dialogues.jsonl
      pollex judge dialogues.jsonl --question "Was the task completed?" --model M
    """
    from pollex.cli.output import show_plan  # agents and prompts are not needed for --help
    from pollex.cli.simulate_output import show_dialogues
    from pollex.services.simulate import SimulateOptions, plan_simulate, simulate

    options = SimulateOptions(systems=systems.split(","), **given)
    if run.dry_run:
        return cli.run(partial(plan_simulate, options, run=run, model=model), show_plan, as_json=run.as_json)
    use_case = partial(simulate, options, out=out, run=run, model=model)
    return cli.run(use_case, show_dialogues, as_json=run.as_json)
