"""The house as its files tell it, for the tests that hold it to its plan."""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
HOUSE = ROOT / "pollex"
FOLDERS: dict[str, str] = {"pollex": "pollex"} | {
    f"pollex.{folder.name}": str(folder.resolve().relative_to(ROOT))
    for folder in sorted(HOUSE.iterdir())
    if folder.is_dir() and folder.name != "__pycache__"
}
"""Package to folder: `pollex.selection` to `selection`, `pollex.store` to `pollex/store`."""

FRONT_DOOR = "the front door"
ERRORS = "errors"
TEXT = "text"
OUTPUTS = "outputs"
CHILDREN = "children"
SEAM = "the list of rooms"
EVERYBODYS = {ERRORS, TEXT, OUTPUTS, CHILDREN, SEAM}
"""What every folder may import."""
ROOMS = sorted(
    folder.name for folder in (HOUSE / "rooms").iterdir() if (folder / "__init__.py").is_file()
)
"""Capabilities beside the core, each a folder of `pollex/rooms`."""


@dataclass(frozen=True)
class Import:
    """What one import statement asks for, and where it stands (`agents/roles.py:12`)."""

    module: str
    at: str


def files(package: str) -> list[Path]:
    """All files in a package's folder and below, compiled and hidden ones left out."""
    top = ROOT / FOLDERS[package]
    found = top.glob("*") if package == "pollex" else top.rglob("*")
    return [
        path
        for path in sorted(found)
        if path.is_file() and path.suffix != ".pyc" and path.name[0] != "."
    ]


def sources(package: str) -> list[Path]:
    """The Python files among them."""
    return [path for path in files(package) if path.suffix == ".py"]


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's source, parsed once."""
    return ast.parse(path.read_text("utf-8"))


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """All that a file imports, at its top or inside a function."""
    return tuple(imports_of(tree_of(path), str(path.relative_to(ROOT))))


def imports_of(tree: ast.Module, name: str) -> Iterator[Import]:
    """All that a source imports. `from a import b` asks for `a.b`: `b` may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, f"{name}:{node.lineno}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno}: write the absolute name"
            yield from (
                Import(f"{node.module}.{alias.name}", f"{name}:{node.lineno}")
                for alias in node.names
            )
        elif (module := module_imported_by_name(node)) is not None:
            yield Import(module, f"{name}:{node.lineno}")


def module_imported_by_name(node: ast.AST) -> str | None:
    """What `import_module("a.b")` asks for; None for anything else, and for a name that is made."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    function = (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    )
    argument = node.args[0]
    is_text = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    return argument.value if function == "import_module" and is_text else None


def room_of(module: str) -> str | None:
    """The room that a module belongs to; None for one that isn't ours."""
    ours, _, inner = module.partition(".")
    if ours != "pollex":
        return None
    first, _, deeper = inner.partition(".")
    if first == "rooms":
        name = deeper.partition(".")[0]
        return f"rooms.{name}" if name in ROOMS else SEAM
    return (
        first
        if f"pollex.{first}" in FOLDERS or first in (ERRORS, TEXT, OUTPUTS, CHILDREN)
        else FRONT_DOOR
    )
