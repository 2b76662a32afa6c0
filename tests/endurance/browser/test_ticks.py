"""Rows that are ticked by keys: two runs to compare, and conversations for a queue, also those scrolled away."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from visitors import Served, Visitor
from web_site import made_store


def test_x_ticks_the_row_at_hand_and_what_is_ticked_is_compared_or_queued(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=130).close()
    visitor = visit(serve(folder))
    page = visitor.page
    visitor.go("/runs")
    visitor.press(*"xjxjx")  # the first x has no row yet
    assert visitor.findings() == []
    page.get_by_role("button", name="Compare the two").click()
    page.wait_for_url("**/compare?*")
    assert {"learn-1", "score-2"} <= {
        run.rpartition("-")[0] for run in page.url.replace("&", "=").split("=")
    }

    visitor.go("/conversations?run=learn-1")
    visitor.press(*"jjx")
    page.locator("#window").evaluate("box => { box.scrollTop = box.scrollHeight }")
    page.locator("#rows tr[aria-rowindex='131']").wait_for()
    assert page.locator("#rows tr[aria-rowindex='3']").count() == 0
    page.locator("#rows tr[aria-rowindex='131'] a").focus()
    page.keyboard.press("x")
    assert page.locator("#rows input:checked").count() == 1
    page.get_by_role("form", name="What is ticked").get_by_role("textbox").fill("odd ones")
    assert visitor.findings() == []
    page.get_by_role("button", name="Put what is ticked into the queue").click()
    page.wait_for_url("**/label/*")
    assert visitor.faults == []
    with sqlite3.connect(folder / "store.sqlite") as opened:
        rows = opened.execute("SELECT conversation FROM chosen ORDER BY conversation").fetchall()
    assert rows == [("conversation 1",), ("conversation 129",)]
    visitor.go("/conversation?run=learn-1&id=conversation+1")
    page.get_by_text("In the queue odd ones").wait_for()
    assert visitor.findings() == []
