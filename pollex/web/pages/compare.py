"""Two runs compared: figures with intervals, and conversations whose label changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from pollex.errors import BadCalibrator
from pollex.gateway.budget import Price
from pollex.measures.classification import estimate_auc
from pollex.measures.intervals import Figure
from pollex.reports.svg import Axis, choose_ticks, format_tick, make_element, make_svg
from pollex.rubrics.rubric import is_built_in_source
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.paired_texts import PairedTexts, estimate_differences, pair_texts
from pollex.services.sets import diff_sets
from pollex.store.resume import read_settings_behind_digests
from pollex.store.runs import Run
from pollex.store.settings_told import describe_fingerprint_differences as changed_parts
from pollex.web import links
from pollex.web.faults import RequestError
from pollex.web.frame import format_option_value
from pollex.web.lens import RunColumns
from pollex.web.listing import load_run_columns
from pollex.web.model_calls import list_calls
from pollex.web.pages.runs import count_parts_of_run
from pollex.web.site import SCORING_COMMANDS, NamedSet, Site
from pollex.web.views import PageData, page

if TYPE_CHECKING:
    from pollex.services.compare import SampleComparison

MAX_FLIPS_SHOWN = 50
MAX_CONVERSATIONS_COMPARED = 10_000
"""Conversations of a run that a page compares rubric by rubric; more take the command line."""


@page(links.COMPARE_PATH, "compare.html", here="Runs")
def show_comparison(
    site: Site,
    request: Request,
    as_json: bool,
    a: str = "",
    b: str = "",
    run: str = "",
) -> PageData | Response:
    """Show two runs side by side."""
    # runs that were ticked in the list: their comparison has an address of its own
    if run:
        return _redirect_to_ticked_runs(site, request.query_params.getlist("run"))

    scoring = [run for run in site.runs() if run.command in SCORING_COMMANDS]
    # without two runs the page only offers those that can be chosen
    if not (a and b) and not as_json:
        return {"runs": scoring, "a": None, "b": None}

    before = site.run(a)
    after = site.run(b)
    of_a = load_run_columns(site, before)
    of_b = load_run_columns(site, after)
    # a set is None where nobody has its file any more
    sets = [site.set_of(run) for run in (before, after)]
    pairs, figures = _compare_runs(site, of_a, of_b, sets)
    if as_json:
        return _make_comparison_json(pairs, figures)

    behind = [read_settings_behind_digests(site.store, run) for run in (before, after)]
    # θ of each set is a line of the drawing
    thetas = []
    for named in sets:
        thetas.append(named.rubric_set.theta if named else None)

    flips = []
    for i in pairs.flips[:MAX_FLIPS_SHOWN].tolist():
        flips.append(
            (
                *pairs.ids[i],
                float(pairs.netsat[0][i]),
                float(pairs.netsat[1][i]),
                int(pairs.label[i]),
            )
        )

    return {
        "runs": scoring,
        "a": before,
        "b": after,
        "pairs": pairs,
        "figures": figures,
        "beside": describe_both_sets(site, (before, after), sets, pairs),
        "comparison": compare_by_one_set(site, (before, after), (of_a, of_b), sets),
        "one_scale": "NetSAT" in figures,
        "too_many": _have_same_rubrics(sets)
        and max(len(of_a), len(of_b)) > MAX_CONVERSATIONS_COMPARED,
        "drawing": draw_scatter(pairs, (thetas[0], thetas[1])),
        "differ": changed_parts(before.fingerprint, after.fingerprint, *behind),
        "arguments": _list_argument_changes(before, after),
        "counts": (count_parts_of_run(site, before), count_parts_of_run(site, after)),
        "rubrics": diff_sets(sets[0].rubric_set, sets[1].rubric_set)
        if sets[0] and sets[1]
        else None,
        "flips": flips,
    }


def _redirect_to_ticked_runs(site: Site, names: list[str]) -> Response:
    """Lead to two runs that were ticked in the list, the earlier one first."""
    if len(names) != 2:
        raise RequestError(
            "two runs are compared, no more and no fewer",
            hint="tick two in the list of runs",
        )

    # runs are listed latest first, so that the order is reversed
    every = [run.id for run in site.runs()]
    a, b = sorted(
        (site.run(name).id for name in names),
        key=every.index,
        reverse=True,
    )
    return RedirectResponse(links.make_address(links.COMPARE_PATH, a=a, b=b), 303)


def _compare_runs(
    site: Site,
    a: RunColumns,
    b: RunColumns,
    sets: Sequence[NamedSet | None],
) -> tuple[PairedTexts, dict[str, object]]:
    def make() -> tuple[PairedTexts, dict[str, object]]:
        pairs = pair_texts(a, b)
        one_scale = _have_same_rubrics(sets) or a.version == b.version
        return pairs, dict(estimate_differences(pairs, one_scale=one_scale))

    return site.kept(("compared", a.version, b.version), make)


def _have_same_rubrics(sets: Sequence[NamedSet | None]) -> bool:
    first, second = sets
    return first is not None and second is not None and first.id == second.id


def compare_by_one_set(
    site: Site,
    runs: tuple[Run, Run],
    lenses: tuple[RunColumns, RunColumns],
    sets: Sequence[NamedSet | None],
) -> SampleComparison | None:
    """Return what `pollex compare` finds, where one rubric set scored both runs."""
    named = sets[0]
    if (
        named is None
        or not _have_same_rubrics(sets)
        or max(map(len, lenses)) > MAX_CONVERSATIONS_COMPARED
    ):
        return None

    # SciPy comes with it, and takes half a second
    from pollex.services.compare import compare_runs

    key = ("comparison", *(lens.version for lens in lenses))
    try:
        return site.kept(
            key,
            lambda: compare_runs(site.store, runs[0].id, runs[1].id, named.rubric_set),
        )
    except (
        BadCalibrator
    ):  # its arrays aren't here, and without them there are no probabilities to compare
        return None


def _list_argument_changes(a: Run, b: Run) -> list[tuple[str, str, str]]:
    """Return what the runs were started with where it differs."""
    names = sorted(a.arguments.keys() | b.arguments.keys())
    settings = []
    for name in names:
        settings.append(
            (
                name,
                format_option_value(a.arguments.get(name)),
                format_option_value(b.arguments.get(name)),
            )
        )

    return [row for row in settings if row[1] != row[2]]


def _make_comparison_json(pairs: PairedTexts, figures: dict[str, object]) -> PageData:
    flips = []
    for i in pairs.flips.tolist():
        flips.append(
            {
                "a": pairs.ids[i][0],
                "b": pairs.ids[i][1],
                "netsat": [float(side[i]) for side in pairs.netsat],
            }
        )

    about = {
        "n": len(pairs.ids),
        "only": pairs.only,
        "by_folds": pairs.by_folds,
        "left_out": pairs.left_out,
    }
    return about | {
        "differences": {name: vars(figure) for name, figure in figures.items()},
        "flips": flips,
    }


MAX_POINTS_DRAWN = 1500
"""Points of the drawing."""


SCATTER_LEFT = 40
SCATTER_RIGHT = 410
SCATTER_TOP = 10
SCATTER_BOTTOM = 320
"""Pixels of the plot's sides within its drawing, which has labels on the left and below."""


def draw_scatter(pairs: PairedTexts, thetas: tuple[float | None, float | None]) -> Markup:
    """Draw b's NetSAT over a's, with θ as lines; changed labels are filled."""
    scored_rows = pairs.scored_rows
    if not len(scored_rows):
        return Markup("")

    # a sample of the points is enough to see their shape
    if len(scored_rows) <= MAX_POINTS_DRAWN:
        drawn_rows = scored_rows
    else:
        drawn_rows = np.random.default_rng(0).choice(scored_rows, MAX_POINTS_DRAWN, replace=False)

    # the same scale on both axes, with some room around the points
    scores = np.concatenate([pairs.netsat[0][scored_rows], pairs.netsat[1][scored_rows]])
    low = float(scores.min()) - 1
    high = float(scores.max()) + 1
    across = Axis(low, high, SCATTER_LEFT, SCATTER_RIGHT)
    up = Axis(low, high, SCATTER_BOTTOM, SCATTER_TOP)

    changed_rows = set(pairs.flips.tolist())
    points = []
    for row in drawn_rows.tolist():
        points.append(
            make_element(
                "circle",
                cx=across(float(pairs.netsat[0][row])),
                cy=up(float(pairs.netsat[1][row])),
                r=3,
                class_="changed" if row in changed_rows else "point",
            )
        )

    caption = (
        f"NetSAT of both runs for {len(drawn_rows)} of {len(scored_rows)} texts; "
        f"{len(changed_rows)} changed their label"
    )
    lines = _draw_scatter_lines(across, up, thetas)
    labels = _draw_scatter_labels(across, up)
    return make_svg(caption, lines, labels, points, width=420, height=345)


def _draw_scatter_lines(
    across: Axis,
    up: Axis,
    thetas: tuple[float | None, float | None],
) -> list[Markup]:
    """Draw the diagonal, on which both scores are equal, and θ of both sets where they have one."""
    low = across.low
    high = across.high
    lines = [
        make_element(
            "line", x1=across(low), y1=up(low), x2=across(high), y2=up(high), class_="axis"
        )
    ]
    theta_across, theta_up = thetas
    if theta_across is not None:
        x = across(theta_across)
        lines.append(
            make_element("line", x1=x, x2=x, y1=SCATTER_TOP, y2=SCATTER_BOTTOM, class_="theta")
        )

    if theta_up is not None:
        y = up(theta_up)
        lines.append(
            make_element("line", x1=SCATTER_LEFT, x2=SCATTER_RIGHT, y1=y, y2=y, class_="theta")
        )

    return lines


def _draw_scatter_labels(across: Axis, up: Axis) -> list[Markup]:
    """Draw the numbers of both axes; each stands on both."""
    labels = []
    for value in choose_ticks(across.low, across.high, 6):
        labels.append(
            make_element(
                "text",
                format_tick(value),
                x=across(value),
                y=SCATTER_BOTTOM + 16,
                text_anchor="middle",
                class_="tick",
            )
        )
        labels.append(
            make_element(
                "text",
                format_tick(value),
                x=SCATTER_LEFT - 6,
                y=up(value) + 4,
                text_anchor="end",
                class_="tick",
            )
        )

    return labels


EXAMPLE_PRICES = (Price(0.15, 0.60), Price(1, 4), Price(3, 15))
"""What a million tokens cost, read and written: a small, a middling and a large model."""


def find_built_in_run(site: Site, named: NamedSet) -> str | None:
    """Return the run of a built-in set of the same conversations, for a set that a model wrote rubrics of."""
    if named.rubric_set.judge.built_in:
        return None

    # the same fingerprint of the data: learned from the same conversations
    data = named.rubric_set.data.fingerprint
    runs = {run.id for run in site.runs()}
    others = []
    for rubric_set in site.sets().values():
        if rubric_set.run in runs and rubric_set.rubric_set.data.fingerprint == data:
            others.append(rubric_set)

    return next(
        (other_set.run for other_set in others if other_set.rubric_set.judge.built_in),
        None,
    )


def describe_both_sets(
    site: Site,
    runs: Sequence[Run],
    sets: Sequence[NamedSet | None],
    pairs: PairedTexts,
) -> list[PageData]:
    """Return both runs where the first set is built-in and the second has a model; else none.

    Returns:
        Of each run the headline rubrics that the model wrote and the others; the AUC on
        conversations that neither set was learned from, None without labels of both kinds; the
        tokens of its calls, and what they cost at each price.
    """
    first, second = sets
    if (
        first is None
        or second is None
        or not first.rubric_set.judge.built_in
        or second.rubric_set.judge.built_in
    ):
        return []

    # both sets are measured on thumbs that neither was learned from
    rows = pairs.labeled_unseen
    up = pairs.label[rows] == 1
    descriptions = []
    for place, (run, named) in enumerate(zip(runs, (first, second), strict=True)):
        descriptions.append(
            _describe_set(site, run, named.rubric_set, pairs.netsat[place][rows], up)
        )

    return descriptions


def _estimate_auc_beside(
    rubric_set: RubricSet,
    netsat: np.ndarray,
    up: np.ndarray,
) -> Figure | None:
    """Return a set's AUC on what neither set was learned from; where all labels teach, its own by folds."""
    if up.any() and not up.all():
        return estimate_auc(netsat, up, np.random.default_rng(0))
    if rubric_set.held_out and rubric_set.data.folds:
        return rubric_set.held_out.auc
    return None


def _describe_set(
    site: Site,
    run: Run,
    rubric_set: RubricSet,
    netsat: np.ndarray,
    up: np.ndarray,
) -> PageData:
    leading = []
    for rubric in rubric_set.rubrics:
        if rubric.headlined:
            leading.append(rubric)

    # all calls, not a window of them
    calls = list_calls(site.store, run, "sent", down=False, at=0, n=-1)
    built_in_count = sum(is_built_in_source(rubric.source) for rubric in leading)
    tokens = (
        sum(call.usage.get("in", 0) for call in calls),
        sum(call.usage.get("out", 0) for call in calls),
    )

    return {
        "name": rubric_set.judge.name if not rubric_set.judge.built_in else "built-in (no LLM)",
        "by_model": len(leading) - built_in_count,
        "built_in": built_in_count,
        "auc": _estimate_auc_beside(rubric_set, netsat, up),
        "calls": len(calls),
        "tokens": tokens,
        "costs": [(price, price.cost(*tokens)) for price in EXAMPLE_PRICES],
    }
