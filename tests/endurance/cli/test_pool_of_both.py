"""With a model the pool is of both sides; each rubric is answered by whom it belongs to, and no call is made more."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from protocol_server import ProtocolServer
from small_log import row, write_log
from small_runs import Learnt, Pollex

from pollex.rubrics.rubric_set import RubricSet
from pollex.store.store import Store


@pytest.fixture(scope="module")
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer(script=[{"do": "attentive"}]) as running:
        yield running


def asking(server: ProtocolServer) -> tuple[str, ...]:
    return ("--model", "m", "--base-url", server.url)


def calls(told: dict[str, Any], *stages: str) -> dict[str, int]:
    return {name: told["usage"][name]["calls"] for name in stages if name in told["usage"]}


def log_of_both(path: Path) -> Path:
    """Thumbs by deeds in a third, which built-in roles see; by thanks elsewhere, as the model answers."""
    deeds = ("My parcel is lost.", "Move my booking to {day}.", "Cancel the ticket for {day}.")
    questions = (
        "Is the office open on {day}?",
        "What is the fee on {day}?",
        "Who is in charge on {day}?",
    )
    rows = []
    for number in range(96):
        up = number % 2 == 0
        day = f"May {number // 2 + 1}"
        if number % 6 < 2:
            done = (
                f"I've moved it to {day}. It costs ${number}."
                if up
                else f"I'm sorry, I wasn't able to do that for {day}."
            )
            turns = [deeds[number % 3].format(day=day), done, "Bye."]
        else:
            turns = [
                questions[number % 3].format(day=day),
                f"See page {number}.",
                "Thank you." if up else "Bye.",
            ]
        rows.append(row(f"c{number:03}", turns, thumbs="up" if up else "down"))
    return write_log(path, rows)


@pytest.mark.nightly
def test_rubrics_of_both_sides_compete_and_each_is_answered_by_its_own_judge(
    pollex: Pollex, server: ProtocolServer, tmp_path: Path
) -> None:
    log = log_of_both(tmp_path / "log.jsonl")
    both = pollex("learn", log, "--out", "both.json", "--store", "s", "--json", *asking(server))
    assert both.code == 0, both.err
    found = RubricSet.load("both.json")
    sides = {rubric.answered_by for rubric in found.rubrics}
    assert sides == {"", "built-in"}, both.err
    own = {rubric.id for rubric in found.rubrics if rubric.answered_by}
    assert set(found.judge.learned) == own
    assert {
        rubric.alone.by for rubric in found.rubrics if rubric.alone and not rubric.answered_by
    } == {"model"}

    confirmed = ("--base-url", server.url, "--store", "s", "--json")
    scored = pollex("score", log, "--rubrics", "both.json", "--out", "s.parquet", *confirmed)
    assert scored.code == 0, scored.err
    with Store.open(tmp_path / "s", read_only=True) as store:
        rows = store.ask(scored.last["run"], "SELECT DISTINCT question, judge FROM answers")
    tone = {rubric.id for rubric in found.all_rubrics} - {rubric.id for rubric in found.rubrics}
    assert {row["question"] for row in rows if row["judge"].startswith("built-in")} == own | tone
    others = {rubric.id for rubric in found.rubrics} - own
    assert {row["question"] for row in rows if not row["judge"].startswith("built-in")} == others
    assert set(both.last["never_came_up"]) == others
    assert {share["n"] for share in both.last["never_came_up"].values()} == {found.data.training}
    assert (both.last["found_nothing"]["value"], both.last["found_nothing"]["n"]) == (
        0,
        found.data.training,
    )
    page = Path(both.last["report"]).read_text(encoding="utf-8")
    assert "The model found nothing to give as a reason in" in page
    planned = pollex("score", log, "--rubrics", "both.json", "--dry-run", *confirmed)
    # all was paid for, and nothing else would be asked
    assert planned.last["plan"]["all"]["sent"] == 0

    refitted = pollex("refit", log, "--rubrics", "both.json", "--out", "again.json", *confirmed)
    assert refitted.code == 0, refitted.err
    again = RubricSet.load("again.json")
    assert {rubric.id: rubric.answered_by for rubric in again.rubrics} == {
        rubric.id: rubric.answered_by for rubric in found.rubrics
    }

    given = ("--out", "alone.json", "--store", "s", "--json", "--set", "without=built-in")
    alone = pollex("learn", log, *given, *asking(server))
    assert {rubric.answered_by for rubric in RubricSet.load("alone.json").rubrics} == {""}
    stages = ("extract", "summarize", "deduplicate")
    assert calls(both.last, *stages) == calls(alone.last, *stages)
    assert alone.last["usage"]["extract"]["sent"] == 0  # the very same prompts


def test_the_papers_system_asks_with_its_prompts_and_keeps_the_models_rubrics_alone(
    pollex: Pollex, learnt: Learnt, server: ProtocolServer
) -> None:
    given = ("--as", "rubicon", "--store", "s", "--out", "rubicon.json", "--json")
    ended = pollex("learn", learnt.log, *given, *asking(server))
    assert ended.code in (0, 3), ended.err
    found = RubricSet.load("rubicon.json")
    assert {(rubric.answered_by, rubric.source.partition("@")[0]) for rubric in found.rubrics} == {
        ("", "summarize_paper")
    }
    assert (found.policy, found.judge.scale) == ("greedy", "likert-domain")
    assert all(sum(one.polarity == kind for one in found.rubrics) <= 10 for kind in ("sat", "dsat"))
