"""The graph of the room in LangGraph Studio."""

from pollex.rooms.study.graphs.graph import SimulateContext, build
from pollex.rooms.study.usecases.simulate import SimulateDialogues
from pollex.studio.hooks import StudioGraph
from pollex.studio.use_cases import carry_out_use_case, collect_filled_fields


def start_simulate(form: SimulateContext) -> None:
    """Simulate dialogues."""
    carry_out_use_case(SimulateDialogues, collect_filled_fields(form))


HOOKS = (StudioGraph("simulate", build, start_simulate),)
