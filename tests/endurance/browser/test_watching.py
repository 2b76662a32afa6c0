"""A folder that is watched, in a real browser: from its name to what came of each file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_log import small_log, write_log
from visitors import Served, Visitor
from web_site import made_store

MINUTES_3 = 180_000


@pytest.mark.nightly  # two files are scored, by processes of their own
def test_what_arrives_in_a_folder_is_seen_scored_or_refused_and_tried_again(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    inbox = tmp_path / "in"
    inbox.mkdir()
    with made_store(tmp_path / ".pollex", n=40):
        pass
    visitor = visit(serve(tmp_path / ".pollex", "--root", str(inbox), folder=tmp_path))
    page = visitor.page
    page.set_default_timeout(MINUTES_3)
    visitor.go("/watch")
    page.get_by_label("Folder").fill(".")
    page.get_by_label("every").fill("0.1")
    page.get_by_role("button", name="Watch it").click()
    page.get_by_text("Nothing has arrived yet.").wait_for()

    # what is no log says so, and is tried again by a button once it is one
    (inbox / "week.jsonl").write_text('{"a": 1}\nno JSON\n')
    page.get_by_text("no known shape").wait_for()
    assert visitor.findings() == []
    write_log(inbox / "other.jsonl", small_log()[:30])
    row = page.get_by_role("row", name="other.jsonl")
    row.get_by_role("link", name="score-").wait_for()
    row.get_by_text("done").wait_for()
    page.get_by_role("button", name="Try week.jsonl again").click()
    page.get_by_role("row", name="week.jsonl").get_by_text("failed").wait_for()
    page.get_by_role("button", name=f"Look at {inbox} no more").click()
    page.get_by_text("every 0.1").wait_for(state="detached")
