"""No module needs one that needs it, not even for types or inside a function."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from rooms import FOLDERS, ROOT, imports, sources


def modules_of_the_house() -> dict[str, set[str]]:
    """Every module with the modules of ours that it imports."""
    paths = {module_of(package, path): path for package in FOLDERS for path in sources(package)}
    return {
        name: {known(found.module, paths) for found in imports(path)} - {"", name}
        for name, path in paths.items()
    }


def module_of(package: str, path) -> str:
    """`pollex.selection.losses` of `selection/losses.py`."""
    inner = path.relative_to(ROOT / FOLDERS[package]).with_suffix("").parts
    return ".".join([package, *(part for part in inner if part != "__init__")])


def known(module: str, modules: Mapping[str, object]) -> str:
    """The module that an import asks for: itself, or the one that its name stands in."""
    while module and module not in modules:
        module = module.rpartition(".")[0]
    return module


def circle(needs: Mapping[str, set[str]]) -> list[str]:
    """One circle of modules, if there is one."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_stands_in_a_circle() -> None:
    assert circle(modules_of_the_house()) == []


def test_a_circle_is_found() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
