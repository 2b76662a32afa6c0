"""What the room adds to the core's services."""

from collections.abc import Callable

from pollex.formats.fields import ReadOptions
from pollex.graphs.context import NullProgress
from pollex.services.hooks import AgentStore, AgentTool
from pollex.services.options import RunOptions


class BriefTool(AgentTool):
    """What fails in replies, for a coding agent."""

    def of(self, store: AgentStore) -> Callable[..., str]:
        """Make the tool `brief`."""

        def brief(run: str = "", target: str = "", offset: int = 0) -> str:
            """Tell what fails in replies of a scored run, how often, and whether words, knowledge or tools mend it."""
            from pollex.rooms.remedy.services.brief import brief as brief_on  # agents alone need it

            scored, rubric_set, logs = store.scored(run)
            result = brief_on(
                logs,
                rubric_set,
                target=target or None,
                reading=ReadOptions(),
                run=RunOptions(store.folder),
                progress=NullProgress(),
            )
            return store.answer(result.records(), offset, run=scored.id, conversations=result.n)

        return brief


HOOKS = (BriefTool(),)
