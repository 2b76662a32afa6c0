"""What `pollex distill` prints."""

from __future__ import annotations

from pollex.cli.output import cell, figure_text, show_used, table
from pollex.cli.session import Screen
from pollex.services.distill import DistillResult
from pollex.text import count


def show_distilled(screen: Screen, found: DistillResult) -> None:
    """Show each rubric's fidelity, both sets beside each other, and what asking the model buys."""
    made = table("id", "rubric", "correlation with the model's answers", "answered by")
    for one in found.fidelity:
        made.add_row(cell(one.id), cell(one.text), figure_text(one.correlation), one.by)
    screen.console.print(made)
    mean = "undefined" if found.mean_correlation is None else f"{found.mean_correlation:.3f}"
    screen.say(f"Mean correlation, cross-fitted: {mean} ({count(found.n, 'conversation')})")
    for name, auc in found.auc.items():
        screen.say(
            f"Held out, {name}: AUC {figure_text(auc)}; log-loss {figure_text(found.log_loss[name])} (n = {auc.n})"
        )
    screen.say(f"AUC lost: {figure_text(found.lost)}")
    for row in found.cascade:
        screen.say(
            f"  the model asked about {row.asked:.0%}: decisions right {figure_text(row.right)} of {row.right.n}"
        )
    before, now = found.calls
    screen.say(f"Calls a conversation: {before} before, {now} now")
    show_used(screen, found.usage)
    if found.out is not None:
        screen.say(f"Wrote {found.out} ({found.rubrics.judge.name}; run {found.run})")
