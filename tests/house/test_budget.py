"""The size of each room, and the class names that stand twice, may only fall: `budget.toml` has what they may be.

`python tests/house/test_budget.py` writes the file anew from the tree as it is.
"""

import ast
import tomllib
from collections import Counter
from pathlib import Path

from rooms import FOLDERS, sources, tree_of

BUDGET = Path(__file__).with_name("budget.toml")


def sizes() -> dict[str, dict[str, int]]:
    """Lines, statements and modules of each room; an `__init__` is no module."""
    found: dict[str, dict[str, int]] = {}
    for package in FOLDERS:
        paths = sources(package)
        found[package] = {
            "lines": sum(path.read_text("utf-8").count("\n") for path in paths),
            "statements": sum(isinstance(node, ast.stmt) for path in paths for node in ast.walk(tree_of(path))),
            "modules": sum(path.name != "__init__.py" for path in paths),
        }
    return found


def class_names_twice() -> list[str]:
    """Names that more than one class of the tree has, private ones too."""
    names = Counter(
        node.name
        for package in FOLDERS
        for path in sources(package)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, times in names.items() if times > 1)


def test_no_room_grows_beyond_its_budget() -> None:
    budget = tomllib.loads(BUDGET.read_text("utf-8"))["rooms"]
    over = [
        f"{room}: {size} {what}, {budget.get(room, {}).get(what, 0)} are allowed"
        for room, measured in sizes().items()
        for what, size in measured.items()
        if size > budget.get(room, {}).get(what, 0)
    ]
    assert over == [], "delete as much elsewhere in the room, or move the budget and say in the commit what for"


def test_no_class_has_the_name_of_another_but_those_that_had_it() -> None:
    allowed, found = set(tomllib.loads(BUDGET.read_text("utf-8"))["twice"]), set(class_names_twice())
    assert found - allowed == set()
    assert allowed - found == set(), "strike them from the list"


def written() -> str:
    """The budget that fits the tree as it is."""
    lines = ["# Written by `python tests/house/test_budget.py`. All of it may only fall.", ""]
    lines += [
        "# Names that more than one class has.",
        "twice = [",
        *(f'    "{name}",' for name in class_names_twice()),
        "]",
    ]
    lines += ["", "# What each room may be at most.", "[rooms]"]
    for room, size in sizes().items():
        lines.append(f'"{room}" = {{ ' + ", ".join(f"{what} = {number}" for what, number in size.items()) + " }")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    BUDGET.write_text(written(), "utf-8")
