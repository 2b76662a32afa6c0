"""Output of `pollex share` and `label next --for share`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from pollex.cli.output import LISTED, cell, show_rows, table
from pollex.measures.intervals import Figure
from pollex.measures.share import FEWEST, Share
from pollex.services.share import WAYS

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.services.compare import CompareResult
    from pollex.services.draw import DrawnConversations
    from pollex.services.share import Estimates, ShareResult


def show_share(screen: Screen, found: ShareResult) -> None:
    """Print the estimates for all conversations, then by group."""
    total = found.total
    screen.say(f"Share of good conversations, of {total.conversations:,} in all")
    made = table("", "share", "95 % interval", "labels")
    for how, share in total.known:
        made.add_row(WAYS[how], f"{share.value:.3f}", ends_of(share), f"{share.n:,}")
    for bound in total.bounds:
        name = f"of all, if good and bad ones vote up to {bound.factor:g} times unequally"
        made.add_row(name, "", f"[{bound.low:.3f}, {bound.high:.3f}]", "")
    if made.row_count:
        screen.console.print(made)
    for line in explained(total):
        screen.say(line)
    if found.groups:
        screen.console.print(groups_table(found))
    for note in found.notes:
        screen.say(f"Note: {note}", "yellow")
    if found.page:
        screen.say(f"Wrote {found.page}")


def explained(found: Estimates) -> list[str]:
    """Say what the figures mean, and what is missing."""
    lines = []
    if (share := found.at_random) is not None:
        if share.gain > 1:
            lines.append(f"With scores, one label is worth {share.gain:.2f} labels here.")
        if share.note:
            lines.append(f"Labels at random: {share.note}.")
    if found.adjusted is not None and found.adjusted.note:
        lines.append(f"Votes: {found.adjusted.note}.")
    if (test := found.dependence) is not None:
        said = "Votes depend on satisfaction" if test.p < 0.05 else "No sign that votes depend on satisfaction"
        lines.append(
            f"{said} (difference {test.difference:+.3f}, p = {test.p:.3f}; a factor of 2 would be found with "
            f"probability {test.power:.2f})."
        )
    if found.missing:
        lines.append(f"No estimate from fewer than {FEWEST} labels: {found.needs}.")
    return lines


def groups_table(found: ShareResult) -> Table:
    """Make a table of a row a group."""
    made = table(found.by, "conversations", "share", "95 % interval", "labels")
    for one, share in found.compared:
        size, labels = f"{one.conversations:,}", f"{sum(one.labels.values()):,}"
        if share is None:
            made.add_row(cell(one.name), size, "–", one.needs or "no labels of this kind", labels)
        else:
            made.add_row(cell(one.name), size, f"{share.value:.3f}", ends_of(share), f"{share.n:,}")
    return made


def ends_of(share: Share) -> str:
    """Write the interval."""
    return f"[{share.low:.3f}, {share.high:.3f}]"


def show_drawn(screen: Screen, found: DrawnConversations) -> None:
    """Print what was drawn, and the interval that the labels will give."""
    number = len(found.rows)
    screen.say(
        f"{number:,} of {found.population:,} conversations, drawn at random: only a random sample speaks for all."
    )
    for name, half in found.half_width.items():
        of = f" of {name} ({found.groups[name]} labels)" if name else f" ({number} labels)"
        screen.say(f"The share{of} will be known to about ±{half:.3f} (if it is {found.share:.2f}).")
    if found.out is None:
        show_rows(screen.console, found.rows, ("id", "begins"))
    else:
        screen.say(f"Wrote {found.out}. Fill in the thumbs, then: pollex share LOGS --labels {found.out}")


def show_comparison(screen: Screen, found: CompareResult) -> None:
    """Print the difference to the first sample, and the rubrics that moved."""
    for one in found.comparisons:
        a, b = one.sizes
        screen.say(f"{one.second} compared with {one.first}", "bold")
        made = table("", "difference", "95 % interval", "n")
        made.add_row(
            f"mean P(thumb up), {one.means[0]:.3f} → {one.means[1]:.3f}", *_figure(one.probability), f"{a} and {b}"
        )
        made.add_row("mean NetSAT", *_figure(one.netsat), f"{a} and {b}")
        if one.share is not None:
            n = f"{one.labels[0]} and {one.labels[1]} labels"
            made.add_row("share of good ones", f"{one.share.value:+.3f}", ends_of(one.share), n)
        screen.console.print(made)
        moved = [each for each in one.rubrics if each.moved]
        screen.say(f"{len(moved)} of {len(one.rubrics)} rubrics moved by more than chance{':' if moved else '.'}")
        for each in moved[:LISTED]:
            screen.say(f"  {each.polarity.upper():<4} {each.before:.2f} → {each.after:.2f}  {each.text}")
        plan = one.plan
        screen.say(
            f"To see a difference of {plan.difference:g}: {plan.conversations:,} conversations a side by mean scores, "
            f"or {plan.labels:,} labels a side with scores ({plan.labels_alone:,} without)."
        )
        for note in one.notes:
            screen.say(f"Note: {note}", "yellow")
    if found.unscored:
        screen.say(f"{found.unscored} conversations without a score were left out.")
    if found.page:
        screen.say(f"Wrote {found.page}")


def _figure(figure: Figure) -> tuple[str, str]:
    if figure.value is None:
        return "", figure.undefined
    ends = "too few" if figure.low is None or figure.high is None else f"[{figure.low:.3f}, {figure.high:.3f}]"
    return f"{figure.value:+.3f}", ends
