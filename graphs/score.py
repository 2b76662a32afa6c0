"""`score`: judges SAT and DSAT rubrics in parallel, then computes NetSAT, window and probability.

Where no model is asked, a batch is scored at once: a conversation's two calls would cost more than
its answers.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langgraph.graph import StateGraph

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.graphs.batches import BatchState, BatchWork, add_batches, ask, on_batch, on_each
from pollex.graphs.context import ConversationIndex, LogContext
from pollex.graphs.findings import ANSWERS, in_short
from pollex.rubrics.answers import NEUTRAL, Answer, Question, Unanswered
from pollex.rubrics.rubric import Polarity, Rubric
from pollex.rubrics.score import NetSat, Score, ScoreColumns
from pollex.store.rows import conversation_rows, score_block


@dataclass(frozen=True, kw_only=True)
class ScoreContext(LogContext):
    """What the user chose for `score`.

    Attributes:
        rubrics: A rubric set: its file, the run that made it, or its digest; `cascade` likewise.
        judges: Annotators whose own probabilities are wanted.
    """

    rubrics: str = ""
    cascade: str = ""
    judges: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ScoreWork(BatchWork):
    """The resources of `score`.

    Attributes:
        answers: Answers of the batch, by conversation; emptied with each batch.
        whole: Scores conversations at once, in their order; None where each is asked about by
            itself.
        report: Called with the scores of each batch that was scored at once.
        scored: Conversations that an earlier session scored.
        stored_ids: Conversations that it stored.
    """

    shelf: ConversationIndex
    judge: Judge
    questions: Sequence[Question]
    netsat: NetSat
    answers: dict[str, list[Answer | Unanswered]] = field(default_factory=dict)
    whole: Callable[[Sequence[Conversation]], Awaitable[ScoreColumns]] | None = None
    report: Callable[[ScoreColumns], None] = lambda _scores: None
    scored: Collection[str] = ()
    stored_ids: Collection[str] = ()

    async def prepare(self, batch: Sequence[str]) -> None:
        """Have the judge prepare, where it is asked."""
        if self.whole is None:
            await self.judge.prepare([self.shelf[id_] for id_ in batch])

    async def ask(self, polarity: Polarity, id_: str) -> None:
        """Ask about one conversation, and keep the answers until it is scored."""
        questions = [q for q in self.questions if q.rubric and q.rubric.polarity == polarity]
        if questions and self.whole is None:
            answers = await ask(self, f"judge_{polarity}", self.judge, self.shelf[id_], questions)
            self.answers.setdefault(id_, []).extend(answers)

    def shown(
        self, scores: ScoreColumns, place: int, rubrics: Mapping[str, Rubric]
    ) -> dict[str, Any]:
        """Return what the state tells of one of several scores."""
        return score_in_short(scores[place], rubrics, self.netsat)

    def settle(self, scores: ScoreColumns) -> None:
        """Settle conversations that have a score, and tell of them in the state."""
        texts = {q.id: q.rubric for q in self.questions if q.rubric}
        columns = (scores.column(name) for name in ("netsat", "probability", "outcome"))
        for place, (id_, netsat, probability, outcome) in enumerate(
            zip(scores.ids, *columns, strict=True)
        ):
            worse_first = probability if probability is not None else netsat
            self.findings.take(
                id_,
                partial(self.shown, scores, place, texts),
                rank=worse_first,
                figures={"netsat": netsat, "probability": probability},
            )
            self.end(id_, outcome)


def score_in_short(score: Score, rubrics: Mapping[str, Rubric], netsat: NetSat) -> dict[str, Any]:
    """Return what a state tells of a score: figures, each rubric's value, and which rubric speaks for it most."""
    # each rubric's value, or why it has none
    values: dict[str, float | str] = {}
    for answer in score.answers:
        values[answer.question_id] = (
            answer.outcome if isinstance(answer, Unanswered) else round(netsat.counted(answer), 2)
        )

    # For a bad conversation the rubric that lowers the score most, for a good one the one that
    # raises it most.
    why = score.outcome
    pulls = {
        id_: rubrics[id_].sign * (v - NEUTRAL)
        for id_, v in values.items()
        if not isinstance(v, str)
    }
    if pulls:
        most = max(pulls, key=pulls.__getitem__)
        if is_low(score):
            most = min(pulls, key=pulls.__getitem__)
        why = f"{rubrics[most].polarity.upper()} {values[most]:g} of 10: {rubrics[most].text}"
    return {
        "netsat": score.netsat,
        "probability": score.probability,
        "decision": score.decision or score.label,
        "confident": score.confident,
        "outcome": score.outcome,
        "answers": dict(list(values.items())[:ANSWERS]),
        "why": in_short(why),
    }


def is_low(score: Score) -> bool:
    """Tell whether a score says that the conversation went badly."""
    return (score.decision or score.label) == "negative"


@on_each(ScoreWork)
async def judge_sat(live: ScoreWork, id_: str) -> None:
    """Judge each conversation of the batch on the SAT rubrics."""
    await live.ask("sat", id_)


@on_each(ScoreWork)
async def judge_dsat(live: ScoreWork, id_: str) -> None:
    """Judge each conversation of the batch on the DSAT rubrics."""
    await live.ask("dsat", id_)


@on_batch(ScoreWork)
async def compute_netsat(live: ScoreWork, ids: Sequence[str]) -> None:
    """Compute the batch's scores from its answers; where no model is asked, do all of it at once."""
    with live.tracer.span("compute_netsat", kind="node", inputs=ids):
        if live.whole is not None:
            return await score_whole(live, [live.shelf[id_] for id_ in ids])
        scores = live.netsat.score_all({id_: live.answers.pop(id_) for id_ in ids})
        live.store.put([score_block(live.run, scores)])
        live.settle(scores)
    return None


async def score_whole(live: ScoreWork, batch: Sequence[Conversation]) -> None:
    """Score conversations at once, and store their answers with their scores."""
    assert live.whole is not None, "who asks a judge adds its answers up"
    scores = await live.whole(batch)  # also what a killed run has: it is quicker done than read
    # answers and scores of what a killed run had not scored
    new = [row for row, conversation in enumerate(batch) if conversation.id not in live.scored]
    if new:
        about = [batch[row] for row in new]
        new_scores = scores if len(new) == len(batch) else scores.take(new)
        live.store.put(
            conversation_rows(
                live.run,
                [conversation for conversation in about if conversation.id not in live.stored_ids],
            )
        )
        answer_columns = [new_scores.answers]
        if new_scores.tone is not None:
            answer_columns.append(new_scores.tone)
        live.store.put(
            [
                live.cells.block(about, live.questions, answers, live.judge.fingerprint)
                for answers in answer_columns
            ]
        )
        live.store.put([score_block(live.run, new_scores)])
    live.settle(scores)
    await live.store.settle()
    live.report(scores)


def build() -> StateGraph[Any, Any, Any, Any]:
    """Build the graph, uncompiled."""
    return add_batches(
        StateGraph(BatchState, context_schema=ScoreContext),
        [judge_sat, judge_dsat],
        [compute_netsat],
    )
