"""Differences of two rubric sets: the same for terminal, Python and browser."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal

from pollex.agents.embedded.events.signal import event_source
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.results import Result, figures_json
from pollex.services.rubrics_told import SIDES, rubric_line
from pollex.text import Told, count

Kind = Literal["added", "gone", "turned round", "reworded", "moved", "same"]


FORMS = {"del": "[-{}-]", "ins": "{{+{}+}}"}
"""How words are marked that only the first text has, or only the second."""


@dataclass(frozen=True)
class Words:
    """A piece of two texts: common, only in the first, or only in the second."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Change:
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
    def words(self) -> list[Words]:
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
    changes: tuple[Change, ...]

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


def changes(before: Sequence[ChosenRubric], after: Sequence[ChosenRubric]) -> list[Change]:
    """Pair rubrics by id, else by event and topic; what only one has comes last."""
    new = {rubric.id: rubric for rubric in after}
    pairs = {rubric.id: new[rubric.id] for rubric in before if rubric.id in new}
    taken = {rubric.id for rubric in pairs.values()}
    same = {meaning(rubric): rubric for rubric in after if rubric.id not in taken}
    for rubric in before:
        if rubric.id not in pairs and (found := same.pop(meaning(rubric), None)) is not None:
            pairs[rubric.id] = found
    paired = {rubric.id for rubric in pairs.values()}
    both = [Change(rubric, pairs[rubric.id]) for rubric in before if rubric.id in pairs]
    gone = [Change(rubric, None) for rubric in before if rubric.id not in pairs]
    return [*both, *gone, *(Change(None, rubric) for rubric in after if rubric.id not in paired)]


def meaning(rubric: ChosenRubric) -> Hashable:
    """Return a key that rubrics with the same event, topic and side share."""
    source = event_source(rubric.source)
    if source is None:
        return rubric.id
    topic = source.topics.topics[source.event.topic].name if source.event.topic >= 0 else ""
    return source.event.pattern, topic, source.event.detail, rubric.polarity


def differing(before: str, after: str) -> list[Words]:
    """Compare two texts word by word."""
    old, new = before.split(), after.split()
    found = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(Words(" ".join(old[a:b])))
            continue
        found += [Words(" ".join(old[a:b]), "del")] if b > a else []
        found += [Words(" ".join(new[c:d]), "ins")] if d > c else []
    return found
