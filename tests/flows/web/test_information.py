"""Conversations in the order in which their labels tell most, counted by hand."""

import numpy as np
import pytest
from httpx2 import AsyncClient

from pollex.calibration.active_learning import (
    choose_texts_to_label_next,
    make_vectors_for_choosing_labels,
)
from pollex.rubrics.answers import Answer
from pollex.store.resume import read_answers
from pollex.store.store import Store
from pollex.web.listing import CHOSEN_ONE_BY_ONE, LABELS_BEFORE_NEW_ORDER


@pytest.mark.parametrize("own", [40], indirect=True)
async def test_the_most_telling_first_is_what_the_design_picks_and_labels_change_it(
    own: Store, web: AsyncClient
) -> None:
    asked = {"run": "learn-1", "sort": "information", "down": 1, "n": 500}
    rows = (await web.get("/api/conversations", params=asked)).json()["rows"]
    run = own.value("SELECT id FROM runs WHERE command = 'learn'")
    own = read_answers(own, run)
    means = {
        id_: [
            a.expected() if isinstance(a := own[id_].get(q), Answer) else np.nan for q in QUESTIONS
        ]
        for id_ in own
    }
    known = [row for row in sorted(rows, key=place) if row["probability"] is not None]
    p = np.array([[row["probability"]] for row in known])
    vectors = make_vectors_for_choosing_labels(
        np.array([means[row["id"]] for row in sorted(rows, key=place)])
    )
    mine = vectors[[place(row) for row in known]]
    picked = choose_texts_to_label_next(
        mine, p * (1 - p), np.zeros(p.shape, dtype=bool), CHOSEN_ONE_BY_ONE
    )
    assert [row["id"] for row in rows[:CHOSEN_ONE_BY_ONE]] == [
        known[at]["id"] for at in picked.row.tolist()
    ]
    assert [row["probability"] for row in rows[len(known) :]] == [None] * (40 - len(known))
    up = (await web.get("/api/conversations", params=asked | {"down": 0})).json()["rows"]
    assert [row["id"] for row in up[: len(known)]] == [
        row["id"] for row in rows[len(known) - 1 :: -1]
    ]

    queue = (await web.post("/api/queues", json=QUEUE)).json()["queue"]
    for number in range(LABELS_BEFORE_NEW_ORDER):
        lease = (await web.post(f"/api/queues/{queue}/next", json={"who": "Ann"})).json()
        assert lease["conversation"] == rows[number]["id"], "not made anew before ten"
        label = {"lease": lease["lease"], "who": "Ann", "value": "up"}
        assert (await web.post("/api/labels", json=label)).status_code == 200
    after = (await web.get("/api/conversations", params=asked)).json()["rows"]
    labeled = {row["id"] for row in rows[:LABELS_BEFORE_NEW_ORDER]}
    assert labeled.isdisjoint(row["id"] for row in after[: len(known) - LABELS_BEFORE_NEW_ORDER]), (
        "they are known by now"
    )


QUESTIONS = ("rubric1", "rubric2")
QUEUE = {"name": "a", "run": "learn-1", "kind": "telling", "random_share": 0, "repeat_share": 0}


def place(row: dict[str, str]) -> int:
    return int(row["id"].rpartition(" ")[2])
