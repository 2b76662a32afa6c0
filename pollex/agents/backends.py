"""The kinds of judges that a rubric set can name, and how to rebuild each.

A judge that answers on this machine, without a model, is one entry in `BUILT_IN`. Every other kind is a model behind
the gateway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.roles import Judge
from pollex.errors import BadRubrics
from pollex.rubrics.records import EMBEDDED, LLM, JudgeRecord
from pollex.rubrics.rubric import DISTILLED, Rubric

Build = Callable[[JudgeRecord, Embedder, Sequence[Rubric]], Judge]
"""Builds the judge that a record describes, for some rubrics; texts are embedded by the embedder."""


def _distilled(record: JudgeRecord, embedder: Embedder, rubrics: Sequence[Rubric]) -> Judge:  # noqa: ARG001
    from pollex.agents.distilled.judge import LocalJudge  # few sets are

    return LocalJudge(embedder, record.learned)


BUILT_IN: Mapping[str, Build] = {
    EMBEDDED: lambda record, embedder, rubrics: EmbeddedJudge(embedder, record.learned, rubrics),
    DISTILLED: _distilled,
}


def build(record: JudgeRecord, embedder: Embedder, rubrics: Sequence[Rubric] = ()) -> Judge:
    """Build a judge that needs no model.

    Raises:
        BadRubrics: There is no judge of this kind, or what it learned can't be used.
    """
    if record.kind not in BUILT_IN:
        known = ", ".join((LLM, *BUILT_IN))
        raise BadRubrics(f"there is no judge of the kind {record.kind!r:.60}", remedy=f"use one of {known}")
    return BUILT_IN[record.kind](record, embedder, rubrics)
