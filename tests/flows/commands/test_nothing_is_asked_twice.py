"""An answer that was paid for is found again by conversation, rubric and judge, whatever call it came with."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from protocol_server import ProtocolServer
from small_log import small_log, write_log
from small_runs import Pollex

from pollex.rubrics.rubric_set import RubricSet

COUNT = 48
ATTENTIVE = {"do": "attentive"}


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        running.script([ATTENTIVE])
        yield running


class Bench:
    """A log, a store, and a set that a model learned from the log."""

    def __init__(self, pollex: Pollex, server: ProtocolServer) -> None:
        self.pollex = pollex
        self.server = server
        write_log(Path("log.jsonl"), small_log()[:COUNT])
        self.learn()

    def run(self, *words: object) -> dict[str, Any]:
        ended = self.pollex(*words, "--store", "store", "--json")
        assert ended.code == 0, ended.err
        return dict(ended.last)

    def learn(self, *options: object) -> dict[str, Any]:
        where = ("--model", "m", "--base-url", self.server.url)
        return self.run("learn", "log.jsonl", *where, "--set", "without=built-in", *options)

    def calls_of(self, *words: object) -> tuple[int, int, int]:
        """Return the calls that a command plans, those that the server got, and the answers known."""
        where = ("--base-url", self.server.url)
        planned = self.run(*words, *where, "--dry-run")["plan"]["all"]["sent"]
        before = self.server.counts()["received"]
        ended = self.run(*words, *where)
        received = self.server.counts()["received"] - before
        return planned, received, ended["known_answers"]


@pytest.fixture
def bench(pollex: Pollex, server: ProtocolServer) -> Bench:
    return Bench(pollex, server)


def test_fitting_an_unedited_set_again_asks_nobody(bench: Bench) -> None:
    planned, received, known = bench.calls_of("refit", "log.jsonl", "--rubrics", "rubrics.json")
    assert (planned, received) == (0, 0)
    assert known > 0


def test_scoring_the_log_that_was_learned_from_asks_nobody(bench: Bench) -> None:
    score = ("score", "log.jsonl", "--rubrics", "rubrics.json", "--out", "scores.jsonl")
    rubrics = RubricSet.load(Path("rubrics.json")).rubrics
    planned, received, known = bench.calls_of(*score)
    assert (planned, received) == (0, 0)
    assert known == COUNT * len(rubrics)
    again = bench.run(*score, "--base-url", bench.server.url, "--set", "again=yes")
    assert again["known_answers"] == 0
    assert again["usage"]["judge"]["calls"] > 0


@pytest.mark.parametrize("lacks", [[], ["logprobs"]], ids=["able", "without-logprobs"])
def test_a_smaller_budget_judges_nothing_again_and_the_plan_says_so(
    pollex: Pollex, server: ProtocolServer, lacks: list[str]
) -> None:
    server.script([{"do": "refuse", "what": lacks}, ATTENTIVE])
    bench = Bench(pollex, server)
    plan = bench.learn("--budget", "2", "--dry-run")
    assert plan["plan"]["all"]["sent"] == 0
    assert "likely" not in plan, "nothing hangs on replies"
    before = bench.server.counts()["paid"]
    bench.learn("--budget", "2")
    probes = 4
    assert bench.server.counts()["paid"] - before <= probes
    other_log = bench.learn("--seed", "7", "--dry-run")
    assert other_log["plan"]["all"]["sent"] > 0, "another seed is another run"


def test_a_new_rubric_costs_its_own_calls_and_no_others(bench: Bench) -> None:
    edited = Path("rubrics.rubrics.toml")
    assert tomllib.loads(edited.read_text("utf-8"))
    new = '\n[[rubrics]]\ntext = "The assistant names a price."\npolarity = "sat"\n'
    edited.write_text(edited.read_text("utf-8") + new, "utf-8")
    _, received, known = bench.calls_of("refit", "log.jsonl", "--rubrics", "rubrics.json")
    probes = 4
    assert COUNT <= received <= COUNT + probes
    assert known > 0


def test_the_trace_names_the_run_that_asked(bench: Bench) -> None:
    bench.run("score", "log.jsonl", "--rubrics", "rubrics.json", "--base-url", bench.server.url)
    first = small_log()[0]["id"]
    traced = bench.pollex("trace", "last", "--conversation", first, "--store", "store")
    assert "asked in learn-1" in traced.out


def test_a_run_says_what_it_cost_and_so_does_the_list_of_runs(bench: Bench) -> None:
    words = ("refit", "log.jsonl", "--rubrics", "rubrics.json", "--base-url", bench.server.url)
    again = bench.pollex(*words, "--store", "store", "--price", "1:4", "--set", "again=yes")
    assert "Model: " in again.out
    assert "cost " in again.out
    learned, fitted = bench.run("runs")["runs"]
    assert learned["calls"] > 0
    assert (learned["cost"], fitted["cost"] is None) == (None, False)
    assert "calls" in bench.pollex("runs", "--store", "store").out


def test_what_stopped_a_run_is_no_error_once_it_went_on_and_all_its_calls_count(
    pollex: Pollex, server: ProtocolServer
) -> None:
    write_log(Path("log.jsonl"), small_log()[:COUNT])
    where = ("--model", "m", "--base-url", server.url, "--set", "without=built-in")
    learn = ("learn", "log.jsonl", *where, "--store", "store", "--json")
    assert pollex(*learn, "--max-calls", "20").code == 1
    assert "LimitReached" in pollex("trace", "last", "--store", "store").out
    resumed = pollex(*learn, "--resume")
    assert resumed.code == 0, resumed.err
    (row,) = pollex("runs", "--store", "store", "--json").last["runs"]
    assert row["calls"] == 20 + resumed.last["usage"]["all"]["sent"]
    assert "LimitReached" not in pollex("trace", "last", "--store", "store").out


def test_a_plan_says_what_is_likely_beside_what_is_possible_at_most(
    pollex: Pollex, server: ProtocolServer
) -> None:
    write_log(Path("log.jsonl"), small_log())
    model = ("--model", "m", "--base-url", server.url, "--set", "without=built-in")
    learn = ("learn", "log.jsonl", *model, "--store", "store", "--json")
    plan = pollex(*learn, "--dry-run").last
    used = pollex(*learn).last["usage"]["all"]
    likely = plan["likely"]["all"]
    assert plan["plan"]["all"]["sent"] > used["sent"]
    for unit in ("sent", "prompt_tokens"):
        assert 1 / 1.5 <= likely[unit] / used[unit] <= 1.5, unit


def test_a_general_set_is_adapted_to_the_domain_once_and_what_changed_is_told(bench: Bench) -> None:
    asked = ("learn", "log.jsonl", "--as", "adapted", "--model", "m", "--out")
    planned, received, _ = bench.calls_of(*asked, "adapted.json")
    probes = 4
    assert COUNT < received <= planned + probes
    before = bench.server.counts()["paid"]
    again = bench.run(*asked, "again.json", "--base-url", bench.server.url)
    assert bench.server.counts()["paid"] - before <= probes, "all was paid for"

    changes = again["adapted"]
    assert len(changes) == 20
    assert {change["does"] for change in changes} == {"kept", "reworded", "left out"}
    rubric_set = RubricSet.load("adapted.json")
    assert [change.model_dump() for change in rubric_set.adapted] == changes
    texts = {rubric.text for rubric in rubric_set.rubrics}
    for change in changes:
        assert ((change["text"] or change["before"]) in texts) is (change["does"] != "left out")
    told = bench.pollex(*asked, "told.json", "--base-url", bench.server.url, "--store", "store").out
    assert "reworded: “The " in told
    assert "left out: “The " in told
