"""What the verbs of `pollex remedy` print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    """Print each verdict with its level, what speaks against it, the effects, and what is missing."""
    record = found.record
    screen.say(record["target"]["text"])
    if room := record["headroom"]:
        screen.say(
            f"Room {room['room']:+.3f} (at most {room['room_high']:+.3f}); with hints {room['ceiling']['value']:+.3f}"
        )
    for one in record["candidates"]:
        screen.say(
            f"  {'proven' if one['proven'] else one['refused'] or 'not selected':32} {one['name']}: {one['purpose']}"
        )
    if not found.edits:
        screen.say(found.verdict)
    for edit in found.edits:
        screen.say(f"{edit.name}: {edit.headline}")
        for line in edit.against:
            screen.say(f"  {line}")
        if edit.traffic is not None:
            screen.say(f"Per 100 conversations of this log: {100 * edit.traffic:+.1f} of the scale")
        for what, one in (("Thumbs up", edit.thumbs), ("A reader without rubrics", edit.pair), ("People", edit.people)):
            if one is not None:
                told = one.get("reason") if one["value"] is None else interval(one)
                screen.say(f"{what}: {told}")
        screen.say(f"With missing new replies as failing: {interval(edit.primary['worst'])}")
        for guard in edit.guardrails:
            sealed = " (sealed)" if guard["sealed"] else ""
            screen.say(f"  {guard['state']:8} {interval(guard['effect'])}  {guard['name']}{sealed}")
    for arm, kinds in record["missing"].items():
        if kinds:
            told = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
            screen.note(f"Note: missing under the {arm} prompt, and no score: {told}")
    for note in record["notes"]:
        screen.note(f"Note: {note}")
    if found.out is not None:
        stem = found.out.with_suffix("")
        screen.say(f"Wrote {found.out}, {stem}-pairs.parquet and {stem}-edits (run {found.run})")


def interval(one: dict[str, Any]) -> str:
    """Return an effect with its interval."""
    return f"{one['value']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]"
