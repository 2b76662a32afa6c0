"""The main job on the bundled sample log, on a terminal."""

from __future__ import annotations

from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.agents.assistant import assistant_of
from pollex.cli import session as cli
from pollex.examples.bicycle_shop import render
from pollex.examples.planted_assistant import OFFER, PROMPT, answer
from pollex.formats.fields import ReadOptions
from pollex.gateway.recorded import NotRecorded
from pollex.outputs import write_text
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.learn import learn
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.recorded import (
    BUILT_IN,
    REMEDY,
    RUBRICS,
    Recording,
    bundled_recording,
    options_for,
    sets_in,
)
from pollex.services.remedy.assistants import ROLES, AssistantOptions
from pollex.services.remedy.run import remedy
from pollex.services.remedy.sample import RemedyOptions
from pollex.services.score import score
from pollex.store.folder import store_option
from pollex.store.outputs import noted_outputs
from pollex.usecases.serve import ServeStore

if TYPE_CHECKING:
    from pollex.usecases.demo import RunDemo

PLANTED = (
    "Now a change of the assistant's prompt, proved. This assistant is planted (examples/planted_assistant.py): rules "
    "and chance in place of a model, so the figures show how a proof goes, and nothing of any model."
)
TARGET = "event:fail_no_way"
RECORDED: dict[str, Any] = {
    "target": "c98624f2",
    "accept": "all",
    "candidates": 3,
    "replies": 1,
    "tried": 20,
    "others": 50,
}
"""Of the recorded remedy: as few calls as tell anything."""


def demo(asked: RunDemo) -> int:
    """Run it, say what to look at, and return the exit code."""
    out = asked.out
    as_json = asked.as_json
    with noted_outputs(out / ".pollex"):
        if asked.recorded or (asked.remedy and (bundled_recording() / REMEDY).exists()):
            code = replay(Recording.bundled(), out, as_json, remedy=asked.remedy)
        else:
            code = learned_and_scored(out, ModelOptions(), as_json)
            code = max(code, prove_planted(out, out, as_json)) if asked.remedy else code
    click.echo(f"\nLook at {out / 'report.html'}, or try", err=as_json)
    click.echo(f"  pollex trace last{store_option(out / '.pollex')}", err=as_json)
    click.echo("  pollex learn YOUR-LOGS.jsonl", err=as_json)
    return (
        ServeStore(store=out / ".pollex", rubrics=sets_in(out)).work()
        if asked.serve and not as_json
        else code
    )


def learned_and_scored(
    out: Path,
    model: ModelOptions,
    as_json: bool,
    store: Path | None = None,
    beside: Recording | None = None,
) -> int:
    """Learn from the sample log and score it, and return the exit code.

    Args:
        beside: The recorded run that this is of, or is compared with: same policy.
    """
    run = RunOptions(store or out / ".pollex", on_interrupt=cli.announce_stop)
    reading = ReadOptions(group_field="user_id")
    rubrics = out / RUBRICS
    with as_file(files("pollex.examples")) as examples:
        log = str(examples / "bikes.jsonl")
        domain = examples / "bikes.toml"
        settings = LearnSettings(
            policy=beside.policy if beside else LearnSettings.policy, test_fraction=0
        )
        bound = partial(
            learn, log, out=rubrics, domain=domain, rubrics_from=None, settings=settings
        )
        learned = cli.run(partial(bound, reading=reading, run=run, model=model), as_json=as_json)
        scoring = partial(
            score,
            log,
            rubrics,
            out=out / "scores.jsonl",
            judges=(),
            reading=reading,
            run=run,
            model=model,
        )
        return max(learned, cli.run(scoring, as_json=as_json))


def prove_planted(out: Path, learned: Path, as_json: bool) -> int:
    """Prove a change of a planted assistant's prompt on the sample log, and return the exit code.

    Args:
        learned: Folder of the rubric set.
    """
    target = next(
        one
        for one in RubricSet.load(learned / RUBRICS, arrays=False).rubrics
        if one.source == TARGET
    )
    for name, text in (("system.md", PROMPT), ("offer.md", PROMPT + OFFER)):
        write_text(out / name, text, named=False)
    click.echo(f"\n{PLANTED}\n", err=as_json)
    options = RemedyOptions(prompt=out / "system.md", target=target.id, edit=(out / "offer.md",))
    return prove_on_sample(
        out,
        learned / RUBRICS,
        options,
        AssistantOptions(given=assistant_of(answer)),
        ModelOptions(),
        as_json,
    )


def propose_and_prove(out: Path, model: ModelOptions, as_json: bool) -> int:
    """Have a model propose and prove changes of the prompt of its own, and return the exit code."""
    click.echo("\nNow changes of the assistant's prompt, proposed and proved:\n", err=as_json)
    with as_file(files("pollex.examples")) as examples:
        options = RemedyOptions(prompt=examples / "bikes_prompt.md", render=render, **RECORDED)
        roles = AssistantOptions(models=dict.fromkeys(ROLES, model))
        return prove_on_sample(out, out / RUBRICS, options, roles, model, as_json)


def prove_on_sample(
    out: Path,
    rubrics: Path,
    options: RemedyOptions,
    assistant: AssistantOptions,
    model: ModelOptions,
    as_json: bool,
) -> int:
    """Prove changes on the sample log, and return the exit code."""
    run = RunOptions(out / ".pollex", on_interrupt=cli.announce_stop)
    reading = ReadOptions(group_field="user_id")
    with as_file(files("pollex.examples")) as examples:
        bound = partial(
            remedy,
            str(examples / "bikes.jsonl"),
            rubrics,
            options,
            assistant,
            out=out / "remedy.json",
        )
        return cli.run(partial(bound, reading=reading, run=run, model=model), as_json=as_json)


def replay(recording: Recording, out: Path, as_json: bool, *, remedy: bool = False) -> int:
    """Replay a recorded run, with the built-in run beside it, and return the exit code.

    Where a prompt was changed since, the recorded result is shown as it was made.
    """
    store = out / ".pollex"
    recording.prepare(store)
    click.echo("First the built-in roles (no LLM), for comparison:\n", err=as_json)
    learned_and_scored(out / BUILT_IN, ModelOptions(), as_json, store, recording)
    click.echo(
        f"\nNow {recording.model}, a large language model recorded on {recording.made}:\n",
        err=as_json,
    )
    try:
        endpoint = recording.endpoint()
        code = learned_and_scored(out, options_for(endpoint), as_json, store, recording)
        if endpoint.composed:
            told = "judging replies are put together from answers to the same statements in other prompts"
            click.echo(f"\n{len(endpoint.composed):,} {told}; see examples/recorded.", err=as_json)
        if remedy and not recording.remedied:
            return max(code, prove_planted(out, out / BUILT_IN, as_json))
        return (
            max(code, propose_and_prove(out, options_for(recording.endpoint(REMEDY)), as_json))
            if remedy
            else code
        )
    except NotRecorded as error:
        prompts = ", ".join(recording.changed_prompts())
        why = f"these prompts were changed since: {prompts}" if prompts else str(error)
        click.echo(f"The run can't be replayed: {why}.", err=True)
        click.echo(f"{out} holds the result as it was recorded on {recording.made}.", err=True)
        recording.restore(out)
        return cli.PARTLY
