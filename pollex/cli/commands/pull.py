"""`pollex pull`: logs from a tool's interface."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.services.transfer import Transferred


@click.command("pull")
@click.argument("tool", metavar="TOOL")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Output file of JSON lines; new rows are appended."
)
@click.option("--project", default="", help="Project to fetch logs from.")
@click.option(
    "--since", default="", metavar="TIME", help="Fetch only logs since this time, such as 2026-11-01T00:00:00Z."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
def command(tool: str, out: Path, project: str, since: str, as_json: bool) -> int:
    """Fetch logs and scores from langfuse, langsmith, phoenix, mlflow or open-webui into a file.

    Addresses and keys are taken from the variables that the tools' own clients use: LANGFUSE_PUBLIC_KEY,
    LANGFUSE_SECRET_KEY and LANGFUSE_BASE_URL; LANGSMITH_API_KEY; PHOENIX_BASE_URL and PHOENIX_API_KEY;
    MLFLOW_TRACKING_URI, where the project is the experiment; OPEN_WEBUI_URL and OPEN_WEBUI_API_KEY.
    A fetch that was stopped goes on; a later one fetches what is new.

    \b
    Examples
      pollex pull langfuse --out langfuse.jsonl
      pollex pull phoenix --project default --out spans.jsonl
    """
    from pollex.services.transfer import pull

    return cli.run(partial(pull, tool, out=out, project=project, since=since), show, as_json=as_json)


def show(screen: Screen, made: Transferred) -> None:
    """Print how many rows there are of each kind."""
    for name, rows in made.rows.items():
        screen.say(f"{rows} {name}")
    screen.say(f"Wrote {made.file}")
