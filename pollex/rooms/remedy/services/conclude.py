"""What replies, judges and people come to: a verdict for each change, with what speaks against it first."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from pollex.conversations.conversation import Label
from pollex.measures.arrays import Floats
from pollex.rooms.remedy.agents.assistant import AssistantReply
from pollex.rooms.remedy.graphs.graph import (
    choose_compared_arm,
    list_proven_changes,
    read_proof_ends,
)
from pollex.rooms.remedy.graphs.state import RemedyState
from pollex.rooms.remedy.graphs.trial import RemedyWork, Trial
from pollex.rooms.remedy.measures.advice import VERDICT_PEOPLE_CAN_TELL, VERDICT_WITH_CAVEAT
from pollex.rooms.remedy.measures.proofs import (
    FAILING_STRATUM,
    FEWEST_USERS_OF_GUARDRAIL,
    OLD_ARM,
    ProofEnd,
    TargetEffect,
    average_by_user,
    decide_verdict,
    estimate_effect,
)
from pollex.rooms.remedy.services.people import estimate_preference
from pollex.rooms.remedy.services.result import STRATUM_NAMES, VERDICTS_BY_RANK
from pollex.rooms.remedy.services.trials import GatheredContexts
from pollex.selection.threshold import fit_logistic_calibration_curve
from pollex.services.evaluate import (
    FEWEST_CONVERSATIONS_OF_TURNS,
    count_user_turns,
    cut_after_turns,
)
from pollex.services.scorer import BatchScorer
from pollex.text import JsonDict, JsonObject

MAX_DIVERGED_SHARE = 0.1
VERDICT_PEOPLE_AGREE = "better, people agree"
VERDICT_PEOPLE_AGAINST = "people prefer the old one"
VERDICT_OWN_FAMILY = "judged better, by its own family"
VERDICTS_THAT_PEOPLE_CONFIRM = (
    "judged better",
    VERDICT_WITH_CAVEAT,
    VERDICT_PEOPLE_CAN_TELL,
)
"""Gains that nothing but the judge speaks against, if anything."""
LABEL_RESAMPLES = 200
THUMBS_ASSUMPTION = "if the relation of rubrics and thumbs in the log holds for the new replies too"


def build_edit_verdicts(
    gathered: GatheredContexts,
    live: RemedyWork,
    state: RemedyState,
    *,
    same_family: bool,
) -> list[JsonDict]:
    """Decide on each change that was proven, the best first; return the fields of each `ProvenEdit`.

    Args:
        same_family: Whether judges and assistant are of one family.
    """
    # texts of the guardrails that the proposer never saw
    sealed = set()
    for guard in gathered.guards:
        if guard.id in gathered.sealed:
            sealed.add(guard.text)

    verdicts = []
    for arm, ended in sorted(read_proof_ends(state).items()):
        verdict = _build_edit_verdict(gathered, live, state, arm, ended, sealed)
        if same_family and verdict["verdict"] == "judged better":
            verdict["verdict"] = VERDICT_OWN_FAMILY
        verdicts.append(verdict)

    # the best verdict first
    return sorted(verdicts, key=lambda verdict: VERDICTS_BY_RANK.index(verdict["verdict"]))


def _build_edit_verdict(
    gathered: GatheredContexts,
    live: RemedyWork,
    state: RemedyState,
    arm: int,
    ended: ProofEnd,
    sealed: set[str],
) -> JsonDict:
    """Decide on one change, and return the fields of its `ProvenEdit`."""
    trial = live.trials["prove"]
    arrays = trial.arrays
    margin = gathered.options.margin
    # the effect on the target, on guardrails, and what a second reader says
    edit = list_proven_changes(state)[arm - 1]
    primary = arrays.primary(arm, ended)
    guards = arrays.guardrails(ended.look, arm, margin)
    pair = state["pairs"].get(edit["name"])
    wording = measure_wording_effects(live, arm, primary)
    over = compare_shown_with_sealed(trial, arm, ended.look, sealed)

    # the judge's verdict, and what speaks against the change
    verdict, against = decide_verdict(
        primary,
        guards,
        list_objections_to_replies(trial, arm),
        describe_missing_replies(trial, arm, ended.look),
        margin,
        against_judge=list_objections_to_judge(state["flatterer"], pair, wording, over),
    )

    # people who compared blind outrank the judge; R: judged by rubrics, P: people compared
    people = None
    level = "R"
    if state["choices"] and arm == choose_compared_arm(state):
        people = estimate_preference(trial, arm, state["choices"], gathered.options, live.salt)
        verdict, level = outrank_by_people(verdict, people)

    return {
        "name": edit["name"],
        "diff": edit["diff"],
        "prompt": edit["text"],
        "purpose": edit["purpose"],
        "verdict": verdict,
        "level": level,
        "against": against,
        "primary": asdict(primary),
        "guardrails": [asdict(guard) | {"sealed": guard.name in sealed} for guard in guards],
        "traffic": arrays.traffic(ended.look, arm, gathered.shares),
        "thumbs": estimate_thumbs_effect(gathered, trial, arm, ended.look),
        "pair": pair,
        "wording": wording,
        "people": people,
        "shown_over_sealed": over,
    }


def list_objections_to_replies(trial: Trial, arm: int) -> list[str]:
    """Return why replies may not be those that users would get: they called other tools than the log has results of."""
    objections = []
    if has_diverged(trial, OLD_ARM):
        objections.append("over 10 % of the old arm left the recorded calls of tools")
    if has_diverged(trial, arm):
        objections.append("over 10 % of the new arm left the recorded calls of tools")

    return objections


def list_objections_to_judge(
    flatterer: JsonObject,
    pair: JsonObject | None,
    wording: Sequence[JsonObject] | None,
    shown_over_sealed: JsonObject | None,
) -> list[str]:
    """Return why a judge may find a gain that people wouldn't see: it can be fooled, or others contradict it.

    Args:
        flatterer: What a prompt came to that only claims to do well; see `RemedyState`.
        pair, wording, shown_over_sealed: As in `ProvenEdit`.
    """
    objections = []
    if flatterer["found"]:
        objections.append(flatterer["said"])
    if pair and pair["against"]:
        objections.append("the rubrics like it, a reader without rubrics doesn't")
    if wording and any(not reworded["holds"] for reworded in wording):
        objections.append("it depends on the wording of the target")
    if shown_over_sealed and shown_over_sealed["low"] > 0:
        objections.append("guardrails that the proposer saw rise more than sealed ones")

    return objections


def outrank_by_people(verdict: str, people: JsonObject) -> tuple[str, str]:
    """Return the verdict and its level after people compared: theirs where they clearly prefer one side."""
    if people["value"] is None:
        return verdict, "R"
    if people["high"] < 0.5:
        return VERDICT_PEOPLE_AGAINST, "P"
    # whatever made the judge like them: people were asked which reply they would rather have
    if people["low"] > 0.5 and verdict in VERDICTS_THAT_PEOPLE_CONFIRM:
        return VERDICT_PEOPLE_AGREE, "P"
    return verdict, "R"


def describe_missing_replies(trial: Trial, arm: int, look: int) -> str:
    """Say how many of the replies of both arms, that were asked for up to a look, are missing; empty for none."""
    here = set(np.flatnonzero(trial.arrays.wave <= look).tolist())
    places = []
    for place in trial.places(arms=[OLD_ARM, arm]):
        if place[0] in here:
            places.append(place)

    lacks = []
    for place in places:
        if np.isnan(trial.arrays.values[(*place, 0)]):
            lacks.append(place)

    if not lacks:
        return ""

    new = sum(place[1] == arm for place in lacks)
    return f"{len(lacks)} of {len(places)} replies are missing, {new} of them under the change"


def has_diverged(trial: Trial, arm: int) -> bool:
    """Tell whether an arm left the recorded tools too often for a proof by replies."""
    return trial.missing(arm)["diverged"] > MAX_DIVERGED_SHARE * sum(
        place[1] == arm for place in trial.texts
    )


def measure_wording_effects(
    live: RemedyWork, arm: int, primary: TargetEffect
) -> list[JsonDict] | None:
    """Return the effect by other words of the target, and by its mirror; None where nobody was asked."""
    trial = live.trials["prove"]
    if (worded := trial.worded.get(arm)) is None or live.second is None:
        return None

    # other words hold if they show half of the gain at least
    effects = []
    for number, question in enumerate(live.second.wordings):
        values = trial.arrays.users_of(
            worded[:, 1, number] - worded[:, 0, number],
            FAILING_STRATUM,
        )
        mean = None
        if len(values):
            mean = float(values.mean())
        holds = mean is not None and mean >= primary.effect.value / 2
        effects.append(
            {
                "text": question.text,
                "value": mean,
                "n": len(values),
                "holds": holds,
            }
        )

    return effects


def compare_shown_with_sealed(
    trial: Trial,
    arm: int,
    look: int,
    sealed: set[str],
) -> JsonDict | None:
    """Return how much more guardrails rose that the proposer saw than those it didn't; None without both."""
    arrays = trial.arrays
    # the target is left out: the first name
    most = len(trial.questions)
    # [guardrail]: whether it was sealed
    hidden = np.array([name in sealed for name in arrays.names[1:most]], bool)
    if not hidden.any() or hidden.all():
        return None

    # [context]: mean change of those shown less that of those sealed
    differences = arrays.differences(look, arm)[:, 1:most]
    values = arrays.users_of(
        differences[:, ~hidden].mean(axis=1) - differences[:, hidden].mean(axis=1)
    )
    if len(values) >= FEWEST_USERS_OF_GUARDRAIL:
        return asdict(estimate_effect(values))
    return None


def estimate_thumbs_effect(
    gathered: GatheredContexts,
    trial: Trial,
    arm: int,
    look: int,
) -> JsonDict:
    """Return the effect on P(thumb up) where the target failed, as `pollex turns` fits it, labels resampled."""
    # turns from which a probability helps, as `pollex turns` found
    able = []
    for turn in gathered.rubric_set.turns:
        if turn.helps:
            able.append(turn.turns)

    if not gathered.rubric_set.judge.built_in:
        return {
            "value": None,
            "reason": "the set's judge is a model: every rubric would be paid for at each reply",
        }

    if not able:
        return {
            "value": None,
            "reason": "the set has no probability that helps after a turn (`pollex turns`)",
        }

    # replies of the proof after the first turn from which a probability helps
    depth = min(able)
    scorer = BatchScorer(gathered.rubric_set)
    arrays = trial.arrays
    here = (arrays.wave <= look) & (arrays.stratum == FAILING_STRATUM)
    indices = []
    for n, context in enumerate(trial.contexts):
        if here[n] and count_user_turns(context.cut) == depth:
            indices.append(n)

    old, new = (compute_mean_netsat(trial, number, indices, scorer) for number in (OLD_ARM, arm))
    judged = ~np.isnan(old) & ~np.isnan(new)
    # labeled conversations of the log that reach that turn: they fit the probability
    labeled = []
    for conversation in gathered.logs.conversations:
        if conversation.label is not Label.NONE and count_user_turns(conversation) >= depth:
            labeled.append(conversation)

    if (
        judged.sum() < FEWEST_CONVERSATIONS_OF_TURNS // 2
        or len(labeled) < FEWEST_CONVERSATIONS_OF_TURNS
    ):
        return {
            "value": None,
            "reason": f"{int(judged.sum())} replies after turn {depth}, where a probability helps",
        }

    # NetSAT of these conversations, cut after that turn
    scored = scorer.scores([cut_after_turns(conversation, depth) for conversation in labeled])
    x = np.array(
        [np.nan if score.netsat is None else score.netsat for score in scored],
        float,
    )
    up = np.array([conversation.label is Label.POSITIVE for conversation in labeled])
    # [conversation]; those without a score are left out
    x, up = x[~np.isnan(x)], up[~np.isnan(x)]
    # the effect of all labels first, then of labels and users drawn again
    rng = np.random.default_rng(gathered.options.seed)
    drawn = []
    # users of the replies that both arms have
    users = arrays.user[np.array(indices)[judged]]
    for number in range(LABEL_RESAMPLES + 1):
        if number:
            rows = rng.integers(0, len(x), len(x))
        else:
            rows = np.arange(len(x))

        # labels of one kind alone fit nothing
        if up[rows].all() or not up[rows].any():
            continue
        fitted = fit_logistic_calibration_curve(x[rows], up[rows])
        differences = average_by_user(
            fitted.probability(new[judged]) - fitted.probability(old[judged]),
            users,
        )
        drawn.append(
            float(
                differences[rng.integers(0, len(differences), len(differences))].mean()
                if number
                else differences.mean()
            )
        )

    # the first value is the estimate, the others its spread
    low, high = np.quantile(drawn[1:], (0.025, 0.975))
    interval = {
        "value": drawn[0],
        "low": float(low),
        "high": float(high),
        "n": int(judged.sum()),
    }
    return interval | {"basis": f"{THUMBS_ASSUMPTION}; where the target failed, after turn {depth}"}


def compute_mean_netsat(
    trial: Trial,
    arm: int,
    indices: Sequence[int],
    scorer: BatchScorer,
) -> Floats:
    """Return the mean NetSAT of the conversations up to the replies `[context]`; NaN: no reply."""
    # [context]; NaN where a reply has no score
    netsat = np.full(len(indices), np.nan)
    for place, n in enumerate(indices):
        replies = (trial.texts.get(place) for place in trial.places([n], [arm]))
        texts = []
        for reply in replies:
            if isinstance(reply, AssistantReply):
                texts.append(reply.text)

        scores = []
        for score in scorer.scores([trial.contexts[n].with_reply(text) for text in texts]):
            scores.append(score.netsat)

        if scores and None not in scores:
            netsat[place] = float(np.mean(np.array(scores, float)))

    return netsat


def get_model_family(name: str) -> str:
    """Return the family of a model by its name."""
    return (re.match(r"[a-z]+", name.casefold().rpartition("/")[2]) or [name])[0]


def list_arm_names(state: RemedyState, trial: str) -> list[str]:
    """Return the names of a trial's arms."""
    proven = ["new"] if len(state["edits"]) == 1 else state["edits"]
    arms = {
        "prove": proven,
        "headroom": ["naive", "ceiling"],
        "flatter": ["flatterer"],
    }
    return ["old", *arms.get(trial, state.get("tried", []))]


def build_run_record(
    live: RemedyWork,
    state: RemedyState,
    gathered: GatheredContexts,
) -> JsonDict:
    """Return what a run was about and came to, but for the verdicts."""
    # without a proof there are no arms to tell of
    trial = live.trials.get("prove")
    target = gathered.target
    strata = [stratum for _, stratum in gathered.proof]
    if trial is None:
        arms = {}
    else:
        arms = dict(enumerate(list_arm_names(state, "prove")))

    # proposals with what became of them, and what is missing of each arm
    return {
        "target": {"id": target.id, "text": target.text, "polarity": target.polarity},
        "headroom": state["headroom"],
        "candidates": [
            {name: candidate[name] for name in ("name", "purpose", "diff", "refused")}
            | {
                "proven": bool(state["looks"]) and candidate["name"] in state["edits"],
                "left": explain_unproven_proposal(state, candidate),
            }
            for candidate in ([] if gathered.edits else state["candidates"])
        ],
        "flatterer": state["flatterer"],
        "contexts": {name: strata.count(n) for n, name in enumerate(STRATUM_NAMES)}
        | {"users": gathered.users, "learned_from": gathered.proving(gathered.learned)},
        "left_out_by_prompt": gathered.unmatched,
        "missing": {
            name: dict(sorted(trial.missing(n).items())) for n, name in arms.items() if trial
        },
        "per_reply": {name: measure_reply_sizes(trial, n) for n, name in arms.items() if trial},
    }


def explain_unproven_proposal(state: RemedyState, candidate: Mapping[str, str]) -> str:
    """Say why a proposal wasn't proven; empty if it was."""
    name = candidate["name"]
    if candidate["refused"]:
        return candidate["refused"]
    if name in state["edits"]:
        return "" if state["looks"] else "the run ended before a proof"

    # scores of the last selection that the proposal took part in
    waves = []
    for scores in state.get("scores", ()):
        if name in scores:
            waves.append(scores)

    if waves:
        last = waves[-1][name]
        best = max(waves[-1].values())
        return f"not selected: it came to {last:+.2f} (effect less twice what fell), the best to {best:+.2f}"
    if name not in state["tried"]:
        return "not accepted"
    return "not selected: the run ended before a selection"


def measure_reply_sizes(trial: Trial, arm: int) -> dict[str, float]:
    """Return mean characters and cost of a reply, in tokens of its prompt; what nobody counts is left out."""
    sizes = {}
    for name, size in trial.arrays.sizes.items():
        sizes[name] = size[:, arm]

    characters: dict[str, float] = {}
    for name, size in sizes.items():
        if not np.isnan(size).all():
            characters[name] = float(np.nanmean(size))

    return characters
