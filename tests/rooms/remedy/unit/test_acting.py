"""What in a user's assistant may act is seen before it is asked, or can't be seen, and then is refused."""

import functools
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from pollex.rooms.remedy.agents.assistant import assistant_of


def order(dish: str) -> str:
    """Order a dish."""
    return f"{dish} is ordered"


TOOLS = ToolNode([order])


def acting(state: MessagesState) -> Any:
    return TOOLS.invoke(state)


def speak(state: MessagesState) -> dict[str, list[AIMessage]]:
    return {"messages": [AIMessage("Good day.")]}


def graph_of(**nodes: Any) -> Any:
    graph = StateGraph(MessagesState)
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(START, name)
    return graph.compile(name="shop")


SHOP = graph_of(acting=acting)


def plain(messages: Any, system: str) -> str:
    return f"{system} {len(messages)}"


def by_graph(messages: Any, system: str) -> str:
    return str(SHOP.invoke({"messages": messages}))


def by_helper(messages: Any, system: str) -> str:
    return by_graph(messages, system)


def by_tools(messages: Any, system: str) -> str:
    from langgraph.prebuilt import ToolNode

    return str(ToolNode([order]).invoke(messages))


class Shop:
    def __init__(self, inner: Any = None) -> None:
        self.inner = inner

    def answer(self, messages: Any, system: str) -> str:
        return str(self.inner)

    def __call__(self, messages: Any, system: str) -> str:
        return self.answer(messages, system)


def acts(given: Any) -> list[str]:
    return list(assistant_of(given).acts)  # type: ignore[attr-defined]


def test_a_function_without_graphs_and_tools_is_taken_as_it_is() -> None:
    for function in (
        plain,
        Shop().answer,
        Shop(),
        functools.partial(plain),
        lambda messages, system: "Good day.",
    ):
        assert acts(function) == []


def test_graphs_and_tools_behind_a_function_are_seen() -> None:
    for function in (
        by_graph,
        by_helper,
        by_tools,
        Shop(SHOP).answer,
        Shop(TOOLS),
        functools.partial(by_graph),
    ):
        assert acts(function), function
    inside = SHOP
    assert acts(lambda messages, system: inside.invoke(messages))


def test_a_graphs_own_code_is_never_seen_to_be_harmless() -> None:
    assert acts(SHOP) == ["the code of acting"]
    assert acts(graph_of(tools=TOOLS, speak=speak)) == ["tools", "the code of speak"]
    assert acts(graph_of(shop=SHOP)) == ["the code of acting"]


def test_a_graph_that_only_asks_a_model_is_harmless() -> None:
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.prompts import ChatPromptTemplate

    model = FakeListChatModel(responses=["Good day."])
    assert acts(graph_of(model=model)) == []
    assert acts(graph_of(model=ChatPromptTemplate.from_messages(["{messages}"]) | model)) == []
