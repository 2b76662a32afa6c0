"""What the room adds to the core's services."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from pollex.formats.fields import ReadOptions
from pollex.graphs.context import NullProgress
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import RunOptions
from pollex.services.hooks import (
    AgentTool,
    AgentToolStore,
    MendedRubrics,
    RubricFacts,
    describe_figure,
)
from pollex.store.store import Store

MAX_RELEASES_TOLD = 3
"""The last ones that an agent is told of."""


class BriefTool(AgentTool):
    """What fails in replies, for a coding agent."""

    def of(self, store: AgentToolStore) -> Callable[..., str]:
        """Make the tool `brief`."""

        def brief(run: str = "", target: str = "", offset: int = 0) -> str:
            """Tell what fails in replies of a scored run, how often, and whether words, knowledge or tools mend it."""
            from pollex.rooms.remedy.services.brief import (
                write_brief as brief_on,  # agents alone need it
            )

            # the last run that scored, unless one is named
            scored, rubric_set, logs = store.scored(run)
            result = brief_on(
                logs,
                rubric_set,
                target=target or None,
                reading=ReadOptions(),
                run=RunOptions(store.folder),
                progress=NullProgress(),
            )

            return store.answer(
                result.records(),
                offset,
                run=scored.id,
                conversations=result.n,
            )

        return brief


class LifeOfRubrics(RubricFacts):
    """The states of rubrics and how often each holds, for coding agents."""

    def facts_of(self, store: Store, rubrics: Sequence[Rubric]) -> list[dict[str, object]]:
        """Return the state of each rubric, its last releases, and thumbs."""
        from pollex.rooms.remedy.services.life import build_lives  # as above

        facts: list[dict[str, object]] = []
        for life in build_lives(store, rubrics):
            facts.append(
                {
                    "state": life.word,
                    "releases": {
                        name: describe_figure(share)
                        for name, share in list(life.releases.items())[-MAX_RELEASES_TOLD:]
                    },
                    "down_where_it_holds": describe_figure(life.down_with),
                    "down_elsewhere": describe_figure(life.down_without),
                }
            )

        return facts


class StatesOfRubrics(MendedRubrics):
    """The states that people gave rubrics, for a check of a release."""

    def mended_in(self, folder: Path, rubric_set: RubricSet) -> Mapping[str, object]:
        """Return the rubrics of a set that somebody said are mended."""
        from pollex.rooms.remedy.services.life import list_mended_rubrics  # a check alone needs it

        return list_mended_rubrics(folder, rubric_set)

    def mark_back(
        self,
        folder: Path,
        rubric_set: RubricSet,
        ids: Collection[str],
        why: str,
    ) -> None:
        """Keep that mended rubrics are back again."""
        from pollex.rooms.remedy.services.life import (  # as above
            list_mended_rubrics,
            mark_rubrics_back,
        )

        mended = list_mended_rubrics(folder, rubric_set)
        mark_rubrics_back(folder, [mended[id_] for id_ in ids if id_ in mended], why)


HOOKS = (BriefTool(), LifeOfRubrics(), StatesOfRubrics())
