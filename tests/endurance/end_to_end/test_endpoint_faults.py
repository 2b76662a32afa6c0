"""Endpoints that fail, and what `pollex score` makes of it: codes, one line of words, calls counted, nothing lost."""

import time
from typing import Any

import pytest
from benches import ATTENTIVE, PROBE, Bench, sums

ONE = "Problem 7:"
"""Stands in one conversation, which is asked about in two calls."""


def faulty(match: str, **rule: Any) -> list[dict[str, Any]]:
    """Rules of a server that does wrong where `match` stands in a request."""
    return [{"match": match, **rule}, ATTENTIVE]


OUTCOMES = (
    ("refused", {"do": "message", "content": None, "refusal": "I can't."}),
    ("unparsable", {"do": "message", "content": "I would rather not say."}),
    ("truncated", {"do": "message", "finish_reason": "length", "keep": 0.5}),
    ("context_exceeded", {"do": "window", "tokens": 10}),
    ("unparsable", {"do": "body", "text": "<html>busy</html>", "type": "text/html"}),
    ("silently_truncated", {"do": "window", "tokens": 20, "silent": True}),
    ("error", {"do": "status", "code": 500}),
    ("error", {"do": "hang"}),
    ("error", {"do": "trickle", "seconds": 0.5}),
)
"""What comes of a conversation that is answered so."""


def test_every_outcome_is_told_by_its_name_all_sum_up_and_refusals_are_asked_again_where_that_is_told(
    bench: Bench,
) -> None:
    bench.log(20)
    failing = [rule | {"match": f"Problem {number}:"} for number, (_, rule) in enumerate(OUTCOMES)]
    bench.server.script([*failing, ATTENTIVE])
    began = time.monotonic()
    ended = bench.run(bench.scoring("--set", "deadline=2"))
    assert time.monotonic() - began < 40
    assert ended.code == 3
    counted = {name: [outcome for outcome, _ in OUTCOMES].count(name) for name, _ in OUTCOMES}
    assert ended.json["outcomes"] == counted | {"scored": 20 - len(OUTCOMES)}
    assert sums(ended.json["usage"])
    assert ended.json["usage"]["judge"]["sent"] == bench.judged
    rows = bench.scores()
    assert [row["outcome"] for row in rows[: len(OUTCOMES)]] == [outcome for outcome, _ in OUTCOMES]
    assert {(row["netsat"], row["label"], row["probability"]) for row in rows[: len(OUTCOMES)]} == {
        (None, None, None)
    }
    assert "timeout" in rows[7]["answers"][0]["detail"]
    bench.server.script([ATTENTIVE])
    mended = bench.run(bench.scoring("--resume")).json["outcomes"]
    assert mended["refused"] == 1
    before = bench.judged
    told = bench.run(bench.scoring("--resume", "--set", "retry_refused=true")).json["outcomes"]
    assert "refused" not in told
    assert bench.judged > before


def test_a_persistent_server_error_costs_four_calls_and_a_call_that_never_ends_one(
    bench: Bench,
) -> None:
    bench.log(10)
    hangs = {"do": "hang", "match": "Problem 3:"}
    bench.server.script([hangs, *faulty(ONE, do="status", code=500)])
    ended = bench.run(bench.scoring("--set", "deadline=2"))
    assert ended.json["outcomes"] == {"error": 2, "scored": 8}
    # what hangs may be being worked on, so it is not sent again
    assert bench.judged == 18 + 2 * 4


@pytest.mark.parametrize(
    ("rule", "said", "hint"),
    [
        ({"do": "status", "code": 401}, "HTTP 401", "check the API key"),
        pytest.param(
            {"do": "status", "code": 307, "headers": {"Location": "http://192.0.2.1/v1"}},
            "HTTP 307",
            "base URL",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_what_no_retry_mends_stops_the_run_within_the_calls_out(
    bench: Bench, rule: dict[str, Any], said: str, hint: str
) -> None:
    bench.log(40)
    bench.server.script(faulty("Problem", **rule))
    ended = bench.run(bench.scoring("--concurrency", 8))
    assert ended.code == 1
    (line,) = [line for line in ended.err.splitlines() if line.startswith("Error:")]
    assert said in line
    assert hint in line
    assert "Traceback" not in ended.err
    assert 1 <= bench.judged <= 8
    bench.server.script([ATTENTIVE])
    resumed = bench.run(bench.scoring("--resume"))
    assert (resumed.code, resumed.json["outcomes"]) == (0, {"scored": 40})


def test_a_storm_of_429_loses_nothing_and_wastes_little(bench: Bench) -> None:
    bench.log(40)
    bench.server.script([{"do": "rate", "per_second": 20, "match": "Problem"}, ATTENTIVE])
    ended = bench.run(bench.scoring("--concurrency", 100))
    assert (ended.code, ended.json["outcomes"]) == (0, {"scored": 40})
    assert bench.judged <= 160
    assert ended.json["usage"]["judge"]["sent"] == bench.judged


def test_an_endpoint_that_is_down_is_said_before_any_work(bench: Bench) -> None:
    bench.log(4)
    bench.server.script([{"do": "reset"}])
    ended = bench.run(bench.scoring("--set", "max_wait=1"))
    assert ended.code == 1
    assert "check the endpoint with `pollex doctor`, then resume" in ended.err
    assert not (bench.folder / "scores.jsonl").exists()


def test_a_judge_that_fails_its_canaries_or_answers_all_alike_is_suspect_and_scores_nothing(
    bench: Bench,
) -> None:
    bench.log(20)
    bench.server.script([])  # answers by chance
    outcomes = bench.run(bench.scoring()).json["outcomes"]
    assert sum(outcomes.values()) == 20
    assert outcomes.keys() <= {"suspect", "incomplete", "scored"}
    assert outcomes.get("scored", 0) < 15

    # Without a canary, agreeing with as many rubrics as a call can hold is the sign.
    bench.rubrics(sat=10, dsat=10, canary=False)
    entry = '{"why": "It is so.", "turns": [], "answer": "E. Strongly Agree"}'
    same = "{" + ", ".join(f'"{number}": {entry}' for number in range(1, 11)) + "}"
    bench.log(10)
    bench.server.script(faulty(ONE, do="message", content=same))
    ended = bench.run(bench.scoring())
    assert ended.json["outcomes"] == {"scored": 9, "suspect": 1}
    assert "for the same reason" in bench.scores()[7]["answers"][0]["detail"]


LESS_ABLE = {
    "error": {
        "message": "1 validation error: Input should be 'text' or 'json_object'",
        "code": None,
    }
}


@pytest.mark.parametrize(
    ("rule", "said", "source"),
    [
        (
            {"do": "ignore", "what": ["logprobs"]},
            ["no log-probabilities of the answer's token"],
            "point",
        ),
        (
            {"do": "ignore", "what": ["response_format"]},
            ["no JSON schema: answers are asked for by a forced tool call"],
            "logprobs",
        ),
        (
            {"do": "refuse", "what": ["temperature", "seed", "max_completion_tokens"]},
            ["no temperature: the model's own is used", "no seed: samples can't be repeated"],
            "logprobs",
        ),
        (
            {"do": "status", "code": 500, "body": LESS_ABLE, "match": "json_schema"},
            ["no JSON schema: answers are asked for by a forced tool call"],
            "logprobs",
        ),
    ],
)
def test_what_an_endpoint_cant_do_is_said_once_and_left_out(
    bench: Bench, rule: dict[str, Any], said: list[str], source: str
) -> None:
    bench.log(6)
    bench.server.script([rule] if rule["do"] == "ignore" else [rule, ATTENTIVE])
    ended = bench.run(bench.scoring())
    assert [ended.err.count(f"Note: {one}") for one in said] == [1] * len(said)
    usage = ended.json["usage"]["judge"]
    assert usage["outcomes"] == {"completed": 12}  # nothing is refused during the run
    answers = [
        answer
        for row in bench.scores()
        for answer in row["answers"]
        if answer["outcome"] == "answered"
    ]
    assert {answer["source"] for answer in answers} == {source}
    assert ended.json["probe_calls"] == bench.judged + PROBE - 12


def test_required_log_probabilities_fail_in_one_line(bench: Bench) -> None:
    bench.log(6)
    bench.server.script([{"do": "ignore", "what": ["logprobs"]}])
    ended = bench.run(bench.scoring("--set", "require=logprobs"))
    assert ended.code == 1
    (line,) = [line for line in ended.err.splitlines() if line.startswith("Error:")]
    assert "gives no log-probabilities" in line
    assert "--set require=VALUE" in line
    assert bench.server.counts()["received"] == PROBE
