"""The benchmark of ensembles on a planted table that is worked by hand."""

import csv
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "roborater.py"
RUNS = {
    "sure": ("yes", "yes", "yes", "yes"),
    "wrong": ("yes", "yes", "yes", "yes"),
    "near": ("no", "no", "no", "yes"),
    "split": ("yes", "no", "no", "yes"),
    "failed": ("no", "", "no", ""),
    "vague": ("yes", "yes", "yes", "yes"),
    "unknown": ("no", "no", "no", "no"),
}
LABELS = {
    "sure": "yes",
    "wrong": "no",
    "near": "no",
    "split": "no",
    "failed": "no",
    "vague": "vague",
}


def write(path: Path, head: str, rows: list[tuple[Any, ...]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head.split(","))
        writer.writerows(rows)
    return path


def bench(*arguments: object) -> str:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, Path]:
    folder = tmp_path_factory.mktemp("roborater")
    rows = [
        (id_, number, said, "v2")
        for id_, answers in RUNS.items()
        for number, said in enumerate(answers, 1)
    ]
    table = write(folder / "runs.csv", "conversation,run,answer,variant", rows)
    labels = write(folder / "labels.csv", "conversation,label", list(LABELS.items()))
    given = ("--runs", table, "--labels", labels)
    bench(*given, "--json", folder / "report.json", "--plots", folder / "plots")
    report = json.loads((folder / "report.json").read_text("utf-8"))["figures"]
    lines = (
        json.dumps(dict(zip(("conversation", "run", "answer", "variant"), row, strict=True)))
        for row in rows
    )
    (folder / "runs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return report, bench("--runs", folder / "runs.jsonl", "--labels", labels), folder / "plots"


def at(report: Mapping[str, Any], n: int, tau: float) -> dict[str, Any]:
    (row,) = [
        row
        for row in report["rows"]
        if row["n"] == n and row["tau"] == pytest.approx(tau, abs=1e-6)
    ]
    return dict(row)


def test_vague_and_unlabelled_conversations_are_left_out_and_failed_runs_counted(
    found: tuple[dict[str, Any], str, Path],
) -> None:
    report = found[0]["v2"]
    assert (report["conversations"], report["vague"], report["failed_runs"], report["runs"]) == (
        5,
        2,
        2,
        4,
    )
    assert report["truths"] == {"no": 4, "yes": 1}


def test_coverage_and_scores_are_those_worked_by_hand(
    found: tuple[dict[str, Any], str, Path],
) -> None:
    report = found[0]["v2"]
    # One run: sure, near and failed are right, wrong and split are wrong.
    one = at(report, 1, 0.0)
    assert (one["coverage"], one["passed"]["score"], one["left"]["n"]) == (
        1.0,
        pytest.approx(1 / 5),
        0,
    )
    # Four runs, all agree: sure and failed are right, wrong is wrong; near and the tie of split are
    # left.
    four = at(report, 4, 0.0)
    assert four["coverage"] == pytest.approx(3 / 5)
    assert four["passed"]["score"] == pytest.approx(1 / 3)
    assert (four["left"]["score"], four["left"]["n"], four["left"]["tied"]) == (0.0, 2, 1)
    # All but one agree: near passes too, −(¾ ln ¾ + ¼ ln ¼) = 0.562335.
    usual = at(report, 4, 0.562335)
    assert (usual["agree"], usual["coverage"], usual["passed"]["score"]) == (
        True,
        pytest.approx(4 / 5),
        0.5,
    )
    assert (usual["left"]["score"], usual["left"]["n"]) == (-1.0, 1)
    # A tie never passes, even at its own entropy, ln 2.
    assert at(report, 4, 0.693147)["coverage"] == pytest.approx(4 / 5)
    low, high = usual["passed"]["interval"]
    assert -1 <= low < 0.5 < high <= 1


def test_the_table_and_both_figures_are_written(found: tuple[dict[str, Any], str, Path]) -> None:
    _, text, plots = found
    assert (
        "v2: 5 conversations (4 no, 1 yes), 2 vague ones left out; 4 runs, 2 of them failed" in text
    )
    assert "  4  0.5623*  0.800" in text
    assert sorted(path.name for path in plots.iterdir()) == ["figure1-v2.svg", "figure2-v2.svg"]
    assert all("<svg" in path.read_text() for path in plots.iterdir())
    by_entropy = (plots / "figure2-v2.svg").read_text()
    assert all(f"<!-- n = {n} -->" in by_entropy for n in (1, 2, 3, 4))
    assert all(
        f"<!-- {label} -->" in by_entropy
        for label in ("coverage", "score, DE ≤ τ", "score, DE &gt; τ", "τ in nats")
    )
