"""Figures of distilling: fidelity by rubric, and what asking the model about doubtful conversations buys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pollex.agents.distilled.judge import DistilledJudge, Lessons, Taught
from pollex.agents.embedded.embedder import Embedder
from pollex.conversations.conversation import Conversation
from pollex.conversations.splits import block_ids
from pollex.measures.arrays import Bools, Floats
from pollex.measures.correlations import pearson_statistic
from pollex.measures.intervals import Figure, Measure, mean_of, measured
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.worth import share_of

ASKED = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)
Hard = Literal["drop", "model"]


@dataclass(frozen=True)
class Fidelity:
    """How well a rubric's answers are foretold for conversations that they were not learned from.

    Attributes:
        correlation: Pearson's, of distilled values and the model's.
        by: Who answers the rubric now; `dropped` where nobody does.
    """

    id: str
    text: str
    correlation: Figure
    by: Literal["distilled", "model", "dropped"]


@dataclass(frozen=True)
class CascadeRow:
    """What asking the model about the most doubtful conversations buys.

    Attributes:
        asked: Share of conversations that the model is asked about.
        right: Share of decisions that are right.
    """

    asked: float
    right: Figure


async def fidelity_of(
    judged: Sequence[Conversation],
    asked: Sequence[ChosenRubric],
    lessons: Lessons,
    embedder: Embedder,
    hard: Hard,
    least: float,
) -> tuple[Fidelity, ...]:
    """Cross-fit each rubric over conversations, and correlate what is foretold with what the model said."""
    judge = DistilledJudge(embedder, lessons=lessons)
    await judge.fit(judged, asked)
    foretold = {c.text_hash: judge.foretold(c) for c in judged}
    return tuple(_fidelity(one, judged, lessons.get(one.id, {}), foretold, hard, least) for one in asked)


def _fidelity(
    rubric: ChosenRubric,
    judged: Sequence[Conversation],
    taught: Mapping[str, Taught],
    foretold: Mapping[str, Mapping[str, float]],
    hard: Hard,
    least: float,
) -> Fidelity:
    """Correlate one rubric's values; conversations on which its occasion never came up are left out."""
    pairs = [
        (foretold[c.text_hash][rubric.id], one.value, c)
        for c in judged
        if (one := taught.get(c.text_hash)) and one.value is not None
    ]
    x, y = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs], dtype=float)
    if len(pairs) < 2 or not np.ptp(x) or not np.ptp(y):
        figure = Figure(None, n=len(pairs), undefined="the answers are all alike")
    else:
        blocks = block_ids([p[2] for p in pairs])
        measure = {"r": Measure(pearson_statistic(x, y), empty="the answers are all alike")}
        figure = measured(measure, blocks, np.random.default_rng(0), 500)["r"]
    able = figure.value is not None and figure.value >= least
    return Fidelity(rubric.id, rubric.text, figure, "distilled" if able else "dropped" if hard == "drop" else "model")


def cascade_rows(distilled: Floats, model: Floats, up: Bools) -> tuple[CascadeRow, ...]:
    """Ask the model where the distilled probability is nearest to .5, for some shares of the conversations."""
    if not len(up):
        return ()
    order = np.argsort(np.abs(distilled - 0.5), kind="stable")
    rows = []
    for share in ASKED:
        p = distilled.copy()
        asked = order[: round(share * len(order))]
        p[asked] = model[asked]
        rows.append(CascadeRow(share, share_of(int(((p >= 0.5) == up).sum()), len(up))))
    return tuple(rows)


def log_loss(probability: Floats, up: Bools, rng: np.random.Generator) -> Figure:
    """Measure the mean log-loss of probabilities, in nats, with its interval."""
    clipped = np.clip(probability, 1e-6, 1 - 1e-6)
    losses = -np.log(np.where(up, clipped, 1 - clipped))
    return measured({"l": Measure(mean_of(losses))}, np.arange(len(up)), rng)["l"]
