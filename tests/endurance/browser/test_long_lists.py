"""Lists of very many conversations: their end, their middle, and back."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from visitors import Served, Visitor

from pollex.store.store import Store
from pollex.store.tables import AnswerRow, ConversationRow, ScoreRow, TextRow, dump_json

pytestmark = pytest.mark.nightly  # CI has twenty minutes

ROWS = "all => all.map(row => [Number(row.ariaRowIndex), row.querySelector('a').title])"


@pytest.mark.scenario(4)
@pytest.mark.parametrize("n", [3000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_every_row_of_a_long_list_is_the_one_that_its_number_says(
    visit: Callable[..., Visitor], serve: Callable[..., Served], tmp_path: Path, n: int
) -> None:
    folder = tmp_path / ".pollex"
    with Store.open(folder) as store:
        run = score_many(store, n)
    visitor = visit(serve(folder))
    page = visitor.page
    visitor.go(f"/conversations?run={run}")
    assert page.locator("#window table").get_attribute("aria-rowcount") == str(n + 1)
    page.locator("#window").focus()
    for key, row in (("End", n + 1), ("Home", 2)):
        page.keyboard.press(key)
        page.locator(f"#rows tr[aria-rowindex='{row}']").wait_for()
        in_order(visitor)
    for share in (0.5, 0.9, 0.1):
        page.locator("#window").evaluate(
            "(box, share) => { box.scrollTop = share * box.scrollHeight }", share
        )
        page.locator(f"#rows tr[aria-rowindex='{int(share * n) + 10}']").wait_for()
        in_order(visitor)
    page.wait_for_url("**at=*")
    place = page.url
    page.reload()
    assert page.url == place
    page.locator(f"#rows tr[aria-rowindex='{int(0.1 * n) + 10}']").wait_for()
    in_order(visitor)
    assert page.evaluate("document.querySelectorAll('*').length") <= 2500


def in_order(visitor: Visitor) -> None:
    """Row by row, the number is that of the conversation."""
    rows = visitor.page.locator("#rows tr").evaluate_all(ROWS)
    assert len(rows) == 100
    assert [title for _, title in rows] == [f"conversation {number - 2}" for number, _ in rows]
    assert [number for number, _ in rows] == list(range(rows[0][0], rows[0][0] + 100))


def score_many(store: Store, n: int) -> str:
    """Write a run that scored `n` conversations with one rubric each."""
    rng = np.random.default_rng(0)
    run = store.begin("score", arguments={}, fingerprint={}, versions={}).id
    for i in range(n):
        id_ = f"conversation {i}"
        text = f"{i:064x}"
        p = float(rng.random())
        opening = f"Where is parcel {i}? It was sent to office {i % 97} on {i % 7} May."
        turns = dump_json(
            [["user", opening], ["assistant", "It is in Lima. " * 20], ["user", "Thanks."]]
        )
        thumb = ("positive", "negative", "none")[i % 3]
        verdict = "positive" if p > 0.5 else "negative"
        answer = (0.1, 0.2, 0.3, 0.2, 0.2)
        store.put(
            [
                TextRow(run, text, turns),
                ConversationRow(run, id_, text, thumb, None, None, "{}", "", opening, 3),
                ScoreRow(run, id_, 20 * (p - 0.5), verdict, abs(p - 0.5) > 0.2, p),
                AnswerRow(run, id_, text, "rubric 0", "h", "f", "j", answer, 2, "built-in"),
            ]
        )
        if i % 1000 == 999:
            store.flush()
    store.finish(run, "done")
    return run
