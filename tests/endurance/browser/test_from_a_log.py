"""From a log to scores in the browser alone: an empty store leads into it, and each page on."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_log import small_log, write_log
from visitors import Served, Visitor

MINUTES_3 = 180_000


@pytest.mark.nightly  # test_to_a_proof.py walks these pages
def test_a_log_is_learned_from_and_scored_in_the_browser_alone(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    write_log(tmp_path / "talks.jsonl", small_log())
    visitor = visit(serve(tmp_path / ".pollex", folder=tmp_path))
    page = visitor.page
    assert visitor.findings() == []
    page.get_by_role("link", name="Learn from one that is here").click()
    page.get_by_label("talks.jsonl").check()
    page.get_by_text("pollex learn talks.jsonl").wait_for()
    for summary in page.locator("summary").all():
        summary.click()
    assert visitor.findings() == []
    page.get_by_role("button", name="Learn", exact=True).click()
    assert visitor.findings() == []
    page.get_by_role("link", name="What your users' thumbs are about").click(timeout=MINUTES_3)
    page.get_by_role("heading", name="What your users' thumbs are about").wait_for()
    assert (tmp_path / "report.html").exists(), "as from a terminal"

    visitor.go("/begin/score")
    page.get_by_label("talks.jsonl").check()
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_role("link", name="All of them, the worst first").click(timeout=MINUTES_3)
    page.locator("#rows tr").nth(10).wait_for()
    visitor.go("/at-work")
    assert "Score a log talks.jsonl done" in page.locator("main").inner_text()
    assert visitor.findings() == []


def test_forms_are_whole_on_a_telephone_and_without_a_script(
    visit: Callable[..., Visitor], served: Served
) -> None:
    narrow = {"width": 400, "height": 800}
    visitor = visit(served, viewport=narrow, color_scheme="dark", java_script_enabled=True)
    for path in ("/begin", "/begin/learn", "/begin/check", "/begin/compare", "/at-work"):
        visitor.go(path)
        visitor.page.evaluate(
            "document.querySelectorAll('details').forEach(one => one.open = true)"
        )
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 400, path
        assert visitor.findings() == []
    plain = visit(served, java_script_enabled=False)
    plain.go("/begin/learn")
    plain.page.get_by_label("The log that comes with pollex").check()
    plain.page.get_by_role("button", name="Show the command").click()
    assert "bikes.jsonl" in plain.page.locator("#command").inner_text()
