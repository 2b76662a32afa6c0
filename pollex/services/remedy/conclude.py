"""What replies, judges and people come to: a verdict for each change, with what speaks against it first."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from pollex.graphs.remedy.graph import ended_of, proven_in
from pollex.graphs.remedy.trial import RemedyWork, Trial
from pollex.measures.paired_effects import effect
from pollex.measures.proofs import FAILING, FEWEST_USERS, Primary, ProofArrays, verdict_of
from pollex.services.remedy.people import people_say
from pollex.services.remedy.result import RANKS, STRATA, ProvenEdit
from pollex.services.remedy.sample import RemedyOptions, RemedySample

MOST_DIVERGED = 0.1
AGREE, AGAINST, OWN = RANKS[0], RANKS[5], RANKS[2]


def concluded(
    sample: RemedySample,
    sealed: frozenset[str],
    options: RemedyOptions,
    thumbs: Any,
    live: RemedyWork,
    state: Mapping[str, Any],
    *,
    own: bool,
) -> list[dict[str, Any]]:
    """Conclude on each change that was proven, the best first; return the fields of each `ProvenEdit`.

    Args:
        sealed: Names of the guardrails that the proposer didn't see.
        thumbs: Returns the effect on thumbs of an arm, or the reason why there is none.
        own: Whether judges and assistant are of one family.
    """
    trial, found = live.trials["prove"], []
    believes, arrays = state["flatterer"], trial.arrays
    for arm, ended in sorted(ended_of(state).items()):
        edit = proven_in(state)[arm - 1]
        primary, guards = arrays.primary(arm, ended), arrays.guardrails(ended.look, arm, options.margin)
        said = [*diverged(live, arm), *([believes["said"]] if believes["found"] else [])]
        pair, wording = state["pairs"].get(edit["name"]), wording_of(live, arm, primary)
        if pair and pair["high"] is not None and pair["against"]:
            said.append("the rubrics like it, a reader without rubrics doesn't")
        if wording and any(not one["holds"] for one in wording):
            said.append("it depends on the wording of the target")
        over = shown_over_sealed(live, arm, ended.look, sealed)
        if over and over["low"] > 0:
            said.append("guardrails that the proposer saw rise more than sealed ones")
        verdict, against = verdict_of(primary, guards, said)
        people, level, named = None, "R", str(verdict)
        if state["choices"]:
            more = (options.people, options.seed, live.store.secret)
            people = people_say(trial, arm, trial.wins.get(arm), state["choices"], *more)
            if people["value"] is not None and people["high"] < 0.5:
                named, level = AGAINST, "P"
            elif people["value"] is not None and people["low"] > 0.5 and verdict == "judged better":
                named, level = AGREE, "P"
        found.append(
            ProvenEdit(
                name=edit["name"],
                diff=edit["diff"],
                prompt=edit["text"],
                purpose=edit["purpose"],
                verdict=OWN if named == "judged better" and own else named,
                level=level,
                against=against,
                primary=asdict(primary),
                guardrails=[asdict(one) | {"sealed": one.name in sealed} for one in guards],
                traffic=arrays.traffic(ended.look, arm, sample.shares),
                thumbs=thumbs(trial, arm, ended.look),
                pair=pair,
                wording=wording,
                people=people,
                shown_over_sealed=over,
            )
        )
    return [asdict(one) for one in sorted(found, key=lambda one: RANKS.index(one.verdict))]


def diverged(live: RemedyWork, arm: int) -> list[str]:
    """Say which arms left the recorded tools too often for a proof by replies."""
    trial, found = live.trials["prove"], []
    for number, name in ((0, "old"), (arm, "new")):
        total = sum(place[1] == number for place in trial.texts)
        if trial.missing.get(number, Counter())["diverged"] > MOST_DIVERGED * total:
            found.append(f"over 10 % of the {name} arm left the recorded calls of tools")
    return found


def wording_of(live: RemedyWork, arm: int, primary: Primary) -> list[dict[str, Any]] | None:
    """Return the effect by other words of the target, and by its mirror; None where nobody was asked."""
    trial = live.trials["prove"]
    if (worded := trial.worded.get(arm)) is None or live.second is None:
        return None
    arrays, found = trial.arrays, []
    for number, question in enumerate(live.second.wordings):
        values = arrays.users_of(worded[:, 1, number] - worded[:, 0, number], FAILING)
        mean = float(values.mean()) if len(values) else None
        holds = mean is not None and mean >= primary.effect.value / 2
        found.append({"text": question.text, "value": mean, "n": len(values), "holds": holds})
    return found


def shown_over_sealed(live: RemedyWork, arm: int, look: int, sealed: frozenset[str]) -> dict[str, Any] | None:
    """Return how much more guardrails rose that the proposer saw than those it didn't; None without both."""
    arrays, trial = live.trials["prove"].arrays, live.trials["prove"]
    names = list(arrays.names)[1 : len(trial.questions)]
    hidden = np.array([name in sealed for name in names], bool)
    if not hidden.any() or hidden.all():
        return None
    each = arrays.differences(look, arm)[:, 1 : len(trial.questions)]
    values = arrays.users_of(each[:, ~hidden].mean(axis=1) - each[:, hidden].mean(axis=1))
    return asdict(effect(values)) if len(values) >= FEWEST_USERS else None


def family(name: str) -> str:
    """Return the family of a model by its name."""
    return (re.match(r"[a-z]+", name.casefold().rpartition("/")[2]) or [name])[0]


def arms_of(state: Mapping[str, Any], trial: str) -> list[str]:
    """Return the names of a trial's arms."""
    proven = ["new"] if len(state["edits"]) == 1 else state["edits"]
    arms = {
        "prove": proven,
        "headroom": ["naive", "ceiling"],
        "flatter": ["flatterer"],
        "select": state.get("tried", []),
    }
    return ["old", *arms[trial]]


def record_of(live: RemedyWork, state: Mapping[str, Any], sample: RemedySample) -> dict[str, Any]:
    """Return what a run was about and came to, but for the verdicts."""
    target = sample.target.rubric
    strata = {name: sum(s == n for _, s in sample.proof) for n, name in enumerate(STRATA)}
    learned = sum(sample.known(one) for one, _ in sample.proof)
    shown = ("name", "purpose", "diff", "refused")
    return {
        "target": {"id": target.id, "text": target.text, "polarity": target.polarity},
        "headroom": state["headroom"],
        "candidates": [
            {name: one[name] for name in shown} | {"proven": bool(state["looks"]) and one["name"] in state["edits"]}
            for one in ([] if live.edits else state["candidates"])
        ],
        "flatterer": state["flatterer"],
        "contexts": strata | {"users": sample.users, "learned_from": learned},
        "left_out_by_prompt": sample.unmatched,
        "missing": by_arm(live, state, lambda trial, n: dict(sorted(trial.missing.get(n, {}).items()))),
        "per_reply": by_arm(live, state, lambda trial, n: sizes_of(trial.arrays, n)),
    }


def by_arm(
    live: RemedyWork, state: Mapping[str, Any], told: Callable[[Trial, int], dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return something of each arm of the proof by its name; empty where there was none."""
    trial = live.trials.get("prove")
    return {} if trial is None else {name: told(trial, arm) for arm, name in enumerate(arms_of(state, "prove"))}


def sizes_of(arrays: ProofArrays, arm: int) -> dict[str, float]:
    """Return mean characters and cost of a reply, in tokens of its prompt; what nobody counts is left out."""
    known = {name: size for name, size in arrays.sizes.items() if not np.isnan(size).all()}
    return {name: float(np.nanmean(size[:, arm])) for name, size in known.items()}
