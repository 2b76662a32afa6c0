"""A middleware for agents on LangChain that scores the conversation after a turn; needs the extra `langchain`."""

from pathlib import Path
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import OmitFromInput
from langgraph.config import get_config
from langgraph.runtime import Runtime

from pollex.langgraph import DEFAULT_DEADLINE_SECONDS, LiveScore, get_thread_id
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.scorer import Scorer


class ScoredState(AgentState[Any]):
    """The agent's state with the latest score."""

    pollex: NotRequired[Annotated[dict[str, object], OmitFromInput]]


class ScoreMiddleware(AgentMiddleware[ScoredState, Any, Any]):
    """Writes netsat, probability and decision into the state's `pollex` after each invocation of an agent.

    It runs once an invocation, not on interrupts and errors, and `invoke` takes longer by it; with
    `stream_mode="messages"` the answer has been delivered by then. `stream_mode="custom"` also
    delivers the score.

    Args:
        rubrics: A rubric set, its file, or a scorer.
        events: Whether each score is also an OpenTelemetry event; needs the extra `otel`.
        deadline: Seconds that an asynchronous agent waits for a score.
    """

    state_schema = ScoredState

    def __init__(
        self,
        rubrics: str | Path | RubricSet | Scorer,
        *,
        events: bool = False,
        deadline: float = DEFAULT_DEADLINE_SECONDS,
    ) -> None:
        super().__init__()
        self._live = LiveScore(rubrics, events=events, deadline=deadline)

    def after_agent(self, state: ScoredState, runtime: Runtime[Any]) -> dict[str, object]:
        """Score the conversation."""
        return _write_score(
            runtime,
            self._live.of(state["messages"], get_thread_id(get_config())),
        )

    async def aafter_agent(self, state: ScoredState, runtime: Runtime[Any]) -> dict[str, object]:
        """Score the conversation in a thread."""
        return _write_score(
            runtime,
            await self._live.aof(state["messages"], get_thread_id(get_config())),
        )


def _write_score(runtime: Runtime[Any], score: dict[str, object]) -> dict[str, object]:
    # for `stream_mode="custom"`
    runtime.stream_writer({"pollex": score})
    return {"pollex": score}
