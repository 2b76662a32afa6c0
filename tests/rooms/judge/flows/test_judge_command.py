"""`pollex judge` and `pollex review` without a model: files, people's answers, and what is refused."""

import csv
import io
import json
import shutil
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from small_log import Ended, read_rows, row, small_log, with_embeddings, write_log
from small_runs import Learnt, Pollex, run_here

ASK = ("--question", "Was the task completed?")
ODD = "\u2028done,\x85\x0b\u2029"
"""Ends of lines to some, and none in JSON lines."""


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, learnt: Learnt
) -> dict[str, tuple[Path, Ended]]:
    """Two runs over the small log, some conversations that pull both ways, and one that can't be judged.

    Each has a folder with its store `kept` and its files; `doubtful` leaves more to people.
    """
    rows = small_log()
    said = [[turn["content"] for turn in one["messages"]] for one in rows]
    both = [
        row(f"both{n}", [said[2 * n][0] + ODD, *said[2 * n][1:], *said[2 * n + 1]])
        for n in range(6)
    ]
    made = {}
    for name, more in {"usual": ["--votes", "votes.parquet"], "doubtful": ["--tau", "0"]}.items():
        folder = tmp_path_factory.mktemp(name)
        log = write_log(folder / "log.jsonl", [*rows, *both, row("alone", ["Anybody?"])])
        store = with_embeddings(folder / "kept", learnt.store / "embeddings")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            ended = run_here(
                "judge", log, *ASK, "--store", store, "--accepted", "good.jsonl", "--json", *more
            )
            assert run_here("review", "last", "--out", "people.jsonl", "--store", store).code == 3
        made[name] = folder, ended
    return made


@pytest.fixture
def usual(world: dict[str, tuple[Path, Ended]], tmp_path: Path) -> Ended:
    """The usual run; a copy of its folder is where commands run."""
    shutil.copytree(world["usual"][0], tmp_path, dirs_exist_ok=True)
    return world["usual"][1]


@pytest.fixture
def doubtful(world: dict[str, tuple[Path, Ended]], tmp_path: Path) -> Ended:
    shutil.copytree(world["doubtful"][0], tmp_path, dirs_exist_ok=True)
    return world["doubtful"][1]


def judged(pollex: Pollex, *options: object) -> Ended:
    return pollex("judge", "log.jsonl", *ASK, "--store", "kept", "--json", *options)


def reviewed(pollex: Pollex, *options: object) -> Ended:
    return pollex("review", *options, "--store", "kept", "--json")


def test_every_conversation_ends_in_one_file_or_is_told_of(usual: Ended, tmp_path: Path) -> None:
    assert usual.code == 3  # one can't be judged
    told = usual.last
    verdicts = read_rows(tmp_path / "verdicts.jsonl")
    good = read_rows(tmp_path / "good.jsonl")
    people = read_rows(tmp_path / "people.jsonl")
    assert len(verdicts) == told["n"] == sum(told["outcomes"].values()) == 55
    assert told["outcomes"]["not_scorable"] == 1
    assert (len(good), len(people)) == (told["outcomes"]["rated"], told["waiting"])
    assert len(good) + len(people) + 1 == len(verdicts)
    assert "doesn't understand a question" in usual.err
    alone = next(one for one in verdicts if one["id"] == "alone")
    assert (alone["rating"], alone["reason"], alone["entropy"], alone["answered"]) == (
        None,
        "not_scorable",
        None,
        0,
    )
    assert "alone" not in {one["id"] for one in people}


def test_precision_on_either_side_of_tau_is_that_counted_from_the_exported_votes(
    usual: Ended, tmp_path: Path
) -> None:
    told = usual.last
    thumbs = {one["id"]: {"up": "yes", "down": "no"}[one["thumbs"]] for one in read_rows(tmp_path / "log.jsonl")
              if "thumbs" in one}  # fmt: skip
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    rows = duckdb.sql(
        f"SELECT conversation, run, answer FROM '{tmp_path / 'votes.parquet'}'"
    ).fetchall()
    for id_, _, answer in rows:
        votes[id_][answer] += 1
    assert sorted(run for id_, run, _ in rows if id_ == rows[0][0]) == [1, 2, 3, 4, 5, 6, 7]
    sides: dict[str, list[bool]] = {"passed": [], "left": []}
    for id_, thumb in thumbs.items():
        ((most, n),) = votes[id_].most_common(1)
        sides["passed" if n >= 6 else "left"].append(most == thumb)
    for name, right in sides.items():
        assert (told["precision"][name]["n"], told["precision"][name]["right"]) == (
            len(right),
            sum(right),
        )
    assert told["precision"]["coverage"] == len(sides["passed"]) / len(thumbs)
    assert [point["n"] for point in told["precision"]["by_runs"]] == [1, 2, 3, 4, 5, 6, 7]
    assert f"{len(sides['passed'])} conversations with a thumb that pass" in " ".join(
        usual.err.split()
    )


def test_what_passes_is_ready_for_fine_tuning_and_says_where_it_comes_from(
    usual: Ended, tmp_path: Path
) -> None:
    source = {one["id"]: one for one in read_rows(tmp_path / "log.jsonl")}
    for one in read_rows(tmp_path / "good.jsonl"):
        about = one["provenance"]
        assert one["messages"] == source[about["id"]]["messages"]
        assert one["rating"] in ("yes", "no")
        votes = about["votes"]
        assert one["confidence"] == votes[one["rating"]] / sum(votes.values()) >= 6 / 7
        assert (about["run"], about["question"], about["judge"]) == (
            usual.last["run"],
            ASK[1],
            "built-in (no LLM)",
        )
        assert about["rule"] == "DE ≤ 0.4101, as where 6 of 7 runs agree"
        assert "thumbs" not in json.dumps(one)


def test_what_people_are_asked_is_ordered_by_entropy_and_their_answers_come_back(
    pollex: Pollex, doubtful: Ended
) -> None:
    first = doubtful.last
    people = read_rows(Path("people.jsonl"))
    assert len(people) >= 4
    assert any(ODD in turn["content"] for one in people for turn in one["messages"])
    entropies = [one["entropy"] for one in people]
    assert entropies == sorted(entropies, reverse=True)
    assert entropies[-1] > 0
    for one, answer in zip(people, (" YES", "perhaps", "", "no"), strict=False):
        one["answer"] = answer
    given = [*people, people[3] | {"answer": "yes"}, {"id": "nobody", "answer": "no"}]
    written = "".join(json.dumps(one, ensure_ascii=False) + "\r\n" for one in given)
    Path("answered.jsonl").write_text(written, encoding="utf-8")
    files = ("--answers", "answered.jsonl", "--accepted", "good.jsonl", "--out", "left.jsonl")
    ended = reviewed(pollex, first["run"], *files)
    assert ended.last["run"] == first["run"]
    assert ended.last["outcomes"]["by a person"] == 1
    assert ended.last["waiting"] == first["waiting"] - 1 == len(read_rows(Path("left.jsonl")))
    assert "3 answers were not used" in ended.err
    assert "nobody: no such conversation in this run" in ended.err
    assert f"{people[1]['id']}: no option, or several: perhaps" in ended.err
    assert f"{people[3]['id']}: no option, or several: no, yes" in ended.err, (
        "two people who disagree"
    )
    by_person = [
        one for one in read_rows(Path("good.jsonl")) if one["provenance"]["decided_by"] == "person"
    ]
    assert [(one["rating"], one["confidence"], one["provenance"]["id"]) for one in by_person] == [
        ("yes", None, people[0]["id"])
    ]


def test_answers_that_come_back_twice_are_taken_once_and_others_are_told_why_they_are_not(
    pollex: Pollex, usual: Ended
) -> None:
    people = read_rows(Path("people.jsonl"))
    rated = read_rows(Path("good.jsonl"))[0]
    answers = write_log(
        Path("answered.jsonl"), [{"id": one["id"], "answer": "yes"} for one in people]
    )
    first, again = (reviewed(pollex, "last", "--answers", answers) for _ in range(2))
    assert first.last["waiting"] == again.last["waiting"] == 0
    assert first.last["outcomes"] == again.last["outcomes"]
    assert "not used" not in first.err + again.err
    known = rated["provenance"]["id"]
    write_log(answers, [{"id": id_, "answer": "no"} for id_ in (people[0]["id"], known, "alone")])
    last = reviewed(pollex, "last", "--answers", answers)
    assert last.last["outcomes"] == first.last["outcomes"]
    assert f"{people[0]['id']}: a person has answered yes before, and that stands" in last.err
    assert f"{known}: the runs agree on {rated['rating']}" in last.err
    assert "alone: it can't be judged" in last.err


def test_a_conversations_trace_shows_the_question_and_what_each_run_and_person_chose(
    pollex: Pollex, doubtful: Ended
) -> None:
    person = read_rows(Path("people.jsonl"))[0]
    reviewed(
        pollex,
        "--answers",
        write_log(Path("answered.jsonl"), [{"id": person["id"], "answer": "no"}]),
    )
    shown = pollex("trace", "last", "--conversation", person["id"], "--store", "kept").out
    answers = [line for line in shown.splitlines() if ASK[1] in line]
    runs = [line for line in answers if "built-in (no LLM), resampled turns" in line]
    assert {
        option: sum(f"  {option} (" in line for line in runs) for option in ("yes", "no")
    } == person["votes"]
    assert len(answers) == 8
    assert "#person" in answers[-1]
    assert "  no (recorded, person)" in answers[-1]


class Interrupting(io.StringIO):
    """Standard input at which somebody presses Ctrl-C once all is read: once, for a second one ends the process."""

    pressed = False

    def readline(self, *sizes: Any) -> str:
        if line := super().readline(*sizes):
            return line
        if not self.pressed:
            self.pressed = True
            signal.raise_signal(signal.SIGINT)
        time.sleep(1)  # the main thread heeds it meanwhile, also on a busy machine
        return "yes\n"


def test_whoever_sits_at_the_terminal_is_asked_and_may_pass_one_over_or_end_and_ctrl_c_keeps_what_was_answered(
    pollex: Pollex, doubtful: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("maybe\nno\n\nyes\nq\n"))
    ended = reviewed(pollex, "--ask", "--verdicts", "v.jsonl")
    assert ended.last["outcomes"]["by a person"] == 2
    people = [one["id"] for one in read_rows(Path("people.jsonl"))]
    rated = {
        one["id"]: one["rating"]
        for one in read_rows(Path("v.jsonl"))
        if one["decided_by"] == "person"
    }
    assert rated == {people[0]: "no", people[2]: "yes"}
    assert "One of yes, no" in ended.err
    monkeypatch.setattr(sys, "stdin", Interrupting("no\n"))
    ended = reviewed(pollex, "--ask", "--verdicts", "v.jsonl")
    assert (ended.code, ended.last["outcomes"]["by a person"]) == (3, 3), ended.err
    assert f"pollex review {ended.last['run']} --out people.jsonl --store kept" in " ".join(
        ended.err.split()
    )
    rated = {
        one["id"]: one["rating"]
        for one in read_rows(Path("v.jsonl"))
        if one["decided_by"] == "person"
    }
    assert rated == {people[0]: "no", people[1]: "no", people[2]: "yes"}
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert reviewed(pollex, "--ask").last["waiting"] == doubtful.last["waiting"] - 3


def test_all_formats_hold_the_same_verdicts(pollex: Pollex, usual: Ended) -> None:
    for name in ("v.csv", "v.parquet"):
        reviewed(pollex, "--verdicts", name)
    plain = [(one["id"], one["rating"], one["votes"]) for one in read_rows(Path("verdicts.jsonl"))]
    with Path("v.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [(one["id"], one["rating"] or None, json.loads(one["votes"])) for one in table] == plain
    assert duckdb.sql("SELECT id, rating, votes FROM 'v.parquet'").fetchall() == plain


def test_tau_for_a_precision_says_on_how_many_thumbs_it_rests_and_how_many_are_missing(
    pollex: Pollex, usual: Ended
) -> None:
    ended = judged(pollex, "--tau-precision", "0.6")
    fitted = ended.last["fitted"]
    unseen = ended.last["unseen"]
    assert (fitted["n"], unseen["n"]) == (48, 48)
    assert fitted["precision"] >= 0.6
    assert fitted["interval"][0] <= fitted["precision"] <= fitted["interval"][1]
    assert "2 more thumbs are needed" in ended.err
    assert unseen["right"] <= unseen["passed"] <= 48
    told = f"On thumbs that it is not fitted to {unseen['right']} of the {unseen['passed']} that pass are right"
    assert told in ended.err
    assert (
        unseen["interval"][0] < unseen["precision"] < unseen["interval"][1]
        or unseen["precision"] == 1
    )
    turned = judged(pollex, "--tau-precision", "0.6", "--options", "no,yes")
    assert (turned.last["fitted"], turned.last["unseen"]) == (fitted, unseen)


def test_where_no_tau_reaches_a_precision_the_one_that_could_be_had_is_told(
    pollex: Pollex, usual: Ended
) -> None:
    """Every other thumb is turned round: nothing that the runs agree on is right much more often than not."""
    rows = small_log()
    for i, one in enumerate(rows):
        if i % 4 < 2:
            one["thumbs"] = "down" if one["thumbs"] == "up" else "up"
    write_log(Path("log.jsonl"), rows)
    ended = judged(pollex, "--tau-precision", "1")
    best = ended.last["fitted"]["best"]
    assert (ended.last["tau"], ended.last["outcomes"]) == (None, {"disagreement": len(rows)})
    assert f"The highest precision that any τ reaches is {int(1000 * best) / 1000:.3f}" in ended.err


def test_stopping_early_saves_runs_and_changes_no_rating(
    pollex: Pollex, tmp_path: Path, usual: Ended
) -> None:
    ended = judged(pollex, "--out", "early.jsonl", "--stop-early")
    ratings = [
        [one["rating"] for one in read_rows(tmp_path / name)]
        for name in ("verdicts.jsonl", "early.jsonl")
    ]
    assert ratings[0] == ratings[1]
    asked = ended.last["runs"]["asked"]
    planned = ended.last["runs"]["planned"]
    assert asked < planned == 7 * 54
    assert f"Asked {asked} of {planned} runs" in ended.err


def test_a_plan_without_a_model_says_that_nobody_is_asked(pollex: Pollex) -> None:
    log = write_log(Path("log.jsonl"), small_log()[:2])
    ended = pollex("judge", log, *ASK, "--store", "none", "--json", "--dry-run")
    assert (ended.code, ended.last["plan"]) == (0, {})
    assert not Path("none").exists()
