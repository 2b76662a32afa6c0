"""`pollex inspect`: what files of logs hold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import logs_argument, with_logs
from pollex.cli.settings import set_option

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions


@click.command("inspect", cls=Verb)
@logs_argument
@with_logs("judge_field", "group_field", "comment_field")
@set_option("encoding", "redact", "comments", "on_duplicate", "thumbs", "pairs")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
def command(logs: tuple[str, ...], reading: ReadOptions, as_json: bool) -> int:
    """Tell what files hold before anything is learned from them.

    That is formats, fields, labels with their spellings, scores with their sources, roles, lengths, images, languages,
    duplicates, bad rows by cause, and two conversations as they were read.

    \b
    Examples
      pollex inspect logs.jsonl
      pollex inspect export/ --label-field feedback.score --positive 1 --negative 0
      pollex inspect spans.jsonl annotations.jsonl --json
    """
    from pollex.cli.inspect_output import show_inspection
    from pollex.services.inspect import inspect_logs

    return cli.run(partial(inspect_logs, logs, reading=reading), show_inspection, as_json=as_json)
