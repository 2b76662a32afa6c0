"""Keys pressed faster than pages come: what was pressed is kept, of the conversation that was shown."""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
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

    # a key that is held down comes again and again, on the next page, too
    visitor.wait_until_drawn()
    page.keyboard.down("u")
    page.get_by_text(re.compile(r"\b1 of \d+ done")).wait_for()
    visitor.wait_until_drawn()
    visitor.hold("u", 20)
    visitor.wait_until_drawn()
    assert list_values(folder) == ["up"]

    for _ in range(30):
        page.keyboard.press("d")
        page.wait_for_timeout(30)
    # the last lease is the conversation that is shown now: each before it has one answer
    leases, answers = read_leases_and_answers(folder)
    for _ in range(100):  # an answer may still be on its way
        if len(leases) == len(answers) + 1:
            break
        page.wait_for_timeout(100)
        leases, answers = read_leases_and_answers(folder)
    assert len(leases) == len(answers) + 1
    assert set(Counter(lease for lease, _ in answers).values()) == {1}
    assert Counter(value for _, value in answers)['"up"'] == 1


def read_leases_and_answers(folder: Path) -> tuple[list[tuple[str]], list[tuple[str, str]]]:
    """Read at one moment what was lent to a person, and what the person answered."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as store:
        store.execute("BEGIN")
        leases = store.execute("SELECT id FROM leases").fetchall()
        return leases, store.execute(ANSWERS_QUERY).fetchall()


def list_values(folder: Path) -> list[str]:
    """The answers that were kept, in their order."""
    with sqlite3.connect(folder / "store.sqlite") as store:
        return [str(value).strip('"') for (value,) in store.execute("SELECT value FROM labels")]
