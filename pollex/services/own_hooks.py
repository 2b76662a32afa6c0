"""What the core itself hangs into its services."""

from collections.abc import Mapping

from pollex.rubrics.answers import Question
from pollex.services.hooks import AskedQuestions
from pollex.store.store import Store


def questions_of_a_questionnaire(store: Store, run: str) -> Mapping[str, Question]:
    """Return the questions of a run of `ask`."""
    from pollex.services.ask import (
        read_asked_questions,  # a tenth of a second, for these runs alone
    )

    return read_asked_questions(store, run)


HOOKS = (AskedQuestions("ask", questions_of_a_questionnaire),)
