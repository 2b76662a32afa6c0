"""Everything without a script: each page says what it says with one, lists go on by links, and a sheet is sent."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from test_browser import PAGES
from visitors import Served, Visitor
from web_site import made_store

ONLY_WITHOUT = {"Next rows", "Last rows"}
"""With a script rows come as one scrolls."""


def lines(visitor: Visitor) -> set[str]:
    """What a page says and links to."""
    main = visitor.page.locator("main")
    links = main.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    return {*main.inner_text().splitlines(), *links}


@pytest.mark.scenario(21)
@pytest.mark.nightly
def test_every_page_says_without_a_script_what_it_says_with_one(
    visit: Callable[..., Visitor], served: Served
) -> None:
    plain = visit(served, java_script_enabled=False)
    scripted = visit(served)
    for path in PAGES:
        expected = 404 if path == "/nowhere" else 200
        assert plain.go(path).status == scripted.go(path).status == expected, path
        assert plain.page.locator("h1").inner_text(), path
        said = lines(plain)
        said_with = lines(scripted)
        assert said - said_with <= ONLY_WITHOUT, path
        only_keys = plain.page.locator("main button[hidden]").all_text_contents()
        assert said_with - said <= set(only_keys), path


@pytest.mark.scenario(21)
def test_lists_are_read_and_a_sheet_is_sent_without_a_script(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=110).close()
    visitor = visit(serve(folder), java_script_enabled=False)
    page = visitor.page
    visitor.go("/conversations?run=learn-1")
    page.get_by_role("link", name="Next rows").click()
    assert page.locator("#rows tr").first.get_attribute("aria-rowindex") == "102"
    page.locator("#rows a").first.click()
    page.wait_for_url("**/conversation?*")
    assert page.locator(".turn").count() == 4

    visitor.go("/label")
    page.get_by_label("Name", exact=True).fill("sheets")
    page.get_by_label("Of run").select_option(index=1)
    page.get_by_label("Ask").select_option("rubrics")
    page.get_by_label("Share at random").fill("0")
    page.get_by_role("button", name="Make the queue").click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("button", name="Begin").click()
    for question, place in zip(page.locator("fieldset").all(), (0, 4), strict=True):
        question.locator("input").nth(place).check()
    page.get_by_label("Note").fill("by mouse alone")
    page.get_by_role("button", name="Keep and go on").click()
    page.get_by_text(re.compile(r"\b1 of \d+ done")).wait_for()
    with sqlite3.connect(folder / "store.sqlite") as kept:
        sent = kept.execute(
            "SELECT l.annotator, l.value, s.comment FROM labels l JOIN sheets s ON s.label = l.id"
        )
        assert sent.fetchall() == [
            ("ann", "0.0", "by mouse alone"),
            ("ann", "10.0", "by mouse alone"),
        ]
