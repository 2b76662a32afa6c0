"""A form that lacks something says what, beside the button that was pressed, and sends nothing."""

from collections.abc import Callable
from pathlib import Path

from visitors import Served, Visitor
from web_site import made_store


def test_a_form_says_what_it_lacks_beside_its_button_also_in_parts_that_are_folded(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    command = {"command": "pollex learn other.jsonl"}
    with made_store(folder) as store:
        run = store.begin("learn", arguments=command, fingerprint={}, versions={})
        store.finish(run.id, "interrupted")
    visitor = visit(serve(folder))
    page = visitor.page

    # a tick that says yes to a command; what costs nothing isn't said to be paid once
    visitor.go(f"/runs/{run.id}")
    page.get_by_text("It asks no model, so it costs nothing.").wait_for()
    assert page.get_by_text("nothing is paid twice").count() == 0
    page.get_by_role("button", name="Go on").click()
    told = page.get_by_role("alert")
    told.wait_for()
    assert told.inner_text() == "Not sent yet: tick “Go on by this command”."
    assert page.locator("input[name=confirmed]").evaluate("box => box === document.activeElement")
    assert visitor.findings() == []
    page.locator("input[name=confirmed]").check()
    assert told.count() == 0

    # several at once, of which one is folded away
    visitor.go("/begin/check")
    folded = page.locator("#o-concurrency")
    folded.evaluate("field => { field.value = '0' }")
    assert not folded.is_visible()
    page.get_by_role("button", name="Check", exact=True).click()
    told.wait_for()
    sentence = told.inner_text()
    assert sentence.startswith(
        "Not sent yet: choose “New conversations”; choose “Those of before”; “Concurrency”: "
    )
    assert folded.is_visible()
    assert page.url.endswith("/begin/check")
