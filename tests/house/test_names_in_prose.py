"""What docstrings and messages name exists: files, modules, and what stands in them."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from rooms import FOLDERS, HOUSE, ROOMS, ROOT, sources, tree_of

IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?<![\w/.<-])(?:[a-z_]+/)+[a-z_]+\.(?:py|md|toml)\b")
FILES = (".css", ".json", ".md", ".py", ".toml")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def prose(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Docstrings and all other constant texts with the lines they begin in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


class Known:
    """What the tree defines: names by the package, module or class that they stand in."""

    def __init__(self) -> None:
        self.inside: dict[str, set[str]] = defaultdict(set)
        for package in FOLDERS:
            for path in sources(package):
                self._add(path)

    def _add(self, path: Path) -> None:
        owner = path.parent.name if path.name == "__init__.py" else path.stem
        self.inside[path.parent.name].add(owner)
        self.inside[path.parent.parent.name].add(path.parent.name)
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Module):
                self.inside[owner] |= names_in(node)
            elif isinstance(node, ast.ClassDef):
                self.inside[owner].add(node.name)
                self.inside[node.name] |= names_in(node)
                self.inside[node.name] |= {
                    target.attr
                    for inner in ast.walk(node)
                    for target in (
                        inner.targets
                        if isinstance(inner, ast.Assign)
                        else [getattr(inner, "target", None)]
                    )
                    if isinstance(target, ast.Attribute)
                }

    def lacks(self, name: str) -> bool:
        """Whether a dotted name begins with what we define and goes on with what isn't there."""
        parts = name.removeprefix("pollex.").split(".")
        return any(
            owner in self.inside and part not in self.inside[owner]
            for owner, part in pairwise(parts)
        )


def names_in(node: ast.Module | ast.ClassDef) -> set[str]:
    """What a module or class defines or imports at its top."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(inner.name)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found.add(inner.id)
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in inner.names}
    return found


@pytest.fixture(scope="module")
def known() -> Known:
    return Known()


def stale(known: Known) -> list[str]:
    """Names in texts of ours that lead nowhere."""
    found = []
    for path in [path for package in FOLDERS for path in sources(package)]:
        for line, text in prose(tree_of(path)):
            dotted = [
                one
                for one in IN_BACKTICKS.findall(text)
                if DOTTED.fullmatch(one) and not one.endswith(FILES)
            ]
            missing = [one for one in dotted if known.lacks(one)]
            missing += [
                one
                for one in FILE.findall(text)
                if not any(
                    (top / one).exists()
                    for top in (ROOT, HOUSE, *(HOUSE / "rooms" / room for room in ROOMS))
                )
            ]
            found += [f"{path.relative_to(ROOT)}:{line} {one}" for one in missing]
    return found


def test_every_name_in_prose_leads_somewhere(known: Known) -> None:
    assert stale(known) == []


def test_a_stale_name_is_found(known: Known) -> None:
    assert known.lacks("pollex.services.never_written")
    assert known.lacks("agents.llm.asking.ModelClient")
    assert not known.lacks("selection.policies")
