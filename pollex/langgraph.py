"""A node for graphs on LangGraph that scores the conversation so far."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.errors import GraphBubbleUp

from pollex.rubrics.rubric_set import RubricSet
from pollex.services.named_sets import read_rubric_set
from pollex.services.scorer import Scorer, parse_conversation
from pollex.services.telemetry import emit_score_events

DEFAULT_DEADLINE_SECONDS = 30.0


class LiveScore:
    """Scores the messages of a state; a failure is a result, too, and never ends the graph.

    Args:
        rubrics: A rubric set, its file, or a scorer.
        events: Whether each score is also an OpenTelemetry event.
        deadline: Seconds that an asynchronous graph waits for a score.
    """

    def __init__(
        self,
        rubrics: str | Path | RubricSet | Scorer,
        *,
        events: bool = False,
        deadline: float = DEFAULT_DEADLINE_SECONDS,
    ) -> None:
        # a path or a name is read as a set
        if isinstance(rubrics, RubricSet | Scorer):
            loaded = rubrics
        else:
            loaded = read_rubric_set(rubrics)

        if isinstance(loaded, Scorer):
            self.scorer = loaded
        else:
            self.scorer = Scorer(loaded)

        self.events = events
        self.deadline = deadline

    def of(self, messages: Sequence[Any], conversation: str) -> dict[str, object]:
        """Return netsat, probability, decision and outcome of messages; else what went wrong as `error`."""
        try:
            # the thread names the conversation
            conversation_named = parse_conversation(messages).model_copy(
                update={"id": conversation}
            )
            score = self.scorer.score(conversation_named)
            if self.events:
                emit_score_events(score, self.scorer.rubrics.rubrics_digest)
        except GraphBubbleUp:  # an interrupt of the graph is no failure
            raise
        except Exception as error:  # an agent goes on, whatever becomes of its score
            return {"error": f"{type(error).__name__}: {error}"}

        figures = {
            "netsat": score.netsat,
            "probability": score.probability,
            "decision": score.decision,
        }
        return figures | {"confident": score.confident, "outcome": score.outcome}

    async def aof(self, messages: Sequence[Any], conversation: str) -> dict[str, object]:
        """Do the same in a thread; one that takes longer than the deadline ends as an `error`."""
        try:
            # the thread runs on behind the deadline, and what it finds is dropped
            return await asyncio.wait_for(
                asyncio.to_thread(self.of, messages, conversation),
                self.deadline,
            )
        except TimeoutError:
            return {"error": f"no score within {self.deadline:g} s"}


def score_node(
    rubrics: str | Path | RubricSet | Scorer,
    *,
    key: str = "pollex",
    messages: str = "messages",
    events: bool = False,
    deadline: float = DEFAULT_DEADLINE_SECONDS,
) -> RunnableLambda[object, dict[str, object]]:
    """Make a node that writes netsat, probability and decision of the conversation into the state.

    Args:
        rubrics: A rubric set, its file, or a scorer.
        key: Field of the state that the score is written into.
        messages: Field of the state that has the conversation.
        events: Whether each score is also an OpenTelemetry event; needs the extra `otel`.
        deadline: Seconds that an asynchronous graph waits for a score.
    """
    live = LiveScore(rubrics, events=events, deadline=deadline)

    def score(state: object, config: RunnableConfig) -> dict[str, object]:
        log_messages = read_messages(state, messages)
        # a state without messages has the error in the score's place
        return {
            key: live.of(log_messages, get_thread_id(config))
            if isinstance(log_messages, Sequence)
            else log_messages
        }

    async def ascore(state: object, config: RunnableConfig) -> dict[str, object]:
        log_messages = read_messages(state, messages)
        return {
            key: await live.aof(log_messages, get_thread_id(config))
            if isinstance(log_messages, Sequence)
            else log_messages
        }

    return RunnableLambda(score, ascore, name="pollex")


def read_messages(state: object, name: str) -> Sequence[Any] | dict[str, str]:
    """Return the messages of a state, or what is wrong as `error`: a missing score never ends a graph."""
    # graphs declare their states as dictionaries or as classes
    if isinstance(state, Mapping):
        fields = state
    else:
        fields = vars(state)

    if name in fields:
        messages: Sequence[Any] = fields[name]
        return messages

    there = ", ".join(map(str, fields)) or "nothing"
    return {
        "error": f"the state has no {name!r} (it has: {there}); name its field: score_node(…, messages=NAME)"
    }


def get_thread_id(config: RunnableConfig) -> str:
    """Return the id of the thread; graphs without a checkpointer have none."""
    return str(config.get("configurable", {}).get("thread_id", "conversation"))
