"""The graph of the room in LangGraph Studio."""

from pollex.rooms.judge.graphs.graph import JudgeContext, build
from pollex.rooms.judge.usecases.judge import JudgeLogs
from pollex.studio.hooks import StudioGraph
from pollex.studio.use_cases import carry_out_use_case, collect_filled_fields


def start_judge(form: JudgeContext) -> None:
    """Ask one question about each conversation of a log."""
    carry_out_use_case(JudgeLogs, collect_filled_fields(form))


HOOKS = (StudioGraph("judge", build, start_judge),)
