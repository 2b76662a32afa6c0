"""What in a user's assistant may act: tools, and code that nobody can see to be harmless.

Of a graph each part is looked at; only what asks a model, fills a prompt or reads an answer, by
LangChain's own classes, is harmless. Of a function the modules are looked at that its code stands
in and that they import, as far as they are the user's: one that names LangGraph, or what carries
out tools, may act, whatever way leads there.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, is_typeddict

ENTRY_NODE_NAME = "__start__"
ACTING_CLASS_NAMES = frozenset(
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
HARMLESS_CLASS_NAMES = frozenset(
    ["BaseChatModel", "BaseLLM", "BasePromptTemplate", "BaseOutputParser"]
)
"""Kinds of nodes that only write."""
HARMLESS_MODULE_NAMES = (
    "langchain.chat_models",
    *(
        f"langchain_core.{part}"
        for part in ("messages", "prompts", "prompt_values", "output_parsers", "language_models")
    ),
    *(
        f"langchain_{part}"
        for part in ("openai", "anthropic", "google_genai", "mistralai", "ollama", "groq", "aws")
    ),
)
"""Modules of models, prompts and messages: code that names them alone only asks and writes."""
AGENT_FRAMEWORK_PACKAGES = frozenset(
    [
        "agno",
        "autogen",
        "autogen_agentchat",
        "crewai",
        "haystack",
        "llama_index",
        "pydantic_ai",
        "semantic_kernel",
        "smolagents",
        "strands",
    ]
)
"""Other packages that carry out tools by themselves."""
REDUCER_MODULE_NAMES = frozenset(["operator", "_operator"])
"""Modules whose functions put two values together, and do nothing else."""
LIBRARY_FOLDERS = tuple(
    Path(path) for name, path in sysconfig.get_paths().items() if name.endswith(("lib", "stdlib"))
)
POLLEX_FOLDER = Path(__file__).parents[3]
"""The folder of pollex."""
HARMLESS_STANDARD_MODULES = sys.stdlib_module_names | set(sys.builtin_module_names) - {"__main__"}
"""Modules of Python itself."""


CONTAINER_TYPES = (functools.partial, MethodType, list, tuple, set, frozenset, Mapping)
"""Values that are looked into, whoever made them."""


def list_class_names(value: object) -> set[str]:
    """Return the names of a value's class, or of a class itself, and of what they derive from."""
    kind = value if isinstance(value, type) else type(value)
    return {ancestor.__name__ for ancestor in kind.__mro__}


def is_compiled_graph(value: object) -> bool:
    """Return whether a value is a compiled graph."""
    return not isinstance(value, type) and "Pregel" in list_class_names(value)


def find_acting_parts_of_graph(graph: Any) -> Iterator[str]:
    """Yield what of a graph, and of the graphs in it, carries out tools or can't be seen not to."""
    for name, node in graph.nodes.items():
        # each graph within the node once: it may be bound and listed as a subgraph, too
        inner = {}
        for subgraph in [*(node.subgraphs or ()), node.bound]:
            if is_compiled_graph(subgraph):
                inner[id(subgraph)] = subgraph

        for subgraph in inner.values():
            yield from find_acting_parts_of_graph(subgraph)

        # what may act: a node of tools, code that is more than prompt, model and parser, and code
        # behind it that chooses the next node; the entry of a graph and a bound graph run nothing
        if "ToolNode" in list_class_names(node.bound):
            yield name
            continue

        runs_nothing = name == ENTRY_NODE_NAME or is_compiled_graph(node.bound)
        writes_alone = runs_nothing or all(map(_only_writes_text, list_steps_of_node(node.bound)))
        about = {}
        for key, value in vars(node).items():
            if key != "subgraphs":
                about[key] = value

        if runs_nothing:
            about.pop("bound", None)
        if not writes_alone or has_code_of_user(about):
            yield f"the code of {name}"

    # what puts states together, what keeps them, and what listens (callbacks stand in the config)
    parts = (
        "channels",
        "checkpointer",
        "store",
        "cache",
        "retry_policy",
        "context_schema",
        "config",
    )
    if has_code_of_user([getattr(graph, part, None) for part in parts]):
        yield "the code of its state"


def list_steps_of_node(runnable: Any) -> Iterator[Any]:
    """Yield what a node runs in turn."""
    if "RunnableBindingBase" in list_class_names(runnable):
        yield from list_steps_of_node(runnable.bound)
    elif steps := getattr(runnable, "steps", None):
        for step in steps:
            yield from list_steps_of_node(step)
    else:
        yield runnable


def _only_writes_text(step: object) -> bool:
    """Return whether a step is a model, a prompt or a parser of LangChain's own."""
    return bool(HARMLESS_CLASS_NAMES & list_class_names(step)) and _is_module_of_langchain(
        type(step).__module__
    )


def _is_module_of_langchain(module: str | None) -> bool:
    """Return whether a module is LangGraph's or LangChain's, and no user's of such a name."""
    top = (module or "").partition(".")[0]
    has_their_name = top in ("langgraph", "langchain") or top.startswith("langchain_")
    return has_their_name and is_library_module(module or "")


def has_code_of_user(value: object) -> bool:
    """Return whether code that isn't LangChain's or LangGraph's is in a value of theirs, or a tool is."""
    visited = dict[int, Any]()
    left = [value]
    while left:
        value = left.pop()
        # kept, so that no other value gets its number
        if id(value) in visited or is_compiled_graph(value):
            continue
        visited[id(value)] = value
        if ACTING_CLASS_NAMES & list_class_names(value):
            return True

        if isinstance(value, FunctionType | BuiltinFunctionType):
            if not (
                value.__module__ in REDUCER_MODULE_NAMES
                or _is_module_of_langchain(value.__module__)
            ):
                return True
            left += list_parts_of_value(value)
        elif isinstance(value, type):
            if not is_typeddict(value) and _has_methods_of_user(value):
                return True
        elif isinstance(value, CONTAINER_TYPES) or _is_module_of_langchain(type(value).__module__):
            left += list_parts_of_value(value)
        elif not is_library_module(type(value).__module__):
            return True

    return False


def _has_methods_of_user(kind: type) -> bool:
    """Return whether a class of the user's has code of its own; what a decorator made has no file."""
    for ancestor in kind.__mro__:
        if is_library_module(ancestor.__module__):
            continue
        for value in vars(ancestor).values():
            function = getattr(value, "__func__", getattr(value, "fget", value))
            code = getattr(function, "__code__", None)
            if code is not None and not code.co_filename.startswith("<string>"):
                return True

    return False


def list_parts_of_value(value: object) -> list[object]:
    """Return what a value is made of, and what calling it calls first."""
    parts: list[object] = []
    if isinstance(value, functools.partial):
        parts += [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, MethodType):
        parts += [value.__func__, value.__self__]
    elif isinstance(value, list | tuple | set | frozenset):
        parts += value
    elif isinstance(value, Mapping):
        parts += value.values()
    elif isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            try:
                parts.append(cell.cell_contents)
            except ValueError:  # not bound yet
                continue
        parts += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    else:
        parts += getattr(value, "__dict__", {}).values()
        # fields of classes without a dictionary
        for ancestor in type(value).__mro__:
            slots = vars(ancestor).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                parts.append(getattr(value, name, None))

    # what a decorator wraps is called, whoever wrote the decorator
    if not isinstance(value, type):
        parts.append(inspect.getattr_static(value, "__wrapped__", None))
    return parts


def is_library_module(module: str) -> bool:
    """Return whether a module is of Python, of an installed package, or of pollex: none of the user's."""
    top = module.partition(".")[0]
    if top in HARMLESS_STANDARD_MODULES:
        return True

    # a package in several places has no file of its own
    for name in (module, top):
        if file := getattr(sys.modules.get(name), "__file__", None):
            return _is_library_file(Path(file))
    return False


def _is_library_file(path: Path) -> bool:
    if "site-packages" in path.parts or "dist-packages" in path.parts:
        return True
    return any(path.is_relative_to(folder) for folder in (*LIBRARY_FOLDERS, POLLEX_FOLDER))


def find_acting_parts_behind(function: Any, module: str = "") -> Iterator[str]:
    """Yield the graphs and tools that a function has, and modules of the user's behind it that may act.

    Args:
        module: Where the user found the function.
    """
    modules = {module} - {""}
    visited = dict[int, Any]()
    left = [function]
    while left:
        value = left.pop()
        if id(value) in visited:
            continue
        visited[id(value)] = value
        # a graph is looked into, a known tool is told, other values of the user's are followed
        if is_compiled_graph(value):
            for step_name in find_acting_parts_of_graph(value):
                yield f"{step_name} in the graph {value.get_name()}"
        elif ACTING_CLASS_NAMES & (list_class_names(value) | {getattr(value, "__name__", "")}):
            yield str(getattr(value, "name", "a tool"))
        elif isinstance(value, ModuleType):
            modules.add(value.__name__)
        else:
            # the function's own module is the user's wherever it is installed
            of_users = set(filter(_is_module_of_user, _list_modules_of_value(value)))
            modules |= of_users | (_list_modules_of_value(value) if value is function else set())
            if of_users or isinstance(value, CONTAINER_TYPES) or value is function:
                left += list_parts_of_value(value)
            elif not isinstance(value, type):
                left.append(inspect.getattr_static(value, "__wrapped__", None))

    yield from _find_acting_modules(modules)


def _list_modules_of_value(value: object) -> set[str]:
    """Return the modules that a value, its class, and the ancestors of this are from."""
    ancestors = (value if isinstance(value, type) else type(value)).__mro__
    modules = {ancestor.__module__ for ancestor in ancestors}
    # of a function, a class, and what a decorator made of them
    of_value = getattr(value, "__module__", None)
    return modules | ({of_value} if isinstance(of_value, str) else set())


def _is_module_of_user(module: str) -> bool:
    return not is_library_module(module)


@dataclass(frozen=True)
class _UserModule:
    """A module of the user's.

    Attributes:
        path: Of its file; None for what was typed, in a notebook for example.
    """

    name: str
    path: Path | None

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that it is in, the outermost first; a package is in itself."""
        parts = tuple(self.name.split("."))
        if self.path is not None and self.path.name == "__init__.py":
            return parts
        return parts[:-1]


def _find_acting_modules(modules: set[str]) -> Iterator[str]:
    """Yield what acts in modules of the user's, and in those that they import or may import."""
    visited = set[object]()
    left = list[_UserModule]()
    for module_name in sorted(modules):
        parts = module_name.split(".")
        # the packages that it is in run before it
        for count in range(1, len(parts) + 1):
            name = ".".join(parts[:count])
            file = getattr(sys.modules.get(name), "__file__", None)
            if parts[0] in (POLLEX_FOLDER.name, *HARMLESS_STANDARD_MODULES) or (
                file is None and count < len(parts)
            ):
                continue
            left.append(_UserModule(name, Path(file) if file else None))

    packages = {module.name.partition(".")[0] for module in left}
    while left:
        module = left.pop()
        if (module.path or module.name) in visited:
            continue
        visited.add(module.path or module.name)
        code = read_names(module)
        if code is None:
            yield f"the code of {module.name}, which can't be read"
            continue

        if acting := sorted(filter(_may_carry_out_tools, code.names | code.imports)):
            yield f"{module.name} uses {acting[0]}"
        for named in _find_imported_modules(module, code.imports):
            is_own = named.name.partition(".")[0] in packages
            if named.path is not None and (is_own or not _is_library_file(named.path)):
                left.append(named)


def _may_carry_out_tools(name: str) -> bool:
    """Return whether a name in code stands for what carries out tools, or may."""
    top = name.partition(".")[0]
    if name in ACTING_CLASS_NAMES or top in AGENT_FRAMEWORK_PACKAGES:
        return True

    is_theirs = top in ("langgraph", "langchain") or top.startswith("langchain_")
    is_harmless = name == "langchain_core" or name.startswith(HARMLESS_MODULE_NAMES)
    return is_theirs and not is_harmless


def _find_imported_modules(module: _UserModule, imports: set[str]) -> Iterator[_UserModule]:
    """Yield the modules that a module's imports may mean, whether they are imported already or not."""
    # where its outermost package lies, and where else modules of the user's are found
    roots = set()
    for place in sys.path:
        if place and Path(place) != POLLEX_FOLDER.parent:
            roots.add(Path(place))

    if module.path is not None:
        above = module.path.parents
        roots.add(above[min(len(module.packages), len(above) - 1)])

    # a package's own module runs before the modules in it
    every = set(imports)
    for dotted in imports:
        parts = dotted.split(".")
        every |= {".".join(parts[:count]) for count in range(1, len(parts))}

    for root in roots:
        for dotted in sorted(every):
            yield from _find_module_at(dotted, root.joinpath(*dotted.split(".")))


def _find_module_at(name: str, place: Path) -> Iterator[_UserModule]:
    """Yield a module, or a package, that stands at a place."""
    for file in (place.parent / f"{place.name}.py", place / "__init__.py"):
        if place.name and file.is_file():
            yield _UserModule(name, file)


@dataclass(frozen=True)
class _NamesInModule:
    """The names in a module's code.

    Attributes:
        imports: Modules that it imports, and what it imports of them, which may be modules; texts
            that may be names of modules, too.
    """

    names: set[str]
    imports: set[str]


def read_names(module: _UserModule) -> _NamesInModule | None:
    """Return the names in a module's code; None where nobody can read it."""
    if module.path is None:
        imported = sys.modules.get(module.name)
        if imported is None:
            return None
        names = _read_names_of_namespace(imported)
        return _NamesInModule(names, {name for name in names if _may_be_module_name(name)})

    try:
        tree = ast.parse(module.path.read_bytes())
        nodes = list(ast.walk(tree))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None

    names, imports = set[str](), set[str]()
    for node in nodes:
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
            base = _resolve_import_base(module, node)
            imports |= {base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            imports |= {node.value} if _may_be_module_name(node.value) else set()

    return _NamesInModule(names, {name for name in imports if _may_be_module_name(name)})


def _resolve_import_base(module: _UserModule, node: ast.ImportFrom) -> str:
    """Return the absolute name of what a module imports from."""
    above = module.packages
    base = list(above[: len(above) - node.level + 1]) if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])


def _may_be_module_name(text: str) -> bool:
    """Return whether a text may be the name of a module."""
    return len(text) < 200 and all(part.isidentifier() for part in text.split("."))


def _read_names_of_namespace(module: ModuleType) -> set[str]:
    """Return the names in the functions and classes of a module without a file, and where its values are from."""
    names = set[str]()
    left = list(vars(module).items())
    for name, value in left:
        names.add(name)
        if isinstance(value, ModuleType):
            names.add(value.__name__)
            continue
        kind = value if isinstance(value, type) else type(value)
        names |= {kind.__module__, str(getattr(value, "__module__", ""))}
        if kind.__module__ == module.__name__:
            left += vars(kind).items()
        if code := getattr(getattr(value, "__func__", value), "__code__", None):
            names |= set(iterate_names_in_code(code))

    return names


def iterate_names_in_code(code: CodeType) -> Iterator[str]:
    """Yield the names that code and the functions in it refer to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from iterate_names_in_code(constant)
        elif isinstance(constant, str) and _may_be_module_name(constant):
            yield constant
