"""`pollex judge` on a model: what is sent, what is paid once, and what runs that fail come to."""

import json
from pathlib import Path
from typing import Any

import pytest
from benches import PROBE, Bench, Ended

pytestmark = pytest.mark.nightly  # commands in turn on a model; flows try the same graph

COUNT = 6
RUNS = 7
SEED = 100
ANSWER = {
    "yes": '{"answer":"yes","why":"It is done."}',
    "no": '{"answer":"no","why":"It is open."}',
}


def judging(bench: Bench, *options: object) -> list[str]:
    question = (
        "--question",
        "Was the task completed?",
        "--model",
        "fake-model",
        "--set",
        f"seed={SEED}",
    )
    return bench.command("judge", "log.jsonl", *question, *options)


def runs_say(*said: str) -> list[dict[str, Any]]:
    """Rules by which run 1, 2, … say this; each run has a seed of its own."""
    return [
        {"do": "message", "match": f'"seed":{SEED + number}', "content": ANSWER.get(text, text)}
        for number, text in enumerate(said)
    ]


def verdicts(bench: Bench, name: str = "verdicts.jsonl") -> list[dict[str, Any]]:
    return bench.scores(name)


def test_runs_that_fail_are_no_votes_and_below_the_minimum_there_is_no_rating(bench: Bench) -> None:
    bench.log(COUNT)
    bench.server.script(
        [*runs_say("yes", "perhaps", "yes", "not JSON", "yes", "yes", "yes"), {"do": "honest"}]
    )
    ended = bench.run(judging(bench, "--set", "variant=v0"))
    assert ended.code == 0, ended.err
    assert ended.json["outcomes"] == {"rated": COUNT}
    for one in verdicts(bench):
        assert (one["rating"], one["answered"], one["runs"]) == ("yes", 5, RUNS)
        assert one["failures"] == {"unparsable": 2}
    failed = f"{2 * COUNT} of {RUNS * COUNT} runs without an answer, so without a vote ({2 * COUNT} unparsable)"
    assert f"{failed}: verdicts rest on 5 to 5 answers" in ended.err
    assert ended.json["runs"]["failed"] == {"unparsable": 2 * COUNT}
    strict = bench.run(judging(bench, "--set", "variant=v0", "--set", "minimum=6"))
    assert (strict.code, strict.json["outcomes"]) == (3, {"too_few_runs": COUNT})


@pytest.mark.nightly  # test_endpoint_faults.py shows it of scores
def test_only_the_runs_that_were_refused_are_asked_again_by_a_resume_that_is_told_to(
    bench: Bench,
) -> None:
    bench.log(COUNT)
    refusal = {"do": "message", "match": f'"seed":{SEED}', "content": None, "refusal": "I can't."}
    bench.server.script([refusal, *runs_say("yes", *["yes"] * 6)])
    first = bench.run(judging(bench, "--set", "variant=v0"))
    assert first.json["runs"]["failed"] == {"refused": COUNT}
    assert f"why: pollex trace {first.json['run']}" in first.err
    assert "--set retry_refused" in first.err
    bench.server.script(runs_say(*["yes"] * 7))
    assert (
        bench.run(judging(bench, "--set", "variant=v0", "--resume")).json["usage"]["all"]["sent"]
        == 0
    )
    ended = bench.run(
        judging(bench, "--set", "variant=v0", "--resume", "--set", "retry_refused=yes")
    )
    assert ended.json["runs"]["failed"] == {}
    assert ended.json["usage"]["all"]["sent"] == COUNT
    assert {one["answered"] for one in verdicts(bench)} == {RUNS}


def test_runs_that_disagree_go_to_people_with_their_words_and_nobody_is_asked_again_for_that(
    bench: Bench,
) -> None:
    bench.log(COUNT)
    bench.server.script(
        [*runs_say("yes", "no", "yes", "no", "yes", "yes", "yes"), {"do": "honest"}]
    )
    first = bench.run(judging(bench, "--set", "variant=v0"))
    assert (first.code, first.json["waiting"]) == (0, COUNT), first.err
    reviewing = ["review", first.json["run"], "--store", ".pollex", "--json"]
    bench.run([*reviewing, "--out", "people.jsonl"])
    people = verdicts(bench, "people.jsonl")
    assert people[0]["words"] == {"yes": "It is done.", "no": "It is open."}
    assert people[0]["entropy"] == pytest.approx(0.59827, abs=1e-5)
    for one in people[:2]:
        one["answer"] = "no"
    (bench.folder / "answered.jsonl").write_text("\n".join(map(json.dumps, people)))
    before = bench.server.counts()["received"]
    ended = bench.run([*reviewing, "--answers", "answered.jsonl"])
    assert bench.server.counts()["received"] == before
    assert ended.json["outcomes"] == {"by a person": 2, "disagreement": COUNT - 2}


def test_n_runs_are_n_calls_none_is_bought_twice_and_another_run_of_the_command_buys_none(
    bench: Bench,
) -> None:
    bench.log(COUNT)
    first = bench.run(judging(bench, "--set", "variant=v2"))
    assert first.code == 0, first.err
    assert bench.judged == COUNT * RUNS
    assert bench.server.counts()["repeated"] == 0
    again = bench.run(judging(bench, "--set", "variant=v2"))
    assert bench.judged == COUNT * RUNS
    assert again.json["usage"]["judge"]["known"] == COUNT * RUNS
    assert again.json["outcomes"] == first.json["outcomes"]
    more = bench.run(judging(bench, "--set", "variant=v2", "--ensemble", 9))
    assert bench.judged == COUNT * 9
    assert more.json["usage"]["judge"]["sent"] == COUNT * 2


def test_a_plan_tells_the_calls_of_every_variant_and_asks_nobody(bench: Bench) -> None:
    bench.log(COUNT)
    planned = {}
    for variant in ("v0", "v3", "v4"):
        plan = bench.run(judging(bench, "--set", f"variant={variant}", "--dry-run")).json["plan"]
        planned[variant] = {stage: row["calls"] for stage, row in plan.items()}
    calls = COUNT * RUNS
    assert bench.server.counts()["received"] == 0
    assert planned == {
        "v0": {"judge": calls, "all": calls},
        "v3": {"describe": calls, "judge": calls, "all": 2 * calls},
        "v4": {"describe": 2 * calls, "judge": calls, "all": 3 * calls},
    }
    bench.started = 0
    ended = bench.run(judging(bench))
    assert ended.code == 0, ended.err
    assert bench.judged == 3 * calls
    assert {stage: row["calls"] for stage, row in ended.json["usage"].items()} == planned["v4"]


def test_a_panel_takes_turns_and_every_member_is_told_of(bench: Bench) -> None:
    bench.log(2)
    bench.server.script(
        [{"do": "message", "match": '"model":"other"', "content": ANSWER["no"], "after": PROBE}]
    )
    ended = bench.run(judging(bench, "--set", "variant=v0", "--panel", "other", "--ensemble", 4))
    assert ended.code == 0, ended.err
    assert ended.json["judge"] == "fake-model, other, prompt v0"
    assert ended.json["usage"]["judge"]["calls"] == 4
    assert ended.json["panel"]["other"]["usage"]["judge"]["calls"] == 4
    assert all(one["votes"]["no"] >= 2 for one in verdicts(bench))


PANEL = ("--set", "variant=v0", "--panel", "other", "--ensemble", 5)


def test_a_plan_is_split_by_member_of_the_panel(bench: Bench) -> None:
    bench.log(2)
    planned = bench.run(judging(bench, *PANEL, "--dry-run", "--set", "price=1:1")).json
    bench.started = 0
    ended = bench.run(judging(bench, *PANEL)).json
    sent = [used["judge"]["sent"] for used in (ended["usage"], ended["panel"]["other"]["usage"])]
    assert (
        [used["judge"]["sent"] for used in (planned["plan"], planned["panel"]["other"])]
        == sent
        == [6, 4]
    )
    assert planned["panel"]["other"]["all"]["cost"] > 0
    known = bench.run(judging(bench, *PANEL, "--dry-run")).json
    assert [used["judge"]["known"] for used in (known["plan"], known["panel"]["other"])] == sent


def test_a_limit_of_calls_is_one_for_the_whole_panel(bench: Bench) -> None:
    bench.log(4)
    stopped = bench.run(judging(bench, *PANEL, "--max-calls", 7, "--set", "concurrency=2"))
    assert stopped.code not in (0, 3)
    assert "max_calls 7 reached" in stopped.err
    assert bench.server.counts()["received"] == 2 * PROBE + 7
    assert bench.run(judging(bench, *PANEL, "--resume")).code == 0
    assert bench.server.counts()["received"] == 4 * PROBE + 20


def test_a_limit_of_money_is_one_for_the_whole_panel(bench: Bench) -> None:
    bench.log(4)
    price = ("--set", "price=1000:1000")
    whole = bench.run(judging(bench, *PANEL, *price)).json
    cost = [used["all"]["cost"] for used in (whole["usage"], whole["panel"]["other"]["usage"])]
    for path in (bench.folder / ".pollex").glob("*"):
        path.rename(bench.folder / f"old-{path.name}")
    stopped = bench.run(
        judging(bench, *PANEL, *price, "--set", f"max_cost={max(cost)}", "--set", "concurrency=1")
    )
    # no member alone would have come to that
    assert f"max_cost {max(cost):g} reached" in stopped.err


def test_stopping_early_sends_fewer_calls_and_says_how_many_were_saved(bench: Bench) -> None:
    bench.log(COUNT)
    bench.server.script([*runs_say("yes", "no", "no", "yes"), {"do": "honest"}])
    ended = bench.run(judging(bench, "--set", "variant=v0", "--stop-early"))
    assert ended.json["outcomes"] == {"disagreement": COUNT}
    assert ended.json["runs"] == {"asked": 4 * COUNT, "planned": 7 * COUNT, "failed": {}}
    assert bench.judged == 4 * COUNT
    bench.started = 0
    bench.server.script([])
    bench.server.reset()
    planned = bench.run(
        judging(bench, "--set", "variant=v4", "--ensemble", 3, "--stop-early", "--dry-run")
    ).json["plan"]["all"]
    whole = planned["calls"]
    assert planned["outcomes"] == {"at most": whole}
    early = bench.run(judging(bench, "--set", "variant=v4", "--ensemble", 3, "--stop-early"))
    saved = early.json["calls_saved"]
    bench.started = 1
    assert (bench.judged + saved, saved % 3) == (whole, 0)
    assert f"{saved // 3}, {saved} calls, could not have changed a verdict" in early.err


def test_a_killed_run_goes_on_where_it_was_and_pays_at_most_what_was_on_its_way_twice(
    bench: Bench,
) -> None:
    bench.log(40)
    options = ("--set", "variant=v3", "--set", "concurrency=8")
    bench.server.script([{"do": "honest", "latency": 0.01}])
    running = bench.start(judging(bench, *options))
    bench.wait_for_calls(150)
    running.kill()
    ended = bench.run(judging(bench, *options, "--resume"))
    assert ended.code == 0, ended.err
    assert ended.json["n"] == 40
    assert 2 * 40 * RUNS <= bench.judged <= 2 * 40 * RUNS + 8
    assert (
        bench.run(judging(bench, *options, "--out", "again.jsonl")).json["outcomes"]
        == ended.json["outcomes"]
    )


@pytest.mark.nightly  # test_interrupted_runs.py shows it of scores
def test_a_limit_on_calls_ends_the_run_with_the_command_that_goes_on(
    bench: Bench, tmp_path: Path
) -> None:
    bench.log(COUNT)
    ended: Ended = bench.run(judging(bench, "--set", "variant=v0", "--max-calls", 10))
    assert ended.code == 1
    assert "Go on with: pollex judge log.jsonl" in ended.err
    assert ended.err.strip().endswith("--resume")
    other = bench.run(judging(bench, "--set", "variant=v1", "--ensemble", 5, "--resume"))
    assert other.code == 1
    assert "by: fake-model, prompt v0 → fake-model, prompt v1" in other.err
    assert "6 of 7 runs agree; 4 of 7 runs must have answered → DE ≤ 0.5004" in other.err
    whole = bench.run(judging(bench, "--set", "variant=v0", "--resume"))
    assert whole.code == 0, whole.err
    assert bench.judged == COUNT * RUNS
