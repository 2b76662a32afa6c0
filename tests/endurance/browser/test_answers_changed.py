"""Answers by keys that are looked at again: of conversations and of pairs, skipped ones and changed ones."""

from collections.abc import Callable
from pathlib import Path

import pytest
from visitors import Served, Visitor
from web_site import made_store

from pollex.runs.workspace import run_coroutine_to_end
from pollex.store.labels import read_opinions
from pollex.store.store import Store

SHEET = [
    {"key": f"{n:016x}", "conversation": f"talk {n}", "said": [], "1": "Yes.", "2": f"No {n}."}
    for n in (1, 2)
]


@pytest.fixture
def answering(serve: Callable[..., Served], tmp_path: Path) -> tuple[Served, str]:
    """A store with conversations, and a remedy whose pairs wait for people; the address of these."""
    with made_store(tmp_path / ".pollex", n=6) as store:
        run = store.begin("remedy", arguments={}, fingerprint={}, versions={})
        run_coroutine_to_end(store.write_step(run.id, "pairs", SHEET))
        store.finish(run.id, "interrupted")
    return serve(tmp_path / ".pollex"), f"/remedies/{run.id}/compare"


def answer(visitor: Visitor, key: str) -> None:
    """Press a key that leads to another page, and wait for that page."""
    with visitor.page.expect_navigation():
        visitor.press(key)


def test_one_goes_back_by_keys_and_says_something_else(
    visit: Callable[..., Visitor], answering: tuple[Served, str]
) -> None:
    served, _ = answering
    visitor = visit(served)
    page = visitor.page
    visitor.go("/label")
    page.get_by_label("Name", exact=True).fill("mine")
    page.get_by_label("Shown twice").fill("0")
    page.get_by_role("button", name="Make the queue").click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("button", name="Begin").click()
    page.wait_for_url("**lease=*")
    for key in "uu":
        answer(visitor, key)
    now = page.url
    answer(visitor, "z")
    page.get_by_text("You said: up.").wait_for()
    assert visitor.findings() == []
    answer(visitor, "z")
    page.get_by_text("You said: up.").wait_for()
    # another answer leads on to what comes next, and so does leaving it
    answer(visitor, "d")
    assert page.url == now
    answer(visitor, "z")
    answer(visitor, "n")
    assert page.url == now
    visitor.press("0")
    page.keyboard.type("another language")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.get_by_text("2 of 6 done, 1 skipped").wait_for()
    with Store.open(served.store) as store:
        assert sorted(opinion.value for opinion in read_opinions(store, "thumb")) == ["down", "up"]


def test_a_skipped_pair_is_no_compared_one_and_is_found_again(
    visit: Callable[..., Visitor], answering: tuple[Served, str]
) -> None:
    served, address = answering
    visitor = visit(served)
    page = visitor.page
    visitor.go(f"{address}?who=ann")
    answer(visitor, "s")
    answer(visitor, "1")
    page.get_by_text("1 skipped").wait_for()
    assert visitor.findings() == []
    page.get_by_role("link", name="Look again at the one that you skipped").click()
    page.get_by_text("You said: skipped.").wait_for()
    answer(visitor, "2")
    page.get_by_text("2 of 2").wait_for()
    assert page.get_by_text("skipped").count() == 0
    answer(visitor, "z")
    page.get_by_text("You said: reply 1.").wait_for()
