"""Two runs compared: figures with intervals, and conversations whose label changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from pollex.errors import BadCalibrator
from pollex.services.set_differences import diff_sets
from pollex.store.runs import Run
from pollex.store.runs import differences as changed_parts
from pollex.web import links
from pollex.web.comparing import Pairs, beside, differences, pairs_of, scatter
from pollex.web.faults import Fault
from pollex.web.lens import Lens
from pollex.web.listing import SCORING, lens_for
from pollex.web.pages.runs import counted
from pollex.web.site import NamedSet, Site
from pollex.web.views import Data, page
from pollex.web.words import given

if TYPE_CHECKING:
    from pollex.services.compare import Comparison

FLIPS = 50
MOST = 10_000
"""Conversations of a run that a page compares rubric by rubric; more take the command line."""


@page(links.COMPARE, "compare.html", here="Runs")
def compare(site: Site, request: Request, as_json: bool, a: str = "", b: str = "", run: str = "") -> Data | Response:
    """Show two runs side by side."""
    if run:
        return _of_ticked(site, request.query_params.getlist("run"))
    scoring = [run for run in site.runs() if run.command in SCORING]
    if not (a and b) and not as_json:
        return {"runs": scoring, "a": None, "b": None}
    before, after = site.run(a), site.run(b)
    of_a, of_b = lens_for(site, before), lens_for(site, after)
    sets = [site.set_of(run) for run in (before, after)]
    pairs, figures = _compared(site, of_a, of_b, sets)
    if as_json:
        return _told(pairs, figures)
    thetas = [named.rubric_set.theta if named else None for named in sets]
    return {
        "runs": scoring,
        "a": before,
        "b": after,
        "pairs": pairs,
        "figures": figures,
        "beside": beside(site, (before, after), (of_a, of_b), sets, pairs),
        "comparison": by_one_set(site, (before, after), (of_a, of_b), sets),
        "one_scale": "NetSAT" in figures,
        "too_many": _alike(sets) and max(len(of_a), len(of_b)) > MOST,
        "drawing": scatter(pairs, (thetas[0], thetas[1])),
        "differ": changed_parts(before.fingerprint, after.fingerprint),
        "arguments": _arguments(before, after),
        "counts": (counted(site, before), counted(site, after)),
        "rubrics": diff_sets(sets[0].rubric_set, sets[1].rubric_set) if sets[0] and sets[1] else None,
        "flips": [
            (*pairs.ids[i], float(pairs.netsat[0][i]), float(pairs.netsat[1][i]), int(pairs.label[i]))
            for i in pairs.flips[:FLIPS].tolist()
        ],
    }


def _of_ticked(site: Site, names: list[str]) -> Response:
    """Lead to two runs that were ticked in the list, the earlier one first."""
    if len(names) != 2:
        raise Fault("two runs are compared, no more and no fewer", remedy="tick two in the list of runs")
    every = [run.id for run in site.runs()]
    a, b = sorted((site.run(name).id for name in names), key=every.index, reverse=True)
    return RedirectResponse(links.address(links.COMPARE, a=a, b=b), 303)


def _compared(site: Site, a: Lens, b: Lens, sets: Sequence[NamedSet | None]) -> tuple[Pairs, dict[str, object]]:
    def make() -> tuple[Pairs, dict[str, object]]:
        pairs = pairs_of(a, b)
        return pairs, dict(differences(pairs, a, b, one_scale=_alike(sets) or a.version == b.version))

    return site.kept(("compared", a.version, b.version), make)


def _alike(sets: Sequence[NamedSet | None]) -> bool:
    first, second = sets
    return first is not None and second is not None and first.id == second.id


def by_one_set(
    site: Site, runs: tuple[Run, Run], lenses: tuple[Lens, Lens], sets: Sequence[NamedSet | None]
) -> Comparison | None:
    """Return what `pollex compare` finds, where one rubric set scored both runs."""
    named = sets[0]
    if named is None or not _alike(sets) or max(map(len, lenses)) > MOST:
        return None
    from pollex.services.compare import compare_runs  # SciPy comes with it, and takes half a second

    key = ("comparison", *(lens.version for lens in lenses))
    try:
        return site.kept(key, lambda: compare_runs(site.store, runs[0].id, runs[1].id, named.rubric_set))
    except BadCalibrator:  # its arrays aren't here, and without them there are no probabilities to compare
        return None


def _arguments(a: Run, b: Run) -> list[tuple[str, str, str]]:
    """Return what the runs were started with where it differs."""
    names = sorted(a.arguments.keys() | b.arguments.keys())
    told = [(name, given(a.arguments.get(name)), given(b.arguments.get(name))) for name in names]
    return [row for row in told if row[1] != row[2]]


def _told(pairs: Pairs, figures: dict[str, object]) -> Data:
    flips = [
        {"a": pairs.ids[i][0], "b": pairs.ids[i][1], "netsat": [float(side[i]) for side in pairs.netsat]}
        for i in pairs.flips.tolist()
    ]
    about = {"n": len(pairs.ids), "only": pairs.only, "left_out": pairs.left_out}
    return about | {"differences": {name: vars(figure) for name, figure in figures.items()}, "flips": flips}
