"""The graph of the room in LangGraph Studio."""

from pollex.rooms.questionnaire.graphs.graph import AskContext, build
from pollex.rooms.questionnaire.usecases.ask import AskQuestionnaire
from pollex.studio.hooks import StudioGraph
from pollex.studio.use_cases import carry_out_use_case, collect_filled_fields


def start_ask(form: AskContext) -> None:
    """Ask a questionnaire about each conversation of a log."""
    carry_out_use_case(AskQuestionnaire, collect_filled_fields(form))


HOOKS = (StudioGraph("ask", build, start_ask),)
