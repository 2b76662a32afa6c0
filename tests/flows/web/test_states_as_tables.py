"""A run's page shows what each node changed as tables."""

import re

from small_runs import Learnt
from web_site import client_of, made_app

from pollex.store.resume import find_run
from pollex.store.store import Store
from pollex.web.pages.run_states import MAX_TABLE_ROWS, StateTable, make_state_table


async def test_nested_state_is_shown_as_tables_and_not_as_json(learnt: Learnt) -> None:
    with Store.open(learnt.store, read_only=True) as store:
        run = find_run(store, "learn").id
        async with client_of(made_app(store, read_only=True)) as client:
            page = (await client.get(f"/runs/{run}")).text
    states = page[page.index('id="states"') :]
    assert re.search(r"<dt>model</dt><dd>.*log_odds", states, re.DOTALL)
    assert re.search(r"<dt>judged_by</dt>", states)
    assert "<pre" not in states
    assert "{&#34;" not in states


def test_rows_that_are_left_out_are_counted() -> None:
    table = make_state_table([{"id": str(n), "why": None} for n in range(MAX_TABLE_ROWS + 5)])
    assert isinstance(table, StateTable)
    assert (table.columns, len(table.rows), table.more) == (("id", "why"), MAX_TABLE_ROWS, 5)
    assert table.rows[0] == ("0", "none")
    assert make_state_table({"a": {"n": 1}, "b": {"n": 2}}) == StateTable(
        ("", "n"), (("a", 1), ("b", 2))
    )
