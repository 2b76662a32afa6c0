"""A table in a file or a pipe loses nothing to a width that nobody asked for."""

import io

from rich.console import Console

from pollex.cli.session import make_table, print_table
from pollex.text import TerminalTable


def test_a_table_in_a_pipe_is_as_wide_as_it_is() -> None:
    columns = ["run", "started (UTC)", *(f"column {number}" for number in range(20))]
    cells = ["refit-2-4913", "11-28 15:37", *(f"value {number}" for number in range(20))]
    written = io.StringIO()
    print_table(
        Console(file=written, width=80),
        make_table(TerminalTable(columns, [cells], whole=range(22))),
    )
    lines = written.getvalue().splitlines()
    assert len(lines) == 3
    assert all(text in written.getvalue() for text in columns + cells)
