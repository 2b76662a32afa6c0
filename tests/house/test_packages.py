"""What `pip install` brings is what the folders hold."""

import importlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from rooms import FOLDERS, ROOT, files, sources

HEAVY = {
    "duckdb",
    "langchain_core",
    "langchain_openai",
    "langgraph",
    "langsmith",
    "numpy",
    "openai",
}
HEAVY |= {"pydantic", "scipy", "sentence_transformers", "sklearn", "torch", "transformers"}


def test_every_package_says_what_it_is() -> None:
    folders = {path.parent for package in FOLDERS for path in sources(package)}
    assert [
        folder for folder in folders if '"""' not in (folder / "__init__.py").read_text("utf-8")[:3]
    ] == []


def test_no_folder_at_the_root_is_a_package_but_the_rooms() -> None:
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} <= set(FOLDERS.values())


def test_a_room_at_the_root_refuses_to_be_a_second_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    for room in ("graphs", "prompts", "selection", "calibration"):
        with pytest.raises(ImportError, match=f"import pollex.{room}"):
            importlib.import_module(room)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from a copy: building leaves things behind, and stale ones would get in."""
    copy = tmp_path_factory.mktemp("sources")
    for folder in {Path(folder).parts[0] for folder in FOLDERS.values()}:
        shutil.copytree(
            ROOT / folder,
            copy / folder,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, "--wheel-dir", copy / "dist", copy], check=True, stdin=subprocess.DEVNULL)
    (built,) = (copy / "dist").glob("*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_has_one_top_level_package(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"pollex"}


def test_the_wheel_has_every_file_of_every_room(wheel: zipfile.ZipFile) -> None:
    expected = {
        f"{package.replace('.', '/')}/{path.relative_to(ROOT / folder).as_posix()}"
        for package, folder in FOLDERS.items()
        for path in files(package)
        if "recorded" not in path.parts  # comes with the repository alone
    }
    assert expected - set(wheel.namelist()) == set()
    assert [name for name in wheel.namelist() if "/recorded/" in name] == []


def test_the_wheel_brings_the_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    (entries,) = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    assert "pollex = pollex." in wheel.read(entries).decode()
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())


def test_the_package_runs_as_the_command_does() -> None:
    code = "from pollex.cli.main import main; main()"
    shown = [
        subprocess.run(
            [sys.executable, *way, "--version"], capture_output=True, check=True, text=True
        ).stdout
        for way in (("-m", "pollex"), ("-c", code))
    ]
    assert "version" in shown[0]
    assert shown[0].split()[-1] == shown[1].split()[-1]


def test_importing_pollex_loads_nothing_heavy() -> None:
    code = "import json, sys, pollex; print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert HEAVY & set(json.loads(shown.stdout)) == set()


def test_what_shows_the_store_alone_loads_nobody_who_works() -> None:
    code = "import sys, pollex.services.history; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    workers = {
        "langchain_core",
        "langgraph",
        "openai",
        "scipy",
        "sentence_transformers",
        "sklearn",
        "torch",
    }
    assert workers & set(shown.stdout.split()) == set()


def test_no_two_files_of_tests_have_one_name() -> None:
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    # pytest would collect one of them alone
    assert [name for name, times in names.items() if times > 1] == []


def test_each_of_the_24_scenarios_in_a_browser_has_a_test() -> None:
    texts = [
        path.read_text("utf-8")
        for path in (ROOT / "tests" / "endurance" / "browser").glob("test_*.py")
    ]
    marked = [
        numbers for text in texts for numbers in re.findall(r"mark\.scenario\(([\d, ]+)\)", text)
    ]
    assert {int(number) for numbers in marked for number in numbers.split(",")} == set(range(1, 25))
