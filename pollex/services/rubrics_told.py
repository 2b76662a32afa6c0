"""Rubrics in words: one line of text and one of figures, under a heading that says their side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pollex.rubrics.headlines import Headline, headlines, hints_of, sounds_of, sounds_worth, turned
from pollex.rubrics.records import ChosenRubric, Remark, Worth
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import doubt, ends, nothing_leads, percent, signal_in_words
from pollex.text import Line, Told, count

SIDES: dict[Polarity, str] = {"dsat": "What goes wrong", "sat": "What goes well"}
SCORES: dict[Polarity, str] = {"dsat": "lowers the score", "sat": "raises the score"}
"""The side of a rubric, where the heading doesn't say it."""

TURNED = "Went the other way on conversations that they did not see"
HINTS = "Hints: too few conversations to tell"
LONGEST = 1000
REMARKS = 3
ID = 8
"""Characters of an id; `pollex why` takes the beginning."""


def rubrics_told(rubrics: RubricSet, verbose: bool = False) -> Told:
    """Yield what labels bear out, problems first; all others only if verbose."""
    leading = {side: headlines(rubrics.rubrics, side) for side in SIDES}
    for side, own in leading.items():
        yield from _group(SIDES[side], own, verbose)
    if not any(leading.values()):
        yield nothing_leads(rubrics.data.thumbs, rubrics.data.down)
    yield from _remarks(rubrics.remarks if verbose else rubrics.remarks[:REMARKS])
    hints, against, sounds = hints_of(rubrics.rubrics), turned(rubrics.rubrics), sounds_of(rubrics.rubrics)
    if verbose:
        yield from _group(HINTS, map(Headline, hints), verbose)
        yield from _group(TURNED, map(Headline, against), verbose)
        people = f"How people sound: these count for the score, {sounds_worth(sounds)}"
        yield from _group(people, map(Headline, sounds), verbose)
        return
    told = [count(len(hints), "hint: too few to tell", "hints: too few to tell")] if hints else []
    told += [f"{len(against)} that went the other way on conversations that they did not see"] if against else []
    told += [f"{len(sounds)} of how people sound"] if sounds else []
    if told:
        more = len(hints) + len(against) + len(sounds)
        yield f"{count(more, 'more rubric')} ({'; '.join(told)}): in the report, or here with -v"


def _remarks(remarks: Iterable[Remark]) -> Told:
    """Yield what people wrote with their thumb, the most frequent first, each with a quote."""
    for remark in remarks:
        of = f"{count(remark.share.n, 'comment')} with thumbs {'up' if remark.polarity == 'sat' else 'down'}"
        share = f"{percent(remark.share)} of {of} ({ends(remark.share)})"
        yield rubric_line(
            f"What people wrote: “{remark.text}”", [share, *(f"“{one.text}”" for one in remark.quotes[:1])]
        )


def _group(heading: str, entries: Iterable[Headline], verbose: bool) -> Told:
    """Yield rubrics under a heading, near twins after theirs; nothing where there are none."""
    for number, entry in enumerate(entries):
        if not number:
            yield Line(f"{heading}:", "bold")
        for rubric in (entry.rubric, *entry.also):
            text = " ".join(filter(None, ("also:" * (rubric is not entry.rubric), *rubric.entry)))
            side = [SCORES[rubric.polarity]] if heading not in SIDES.values() else []
            figures = [*figures_of(rubric), *side, *(_details(rubric) if verbose else []), f"id {rubric.id[:ID]}"]
            yield rubric_line(text, figures)


def rubric_line(text: str, figures: Sequence[str]) -> Line:
    """Return a rubric's words, with what is known of it below."""
    return Line(text, limit=LONGEST, below="; ".join(figures))


def figures_of(rubric: ChosenRubric) -> list[str]:
    """Return a rubric's worth in a few words, and why it can't be relied on."""
    stands = [rubric.stands] if rubric.standing else []
    if rubric.worth is None:
        return [*stands, "not measured on conversations that it did not see"]
    why = "" if stands else doubt(rubric.worth, rubric.polarity).partition(":")[0]
    beside = filter(None, map(signal_in_words, rubric.signals))
    return [*stands, worth_told(rubric.worth), *beside, *([why] if why else [])]


def worth_told(worth: Worth) -> str:
    """Return the shares of thumbs down with and without a rubric, each with its number and interval."""
    if worth.down_with.value is None:
        return f"holds in none of {worth.holds.n}"
    shares = [share for share in (worth.down_with, worth.down_without) if share.value is not None]
    return "thumbs down: " + ", elsewhere ".join(f"{percent(one)} of {one.n} ({ends(one)})" for one in shares)


def _details(rubric: ChosenRubric) -> list[str]:
    stability = rubric.choice.stability if rubric.choice else None
    share = [] if stability is None else [f"chosen in {100 * stability:.0f} % of halves"]
    return [count(len(rubric.reason_ids), "reason"), *share]
