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
from pollex.web.forms import Form
from pollex.web.listing import SCORING, lens_for, scoring_run
from pollex.web.site import Site
from pollex.web.views import Data, page

MOST_RUNS = 5


class CalibrationForm(Form):
    """Which run, the last one that scored where none is named, and whose labels: sources are never mixed.

    Attributes:
        by: Field of the log whose values are groups; else its groups.
        time: Field of the log that says when.
    """

    run: str = ""
    source: Source = "log"
    by: str = ""
    time: str = ""


@page(links.CALIBRATION, "calibration.html", CalibrationForm, here="Calibration")
def calibration(site: Site, form: CalibrationForm) -> Data:
    """Show bands, tails, subgroups, and drift beside other runs."""
    run = scoring_run(site, form.run)
    lens = with_labels(lens_for(site, run), site.store, form.source)
    every = [one for one in site.runs() if one.command in SCORING]
    others = (
        []
        if form.source != "log"
        else [(one.id, lens_for(site, one)) for one in every if one.id != run.id and one.finished][:MOST_RUNS]
    )
    labels = int(usable(lens).sum())
    enough = labels >= FEWEST
    named = site.set_of(run)
    fields = fields_of(site, run, lens)
    times = times_among(fields)
    return {
        "run": run,
        "runs": every,
        "source": form.source,
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
        "subgroups": subgroups(lens, fields.get(form.by)) if enough else [],
        "form": form,
        "fields": [*fields],
        "times": [*times],
        "weeks": weeks(lens, times[form.time], named.rubric_set if named else None, learned_netsat(site, named))
        if form.time in times
        else [],
        "drift": site.kept(("drift", lens.version, *(one[1].version for one in others)), lambda: drift(lens, others)),
    }
