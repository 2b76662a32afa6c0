"""The main job on the bundled sample log, on a terminal."""

from __future__ import annotations

from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.hooks import DemoSequel, find_demo_sequel
from pollex.formats.fields import ReadOptions
from pollex.gateway.recorded import PromptNotRecorded
from pollex.rubrics.learning.settings import LearnSettings
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.recorded import (
    BUILT_IN_FOLDER_NAME,
    REMEDY_REPLIES_FILE_NAME,
    RUBRICS_FILE_NAME,
    Recording,
    find_bundled_recording,
    list_demo_rubric_sets,
    make_replay_options,
)
from pollex.services.learn import learn
from pollex.services.score import score
from pollex.store.folder import format_store_option
from pollex.store.outputs import note_written_outputs
from pollex.usecases.serve import ServeStore

if TYPE_CHECKING:
    from pollex.usecases.demo import RunDemo


def run_demo(use_case: RunDemo) -> int:
    """Run it, say what to look at, and return the exit code."""
    out = use_case.out
    as_json = use_case.as_json
    with note_written_outputs(out / ".pollex"):
        sequel = None
        if use_case.remedy:
            sequel = find_demo_sequel("remedy")
        # recorded changes are of the recorded run, and come with it
        if use_case.recorded or (
            use_case.remedy and (find_bundled_recording() / REMEDY_REPLIES_FILE_NAME).exists()
        ):
            code = replay_recording(Recording.bundled(), out, as_json, sequel)
        else:
            code = learn_and_score(out, ModelOptions(), as_json)
            if sequel is not None:
                # the worse of two exit codes
                code = max(code, sequel.show_built_in(out, out, as_json))

    click.echo(f"\nLook at {out / 'report.html'}, or try", err=as_json)
    click.echo(f"  pollex trace last{format_store_option(out / '.pollex')}", err=as_json)
    click.echo("  pollex learn YOUR-LOGS.jsonl", err=as_json)
    # JSON is for a program, which opens no browser
    if use_case.serve and not as_json:
        return ServeStore(store=out / ".pollex", rubrics=list_demo_rubric_sets(out)).work()
    return code


def learn_and_score(
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
    rubrics = out / RUBRICS_FILE_NAME
    with as_file(files("pollex.examples")) as examples:
        log = str(examples / "bikes.jsonl")
        domain = examples / "bikes.toml"
        settings = LearnSettings(
            # both runs that are compared choose by the same policy
            policy=beside.policy if beside else LearnSettings.policy,
            test_fraction=0,
        )
        bound = partial(
            learn,
            log,
            out=rubrics,
            domain=domain,
            rubrics_from=None,
            settings=settings,
        )
        learned = cli.run_and_show(
            partial(bound, reading=reading, run=run, model=model),
            as_json=as_json,
        )
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
        return max(learned, cli.run_and_show(scoring, as_json=as_json))


def replay_recording(
    recording: Recording,
    out: Path,
    as_json: bool,
    sequel: DemoSequel | None = None,
) -> int:
    """Replay a recorded run, with the built-in run beside it, and return the exit code.

    Where a prompt was changed since, the recorded result is shown as it was made.
    """
    store = out / ".pollex"
    recording.prepare(store)
    # in the same store, so that both runs can be looked at together
    click.echo("First the built-in roles (no LLM), for comparison:\n", err=as_json)
    learn_and_score(
        out / BUILT_IN_FOLDER_NAME,
        ModelOptions(),
        as_json,
        store,
        recording,
    )
    click.echo(
        f"\nNow the same log with {recording.model}, a large language model. Its replies were "
        f"recorded on {recording.made}, and are played back:\n",
        err=as_json,
    )

    try:
        endpoint = recording.endpoint()
        code = learn_and_score(
            out,
            make_replay_options(endpoint),
            as_json,
            store,
            recording,
        )
        # people should know which replies were put together
        if endpoint.composed:
            click.echo(
                f"\n{len(endpoint.composed):,} of the model's replies weren't recorded as a whole: "
                "each is made up of the answers that the model gave to the same questions about "
                "the same conversation; see examples/recorded.",
                err=as_json,
            )

        if sequel is None:
            return code
        # without recorded changes, those of a planted assistant
        if not recording.remedied:
            return max(code, sequel.show_built_in(out, out / BUILT_IN_FOLDER_NAME, as_json))
        return max(
            code,
            sequel.show(
                out, make_replay_options(recording.endpoint(REMEDY_REPLIES_FILE_NAME)), as_json
            ),
        )
    except PromptNotRecorded as error:
        # a prompt that was changed is the usual cause
        prompts = ", ".join(recording.changed_prompts())
        if prompts:
            why = f"these prompts were changed since: {prompts}"
        else:
            why = str(error)

        click.echo(f"The run can't be replayed: {why}.", err=True)
        click.echo(
            f"{out} holds the result as it was recorded on {recording.made}.",
            err=True,
        )
        recording.restore(out)
        return cli.PARTLY_DONE_EXIT_CODE
