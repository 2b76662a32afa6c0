"""`pollex check`: a gate that shuts where conversations get worse, and not by chance."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from small_log import small_log, write_log
from small_runs import Learnt, Pollex

import pollex as pollex_api

WORSE = "mean(p) drops by 0.03"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A release with 40 good conversations of 60, and one with 20 of 60."""
    rows = small_log(60, seed=5)
    good, bad = (iter([row for row in rows if row["thumbs"] == way]) for way in ("up", "down"))
    before = [next(good) for _ in range(40)] + [next(bad) for _ in range(20)]
    after = [*good, *bad]
    folder = tmp_path_factory.mktemp("releases")
    return write_log(folder / "old.jsonl", before), write_log(folder / "new.jsonl", after)


@pytest.fixture
def gate(pollex: Pollex, learnt: Learnt, store: Path) -> Pollex:
    """The command with the set of all tests."""

    def run(new: Path, old: Path, *more: object):  # type: ignore[no-untyped-def]
        given = ("--rubrics", learnt.rubrics, "--store", store)
        return pollex("check", new, "--against", old, *given, *more)

    return run


def test_a_worse_release_shuts_the_gate_and_every_file_and_python_say_so(
    gate: Pollex,
    logs: tuple[Path, Path],
    learnt: Learnt,
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = logs
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    files = ("--junit", tmp_path / "check.xml", "--page", tmp_path / "check.html", "--github")
    conditions = [WORSE, "mean(p) rises by 0.03"]
    ended = gate(
        new, old, *(word for one in conditions for word in ("--fail-if", one)), *files, "--json"
    )
    assert ended.code == 4, ended.err
    assert ended.last["failed"]
    assert [one["status"] for one in ended.last["verdicts"]] == ["failed", "passed"]
    assert ended.last["comparison"]["watch"]["expected_log_loss"][0] > 0
    (failure,) = ElementTree.parse(tmp_path / "check.xml").iter("failure")
    assert "more than chance" in (failure.text or "")
    assert f"::error title={WORSE}::" in ended.out
    assert WORSE in (tmp_path / "summary.md").read_text()
    assert "Drift without labels" in (tmp_path / "check.html").read_text(encoding="utf-8")
    found = pollex_api.check(new, old, learnt.rubrics, fail_if=conditions, store=store)
    assert found.failed
    assert (
        json.loads(json.dumps(found.as_json())) | {"written": ended.last["written"]} == ended.last
    )


def test_an_equal_release_leaves_it_open_at_every_look(
    gate: Pollex, logs: tuple[Path, Path], tmp_path: Path
) -> None:
    old, _ = logs
    copy = tmp_path / "copy.jsonl"
    copy.write_text(old.read_text())
    conditions = (
        "--fail-if",
        WORSE,
        "--fail-if",
        "drift(netsat) above 0.25",
        "--fail-if",
        "unlike above 0.2",
    )
    ended = gate(copy, old, *conditions, "--json")
    assert ended.code == 0, ended.err
    assert "failed" not in {one["status"] for one in ended.last["verdicts"]}
    again = gate(copy, old, "--fail-if", WORSE, "--again", "--json").last
    assert again["again"]
    assert again["verdicts"][0]["figure"]["low"] < 0 < again["verdicts"][0]["figure"]["high"]


def test_what_the_data_leave_open_fails_only_where_that_is_asked_for(
    gate: Pollex, logs: tuple[Path, Path], tmp_path: Path
) -> None:
    old, new = logs
    few = tmp_path / "few.jsonl"
    few.write_text("".join(new.read_text().splitlines(keepends=True)[:6]))
    given = (few, old, "--fail-if", "unlike above 0.1")
    ended = gate(*given)
    assert (ended.code, "fewer than 20" in ended.out) == (0, True), ended.err
    assert gate(*given, "--strict").code == 4
