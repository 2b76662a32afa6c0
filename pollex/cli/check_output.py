"""Output of `pollex check`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli.output import cell, table
from pollex.formats.gates import summary, workflow_commands

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.services.check import CheckResult

STYLES = {"failed": "red", "open": "yellow", "passed": "green"}


def show_check(screen: Screen, found: CheckResult, github: bool) -> None:
    """Print a row a condition, and what drifted.

    Args:
        github: Whether GitHub's annotations are printed, too.
    """
    made = table("fails if", "", "figures")
    for one in found.verdicts:
        made.add_row(cell(one.condition), f"[{STYLES[one.status]}]{one.status}[/]", cell(one.message, 200))
    screen.console.print(made)
    if found.again:
        screen.say("Intervals hold at every look, however often this is run.")
    for note in found.comparison.notes:
        screen.say(f"Note: {note}", "yellow")
    if found.unscored:
        screen.say(f"{found.unscored} conversations without a score were left out.")
    for path in found.written:
        screen.say(f"Wrote {path}")
    screen.say("The gate is shut: exit code 4." if found.failed else "The gate is open.", "bold")
    if github:
        show_annotations(found, os.environ.get("GITHUB_STEP_SUMMARY"))


def show_annotations(found: CheckResult, step_summary: str | None) -> None:
    """Print GitHub's annotations; append the table to the summary of the step."""
    verdicts = [(one.condition, one.status, one.message) for one in found.verdicts]
    for line in workflow_commands(verdicts, strict=found.strict):
        click.echo(line)
    if step_summary:
        with Path(step_summary).open("a", encoding="utf-8") as file:
            file.write(summary(verdicts))
