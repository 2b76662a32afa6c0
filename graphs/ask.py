"""Asking a role about one conversation, with what it says kept and traced."""

from __future__ import annotations

from collections.abc import Sequence

from pollex.agents.asking import answered, detail_of
from pollex.agents.roles import Extraction, Extractor, Judge
from pollex.conversations.conversation import Conversation
from pollex.errors import PollexError
from pollex.graphs.context import Resources
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.store.rows import extraction_rows


async def ask(
    context: Resources, name: str, judge: Judge, conversation: Conversation, questions: Sequence[Question]
) -> list[Answer | Unanswered]:
    """Ask the judge, store the answers, and record a span called `name`."""
    references = [question.id for question in questions]
    async with (
        context.semaphore,
        context.tracer.span(name, kind="role", item=conversation.id, inputs=references) as span,
    ):
        answers = await answered(judge, conversation, questions, context.secrets)
        failed = [answer for answer in answers if isinstance(answer, Unanswered)]
        span.outputs([f"{len(answers) - len(failed)} answered"])
        if failed:
            span.failed(f"{len(failed)} unanswered, the first: {failed[0].outcome}: {failed[0].detail}")
        # Inside the span, which is written after it: whoever finds the span of a killed run finds the answers, too.
        context.store.put(context.cells.of(conversation, questions, answers, judge.fingerprint))
    return answers


async def extract_from(context: Resources, extractor: Extractor, conversation: Conversation) -> Extraction | Unanswered:
    """Extract from one conversation, store the result, and record a span."""
    async with context.semaphore, context.tracer.span("extract", kind="role", item=conversation.id) as span:
        try:
            found = await extractor.extract(conversation)
        except PollexError:
            raise
        except Exception as error:
            found = Unanswered(
                question_id="", outcome="error", detail=detail_of(error, context.secrets), judge=extractor.name
            )
        if isinstance(found, Extraction):
            span.outputs(reason.id for reason in found.reasons)
        else:
            span.failed(f"{found.outcome}: {found.detail}")
        context.store.put(extraction_rows(context.run, conversation.id, found))
    return found
