"""LangChain's messages and LangGraph's states are conversations wherever logs and conversations are taken."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

import pollex
from pollex.services.scorer import conversation_from

MESSAGES: list[AnyMessage] = [
    HumanMessage("Where is A-17?"),
    AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": "1"}]),
    ToolMessage("shipped", tool_call_id="1"),
    AIMessage("It was shipped."),
]
TURNS = [
    ("user", "Where is A-17?"),
    *(("assistant", "[tool call: look_up]"), ("tool", "shipped"), ("assistant", "It was shipped.")),
]


def said(conversation: pollex.Conversation) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in conversation.turns]


def graph_that(answer: Any) -> Any:
    """A graph of one node."""
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("given", [MESSAGES, {"messages": MESSAGES}, [MESSAGES], [{"messages": MESSAGES, "id": "a"}]])
def test_messages_are_read_as_a_log(given: Any) -> None:
    assert [said(conversation) for conversation in pollex.read_logs(given)] == [TURNS]


@pytest.mark.parametrize("given", [MESSAGES, {"messages": MESSAGES}, {"values": {"messages": MESSAGES}}])
def test_messages_are_a_conversation_to_score(given: Any) -> None:
    assert said(conversation_from(given)) == TURNS


def test_a_states_thumb_and_its_failure_are_read() -> None:
    graph = graph_that(lambda _: {"messages": MESSAGES[1:]})
    thread: Any = {"configurable": {"thread_id": "t"}, "metadata": {"feedback": "up"}}
    graph.invoke({"messages": MESSAGES[:1]}, thread)
    state = graph.get_state(thread)
    assert said(conversation_from(state)) == TURNS
    (conversation,) = pollex.read_logs([state])
    assert (conversation.id, conversation.label.value, said(conversation)) == ("t", "positive", TURNS)

    def fail(_: MessagesState) -> Any:
        raise ValueError("overloaded")

    graph = graph_that(fail)
    with pytest.raises(ValueError, match="overloaded"):
        graph.invoke({"messages": MESSAGES[:1]}, thread)
    (failed,) = pollex.read_logs([graph.get_state(thread)])
    assert said(failed) == [TURNS[0], ("assistant", "[error]")]
