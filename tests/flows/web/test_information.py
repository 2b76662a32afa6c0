"""Conversations in the order in which their labels tell most, counted by hand."""

from pathlib import Path

import numpy as np
from web_site import client_of, made_app, made_store

from pollex.calibration.active_learning import select_queries, vectors_of
from pollex.rubrics.answers import Answer
from pollex.store.resume import answers_of
from pollex.web.listing import ANEW, FIRST


async def test_the_most_telling_first_is_what_the_design_picks_and_labels_change_it(tmp_path: Path) -> None:
    with made_store(tmp_path / ".pollex", n=40) as store:
        async with client_of(made_app(store)) as client:
            asked = {"run": "learn-1", "sort": "information", "down": 1, "n": 500}
            rows = (await client.get("/api/conversations", params=asked)).json()["rows"]
            run = store.value("SELECT id FROM runs WHERE command = 'learn'")
            own = answers_of(store, run)
            means = {
                id_: [a.expected() if isinstance(a := own[id_].get(q), Answer) else np.nan for q in QUESTIONS]
                for id_ in own
            }
            known = [row for row in sorted(rows, key=place) if row["probability"] is not None]
            p = np.array([[row["probability"]] for row in known])
            vectors = vectors_of(np.array([means[row["id"]] for row in sorted(rows, key=place)]))
            mine = vectors[[place(row) for row in known]]
            picked = select_queries(mine, p * (1 - p), np.zeros(p.shape, dtype=bool), FIRST)
            assert [row["id"] for row in rows[:FIRST]] == [known[at]["id"] for at in picked.row.tolist()]
            assert [row["probability"] for row in rows[len(known) :]] == [None] * (40 - len(known))
            up = (await client.get("/api/conversations", params=asked | {"down": 0})).json()["rows"]
            assert [row["id"] for row in up[: len(known)]] == [row["id"] for row in rows[len(known) - 1 :: -1]]

            queue = (await client.post("/api/queues", json=QUEUE)).json()["queue"]
            for number in range(ANEW):
                lease = (await client.post(f"/api/queues/{queue}/next", json={"who": "Ann"})).json()
                assert lease["conversation"] == rows[number]["id"], "not made anew before ten"
                label = {"lease": lease["lease"], "who": "Ann", "value": "up"}
                assert (await client.post("/api/labels", json=label)).status_code == 200
            after = (await client.get("/api/conversations", params=asked)).json()["rows"]
            labeled = {row["id"] for row in rows[:ANEW]}
            assert labeled.isdisjoint(row["id"] for row in after[: len(known) - ANEW]), "they are known by now"


QUESTIONS = ("rubric1", "rubric2")
QUEUE = {"name": "a", "run": "learn-1", "kind": "telling", "random_share": 0, "repeat_share": 0}


def place(row: dict[str, str]) -> int:
    return int(row["id"].rpartition(" ")[2])
