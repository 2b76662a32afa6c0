"""What no verb carries out: `tests/refusals.toml` has a row for each, and here are the files that lie there."""

import json
import os
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_log import row, small_log, write_log
from small_runs import Learnt, Pollex, run_here

from pollex.store.resume import list_stored_runs
from pollex.store.store import Store

TESTS = Path(__file__).parents[2]
REFUSALS = tomllib.loads((TESTS / "refusals.toml").read_text("utf-8"))
SHORT = {
    "TASK": "--question 'Was the task completed?' --options yes,no",
    "MODEL": "--model m --base-url http://127.0.0.1:9/v1",
}
QUESTION = {"question_id": 1, "question": "Why?", "reference": "Because.", "category": "知识"}
BROKEN = ("not JSON", "[]", '{"id": "a"}', '{"id": "a", "answer": 1}')
SPOILT = ("[" * 100_000, '{"id": "odd", "answer": "yes", "answer": "no"}', "9" * 5000)
TOPICS = '[[topics]]\nid = "kettle"\ntext = "You want to return a kettle that leaks."\ndocuments = ["returns.md"]\n'
STORES = {".pollex", "nowhere"}
"""Those that a verb may make; `none` is never made."""
SCORING = ("check", "compare")
"""What they refuse of a sample or a condition may come after the samples are scored."""
LABELS = (
    {"id": "c000", "thumbs": "up"},
    {"id": "nobody", "thumbs": "up", "drawn": "random"},
    {"thumbs": "up", "drawn": "random"},
)


def write_logs(folder: Path) -> None:
    """Logs that something can be learned from, and those that nothing can."""
    rows = small_log(12)
    logs = {
        "log": [one | {"release": "1.0"} for one in rows],
        "up": [one for one in small_log() if one["thumbs"] == "up"],
        "down": [one for one in small_log() if one["thumbs"] == "down"],
        "few": small_log()[:18],
        "bare": [row(n, ["Hi.", f"Hello {n}."]) for n in range(30)],
        "silent": [row(n, ["", " "], thumbs="up" if n % 2 else "down") for n in range(30)],
        "empty": [],
        "twice": [*rows, row("c000", ["Something else.", "Indeed."], thumbs="up")],
        "q": [QUESTION | {"answer": "So."}],
        "unanswered": [QUESTION],
    }
    for name, one in (
        logs | {f"label-{n}": [label] for n, label in enumerate(LABELS, start=1)}
    ).items():
        write_log(folder / f"{name}.jsonl", one)
    for n, line in enumerate((*BROKEN, *SPOILT), start=1):
        (folder / f"people-{n}.jsonl").write_text(
            f'\n{{"id": "b", "answer": ""}}\n{line}\n', encoding="utf-8"
        )


def write_tables(folder: Path) -> None:
    """Answers to two questions about twelve texts, judgments of the first by two people, and a calibrator of it."""
    asked = [
        f"t{n},{name},{option},0.5"
        for n in range(12)
        for name in ("overall", "length")
        for option in (1, 2)
    ]
    judged = [f"t{n},overall,{who},{1 + n % 2}" for n in range(12) for who in ("ann", "bob")]
    for name, lines in {
        "answers": ["option,probability", *asked],
        "judgments": ["judge,answer", *judged],
    }.items():
        lines[0] = f"text_id,question,{lines[0]}"
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tables = (folder / "answers.csv", folder / "judgments.csv")
    ended = run_here("calibrate", "fit", *tables, "--model", "constant", "--out", folder / "kept")
    assert ended.code == 0, ended.err


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, learnt: Learnt) -> Path:
    """The folder in which all of it is tried; nothing in it ever changes."""
    folder = tmp_path_factory.mktemp("world")
    write_logs(folder)
    write_tables(folder)
    for file in learnt.rubrics.parent.glob("rubrics*"):
        shutil.copy(file, folder)
    shutil.copy(learnt.rubrics, folder / "rubrics.jsonl")
    for name in ("folder.csv", "store", "logs"):
        (folder / name).mkdir()
    shutil.copy(folder / "log.jsonl", folder / "logs")
    store = ("store/store.sqlite", "store/backup.sqlite", "store/secret")
    for name in ("whatever.csv", "other.csv", "report.html", *store):
        (folder / name).write_text("all that there is\n", encoding="utf-8")
    os.link(folder / "whatever.csv", folder / "same.csv")
    shutil.copy(TESTS.parent / "examples" / "bikes.toml", folder / "d.toml")
    (folder / "topics.toml").write_text(TOPICS, encoding="utf-8")
    return folder


@pytest.fixture
def unchanged(world: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The world as the working folder, in which at the end lies what lay there before."""
    monkeypatch.chdir(world)
    before = files_in(world)
    yield
    assert files_in(world) == before
    assert not (world / "none").exists()
    for store in STORES:
        shutil.rmtree(world / store, ignore_errors=True)


def files_in(folder: Path) -> dict[Path, bytes]:
    """What lies in a folder beside the stores that commands make."""
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and STORES.isdisjoint(path.parts)
    }


def begun(store: Path) -> int:
    """The number of runs in a store, which may not be there."""
    if not store.exists():
        return 0
    with Store.open(store, read_only=True) as kept:
        return len(list_stored_runs(kept))


@pytest.mark.parametrize("verb", REFUSALS)
def test_what_cannot_be_carried_out_is_refused_before_any_work(verb: str, unchanged: None) -> None:
    wrong = {}
    told = [(one["run"], one["says"]) for one in REFUSALS[verb]]
    assert len(set(told)) == len(told), "no refusal is named twice"
    for one in REFUSALS[verb]:
        words = one["run"]
        for name, long in SHORT.items():
            words = words.replace(name, long)
        ended = run_here(verb, *shlex.split(words))
        said = " ".join(ended.err.split())
        if (
            ended.code != one.get("code", 2)
            or one["says"].strip() not in said
            or "Traceback" in said
        ):
            wrong[one["run"]] = (ended.code, said)
    assert wrong == {}, json.dumps(wrong, indent=1, ensure_ascii=False)
    assert verb in SCORING or sum(map(begun, map(Path, STORES))) == 0


@pytest.mark.parametrize("source", ["{}", "sqlite:{}?SELECT 1", "postgres://{}?SELECT 1"])
def test_a_query_or_a_path_without_end_is_quoted_by_its_beginning(
    pollex: Pollex, source: str
) -> None:
    ended = pollex("learn", source.format("x" * 40_000), "--out", "r.json")
    assert ended.code in (1, 2)
    assert len(ended.err) < 1_000
    assert "unexpected" not in ended.err


def test_what_a_path_refuses_is_said_in_words(pollex: Pollex, tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "file.txt").write_text("")
    for out in ("round/r.json", "file.txt/r.json", "x" * 300):
        ended = pollex("learn", write_log(Path("log.jsonl"), small_log()), "--out", out)
        assert ended.code in (1, 2), out
        assert "unexpected" not in ended.err, ended.err
