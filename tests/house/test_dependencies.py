"""What is imported is asked for, and what is asked for is locked."""

import re
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rooms import FOLDERS, PROJECT, ROOT, imports, sources

ASKED = PROJECT["project"]["dependencies"]
ASKED_BY_DEVELOPERS = PROJECT["project"]["optional-dependencies"]["dev"]
FOR_BROWSERS = [
    name
    for extra in ("browser", "excel", "mcp", "postgres", "simulate")
    for name in PROJECT["project"]["optional-dependencies"][extra]
]
FOR_AGENTS = [
    name
    for extra in ("excel", "langchain", "mcp", "names", "otel", "postgres", "ray", "simulate")
    for name in PROJECT["project"]["optional-dependencies"][extra]
]
DEVELOPERS_FILES = [
    path for folder in ("benchmarks", "docs", "tests") for path in ROOT.glob(f"{folder}/**/*.py")
]
LOADED_WHERE_THEY_ARE = {"IPython", "gguf"}
"""Loaded by name, in notebooks and beside llama.cpp alone: who has these has them."""

LOCK = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
LOCK_LINES = [line.removesuffix(" \\") for line in LOCK if line[:1] not in ("", "#", " ")]


def names(requirements: Iterable[str]) -> set[str]:
    """The distributions that are asked for."""
    return {canonicalize_name(Requirement(requirement).name) for requirement in requirements}


def undeclared(paths: Iterable[Path], declared: set[str]) -> list[str]:
    """Imports of the files that none of the declared distributions brings."""
    brought_by = metadata.packages_distributions()
    packages = {
        path.parent.name
        for room in ("tests", "benchmarks")
        for path in (ROOT / room).rglob("__init__.py")
    }
    ours = {"pollex", *packages, *(path.stem for path in DEVELOPERS_FILES)}
    return [
        f"{found.at} {found.module}"
        for path in paths
        for found in imports(path)
        if (top := found.module.partition(".")[0])
        not in sys.stdlib_module_names | ours | LOADED_WHERE_THEY_ARE
        and canonicalize_name(top) not in declared  # an extra need not be installed
        and not declared & {canonicalize_name(name) for name in brought_by.get(top, [])}
    ]


def test_the_rooms_import_only_what_pyproject_asks_for() -> None:
    assert (
        undeclared(
            (path for package in FOLDERS for path in sources(package)), names([*ASKED, *FOR_AGENTS])
        )
        == []
    )


def test_tests_and_benchmarks_import_only_what_developers_have() -> None:
    assert undeclared(DEVELOPERS_FILES, names([*ASKED, *ASKED_BY_DEVELOPERS, *FOR_BROWSERS])) == []


def test_the_lock_has_nothing_but_exact_versions() -> None:
    assert [
        line
        for line in LOCK_LINES
        if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line)
    ] == []


def test_the_lock_has_the_hashes_of_each_distribution_and_nothing_else() -> None:
    below = "".join("=" if "==" in line else "h" for line in LOCK if line[:1] not in ("", "#"))
    assert re.fullmatch(r"(=h+)*", below)
    hashes = [line for line in LOCK if line.startswith(" ")]
    assert [
        line for line in hashes if not re.fullmatch(r" {4}--hash=sha256:[0-9a-f]{64}( \\)?", line)
    ] == []


def test_the_lock_names_each_distribution_once() -> None:
    assert len(names(LOCK_LINES)) == len(LOCK_LINES)


def test_the_half_that_the_demo_installs_has_all_that_pollex_needs() -> None:
    end = LOCK.index("# What tests and tools need besides.")
    half = {canonicalize_name(line.partition("==")[0]) for line in LOCK[:end] if "==" in line}
    needs = {requirement for _, requirement in needed(ASKED) if not pinned(requirement)}
    assert [
        str(requirement) for requirement in needs if canonicalize_name(requirement.name) not in half
    ] == []


def test_the_lock_satisfies_everything_that_is_needed_however_indirectly() -> None:
    locked = {
        canonicalize_name(name): version
        for name, _, version in (line.partition("==") for line in LOCK_LINES)
    }
    missing = [
        f"{requirement} (for {asker})"
        for asker, requirement in needed([*ASKED, *ASKED_BY_DEVELOPERS, *FOR_BROWSERS])
        if not requirement.specifier.contains(
            locked.get(canonicalize_name(requirement.name), "0"), prereleases=True
        )
        and not pinned(requirement)
    ]
    assert missing == []


def pinned(requirement: Requirement) -> bool:
    """Whether the asker names one version itself, as a torch built for graphics cards does for what it brings."""
    return any(
        specifier.operator == "==" and "*" not in specifier.version
        for specifier in requirement.specifier
    )


def needed(asked: Iterable[str]) -> list[tuple[str, Requirement]]:
    """Who needs what on this platform, all the way down."""
    found: list[tuple[str, Requirement]] = []
    waiting = [("pollex", text, "") for text in asked]
    seen: set[tuple[str, str]] = set()
    while waiting:
        asker, text, extra = waiting.pop()
        requirement = Requirement(text)
        # what it asks for was given: what is installed may tell of an older one
        if requirement.name == "pollex":
            continue
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        found.append((asker, requirement))
        for wanted in ("", *requirement.extras):
            if (requirement.name, wanted) not in seen:
                seen.add((requirement.name, wanted))
                waiting += [
                    (requirement.name, text, wanted)
                    for text in metadata.requires(requirement.name) or []
                ]
    return found
