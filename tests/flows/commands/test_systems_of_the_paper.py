"""`learn --as NAME`: the systems of RUBICON's paper by name; what is given beside them wins."""

import pytest
from small_runs import Learnt, Pollex

from pollex.services.options import SYSTEMS

MODEL = ("--model", "m", "--base-url", "http://127.0.0.1:1/v1")
TOLD = {
    "rubicon": "--method rubicon --set without=built-in --set prompts=paper --set reasons=3",
    "spur": "--method spur --set without=ds,cdp --set prompts=paper",
    "generic": "--rubrics-from generic",
    "adapted": "--rubrics-from generic_debugging",
}


def planned(pollex: Pollex, learnt: Learnt, *given: str) -> str:
    ended = pollex("learn", learnt.log, "--dry-run", "--store", "new", *given)
    assert ended.code == 0, ended.err
    return next(line for line in ended.out.splitlines() if line.startswith("As "))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_plan_tells_what_a_system_sets(pollex: Pollex, learnt: Learnt, system: str) -> None:
    scale = "numeric" if system == "spur" else "likert-domain"
    paper = f"As {system}: --set policy=greedy --budget 10 --set scale={scale} "
    assert planned(pollex, learnt, "--as", system, *MODEL) == paper + TOLD[system]


def test_what_is_given_wins_whatever_its_place(pollex: Pollex, learnt: Learnt) -> None:
    for given in (("--set", "policy=ucb", "--as", "rubicon"), ("--as", "rubicon", "--set", "policy=ucb")):
        told = planned(pollex, learnt, *given, "--budget", "6", *MODEL)
        assert "--set policy=ucb --budget 6 --set scale=likert-domain" in told


def test_reasons_batches_and_rubrics_a_batch_change_the_plan(pollex: Pollex, learnt: Learnt) -> None:
    def calls(*given: str) -> dict[str, int]:
        plan = pollex("learn", learnt.log, "--dry-run", "--store", "new", "--json", *MODEL, *given).last["plan"]
        return {stage: plan[stage]["calls"] for stage in ("summarize", "deduplicate")}

    usual = calls()
    assert calls("--set", "reasons=1")["summarize"] < usual["summarize"]
    assert calls("--set", "mini_batch=10")["summarize"] > usual["summarize"]
    assert calls("--set", "new_rubrics=5")["deduplicate"] * 2 == usual["deduplicate"]
