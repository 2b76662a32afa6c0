"""What verbs print with, whatever they print: rows and cells for people, one line of JSON for scripts.

Apart from `show`, which knows runs and who works in them, and takes as long to import as these do.
"""

from __future__ import annotations

import json
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from pollex.conversations.display import printable


def table(*columns: str) -> Table:
    """A quiet table."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for column in columns:
        made.add_column(column)
    return made


def cell(text: str, limit: int = 200) -> Text:
    """Foreign text as a cell: no markup, no control characters."""
    return Text(printable(text, limit))


def print_json(values: dict[str, Any]) -> None:
    """One JSON object on the last line of standard output."""
    click.echo(json.dumps(values, ensure_ascii=True, allow_nan=False))
