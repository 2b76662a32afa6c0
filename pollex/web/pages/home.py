"""The first page: what the thumbs are about, active runs, and open labels."""

from pollex.rubrics.headlines import (
    along_with,
    also_borne_out,
    headlines,
    outcomes_of,
    said_of,
    topics_apart,
    why_beside,
)
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import nothing_leads
from pollex.web import links
from pollex.web.hooks import panels_on, waiting_work
from pollex.web.likeness import good_of
from pollex.web.pages.compare import built_in_beside
from pollex.web.pages.run_states import status_shown
from pollex.web.pages.runs import pulse_of
from pollex.web.pages.sets import SupportedRubric, supported
from pollex.web.site import SCORING, Site
from pollex.web.views import Data, page

LAST = 5
SIDES: tuple[tuple[Polarity, str], ...] = (("dsat", "What goes wrong"), ("sat", "What goes well"))


@page(links.HOME, "home.html", here="Home")
def home(site: Site) -> Data:
    """Show what was learned, what goes on, and the last runs."""
    every = [(run, site.status(run)) for run in site.runs()]
    known = {run.id for run, _ in every}
    named = site.set_at_home()
    own = named.rubric_set if named else None
    sides = {title: leading(own, kind) for kind, title in SIDES} if own else {}
    said = {title: said_of(own.rubrics, kind) for kind, title in SIDES} if own else {}
    found_anything = any(sides.values()) or any(said.values())
    return {
        "runs": [(run, status_shown(site, run, status)) for run, status in every[:LAST]],
        "total": len(every),
        "live": [
            (run, status, pulse_of(site, run))
            for run, status in every
            if status in ("running", "stalled")
        ],
        "with_scores": next((run for run, _ in every if run.command in SCORING), None),
        "scored": next(((run, good) for run, _ in every if (good := good_of(site, run))), None),
        "started": [
            one
            for one in site.children.by_id.values()
            if one.back == links.HOME and one.state != "done"
        ],
        "waiting": [work for run, _ in every if (work := waiting_work(site, run))],
        "left": site.store.rows(LEFT),
        "folder": site.store.folder,
        "named": named,
        "in_store": named is not None and named.run in known,
        "beside": built_in_beside(site, named)
        if named is not None and named.run in known
        else None,
        "panels": panels_on("home.html", site, named=named),
        "sides": sides,
        "outcomes": {title: outcomes_of(own.rubrics, kind) for kind, title in SIDES} if own else {},
        "said": said,
        "topics": topics_apart(own.segments)[:LAST] if own else [],
        "beside_findings": [(one, why_beside(one)) for one in also_borne_out(own.rubrics)]
        if own
        else [],
        "along": along_with(own.rubrics) if own else [],
        "nothing": nothing_leads(own.rubrics, own.data) if own and not found_anything else "",
    }


LEFT = """
    SELECT q.id, q.name, count(DISTINCT CASE WHEN s.skip = '' THEN l.text_hash END) AS labeled
    FROM queues AS q JOIN leases AS l ON l.queue = q.id LEFT JOIN sheets AS s ON s.lease = l.id
    GROUP BY q.id ORDER BY max(l.rowid) DESC LIMIT 1
"""
"""The queue that somebody labeled last."""


def leading(
    rubric_set: RubricSet, kind: Polarity
) -> list[tuple[SupportedRubric, tuple[ChosenRubric, ...]]]:
    """Return the first five headlines of a kind, in their order, each with its near twins."""
    every = {one.rubric.id: one for one in supported(rubric_set, kind)}
    return [
        (every[headline.rubric.id], headline.also)
        for headline in headlines(rubric_set.rubrics, kind)[:LAST]
    ]
