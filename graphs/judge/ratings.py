"""What the votes of an ended run of `judge` came to, without what people said."""

from __future__ import annotations

from dataclasses import dataclass

from pollex.agents.votes import verdict
from pollex.graphs.judge.run import TASK, Task, votes_of
from pollex.rubrics.answers import Question
from pollex.store.resume import step
from pollex.store.runs import Run
from pollex.store.store import Store


@dataclass(frozen=True)
class Ratings:
    """The options that an ensemble agreed on, by text."""

    question: Question
    chosen: dict[str, str]


def ratings_of(store: Store, run: Run) -> Ratings | None:
    """Return what the votes of a run of `judge` agreed on; None if it was never asked anything."""
    kept = step(store, run.id, TASK)
    if kept is None:
        return None
    task = Task.from_json(kept)
    rows = store.ask(run.id, "SELECT id, text_hash FROM conversations")
    texts = {str(row["id"]): str(row["text_hash"]) for row in rows}
    found = {id_: verdict(id_, task.question, votes, task.rule).rating for id_, votes in votes_of(store, run.id, task)}
    return Ratings(task.question, {texts[id_]: rating for id_, rating in found.items() if rating is not None})
