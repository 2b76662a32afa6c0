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


def test_a_persistent_server_error_costs_four_calls_and_one_conversation(bench: Bench) -> None:
    bench.log(20)
    bench.server.script(faulty(ONE, do="status", code=500))
    ended = bench.run(bench.scoring())
    assert ended.code == 3
    assert ended.json["outcomes"] == {"error": 1, "scored": 19}
    assert bench.judged == 38 + 2 * 4
    (failed,) = [row for row in bench.scores() if row["netsat"] is None]
    assert (failed["id"], failed["outcome"], failed["label"], failed["probability"]) == ("c00007", "error", None, None)
    assert sums(ended.json["usage"])


HALF = pytest.param({"do": "hang", "part": "half"}, marks=pytest.mark.nightly)  # between the two others


@pytest.mark.parametrize("rule", [{"do": "hang"}, HALF, {"do": "trickle", "seconds": 0.5}])
def test_a_call_that_never_ends_ends_at_the_deadline(bench: Bench, rule: dict[str, Any]) -> None:
    bench.log(10)
    bench.server.script(faulty(ONE, **rule))
    began = time.monotonic()
    ended = bench.run(bench.scoring("--set", "deadline=2"))
    assert time.monotonic() - began < 40
    assert ended.code == 3
    assert ended.json["outcomes"] == {"error": 1, "scored": 9}
    assert bench.judged == 20  # it may be being worked on, so it is not sent again
    assert "timeout" in bench.scores()[7]["answers"][0]["detail"]


@pytest.mark.parametrize(
    ("rule", "said", "remedy"),
    [
        ({"do": "status", "code": 401}, "HTTP 401", "check the API key"),
        (
            {"do": "status", "code": 429, "body": {"error": {"message": "You exceeded your current quota",
             "code": "insufficient_quota"}}},
            "exceeded your current quota",
            "credit",
        ),
        ({"do": "status", "code": 404}, "HTTP 404", "check the model's name"),
        ({"do": "status", "code": 307, "headers": {"Location": "http://192.0.2.1/v1"}}, "HTTP 307", "base URL"),
    ],
)  # fmt: skip
def test_what_no_retry_mends_stops_the_run_within_the_calls_out(
    bench: Bench, rule: dict[str, Any], said: str, remedy: str
) -> None:
    bench.log(60)
    bench.server.script(faulty("Problem", **rule))
    ended = bench.run(bench.scoring("--concurrency", 8))
    assert ended.code == 1
    (line,) = [line for line in ended.err.splitlines() if line.startswith("Error:")]
    assert said in line
    assert remedy in line
    assert "Traceback" not in ended.err
    assert 1 <= bench.judged <= 8
    bench.server.script([ATTENTIVE])
    resumed = bench.run(bench.scoring("--resume"))
    assert (resumed.code, resumed.json["outcomes"]) == (0, {"scored": 60})


def test_a_storm_of_429_loses_nothing_and_wastes_little(bench: Bench) -> None:
    bench.log(100)
    bench.server.script([{"do": "rate", "per_second": 20, "match": "Problem"}, ATTENTIVE])
    ended = bench.run(bench.scoring("--concurrency", 200))
    assert (ended.code, ended.json["outcomes"]) == (0, {"scored": 100})
    assert bench.judged <= 300
    assert ended.json["usage"]["judge"]["sent"] == bench.judged


def test_an_endpoint_that_is_down_is_said_before_any_work(bench: Bench) -> None:
    bench.log(4)
    bench.server.script([{"do": "reset"}])
    ended = bench.run(bench.scoring("--set", "max_wait=1"))
    assert ended.code == 1
    assert "check the endpoint with `pollex doctor`, then resume" in ended.err
    assert not (bench.folder / "scores.jsonl").exists()


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        ({"do": "message", "content": None, "refusal": "I can't."}, "refused"),
        ({"do": "message", "content": "I would rather not say."}, "unparsable"),
        ({"do": "message", "finish_reason": "length", "keep": 0.5}, "truncated"),
        ({"do": "window", "tokens": 10}, "context_exceeded"),
        ({"do": "body", "text": "<html>busy</html>", "type": "text/html"}, "unparsable"),
        ({"do": "window", "tokens": 20, "silent": True}, "silently_truncated"),
    ],
)
def test_every_outcome_is_told_by_its_name_and_all_sum_up(bench: Bench, rule: dict[str, Any], outcome: str) -> None:
    bench.log(10)
    bench.server.script(faulty(ONE, **rule))
    ended = bench.run(bench.scoring())
    assert ended.code == 3
    assert ended.json["outcomes"] == {outcome: 1, "scored": 9}
    assert sums(ended.json["usage"])
    assert ended.json["usage"]["judge"]["sent"] == bench.judged


def test_what_was_refused_is_asked_again_by_a_resume_that_is_told_to_and_by_no_other(bench: Bench) -> None:
    bench.log(10)
    bench.server.script(faulty(ONE, do="message", content=None, refusal="I can't."))
    assert bench.run(bench.scoring()).json["outcomes"] == {"refused": 1, "scored": 9}
    bench.server.script([ATTENTIVE])
    before = bench.judged
    assert bench.run(bench.scoring("--resume")).json["outcomes"] == {"refused": 1, "scored": 9}
    assert bench.judged == before
    assert bench.run(bench.scoring("--resume", "--set", "retry_refused=true")).json["outcomes"] == {"scored": 10}
    assert bench.judged > before


def test_a_judge_that_fails_its_canaries_is_suspect_and_scores_nothing(bench: Bench) -> None:
    bench.log(20)
    bench.server.script([])  # answers by chance
    outcomes = bench.run(bench.scoring()).json["outcomes"]
    assert sum(outcomes.values()) == 20
    assert outcomes.keys() <= {"suspect", "incomplete", "scored"}
    assert outcomes.get("scored", 0) < 15


def test_straight_lining_is_suspect(bench: Bench) -> None:
    bench.rubrics(sat=6, dsat=6, canary=False)
    entry = '{"why": "It is so.", "turns": [], "answer": "E. Strongly Agree"}'
    same = "{" + ", ".join(f'"{number}": {entry}' for number in range(1, 7)) + "}"
    bench.log(10)
    bench.server.script(faulty(ONE, do="message", content=same))
    ended = bench.run(bench.scoring())
    assert ended.json["outcomes"] == {"scored": 9, "suspect": 1}
    assert "for the same reason" in bench.scores()[7]["answers"][0]["detail"]


@pytest.mark.parametrize(
    ("rule", "said", "source"),
    [
        ({"do": "ignore", "what": ["logprobs"]}, "no log-probabilities of the answer's token", "point"),
        ({"do": "refuse", "what": ["logprobs"]}, "no log-probabilities of the answer's token", "point"),
        ({"do": "ignore", "what": ["response_format"]}, "no JSON schema: answers are asked for by tool", "logprobs"),
        ({"do": "refuse", "what": ["temperature"]}, "no temperature: the model's own is used", "logprobs"),
        ({"do": "refuse", "what": ["seed"]}, "no seed: samples can't be repeated", "logprobs"),
        ({"do": "refuse", "what": ["max_completion_tokens"]}, "", "logprobs"),
    ],
)
def test_what_an_endpoint_cant_do_is_said_once_and_left_out(
    bench: Bench, rule: dict[str, Any], said: str, source: str
) -> None:
    bench.log(6)
    bench.server.script([rule] if rule["do"] == "ignore" else [rule, ATTENTIVE])
    ended = bench.run(bench.scoring())
    assert ended.err.count(f"Note: {said}") == 1 if said else "Note: no " not in ended.err
    usage = ended.json["usage"]["judge"]
    assert usage["outcomes"] == {"completed": 12}  # nothing is refused during the run
    answers = [answer for row in bench.scores() for answer in row["answers"] if answer["outcome"] == "answered"]
    assert {answer["source"] for answer in answers} == {source}
    assert ended.json["probe_calls"] == bench.judged + PROBE - 12


def test_a_server_that_calls_what_it_cant_read_its_own_error_is_only_less_able(bench: Bench) -> None:
    bench.log(6)
    error = {"error": {"message": "1 validation error: Input should be 'text' or 'json_object'", "code": None}}
    bench.server.script([{"do": "status", "code": 500, "body": error, "match": "json_schema"}, ATTENTIVE])
    ended = bench.run(bench.scoring())
    assert (ended.code, ended.json["outcomes"]) == (0, {"scored": 6}), ended.err
    assert "no JSON schema: answers are asked for by tool" in ended.err


def test_required_log_probabilities_fail_in_one_line(bench: Bench) -> None:
    bench.log(6)
    bench.server.script([{"do": "ignore", "what": ["logprobs"]}])
    ended = bench.run(bench.scoring("--set", "require=logprobs"))
    assert ended.code == 1
    (line,) = [line for line in ended.err.splitlines() if line.startswith("Error:")]
    assert "gives no log-probabilities" in line
    assert "--set require=VALUE" in line
    assert bench.server.counts()["received"] == PROBE
