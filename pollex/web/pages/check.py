"""A run checked against another: whether a condition of a gate fails, passes or is undecided, and why."""

from collections.abc import Sequence

import numpy as np

from pollex.errors import WrongUse
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.runs import Run
from pollex.web import links
from pollex.web.faults import RequestError
from pollex.web.listing import find_scoring_run, load_run_columns
from pollex.web.pages.compare import MAX_CONVERSATIONS_COMPARED, compare_by_one_set
from pollex.web.site import SCORING_COMMANDS, NamedSet, Site
from pollex.web.views import PageData, page

DEFAULT_LIMIT = 0.03


@page(links.CHECK_PATH, "check.html", here="Runs")
def show_check(
    site: Site,
    as_json: bool,
    run: str = "",
    against: str = "",
    fail_if: str = "",
    what: str = "mean(p) drops by",
    limit: float | None = None,
    again: bool = False,
    strict: bool = False,
) -> PageData:
    """Let people choose a baseline and a condition; show whether it fails, passes or is undecided.

    Args:
        fail_if: Conditions, separated by semicolons; `what` and `limit` are one in two fields.
    """
    # conditions of one text, or one that two fields of the form make up
    conditions = [
        *filter(None, map(str.strip, fail_if.split(";"))),
        *([] if limit is None else [f"{what} {limit:g}"]),
    ]
    if as_json:
        verdicts = check_run(
            site,
            site.run(run),
            site.run(against),
            conditions,
            again=again,
            strict=strict,
        )
        data: PageData = verdicts["result"].as_json()
        return data | {"unscored": verdicts["unscored"]}

    of = find_scoring_run(site, run)
    baseline = site.run(against) if against else None
    named = site.set_of(of)
    baselines = _list_baselines(site, of, named)

    return {
        "runs": [run for run in site.runs() if run.command in SCORING_COMMANDS],
        "run": of,
        "named": named,
        "baselines": baselines,
        # the run that the set was learned from, else the last one before
        "usual_baseline": next(
            (run for run in baselines if named and run.id == named.run),
            next((run for run in baselines if run.started < of.started), of),
        ),
        "against": baseline,
        "choices": list_check_choices(named.rubric_set) if named else {},
        "limit": DEFAULT_LIMIT if limit is None else limit,
        "checked": check_run(site, of, baseline, conditions, again=again, strict=strict)
        if baseline and conditions
        else None,
    }


def list_check_choices(rubric_set: RubricSet) -> dict[str, str]:
    """Return what a condition may look at, in words, by its text without the limit."""
    plain = {
        "mean(p) drops by": "mean P(up) drops by",
        "mean(p) rises by": "mean P(up) rises by",
        "mean(netsat) drops by": "mean NetSAT drops by",
        "share drops by": "share of good conversations drops by (labels at random)",
        "drift(p) above": "stability index of P(up) is above",
        "unlike above": "share of conversations unlike the baseline is above",
    }
    # for each side the direction that is worse
    ways = {"sat": "drops", "dsat": "rises"}
    rubrics = {}
    for rubric in rubric_set.rubrics:
        rubrics[f"mean({rubric.id}) {ways[rubric.polarity]} by"] = (
            f"mean answer {ways[rubric.polarity]} by: {rubric.text}"
        )

    return plain | rubrics


def check_run(
    site: Site,
    run: Run,
    against: Run,
    conditions: Sequence[str],
    *,
    again: bool,
    strict: bool,
) -> PageData:
    """Check a run against another.

    Returns:
        The result, compared conversations of the baseline that the rubrics were learned from, and
        conversations of both runs without a probability, which are left out.

    Raises:
        RequestError: One rubric set has not scored both, they are too many for a page, or a condition
            can't be read, or can't be looked at again and again.
    """
    from pollex.services.check import check_runs  # SciPy comes with it, and takes half a second

    # the baseline stands first, as in a comparison
    lenses = (load_run_columns(site, against), load_run_columns(site, run))
    sets = [site.set_of(against), site.set_of(run)]
    comparison = compare_by_one_set(site, (against, run), lenses, sets)
    if comparison is None or sets[0] is None:
        what = f"one rubric set must have scored both runs, up to {MAX_CONVERSATIONS_COMPARED:,} conversations each"
        raise RequestError(
            what,
            hint="`pollex check` scores what is not scored, and takes as many as there are",
        )

    rubric_set = sets[0].rubric_set
    options = {"again": again, "strict": strict}
    try:
        result = check_runs(
            site.store,
            run.id,
            against.id,
            rubric_set,
            conditions,
            comparison=comparison,
            **options,
        )
    except WrongUse as error:
        raise RequestError(error.what, hint=error.advice) from error

    scored = [~np.isnan(lens.probability) for lens in lenses]
    seen_count = int((~lenses[0].unseen & scored[0]).sum())
    unscored = sum(int((~is_scored).sum()) for is_scored in scored)

    return {
        "result": result,
        "seen": seen_count if rubric_set.reasons else 0,
        "unscored": unscored,
    }


def _list_baselines(site: Site, run: Run, named: NamedSet | None) -> list[Run]:
    others = []
    for other_run in site.runs():
        if other_run.command in SCORING_COMMANDS and other_run.id != run.id:
            others.append(other_run)

    # only runs that the same set scored can be compared
    baselines: list[Run] = []
    for other_run in others:
        if named and (other := site.set_of(other_run)) and other.id == named.id:
            baselines.append(other_run)

    return baselines
