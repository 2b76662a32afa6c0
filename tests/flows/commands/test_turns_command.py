"""`pollex turns`: probabilities before the end, only where they are better than the share of thumbs up."""

import random
from pathlib import Path
from typing import Any

import numpy as np
from small_log import read_rows, row, write_log
from small_runs import Learnt, Pollex

from pollex.conversations.conversation import Conversation
from pollex.measures.intervals import Figure
from pollex.rubrics.records import TurnRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection.threshold import Calibration
from pollex.services.evaluate import (
    compute_log_losses,
    count_user_turns,
    cross_fit_probabilities,
    cut_after_turns,
    score_beginnings,
)
from pollex.services.scorer import BatchScorer


def conversation(*texts: str) -> Conversation:
    return Conversation.model_validate({"id": "c", "turns": row("c", texts)["messages"]})


def log(n: int) -> list[dict[str, Any]]:
    """Two turns of the user each; the first tells the thumb."""
    rng = random.Random(0)
    rows = []
    for number in range(n):
        up = rng.random() < 0.5
        mood = "Great, thanks, that is perfect!" if up else "No, that is wrong, that did not work."
        texts = [
            f"Please book number {number}. {mood}",
            "It is booked.",
            f"Bye {number}.",
            "Goodbye.",
        ]
        rows.append(row(f"n{number}", texts, thumbs="up" if up else "down"))
    return rows


def test_a_beginning_ends_before_the_users_next_turn_and_noise_about_it_is_no_better_than_the_share() -> (
    None
):
    whole = conversation("one", "answer", "two", "answer", "three")
    assert count_user_turns(whole) == 3
    assert [turn.content for turn in cut_after_turns(whole, 2).turns] == [
        "one",
        "answer",
        "two",
        "answer",
    ]
    assert cut_after_turns(whole, 3) == whole
    rng = np.random.default_rng(0)
    positive = rng.random(400) < 0.5
    netsat = rng.normal(size=400)
    labels = np.where(positive, "positive", "negative")
    known = [
        conversation(f"{n}").model_copy(update={"id": f"{n}", "label": one})
        for n, one in enumerate(labels)
    ]
    probability, share = cross_fit_probabilities(netsat, positive, known)
    assert (
        compute_log_losses(probability, positive).mean()
        > compute_log_losses(share, positive).mean() - 0.005
    )


def test_a_probability_that_does_not_help_is_not_given(learnt: Learnt) -> None:
    scorer = BatchScorer(RubricSet.load(learnt.rubrics))
    curve = Calibration(slope=0.1, intercept=0.0)
    figure = Figure(0.5, 0.4, 0.6, n=50)
    given = {"n": 50, "calibration": curve, "log_loss": figure, "share_log_loss": figure}
    helps = Figure(0.1, 0.05, 0.2, n=50)
    does_not = Figure(0.1, -0.05, 0.2, n=50)
    records = (
        TurnRecord(turns=1, gain=does_not, **given),
        TurnRecord(turns=2, gain=helps, **given),
    )
    whole = conversation("Please book it.", "Done.", "Thanks!", "Bye.", "Bye.")
    rows = score_beginnings(whole, scorer.scores, records)
    assert [row["turns"] for row in rows] == [1, 2, 3]
    assert rows[0]["netsat"] is not None
    assert [row["probability"] is None for row in rows] == [True, False, False]


def test_figures_and_scores_are_written(pollex: Pollex, learnt: Learnt) -> None:
    write_log(Path("labeled.jsonl"), log(60))
    ended = pollex(
        *("turns", "labeled.jsonl", "--rubrics", learnt.rubrics, "--out", "early.json"),
        *("--scores", "turns.jsonl", "--json"),
    )
    assert ended.code == 0, ended.err
    found = ended.last["turns"]
    assert [row["turns"] for row in found] == [1, 2]
    assert all(row["n"] == 60 and row["low"] <= row["gain"] <= row["high"] for row in found)
    assert [one.turns for one in RubricSet.load(Path("early.json")).turns] == [1, 2]
    rows = read_rows(Path("turns.jsonl"))
    assert len(rows) == 120
    shown = {row["turns"]: row["shown"] for row in found}
    assert all((row["probability"] is not None) == shown[row["turns"]] for row in rows)
