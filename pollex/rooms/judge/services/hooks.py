"""What the room adds to the core's services."""

from collections.abc import Mapping

from pollex.rubrics.answers import Question
from pollex.services.hooks import RunQuestionReader, RunRatingReader
from pollex.store.runs import Run
from pollex.store.store import Store


def read_questions(store: Store, run: str) -> Mapping[str, Question]:
    """Return the question of a run, by each run of the panel."""
    from pollex.rooms.judge.store.votes import (
        read_asked_questions,  # a tenth of a second, for these runs alone
    )

    return read_asked_questions(store, run)


def read_ratings(store: Store, run: Run) -> tuple[Question, Mapping[str, str]] | None:
    """Return a run's question, and the option agreed on by text."""
    from pollex.rooms.judge.agents.votes import make_person_question  # as above
    from pollex.rooms.judge.services.judge_runs import read_run_ratings

    rated = read_run_ratings(store, run)
    return rated and (make_person_question(rated[0]), rated[1])


HOOKS = (RunQuestionReader("judge", read_questions), RunRatingReader("judge", read_ratings))
