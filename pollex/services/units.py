"""The unit of work of scoring without a model: a batch of conversations in, a batch of scores or rows out.

    scorer = UnitScorer(rubric_set)              # picklable: a worker process gets it once
    scores = scorer.scores(conversations)
    rows = scorer.rows(conversations)            # as they stand in the file that `pollex score` writes

What comes out for a conversation depends on nothing but that conversation: not on the batch, the process or the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import evidence_of
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation, Turn
from pollex.formats.scores import rows
from pollex.graphs.ask import answered
from pollex.rubrics.answers import Answer, Unanswered
from pollex.rubrics.judge_settings import DEFAULT_MODEL
from pollex.rubrics.netsat import NetSat, Score
from pollex.rubrics.rubric import DISTILLED
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.thumb_model import judges_wanted
from pollex.services.event_loop import complete
from pollex.services.judging import embedded_judge

VECTORS = 20_000
"""Vectors kept from unit to unit: 30 MB of the bundled model's, however long the log."""


class UnitScorer:
    """Scores batches of conversations with a set whose judge needs no model; picklable.

    Args:
        judges: Annotators whose own probabilities are wanted; `all` for all.
        costs: Of a bad conversation taken for good, and of a good one taken for bad.
        embedding_model: That of the set's judge, if it isn't the bundled one.
    """

    def __init__(
        self,
        rubrics: RubricSet,
        judges: Sequence[str] = (),
        costs: tuple[float, float] = (1.0, 1.0),
        embedding_model: str = DEFAULT_MODEL,
    ) -> None:
        self.rubrics, self.costs, self.embedding_model = rubrics, costs, embedding_model
        self.judges = judges_wanted(rubrics.thumb_model, judges) if judges else ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without what can be built again where the work is done."""
        return type(self), (self.rubrics, self.judges, self.costs, self.embedding_model)

    @cached_property
    def judge(self) -> Judge:
        """The set's judge, built when it is first asked."""
        judge = embedded_judge(self.rubrics, None, self.embedding_model)
        if isinstance(judge, EmbeddedJudge):
            judge.remembered = 1  # it is asked about all rubrics at once
            judge.embedder.remembered = VECTORS
        return judge

    @property
    def reads_vectors(self) -> bool:
        """Whether a rubric is judged by the likeness of vectors."""
        own = (rubric for rubric in self.rubrics.rubrics if rubric.answered_by != DISTILLED)
        return any(evidence_of(rubric, Embedder()).vectors for rubric in own)

    @cached_property
    def netsat(self) -> NetSat:
        """What turns answers into scores, built when it is first needed."""
        return self.rubrics.scorer_of(self.costs)

    def scores(self, conversations: Sequence[Conversation]) -> list[Score]:
        """Score conversations, in their order; ids are unique among them. An error is the outcome of one alone."""
        return complete(self.ascores(conversations))

    async def ascores(self, conversations: Sequence[Conversation]) -> list[Score]:
        """Score conversations; see `scores`."""
        return self.netsat.score_all(await self._answers(conversations), self.judges)

    def rows(self, conversations: Sequence[Conversation]) -> list[dict[str, Any]]:
        """Score conversations; return rows as in the file that `pollex score` writes."""
        return list(rows(self.scores(conversations), self.rubrics, self.judges))

    async def _answers(self, conversations: Sequence[Conversation]) -> dict[str, list[Answer | Unanswered]]:
        await self.judge.prepare(conversations)
        questions = self.rubrics.questions
        return {one.id: await answered(self.judge, one, questions) for one in conversations}


TURN = ("role", "content", "calls", "result")


def packed_turns(conversations: Sequence[Conversation]) -> list[Any]:
    """Return what a judge reads of conversations, in a form that travels quickly."""
    return [
        (one.id, one.flags, [(turn.role, turn.content, turn.calls, turn.result) for turn in one.turns])
        for one in conversations
    ]


def unpacked_turns(given: Sequence[Any]) -> list[Conversation]:
    """Return the conversations of `packed_turns`."""
    return [
        Conversation.model_construct(
            id=id_,
            flags=flags,
            turns=tuple(Turn.model_construct(**dict(zip(TURN, turn, strict=True))) for turn in turns),
        )
        for id_, flags, turns in given
    ]


def packed_scores(scores: Sequence[Score]) -> list[Any]:
    """Return scores in a form that travels quickly."""
    return [(_values(score), [(type(one), _values(one)) for one in score.answers]) for score in scores]


def unpacked_scores(given: Sequence[Any]) -> list[Score]:
    """Return the scores of `packed_scores`."""
    return [
        Score.model_construct(**fields | {"answers": tuple(kind.model_construct(**values) for kind, values in answers)})
        for fields, answers in given
    ]


def _values(one: BaseModel) -> dict[str, Any]:
    return {name: value for name, value in one.__dict__.items() if name != "answers"}
