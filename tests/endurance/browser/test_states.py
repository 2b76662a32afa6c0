"""Pages that have nothing to show, pages that fail, and a server that is gone."""

import resource
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from judged_run import judged_run
from visitors import Served, Visitor
from web_site import made_store

from pollex.store.store import Store

EMPTY = [
    "/",
    "/conversations",
    "/runs",
    "/runs/score-1",
    "/runs/score-1/calls",
    "/conversations?run=score-1",
    "/sets",
    "/label",
    "/share",
    "/label/agreement",
    "/label/adjudicate",
    "/compare",
    "/calibration",
    "/waiting",
    "/talk",
]
FAILING = {
    "/conversations?run=none": 404,
    "/conversations?sort=nothing": 400,
    "/conversations?nothing=1": 400,
    "/conversation?run=learn-1&id=none": 404,
    "/conversation?run=none&id=none": 404,
    "/runs/none": 404,
    "/runs/none/calls": 404,
    "/runs/learn-1/call?key=none": 404,
    "/sets/none": 404,
    "/sets/diff?a=none&b=none": 404,
    "/drafts/none": 404,
    "/label/none": 404,
    "/replay?run=learn-1&id=none": 404,
    "/compare?a=learn-1&b=none": 404,
    "/calibration/none": 404,
    "/waiting/none": 404,
    "/talk/none": 404,
}


def looked_at(visitor: Visitor, path: str, status: int) -> None:
    """Open a page, and look at it in both schemes."""
    assert visitor.go(path).status == status, path
    for scheme in ("light", "dark"):
        visitor.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert visitor.findings() == [], f"{path} {scheme}"
    assert visitor.page.locator("h1").inner_text(), path
    assert visitor.page.locator("header a").count() >= 5, f"{path}: the way on"


@pytest.mark.scenario(1)
def test_axe_finds_nothing_on_pages_without_anything_to_show(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    with Store.open(folder):
        pass
    visitor = visit(serve(folder))
    looked_at(visitor, "/", 200)
    assert "Nothing is there yet" in visitor.page.locator("main").inner_text()
    with Store.open(folder) as store:
        store.finish(store.begin("score", arguments={}, fingerprint={}, versions={}).id, "done")
    for path in EMPTY:
        looked_at(visitor, path, 200)


@pytest.mark.scenario(1)
def test_axe_finds_nothing_on_pages_that_fail(visitor: Visitor) -> None:
    for path, status in FAILING.items():
        looked_at(visitor, path, status)
    visitor.faults[:] = [fault for fault in visitor.faults if "(Bad Request)" not in fault]


def test_a_damaged_store_says_so_on_its_pages_and_the_others_go_on(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=6).close()
    for part in folder.glob("runs/score-2-*/conversations-*.parquet"):
        part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    visitor = visit(serve(folder))
    looked_at(visitor, "/conversations?run=score-2", 503)
    assert "score-2" in visitor.page.locator("main").inner_text(), "what is damaged"
    looked_at(visitor, "/conversations?run=learn-1", 200)
    visitor.faults[:] = [fault for fault in visitor.faults if "(Service Unavailable)" not in fault]


def test_an_answer_that_finds_the_disk_full_is_told_and_can_be_given_again(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=6).close()
    served = serve(folder)
    visitor = begun(visit(served))
    page = visitor.page
    page.get_by_label("Note").fill("a word about it")
    # no file gets larger than a byte
    limits = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (1, -1))
    page.get_by_role("button", name="Up").click()
    page.get_by_text("Your last answer is not kept").wait_for()
    assert visitor.findings() == []
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, limits)
    page.go_back()
    assert page.get_by_label("Note").input_value() == "a word about it"
    page.get_by_role("button", name="Up").click()
    page.get_by_text("1 of 6 done").wait_for()
    assert answers(folder) == ['"up"']
    visitor.faults[:] = [fault for fault in visitor.faults if "(Service Unavailable)" not in fault]


@pytest.mark.nightly  # it waits for a while
def test_an_answer_while_another_process_keeps_the_store_is_told_and_can_be_given_again(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=6).close()
    served = serve(folder)
    visitor = begun(visit(served))
    reader = visit(served)
    page = visitor.page
    with closing(sqlite3.connect(folder / "store.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        page.get_by_role("button", name="Up").click(no_wait_after=True)
        page.get_by_text("Your last answer is not kept").wait_for()
        assert "Another process" in page.locator("main").inner_text()
        assert visitor.findings() == []
        looked_at(reader, "/conversations?run=learn-1", 200)
        other.execute("ROLLBACK")
    page.go_back()
    page.get_by_role("button", name="Up").click()
    page.get_by_text("1 of 6 done").wait_for()
    assert answers(folder) == ['"up"']
    visitor.faults[:] = [fault for fault in visitor.faults if "(Service Unavailable)" not in fault]


@pytest.mark.scenario(12)
def test_keys_that_come_while_the_next_conversation_loads_label_nothing(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=6).close()
    served = serve(folder)
    visitor = begun(visit(served))
    page = visitor.page
    served.process.send_signal(signal.SIGSTOP)
    try:
        visitor.press("u", "d", "d")
    finally:
        served.process.send_signal(signal.SIGCONT)
    page.get_by_text("1 of 6 done").wait_for()
    assert answers(folder) == ['"up"']
    visitor.press("d")
    page.get_by_text("2 of 6 done").wait_for()
    assert answers(folder) == ['"up"', '"down"']


def test_a_server_that_is_gone_is_told_and_the_page_stays(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=250).close()
    served = serve(folder)
    visitor = visit(served)
    page = visitor.page
    visitor.go("/conversations?run=learn-1")
    page.get_by_label("Words").fill("typed")
    served.process.terminate()
    served.process.wait(120)
    page.locator("#window").evaluate("box => { box.scrollTop = box.scrollHeight }")
    page.get_by_role("alert").get_by_text("The server does not answer").wait_for()
    assert page.get_by_label("Words").input_value() == "typed"
    assert visitor.findings() == []
    serve(folder, "--port", served.base.rpartition(":")[2])
    page.get_by_role("alert").wait_for(state="detached")
    assert page.get_by_label("Words").input_value() == "typed"
    visitor.faults[:] = [fault for fault in visitor.faults if "ERR_CONNECTION" not in fault]


@pytest.mark.scenario(22)
def test_a_turn_of_20_000_characters_without_a_space_makes_no_page_wider(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    with made_store(
        folder, n=6, words=lambda text: text + "x" * 20_000 * ("parcel" in text)
    ) as store:
        run = judged_run(store, words=lambda text: text + "x" * 20_000 * ("parcel" in text))
    visitor = visit(serve(folder), viewport={"width": 390, "height": 800})
    page = begun(visitor).page
    for path in (
        page.url.removeprefix(visitor.served.base),
        "/conversation?run=learn-1&id=conversation+1",
        "/conversations?run=learn-1",
        "/replay?run=learn-1&id=conversation+1",
        f"/waiting/{run}?who=ann",
        "/",
    ):
        looked_at(visitor, path, 200)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        if path.startswith("/conversation?"):
            assert page.get_by_text("x" * 20_000).count(), "all of it can be read"
    visitor.go("/conversations?run=learn-1")
    for button, inside in (("Narrow the list", "Thumb in the log"), ("Pages", "Rubrics")):
        assert not page.get_by_text(inside).is_visible()
        page.get_by_role("button", name=button).click()
        assert page.get_by_text(inside).is_visible()
        assert visitor.findings() == []
    page.get_by_role("link", name="Rubrics").click()
    page.get_by_role("heading", name="Rubrics").wait_for()


def begun(visitor: Visitor) -> Visitor:
    """Make a queue of thumbs, and take its first conversation."""
    visitor.go("/label")
    page = visitor.page
    page.get_by_label("Name").fill("thumbs")
    page.get_by_label("Share at random").fill("0")
    page.get_by_role("button", name="Make the queue").click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("button", name="Begin").click()
    page.wait_for_url("**lease=*")
    return visitor


def answers(folder: Path) -> list[str]:
    """All labels, in the order in which they were kept."""
    with sqlite3.connect(folder / "store.sqlite") as kept:
        return [value for (value,) in kept.execute("SELECT value FROM labels ORDER BY rowid")]
