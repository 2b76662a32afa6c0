"""What the room adds to the core's services."""

from collections.abc import Mapping

from pollex.rubrics.answers import Question
from pollex.services.hooks import OptionService, RunQuestionReader
from pollex.store.store import Store


def read_questions(store: Store, run: str) -> Mapping[str, Question]:
    """Return the questions of a run of `ask`."""
    # a tenth of a second, for these runs alone
    from pollex.rooms.questionnaire.services.ask import read_asked_questions

    return read_asked_questions(store, run)


HOOKS = (
    RunQuestionReader("ask", read_questions),
    OptionService(
        "label next",
        "calibrator",
        "pollex.rooms.questionnaire.services.next_texts.choose_next_texts",
    ),
)
