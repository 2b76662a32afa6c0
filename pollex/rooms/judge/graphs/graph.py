"""`judge`: asks one question in n independent runs, fits τ, and hands disagreements to people."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from langgraph.graph import END, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from pollex.graphs.batches import (
    BatchState,
    BatchWork,
    add_batch_nodes_to_graph,
    finish,
    make_graph_node_of_item_function,
)
from pollex.graphs.context import ConversationIndex, LogContext, get_resources_of_thread
from pollex.graphs.findings import get_first_failure_or_justification, shorten_text_to_state_line
from pollex.rooms.judge.agents.votes import (
    PERSON_RUN_NAME,
    JudgeEnsemble,
    RatingTask,
    Vote,
    VoteTally,
    compute_diversity_entropy,
    make_person_answer,
    make_person_question,
    make_run_question,
)
from pollex.rooms.judge.graphs.state import RunTally, count_votes_of_run
from pollex.rubrics.answers import Answer, Unanswered
from pollex.store.rows import make_label_row
from pollex.text import JsonDict, JsonObject


class JudgeState(BatchState, total=False):
    """How far a run of `judge` is, and what it left to people.

    Attributes:
        rule: The rule of verdicts in words, with the τ that was fitted.
        figures: What a fitted τ does to the thumbs that it was fitted to, and to others.
        waiting: Ids of the conversations that wait for people, the most contested first.
        given: By conversation, the option that a person chose.
    """

    rule: str
    figures: dict[str, dict[str, object]]
    waiting: list[str]
    given: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class JudgeContext(LogContext):
    """What the user chose for `judge`: a log, and a question with its options.

    Attributes:
        runs: Independent runs of each conversation, the ensemble; 0 for the usual number, as
            `minimum`.
        panel: Other models that take turns with the first.
        tau: Highest diversity entropy that passes; None: one run may differ, or as `tau_precision`
            has it.
        variant: Prompt, `v0` to `v4`.
    """

    question: str = ""
    options: list[str] = field(default_factory=list)
    runs: int = 0
    minimum: int = 0
    panel: list[str] = field(default_factory=list)
    tau: float | None = None
    tau_precision: float | None = None
    stop_early: bool = False
    variant: str = ""
    domain: str = ""
    instructions: str = ""
    temperature: float | None = None
    sources: int = 0
    embedding_model: str = ""
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class JudgeWork(BatchWork):
    """The resources of `judge`.

    Attributes:
        ensemble: None where only people are asked.
        stored_votes: By conversation, runs answered in an earlier session.
    """

    shelf: ConversationIndex
    ensemble: JudgeEnsemble | None
    task: RatingTask
    stored_votes: Mapping[str, Mapping[int, Vote]] = field(default_factory=dict)

    async def prepare(self, batch: Sequence[str]) -> None:
        """Have the ensemble prepare."""
        if self.ensemble is not None:
            await self.ensemble.prepare([self.shelf[id_] for id_ in batch])

    def legend(self) -> dict[str, str]:
        """Return the question that is asked, with its options."""
        question = self.task.question
        options = ", ".join(option.text for option in question.options)
        return {question.id: f"{shorten_text_to_state_line(question.text)} ({options})"}

    def tell(self, id_: str, votes: Sequence[Answer | Unanswered]) -> None:
        """Tell of a conversation in the state: the least agreed on and the last option are the worst."""
        options = [option.text for option in self.task.question.options]
        tally = VoteTally.of(votes, len(options))
        # a τ that is fitted when all runs are in leaves the mode until then
        later = self.task.precision is not None
        if later:
            chosen = _find_mode_of_votes(tally.votes)
        else:
            chosen = self.task.rule.chosen(tally.votes)

        # without votes there is no entropy
        entropy = None
        if sum(tally.votes):
            entropy = compute_diversity_entropy(tally.votes)

        # votes of the largest option
        agreed = max(tally.votes, default=0)
        refusal = self.task.rule.refusal(
            tally.votes,
            self.task.rule.runs - tally.asked,
        )
        # texts only where the store keeps texts at all
        row = {
            "why": get_first_failure_or_justification(
                _select_majority_votes(votes, tally), texts=self.store.texts
            ),
            "verdict": f"none: {refusal.replace('_', ' ')}" if chosen is None else options[chosen],
            "final": "" if not later else "no: τ is fitted when all runs are in",
            "agreed": f"{agreed} of {len(votes)} runs",
            "votes": dict(zip(options, tally.votes, strict=True)),
            "entropy": entropy,
        }
        # a share for each option, and one for conversations without a verdict
        shares = {}
        for place, option in enumerate(options):
            shares[f"share {option}"] = float(chosen == place)

        shares["share without a verdict"] = float(chosen is None)
        # the lowest rank is the worst: no verdict by entropy, then the options from last to first
        if chosen is None:
            rank = -1.0 - (entropy or 0.0)
        else:
            rank = -chosen / len(options)

        self.findings.take(
            id_,
            lambda: row,
            rank=rank,
            figures={**shares, "entropy": entropy},
        )

    def tallied(self) -> RunTally:
        """Count the votes and people's answers that the store has, by the rule that they give."""
        return count_votes_of_run(
            self.store,
            self.run,
            self.task,
            (self.shelf[id_] for id_ in self.shelf),
        )

    def result(self, state: JsonObject) -> JsonDict:
        """Return what the run came to, for `pollex runs`."""
        return {
            "outcomes": state["outcomes"],
            "waiting": len(state["waiting"]),
            "rule": state["rule"],
        }


def _find_mode_of_votes(votes: Sequence[int]) -> int | None:
    """Return the option with the most votes; None where several have as many."""
    most = max(votes, default=0)
    if most and list(votes).count(most) == 1:
        return votes.index(most)
    return None


def _select_majority_votes(
    votes: Sequence[Answer | Unanswered], tally: VoteTally
) -> list[Answer | Unanswered]:
    """Return the votes for the option that has the most; all of them where no run answered."""
    most = max(tally.votes, default=0)
    if not most:
        return list(votes)

    option = tally.votes.index(most)
    return [vote for vote in votes if isinstance(vote, Answer) and vote.chosen == option]


@make_graph_node_of_item_function(JudgeWork)
async def ask_runs(live: JudgeWork, id_: str) -> None:
    """Ask the ensemble's runs about each conversation of the batch."""
    conversation = live.shelf[id_]
    ensemble = live.ensemble
    assert ensemble is not None, "where only people are asked, no conversation waits for a judge"

    # votes are stored inside the span: whoever finds the span of a killed run finds them, too
    async with live.semaphore, live.tracer.span("ask_runs", kind="role", item=id_) as span:
        votes = await ensemble.votes(
            conversation,
            live.task.question,
            live.stored_votes.get(id_),
        )
        # a failed run is no vote, but is stored as an outcome
        failed = []
        for vote in votes:
            if isinstance(vote, Unanswered):
                failed.append(vote)

        span.outputs([f"{len(votes) - len(failed)} of {len(votes)} runs answered"])
        if failed:
            span.failed(
                f"{len(failed)} runs failed, the first: {failed[0].outcome}: {failed[0].detail}"
            )

        # each run has a question id of its own, by which its vote is found again
        questions = []
        for number in range(len(votes)):
            questions.append(make_run_question(live.task.question, number))

        live.store.put(
            live.cells.of(
                conversation,
                questions,
                votes,
                ensemble.drawn_from,
            )
        )

    # the state is told after the store has the votes
    live.tell(id_, votes)
    live.end(id_)


async def fit_rule(state: JudgeState, runtime: Runtime[JudgeContext]) -> JudgeState:  # noqa: ARG001
    """Fit τ to the thumbs if a precision is wanted, and count the verdicts."""
    live = await get_resources_of_thread(runtime, JudgeWork)
    with live.tracer.span("fit_rule", kind="node") as span:
        tallied = await asyncio.to_thread(live.tallied)
        span.outputs([tallied.rule.in_words()])

    # `fitted` is for thumbs that τ was fitted to, `unseen` for τ on others
    figures = {}
    if tallied.fitted is not None:
        figures["fitted"] = tallied.fitted.as_json
    if tallied.unseen is not None:
        figures["unseen"] = tallied.unseen.as_json

    outcomes = tallied.counts(live.shelf)
    return {
        "rule": tallied.rule.in_words(),
        "figures": figures,
        "outcomes": outcomes,
        "waiting": tallied.waiting,
    }


def needs_review(state: JudgeState) -> str:
    """Return whether people have to decide conversations without agreement, as the next node."""
    return "human_review" if state["waiting"] else "finish"


async def human_review(state: JudgeState, runtime: Runtime[JudgeContext]) -> JudgeState:
    """Interrupt the graph until people answer: resumed with an option for each conversation.

    A resumed node is run again from its beginning, so nothing else is done here.
    """
    question = (await get_resources_of_thread(runtime, JudgeWork)).task.question
    options = [option.text for option in question.options]
    request = {
        "question": question.text,
        "options": options,
        "conversations": state["waiting"],
    }
    return {"given": interrupt(request)}


async def apply_review(state: JudgeState, runtime: Runtime[JudgeContext]) -> JudgeState:
    """Store people's answers; skip those that weren't asked for or are no option."""
    live = await get_resources_of_thread(runtime, JudgeWork)
    question = live.task.question
    waiting = set(state["waiting"])
    options = [option.text for option in question.options]
    # only cases that wait, and only options: a resumed graph may be handed anything
    accepted = {}
    for id_, text in state["given"].items():
        if id_ in waiting and text in options:
            accepted[id_] = text

    with live.tracer.span("apply_review", kind="node", inputs=accepted):
        for id_, text in accepted.items():
            # stored twice: as the verdict's source, and as a label that other commands learn from
            answer = make_person_answer(question, options.index(text))
            about = make_person_question(question)
            live.store.put(
                live.cells.of(
                    live.shelf[id_],
                    [about],
                    [answer],
                    PERSON_RUN_NAME,
                )
            )
            live.store.put(
                [make_label_row(live.run, live.shelf[id_], about.id, text, drawn="doubtful")]
            )

        # verdicts are counted from the store, so the labels have to be in it first
        await live.store.settle()

    tallied = await asyncio.to_thread(live.tallied)
    return {
        "given": {},
        "waiting": tallied.waiting,
        "outcomes": tallied.counts(live.shelf),
    }


def build() -> StateGraph[JudgeState, JudgeContext, JudgeState, JudgeState]:
    """Build the graph, uncompiled; waiting for people needs a checkpointer."""
    # batches of runs first, τ when all votes are in
    graph: StateGraph[JudgeState, JudgeContext, JudgeState, JudgeState] = add_batch_nodes_to_graph(
        StateGraph(JudgeState, context_schema=JudgeContext),
        [ask_runs],
        last=fit_rule,
    )
    graph.add_node("human_review", human_review)
    graph.add_node("apply_review", apply_review)
    graph.add_node("finish", finish, input_schema=JudgeState)

    # people are asked again as long as cases wait
    graph.add_conditional_edges(
        "fit_rule",
        needs_review,
        ["human_review", "finish"],
    )
    graph.add_edge("human_review", "apply_review")
    graph.add_conditional_edges(
        "apply_review",
        needs_review,
        ["human_review", "finish"],
    )
    graph.add_edge("finish", END)

    return graph
