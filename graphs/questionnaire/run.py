"""Runs of `ask`: begin or resume one, and read its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.graphs.context import ConversationIndex
from pollex.graphs.run import RunSettings, carry_out, digest, kept_ids, running
from pollex.graphs.score.run import PORTION
from pollex.rubrics.answers import Answer, Outcome, Question, Unanswered, retryable
from pollex.store.resume import answers_of, step
from pollex.store.rows import conversation_rows
from pollex.store.store import Store

SHEET = "questionnaire"
"""Name of the step that keeps the questions."""

Answers = Mapping[str, Answer | Unanswered]


@dataclass(frozen=True)
class Asked:
    """The result of a run.

    Attributes:
        outcomes: Answers by where their probabilities come from (`logprobs`, `sampled`, `point`), or why there is none.
    """

    run: str
    outcomes: dict[str, int]


async def ask_all(
    conversations: Sequence[Conversation],
    questions: Sequence[Question],
    *,
    judge: Judge,
    data_fingerprint: str,
    setting: RunSettings,
) -> Asked:
    """Ask all questions about each conversation; `sheets_of` reads the answers.

    Raises:
        ResumeRefused: The run to resume was started with other settings.
    """
    from pollex.graphs.questionnaire.graph import AskContext, AskWork, build, source_of  # LangGraph takes a while

    kept = [one.model_dump(mode="json") for one in questions]
    fingerprint = {"data": data_fingerprint[:12], "questionnaire": digest(kept), "judge": judge.fingerprint}
    store = setting.store
    async with running("ask", fingerprint, setting, [judge.name]) as run:
        known = kept_ids(store, run.id)
        await store.write(conversation_rows(run.id, [one for one in conversations if one.id not in known]))
        await store.write_step(run.id, SHEET, {"questions": kept})
        done = {
            one.id: found
            for one, found in sheets_of(store, run.id, conversations)
            if _settled(found, questions, setting.retry_outcomes)
        }
        live = AskWork(
            **setting.of_run(run.id),
            stage="ask",
            total=len(conversations),
            pending={one.id: None for one in conversations if one.id not in done},
            outcomes=Counter(source_of(one) for found in done.values() for one in found.values()),
            fine=frozenset({"logprobs", "sampled", "point"}),
            workers=[judge.name],
            shelf=ConversationIndex(conversations),
            judge=judge,
            questions=questions,
        )
        state = await carry_out(build(), live, AskContext.of(setting.arguments))
    return Asked(run.id, state["outcomes"])


def sheets_of(store: Store, run: str, conversations: Sequence[Conversation]) -> Iterator[tuple[Conversation, Answers]]:
    """Yield each conversation with its answers by question, read in portions."""
    for start in range(0, len(conversations), PORTION):
        portion = conversations[start : start + PORTION]
        answers = answers_of(store, run, ids=[one.id for one in portion])
        yield from ((one, answers.get(one.id, {})) for one in portion)


def asked_in(store: Store, run: str) -> dict[str, Question]:
    """Return the questions of a run of `ask`, by their ids."""
    kept = step(store, run, SHEET)
    found = [Question.model_validate(one) for one in kept["questions"]] if kept else []
    return {one.id: one for one in found}


def _settled(found: Answers, questions: Sequence[Question], retry_outcomes: Collection[Outcome]) -> bool:
    answers = [found.get(question.id) for question in questions]
    return all(answer is not None and not retryable(answer, retry_outcomes) for answer in answers)
