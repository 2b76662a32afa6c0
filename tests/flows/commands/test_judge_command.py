"""`pollex judge` and `pollex review` without a model: files, people's answers, and what is refused."""

import csv
import io
import json
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from small_log import Ended, row, small_log, write_log
from small_runs import Pollex

ASK = ("--question", "Was the task completed?")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The small log, some conversations that pull both ways, and one that can't be judged."""
    rows = small_log()
    said = [[turn["content"] for turn in one["messages"]] for one in rows]
    both = [row(f"both{n}", said[2 * n] + said[2 * n + 1]) for n in range(6)]
    return write_log(tmp_path / "log.jsonl", [*rows, *both, row("alone", ["Anybody?"])])


def judged(pollex: Pollex, store: Path, log: object, *options: object) -> Ended:
    return pollex("judge", log, *ASK, "--store", store, "--json", *options)


def reviewed(pollex: Pollex, store: Path, *options: object) -> Ended:
    return pollex("review", *options, "--store", store, "--json")


def doubtful(pollex: Pollex, store: Path, log: object, *options: object) -> Ended:
    """A run of `judge`, after which people.jsonl holds what people are to answer."""
    ended = judged(pollex, store, log, *options)
    assert reviewed(pollex, store, "last", "--out", "people.jsonl").code == ended.code
    return ended


def test_help_shows_few_options_in_groups_and_all_where_asked_to(pollex: Pollex) -> None:
    few, every = (pollex("judge", option).out for option in ("--help", "--help-all"))
    assert [line for line in few.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)] == [
        *("Data:", "Question:", "Model:", "Limits:", "Output:", "Other:")
    ]
    shown = [line for line in few.splitlines() if re.match(r"  --[a-z-]+ ", line) and "--help" not in line]
    assert len(shown) == 21
    assert "deadline" in every
    assert "deadline" not in few


def test_the_file_for_people_can_be_handed_back_whatever_a_conversation_says(
    pollex: Pollex, tmp_path: Path, store: Path
) -> None:
    said = ["Is it\u2028done,\x85\x0b or not?", "Done.\u2029"]
    log = write_log(tmp_path / "log.jsonl", [*small_log()[:4], row("odd", said)])
    first = doubtful(pollex, store, log, "--set", "minimum=7", "--tau", "0")
    assert first.code == 0, first.err
    one = {"id": "odd", "answer": "yes", "messages": [{"role": "user", "content": said[0]}]}
    (tmp_path / "people.jsonl").write_text(json.dumps(one, ensure_ascii=False) + "\r\n", encoding="utf-8")
    ended = reviewed(pollex, store, "last", "--answers", "people.jsonl")
    assert ended.code == 0, ended.err


def test_every_conversation_ends_in_one_file_or_is_told_of(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path
) -> None:
    ended = doubtful(pollex, store, log, "--accepted", "good.jsonl")
    assert ended.code == 3  # one can't be judged
    told, verdicts = ended.last, lines(tmp_path / "verdicts.jsonl")
    good, people = lines(tmp_path / "good.jsonl"), lines(tmp_path / "people.jsonl")
    assert len(verdicts) == told["n"] == sum(told["outcomes"].values()) == 55
    assert told["outcomes"]["not_scorable"] == 1
    assert (len(good), len(people)) == (told["outcomes"]["rated"], told["waiting"])
    assert len(good) + len(people) + 1 == len(verdicts)
    assert "doesn't understand a question" in ended.err
    alone = next(one for one in verdicts if one["id"] == "alone")
    assert (alone["rating"], alone["reason"], alone["entropy"], alone["answered"]) == (None, "not_scorable", None, 0)
    assert "alone" not in {one["id"] for one in people}


def test_precision_on_either_side_of_tau_is_that_counted_from_the_exported_votes(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path
) -> None:
    told = judged(pollex, store, log, "--votes", "votes.parquet").last
    thumbs = {one["id"]: {"up": "yes", "down": "no"}[one["thumbs"]] for one in lines(log) if "thumbs" in one}
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    rows = duckdb.sql(f"SELECT conversation, run, answer FROM '{tmp_path / 'votes.parquet'}'").fetchall()
    for id_, _, answer in rows:
        votes[id_][answer] += 1
    assert sorted(run for id_, run, _ in rows if id_ == rows[0][0]) == [1, 2, 3, 4, 5, 6, 7]
    sides: dict[str, list[bool]] = {"passed": [], "left": []}
    for id_, thumb in thumbs.items():
        ((most, n),) = votes[id_].most_common(1)
        sides["passed" if n >= 6 else "left"].append(most == thumb)
    for name, right in sides.items():
        assert (told["precision"][name]["n"], told["precision"][name]["right"]) == (len(right), sum(right))
    assert told["precision"]["coverage"] == len(sides["passed"]) / len(thumbs)
    assert [point["n"] for point in told["precision"]["by_runs"]] == [1, 2, 3, 4, 5, 6, 7]
    shown = pollex("judge", log, *ASK, "--store", store).out
    assert f"{len(sides['passed'])} conversations with a thumb that pass" in " ".join(shown.split())


def test_what_passes_is_ready_for_fine_tuning_and_says_where_it_comes_from(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path
) -> None:
    ended = judged(pollex, store, log, "--accepted", "good.jsonl")
    source = {one["id"]: one for one in lines(log)}
    for one in lines(tmp_path / "good.jsonl"):
        about = one["provenance"]
        assert one["messages"] == source[about["id"]]["messages"]
        assert one["rating"] in ("yes", "no")
        votes = about["votes"]
        assert one["confidence"] == votes[one["rating"]] / sum(votes.values()) >= 6 / 7
        assert (about["run"], about["question"], about["judge"]) == (ended.last["run"], ASK[1], "built-in (no LLM)")
        assert about["rule"] == "DE ≤ 0.4101, as where 6 of 7 runs agree"
        assert "thumbs" not in json.dumps(one)


def test_what_people_are_asked_is_ordered_by_entropy_and_their_answers_come_back(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path
) -> None:
    first = doubtful(pollex, store, log, "--tau", "0").last
    people = lines(tmp_path / "people.jsonl")
    assert len(people) >= 3
    entropies = [one["entropy"] for one in people]
    assert entropies == sorted(entropies, reverse=True)
    assert entropies[-1] > 0
    people[0]["answer"], people[1]["answer"], people[2]["answer"] = " YES", "perhaps", ""
    unknown = {"id": "nobody", "answer": "no"}
    write_log(tmp_path / "answered.jsonl", [*people, unknown])
    files = ("--answers", "answered.jsonl", "--accepted", "good.jsonl", "--out", "left.jsonl")
    ended = reviewed(pollex, store, first["run"], *files)
    assert ended.last["run"] == first["run"]
    assert ended.last["outcomes"]["by a person"] == 1
    assert ended.last["waiting"] == first["waiting"] - 1 == len(lines(tmp_path / "left.jsonl"))
    assert "2 answers were not used" in ended.err
    assert "nobody: no such conversation in this run" in ended.err
    assert f"{people[1]['id']}: no option, or several: perhaps" in ended.err
    by_person = [one for one in lines(tmp_path / "good.jsonl") if one["provenance"]["decided_by"] == "person"]
    assert [(one["rating"], one["confidence"], one["provenance"]["id"]) for one in by_person] == [
        ("yes", None, people[0]["id"])
    ]


def test_answers_that_come_back_twice_are_taken_once_and_others_are_told_why_they_are_not(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path
) -> None:
    run = doubtful(pollex, store, log, "--accepted", "good.jsonl").last["run"]
    people, rated = lines(tmp_path / "people.jsonl"), lines(tmp_path / "good.jsonl")[0]
    write_log(tmp_path / "answered.jsonl", [{"id": one["id"], "answer": "yes"} for one in people])
    first, again = (reviewed(pollex, store, run, "--answers", "answered.jsonl") for _ in range(2))
    assert first.last["waiting"] == again.last["waiting"] == 0
    assert first.last["outcomes"] == again.last["outcomes"]
    assert "not used" not in first.err + again.err
    known = {"id": rated["provenance"]["id"], "answer": "no"}
    write_log(
        tmp_path / "answered.jsonl", [{"id": people[0]["id"], "answer": "no"}, known, {"id": "alone", "answer": "no"}]
    )
    last = reviewed(pollex, store, run, "--answers", "answered.jsonl")
    assert last.last["outcomes"] == first.last["outcomes"]
    assert f"{people[0]['id']}: a person has answered yes before, and that stands" in last.err
    assert f"{known['id']}: the runs agree on {rated['rating']}" in last.err
    assert "alone: it can't be judged" in last.err


def test_a_conversations_trace_shows_the_question_and_what_each_run_and_person_chose(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path
) -> None:
    doubtful(pollex, store, log, "--options", "fine,poor", "--tau", "0")
    person = lines(tmp_path / "people.jsonl")[0]
    write_log(tmp_path / "answered.jsonl", [{"id": person["id"], "answer": "poor"}])
    reviewed(pollex, store, "--answers", "answered.jsonl")
    shown = pollex("trace", "last", "--conversation", person["id"], "--store", store).out
    answers = [line for line in shown.splitlines() if ASK[1] in line]
    runs = [line for line in answers if "built-in (no LLM), resampled turns" in line]
    chosen = {option: sum(f"  {option} (" in line for line in runs) for option in ("fine", "poor")}
    assert chosen == person["votes"]
    assert len(answers) == 8
    assert "#person" in answers[-1]
    assert "  poor (recorded, person)" in answers[-1]


def test_two_people_who_disagree_in_one_file_have_answered_nothing(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path
) -> None:
    doubtful(pollex, store, log, "--tau", "0")
    one = lines(tmp_path / "people.jsonl")[0]["id"]
    write_log(tmp_path / "answered.jsonl", [{"id": one, "answer": "yes"}, {"id": one, "answer": "no"}])
    ended = reviewed(pollex, store, "--answers", "answered.jsonl")
    assert "by a person" not in ended.last["outcomes"]
    assert f"{one}: no option, or several: no, yes" in ended.err


def test_whoever_sits_at_the_terminal_is_asked_and_may_pass_one_over_or_end(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = doubtful(pollex, store, log, "--tau", "0").last
    monkeypatch.setattr(sys, "stdin", io.StringIO("maybe\nno\n\nyes\nq\n"))
    ended = reviewed(pollex, store, "--ask", "--verdicts", "v.jsonl")
    assert ended.last["outcomes"]["by a person"] == 2
    people = [one["id"] for one in lines(tmp_path / "people.jsonl")]
    rated = {one["id"]: one["rating"] for one in lines(tmp_path / "v.jsonl") if one["decided_by"] == "person"}
    assert rated == {people[0]: "no", people[2]: "yes"}
    assert "One of yes, no" in ended.err
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    again = reviewed(pollex, store, "--ask")
    assert again.last["waiting"] == first["waiting"] - 2


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


def test_ctrl_c_ends_an_interview_at_once_and_keeps_what_was_answered(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(pollex, store, log, "--tau", "0")
    monkeypatch.setattr(sys, "stdin", Interrupting("no\n"))
    ended = reviewed(pollex, store, "--ask", "--verdicts", "v.jsonl")
    assert ended.code == 3, ended.err
    assert ended.last["outcomes"]["by a person"] == 1
    going_on = f"pollex review {ended.last['run']} --out people.jsonl --store {store}"
    assert going_on in " ".join(ended.err.split())
    rated = [one["rating"] for one in lines(tmp_path / "v.jsonl") if one["decided_by"] == "person"]
    assert rated == ["no"]


def test_all_formats_hold_the_same_verdicts(pollex: Pollex, tmp_path: Path, store: Path, log: Path) -> None:
    judged(pollex, store, log, "--out", "v.jsonl")
    for name in ("v.csv", "v.parquet"):
        reviewed(pollex, store, "--verdicts", name)
    plain = lines(tmp_path / "v.jsonl")
    with (tmp_path / "v.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [(one["id"], one["rating"] or None, json.loads(one["votes"])) for one in table] == [
        (one["id"], one["rating"], one["votes"]) for one in plain
    ]
    with duckdb.connect() as database:
        found = database.execute("SELECT id, rating, votes FROM read_parquet(?)", [str(tmp_path / "v.parquet")])
        assert found.fetchall() == [(one["id"], one["rating"], one["votes"]) for one in plain]


def test_tau_for_a_precision_says_on_how_many_thumbs_it_rests_and_how_many_are_missing(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path
) -> None:
    ended = judged(pollex, store, log, "--tau-precision", "0.6")
    fitted = ended.last["fitted"]
    assert fitted["n"] == 48
    assert fitted["precision"] >= 0.6
    assert fitted["interval"][0] <= fitted["precision"] <= fitted["interval"][1]
    assert "2 more thumbs are needed" in ended.err
    unseen = ended.last["unseen"]
    assert unseen["n"] == 48
    assert unseen["right"] <= unseen["passed"] <= 48
    told = f"On thumbs that it is not fitted to {unseen['right']} of the {unseen['passed']} that pass are right"
    assert told in ended.err
    assert unseen["interval"][0] < unseen["precision"] < unseen["interval"][1] or unseen["precision"] == 1
    turned = judged(pollex, store, log, "--tau-precision", "0.6", "--options", "no,yes")
    assert (turned.last["fitted"], turned.last["unseen"]) == (fitted, unseen)


def test_where_no_tau_reaches_a_precision_the_one_that_could_be_had_is_told(
    pollex: Pollex, tmp_path: Path, store: Path
) -> None:
    """Every other thumb is turned round: nothing that the runs agree on is right much more often than not."""
    rows = small_log()
    for i, one in enumerate(rows):
        if i % 4 < 2:
            one["thumbs"] = "down" if one["thumbs"] == "up" else "up"
    log = write_log(tmp_path / "noisy.jsonl", rows)
    ended = judged(pollex, store, log, "--tau-precision", "1")
    best = ended.last["fitted"]["best"]
    assert (ended.last["tau"], ended.last["outcomes"]) == (None, {"disagreement": len(rows)})
    assert f"The highest precision that any τ reaches is {int(1000 * best) / 1000:.3f}" in ended.err


def test_stopping_early_saves_runs_and_changes_no_rating(
    pollex: Pollex, tmp_path: Path, store: Path, log: Path
) -> None:
    judged(pollex, store, log, "--out", "whole.jsonl")
    ended = judged(pollex, store, log, "--out", "early.jsonl", "--stop-early")
    ratings = [[one["rating"] for one in lines(tmp_path / name)] for name in ("whole.jsonl", "early.jsonl")]
    assert ratings[0] == ratings[1]
    asked, planned = ended.last["runs"]["asked"], ended.last["runs"]["planned"]
    assert asked < planned == 7 * 54
    assert f"Asked {asked} of {planned} runs" in ended.err


def test_a_plan_without_a_model_says_that_nobody_is_asked(pollex: Pollex, tmp_path: Path, log: Path) -> None:
    ended = judged(pollex, tmp_path / "none", log, "--dry-run")
    assert (ended.code, ended.last["plan"]) == (0, {})
    assert not (tmp_path / "none").exists()
