"""Imports go one way through the house."""

import ast
import re

import pytest
from rooms import (
    ERRORS,
    EVERYBODYS,
    FOLDERS,
    FRONT_DOOR,
    HOUSE,
    ROOMS,
    SEAM,
    imports,
    imports_of,
    room_of,
    sources,
)

BASE = {"conversations", "gateway", "measures", "prompts"}
MAY_KNOW: dict[str, set[str]] = {
    "examples": {FRONT_DOOR},  # they use pollex as its users do
    "conversations": set(),
    "gateway": set(),
    "measures": set(),
    "prompts": set(),
    "selection": {"measures"},
    "calibration": {"measures"},
    "rubrics": BASE | {"selection", "calibration"},
    "agents": {"conversations", "gateway", "prompts", "rubrics"},
    "store": {"agents", "conversations", "gateway", "rubrics"},
}
MAY_KNOW["graphs"] = {*MAY_KNOW}
MAY_KNOW["runs"] = {*MAY_KNOW}
for floor in ("formats", "reports", "services", "usecases", "api", "cli", "studio", "web"):
    MAY_KNOW[floor] = {*MAY_KNOW} - {"api", "cli", "studio"}
MAY_KNOW["cli"] |= {"web"}  # `pollex serve` opens it
"""Beside itself and what everybody may import: errors, text, the list of outputs.

Only `pollex.api`, `cli` and `web` know services.
"""


@pytest.mark.parametrize(
    "package", [package for package in FOLDERS if package not in ("pollex", "pollex.rooms")]
)
def test_a_folder_imports_only_what_the_design_lets_it_know(package: str) -> None:
    room = package.removeprefix("pollex.")
    known = MAY_KNOW[room] | {room, None} | EVERYBODYS
    wrong = [f"{found.at} {found.module}" for path in sources(package) for found in imports(path)
             if room_of(found.module) not in known]  # fmt: skip
    assert wrong == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_the_core_and_no_other_room(room: str) -> None:
    paths = sorted((HOUSE / "rooms" / room).rglob("*.py"))
    other = {f"rooms.{name}" for name in ROOMS if name != room}
    assert [
        found.at for path in paths for found in imports(path) if room_of(found.module) in other
    ] == []


@pytest.mark.parametrize("room", ROOMS)
def test_the_core_names_no_room_not_even_in_a_text(room: str) -> None:
    named = re.compile(rf"pollex[./]rooms[./]{room}\b")
    core = [path for package in FOLDERS if package != "pollex.rooms" for path in sources(package)]
    assert [str(path) for path in core if named.search(path.read_text("utf-8"))] == []


def test_the_errors_know_nobody() -> None:
    (errors,) = [path for path in sources("pollex") if path.name == "errors.py"]
    assert [found for found in imports(errors) if room_of(found.module) is not None] == []


def test_a_wrong_import_is_found_wherever_it_stands() -> None:
    source = (
        "import pollex\ndef f():\n    from pollex import graphs\n"
        "    if 1:\n        import pollex.reports.svg as p\n"
        "def g(name):\n    import_module('pollex.web.app')\n    importlib.import_module(name)\n"
    )
    found = {(room_of(found.module), found.at) for found in imports_of(ast.parse(source), "a.py")}
    assert found == {
        (FRONT_DOOR, "a.py:1"),
        ("graphs", "a.py:3"),
        ("reports", "a.py:5"),
        ("web", "a.py:7"),
    }


@pytest.mark.parametrize(
    ("module", "room"),
    [
        ("pollex.errors.WrongUse", ERRORS),
        ("pollex.selection.policies.greedy", "selection"),
        ("pollex.api.rubrics.learn", "api"),
        ("pollex.learn", FRONT_DOOR),
        ("pollex.rooms.list_modules_in_part", SEAM),
        ("pollexy.web", None),
        ("numpy.typing", None),
    ],
)
def test_a_module_belongs_to_one_room(module: str, room: str | None) -> None:
    assert room_of(module) == room
