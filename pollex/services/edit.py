"""Edit the rubrics of a set: in the file that people edit, beside the set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pollex.calibration.files import write_whole
from pollex.errors import WrongUse
from pollex.graphs.context import Progress
from pollex.rubrics.edits import Entry, edits_beside, entries_of, toml_of
from pollex.rubrics.headlines import went_the_other_way
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import BY
from pollex.services.rejudging import preview
from pollex.services.results import Result
from pollex.services.set_differences import SCORES, SIDES, TURNED, figures_of, rubric_line
from pollex.services.workspace import complete
from pollex.store.store import Store
from pollex.text import Line, Told


@dataclass(frozen=True)
class EditedSet(Result):
    """A rubric set with what people edited.

    Attributes:
        path: Of the set.
        changed: The id of the rubric that was added, removed or reworded; empty where the set was only read.
        judged: By what a reworded rubric is judged now, in words.
    """

    path: Path
    rubrics: RubricSet
    changed: str = ""
    judged: str = ""

    @property
    def edits(self) -> Path:
        """Return the file that people edit."""
        return edits_beside(self.path)

    @property
    def rows(self) -> list[tuple[ChosenRubric, bool]]:
        """Return all rubrics, each with whether it is on."""
        return [(one, True) for one in self.rubrics.rubrics] + [(one, False) for one in self.rubrics.off]

    def told(self) -> Told:
        """Yield where a change was written; without a change the rubrics, and whether changes wait for a refit."""
        if self.changed:
            yield f"{self.changed}: wrote {self.edits}"
            if self.judged:
                yield self.judged
            return
        groups: dict[str, list[tuple[ChosenRubric, bool]]] = {heading: [] for heading in (*SIDES.values(), TURNED)}
        for rubric, on in self.rows:
            groups[TURNED if went_the_other_way(rubric) else SIDES[rubric.polarity]].append((rubric, on))
        for heading, own in groups.items():
            if own:
                yield Line(f"{heading}:", "bold")
            for rubric, on in own:
                side = SCORES[rubric.polarity] if heading == TURNED else ""
                by = f"judge {rubric.answered_by}" if rubric.answered_by else ""
                state = (side, by, "edited" * is_edited(rubric), "" if on else "off", rubric.note, f"id {rubric.id}")
                yield rubric_line(rubric.text, [*figures_of(rubric), *filter(None, state)])
        yield f"Judge: {self.rubrics.judge.name}"
        if self.rubrics.edited:
            again = f"pollex refit LOGS --rubrics {self.path}"
            yield Line(f"Edited since θ was fitted; fit it again: {again}", "yellow")

    def as_json(self) -> dict[str, Any]:
        return self.of("edits", "refit=rubrics.edited", "changed", "judged") | {
            "rubrics": [
                {"id": r.id, "text": r.text, "polarity": r.polarity, "on": on, "note": r.note, "edited": is_edited(r)}
                for r, on in self.rows
            ]
        }


def is_edited(rubric: ChosenRubric) -> bool:
    """Tell whether a rubric's words are not those that θ was fitted for."""
    return rubric.text != rubric.written


def list_rubrics(rubrics: Path) -> EditedSet:
    """Read a rubric set with what people edited.

    Raises:
        BadRubrics: The set or its edits can't be read.
    """
    return EditedSet(rubrics, RubricSet.load(rubrics, arrays=False))


def add_rubric(
    rubrics: Path, text: str, polarity: Polarity, *, note: str = "", progress: Progress | None = None
) -> EditedSet:
    """Add a rubric in a person's words.

    Raises:
        WrongUse: It has no words, or the set has it already.
    """
    new = Entry(text=_worded(text), polarity=polarity, note=note)
    entries = _entries(rubrics)
    if any(entry.name == new.name for entry in entries):
        raise WrongUse(f"the set has this rubric already: {new.name}", where=str(rubrics), remedy="reword that one")
    return _written(rubrics, [*entries, new.model_copy(update={"id": new.name})], new.name, progress)


def remove_rubric(rubrics: Path, rubric: str, *, progress: Progress | None = None) -> EditedSet:
    """Take a rubric out of a set.

    Raises:
        WrongUse: The set has no such rubric, or no other.
    """
    id_ = _found(rubrics, rubric)
    rest = [entry for entry in _entries(rubrics) if entry.name != id_]
    if not any(entry.on for entry in rest):
        raise WrongUse("it is the only active rubric", where=str(rubrics), remedy="add another one first")
    return _written(rubrics, rest, id_, progress)


def reword_rubric(
    rubrics: Path,
    rubric: str,
    text: str,
    *,
    note: str | None = None,
    judge_anew: bool = False,
    store: Path | None = None,
    progress: Progress | None = None,
) -> EditedSet:
    """Give a rubric other words; its id stays.

    Args:
        judge_anew: True gives up by what it was judged; then it is judged by its new words, where that can be.
        store: Where the conversations are on which figures of both are shown.

    Raises:
        WrongUse: The set has no such rubric, or there are no words.
    """
    id_, words = _found(rubrics, rubric), _worded(text)
    changes: dict[str, Any] = {"text": words} | ({} if note is None else {"note": note})
    changes |= {"judge_anew": True} if judge_anew else {}
    worded = [entry.model_copy(update=changes) if entry.name == id_ else entry for entry in _entries(rubrics)]
    found = _written(rubrics, worded, id_, progress)
    return replace(found, judged=_judged(found, store))


def _judged(found: EditedSet, store: Path | None) -> str:
    rubric = next(one for one, _ in found.rows if one.id == found.changed)
    if rubric.anew:
        return _foretold(found, store) or "It is judged anew; `pollex refit` shows AUC and shares before and after"
    if rubric.alone is None or rubric.alone.by in ("model", "likeness"):  # these read its words
        return ""
    return f"It is still judged by {BY[rubric.alone.by]}; --judge-anew gives that up for its new words"


def _foretold(found: EditedSet, store: Path | None) -> str:
    before = RubricSet.load(found.path, arrays=False, edits=False)
    if store is None or not store.is_dir() or not before.judge.built_in:
        return ""
    with Store.open(store, read_only=True) as opened:
        if not opened.rows("SELECT id FROM runs WHERE id = ?", [before.run]):
            return ""
        asked = [one for one in found.rubrics.rubrics if one.id == found.changed]
        seen = complete(preview(opened, before.run, before, asked, np.random.default_rng(0)))
    return " ".join(one.told for one in seen.changed)


def _entries(path: Path) -> tuple[Entry, ...]:
    found = RubricSet.load(path, arrays=False)
    return entries_of(found.rubrics, found.off)


def _written(path: Path, entries: Sequence[Entry], id_: str, progress: Progress | None) -> EditedSet:
    write_whole(edits_beside(path), toml_of(entries, path.name).encode())
    found = EditedSet(path, RubricSet.load(path, arrays=False), id_)
    if progress is not None and found.rubrics.edited:
        progress.note(f"It counts once it is fitted: pollex refit LOGS --rubrics {path}")
    return found


def _found(path: Path, rubric: str) -> str:
    known = [entry.name for entry in _entries(path)]
    near = [id_ for id_ in known if id_ == rubric] or [id_ for id_ in known if rubric and id_.startswith(rubric)]
    if len(near) != 1:
        what = f"{'several rubrics begin' if near else 'no rubric begins'} with {rubric!r:.60}"
        raise WrongUse(what, where=str(path), remedy=f"`pollex rubrics list {path}` has the ids")
    return near[0]


def _worded(text: str) -> str:
    if not (words := " ".join(text.split())):
        raise WrongUse("the rubric has no text", remedy="write a statement that is true or false of a conversation")
    return words
