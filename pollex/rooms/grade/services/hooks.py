"""What the room adds to the core's services."""

from collections.abc import Mapping

from pollex.rubrics.answers import Question
from pollex.services.hooks import RunQuestionReader
from pollex.store.store import Store


def read_questions(store: Store, run: str) -> Mapping[str, Question]:
    """Return the questions that answers were graded by."""
    from pollex.rooms.grade.services.grade import (
        read_asked_questions,  # a tenth of a second, for these runs
    )

    return read_asked_questions(store, run)


HOOKS = (RunQuestionReader("grade", read_questions),)
