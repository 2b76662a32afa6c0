"""`pollex serve`: runs, conversations, rubric sets and labels in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from pollex.store.folder import STORE, VARIABLE

EXAMPLE = Path("pollex-example")


@click.command("serve")
@click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    envvar=VARIABLE,
    help=f"The store's folder; else {STORE}, or the only one below the current folder.",
)
@click.option(
    "--rubrics", type=click.Path(path_type=Path), multiple=True, help="Rubric set; default: those next to the store."
)
@click.option(
    "--calibrator",
    "calibrators",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Calibrator's folder; default: those next to the store. Repeatable.",
)
@click.option("--profiles", type=click.Path(path_type=Path), help="Models that pages may ask, as TOML.")
@click.option(
    "--study",
    "studies",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Study in which people talk to systems, as TOML. Repeatable.",
)
@click.option(
    "--score", type=click.Path(path_type=Path), metavar="SET", help="Serve scores by this rubric set, and no pages."
)
@click.option("--queue", default=256, show_default=True, help="With --score: conversations that may wait.")
@click.option("--events", metavar="URL", help="With --score: OpenTelemetry collector that each score is sent to.")
@click.option("--example", is_flag=True, help="Show the recorded run of a large language model on the sample log.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=8765, show_default=True, help="Port to listen at; 0 takes a free one.")
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Host name of the server, if it is not only used locally. Repeatable.",
)
@click.option("--behind", metavar="URL", help="Address of the proxy in front of it.")
@click.option("--read-only", is_flag=True, help="Allow no changes.")
@click.option("--no-token", is_flag=True, help="Require no token; on this machine only.")
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON object.")
def command(
    store: Path | None,
    rubrics: tuple[Path, ...],
    calibrators: tuple[Path, ...],
    profiles: Path | None,
    studies: tuple[Path, ...],
    score: Path | None,
    queue: int,
    events: str | None,
    example: bool,
    host: str,
    port: int,
    allow_host: tuple[str, ...],
    behind: str | None,
    read_only: bool,
    no_token: bool,
    no_open: bool,
    as_json: bool,
) -> int:
    """Show runs, conversations, rubric sets and labels in the browser.

    It listens on this machine only, and lets in whoever has the token in the address that it prints. It sends nothing
    anywhere.

    \b
    Examples
      pollex demo && pollex serve
      pollex serve --example
      pollex serve --store .pollex --rubrics rubrics.json --port 0
      POLLEX_TOKEN=… pollex serve --score rubrics.json
    """
    if score is not None:
        from pollex.web.live.server import Scoring, serve_scores

        return serve_scores(
            Scoring(score, store, host=host, port=port, queue=queue, token=not no_token, as_json=as_json, events=events)
        )
    from pollex.web.server import Serving, serve

    replay = None
    if example:
        from pollex.services.recorded import RUBRICS, Recording, sets_in

        store, rubrics = EXAMPLE / STORE, sets_in(EXAMPLE)
        if not (EXAMPLE / RUBRICS).exists():
            Recording.bundled().prepare(store)
            replay = EXAMPLE
    return serve(
        Serving(
            replay=replay,
            store=store,
            rubrics=rubrics,
            calibrators=calibrators,
            profiles=profiles,
            studies=studies,
            host=host,
            port=port,
            names=allow_host,
            behind=behind,
            read_only=read_only,
            token=not no_token,
            opens=not no_open,
            as_json=as_json,
        )
    )
