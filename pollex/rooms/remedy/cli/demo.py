"""Changes of an assistant's prompt, proved on the bundled sample log: `pollex demo --remedy`."""

from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import click

from pollex.cli import session as cli
from pollex.formats.fields import ReadOptions
from pollex.outputs import write_text
from pollex.rooms.remedy.agents.assistant import build_assistant
from pollex.rooms.remedy.examples.bicycle_shop import fill_calendar
from pollex.rooms.remedy.examples.planted_assistant import (
    OFFER_LINE,
    SYSTEM_PROMPT,
    answer_messages,
)
from pollex.rooms.remedy.services.assistants import ROLE_TABLE_NAMES, AssistantOptions
from pollex.rooms.remedy.services.run import prove_remedy
from pollex.rooms.remedy.services.sample import RemedyOptions
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.recorded import RUBRICS_FILE_NAME

EXAMPLES_PACKAGE = "pollex.rooms.remedy.examples"
PLANTED_CHANGE_INTRODUCTION = (
    "Now a change of the assistant's prompt, proved. This assistant is planted (examples/planted_assistant.py): rules "
    "and chance in place of a model, so the figures show how a proof goes, and nothing of any model."
)
PLANTED_TARGET_SOURCE = "event:fail_no_way"
RECORDED_RUN_OPTIONS: dict[str, Any] = {
    "target": "c98624f2",
    "accept": "all",
    "candidates": 3,
    "replies": 1,
    "tried": 20,
    "others": 50,
}
"""Of the recorded remedy: as few calls as tell anything."""


def prove_planted_change(out: Path, learned: Path, as_json: bool) -> int:
    """Prove a change of a planted assistant's prompt on the sample log, and return the exit code.

    Args:
        learned: Folder of the rubric set.
    """
    # the rubric of a known event, whatever id it has in this set
    target = next(
        rubric
        for rubric in RubricSet.load(learned / RUBRICS_FILE_NAME, arrays=False).rubrics
        if rubric.source == PLANTED_TARGET_SOURCE
    )
    # the prompt and its change as files, as a user would have them
    for name, text in (("system.md", SYSTEM_PROMPT), ("offer.md", SYSTEM_PROMPT + OFFER_LINE)):
        write_text(out / name, text, named=False)

    click.echo(f"\n{PLANTED_CHANGE_INTRODUCTION}\n", err=as_json)
    # no model in this proof: the change is written, the judge is the built-in one
    options = RemedyOptions(
        prompt=out / "system.md",
        target=target.id,
        edit=(out / "offer.md",),
    )
    return prove_on_sample(
        out,
        learned / RUBRICS_FILE_NAME,
        options,
        AssistantOptions(given=build_assistant(answer_messages)),
        ModelOptions(),
        as_json,
    )


def propose_and_prove_changes(out: Path, model: ModelOptions, as_json: bool) -> int:
    """Have a model propose and prove changes of the prompt of its own, and return the exit code."""
    click.echo(
        "\nNow changes of the assistant's prompt, proposed and proved:\n",
        err=as_json,
    )
    # the prompt of the examples, and settings under which its calls were recorded
    with as_file(files(EXAMPLES_PACKAGE)) as examples:
        options = RemedyOptions(
            prompt=examples / "bikes_prompt.md",
            render=fill_calendar,
            **RECORDED_RUN_OPTIONS,
        )
        roles = AssistantOptions(models=dict.fromkeys(ROLE_TABLE_NAMES, model))
        return prove_on_sample(
            out,
            out / RUBRICS_FILE_NAME,
            options,
            roles,
            model,
            as_json,
        )


def prove_on_sample(
    out: Path,
    rubrics: Path,
    options: RemedyOptions,
    assistant: AssistantOptions,
    model: ModelOptions,
    as_json: bool,
) -> int:
    """Prove changes on the sample log, and return the exit code."""
    # stored beside the other results of the demo
    run = RunOptions(out / ".pollex", on_interrupt=cli.announce_stop)
    # conversations of one person belong together
    reading = ReadOptions(group_field="user_id")
    with as_file(files("pollex.examples")) as examples:
        bound = partial(
            prove_remedy,
            str(examples / "bikes.jsonl"),
            rubrics,
            options,
            assistant,
            out=out / "remedy.json",
        )
        return cli.run_and_show(
            partial(bound, reading=reading, run=run, model=model),
            as_json=as_json,
        )
