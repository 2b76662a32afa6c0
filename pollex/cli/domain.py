"""Questions for a domain profile."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from pollex.errors import WrongUse
from pollex.formats.write import require_writable_output_path
from pollex.outputs import write_text
from pollex.prompts.domain import DomainProfile

if TYPE_CHECKING:
    from pollex.usecases.domain import WriteProfile


def ask_for_profile(use_case: WriteProfile) -> None:
    """Ask, and write the profile."""
    out = use_case.out
    if out.exists():
        raise WrongUse(
            "the file is there already",
            where=str(out),
            hint="give another name",
            option="out",
        )

    # before the questions, so that nobody answers them for nothing
    require_writable_output_path(out)
    answers: dict[str, object] = {}
    for name, field in DomainProfile.questions().items():
        # lists take an answer a line, and only expectations must have one
        if name in ("expectations", "notes"):
            answers[name] = ask_for_lines(field.description, needed=name == "expectations")
        else:
            answers[name] = click.prompt(str(field.description))

    profile = DomainProfile.model_validate(answers)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, profile.toml())
    click.echo(f"Wrote {out}. Use it: pollex learn LOGS --domain {shlex.quote(str(out))}")


def ask_for_lines(question: str | None, *, needed: bool) -> list[str]:
    """Ask for answers, one a line, until an empty one."""
    click.echo(f"{question} An empty line ends the list.")
    lines: list[str] = []
    while line := click.prompt(f"  {len(lines) + 1}", default="", show_default=False):
        lines.append(line)

    # a list that is needed has one entry at least
    return lines or ([click.prompt("  at least one")] if needed else [])
