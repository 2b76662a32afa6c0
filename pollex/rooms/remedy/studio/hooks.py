"""The graph of the room in LangGraph Studio."""

from pollex.rooms.remedy.graphs.graph import RemedyContext, build
from pollex.rooms.remedy.usecases.remedy import ProveRemedy
from pollex.studio.hooks import StudioGraph
from pollex.studio.use_cases import carry_out, filled_in


def start_remedy(form: RemedyContext) -> None:
    """Find or take changes of a prompt, and prove them."""
    carry_out(ProveRemedy, filled_in(form))


HOOKS = (StudioGraph("remedy", build, start_remedy),)
