"""What the verbs of `pollex remedy` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pollex.services.remedy.brief import MATTERS, NOTHING

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.services.remedy.brief import BriefResult
    from pollex.services.remedy.cases import CasesResult


def show_brief(screen: Screen, found: BriefResult) -> None:
    """Print a line a target, what can't be tested, and where the brief stands."""
    for one in found.targets:
        share = f"{one.share.value:.1%} of {one.share.n}"
        screen.say(f"{one.rubric.id}  {share:>14}  {one.rubric.text}")
        screen.say(f"{'':12}  {'':>14}  {MATTERS[one.matter]}")
        for number, line in one.lines[:1]:
            screen.say(f"{'':12}  {'':>14}  line {number} of the prompt: {line}")
    if found.untestable:
        screen.note(f"Note: {len(found.untestable)} headlines can't be tested at a reply; the brief says why")
    screen.say(NOTHING)
    if found.out is not None:
        screen.say(f"Wrote {found.out}")


def show_cases(screen: Screen, made: CasesResult) -> None:
    """Print the files and what was left out."""
    screen.say(made.headline)
    for path in made.files:
        screen.say(f"Wrote {path}")
    for note in made.notes:
        screen.note(f"Note: {note}")
