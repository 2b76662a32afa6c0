"""How far the probabilities of a run can be trusted."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollex.web import frame, links
from pollex.web.calibrated import FEWEST, bands, drift, subgroups, tails, usable
from pollex.web.forms import Form, query, site_of
from pollex.web.listing import SCORING, lens_for, scoring_run

MOST_RUNS = 5


class CalibrationForm(Form):
    """Which run; the last one that scored where none is named."""

    run: str = ""


def calibration(request: Request) -> Response:
    """Show bands, tails, subgroups, and drift beside other runs."""
    site, form = site_of(request), query(request, CalibrationForm)
    run = scoring_run(site, form.run)
    lens = lens_for(site, run)
    every = [one for one in site.runs() if one.command in SCORING]
    others = [(one.id, lens_for(site, one)) for one in every if one.id != run.id and one.finished][:MOST_RUNS]
    labels = int(usable(lens).sum())
    enough = labels >= FEWEST
    return frame.page(
        "calibration.html",
        site=site.id,
        here="Calibration",
        run=run,
        runs=every,
        labels=labels,
        fewest=FEWEST,
        enough=enough,
        bands=bands(lens) if enough else [],
        tails=tails(lens) if enough else [],
        subgroups=subgroups(lens) if enough else [],
        drift=site.kept(("drift", lens.version, *(one[1].version for one in others)), lambda: drift(lens, others)),
    )


ROUTES = [Route(links.CALIBRATION, calibration)]
