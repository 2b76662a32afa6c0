"""What rubrics are: their lives on pages, and the states that people give them."""

from collections.abc import Sequence

from pollex.errors import WrongUse
from pollex.rooms.remedy.services.life import (
    RubricLife,
    StateOfRubric,
    build_lives,
    make_rubric_state,
    make_state_row,
)
from pollex.rubrics.headlines import list_headlines
from pollex.rubrics.records import ChosenRubric
from pollex.services.held import ScoredConversation, read_held_rubrics
from pollex.store.runs import Run
from pollex.web import links
from pollex.web.faults import RequestError
from pollex.web.forms import LongText, NameText, ShortText
from pollex.web.pages.sets import get_rubric
from pollex.web.run_logs import list_runs_of_set
from pollex.web.site import NamedSet, Site
from pollex.web.views import NextPage, post

MAX_OPEN_RUBRICS = 12


def get_lives(
    site: Site, rubrics: Sequence[ChosenRubric], runs: Sequence[Run] | None = None
) -> list[RubricLife]:
    """Return the lives of rubrics, counted anew when a run has ended or something was said; runs are read once.

    Args:
        runs: Those whose conversations count; None for all.
    """
    counted_runs = None if runs is None else frozenset(run.id for run in runs)

    # what a run saw doesn't change once it has ended
    def seen(run: Run) -> list[ScoredConversation]:
        return site.kept(
            ("seen", run.id, run.finished or ""),
            lambda: read_held_rubrics(site.store, run),
        )

    # counts change when a run ends or somebody says something
    ended, last_said = (
        site.store.value(f"SELECT {expression}") for expression in CHANGE_MARK_COLUMNS
    )
    key = (
        "lives",
        *(rubric.id for rubric in rubrics),
        "all" if counted_runs is None else " ".join(sorted(counted_runs)),
        str(ended),
        str(last_said),
    )
    return site.kept(key, lambda: build_lives(site.store, rubrics, seen, counted_runs=counted_runs))


CHANGE_MARK_COLUMNS = ("count(finished) FROM runs", "max(rowid) FROM facts")


@post("/api/states")
def keep_state(
    site: Site,
    named: NamedSet,
    id_: str,
    state: StateOfRubric,
    who: NameText,
    release: ShortText = "",
    note: LongText = "",
) -> NextPage:
    """Keep what a person says of a rubric."""
    rubric = get_rubric(named.rubric_set, id_)
    try:
        remark = make_rubric_state(rubric.model_dump(), state, release, note, who)
    except WrongUse as error:
        raise RequestError(
            error.what,
            hint="name the release of what is mended, and of nothing else",
        ) from None

    site.store.keep([make_state_row(remark)])
    return links.link_to_rubric(named.id, rubric.id), {"state": str(remark)}


def list_open_lives(site: Site, named: NamedSet) -> list[RubricLife]:
    """Return what goes wrong and is not accepted or mended: what is back again first, then the most thumbs down.

    Hints are only there where somebody said something of them. Counted is what was scored by this
    set: another log's set may have a rubric of the same id.
    """
    rubric_set = named.rubric_set
    # rubrics that lead the list of what goes wrong
    leads = {headline.rubric.id for headline in list_headlines(rubric_set.rubrics, "dsat")}
    every = get_lives(
        site,
        [rubric for rubric in rubric_set.rubrics if rubric.polarity == "dsat"],
        list_runs_of_set(site, named),
    )
    # else there is nothing to say but what was learned
    has_history = any(len(life.weeks) > 1 or life.state for life in every)
    wrong = (
        life for life in every if life.is_open and has_history and (life.state or life.id in leads)
    )
    # the gravest first, up to a page's length
    return sorted(wrong, key=lambda life: life.rank)[:MAX_OPEN_RUBRICS]
