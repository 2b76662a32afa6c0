"""Votes of a run of `judge`, as the store has them."""

from collections.abc import Collection, Iterator, Sequence

from pollex.conversations.conversation import Conversation
from pollex.rooms.judge.agents.votes import (
    RatingRule,
    RatingTask,
    Verdict,
    Vote,
    VoteTally,
    decide_verdict,
    make_person_question,
    make_run_question,
)
from pollex.rubrics.answers import (
    Answer,
    NoAnswerOutcome,
    Question,
    Unanswered,
    may_asking_again_bring_answer,
)
from pollex.store.resume import CONVERSATIONS_PER_QUERY, read_answers, read_step_result
from pollex.store.store import Store

TASK_RECORD_NAME = "task"
"""Name of the step that keeps what a run was asked to do."""


def read_task(store: Store, run: str) -> RatingTask | None:
    """Return what a run was asked to do; None if it is no run of `judge`."""
    task = read_step_result(store, run, TASK_RECORD_NAME)
    if task is None:
        return None
    return RatingTask.from_json(task)


def read_asked_questions(store: Store, run: str) -> dict[str, Question]:
    """Return the questions of a run of `judge`, by the ids in its answers."""
    task = read_task(store, run)
    if task is None:
        return {}

    asked_of = []
    for number in range(task.rule.runs):
        asked_of.append(make_run_question(task.question, number))

    return {question.id: question for question in [*asked_of, make_person_question(task.question)]}


def read_votes_so_far(
    store: Store,
    run: str,
    task: RatingTask,
    again: Collection[NoAnswerOutcome],
) -> tuple[dict[str, VoteTally], dict[str, dict[int, Vote]]]:
    """Return vote counts by conversation, and known answers of those still to be asked."""
    tallies: dict[str, VoteTally] = {}
    partial: dict[str, dict[int, Vote]] = {}
    for id_, votes in iterate_votes(store, run, task):
        tallies[id_] = VoteTally.of(votes, len(task.question.options))
        # votes that may be asked for again leave a gap under their number
        if any(may_asking_again_bring_answer(vote, again) for vote in votes):
            partial[id_] = {
                number: vote
                for number, vote in enumerate(votes)
                if not may_asking_again_bring_answer(vote, again)
            }

    return tallies, partial


def iterate_votes(
    store: Store,
    run: str,
    task: RatingTask,
    ids: Sequence[str] | None = None,
) -> Iterator[tuple[str, list[Answer | Unanswered]]]:
    """Yield each conversation's votes, in the order of the runs."""
    # each run's vote is stored as the answer to a question of its own
    names = []
    for number in range(task.rule.runs):
        names.append(make_run_question(task.question, number).id)

    # a run that was spared or is still to come has no answer
    for id_, answers in read_answers(store, run, ids=None if ids is None else list(ids)).items():
        votes = []
        for name in names:
            if name in answers:
                votes.append(answers[name])
        if votes:
            yield id_, votes


def read_people_so_far(store: Store, run: str, task: RatingTask) -> dict[str, str]:
    rows = store.ask(
        run,
        "SELECT conversation, last(chosen ORDER BY seq) AS chosen FROM answers WHERE question = ? "
        "GROUP BY conversation",
        [make_person_question(task.question).id],
    )
    return {row["conversation"]: task.question.options[row["chosen"]].text for row in rows}


def iterate_verdicts(
    store: Store,
    run: str,
    task: RatingTask,
    rule: RatingRule,
    conversations: Sequence[Conversation],
) -> Iterator[Verdict]:
    """Yield the verdict of each conversation, in their order, read in batches."""
    people = read_people_so_far(store, run, task)
    # batches keep the answers of a large run out of memory
    for start in range(0, len(conversations), CONVERSATIONS_PER_QUERY):
        ids = [c.id for c in conversations[start : start + CONVERSATIONS_PER_QUERY]]
        votes = dict(iterate_votes(store, run, task, ids))
        for id_ in ids:
            yield decide_verdict(
                id_,
                task.question,
                votes.get(id_, []),
                rule,
                people.get(id_),
            )
