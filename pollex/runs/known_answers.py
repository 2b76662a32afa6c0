"""What a model answered in earlier runs, and what is left to ask: answers that were paid for are never asked again.

An answer is found by the conversation's text, the question's words and options, and the judge: its
model, prompt and settings. Which other questions were asked in the same call is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pollex.conversations.conversation import Conversation
from pollex.gateway.calls import Call, FailedCall, Outcome, estimate_prompt_tokens
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.resume import StoredAnswerMemory, iterate_conversations
from pollex.store.store import Store

if TYPE_CHECKING:
    from pollex.agents.llm.judge import LlmJudge

LABELED_CONVERSATIONS_QUERY = """
    SELECT id, text_hash FROM conversations WHERE label <> 'none' GROUP BY id, text_hash ORDER BY min(seq)
"""
CONVERSATIONS_FOR_ESTIMATE = 50
"""Conversations that tokens are estimated from."""

CONVERSATIONS_PER_QUERY = 1024

ESTIMATED_TOKENS_PER_ANSWER = 25
"""Tokens of one answer in a judging call: a few words, turns, the option; 73 characters of JSON on the recorded run."""


class UnreachableModelClient:
    """A client for a judge that has nothing to ask: it reaches nobody."""

    async def ask(self, call: Call) -> Outcome:  # noqa: ARG002 - whatever is asked
        """Fail: no endpoint was named for this judge."""
        detail = "not_asked: all answers were known when the run began, so that no model was named"
        return FailedCall(fault="not_asked", detail=detail)


def make_judge_of_known_answers(rubric_set: RubricSet, store: Store) -> LlmJudge | None:
    """Return the set's model as a judge that knows what it answered before, and asks nobody.

    None where the built-in judge answers, or where the set doesn't say what its endpoint could do.
    """
    record = rubric_set.judge
    capabilities = record.options.capabilities
    if record.built_in or capabilities is None:
        return None

    from pollex.agents.llm.asker import PromptAsker  # only sets of a model need it
    from pollex.agents.llm.judge import LlmJudge

    # Nothing is sent, so that the boundary code around data, which the salt makes, is of no
    # consequence.
    salt = b"nothing is sent"
    asker = PromptAsker(
        UnreachableModelClient(),
        capabilities,
        rubric_set.domain,
        record.options,
        salt,
    )
    return LlmJudge(asker, memory=StoredAnswerMemory(store))


def list_questions_of_model(rubric_set: RubricSet) -> list[Question]:
    """Return the questions that the set's model answers; others are for judges without a model."""
    questions: list[Question] = []
    for question in rubric_set.questions:
        if question.rubric and not question.rubric.answered_by:
            questions.append(question)
    return questions


def are_all_answers_known(
    judge: LlmJudge,
    conversations: Iterable[Conversation],
    questions: Sequence[Question],
) -> bool:
    """Tell whether a judge knows the answer to each question about each conversation that can be judged."""
    assert judge.memory is not None, "a judge from memory has one"
    # words and options make a question; which rubric it is of is not looked at
    digests = {question.digest for question in questions}
    scorable = []
    for conversation in conversations:
        if not conversation.not_scorable:
            scorable.append(conversation)

    for start in range(0, len(scorable), CONVERSATIONS_PER_QUERY):
        batch = scorable[start : start + CONVERSATIONS_PER_QUERY]
        remembered = judge.memory.find(
            judge.fingerprint,
            [conversation.text_hash for conversation in batch],
        )
        if any(
            digests - remembered.get(conversation.text_hash, {}).keys() for conversation in batch
        ):
            return False

    return True


def read_answers_by_rubric(
    rubric_set: RubricSet,
    store: Store,
    text_hashes: Sequence[str],
) -> dict[str, dict[str, Answer | Unanswered]]:
    """Return what the set's model answered about texts in any run, by text and rubric."""
    judge = make_judge_of_known_answers(rubric_set, store)
    if judge is None or judge.memory is None:
        return {}

    questions = list_questions_of_model(rubric_set)
    # answers of any run, under the judge's model, prompt and settings
    remembered = judge.memory.find(judge.fingerprint, text_hashes)
    known_answers = {}
    for text_hash, answers in remembered.items():
        known_answers[text_hash] = {
            question.id: answers[question.digest]
            for question in questions
            if question.digest in answers
        }

    return known_answers


@dataclass(frozen=True)
class UnaskedCounts:
    """What a fit asks a model that no answer is known of; tokens are estimates.

    Attributes:
        kept: Answers that are there.
        rubrics: Those that are asked about at least one conversation.
    """

    kept: int
    rubrics: int
    conversations: int
    calls: int
    prompt: int
    completion: int


def count_unasked_questions(store: Store, run: str, rubric_set: RubricSet) -> UnaskedCounts:
    """Count what fitting a set again on a run's conversations asks."""
    rows = store.ask(run, LABELED_CONVERSATIONS_QUERY)
    answers = read_answers_by_rubric(
        rubric_set,
        store,
        [row["text_hash"] for row in rows],
    )
    questions = list_questions_of_model(rubric_set)

    # Each conversation with the questions that nobody has answered about it.
    missing: dict[str, list[Question]] = {}
    for row in rows:
        answered = answers.get(row["text_hash"], {})
        if left := [question for question in questions if question.id not in answered]:
            missing[row["id"]] = left

    # The rubrics of each side are asked in calls of their own.
    calls = sum(len(_list_question_texts_by_polarity(left)) for left in missing.values())
    # tokens are estimated from a sample, for as many conversations as are left
    sample = list(
        iterate_conversations(
            store,
            run,
            ids=list(missing)[:CONVERSATIONS_FOR_ESTIMATE],
        )
    )
    sample_tokens = 0
    for conversation in sample:
        sample_tokens += _estimate_prompt_tokens(conversation, missing[conversation.id])
    answers_left = sum(map(len, missing.values()))

    return UnaskedCounts(
        kept=len(rows) * len(questions) - answers_left,
        rubrics=len({question.id for left in missing.values() for question in left}),
        conversations=len(missing),
        calls=calls,
        prompt=round(sample_tokens * len(missing) / len(sample)) if sample else 0,
        completion=ESTIMATED_TOKENS_PER_ANSWER * answers_left,
    )


def _list_question_texts_by_polarity(questions: Sequence[Question]) -> Mapping[str, list[str]]:
    """Return the texts of each polarity's questions."""
    sides: dict[str, list[str]] = {}
    for question in questions:
        polarity = question.rubric.polarity if question.rubric else ""
        sides.setdefault(polarity, []).append(question.text)
    return sides


def _estimate_prompt_tokens(conversation: Conversation, questions: Sequence[Question]) -> int:
    turns = [turn.shown for turn in conversation.turns]
    sides = _list_question_texts_by_polarity(questions).values()
    # each side reads the conversation anew
    tokens = 0
    for side in sides:
        tokens += estimate_prompt_tokens([{"content": text} for text in (*turns, *side)])
    return tokens
