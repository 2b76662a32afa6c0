"""The choice of rubrics by some conversations of a log, as `learn` makes it, for benchmarks that look behind it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pollex.agents.embedded.clues import StudiedLog
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import name_rubric_family
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs
from pollex.graphs.context import NullProgress
from pollex.measures.arrays import Bools
from pollex.rubrics.learning.crossfit import (
    Candidates,
    CrossFit,
    WeighedPool,
    cross_fit,
    make_candidates,
)
from pollex.rubrics.learning.material import GivenAnswers, Material
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.records import LIKELY_LEVEL
from pollex.runs.roles import make_embedded_judge_record

TESTS = Path(__file__).parents[1] / "tests" / "unit" / "agents_embedded"
sys.path[:0] = [str(TESTS), str(TESTS / "events")]


@dataclass(frozen=True, eq=False)
class Chosen:
    """What some conversations of a log chose: the pool with its values of all of them, and columns of the set."""

    weighed: WeighedPool
    leads: Bools
    p: np.ndarray
    order: np.ndarray
    fit: CrossFit

    @property
    def leading(self) -> list[int]:
        """Columns of what leads."""
        return [
            one for one in self.order.tolist() if self.leads[one] and self.p[one] <= LIKELY_LEVEL
        ]


def chosen_on(study: StudiedLog, up: Bools, rows: Bools, seed: int) -> Chosen:
    """Choose by some conversations of a log, as `learn` does, and answer for all of them."""
    labels = (Label.POSITIVE if one else Label.NEGATIVE for one in up)
    log = [
        c.model_copy(update={"label": label})
        for c, label in zip(study.conversations, labels, strict=True)
    ]
    mine = [c for c, here in zip(log, rows, strict=True) if here]
    place = np.flatnonzero(rows)

    def make(_: Sequence[Conversation], some: Bools):  # type: ignore[no-untyped-def]
        among = np.zeros(len(up), dtype=bool)
        among[place[some]] = True
        made = study.made(up, among)
        return type(made)(made.rubrics, made.leads, made.answers[place])

    known = {c.id: row for row, c in enumerate(study.conversations)}
    settings = LearnSettings(seed=seed)
    material = Material(
        logs=Logs(mine),
        training=tuple(mine),
        held_out=(),
        settings=settings,
        judge_record=make_embedded_judge_record(Embedder()),
        table=GivenAnswers("expected"),
        progress=NullProgress(),
        family_of=name_rubric_family,
        make=make,
        words=lambda some: study.words.at(np.array([known[c.id] for c in some], dtype=np.intp)),
    )
    nothing = np.zeros((len(mine), 0))
    fit = cross_fit(material, Candidates(mine, [], nothing, nothing.astype(bool), {}))
    made = study.made(up, rows)
    weighed = WeighedPool.of(
        make_candidates(made, log, "expected"), settings, name_rubric_family, study.words
    )
    order = weighed.order(rows, fit.alpha, hints=fit.hints)
    return Chosen(weighed, made.leads, weighed.weigh(rows)[0].p, order, fit)
