"""A graph whose bot hands conversations over to a person where its own score says so.

    python -m pollex.examples.route_to_a_person rubrics.json

The bot here repeats itself, as bots do; put yours in its place. The rubric set is one of `pollex
learn`.
"""

import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

BELOW = 0.3
"""Probability of a thumb up under which a person takes over."""


class ChatState(MessagesState):
    """The messages, and the score of the conversation so far."""

    pollex: dict[str, Any]


def bot(state: ChatState) -> dict[str, Any]:  # noqa: ARG001
    """Answer the user."""
    return {"messages": [AIMessage("Please restart the app.")]}


def person(state: ChatState) -> dict[str, Any]:  # noqa: ARG001
    """Hand the conversation over."""
    return {"messages": [AIMessage("I am handing you over to a colleague.")]}


def route(state: ChatState) -> str:
    """Choose a person where a thumb up is unlikely; a missing score changes nothing."""
    probability = state["pollex"].get("probability")
    if probability is not None and probability < BELOW:
        return "person"
    return END


def graph_of(rubrics: Path) -> Any:
    """Build the graph."""
    from pollex.langgraph import score_node  # it loads what scoring needs

    graph = StateGraph(ChatState)
    graph.add_node("bot", bot)
    graph.add_node("score", score_node(rubrics))
    graph.add_node("person", person)
    graph.add_edge(START, "bot")
    graph.add_edge("bot", "score")
    graph.add_conditional_edges("score", route, ["person", END])
    graph.add_edge("person", END)

    return graph.compile(checkpointer=InMemorySaver())


def main() -> None:
    """Talk with the bot until a person takes over."""
    graph = graph_of(Path(sys.argv[1]))
    config = {"configurable": {"thread_id": "1"}}
    for text in (
        "My invoice is wrong.",
        "That didn't help, it is still wrong!",
        "Useless. I asked three times now.",
    ):
        state = graph.invoke({"messages": [("user", text)]}, config)
        sys.stdout.write(f"user: {text}\nbot: {state['messages'][-1].content}  {state['pollex']}\n")


if __name__ == "__main__":
    main()
