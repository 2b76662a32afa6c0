"""The page of a run that scored begins with what a person asks, and how it ran comes beneath, folded."""

import re
from html import unescape

from httpx2 import AsyncClient
from rubric_set_by_hand import rubric_set
from web_site import made_app, scored

from pollex.store.resume import list_stored_runs
from pollex.store.store import Store
from pollex.web.children import Child
from pollex.web.scored_run import MAX_WORST_SHOWN, ScoredRun, summarize_scores
from pollex.web.site import Site


def words_of(page: str) -> str:
    """The words of a page, without its marks."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))


def site_of(store: Store) -> Site:
    site: Site = made_app(store).app.state.site  # type: ignore[attr-defined]
    return site


def score_again(store: Store) -> str:
    """A run that scored with the set of the learning run."""
    learn = next(run for run in list_stored_runs(store) if run.command == "learn")
    return scored(store, rubric_set(run=learn.id), range(12))


def summary_of(store: Store, run: str) -> ScoredRun:
    site = site_of(store)
    summary = summarize_scores(site, site.run(run))
    assert summary is not None
    return summary


async def test_a_run_of_scores_says_first_how_many_are_good_and_which_are_the_worst(
    own: Store, web: AsyncClient
) -> None:
    run = score_again(own)
    page = (await web.get(f"/runs/{run}")).text
    words = words_of(page).replace("\N{NO-BREAK SPACE}", " ").replace("\u202f", " ")
    assert re.search(r"About \d+ % of 11 conversations are good \( ?95 % interval .*n = 11", words)
    assert "Thumbs in the log:" in words
    assert page.index('id="came-to"') < page.index('id="worst"') < page.index("How it ran")
    folded = page[page.index('<details class="how">') :]
    assert 'id="graph"' in folded
    assert 'id="with"' in folded
    assert f'href="/conversations?run={run}&amp;sort=probability"' in page


def test_the_worst_come_first_each_with_its_reason(own: Store) -> None:
    summary = summary_of(own, score_again(own))
    probabilities = [row.probability for row in summary.worst]
    assert len(probabilities) == MAX_WORST_SHOWN
    assert probabilities == sorted(probabilities)
    assert summary.reasons[summary.worst[0].id]


async def test_answers_that_are_missing_are_counted_with_a_way_to_them(
    own: Store, web: AsyncClient
) -> None:
    run = score_again(own)
    summary = summary_of(own, run)
    page = (await web.get(f"/runs/{run}")).text
    assert (summary.missing, summary.lacking) == (1, 1), "conversation 9 refused a question"
    assert f'href="/conversations?run={run}&amp;answered=no">1' in page


def test_agreement_counts_no_conversation_that_the_rubrics_were_learned_from(own: Store) -> None:
    run = score_again(own)
    thumbs = summary_of(own, run).thumbs
    assert thumbs is not None
    assert thumbs.up.n == 8, "two of three conversations have a thumb"
    columns = summary_of(own, "score-2").thumbs
    assert columns is not None
    assert thumbs.agreeing.n <= thumbs.up.n


def test_the_log_that_the_rubrics_come_from_stands_beside(own: Store) -> None:
    others = summary_of(own, score_again(own)).others
    assert [other.run.command for other in others] == ["learn"]


async def test_what_is_at_work_also_says_what_the_last_runs_came_to(
    own: Store, web: AsyncClient
) -> None:
    run = score_again(own)
    page = (await web.get("/at-work")).text
    last = page[page.index('id="last"') :]
    assert f'href="/runs/{run}"' in last
    assert re.search(r'class="outcome">\d+\s%\sgood', last)


async def test_the_page_of_a_command_that_scored_shows_it_too(own: Store) -> None:
    from web_site import client_of

    run = score_again(own)
    app = made_app(own)
    site: Site = app.app.state.site  # type: ignore[attr-defined]
    record = site.children.folder / "0123abcd.json"
    child = Child("0123abcd", "Score a log", ("score",), f"/runs/{run}", record, told={"run": run})
    child.state = "done"
    site.children.by_id[child.id] = child
    async with client_of(app) as client:
        page = (await client.get("/children/0123abcd")).text
    assert 'id="came-to"' in page
    assert 'id="worst"' in page
