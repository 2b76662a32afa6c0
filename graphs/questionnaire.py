"""`ask`: asks every question of a questionnaire about each conversation, one question in a call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.graph import StateGraph

from pollex.agents.roles import Judge
from pollex.graphs.batches import BatchState, BatchWork, add_batches, ask, on_each
from pollex.graphs.context import ConversationIndex, LogContext
from pollex.graphs.findings import answers_in_words, first_reason
from pollex.rubrics.answers import Answer, Question, Unanswered


@dataclass(frozen=True, kw_only=True)
class AskContext(LogContext):
    """What the user chose for `ask`: a log, a questionnaire by its name or file, and perhaps a domain profile."""

    questionnaire: str = ""
    domain: str = ""
    samples: int = 0
    require: str = ""


@dataclass(frozen=True, kw_only=True)
class AskWork(BatchWork):
    """The resources of `ask`."""

    shelf: ConversationIndex
    judge: Judge
    questions: Sequence[Question]

    def tell(self, id_: str, answers: Sequence[Answer | Unanswered]) -> None:
        """Tell of a conversation in the state; the worst are those with the surest answers missing."""
        answered = {
            answer.question_id: answer
            for answer in answers
            if isinstance(answer, Answer) and not answer.never_came_up
        }
        means = {
            f"mean option of {question_id}": float(answer.chosen + 1)
            for question_id, answer in answered.items()
        }
        sure = [max(answer.probabilities) for answer in answered.values()]

        def row() -> dict[str, Any]:
            words = answers_in_words(self.questions, answers)
            return {"answers": words, "why": first_reason(answers, texts=self.store.texts)}

        rank = (sum(sure) / len(sure) if sure else 0.0) - (len(answers) - len(answered))
        self.findings.take(id_, row, rank=rank, figures=means)


@on_each(AskWork)
async def ask_questions(live: AskWork, id_: str) -> None:
    """Ask all questions about each conversation of the batch."""
    answers = await ask(live, "ask_questions", live.judge, live.shelf[id_], live.questions)
    live.tell(id_, answers)
    live.end(id_, *map(source_of, answers))


def source_of(answer: Answer | Unanswered) -> str:
    """Return where an answer's probabilities come from, or why there is none."""
    return answer.source if isinstance(answer, Answer) else answer.outcome


def build() -> StateGraph[Any, Any, Any, Any]:
    """Build the graph, uncompiled."""
    return add_batches(StateGraph(BatchState, context_schema=AskContext), [ask_questions])
