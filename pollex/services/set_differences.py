"""Differences of two rubric sets: the same for terminal, Python and browser."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal

from pollex.agents.embedded.events.signal import event_source
from pollex.reports.transcript import MarkedText
from pollex.rubrics.headlines import Headline, headlines, hints_of, sounds_of, sounds_worth, turned
from pollex.rubrics.records import ChosenRubric, Remark
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import doubt, ends, nothing_leads, percent, signal_in_words
from pollex.services.results import Result, figures_json
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
    for remark in remarks:
        of = f"{count(remark.share.n, 'comment')} with thumbs {'up' if remark.polarity == 'sat' else 'down'}"
        share = f"{percent(remark.share)} of {of} ({ends(remark.share)})"
        yield rubric_line(
            f"What people wrote: “{remark.text}”", [share, *(f"“{one.text}”" for one in remark.quotes[:1])]
        )


def _group(heading: str, entries: Iterable[Headline], verbose: bool) -> Told:
    for number, entry in enumerate(entries):
        if not number:
            yield Line(f"{heading}:", "bold")
        for rubric in (entry.rubric, *entry.also):
            text = " ".join(filter(None, ("also:" * (rubric is not entry.rubric), *rubric.entry)))
            side = [SCORES[rubric.polarity]] if heading not in SIDES.values() else []
            details = [count(len(rubric.reason_ids), "reason")] if verbose else []
            if verbose and rubric.choice and rubric.choice.stability is not None:
                details.append(f"chosen in {100 * rubric.choice.stability:.0f} % of halves")
            figures = [*figures_of(rubric), *side, *details, f"id {rubric.id[:ID]}"]
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
    worth = rubric.worth
    shares = [share for share in (worth.down_with, worth.down_without) if share.value is not None]
    told = "thumbs down: " + ", elsewhere ".join(f"{percent(one)} of {one.n} ({ends(one)})" for one in shares)
    told = f"holds in none of {worth.holds.n}" if worth.down_with.value is None else told
    return [*stands, told, *beside, *([why] if why else [])]


Kind = Literal["added", "gone", "turned round", "reworded", "moved", "same"]


FORMS = {"del": "[-{}-]", "ins": "{{+{}+}}"}
"""How words are marked that only the first text has, or only the second."""


@dataclass(frozen=True)
class RubricChange:
    """A rubric in two sets; None where a set hasn't got it."""

    before: ChosenRubric | None
    after: ChosenRubric | None

    @property
    def kind(self) -> Kind:
        """Return what became of it."""
        if self.before is None or self.after is None:
            return "gone" if self.after is None else "added"
        if self.before.polarity != self.after.polarity:
            return "turned round"
        if self.before.text != self.after.text:
            return "reworded"
        return "same" if self.steps[0] == self.steps[1] else "moved"

    @property
    def steps(self) -> tuple[int | None, int | None]:
        """Return as which number it was chosen in each set."""
        first, second = (one.choice.step if one and one.choice else None for one in (self.before, self.after))
        return first, second

    @property
    def words(self) -> list[MarkedText]:
        """Return the words of both, marked where they differ."""
        return differing(self.before.text if self.before else "", self.after.text if self.after else "")

    @property
    def marked(self) -> str:
        """Return the words of both, those that differ in brackets."""
        forms = FORMS if self.before and self.after else {}
        return " ".join(forms.get(part.kind, "{}").format(part.text) for part in self.words)


@dataclass(frozen=True)
class SetDifference(Result):
    """The differences of two rubric sets.

    Attributes:
        changes: One a rubric: those of both sets, then what only the first has, then what only the second has.
    """

    before: RubricSet
    after: RubricSet
    changes: tuple[RubricChange, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Return how many rubrics became what."""
        kinds = [change.kind for change in self.changes]
        return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}

    def told(self) -> Told:
        """Yield figures, then the rubrics that differ."""
        for name, one in (("before", self.before), ("after", self.after)):
            auc = f"{one.held_out.auc}" if one.held_out else "nothing held out"
            yield f"{name}: {count(len(one.rubrics), 'rubric')}, θ {one.theta:.2f}, held-out AUC {auc}"
        yield ", ".join(f"{number} {kind}" for kind, number in self.counts.items())
        for change in self.changes:
            known = change.after or change.before
            assert known is not None, "one of the two sets has it"
            if change.kind != "same":
                about = [change.kind, SIDES[known.polarity].lower(), f"id {known.id}"]
                yield rubric_line(change.marked, about)

    def as_json(self) -> dict[str, Any]:
        sides = {"before": self.before, "after": self.after}
        figures = {
            name: {"rubrics": len(one.rubrics), "theta": one.theta, "held_out": figures_json(one.held_out) or None}
            for name, one in sides.items()
        }
        rows = [
            {
                "kind": change.kind,
                "id": (change.after or change.before).id,  # type: ignore[union-attr]
                "before": change.before and change.before.text,
                "after": change.after and change.after.text,
                "steps": change.steps,
            }
            for change in self.changes
        ]
        return figures | {"counts": self.counts, "changes": rows}


def diff_sets(before: Path | RubricSet, after: Path | RubricSet) -> SetDifference:
    """Compare two rubric sets, with what people edited in each.

    Raises:
        BadRubrics: A file can't be read.
    """
    first, second = (
        one if isinstance(one, RubricSet) else RubricSet.load(one, arrays=False) for one in (before, after)
    )
    return SetDifference(first, second, tuple(changes(first.rubrics, second.rubrics)))


def changes(before: Sequence[ChosenRubric], after: Sequence[ChosenRubric]) -> list[RubricChange]:
    """Pair rubrics by id, else by event and topic; what only one has comes last."""
    new = {rubric.id: rubric for rubric in after}
    pairs = {rubric.id: new[rubric.id] for rubric in before if rubric.id in new}
    taken = {rubric.id for rubric in pairs.values()}
    same = {meaning(rubric): rubric for rubric in after if rubric.id not in taken}
    for rubric in before:
        if rubric.id not in pairs and (found := same.pop(meaning(rubric), None)) is not None:
            pairs[rubric.id] = found
    paired = {rubric.id for rubric in pairs.values()}
    both = [RubricChange(rubric, pairs[rubric.id]) for rubric in before if rubric.id in pairs]
    gone = [RubricChange(rubric, None) for rubric in before if rubric.id not in pairs]
    return [*both, *gone, *(RubricChange(None, rubric) for rubric in after if rubric.id not in paired)]


def meaning(rubric: ChosenRubric) -> Hashable:
    """Return a key that rubrics with the same event, topic and side share."""
    source = event_source(rubric.source)
    if source is None:
        return rubric.id
    topic = source.topics.topics[source.event.topic].name if source.event.topic >= 0 else ""
    return source.event.pattern, topic, source.event.detail, rubric.polarity


def differing(before: str, after: str) -> list[MarkedText]:
    """Compare two texts word by word; what only the first has is `del`, only the second `ins`."""
    old, new = before.split(), after.split()
    found = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(MarkedText(" ".join(old[a:b])))
            continue
        found += [MarkedText(" ".join(old[a:b]), "del")] if b > a else []
        found += [MarkedText(" ".join(new[c:d]), "ins")] if d > c else []
    return found
