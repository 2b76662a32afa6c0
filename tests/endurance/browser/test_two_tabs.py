"""A draft that is open twice: the later words are not lost, and overwrite nothing unseen."""

from collections.abc import Callable
from pathlib import Path

from visitors import Served, Visitor
from web_site import made_store


def test_words_typed_over_an_older_version_stay_in_the_form_and_the_newer_ones_stand_beside_them(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=12).close()
    visitor = visit(serve(folder))
    page = visitor.page
    visitor.go("/sets")
    page.locator("main a[href^='/sets/']").first.click()
    page.get_by_role("button", name="Edit a draft").click()
    page.wait_for_url("**/drafts/*")
    path = "/drafts/" + page.url.rpartition("/")[2]
    other = page.context.new_page()
    other.goto(page.url)
    for tab, words in ((other, "The other tab's words."), (page, "This tab's words.")):
        tab.get_by_label("Rubric 1").fill(words)
        tab.get_by_role("button", name="Keep this version").click()
        tab.get_by_role("heading", name="Draft, version 2").wait_for()
    assert page.get_by_label("Rubric 1").input_value() == "This tab's words."
    page.get_by_text("Version 2: on, good: The other tab's words.").wait_for()
    visitor.faults.clear()  # the console tells of every 409
    assert visitor.findings() == []
    page.get_by_role("button", name="Keep this version").click()
    page.get_by_role("heading", name="Draft, version 3").wait_for()
    visitor.go(path)
    assert page.get_by_label("Rubric 1").input_value() == "This tab's words."
    assert visitor.faults == []
