"""What in a user's assistant may act: tools that are seen in it, and code that nobody can see through."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

START = "__start__"
ACTING = frozenset(
    [
        "ToolNode",
        "BaseTool",
        "StructuredTool",
        "ToolExecutor",
        "AgentExecutor",
        "create_agent",
        "create_react_agent",
    ]
)
"""Names of LangChain's and LangGraph's that carry out tools."""
HARMLESS = frozenset(["BaseChatModel", "BaseLLM", "BasePromptTemplate", "BaseOutputParser"])
"""Kinds of nodes that only write."""


def kinds(value: Any) -> set[str]:
    """Return the names of a value's class, or of a class itself, and of what they derive from."""
    if isinstance(value, type):
        kind = value
    else:
        kind = type(value)

    return {ancestor.__name__ for ancestor in kind.__mro__}


def is_graph(value: Any) -> bool:
    """Return whether a value is a compiled graph."""
    return hasattr(value, "ainvoke") and hasattr(value, "get_name") and hasattr(value, "nodes")


def acting_in(graph: Any) -> Iterator[str]:
    """Yield what of a graph, and of the graphs in it, carries out tools or can't be seen not to."""
    for name, node in graph.nodes.items():
        # the entry of a graph runs nothing
        if name == START:
            continue
        # each graph within the node once: it may be bound and listed as a subgraph, too
        inner = {}
        for subgraph in [*(node.subgraphs or ()), node.bound]:
            if is_graph(subgraph):
                inner[id(subgraph)] = subgraph
        for subgraph in inner.values():
            yield from acting_in(subgraph)
        # what a bound graph does was told by its own nodes
        if is_graph(node.bound):
            continue
        # what may act: a node of tools, or code that is more than prompt, model and parser
        if "ToolNode" in kinds(node.bound):
            yield name
        elif not all(HARMLESS & kinds(step) for step in steps_of(node.bound)):
            yield f"the code of {name}"


def steps_of(runnable: Any) -> Iterator[Any]:
    """Yield what a node runs in turn."""
    if "RunnableBindingBase" in kinds(runnable):
        yield from steps_of(runnable.bound)
    elif steps := getattr(runnable, "steps", None):
        for step in steps:
            yield from steps_of(step)
    else:
        yield runnable


def acting_behind(function: Any) -> Iterator[str]:
    """Yield the graphs and tools that a function's own code refers to, and so may carry out."""
    # a walk through all that the code refers to, each object once
    visited = set[int]()
    left = [("", function)]
    # the user's package is that of the function within the partials
    named = function
    while isinstance(named, functools.partial):
        named = named.func

    package = str(getattr(named, "__module__", "")).partition(".")[0]
    while left:
        name, value = left.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        # a graph is looked into, a known tool is told, other values are followed
        if is_graph(value):
            for step_name in acting_in(value):
                yield f"{step_name} in the graph {name}"
        elif ACTING & (kinds(value) | {getattr(value, "__name__", "")}):
            yield name or "a tool"
        else:
            left += referred_to(value, package)


def referred_to(value: Any, package: str) -> Iterator[tuple[str, Any]]:
    """Yield by name what code of the user's package refers to; a name alone where it is known to carry out tools."""
    # what each kind of value may call
    if isinstance(value, functools.partial):
        for part in (value.func, *value.args, *value.keywords.values()):
            yield ("a partial", part)
    elif isinstance(value, MethodType):
        yield from [("a method", value.__func__), ("its object", value.__self__)]
    elif isinstance(value, FunctionType):
        # code of libraries isn't followed: only the user's own package decides what is called
        if value.__module__.partition(".")[0] == package:
            yield from named_by(value)
        if wrapped := getattr(value, "__wrapped__", None):
            # what a decorator wraps is called, whoever wrote the decorator
            yield (value.__name__, wrapped)
    elif isinstance(value, list | tuple | set | frozenset):
        for element in value:
            yield ("a list", element)
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield (str(name), entry)
    # objects of the user's own classes: their fields, and what calling them does
    elif (
        not isinstance(value, type | ModuleType)
        and type(value).__module__.partition(".")[0] == package
    ):
        yield from vars(value).items() if hasattr(value, "__dict__") else ()
        if callable(value):
            yield ("its call", type(value).__call__)


def named_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what the names in a function's code stand for, of its module, of modules there, and of its surroundings."""
    # names in the code are looked up as the function would find them
    names = set(names_in(function.__code__))
    for name in names:
        referred = function.__globals__.get(name)
        yield (name, referred)
        # a module stands for whatever of it the code names
        if isinstance(referred, ModuleType):
            for part in names:
                yield (f"{name}.{part}", getattr(referred, part, None))
        if referred is None and name in ACTING:  # imported where it is used
            yield (name, type(name, (), {}))

    # variables of the surrounding function
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield (name, cell.cell_contents)
        except ValueError:  # not bound yet
            continue

    # values of arguments that nobody gives
    for default in function.__defaults__ or ():
        yield ("a default", default)


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that code and the functions in it refer to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)
