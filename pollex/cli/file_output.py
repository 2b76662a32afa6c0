"""Lines on files that were exported, fetched, sent or rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.services.exchange import Exported
    from pollex.services.forget import Forgotten
    from pollex.services.transfer import Transferred


def show_exported(screen: Screen, made: Exported) -> None:
    """Print the files, how the tool comes to NetSAT, and what it can't say."""
    for path in made.files:
        screen.say(f"Wrote {path}")
    screen.say(f"NetSAT in {made.target.name} ({made.target.version}): {made.target.netsat}")
    for note in made.notes:
        screen.note(f"Note: {note}")


def show_transferred(screen: Screen, made: Transferred) -> None:
    """Print how many requests were sent, or how many rows of each kind there are."""
    if "requests" in made.rows:
        screen.say(f"Sent {made.rows['requests']} requests of {made.file} to {made.tool}")
        return
    for name, rows in made.rows.items():
        screen.say(f"{rows} {name}")
    screen.say(f"Wrote {made.file}")


def show_forgotten(screen: Screen, found: Forgotten) -> None:
    """Print what went, and what still quotes it."""
    rows = ", ".join(f"{count} {name}" for name, count in found.gone.items())
    screen.say(f"Forgot {found.conversations} conversations ({rows or 'nothing was kept of them'})")
    for path in found.quoting:
        screen.say(f"{'Rewritten' if path in found.rewritten else 'Still quotes them'}: {path}")
    for path in found.left:
        screen.say(f"Set aside as damaged, and not looked into: {path}")
    if set(found.quoting) - set(found.rewritten):
        screen.say("--rewrite would have taken the quotes out: make these files again, or edit them", "bold")
