"""`score`: judges SAT and DSAT rubrics in parallel, then computes NetSAT, window and probability.

Where no model is asked, a batch is scored at once: a conversation's two calls would cost more than its answers.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.graph import StateGraph

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.graphs.batches import BatchState, BatchWork, add_batches, ask, on_batch, on_each
from pollex.graphs.context import ConversationIndex, LogContext
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import Polarity
from pollex.rubrics.score import NetSat, ScoreColumns
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
        whole: Scores conversations at once, in their order; None where each is asked about by itself.
        told: Told the scores of each batch that was scored at once.
        scored: Conversations that an earlier session scored.
        known: Conversations that it stored.
    """

    shelf: ConversationIndex
    judge: Judge
    questions: Sequence[Question]
    netsat: NetSat
    answers: dict[str, list[Answer | Unanswered]] = field(default_factory=dict)
    whole: Callable[[Sequence[Conversation]], Awaitable[ScoreColumns]] | None = None
    told: Callable[[ScoreColumns], None] = lambda _scores: None
    scored: Collection[str] = ()
    known: Collection[str] = ()

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

    def settle(self, scores: ScoreColumns) -> None:
        """Settle conversations that have a score."""
        for id_, outcome in zip(scores.ids, scores.column("outcome"), strict=True):
            self.end(id_, outcome)


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
    new = [row for row, one in enumerate(batch) if one.id not in live.scored]
    if new:
        about, own = [batch[row] for row in new], scores if len(new) == len(batch) else scores.take(new)
        live.store.put(conversation_rows(live.run, [one for one in about if one.id not in live.known]))
        live.store.put([live.cells.block(about, live.questions, own.answers, live.judge.fingerprint)])
        live.store.put([score_block(live.run, own)])
    live.settle(scores)
    await live.store.settle()
    live.told(scores)


def build() -> StateGraph[Any, Any, Any, Any]:
    """Build the graph, uncompiled."""
    return add_batches(StateGraph(BatchState, context_schema=ScoreContext), [judge_sat, judge_dsat], [compute_netsat])
