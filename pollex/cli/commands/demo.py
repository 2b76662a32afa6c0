"""`pollex demo`: the main job on the bundled sample log."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pollex.cli import session as cli
from pollex.services.options import RunOptions


@click.command("demo")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("pollex-demo"), show_default=True, help="Output folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
@click.option("--serve", "serves", is_flag=True, help="Show the results in the browser afterwards.")
def command(out: Path, as_json: bool, serves: bool) -> int:
    """Learn, score and report on the bundled sample log, with built-in roles.

    This needs no LLM, no network and no key. The log holds 480 invented conversations of customers with the assistant
    of a bicycle shop, 400 of them with a thumb; it was made for this project.

    \b
    Examples
      pollex demo --serve
      pollex demo && open pollex-demo/report.html
    """
    from importlib.resources import as_file, files

    from pollex.cli.output import show_learned, show_scores
    from pollex.formats.fields import ReadOptions
    from pollex.graphs.learn.state import LearnSettings
    from pollex.services.learn import learn
    from pollex.services.options import ModelOptions
    from pollex.services.score import score
    from pollex.store.folder import store_option

    run = RunOptions(out / ".pollex", on_interrupt=cli.announce_stop)
    model, reading, rubrics = ModelOptions(), ReadOptions(group_field="user_id"), out / "rubrics.json"
    with as_file(files("pollex.examples")) as examples:
        log, domain = str(examples / "bikes.jsonl"), examples / "bikes.toml"
        bound = partial(learn, log, out=rubrics, domain=domain, rubrics_from=None, settings=LearnSettings())
        learnt = cli.run(partial(bound, reading=reading, run=run, model=model), show_learned, as_json=as_json)
        scoring = partial(
            score, log, rubrics, out=out / "scores.jsonl", judges=(), reading=reading, run=run, model=model
        )
        scored = cli.run(scoring, show_scores, as_json=as_json)
    click.echo(f"\nLook at {out / 'report.html'}, or try", err=as_json)
    click.echo(f"  pollex trace last{store_option(run.store)}", err=as_json)
    click.echo("  pollex learn YOUR-LOGS.jsonl", err=as_json)
    if serves and not as_json:
        from pollex.web.server import Serving, serve

        return serve(Serving(store=run.store, rubrics=(rubrics,)))
    return max(learnt, scored)
