"""The verdict on a change: harm comes first, wherever it is, and what isn't known is said."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pollex.conversations.conversation import Conversation, Turn
from pollex.rooms.remedy.conversations.reply_context import ReplyContext
from pollex.rooms.remedy.measures.advice import VERDICT_PEOPLE_CAN_TELL, advise_on_change
from pollex.rooms.remedy.measures.looks import (
    BETTER,
    GOING,
    NOTHING,
    WORSE,
    compute_equal_step_bounds,
    decide_at_look,
)
from pollex.rooms.remedy.measures.proofs import (
    ANY_STRATUM,
    FAILING_STRATUM,
    FINE_STRATUM,
    LENGTH_DOUBTS,
    TARGET_ELSEWHERE_NAME,
    GuardrailEffect,
    PairedEffect,
    ProofArrays,
    ProofEnd,
    TargetEffect,
    compute_harm_probability,
    count_further_users_needed,
    decide_verdict,
    find_surely_fallen_guardrails,
)
from pollex.rooms.remedy.services.conclude import explain_unproven_proposal, outrank_by_people
from pollex.rooms.remedy.services.trials import choose_contexts_by_user

SCALE = 0.1


def seen(value: float, outcome: int = NOTHING, users: int = 80) -> TargetEffect:
    effect = PairedEffect(value, value - SCALE, value + SCALE, value / (SCALE / 2), users, users)
    return TargetEffect(effect, effect, effect, 2, outcome, 0.15, length="none")


def guard(state: Any, name: str = "asks before it books", *, fell: bool = False) -> GuardrailEffect:
    return GuardrailEffect(name, PairedEffect(-0.27, -0.4, -0.1, -3.0, 80, 80), state, 0, fell)


@pytest.mark.parametrize("outcome", [BETTER, NOTHING, WORSE])
def test_a_guardrail_that_fell_is_worse_whatever_the_target_does(outcome: int) -> None:
    verdict, against = decide_verdict(
        seen(0.2 if outcome == BETTER else 0.0, outcome),
        [guard("cleared"), guard("worse", fell=True)],
    )
    assert (verdict, against[0]) == ("worse", "worse: asks before it books")


def test_a_guardrail_that_is_only_marked_speaks_against_a_gain_and_is_no_verdict_by_itself() -> (
    None
):
    marked = [guard("worse")]
    assert decide_verdict(seen(0.2, BETTER), marked) == (
        "not cleared",
        ["may be worse: asks before it books"],
    )
    assert decide_verdict(seen(0.02), marked) == (
        "no difference found",
        ["may be worse: asks before it books"],
    )
    assert decide_verdict(seen(0.02, WORSE), marked) == (
        "worse",
        ["may be worse: asks before it books"],
    )


@pytest.mark.parametrize(
    ("doubt", "verdict", "advice"),
    [
        ("none", "judged better", "Try on part of the traffic"),
        ("longer", "judged better, with a caveat", "Try on part of the traffic"),
        ("shorter", "judged better, with a caveat", "Try on part of the traffic"),
        ("open", "judged better, with a caveat", "Try on part of the traffic"),
        ("likely", "only people can tell", "Not enough seen"),
    ],
)
def test_a_gain_whose_length_cant_be_told_from_it_is_tried_and_the_reason_said(
    doubt: Any, verdict: str, advice: str
) -> None:
    primary = replace(seen(0.2, BETTER), length=doubt)
    found = decide_verdict(primary, [guard("cleared")])
    assert found == (verdict, [LENGTH_DOUBTS[doubt]] if doubt != "none" else [])
    edit = {"verdict": verdict, "against": found[1], "primary": {"effect": {"n": 80, "high": 0.3}}}
    assert advise_on_change(edit)[0] == advice
    assert decide_verdict(primary, [guard("worse")])[0] == "not cleared", "with more against it"
    assert decide_verdict(primary, [guard("worse", fell=True)])[0] == "worse"


def test_what_only_a_judge_may_have_seen_is_for_people_to_tell_and_they_can_release_it() -> None:
    talked_into = "this judge can be talked into this rubric: only people or thumbs can prove it"
    verdict, against = decide_verdict(
        seen(0.2, BETTER), [guard("cleared")], against_judge=[talked_into]
    )
    assert (verdict, against) == (VERDICT_PEOPLE_CAN_TELL, [talked_into])
    edit = {"verdict": verdict, "against": against, "primary": {"effect": {"n": 80, "high": 0.3}}}
    assert advise_on_change(edit)[0] == "Not enough seen"

    for low, high, outranked in (
        (0.7, 0.9, ("better, people agree", "P")),
        (0.1, 0.3, ("people prefer the old one", "P")),
        (0.4, 0.6, (verdict, "R")),
    ):
        assert outrank_by_people(verdict, {"value": 0.5, "low": low, "high": high}) == outranked


@pytest.mark.parametrize(
    "more",
    [
        {"guards": [guard("worse")]},
        {"against": ["over 10 % of the new arm left the recorded calls of tools"]},
        {"guards": [guard("unknown")]},
    ],
)
def test_what_people_who_compare_replies_cant_see_isnt_cleared_by_them(more: Any) -> None:
    found = decide_verdict(
        **{"primary": seen(0.2, BETTER), "guards": [], "against_judge": ["it depends on words"]}
        | more
    )
    assert (found[0], found[1][-1]) == ("not cleared", "it depends on words")
    people = {"value": 0.8, "low": 0.7, "high": 0.9}
    assert outrank_by_people(found[0], people) == ("not cleared", "R")


def test_replies_that_grow_are_a_price_and_no_harm() -> None:
    """ln 1.79 is .582: 79 % longer."""
    growth = PairedEffect(-0.582, -0.582, -0.582, -9.0, 80, 80)
    grown = replace(guard("worse", "length", fell=True), effect=growth)
    told = "replies grow by 79% in length"
    assert decide_verdict(seen(0.2, BETTER), [grown]) == ("judged better, with a caveat", [told])
    assert decide_verdict(seen(0.02), [grown]) == ("no difference found", [told])
    fell = guard("worse", fell=True)
    assert decide_verdict(seen(0.2, BETTER), [grown, fell]) == (
        "worse",
        ["worse: asks before it books", told],
    )


def test_replies_that_are_all_longer_end_in_a_trial_by_their_arrays() -> None:
    users = 40
    here = arrays(1.0, 1.0, users)
    here.values[:, 0, :, 0] = 0.2
    here.values[:, 1, :, 0] = np.linspace(0.6, 1.0, users)[:, None]
    here.sizes["length"][:, 1] = 179.0
    verdict, against = decide_verdict(
        here.primary(1, ProofEnd(BETTER, 0, 0.05)), here.guardrails(0)
    )
    assert (verdict, against) == (
        "judged better, with a caveat",
        [LENGTH_DOUBTS["longer"], "replies grow by 79% in length"],
    )


def test_guardrails_fall_by_holm_at_the_verdicts_level_and_few_users_by_their_signs() -> None:
    """Of three at .001: .0003 · 3 and .0004 · 2 are under it, .0011 · 1 isn't."""
    assert find_surely_fallen_guardrails(np.array([0.0011, 0.0003, 0.0004])).tolist() == [
        False,
        True,
        True,
    ]
    assert find_surely_fallen_guardrails(np.array([0.0006, 0.0001, 0.0002])).tolist() == [
        True,
        True,
        True,
    ]
    assert [one.fell for one in arrays(1.0, 0.0).guardrails(0)] == [True, False]
    assert [one.fell for one in arrays(1.0, 0.0, users=4).guardrails(0)] == [False, False], (
        "1 in 16 by chance"
    )


def test_futility_says_how_likely_harm_is_and_what_it_takes_to_know() -> None:
    verdict, against = decide_verdict(seen(-0.105), [])
    assert verdict == "no gain, likely harm"
    assert against == [
        "the chance that it does harm is 98% by these replies; about 84 more users would tell"
    ]
    certain = PairedEffect(-0.06, -0.11, -0.01, -2.4, 180, 180)
    assert decide_verdict(replace(seen(-0.05), everywhere=certain), [])[0] == "no gain, likely harm"
    assert decide_verdict(seen(-0.05), [])[0] == "no difference found"
    elsewhere_none = replace(seen(-0.105), everywhere=replace(certain, z=-1.0))
    assert decide_verdict(elsewhere_none, [])[0] == "no difference found", (
        "beyond the margin, but not by all replies"
    )
    told = "the chance that it does harm is 84% by these replies; about 640 more users would tell"
    assert decide_verdict(seen(-0.05), [])[1] == [told]
    # no more digits than such an estimate bears
    assert decide_verdict(seen(-0.013), [])[1][0].endswith("; about 11,000 more users would tell")
    assert decide_verdict(seen(0.02), []) == ("no difference found", [])
    assert compute_harm_probability(seen(0.0).effect) == 0.5
    assert count_further_users_needed(seen(0.3)) == 0


def test_missing_replies_prove_nothing_and_an_unmeasured_guardrail_is_unknown() -> None:
    told = "160 of 320 replies are missing, 160 of them under the change"
    assert decide_verdict(seen(0.0), [], missing=told) == ("not proven", [told])
    assert decide_verdict(seen(0.0), [guard("unknown")], missing=told)[1] == [
        told,
        "unknown: asks before it books",
    ]
    assert decide_verdict(seen(0.2, BETTER), [guard("unknown")])[0] == "not cleared"
    assert decide_verdict(seen(0.2, BETTER), [], missing=told) == ("judged better", [told])


def arrays(old: float, new: float, users: int = 40) -> ProofArrays:
    """Contexts of one user each, with a target and the check that a reply came, of given worth in each arm."""
    rng = np.random.default_rng(0)
    values = np.stack([np.full((users, 1, 2), worth) for worth in (old, new)], axis=1)
    values[..., 0] = rng.random((users, 2, 1))
    sizes = {"length": np.full((users, 2, 1), 100.0)}
    names = ["t", "a reply came"]
    return ProofArrays(
        values,
        np.full(users, FAILING_STRATUM),
        np.arange(users),
        np.zeros(users, int),
        names,
        sizes,
    )


@pytest.mark.parametrize("gain", [0.0, 0.5])
def test_harm_to_the_target_where_it_had_not_failed_is_worse_whatever_it_gains_elsewhere(
    gain: float,
) -> None:
    users = 80
    here = arrays(1.0, 1.0, users)
    here.stratum[users // 2 :] = FINE_STRATUM
    here.values[: users // 2, 1, :, 0] = np.clip(here.values[: users // 2, 0, :, 0] + gain, 0, 1)
    here.values[users // 2 :, 1, :, 0] = here.values[users // 2 :, 0, :, 0] / 2
    ended = ProofEnd(BETTER if gain else NOTHING, 0, 0.05)
    verdict, against = decide_verdict(here.primary(1, ended), here.guardrails(0))
    assert (verdict, against[0]) == ("worse", f"worse: {TARGET_ELSEWHERE_NAME}")
    here.stratum[:] = FAILING_STRATUM
    assert TARGET_ELSEWHERE_NAME not in [guardrail.name for guardrail in here.guardrails(0)], (
        "nobody was asked elsewhere"
    )


def test_that_a_reply_came_is_not_cleared_where_none_came() -> None:
    assert [one.state for one in arrays(0.0, 0.0).guardrails(0)] == ["unknown", "cleared"]
    assert [one.state for one in arrays(1.0, 0.0).guardrails(0)] == ["worse", "cleared"]
    assert [one.state for one in arrays(1.0, 1.0).guardrails(0)] == ["cleared", "cleared"]


@pytest.mark.parametrize("old", [0.0, 1.0])
def test_few_users_are_neither_cleared_nor_worse_beside_an_interval_of_the_whole_scale(
    old: float,
) -> None:
    guardrails = arrays(old, 0.0, users=3).guardrails(0) + arrays(1.0, 1.0, users=3).guardrails(0)
    assert {guardrail.state for guardrail in guardrails} == {"unknown"}
    intervals = {(guardrail.effect.low, guardrail.effect.high) for guardrail in guardrails}
    assert intervals == {(-1.0, 1.0)}


def test_an_arm_without_any_reply_has_figures_that_are_numbers() -> None:
    here = arrays(1.0, 1.0)
    here.values[:, 1, :, 0] = np.nan
    primary = here.primary(1, ProofEnd(NOTHING, 0, 0.05))
    assert (primary.effect.n, primary.effect.low, primary.effect.high) == (0, -1.0, 1.0)
    assert here.traffic(0, 1, (1.0, 0.0, 0.0)) is None


def test_traffic_has_an_interval_or_nothing_is_told() -> None:
    here = arrays(1.0, 1.0)
    found = here.traffic(0, 1, (0.3, 0.0, 0.0))
    assert found is not None
    assert found["low"] < found["value"] < found["high"]
    here.stratum[:20] = ANY_STRATUM
    assert here.traffic(0, 1, (0.3, 0.2, 0.5)) is None, "a stratum that nobody looked at"


def test_a_proof_that_seems_to_do_harm_is_not_ended_as_futile() -> None:
    bounds = compute_equal_step_bounds()
    clear = np.array([True])
    assert decide_at_look(np.array([-1.2]), 1, bounds, clear).tolist() == [GOING]
    assert decide_at_look(np.array([0.0]), 1, bounds, clear).tolist() == [NOTHING]


def test_harm_has_bounds_of_its_own() -> None:
    end = ProofEnd(NOTHING, 3, 0.05)
    assert end.harm_bounds[-1] > end.bounds[-1]
    z = np.array([-(end.harm_bounds[-1] + end.bounds[-1]) / 2])
    assert decide_at_look(z, 3, end.bounds, np.array([True]), end.harm_bounds).tolist() == [NOTHING]
    assert decide_at_look(2 * z, 3, end.bounds, np.array([True]), end.harm_bounds).tolist() == [
        WORSE
    ]


@pytest.mark.parametrize(
    ("verdict", "states", "high", "advice"),
    [
        ("worse", ["worse"], 0.3, "Don't"),
        ("no gain, likely harm", [], 0.0, "Don't"),
        ("not cleared", [], 0.3, "Don't"),
        ("people prefer the old one", [], 0.3, "Don't"),
        ("better, people agree", ["cleared"], 0.3, "Release"),
        ("judged better", ["open"], 0.3, "Try on part of the traffic"),
        ("no difference found", [], 0.05, "Don't"),
        ("no difference found", ["worse"], 0.2, "Not enough seen"),
        ("no difference found", [], 0.2, "Not enough seen"),
        ("not proven", ["unknown"], 0.05, "Not enough seen"),
    ],
)
def test_a_remedy_says_what_to_do(
    verdict: str, states: list[str], high: float, advice: str
) -> None:
    edit = {
        "verdict": verdict,
        "against": [],
        "guardrails": [{"state": state} for state in states],
        "primary": {"effect": {"n": 80, "high": high}},
    }
    assert advise_on_change(edit)[0] == advice


def test_contexts_are_taken_so_that_users_are_kept() -> None:
    conversations = [
        Conversation(
            id=f"c{user}-{n}", turns=(Turn(role="user", content="Hello"),), group=f"u{user}"
        )
        for user in range(24)
        for n in range(10)
    ]
    contexts = [ReplyContext(one, 0) for one in conversations]
    chosen = choose_contexts_by_user(contexts, 80)
    assert len(chosen) == 80
    assert len({one.user for one in chosen}) == 24
    assert chosen == sorted(chosen, key=contexts.index)


def test_why_a_proposal_was_not_proven_is_said() -> None:
    state = {
        "edits": ["best"],
        "looks": [{}],
        "tried": ["best", "second", "late"],
        "scores": [{"best": 0.3, "second": 0.1}],
    }
    reasons = {
        name: explain_unproven_proposal(state, {"name": name, "refused": refused})
        for name, refused in {
            "best": "",
            "second": "",
            "late": "",
            "unwanted": "",
            "bad": "it copies a name",
        }.items()
    }
    assert reasons == {
        "best": "",
        "second": "not selected: it came to +0.10 (effect less twice what fell), the best to +0.30",
        "late": "not selected: the run ended before a selection",
        "unwanted": "not accepted",
        "bad": "it copies a name",
    }
    assert (
        explain_unproven_proposal(state | {"looks": []}, {"name": "best", "refused": ""})
        == "the run ended before a proof"
    )
