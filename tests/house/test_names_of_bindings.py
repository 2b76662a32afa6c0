"""A binding is named for what it holds, not by a pronoun or a participle."""

import ast
import tomllib
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
"""Of the bindings of a folder whose names are done: keys of states and files that stay."""

FOLDERS = tomllib.loads((ROOT / "tests/house/names_of_bindings.toml").read_text("utf-8"))


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


@pytest.mark.parametrize("folder", FOLDERS["done"])
def test_a_folder_whose_names_are_done_gets_no_vague_one_again(folder: str) -> None:
    names = bindings_of_folder(folder)
    vague = {name: names[name] for name in VAGUE if names[name]}
    assert count_vague(names) <= MAX_SHARE_DONE * names.total(), (
        f"{folder} binds {vague}: name each for what it holds (conversation, rubric, matches)"
    )


@pytest.mark.parametrize("folder", FOLDERS["most"])
def test_vague_names_of_other_folders_only_become_fewer(folder: str) -> None:
    most = FOLDERS["most"][folder]
    count = count_vague(bindings_of_folder(folder))
    assert count <= most, (
        f"{folder} has {count} vague bindings, {most} before: name new ones for what they hold"
    )


def test_every_folder_of_source_is_done_or_has_its_number() -> None:
    listed = {*FOLDERS["done"], *FOLDERS["most"]}
    source = [path.resolve() for path in (ROOT / "pollex").rglob("*.py")]
    folders = {str(path.parent.relative_to(ROOT)) for path in source}
    unlisted = {
        folder
        for folder in folders - {"pollex"}
        if not any(f"{folder}/".startswith(f"{name}/") for name in listed)
    }
    assert sorted(unlisted) == []
