"""The cases that a run of `judge` leaves to people, read from the store."""

from __future__ import annotations

from dataclasses import dataclass

from pollex.graphs.context import ConversationIndex
from pollex.graphs.judge.run import TASK, Task, people_so_far, so_far, truth_of
from pollex.graphs.judge.state import JudgeRunState, fit_to_thumbs
from pollex.store.resume import conversations_of, step
from pollex.store.runs import Run
from pollex.store.store import Store


@dataclass(frozen=True)
class Waiting:
    """The cases that a run leaves to people.

    Attributes:
        conversations: Ids, the most contested first.
        votes: By conversation, runs that chose each option.
        taken: By conversation, what people said that the run took up.
    """

    task: Task
    conversations: tuple[str, ...]
    votes: dict[str, tuple[int, ...]]
    taken: dict[str, str]


def waiting_of(store: Store, run: Run) -> Waiting | None:
    """Return what an ended run waits for, read-only; None if it is no run of `judge`."""
    found = work_of(store, run)
    if found is None:
        return None
    task, work = found
    ids = work.waiting()
    return Waiting(task, tuple(ids), {id_: work.tallies[id_].votes for id_ in ids}, work.people)


def work_of(store: Store, run: Run) -> tuple[Task, JudgeRunState] | None:
    """Return what an ended run was asked, and its votes with the rule that was fitted; None as for `waiting_of`."""
    kept = step(store, run.id, TASK) if run.command == "judge" else None
    if kept is None:
        return None
    task = Task.from_json(kept)
    tallies, _ = so_far(store, run.id, task, ())
    work = JudgeRunState(task.rule, tallies=tallies, people=people_so_far(store, run.id, task))
    if task.precision is not None:
        conversations = [one for one in conversations_of(store, run.id) if one.id in tallies]
        fit_to_thumbs(work, ConversationIndex(conversations), truth_of(conversations), task.precision)
    return task, work
