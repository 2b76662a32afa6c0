"""What the room adds to the core's services."""

from collections.abc import Mapping

from pollex.rubrics.answers import Question
from pollex.services.hooks import RunQuestionReader, RunRatingReader
from pollex.store.runs import Run
from pollex.store.store import Store


def questions_of(store: Store, run: str) -> Mapping[str, Question]:
    """Return the question of a run, by each run of the panel."""
    from pollex.rooms.judge.store.votes import asked_in  # a tenth of a second, for these runs alone

    return asked_in(store, run)


def ratings(store: Store, run: Run) -> tuple[Question, Mapping[str, str]] | None:
    """Return a run's question, and the option agreed on by text."""
    from pollex.rooms.judge.agents.votes import persons_question  # as above
    from pollex.rooms.judge.services.judge_runs import ratings_of

    rated = ratings_of(store, run)
    return rated and (persons_question(rated[0]), rated[1])


HOOKS = (RunQuestionReader("judge", questions_of), RunRatingReader("judge", ratings))
