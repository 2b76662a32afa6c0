"""Figures of README and docs are those of the files that benchmarks wrote."""

import re
import sys
import warnings

import pytest
from rooms import ROOT

sys.path.append(str(ROOT / "docs"))
from figures import COMMANDS, FIGURES, QUOTED, changes_since, file_of, filled, pages

OLD = 40
"""Changes of the code after which a figure is told to be old."""

NAMED = re.compile(r"\bpython ((?:benchmarks|docs|examples)/[\w/]+\.py)")
MEASURED = re.compile(r"\[[-−+]?\d*\.\d+, [-−+]?\d*\.\d+\]| ± \.?\d")
FILES = sorted(path.stem for path in FIGURES.glob("*.json"))
PAGES = {page.relative_to(ROOT).as_posix(): page.read_text("utf-8") for page in pages()}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_quotes_the_files_of_figures_word_for_word(page: str) -> None:
    assert PAGES[page] == filled(PAGES[page]), (
        "run `python docs/figures.py`, and commit what it writes"
    )
    assert PAGES[page].count("<!-- figures of") == PAGES[page].count("<!-- end of figures -->")


@pytest.mark.parametrize(
    "page", ["README.md", "docs/benchmarks.md", "docs/methods.md", "docs/models.md"]
)
def test_no_figure_with_an_interval_stands_outside_the_marks(page: str) -> None:
    outside = QUOTED.sub("", PAGES[page])
    assert [line for line in outside.splitlines() if MEASURED.search(line)] == []


def test_every_file_of_figures_is_quoted_and_says_where_it_is_from() -> None:
    quoted = {name for page in PAGES.values() for _, name, *_ in QUOTED.findall(page)}
    assert quoted == set(FILES)
    assert set(COMMANDS) <= set(FILES)
    for name in FILES:
        content = file_of(name)
        assert re.fullmatch("[0-9a-f]{40}", content["commit"]), name
        assert content["command"] if name in COMMANDS else content["from"], name
        # A bar that isn't reached is named beside the command, so that nobody overlooks it.
        missed = {bar for bar, held in content["bars"].items() if not held}
        assert missed == set(COMMANDS.get(name, {}).get("missed", ())), f"{name}: a bar was missed"


def test_a_page_names_no_program_that_is_not_there() -> None:
    named = {program for page in PAGES.values() for program in NAMED.findall(page)}
    named |= {command["program"] for command in COMMANDS.values()}
    assert [program for program in sorted(named) if not (ROOT / program).is_file()] == []


def test_a_benchmark_runs_no_test_that_is_not_there() -> None:
    sources = [path.read_text() for path in (ROOT / "benchmarks").glob("*.py")]
    named = {
        test for source in sources for test in re.findall(r"tests/[\w/]+/test_\w+\.py", source)
    }
    assert named
    assert [test for test in sorted(named) if not (ROOT / test).is_file()] == []


def test_every_benchmark_is_named_by_a_page() -> None:
    programs = [
        path
        for path in (ROOT / "benchmarks").glob("*.py")
        if '__name__ == "__main__"' in path.read_text()
    ]
    assert [
        path.name
        for path in programs
        if not any(f"benchmarks/{path.name}" in page for page in PAGES.values())
    ] == []


def test_old_figures_are_told() -> None:
    changes = {name: changes_since(name) for name in COMMANDS}
    assert set(changes) == set(COMMANDS)
    old = [name for name, number in changes.items() if number is not None and number > OLD]
    if old:
        more = f"older than {OLD} changes of the code, see `python docs/figures.py --age`"
        warnings.warn(f"figures of {', '.join(old)}: {more}", stacklevel=1)
