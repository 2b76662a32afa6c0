"""Mark the rubrics of a set that are hard to judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pollex.agents.embedded.deduplicator import BY_DESIGN, NEAR
from pollex.agents.embedded.embedder import Embedder
from pollex.graphs.context import Progress
from pollex.rubrics.lint import Mark, marks_on_answers, marks_on_pairs, marks_on_words
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.roles import embedder_for


@dataclass(frozen=True)
class LintResult:
    """The marks on a rubric set, in the order of its rubrics.

    Attributes:
        texts: By id, what the marked rubrics say.
    """

    marks: tuple[Mark, ...]
    texts: dict[str, str]
    n: int

    @property
    def complete(self) -> bool:
        """Return true: every rubric was looked at."""
        return True

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        return {"rubrics": self.n, "marks": [asdict(mark) | {"text": self.texts[mark.id]} for mark in self.marks]}


def lint_rubrics(rubrics: Path | RubricSet, *, progress: Progress | None = None) -> LintResult:  # noqa: ARG001 - of every use case
    """Mark rubrics with two parts, ambiguous words or presuppositions, twins, and constant answers.

    Raises:
        BadRubrics: The set can't be read.
    """
    found = rubrics if isinstance(rubrics, RubricSet) else RubricSet.load(rubrics, arrays=False)
    reasons = {reason.id: reason for reason in found.reasons}
    marks = [mark for one in found.rubrics for mark in (*marks_on_words(one), *marks_on_answers(one, reasons))]
    marks += marks_on_pairs(found.rubrics, near_pairs(found.rubrics, embedder_for(None)))
    order = {rubric.id: place for place, rubric in enumerate(found.rubrics)}
    ordered = tuple(sorted(marks, key=lambda mark: order[mark.id]))
    return LintResult(ordered, {one.id: one.text for one in found.rubrics}, len(found.rubrics))


def near_pairs(rubrics: Sequence[Rubric], embedder: Embedder) -> list[tuple[int, int]]:
    """Return the places of rubrics with near texts, except those different by design."""
    vectors = embedder.embed([rubric.text for rubric in rubrics])
    cosines = vectors @ vectors.T
    return [
        (i, j)
        for j in range(len(rubrics))
        for i in range(j)
        if cosines[i, j] >= NEAR and not (rubrics[i].source.startswith(BY_DESIGN) and _apart(rubrics[i], rubrics[j]))
    ]


def _apart(first: Rubric, second: Rubric) -> bool:
    return second.source.startswith(BY_DESIGN) and first.source != second.source
