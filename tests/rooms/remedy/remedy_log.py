"""A log of a restaurant's assistant that often can't book, and a rubric set of built-in events for it."""

import random
from pathlib import Path
from typing import Any

from rubric_set_by_hand import rubric, rubric_set
from small_log import row, write_log

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.conversations.logs import Logs
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs
from pollex.rubrics.records import JudgeRecord
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics
from pollex.runs.workspace import run_coroutine_to_end

FAILS = "The assistant says that it couldn't do something, and offers nothing in its place."
DONE = "The assistant manages to do something and repeats time, date or price of it."
LEFT = "After the assistant's reply, the user gives up or goes elsewhere."
TARGET = "f00000000001"
WELL = "d00000000001"
REACTION = "a00000000001"
EVENTS = (
    (TARGET, "dsat", "event:fail_no_way", FAILS),
    (WELL, "sat", "event:done_detail", DONE),
    (REACTION, "dsat", "event:given_up", LEFT),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DISHES = ("soup", "pasta", "risotto", "curry", "salad", "pie")


def talk(rng: random.Random, number: int, *, fails: bool) -> dict[str, Any]:
    """One conversation: a table that is booked or not, and what the user says then."""
    day = rng.choice(DAYS)
    hour = rng.randint(5, 10)
    people = rng.randint(2, 9)
    asked = (
        f"Hi, please book a table for {people} on {day} at {hour} pm, with {rng.choice(DISHES)}."
    )
    if fails:
        turns = [asked, f"I'm sorry, I wasn't able to book a table for {day} at {hour} pm."]
        turns += ["Forget it, I'll go somewhere else."]
    else:
        turns = [
            asked,
            f"I've booked a table for {day} at {hour} pm. It costs ${10 * people}.",
            "Thanks, perfect!",
        ]
    return row(f"t{number:03}", turns, thumbs="down" if fails else "up", user=f"u{number // 2}")


def table_log(n: int = 80, seed: int = 0) -> list[dict[str, Any]]:
    """Conversations of which every other one fails; two of a user."""
    rng = random.Random(seed)
    return [talk(rng, i, fails=i % 2 == 0) for i in range(n)]


def read_table_log(path: Path, n: int = 80) -> Logs:
    return read_logs(write_log(path, table_log(n)), options=ReadOptions(group_field="user"))


def table_rubrics(logs: Logs, **changes: Any) -> RubricSet:
    """A set whose built-in judge has studied the log; nothing was learned from it."""
    rubrics = tuple(
        rubric(1, side).model_copy(
            update={"id": id_, "text": text, "source": source, "worth": None, "tells": ""}
        )
        for id_, side, source, text in EVENTS
    )
    judge = EmbeddedJudge(Embedder(), rubrics=rubrics)
    run_coroutine_to_end(judge.fit(logs.conversations, rubrics))
    record = JudgeRecord(
        kind="embedded", name=judge.name, fingerprint=judge.fingerprint, learned=dict(judge.learned)
    )
    known = {
        "rubrics": rubrics,
        "judge": record,
        "rubrics_digest": hash_rubrics(rubrics),
        "reasons": (),
    }
    return rubric_set(**(known | changes))
