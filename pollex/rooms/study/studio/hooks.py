"""The graph of the room in LangGraph Studio."""

from pollex.rooms.study.graphs.graph import SimulateContext, build
from pollex.rooms.study.usecases.simulate import SimulateDialogues
from pollex.studio.hooks import StudioGraph
from pollex.studio.use_cases import carry_out, filled_in


def simulate(form: SimulateContext) -> None:
    """Simulate dialogues."""
    carry_out(SimulateDialogues, filled_in(form))


HOOKS = (StudioGraph("simulate", build, simulate),)
