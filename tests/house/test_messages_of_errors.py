"""Errors name options by `option=`, and whoever calls spells them: a message holds no option of the terminal."""

import ast
import re

import pytest
from rooms import FOLDERS, sources, tree_of

OPTION = re.compile(r"(?:^|\s)--[a-z]")


def texts(call: ast.expr) -> list[str]:
    """The texts in an expression, with nothing in the gaps; commands in backticks are left out."""
    joined = [node for node in ast.walk(call) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    whole = [
        "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        for node in joined
    ]
    plain = [
        node.value
        for node in ast.walk(call)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
    ]
    return [re.sub(r"`[^`]*`", "", str(text)) for text in [*whole, *plain]]


def raised(tree: ast.Module) -> list[tuple[int, str]]:
    """What is raised, and where."""
    return [
        (node.lineno, text)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and node.exc is not None
        for text in texts(node.exc)
    ]


@pytest.mark.parametrize("package", [package for package in FOLDERS if package != "pollex.cli"])
def test_a_message_names_no_option_of_the_terminal(package: str) -> None:
    found = [
        f"{path.name}:{line}: {text}"
        for path in sources(package)
        for line, text in raised(tree_of(path))
        if OPTION.search(text)
    ]
    assert found == []


def test_an_option_in_a_message_is_found() -> None:
    assert [
        text
        for _, text in raised(ast.parse("raise E('no', hint='give --samples 5')"))
        if OPTION.search(text)
    ]
    assert not [
        text
        for _, text in raised(ast.parse("raise E('see `pollex doctor --rebuild`')"))
        if OPTION.search(text)
    ]
