"""What `pollex turns` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pollex.cli.output import figure_text, table
from pollex.services.evaluate import SEEN

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.services.turns import TurnsResult


def show_turns(screen: Screen, found: TurnsResult) -> None:
    """Show the log-loss after each number of turns, beside that of the share of thumbs up."""
    made = table("turns of the user", "n", "log-loss", "of the share alone", "gain", "given")
    for one in found.rubrics.turns:
        cells = (figure_text(one.log_loss), figure_text(one.share_log_loss), figure_text(one.gain))
        made.add_row(str(one.turns), str(one.n), *cells, "yes" if one.helps else "no")
    screen.console.print(made)
    screen.say(f"{found.headline[:1].upper()}{found.headline[1:]}")
    for how, number in found.seen.items():
        if number:
            screen.say(f"Note: {SEEN[how]} {number} of these conversations: figures are too good.", "yellow")
    for path in filter(None, (found.out, found.scores)):
        screen.say(f"Wrote {path}")
