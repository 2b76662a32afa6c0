"""What in a user's assistant may act is seen before it is asked, or can't be seen, and then is refused."""

import functools
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import BaseOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from pollex.errors import WrongUse
from pollex.rooms.remedy.agents.assistant import FileAssistant, build_assistant

Importing = Callable[..., Any]

MODEL = FakeListChatModel(responses=["Good day."])
PROMPT = ChatPromptTemplate.from_messages(["{messages}"])


def order(dish: str) -> str:
    """Order a dish."""
    return f"{dish} is ordered"


TOOLS = ToolNode([order])


def acting(state: MessagesState) -> Any:
    return TOOLS.invoke(state)


def speak(state: MessagesState) -> dict[str, list[AIMessage]]:
    return {"messages": [AIMessage("Good day.")]}


def route(_state: Any) -> str:
    return END


def graph_of(state: Any = MessagesState, /, **nodes: Any) -> Any:
    graph = StateGraph(state)
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(START, name)
    return graph.compile(name="shop")


SHOP = graph_of(acting=acting)


def acts(given: Any, module: str = "") -> list[str]:
    return list(build_assistant(given, module).acts)  # type: ignore[attr-defined]


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Importing]:
    """Write modules, and import the first of them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write_and_import(modules: dict[str, str]) -> Any:
        for name, code in modules.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        return import_module(next(iter(modules)).replace("/", "."))

    yield write_and_import
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


PLAIN = """
import functools
import json
import urllib.request
from langchain_core.messages import AIMessage

def answer(messages, system):
    request = urllib.request.Request("http://localhost/v1", json.dumps(messages).encode())
    return urllib.request.urlopen(request).read().decode()

class Shop:
    def __init__(self):
        self.inner = {"a": [answer]}
    def answer(self, messages, system):
        return answer(messages, system)
    __call__ = answer

partial = functools.partial(answer)
cached = functools.lru_cache(answer)
method = Shop().answer
shop = Shop()
nameless = lambda messages, system: "Good day."
"""


def test_a_function_without_graphs_and_tools_is_taken_as_it_is(imported: Importing) -> None:
    plain = imported({"plainshop": PLAIN})
    for name in ("answer", "partial", "cached", "method", "shop", "nameless"):
        assert acts(getattr(plain, name), "plainshop") == [], name


TOOLED = """
def reply(messages):
    from langgraph.prebuilt import ToolNode
    return ToolNode([print]).invoke(messages)

class Shop:
    def run(self, messages):
        return reply(messages)
    @staticmethod
    def static(messages):
        return reply(messages)
    @property
    def all(self):
        return reply([])
shop = Shop()
"""
ANSWERS = {
    "a class": "def answer(m, s): return Shop().run(m)",
    "a static method": "def answer(m, s): return Shop.static(m)",
    "a method": "answer = shop.run",
    "a property": "def answer(m, s): return shop.all",
    "a cache": "import functools\n@functools.lru_cache\ndef g(): return reply([])\ndef answer(m, s): return g()",
    "a dict": "REPLIES = {'a': [lambda m: reply(m)]}\ndef answer(m, s): return REPLIES['a'][0](m)",
    "a closure": "def f():\n  class C:\n    def __call__(self, m, s): return reply(m)\n  return C()\nanswer = f()",
    "a partial": "import functools\nanswer = functools.partial(lambda r, m, s: r(m), reply)",
    "a name put together": "import langgraph.prebuilt as p\ndef answer(m, s): return getattr(p, 'Tool' + 'Node')",
    "a name in words": "import importlib\ndef answer(m, s): return importlib.import_module('langgraph.prebuilt')",
    "a tool": "from langchain_core.tools import tool\ndef answer(m, s): return ''",
    "an agent": "from langchain.agents import create_agent\ndef answer(m, s): return ''",
    "another framework": "def answer(m, s):\n  import crewai\n  return crewai.Crew()",
}  # fmt: skip


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_module_that_names_graphs_or_tools_may_act_whatever_way_leads_there(
    imported: Importing, kind: str
) -> None:
    module = imported({"toolshop": TOOLED + ANSWERS[kind]})
    assert acts(module.answer, "toolshop"), kind


PACKAGE = {"pk/__init__": "", "pk/core/__init__": "", "pk/core/agent": TOOLED}
REPLY = "def answer(m, s): return "
BESIDE: dict[str, dict[str, str]] = {
    "a function": {"bot": f"from side import reply\n{REPLY}reply(m)", "side": TOOLED},
    "a module": {"bot": f"import side\n{REPLY}side.reply(m)", "side": TOOLED},
    "late": {"bot": "def answer(m, s):\n  import side\n  return side.reply(m)", "side": TOOLED},
    "in turn": {
        "bot": "from one import answer",
        "one": f"from two import reply\n{REPLY}reply(m)",
        "two": "from side import reply",
        "side": TOOLED,
    },
    "of a package": {"pk/bot": f"from pk.core import agent\n{REPLY}agent.shop.run(m)"} | PACKAGE,
    "of its own": {"pk/bot": f"from .core import agent\n{REPLY}agent.shop.run(m)"} | PACKAGE,
    "in it": {"pk/core/bot": f"from . import agent\n{REPLY}agent.shop.run(m)"} | PACKAGE,
    "above it": {"pk/core/up/bot": f"from .. import agent\n{REPLY}agent.reply(m)"} | PACKAGE,
    "by dots": {"bot": f"import pk.core.agent\n{REPLY}pk.core.agent.reply(m)"} | PACKAGE,
    "around it": {"pk/bot": f"{REPLY}''", "pk/__init__": TOOLED},
    "a decorator": {
        "bot": "import cover\nanswer = cover.over(lambda m, s: '')",
        "cover": "from side import reply\ndef over(f): return lambda m, s: reply(m)",
        "side": TOOLED,
    },
}


@pytest.mark.parametrize("kind", BESIDE)
def test_modules_that_lie_beside_are_looked_at_too(imported: Importing, kind: str) -> None:
    module = imported(BESIDE[kind])
    assert acts(module.answer, module.__name__), kind


def test_graphs_and_objects_at_hand_are_seen() -> None:
    inside = SHOP
    assert acts(lambda messages, system: inside.invoke(messages))
    assert acts(functools.partial(print, SHOP))

    class Bot:
        name = "bot"

        async def reply(self, request: Any) -> Any:
            return request

    assert acts(Bot()) == ["the code of bot"]
    files = FileAssistant(Path("asked"), {})
    assert build_assistant(files) is files
    with pytest.raises(WrongUse, match="is no assistant"):
        build_assistant(PROMPT | MODEL)


def test_a_graphs_own_code_is_never_seen_to_be_harmless() -> None:
    assert acts(SHOP) == ["the code of acting"]
    assert acts(graph_of(tools=TOOLS, speak=speak)) == ["tools", "the code of speak"]
    assert acts(graph_of(shop=SHOP)) == ["the code of acting"]


def test_a_graph_that_only_asks_a_model_is_harmless() -> None:
    class Own(MessagesState):
        note: str
        notes: Annotated[list[str], add]

    assert acts(graph_of(model=MODEL)) == []
    assert acts(graph_of(Own, model=PROMPT | MODEL | StrOutputParser())) == []
    graph = StateGraph(MessagesState)
    graph.add_node("model", MODEL)
    graph.add_edge(START, "model")
    assert acts(graph.compile(checkpointer=InMemorySaver())) == []


def test_code_around_the_nodes_of_a_graph_is_seen() -> None:
    class Parser(BaseOutputParser[str]):
        def parse(self, text: str) -> str:
            return text

    class Model(FakeListChatModel):
        pass

    class Handler(BaseCallbackHandler):
        pass

    class Summed(TypedDict):
        messages: Annotated[list[Any], lambda a, b: a + b]

    filled = ChatPromptTemplate.from_messages(["{messages} {day}"]).partial(day=lambda: "Monday")
    for node in (
        MODEL | Parser(),
        Model(responses=["x"]),
        filled | MODEL,
        MODEL.with_config(callbacks=[Handler()]),
        MODEL.with_retry() | (lambda text: text),
        MODEL.with_listeners(on_end=lambda run: None),
        MODEL.with_fallbacks([MODEL]),
    ):
        assert acts(graph_of(model=node)) == ["the code of model"], node
    assert acts(graph_of(Summed, model=MODEL)) == ["the code of its state"]
    listened = graph_of(model=MODEL).with_config(callbacks=[Handler()])
    assert acts(listened) == ["the code of its state"]
    for start in ("model", START):
        graph = StateGraph(MessagesState)
        graph.add_node("model", MODEL)
        graph.add_edge(START, "model")
        graph.add_conditional_edges(start, route)
        assert acts(graph.compile()) == [f"the code of {start}"]
