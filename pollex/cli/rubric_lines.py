"""Rubrics on a terminal: one line of text and one of figures, under a heading that says their side."""

from __future__ import annotations

from collections.abc import Sequence

from rich.padding import Padding
from rich.text import Text

from pollex.cli.session import Screen
from pollex.rubrics.headlines import Headline, headlines, hints_of, sounds_of, sounds_worth, turned
from pollex.rubrics.records import ChosenRubric, Worth
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import consists_of, doubt, ends, nothing_leads, percent
from pollex.text import count, printable

SIDES: dict[Polarity, str] = {"dsat": "What goes wrong", "sat": "What goes well"}
SCORES: dict[Polarity, str] = {"dsat": "lowers the score", "sat": "raises the score"}
"""The side of a rubric, where the heading doesn't say it."""

TURNED = "Went the other way on held-out conversations"
HINTS = "Hints: too few conversations to tell"
LONGEST = 1000
ID = 8
"""Characters of an id; `pollex why` takes the beginning."""


def show_rubrics(screen: Screen, rubrics: RubricSet) -> None:
    """Show what labels bear out, problems first; all others only if verbose."""
    leading = {side: headlines(rubrics.rubrics, side) for side in SIDES}
    for side, own in leading.items():
        show_group(screen, SIDES[side], own)
    if not any(leading.values()):
        screen.say(nothing_leads(rubrics.data.thumbs, rubrics.data.down))
    hints, against, sounds = hints_of(rubrics.rubrics), turned(rubrics.rubrics), sounds_of(rubrics.rubrics)
    if screen.verbose:
        show_group(screen, HINTS, alone(hints))
        show_group(screen, TURNED, alone(against))
        show_group(screen, f"How people sound: these count for the score, {sounds_worth(sounds)}", alone(sounds))
        return
    told = [count(len(hints), "hint: too few to tell", "hints: too few to tell")] if hints else []
    told += [f"{len(against)} that went the other way on held-out conversations"] if against else []
    told += [f"{len(sounds)} of how people sound"] if sounds else []
    if told:
        more = len(hints) + len(against) + len(sounds)
        screen.say(f"{count(more, 'more rubric')} ({'; '.join(told)}): in the report, or here with -v")


def alone(rubrics: Sequence[ChosenRubric]) -> list[Headline]:
    """Make an entry of each rubric."""
    return list(map(Headline, rubrics))


def show_group(screen: Screen, heading: str, entries: Sequence[Headline]) -> None:
    """Show rubrics under a heading, near twins after theirs; nothing where there are none."""
    if entries:
        screen.say(f"{heading}:", "bold")
    for entry in entries:
        for rubric in (entry.rubric, *entry.also):
            text = rubric.text if rubric is entry.rubric else f"also: {rubric.text}"
            side = [SCORES[rubric.polarity]] if heading not in SIDES.values() else []
            show_lines(screen, text, [*figures_of(rubric), *side, *_details(screen, rubric), f"id {rubric.id[:ID]}"])
            if told := consists_of(rubric.family):
                screen.say(f"    {printable(told, LONGEST)}")


def show_lines(screen: Screen, text: str | Text, figures: Sequence[str]) -> None:
    """Print a line of text and one of figures, which a terminal breaks between words and keeps indented."""
    shown = text if isinstance(text, Text) else Text(printable(text, LONGEST))
    for line, indent in ((shown, 2), (Text(printable("; ".join(figures), LONGEST), "dim"), 4)):
        if screen.console.is_terminal:
            screen.console.print(Padding(line, (0, 0, 0, indent)))
        else:
            screen.console.print(Text(" " * indent) + line, soft_wrap=True)


def figures_of(rubric: ChosenRubric) -> list[str]:
    """Return a rubric's worth in a few words, and why it can't be relied on."""
    stands = [rubric.stands] if rubric.standing else []
    if rubric.worth is None:
        return [*stands, "not measured on held-out conversations"]
    why = "" if stands else doubt(rubric.worth, rubric.polarity).partition(":")[0]
    return [*stands, worth_told(rubric.worth), *([why] if why else [])]


def worth_told(worth: Worth) -> str:
    """Return the shares of thumbs down with and without a rubric, each with its number and interval."""
    if worth.down_with.value is None:
        return f"holds in none of {worth.holds.n}"
    shares = [share for share in (worth.down_with, worth.down_without) if share.value is not None]
    return "thumbs down: " + ", elsewhere ".join(f"{percent(one)} of {one.n} ({ends(one)})" for one in shares)


def _details(screen: Screen, rubric: ChosenRubric) -> list[str]:
    if not screen.verbose:
        return []
    stability = rubric.choice.stability if rubric.choice else None
    share = [] if stability is None else [f"chosen in {100 * stability:.0f} % of resamples"]
    return [count(len(rubric.reason_ids), "reason"), *share]
