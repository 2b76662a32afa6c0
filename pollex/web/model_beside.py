"""What a model adds to the built-in roles, and what it costs: a set of both beside a built-in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pollex.gateway.budget import Price
from pollex.measures.classification import auc_of_scores
from pollex.measures.intervals import Figure
from pollex.rubrics.rubric import is_built_in
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.runs import Run
from pollex.web.comparing import Pairs, labeled_unseen
from pollex.web.lens import Lens
from pollex.web.model_calls import calls_of
from pollex.web.site import NamedSet, Site

PRICES = (Price(0.15, 0.60), Price(1, 4), Price(3, 15))
"""What a million tokens cost, read and written: a small, a middling and a large model."""


@dataclass(frozen=True)
class Beside:
    """One of two runs.

    Attributes:
        by_model: Headline rubrics that the model wrote.
        built_in: The other headline rubrics.
        auc: On conversations that neither set was learned from; None without labels of both kinds.
        tokens: Read and written, of the calls that this run sent.
    """

    name: str
    by_model: int
    built_in: int
    auc: Figure | None
    calls: int
    tokens: tuple[int, int]

    @property
    def costs(self) -> list[tuple[Price, float]]:
        """What the tokens cost at each price."""
        return [(price, price.cost(*self.tokens)) for price in PRICES]


def built_in_beside(site: Site, named: NamedSet) -> str | None:
    """Return the run of a built-in set of the same conversations, for a set that a model wrote rubrics of."""
    if named.rubric_set.judge.built_in:
        return None
    data, runs = named.rubric_set.data.fingerprint, {run.id for run in site.runs()}
    others = [one for one in site.sets().values() if one.run in runs and one.rubric_set.data.fingerprint == data]
    return next((one.run for one in others if one.rubric_set.judge.built_in), None)


def beside(
    site: Site, runs: Sequence[Run], lenses: Sequence[Lens], sets: Sequence[NamedSet | None], pairs: Pairs
) -> list[Beside]:
    """Return both runs where the first set is built-in and the second has a model; else none."""
    first, second = sets
    if first is None or second is None or not first.rubric_set.judge.built_in or second.rubric_set.judge.built_in:
        return []
    rows = labeled_unseen(pairs, lenses[0], lenses[1])
    up = pairs.label[rows] == 1
    return [
        _beside(site, run, named.rubric_set, pairs.netsat[place][rows], up)
        for place, (run, named) in enumerate(zip(runs, (first, second), strict=True))
    ]


def _beside(site: Site, run: Run, found: RubricSet, netsat: np.ndarray, up: np.ndarray) -> Beside:
    leading = [rubric for rubric in found.rubrics if rubric.headlined]
    calls = calls_of(site.store, run, "sent", down=False, at=0, n=-1)
    own = sum(is_built_in(rubric.source) for rubric in leading)
    return Beside(
        name=found.judge.name if not found.judge.built_in else "built-in (no LLM)",
        by_model=len(leading) - own,
        built_in=own,
        auc=auc_of_scores(netsat, up, np.random.default_rng(0)) if up.any() and not up.all() else None,
        calls=len(calls),
        tokens=(sum(call.usage.get("in", 0) for call in calls), sum(call.usage.get("out", 0) for call in calls)),
    )
