"""Mark the rubrics of a set that are hard to judge; a model, where one is named, words them better."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.roles import BY_DESIGN, NEAR
from pollex.graphs.context import NullProgress, Progress
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.lint import Mark, marks_on_answers, marks_on_pairs, marks_on_words
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.results import Result
from pollex.services.roles import embedder_for, hire
from pollex.services.workspace import Workspace, workspace
from pollex.text import Line, Told, count


@dataclass(frozen=True)
class LintResult(Result):
    """The marks on a rubric set, in the order of its rubrics.

    Attributes:
        texts: By id, what the marked rubrics say.
        worded_by: The model whose words are proposed; empty for words by rule.
        unanswered: Why the model gave no words; empty where it did, or wasn't asked.
    """

    marks: tuple[Mark, ...]
    texts: dict[str, str]
    n: int
    worded_by: str = ""
    unanswered: str = ""

    @property
    def complete(self) -> bool:
        """Return whether every rubric was looked at, and the model answered if it was asked."""
        return not self.unanswered

    def told(self) -> Told:
        """Yield each mark under its rubric."""
        marked = dict.fromkeys(mark.id for mark in self.marks)
        by = f"; better words by {self.worded_by}" if self.worded_by and not self.unanswered else ""
        yield f"{len(marked)} of {count(self.n, 'rubric')} marked{by}"
        if self.unanswered:
            why = f"{self.worded_by} gave no better words ({self.unanswered})"
            yield Line(f"{why}; those below are by rule", "yellow")
        for id_ in marked:
            yield f"{id_}  {self.texts[id_]}"
            for mark in self.marks:
                if mark.id == id_:
                    yield Line(f"  {mark.why}", "yellow")
                    yield from (Line(f"  better: {better}", "green") for better in mark.better)

    def as_json(self) -> dict[str, Any]:
        marks = [asdict(mark) | {"text": self.texts[mark.id]} for mark in self.marks]
        return {"rubrics": self.n, "marks": marks} | (self.of("worded_by", "unanswered") if self.worded_by else {})


def lint_rubrics(
    rubrics: Path | RubricSet,
    *,
    run: RunOptions | None = None,
    model: ModelOptions | None = None,
    progress: Progress | None = None,
) -> LintResult:
    """Mark rubrics with two parts, ambiguous words or presuppositions, twins, and constant answers.

    Args:
        run: Where replies and vectors are kept.
        model: Who words marked sentences better; None: rules, where one applies.

    Raises:
        BadRubrics: The set can't be read.
    """
    found = rubrics if isinstance(rubrics, RubricSet) else RubricSet.load(rubrics, arrays=False)
    reasons = {reason.id: reason for reason in found.reasons}
    marks = [mark for one in found.rubrics for mark in (*marks_on_words(one), *marks_on_answers(one, reasons))]
    embedder = embedder_for(run.store if run is not None and run.store.is_dir() else None)
    marks += marks_on_pairs(found.rubrics, near_pairs(found.rubrics, embedder))
    order = {rubric.id: place for place, rubric in enumerate(found.rubrics)}
    ordered = tuple(sorted(marks, key=lambda mark: order[mark.id]))
    result = LintResult(ordered, {one.id: one.text for one in found.rubrics}, len(found.rubrics))
    if model is None or model.name is None:
        return result
    with workspace(run or RunOptions(), progress or NullProgress()) as opened:
        return opened.run(_worded(opened, found, result, model))


async def _worded(opened: Workspace, found: RubricSet, result: LintResult, model: ModelOptions) -> LintResult:
    from pollex.agents.llm.judge import LlmJudge
    from pollex.agents.llm.rewording import reworded

    marked = [rubric for rubric in found.rubrics if marks_on_words(rubric)]
    why = {rubric.id: [mark.why for mark in marks_on_words(rubric)] for rubric in marked}
    async with await hire(model, found.domain, opened.store) as staff:
        opened.announce(staff)
        judge = staff.roles.judge
        assert isinstance(judge, LlmJudge), "a model was named"
        better = await reworded(judge.asker, marked, why)
    if isinstance(better, Unanswered):
        return replace(result, worded_by=model.name or "", unanswered=f"{better.outcome}: {better.detail}")
    marks = tuple(
        replace(mark, better=better.get(mark.id, mark.better)) if mark.why in why.get(mark.id, ()) else mark
        for mark in result.marks
    )
    return replace(result, marks=marks, worded_by=model.name or "")


def near_pairs(rubrics: Sequence[Rubric], embedder: Embedder) -> list[tuple[int, int]]:
    """Return the places of rubrics with near texts, except those different by design."""
    vectors = embedder.embed([rubric.text for rubric in rubrics])
    cosines = vectors @ vectors.T
    by_design = [rubric.source if rubric.source.startswith(BY_DESIGN) else "" for rubric in rubrics]
    return [
        (i, j)
        for j in range(len(rubrics))
        for i in range(j)
        if cosines[i, j] >= NEAR and not (by_design[i] and by_design[j] and by_design[i] != by_design[j])
    ]
