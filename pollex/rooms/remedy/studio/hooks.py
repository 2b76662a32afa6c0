"""The graph of the room in LangGraph Studio."""

from pollex.rooms.remedy.graphs.graph import RemedyContext, build
from pollex.rooms.remedy.usecases.remedy import ProveRemedy
from pollex.studio.hooks import StudioGraph
from pollex.studio.use_cases import carry_out_use_case, collect_filled_fields


def start_remedy(form: RemedyContext) -> None:
    """Find or take changes of a prompt, and prove them."""
    carry_out_use_case(ProveRemedy, collect_filled_fields(form))


HOOKS = (StudioGraph("remedy", build, start_remedy),)
