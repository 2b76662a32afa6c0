"""How far the probabilities of a run can be trusted."""

from __future__ import annotations

from pollex.web import links
from pollex.web.calibrated import (
    FEWEST,
    SOURCES,
    Source,
    bands,
    drift,
    reliability_of,
    score_bands,
    subgroups,
    tails,
    usable,
    with_labels,
)
from pollex.web.fields import fields_of, learned_netsat, times_among, weeks
from pollex.web.listing import SCORING, lens_for, scoring_run
from pollex.web.site import Site
from pollex.web.views import Data, page

MOST_RUNS = 5


@page(links.CALIBRATION, "calibration.html", here="Calibration")
def calibration(site: Site, run: str = "", source: Source = "log", by: str = "", time: str = "") -> Data:
    """Show bands, tails, subgroups, and drift beside other runs."""
    chosen = scoring_run(site, run)
    lens = with_labels(lens_for(site, chosen), site.store, source)
    every = [one for one in site.runs() if one.command in SCORING]
    others = (
        []
        if source != "log"
        else [(one.id, lens_for(site, one)) for one in every if one.id != chosen.id and one.finished][:MOST_RUNS]
    )
    labels = int(usable(lens).sum())
    enough = labels >= FEWEST
    named = site.set_of(chosen)
    fields = fields_of(site, chosen, lens)
    times = times_among(fields)
    return {
        "run": chosen,
        "runs": every,
        "source": source,
        "sources": SOURCES,
        "named": named,
        "calibrators": sorted(site.calibrators),
        "labels": labels,
        "fewest": FEWEST,
        "enough": enough,
        "bands": bands(lens) if enough else [],
        "score_bands": score_bands(lens) if enough else [],
        "diagram": reliability_of(lens) if enough else None,
        "tails": tails(lens) if enough else [],
        "subgroups": subgroups(lens, fields.get(by)) if enough else [],
        "fields": [*fields],
        "times": [*times],
        "weeks": weeks(lens, times[time], named.rubric_set if named else None, learned_netsat(site, named))
        if time in times
        else [],
        "drift": site.kept(("drift", lens.version, *(one[1].version for one in others)), lambda: drift(lens, others)),
    }
