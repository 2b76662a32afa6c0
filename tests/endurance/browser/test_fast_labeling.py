"""Keys pressed faster than pages come: what was pressed is kept, of the conversation that was shown."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from visitors import Served, Visitor
from web_site import made_store

ANSWERS_QUERY = """
    SELECT s.lease, l.value FROM sheets AS s
    JOIN labels AS l ON l.id = s.label JOIN leases AS e ON e.id = s.lease
    WHERE l.drawn = e.drawn
"""
"""What a person answered: an answer that chance would have asked for, too, is kept once more as drawn at random."""


@pytest.mark.scenario(2)
def test_fast_keys_answer_what_is_shown_and_a_key_held_down_answers_one_page(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path
) -> None:
    folder = tmp_path / ".pollex"
    with made_store(folder, n=60):
        pass
    visitor = visit(serve(folder))
    page = visitor.page
    visitor.go("/label")
    page.get_by_label("Name", exact=True).fill("fast")
    page.get_by_role("button", name="Make the queue").click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("button", name="Begin").click()
    page.wait_for_url("**lease=*")

    # a key that is held down comes again and again
    page.wait_for_timeout(200)
    for _ in range(20):
        page.keyboard.down("u")
        page.wait_for_timeout(50)
    page.keyboard.up("u")
    page.wait_for_timeout(500)
    assert list_values(folder) == ["up"]

    for _ in range(30):
        page.keyboard.press("d")
        page.wait_for_timeout(30)
    page.wait_for_timeout(500)
    with sqlite3.connect(folder / "store.sqlite") as store:
        leases = store.execute("SELECT id FROM leases").fetchall()
        answers = store.execute(ANSWERS_QUERY).fetchall()
    # the last lease is the conversation that is shown now: each before it has one answer
    assert len(leases) == len(answers) + 1
    assert set(Counter(lease for lease, _ in answers).values()) == {1}
    assert Counter(value for _, value in answers)['"up"'] == 1


def list_values(folder: Path) -> list[str]:
    """The answers that were kept, in their order."""
    with sqlite3.connect(folder / "store.sqlite") as store:
        return [str(value).strip('"') for (value,) in store.execute("SELECT value FROM labels")]
