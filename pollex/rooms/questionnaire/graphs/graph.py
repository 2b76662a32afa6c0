"""`ask`: asks every question of a questionnaire about each conversation, one question in a call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from langgraph.graph import StateGraph

from pollex.agents.roles import Judge
from pollex.graphs.batches import (
    BatchState,
    BatchWork,
    add_batch_nodes_to_graph,
    ask_judge_and_store_answers,
    make_graph_node_of_item_function,
)
from pollex.graphs.context import ConversationIndex, LogContext
from pollex.graphs.findings import (
    MAX_ANSWERS_SHOWN,
    describe_answers_by_question,
    get_first_failure_or_justification,
    shorten_question_texts_by_id,
)
from pollex.rubrics.answers import Answer, Option, Question, Unanswered


@dataclass(frozen=True, kw_only=True)
class AskContext(LogContext):
    """What the user chose for `ask`: a log, a questionnaire by its name or file, and perhaps a domain profile."""

    questionnaire: str = ""
    domain: str = ""
    samples: int = 0
    sources: int = 0
    require: str = ""


@dataclass(frozen=True, kw_only=True)
class AskWork(BatchWork):
    """The resources of `ask`.

    Attributes:
        questions: The last one is the main one.
        skips: Ids of those whose last option says that they don't apply.
        unordered: Ids of those whose options are in no order, and so have no mean.
    """

    shelf: ConversationIndex
    judge: Judge
    questions: Sequence[Question]
    skips: frozenset[str] = frozenset()
    unordered: frozenset[str] = frozenset()

    def legend(self) -> dict[str, str]:
        """Return the questions' texts by id."""
        return shorten_question_texts_by_id(self.questions)

    def tell(self, id_: str, answers: Sequence[Answer | Unanswered]) -> None:
        """Tell of a conversation in the state; the worst are those with the lowest main answer, none at all first.

        Questions that don't apply are named, and are in no mean.
        """
        by_id = {question.id: question for question in self.questions}
        values: dict[str, float] = {}
        sureness: dict[str, float] = {}
        for answer in answers:
            if isinstance(answer, Unanswered) or self.is_skipped(answer):
                continue
            sureness[answer.question_id] = answer.probabilities[answer.chosen]
            if answer.question_id not in self.unordered:
                options = by_id[answer.question_id].options
                shares = self.shares_of(answer)
                expected = 0.0
                for share, option in zip(shares, options, strict=False):
                    expected += share * option.value
                values[answer.question_id] = expected

        main = self.questions[-1].id
        not_answered = any(isinstance(answer, Unanswered) for answer in answers)
        rank = values.get(main, -1.0 if not_answered else None)
        row = partial(self.in_short, answers, values, sureness)
        means = {}
        for question_id, value in values.items():
            means[f"value of {question_id}"] = value

        self.findings.take(id_, row, rank=rank, figures=means)

    def in_short(
        self,
        answers: Sequence[Answer | Unanswered],
        values: Mapping[str, float],
        sureness: Mapping[str, float],
    ) -> dict[str, object]:
        """Return what the state tells of a conversation's answers, that to the main question first."""
        skipped = []
        for answer in answers:
            if self.is_skipped(answer):
                skipped.append(answer)

        applying = []
        for answer in reversed(answers):
            if answer not in skipped:
                applying.append(answer)

        words = describe_answers_by_question(self.questions, applying)
        for question_id, share in sureness.items():
            if question_id in words:
                words[question_id] += f" ({share:.0%})"

        why = get_first_failure_or_justification(applying, texts=self.store.texts)
        return {
            "why": why or self.main_in_words(values, sureness),
            "answers": words,
            "values": {
                id_: round(value, 2) for id_, value in list(values.items())[:MAX_ANSWERS_SHOWN]
            },
            "not_applicable": [answer.question_id for answer in skipped[:MAX_ANSWERS_SHOWN]],
        }

    def main_in_words(self, values: Mapping[str, float], sureness: Mapping[str, float]) -> str:
        """Tell the answer to the main question, and where it is lowest of the others; empty without one.

        An answer of one token has no reason of its own.
        """
        main = self.questions[-1]
        if main.id not in values:
            return ""

        best = max(option.value for option in self.options_of_value(main))
        line = f"{main.id} is {values[main.id]:.1f} of {best:g} in the mean, {sureness[main.id]:.0%} sure"
        # how far each other question is below its own best answer
        below = {}
        for question in self.questions[:-1]:
            if question.id in values:
                most = max(option.value for option in self.options_of_value(question))
                below[question.id] = values[question.id] / most

        if not below:
            return line
        lowest = min(below, key=below.__getitem__)
        return f"{line}; the lowest other answer is {values[lowest]:.1f}, to {lowest}"

    def options_of_value(self, question: Question) -> Sequence[Option]:
        """Return the options of a question that have a value: all but the one for what doesn't apply."""
        return question.options[:-1] if question.id in self.skips else question.options

    def is_skipped(self, answer: Answer | Unanswered) -> bool:
        """Tell whether an answer says that its question doesn't apply."""
        if isinstance(answer, Unanswered):
            return False

        last = len(answer.probabilities) - 1
        return answer.never_came_up or (answer.question_id in self.skips and answer.chosen == last)

    def shares_of(self, answer: Answer) -> list[float]:
        """Return the probabilities of the options that have a value, made to sum to 1."""
        shares = list(answer.probabilities)
        if answer.question_id in self.skips:
            shares = shares[:-1]

        total = sum(shares)
        if total:
            return [share / total for share in shares]
        return shares


@make_graph_node_of_item_function(AskWork)
async def ask_questions(live: AskWork, id_: str) -> None:
    """Ask all questions about each conversation of the batch."""
    answers = await ask_judge_and_store_answers(
        live,
        "ask_questions",
        live.judge,
        live.shelf[id_],
        live.questions,
    )
    live.tell(id_, answers)
    live.end(id_, *map(describe_source, answers))


def describe_source(answer: Answer | Unanswered) -> str:
    """Return where an answer's probabilities come from, or why there is none."""
    if isinstance(answer, Answer):
        return answer.source
    return answer.outcome


def build() -> StateGraph[BatchState, AskContext, BatchState, BatchState]:
    """Build the graph, uncompiled."""
    return add_batch_nodes_to_graph(
        StateGraph(BatchState, context_schema=AskContext),
        [ask_questions],
    )
