"""`remedy`: looks for changes of a prompt, and proves them in four waves on users who took no part in finding them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from pollex.errors import LimitReached
from pollex.graphs.batches import finish as recorded
from pollex.graphs.context import LogContext, get_resources_of_thread
from pollex.graphs.findings import shorten_question_texts_by_id
from pollex.rooms.remedy.graphs.state import RemedyState
from pollex.rooms.remedy.graphs.told import describe_replies
from pollex.rooms.remedy.graphs.trial import (
    RemedyWork,
    Trial,
    ask_second_judge,
    ask_trial,
    require_written_replies,
)
from pollex.rooms.remedy.measures.looks import (
    BETTER,
    DEFAULT_LOOKS,
    GOING,
    NOTHING,
    WORSE,
    compute_alpha_of_proof,
)
from pollex.rooms.remedy.measures.proofs import OLD_ARM, UNTRIED_HEADROOM_RECORD, ProofEnd
from pollex.store.resume import read_step_result
from pollex.text import JsonDict

REGISTERED_RECORD_NAME = "registered"
CUT_RECORD_NAME = "cut"
SHOWN_PROPOSAL_FIELDS = ("name", "purpose", "diff")
LEAST_SHARE_OF_NEW_USERS = 0.05
"""Of all users, more than the last look saw: with fewer, a cap of calls or cost ends a run without a verdict."""
OUTCOMES_IN_WORDS = {
    BETTER: "above zero",
    WORSE: "below zero",
    NOTHING: "no difference",
}


INITIAL_STATE: RemedyState = {
    # looking for changes
    "headroom": None,
    "candidates": [],
    "tried": [],
    "edits": [],
    # the proof
    "proof": 0,
    "flatterer": UNTRIED_HEADROOM_RECORD,
    "look": 0,
    "looks": [],
    "ended": {},
    "cut": 0.0,
    # second opinions, and what all came to
    "pairs": {},
    "choices": {},
    "decisions": {},
    "verdicts": [],
    "why": "",
}


@dataclass(frozen=True, kw_only=True)
class RemedyContext(LogContext):
    """What the user chose for `remedy`; `pollex remedy run --help` describes each."""

    rubrics: str = ""
    prompt: str = ""
    target: str = ""
    edit: list[str] = field(default_factory=list)
    profiles: str = ""
    assistant: str = ""
    accept: str = ""
    keep: list[str] = field(default_factory=list)
    any_prompt: bool = False
    live_tools: str = ""
    embedding_model: str = ""
    people: int = 0
    tried: int = 0
    others: int = 0
    seed: int = 0


def list_proven_changes(state: RemedyState) -> list[dict[str, str]]:
    """Return the changes that are still in it, in the order of their arms."""
    named = {}
    for candidate in state["candidates"]:
        named[candidate["name"]] = candidate

    return [named[name] for name in state["edits"]]


def list_prompt_texts(state: RemedyState) -> list[str]:
    """Return the prompts of these changes."""
    return [edit["text"] for edit in list_proven_changes(state)]


def read_proof_ends(state: RemedyState) -> dict[int, ProofEnd]:
    """Return how each proof ended, by arm."""
    proof_ends: dict[int, ProofEnd] = {}
    for name, end in state["ended"].items():
        # checkpoints of before have the values without their names
        fields = end if isinstance(end, Mapping) else dict(zip(ProofEnd._fields, end, strict=False))
        proof_ends[state["edits"].index(name) + 1] = ProofEnd(**fields)
    return proof_ends


def choose_compared_arm(state: RemedyState) -> int:
    """Return the arm whose replies people compare: the first that was above zero; the old one if none was."""
    return next(
        (arm for arm, ended in read_proof_ends(state).items() if ended.outcome == BETTER),
        OLD_ARM,
    )


UNTRIED_HEADROOM_MESSAGE = (
    "whether replies still fail, and whether a prompt mends that, wasn't tried: too few replies are "
    "left beside those for proposals and the proof"
)


def make_node_update(node: str, line: str) -> RemedyState:
    """Return what a node says in the state where it has no results to show."""
    return {"by_node": {node: line}}


HEADROOM_ARM_NAMES = ("old", "naive", "with hints")
"""Arms of the trial that looks for headroom."""


def add_replies_to_update(
    update: Mapping[str, object],
    live: RemedyWork,
    trial: Trial,
    names: Sequence[str],
    where: Sequence[int] | None = None,
) -> RemedyState:
    """Return an update of the state with the part that tells of a trial's replies."""
    replies = describe_replies(
        trial,
        names,
        where,
        texts=live.store.texts and not live.blind,
    )
    return cast(
        RemedyState,
        {
            **update,
            **replies,
            "questions": shorten_question_texts_by_id(trial.questions),
        },
    )


async def gather_changes(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:  # noqa: ARG001
    """Begin with the changes that the user gave, or with none."""
    live = await get_resources_of_thread(runtime, RemedyWork)
    begun = cast(RemedyState, {**INITIAL_STATE, "run": live.run, **live.begun})
    if begun["edits"]:  # where people write the replies, they find all of them at once
        await require_written_replies(
            live,
            live.make("flatter", ()),
            live.make("prove", list_prompt_texts(begun)),
        )

    return begun


async def reproduce_failures(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:  # noqa: ARG001
    """Ask again where replies failed and where they went well: under the old prompt, a plain one, and with hints."""
    live = await get_resources_of_thread(runtime, RemedyWork)
    # the old prompt, a plain one, and one with a hint for each context
    trial = live.trials["headroom"] = live.make("headroom", ())
    with live.tracer.span("reproduce", kind="node"):
        if not trial.contexts:  # too few to tell
            return {"headroom": None, **make_node_update("reproduce", UNTRIED_HEADROOM_MESSAGE)}
        await ask_trial(live, trial)
        # without headroom: what is missing of each arm says why
        if (headroom := trial.arrays.headroom()) is None:
            lacks = {}
            for arm, name in enumerate(("old", "naive", "ceiling")):
                lacks[name] = trial.missing(arm)

            missing = ", ".join(
                f"{name} {n} {kind}" for name, kinds in lacks.items() for kind, n in kinds.items()
            )
            why = f"too few replies came to tell whether a prompt mends it; missing: {missing}"
            return add_replies_to_update(
                {"headroom": None, "why": why},
                live,
                trial,
                HEADROOM_ARM_NAMES,
            )

    return add_replies_to_update(
        {"headroom": headroom, "why": headroom["ended"]},
        live,
        trial,
        HEADROOM_ARM_NAMES,
    )


async def propose_changes(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:  # noqa: ARG001
    """Have changes proposed, and vet them."""
    live = await get_resources_of_thread(runtime, RemedyWork)
    with live.tracer.span("propose", kind="node") as span:
        proposals = await live.propose(live.trials["headroom"])
        # refused proposals stay in the state, to be told with their reason
        good = []
        for proposal in proposals:
            if not proposal["refused"]:
                good.append(proposal["name"])

        span.outputs(good)

    return {
        "candidates": proposals,
        "edits": good,
        "why": "" if good else "no proposal was fit to be tried",
    }


async def accept_proposals(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:  # noqa: ARG001
    """Wait for a person to accept proposals: resumed with the names of those to try, or with `all`."""
    # the run stops here until somebody accepts
    accepted: Any = interrupt(
        {
            "edits": [
                {name: edit[name] for name in SHOWN_PROPOSAL_FIELDS}
                for edit in list_proven_changes(state)
            ]
        }
    )
    # names that aren't among the proposals were refused before they came here
    if accepted == "all":
        names = state["edits"]
    else:
        names = []
        for name in state["edits"]:
            if name in accepted:
                names.append(name)

    return {
        "edits": names,
        "tried": names,
        "why": "" if names else "no proposal was accepted",
    }


async def select_best_change(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:
    """Try all on half of the contexts, the better half of them on the rest; keep the best."""
    live = await get_resources_of_thread(runtime, RemedyWork)
    names = state["edits"]
    # with few changes nothing is to be chosen
    if len(names) <= live.finalists:
        return {
            "edits": names,
            **make_node_update("select", "few enough to prove all: nothing was chosen"),
        }

    with live.tracer.span("select", kind="node") as span:
        # arms count from 1: the old prompt is arm 0
        arms = [*range(1, len(names) + 1)]
        scores = list[dict[str, float]]()
        trial = live.make("select", list_prompt_texts(state))
        # half of the changes go on to the second half of the contexts
        for wave, most in enumerate((max(live.finalists, len(names) // 2), live.finalists)):
            await ask_trial(
                live,
                trial,
                np.flatnonzero(trial.arrays.wave == wave).tolist(),
                [OLD_ARM, *arms],
            )
            scores.append({names[arm - 1]: trial.arrays.score(wave, arm) for arm in arms})
            # sorted by number first, so that equal scores keep the order of proposals
            arms = sorted(sorted(arms), key=lambda arm: -scores[-1][names[arm - 1]])[:most]

        span.outputs(chosen := [names[arm - 1] for arm in arms])

    return add_replies_to_update(
        {"edits": chosen, "scores": scores},
        live,
        trial,
        ["old", *names],
    )


async def test_with_flattery(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:  # noqa: ARG001
    """Plant a prompt that only has replies claim to do well: does the judge believe it?"""
    live = await get_resources_of_thread(runtime, RemedyWork)
    with live.tracer.span("flatter", kind="node"):
        trial = await ask_trial(live, live.make("flatter", ()))

    update = {
        "asked": {"flatter": len(trial.contexts)},
        "flatterer": trial.arrays.flattered(),
    }
    return add_replies_to_update(update, live, trial, ["old", "flattering"])


async def register_plan(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:
    """Write down what is asked, in which order, and how it is decided, before the first reply is asked for."""
    live = await get_resources_of_thread(runtime, RemedyWork)
    trial = live.trials["prove"] = live.make("prove", list_prompt_texts(state))
    await live.register(live.run, trial, list_prompt_texts(state))
    # a cap ended it before: what wasn't asked then is left out
    if ended := read_step_result(live.store, live.run, CUT_RECORD_NAME):
        trial.arrays.wave[:] = ended["waves"]

    line = (
        f"{len(trial.contexts)} conversations to ask again, in {DEFAULT_LOOKS} waves, each with {len(trial.systems)} "
        "prompts; what is asked, in which order, and how it is decided is written down"
    )
    return {"total": len(trial.contexts), **make_node_update("freeze", line)}


async def prove_changes(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:
    """Ask for and judge the replies of a wave, both arms in turn."""
    live = await get_resources_of_thread(runtime, RemedyWork)
    trial = live.trials["prove"]
    # where a cap ended an earlier try, its cut stays as it was
    ended = read_step_result(live.store, live.run, CUT_RECORD_NAME) or {}
    if ended.get("look") == state["look"]:
        cut = ended["fraction"]
    else:
        cut = 0.0

    # contexts of this look's wave, and the arms that no look has ended
    in_wave = np.flatnonzero(trial.arrays.wave == state["look"]).tolist()
    ids = [trial.contexts[n].conversation.id for n in in_wave]
    arms = []
    for arm in range(len(trial.systems)):
        if arm not in read_proof_ends(state):
            arms.append(arm)

    with live.tracer.span("prove", kind="node", inputs=ids):
        try:
            await ask_trial(live, trial, in_wave, arms)
        # a cap of calls or cost: what came is looked at, if there is enough new in it
        except LimitReached:
            cut = trial.cut(arms, state["look"])
            if (
                cut < state["look"] / DEFAULT_LOOKS + LEAST_SHARE_OF_NEW_USERS
            ):  # nothing new to look at
                raise
            # waves of the contexts that are left, so that a resumed run sees the same
            ended = {
                "look": state["look"],
                "fraction": cut,
                "waves": trial.arrays.wave.tolist(),
            }
            await live.store.write_step(live.run, CUT_RECORD_NAME, ended)

    # registered with its number once replies are there
    number = await live.register(live.run, trial, list_prompt_texts(state))
    update = {
        "batch": ids,
        "done": int((trial.arrays.wave <= state["look"]).sum()),
        "total": len(trial.contexts),
        "asked": {"prove": len(in_wave)},
        "proof": number,
        "cut": cut,
    }
    return add_replies_to_update(
        update,
        live,
        trial,
        ["old", *state["edits"]],
        in_wave,
    )


async def look_at_results(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:
    """Look at what came in, and decide whether to go on."""
    live = await get_resources_of_thread(runtime, RemedyWork)
    trial = live.trials["prove"]
    at = state["look"]
    names = state["edits"]
    # a proof on conversations that proved before has a stricter level
    alpha = compute_alpha_of_proof(state["proof"])
    with live.tracer.span("look", kind="node") as span:
        ended = trial.arrays.looked(
            at,
            alpha,
            read_proof_ends(state),
            state["cut"],
        )
        # an arm that goes on has no end yet: it is measured at this look's bounds
        going = ProofEnd(GOING, at, alpha, state["cut"])
        effects = []
        for arm in range(1, len(names) + 1):
            effects.append(trial.arrays.primary(arm, ended.get(arm, going)).effect)

        outcomes = {}
        for arm, end in sorted(ended.items()):
            outcomes[names[arm - 1]] = OUTCOMES_IN_WORDS[end.outcome]

        span.outputs(
            [
                f"look {at + 1} of {DEFAULT_LOOKS}: {name} {outcome}"
                for name, outcome in outcomes.items()
            ]
        )

    # state is written as JSON, by the names of the changes
    effects_by_name = dict(zip(names, map(asdict, effects), strict=True))
    ends = {}
    for arm, end in ended.items():
        ends[names[arm - 1]] = end._asdict()

    return {
        "look": at + 1,
        "looks": [*state["looks"], effects_by_name],
        "ended": ends,
        "decisions": {
            name: f"{outcomes[name]}, at look {ends[name]['look'] + 1} of {DEFAULT_LOOKS}"
            if name in outcomes
            else f"goes on after look {at + 1} of {DEFAULT_LOOKS}"
            for name in names
        },
        "outcomes": dict(live.outcomes),
    }


async def compare_replies(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:
    """Have a second judge compare the replies without rubrics, and judge them by other words."""
    live = await get_resources_of_thread(runtime, RemedyWork)
    second_opinions = dict[str, JsonDict]()
    with live.tracer.span("compare", kind="node"):
        # only gains are compared: a reader costs calls
        for arm, proof_end in read_proof_ends(state).items():
            if proof_end.outcome == BETTER and live.second is not None:
                try:
                    second_opinions[state["edits"][arm - 1]] = await ask_second_judge(
                        live,
                        live.second,
                        arm,
                    )
                # a proof that a cap ended does without it; any other stops here and can go on
                except LimitReached:
                    if not state["cut"]:
                        raise
                    live.trials["prove"].worded.pop(arm)

        await live.store.settle()

    update: dict[str, object] = {
        "asked": {"compare": len(second_opinions)},
        "pairs": second_opinions,
    }
    if live.second is None:
        update |= make_node_update(
            "compare", "no second reader is named: `[second]` in the file of profiles"
        )
    elif not second_opinions:
        update |= make_node_update(
            "compare", "no change is above zero: there is nothing to compare"
        )

    return add_replies_to_update(
        update,
        live,
        live.trials["prove"],
        ["old", *state["edits"]],
    )


async def wait_for_people(state: RemedyState, runtime: Runtime[RemedyContext]) -> RemedyState:
    """Wait for people to compare pairs, where that was asked for: resumed with their choices by pair."""
    live = await get_resources_of_thread(runtime, RemedyWork)
    chosen = dict[str, str]()
    if (arm := choose_compared_arm(state)) != OLD_ARM and (
        pairs := live.sheet(live.trials["prove"], arm)
    ):
        chosen = interrupt({"pairs": pairs})

    line = "nobody was asked to compare pairs"
    if chosen:
        line = f"people compared {len(chosen)} pairs: what they prefer is in the verdict"
    return {"asked": {"people": len(chosen)}, "choices": chosen, **make_node_update("people", line)}


async def conclude_run(state: RemedyState, runtime: Runtime[RemedyContext]) -> dict[str, object]:
    """Conclude on each change that was proven, and record what the run came to."""
    live = await get_resources_of_thread(runtime, RemedyWork)
    if state["ended"]:
        # conclusions fit models: a thread keeps the loop free
        verdicts = await asyncio.to_thread(live.conclude, live, state)
    else:
        verdicts = []

    ended = dict(await recorded(state, runtime))
    ended.pop("done")  # contexts are counted by `prove`
    # the verdict, then what speaks against it
    decisions = {}
    for verdict in verdicts:
        decisions[verdict["name"]] = "; ".join([verdict["verdict"], *verdict["against"]])

    return {
        **ended,
        "decisions": decisions,
        "verdicts": verdicts,
    }


def build() -> StateGraph[RemedyState, RemedyContext, RemedyState, RemedyState]:
    """Build the graph, uncompiled."""
    graph = StateGraph(RemedyState, context_schema=RemedyContext)
    # looking for changes
    graph.add_node("gather", gather_changes)
    graph.add_node("reproduce", reproduce_failures)
    graph.add_node("propose", propose_changes)
    graph.add_node("accept", accept_proposals)
    graph.add_node("select", select_best_change)

    # the proof: a flattering arm first, then what may not change, then waves and looks
    graph.add_node("flatter", test_with_flattery)
    graph.add_node("freeze", register_plan)
    graph.add_node("prove", prove_changes)
    graph.add_node("look", look_at_results)

    # the end: second opinions, then the verdicts
    graph.add_node("compare", compare_replies)
    graph.add_node("people", wait_for_people)
    graph.add_node("finish", conclude_run)

    # each step goes on or ends early: with changes of the user's straight to the proof
    graph.add_edge(START, "gather")
    for before, after in pairwise(("gather", "reproduce", "propose", "accept", "select")):
        instead = "flatter" if before == "gather" else "finish"
        graph.add_conditional_edges(
            before,
            make_route(after, instead),
            [after, instead],
        )

    # these follow each other in any case
    for before, after in pairwise(("select", "flatter", "freeze", "prove", "look")):
        graph.add_edge(before, after)
    for before, after in pairwise(("compare", "people", "finish")):
        graph.add_edge(before, after)

    # a wave and a look in turn, until all arms have ended
    graph.add_conditional_edges("look", choose_after_look, ["prove", "compare"])
    graph.add_edge("finish", END)
    return graph


def make_route(after: str, instead: str) -> Callable[[RemedyState], str]:
    """Return what chooses the next node: what ended is finished, what the user gave is proven at once."""
    return lambda state: (
        instead if state["why"] or (instead == "flatter" and state["edits"]) else after
    )


def choose_after_look(state: RemedyState) -> str:
    """Choose what comes after a look."""
    if len(state["ended"]) == len(state["edits"]):
        return "compare"
    return "prove"
