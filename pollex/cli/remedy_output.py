"""What the verbs of `pollex remedy` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pollex.services.remedy.brief import MATTERS, NOTHING

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.services.remedy.brief import BriefResult
    from pollex.services.remedy.cases import CasesResult
    from pollex.services.remedy.result import RemedyResult


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


def show_remedy(screen: Screen, found: RemedyResult) -> None:
    """Print the verdict with its level, what speaks against it, the effects, and what is missing."""
    screen.say(f"{found.target.text}")
    screen.say(found.headline)
    for line in found.against:
        screen.say(f"  {line}")
    if found.traffic is not None:
        screen.say(f"Per 100 conversations of this log: {100 * found.traffic:+.1f} of the scale")
    worst = found.primary.worst
    screen.say(f"With missing new replies as failing: {worst.value:+.3f} [{worst.low:+.3f}, {worst.high:+.3f}]")
    for one in found.guardrails:
        effect = one.effect
        screen.say(f"  {one.state:8} {effect.value:+.3f} [{effect.low:+.3f}, {effect.high:+.3f}]  {one.name}")
    for arm, kinds in found.as_json()["missing"].items():
        if kinds:
            told = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
            screen.note(f"Note: missing under the {arm} prompt, and no score: {told}")
    for note in (*found.notes, *found.sample.notes):
        screen.note(f"Note: {note}")
    if found.out is not None:
        stem = found.out.with_suffix("")
        screen.say(f"Wrote {found.out}, {stem}-pairs.parquet and {stem}-edits (run {found.run})")
