"""`score`: judges SAT and DSAT rubrics in parallel, then computes NetSAT, window and probability.

Where no model is asked, a batch is scored at once: a conversation's two calls would cost more than
its answers.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from langgraph.graph import StateGraph

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.graphs.batches import (
    BatchGraph,
    BatchState,
    BatchWork,
    add_batch_nodes_to_graph,
    ask_judge_and_store_answers,
    make_graph_node_of_batch_function,
    make_graph_node_of_item_function,
)
from pollex.graphs.context import ConversationIndex, LogContext
from pollex.graphs.findings import (
    MAX_ANSWERS_SHOWN,
    MAX_REASON_CHARACTERS,
    describe_why_unanswered,
    shorten_question_texts_by_id,
    shorten_text_to_state_line,
)
from pollex.rubrics.answers import MIDDLE_OPTION_VALUE, Answer, Question, Unanswered
from pollex.rubrics.rubric import TONE_SOURCE, Polarity, Rubric
from pollex.rubrics.score import AnswerColumns, NetSat, ScoreColumns
from pollex.store.rows import make_conversation_rows, make_score_block

ANSWERED_AT_ONCE_NOTE = (
    "the built-in judge answers a batch at once: "
    "its answers stand with the scores, after compute_netsat"
)
"""What nodes say that have nothing to do then."""


@dataclass(frozen=True, kw_only=True)
class ScoreContext(LogContext):
    """What the user chose for `score`.

    Attributes:
        rubrics: A rubric set: its file, the run that made it, or its digest; `cascade` likewise.
        judges: Annotators whose own probabilities are wanted.
        embedding_model: Of a set whose built-in judge embeds with another model than the bundled one.
    """

    rubrics: str = ""
    cascade: str = ""
    embedding_model: str = ""
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

    def legend(self) -> dict[str, str]:
        """Return the rubrics' texts by id."""
        return shorten_question_texts_by_id(self.questions)

    @property
    def idle(self) -> frozenset[str]:
        """Where conversations are scored at once, nobody is asked before."""
        if self.whole is None:
            return frozenset()
        return frozenset(("judge_sat", "judge_dsat"))

    async def ask(self, polarity: Polarity, id_: str) -> None:
        """Ask about one conversation, and keep the answers until it is scored."""
        node = f"judge_{polarity}"
        if self.whole is not None:
            self.findings.steps[node] = ANSWERED_AT_ONCE_NOTE
            return

        questions = []
        for q in self.questions:
            if q.rubric and q.rubric.polarity == polarity:
                questions.append(q)

        if questions:
            answers = await ask_judge_and_store_answers(
                self,
                node,
                self.judge,
                self.shelf[id_],
                questions,
            )
            self.answers.setdefault(id_, []).extend(answers)
            self.findings.note(node, id_, partial(self.answers_in_short, answers))

    def answers_in_short(self, answers: Sequence[Answer | Unanswered]) -> dict[str, object]:
        """Return what the state tells of answers before they are a score."""
        why = describe_rubric_contributions(answers, self.rubrics, self.netsat, raised=None)
        return {
            "why": shorten_text_to_state_line(why, MAX_REASON_CHARACTERS),
            "answers": self.values_of(answers),
        }

    def values_of(self, answers: Sequence[Answer | Unanswered]) -> dict[str, float | str]:
        """Return each rubric's value, or why it has none."""
        values: dict[str, float | str] = {}
        for answer in answers[:MAX_ANSWERS_SHOWN]:
            values[answer.question_id] = (
                answer.outcome
                if isinstance(answer, Unanswered)
                else round(self.netsat.counted(answer), 2)
            )

        return values

    @cached_property
    def rubrics(self) -> Mapping[str, Rubric]:
        """The rubrics that are asked about, by id."""
        return {question.id: question.rubric for question in self.questions if question.rubric}

    def shown(self, scores: ScoreColumns, place: int) -> dict[str, object]:
        """Return what the state tells of one of several scores: why, its figures, and the answers."""
        score = scores[place]
        answers = score.answers + (scores.tone.at(place) if scores.tone else ())
        # what raised a score that says good, what lowered one that says bad
        failures = []
        for answer in answers:
            if isinstance(answer, Unanswered):
                failures.append(describe_why_unanswered(answer))

        why = failures[0] if failures else score.outcome
        if score.netsat is not None:
            raised = (score.decision or score.label) != "negative"
            why = describe_rubric_contributions(
                answers,
                self.rubrics,
                self.netsat,
                raised=raised,
            )

        return {
            "why": shorten_text_to_state_line(why, MAX_REASON_CHARACTERS),
            "probability": score.probability,
            "netsat": score.netsat,
            "decision": score.decision or score.label,
            "confident": score.confident,
            "outcome": score.outcome,
            "answers": self.values_of(answers),
        }

    def settle(self, scores: ScoreColumns) -> None:
        """Settle conversations that have a score, and tell of them in the state."""
        columns = (scores.column(name) for name in ("netsat", "probability", "outcome"))
        for place, (id_, netsat, probability, outcome) in enumerate(
            zip(scores.ids, *columns, strict=True)
        ):
            worse_first = probability if probability is not None else netsat
            self.findings.take(
                id_,
                partial(self.shown, scores, place),
                rank=worse_first,
                figures={"netsat": netsat, "probability": probability},
            )
            self.end(id_, outcome)


MAX_ANSWERS_IN_REASON = 3
"""Answers that a reason names."""


def describe_rubric_contributions(
    answers: Sequence[Answer | Unanswered],
    rubrics: Mapping[str, Rubric],
    netsat: NetSat,
    *,
    raised: bool | None,
) -> str:
    """Name the answers that moved a score most, each with the way it points; or why there are none.

    Args:
        raised: Whether those that raised it are wanted, or those that lowered it; None: both.
    """
    columns = AnswerColumns.of((*rubrics, TONE_SOURCE), [answers])
    (row,) = netsat.compute_probability_moves(columns).tolist()
    moves = dict(zip(rubrics, row, strict=False))
    ways = {True: 1.0, False: -1.0}
    strength = {}
    for id_, move in moves.items():
        strength[id_] = abs(move) if raised is None else ways[raised] * move

    strongest = sorted(strength, key=strength.__getitem__, reverse=True)[:MAX_ANSWERS_IN_REASON]
    named = []
    for id_ in strongest:
        if strength[id_] > 0:
            named.append(id_)

    values = {}
    for answer in answers:
        if isinstance(answer, Answer):
            values[answer.question_id] = netsat.counted(answer)

    if not named:
        failed = next(
            (answer for answer in answers if isinstance(answer, Unanswered)),
            None,
        )
        if failed is None:
            return "no answer moved it"
        return describe_why_unanswered(failed)

    descriptions = []
    for id_ in named:
        descriptions.append(
            describe_rubric_contribution(rubrics[id_], values[id_], f"P(up) {moves[id_]:+.2f}")
        )

    return "; ".join(descriptions)


def describe_rubric_contribution(rubric: Rubric, value: float, move: str) -> str:
    """Tell of an answer whether the rubric holds, and by how much that moved the score."""
    holds = "so" if value > MIDDLE_OPTION_VALUE else "not so"
    return f"{rubric.polarity.upper()} {holds} ({value:.1f} of 10, {move}): {rubric.text}"


@make_graph_node_of_item_function(ScoreWork)
async def judge_sat(live: ScoreWork, id_: str) -> None:
    """Judge each conversation of the batch on the SAT rubrics."""
    await live.ask("sat", id_)


@make_graph_node_of_item_function(ScoreWork)
async def judge_dsat(live: ScoreWork, id_: str) -> None:
    """Judge each conversation of the batch on the DSAT rubrics."""
    await live.ask("dsat", id_)


@make_graph_node_of_batch_function(ScoreWork)
async def compute_netsat(live: ScoreWork, ids: Sequence[str]) -> None:
    """Compute the batch's scores from its answers; where no model is asked, do all of it at once."""
    with live.tracer.span("compute_netsat", kind="node", inputs=ids):
        if live.whole is not None:
            return await score_batch_at_once(live, [live.shelf[id_] for id_ in ids])
        scores = live.netsat.score_all({id_: live.answers.pop(id_) for id_ in ids})
        live.store.put([make_score_block(live.run, scores)])
        live.settle(scores)

    return None


async def score_batch_at_once(live: ScoreWork, batch: Sequence[Conversation]) -> None:
    """Score conversations at once, and store their answers with their scores."""
    assert live.whole is not None, "who asks a judge adds its answers up"
    scores = await live.whole(batch)  # also what a killed run has: it is quicker done than read
    # answers and scores of what a killed run had not scored
    new = []
    for row, conversation in enumerate(batch):
        if conversation.id not in live.scored:
            new.append(row)

    if new:
        about = [batch[row] for row in new]
        if len(new) == len(batch):
            new_scores = scores
        else:
            new_scores = scores.take(new)

        new_conversations = []
        for conversation in about:
            if conversation.id not in live.stored_ids:
                new_conversations.append(conversation)

        live.store.put(
            make_conversation_rows(
                live.run,
                new_conversations,
            )
        )
        answer_columns = [new_scores.answers]
        if new_scores.tone is not None:
            answer_columns.append(new_scores.tone)
        blocks = []
        for answers in answer_columns:
            blocks.append(live.cells.block(about, live.questions, answers, live.judge.fingerprint))

        live.store.put(blocks)
        live.store.put([make_score_block(live.run, new_scores)])

    live.settle(scores)
    await live.store.settle()
    live.report(scores)


def build() -> BatchGraph[BatchState, ScoreContext]:
    """Build the graph, uncompiled."""
    return add_batch_nodes_to_graph(
        StateGraph(BatchState, context_schema=ScoreContext),
        [judge_sat, judge_dsat],
        [compute_netsat],
    )
