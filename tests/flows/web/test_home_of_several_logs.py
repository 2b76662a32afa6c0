"""A store of several logs: what Home and the pages of labels say is of one log, and names it."""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from httpx2 import AsyncClient
from rubric_set_by_hand import rubric_set
from small_log import small_log, write_log
from web_site import client_of, judged, made_app

from pollex.formats.fields import ReadOptions
from pollex.graphs.context import NullProgress
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.logs import list_source_names, logs_from
from pollex.store.rows import make_fact_row, make_rubric_rows
from pollex.store.rubric_sets import compute_rubric_set_digest
from pollex.store.store import Store
from pollex.store.tables import LabelRow, dump_json
from pollex.web.pages.at_work import find_changes_page
from pollex.web.run_logs import name_logs_of_command
from pollex.web.site import Site

AT_WORK = Path(__file__).parents[3] / "pollex" / "web" / "templates" / "at_work.html"


@dataclass
class Learned:
    """A rubric set that was learned from a log, and the run that did so."""

    run: str
    rubric_set: RubricSet

    @property
    def id(self) -> str:
        return compute_rubric_set_digest(self.rubric_set)


def learned(store: Store, log: str, numbers: range, created: str) -> Learned:
    run = store.begin("learn", fingerprint={}, versions={}, arguments={"logs": [log]})
    found = rubric_set(run=run.id, created=created)
    store.put(
        [
            make_fact_row(run.id, "rubric_set", "set", found),
            *make_rubric_rows(run.id, found.rubrics),
        ]
    )
    judged(store, run.id, found, numbers, str, "train")
    store.finish(run.id, "done", roles=["built-in (no LLM)"])
    return Learned(run.id, found)


def scored(store: Store, log: str, made: Learned, numbers: range, ended: bool = True) -> str:
    run = store.begin(
        "score", fingerprint={"rubrics": made.id}, versions={}, arguments={"logs": [log]}
    )
    store.put(make_rubric_rows(run.id, made.rubric_set.rubrics))
    judged(store, run.id, made.rubric_set, numbers, str, "")
    if ended:
        store.finish(run.id, "done", roles=["built-in (no LLM)"])
    return run.id


def labeled(store: Store, run: str, numbers: range) -> None:
    store.keep(
        [
            LabelRow("ann", f"{run}-{number}", f"c{number}", run, "thumb", dump_json("up"), "person", "")
            for number in numbers
        ]
    )  # fmt: skip


@pytest.fixture
def two_logs(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / ".pollex") as store:
        yield store


@pytest.fixture
async def visitor(two_logs: Store) -> AsyncIterator[AsyncClient]:
    async with client_of(made_app(two_logs)) as client:
        yield client


def words_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page)).replace("\N{NO-BREAK SPACE}", " ")


async def test_home_looks_at_the_log_of_its_report_and_at_no_run_that_goes_on(
    two_logs: Store, visitor: AsyncClient
) -> None:
    tours = learned(two_logs, "tours.jsonl", range(12), "2026-01-02T00:00:00+00:00")
    hotel = learned(two_logs, "hotel.jsonl", range(100, 130), "2026-01-03T00:00:00+00:00")
    scored(two_logs, "hotel.jsonl", hotel, range(100, 130))
    scored(two_logs, "tours.jsonl", tours, range(12), ended=False)
    page = (await visitor.get("/", params={"report": tours.id})).text
    look = page[page.index('id="look"') :]
    look = look[: look.index("</section>")]
    assert {*re.findall(r"/conversations\?run=([\w-]+)", look)} == {tours.run}
    assert "Of tours.jsonl, scored by this rubric set" in words_of(look)


async def test_the_share_of_good_ones_says_of_which_log_it_is_and_the_own_log_stays_first(
    two_logs: Store, visitor: AsyncClient
) -> None:
    tours = learned(two_logs, "tours.jsonl", range(12), "2026-01-02T00:00:00+00:00")
    before = words_of((await visitor.get("/")).text)
    scored(two_logs, "week2.jsonl", tours, range(200, 220))
    after = words_of((await visitor.get("/")).text)
    own = re.findall(r"About \d+ % of the \d+ conversations of tours.jsonl are good", before)
    shares = re.findall(r"About \d+ % of the \d+ conversations of \S+ are good", after)
    assert shares[0] == own[0], "another log changes nothing about this one"
    assert "conversations of week2.jsonl" in shares[1]


async def test_what_is_open_counts_what_this_set_scored_and_names_the_logs(
    two_logs: Store, visitor: AsyncClient
) -> None:
    tours = learned(two_logs, "tours.jsonl", range(12), "2026-01-02T00:00:00+00:00")
    hotel = learned(two_logs, "hotel.jsonl", range(12), "2026-01-03T00:00:00+00:00")
    scored(two_logs, "tours2.jsonl", tours, range(30))
    scored(two_logs, "hotel2.jsonl", hotel, range(100, 220))
    wrong = next(one for one in tours.rubric_set.rubrics if one.polarity == "dsat")
    state = {"set": tours.id, "id": wrong.id, "state": "mending", "who": "Mia"}
    assert (await visitor.post("/api/states", json=state)).status_code == 200
    counted = {}
    for made, log in ((tours, "tours2.jsonl"), (hotel, "hotel2.jsonl")):
        page = words_of((await visitor.get("/", params={"report": made.id})).text)
        assert f"Counted in what this rubric set scored: {log}." in page
        counted[log] = int(re.findall(r"thumbs down where it holds \(n = (\d+)\)", page)[0])
    assert counted["tours2.jsonl"] <= 30 < counted["hotel2.jsonl"], "each log alone"
    rubric_page = (await visitor.get(f"/sets/{tours.id}/rubric", params={"id": wrong.id})).text
    assert "Counted in what this rubric set scored: tours2.jsonl." in words_of(rubric_page)


async def test_new_labels_of_a_log_are_no_other_logs_and_the_first_time_it_is_learn(
    two_logs: Store, visitor: AsyncClient
) -> None:
    tours = learned(two_logs, "tours.jsonl", range(12), "2026-01-02T00:00:00+00:00")
    queue = two_logs.begin(
        "queue", fingerprint={}, versions={}, arguments={"logs": ["hotel.jsonl"]}
    )
    two_logs.finish(queue.id, "done", roles=[])
    labeled(two_logs, tours.run, range(16))
    labeled(two_logs, queue.id, range(16))
    assert "Learn" not in words_of((await visitor.get("/label")).text).replace("Learned", "")
    labeled(two_logs, queue.id, range(16, 21))
    page = words_of((await visitor.get("/label")).text)
    assert "21 new labels of hotel.jsonl that no rubric set was learned with yet. Learn" in page
    assert "Learn again" not in page
    labeled(two_logs, tours.run, range(16, 23))
    page = words_of((await visitor.get("/label")).text)
    assert (
        "23 new labels of tours.jsonl that no rubric set was learned with yet. Learn again" in page
    )


async def test_what_changed_is_told_beside_a_set_of_the_same_log_alone(two_logs: Store) -> None:
    site = Site(two_logs, {})
    learned(two_logs, "hotel.jsonl", range(12), "2026-01-02T00:00:00+00:00")
    first = learned(two_logs, "tours.jsonl", range(12), "2026-01-03T00:00:00+00:00")
    assert find_changes_page(site, site.run(first.run)) == "", "the set before is another log's"
    again = learned(two_logs, "tours.jsonl", range(12), "2026-01-04T00:00:00+00:00")
    assert f"a={first.id}" in find_changes_page(site, site.run(again.run))


async def test_rows_at_work_and_runs_name_each_log_that_they_read(
    two_logs: Store, visitor: AsyncClient, tmp_path: Path
) -> None:
    proof = two_logs.begin(
        "remedy",
        fingerprint={},
        versions={},
        arguments={"logs": ["a", "b"], "command": "pollex remedy run log:week2 log:week1"},
    )
    two_logs.finish(proof.id, "done", roles=[])
    assert "week2 and week1" in (await visitor.get("/runs")).text
    (tmp_path / "week3.jsonl").write_text("{}")
    words = ("score", "log:week2", "--out=scores.parquet")
    assert name_logs_of_command(words) == "week2"
    assert name_logs_of_command(("score", str(tmp_path / "week3.jsonl"), "--json")) == "week3.jsonl"
    assert "child.arguments|logs_of_command" in AT_WORK.read_text()


def test_a_log_that_is_read_for_a_comparison_keeps_the_names_of_its_files(tmp_path: Path) -> None:
    path = write_log(tmp_path / "week1.jsonl", small_log(4))
    logs = logs_from(str(path), ReadOptions(), NullProgress())
    assert list_source_names(logs) == [str(path)]
