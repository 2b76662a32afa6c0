"""Whether a run's conversations are like those that its rubric set was learned from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pollex.measures.arrays import Floats
from pollex.measures.intervals import Figure
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.runs import Run
from pollex.web.site import SCORING_COMMANDS, Site

if TYPE_CHECKING:
    from pollex.measures.drift import StabilityIndex

LAST_NETSAT_QUERY = (
    "SELECT arg_max(netsat, seq) AS netsat FROM scores GROUP BY conversation HAVING "
    "arg_max(netsat, seq) IS NOT NULL"
)


def measure_unlikeness(site: Site, run: Run) -> StabilityIndex | None:
    """Return how unlike a run's NetSAT is to that of its set's conversations; None unless it is by more than chance."""
    named = site.set_of(run)
    if named is None or run.command not in SCORING_COMMANDS or run.finished is None:
        return None
    # what a set was learned from is like itself
    if named.rubric_set.run == run.id:
        return None

    def compared() -> StabilityIndex | None:
        # SciPy comes with it, and takes half a second
        from pollex.measures.drift import is_drift_significant

        netsat = [row["netsat"] for row in site.store.ask(run.id, LAST_NETSAT_QUERY)]
        drift = measure_drift_of_set(np.array(netsat, dtype=np.float64), named.rubric_set)
        return drift if is_drift_significant(drift) else None

    return site.kept(("unlike", run.id, run.finished, named.id), compared)


LAST_PROBABILITIES_QUERY = """
    SELECT arg_max(probability, seq) AS probability FROM scores
    GROUP BY conversation HAVING arg_max(probability, seq) IS NOT NULL
"""


def estimate_good_share(site: Site, run: Run) -> Figure | None:
    """Return the share of good conversations of a finished run, by their probabilities; None where it has none."""
    named = site.set_of(run)
    if named is None or run.command not in SCORING_COMMANDS or run.finished is None:
        return None

    def estimated() -> Figure | None:
        from pollex.measures.share import estimate_share_from_probabilities  # as above

        probabilities = []
        for row in site.store.ask(run.id, LAST_PROBABILITIES_QUERY):
            probabilities.append(row["probability"])

        error = named.rubric_set.calibration_error
        if probabilities:
            return estimate_share_from_probabilities(
                np.array(probabilities, dtype=np.float64),
                error,
            )

        return None

    return site.kept(("good", run.id, run.finished, named.id), estimated)


def measure_drift_of_set(netsat: Floats, rubric_set: RubricSet) -> StabilityIndex | None:
    """Compare NetSAT with that of the conversations a set was learned from; None for too few."""
    from pollex.services.score_result import measure_drift  # as above

    if rubric_set.spread is None:
        return None

    # counted in the bins that the set keeps of its own conversations
    places = np.searchsorted(rubric_set.spread.edges, netsat, side="right")
    return measure_drift(
        rubric_set.spread,
        np.bincount(places, minlength=len(rubric_set.spread.counts)).tolist(),
    )
