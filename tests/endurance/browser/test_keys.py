"""All that a demo has, by keys alone: nothing here touches a mouse, or a field that no key led to."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judged_run import judged_run
from visitors import Served, Visitor
from web_site import made_store

STOPS = """() => {
  const at = document.activeElement, style = getComputedStyle(at);
  const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return [[...document.querySelectorAll("*")].indexOf(at), seen, at.outerHTML.slice(0, 80)];
}"""


def tab_to(page: Any, wanted: Any) -> None:
    """Press Tab until something has focus."""
    for _ in range(300):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab never comes to {wanted}")


@pytest.mark.scenario(2)
def test_tab_goes_through_a_page_in_its_order_and_focus_is_always_seen(visitor: Visitor) -> None:
    page = visitor.page
    for path in (
        "/",
        "/conversations?run=learn-1&predicted=up",
        "/conversation?run=learn-1&id=conversation+1",
        "/label",
    ):
        visitor.go(path)
        places = []
        for _ in range(25):
            page.keyboard.press("Tab")
            place, seen, what = page.evaluate(STOPS)
            if what.startswith("<body"):  # after the last one it is the browser's turn
                break
            assert seen, f"{path}: {what}"
            places.append(place)
        assert places == sorted(set(places)), path
        assert len(places) > 10, path


@pytest.mark.scenario(2)
def test_focus_stays_on_its_row_while_rows_come_and_go(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/conversations?run=learn-1")
    for _ in range(100):
        page.keyboard.press("j")
    for key, row in (("j", 102), ("j", 103), ("k", 102), ("k", 101)):
        page.keyboard.press(key)
        page.locator(f"#rows tr[aria-rowindex='{row}'] a:focus").wait_for()


@pytest.mark.scenario(2)
def test_a_key_held_down_moves_from_row_to_row(visitor: Visitor) -> None:
    visitor.go("/conversations?run=learn-1")
    visitor.hold("j", 5)
    visitor.page.locator("#rows tr[aria-rowindex='6'] a:focus").wait_for()


@pytest.mark.scenario(2)
def test_ctrl_enter_held_down_sends_one_form(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=6).close()
    visitor = visit(serve(folder))
    page = visitor.page
    visitor.go("/sets")
    page.locator(".card a").first.click()
    page.get_by_role("button", name="Edit a draft").click()
    page.get_by_role("heading", name="Draft, version 1").wait_for()
    sent = []
    page.on("request", lambda request: sent.append(request.method))
    visitor.wait_until_drawn()
    page.keyboard.down("Control")
    page.keyboard.down("Enter")
    page.get_by_role("heading", name="Draft, version 2").wait_for()
    visitor.wait_until_drawn()
    visitor.hold("Enter", 5)
    page.keyboard.up("Control")
    # what would have been sent comes before what is asked now
    visitor.go("/sets")
    assert sent.count("POST") == 1


@pytest.mark.nightly
@pytest.mark.scenario(3)
def test_the_whole_demo_can_be_gone_through_by_keys_alone(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    with made_store(folder, n=12) as store:
        judged_run(store)
    visitor = visit(serve(folder))
    page = visitor.page
    for key, place in (
        ("r", "runs"),
        ("s", "sets"),
        ("k", "calibration"),
        ("w", "waiting"),
    ):
        visitor.press("g", key)
        page.wait_for_url(f"**/{place}")

    visitor.press("g", "r")
    page.wait_for_url("**/runs")
    enter(page, page.get_by_role("link", name="learn-1").first, "**/runs/learn-1*")
    enter(page, page.get_by_role("link", name="Rubric set").first, "**/sets/*")
    visitor.press("g", "s")
    page.wait_for_url("**/sets")
    enter(page, page.locator(".card a").first, "**/sets/*")

    visitor.press("g", "c")
    page.wait_for_url("**/conversations")
    tab_to(page, page.locator("select[name=run]"))
    page.keyboard.type("learn")
    visitor.press("Escape", "/")
    page.keyboard.type("parcel 1?")
    page.keyboard.press("Enter")
    page.wait_for_url("**run=learn*q=parcel*")
    visitor.press("j", "Enter")
    page.wait_for_url("**/conversation?*")
    visitor.press("]")
    page.locator(".turn a:focus").wait_for()
    visitor.press("a")
    page.wait_for_url("**/replay?*")
    visitor.press("Backspace")
    page.wait_for_url("**/conversation?*")

    visitor.press("g", "l")
    page.wait_for_url("**/label")
    tab_to(page, page.get_by_label("Name", exact=True))
    page.keyboard.type("thumbs")
    tab_to(page, page.get_by_label("Share at random"))
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="thumbs").wait_for()
    tab_to(page, page.get_by_label("Your name"))
    page.keyboard.type("ann")
    visitor.press("Control+Enter")
    page.wait_for_url("**lease=*")
    visitor.press("u")
    page.get_by_text("1 of 11 done").wait_for()
    visitor.press("z")
    page.get_by_text("another answer replaces it").wait_for()
    visitor.press("d")
    page.get_by_text("1 of 11 done").wait_for()
    with sqlite3.connect(folder / "store.sqlite") as kept:
        assert [value for (value,) in kept.execute("SELECT value FROM labels ORDER BY rowid")] == [
            '"up"',
            '"down"',
        ]

    visitor.press("g", "w")
    page.wait_for_url("**/waiting")
    enter(page, page.get_by_role("link", name="judge-3"), "**/waiting/judge-3*")
    visitor.press("?")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    visitor.press("g", "h")
    page.wait_for_url("**/")


def enter(page: Any, link: Any, place: str) -> None:
    """Go to a link by Tab and Enter."""
    tab_to(page, link)
    page.keyboard.press("Enter")
    page.wait_for_url(place)
