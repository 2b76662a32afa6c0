"""A binding is named for what it holds, not by a pronoun or a participle."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from rooms import ROOT

VAGUE = frozenset(
    {
        "asked",
        "each",
        "found",
        "given",
        "kept",
        "known",
        "left_",
        "made",
        "mine",
        "one",
        "others_",
        "own",
        "said",
        "seen",
        "some",
        "taken",
        "told",
        "wanted",
    }
)
"""Names that say nothing of what they hold: a loop over rubrics binds `rubric`."""

MAX_SHARE_DONE = 0.005
"""Of the bindings of a folder: fields that are keys of states and files keep their names."""

ROOMS = sorted(path.name for path in (ROOT / "pollex").iterdir() if path.is_dir())
FOLDERS = ["calibration", "examples", "graphs", "prompts", "selection"]
FOLDERS += [f"pollex/{name}" for name in ROOMS]


def bindings_in(path: Path) -> Counter[str]:
    """Count the names that a module binds: variables, loop variables, fields and arguments."""
    names: Counter[str] = Counter()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] += 1
        elif isinstance(node, ast.arg):
            names[node.arg] += 1
    return names


def bindings_of_folder(folder: str) -> Counter[str]:
    """Count the names that are bound in a folder, in all modules below it."""
    names: Counter[str] = Counter()
    for path in sorted((ROOT / folder).rglob("*.py")):
        names += bindings_in(path)
    return names


def count_vague(names: Counter[str]) -> int:
    return sum(names[name] for name in VAGUE)


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_of_a_folder_say_what_they_hold(folder: str) -> None:
    names = bindings_of_folder(folder)
    vague = {name: names[name] for name in VAGUE if names[name]}
    assert count_vague(names) <= MAX_SHARE_DONE * names.total(), (
        f"{folder} binds {vague}: name each for what it holds (conversation, rubric, matches)"
    )
