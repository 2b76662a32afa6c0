"""One judge asked about one conversation: traced, and kept."""

from __future__ import annotations

from collections.abc import Sequence

from pollex.agents.answers import Answer, Question, Unanswered
from pollex.agents.roles import Judge
from pollex.conversations.model import Conversation
from pollex.graphs.runtime import Context
from pollex.store.rows import answer_rows


async def ask(
    context: Context, judge: Judge, conversation: Conversation, questions: Sequence[Question]
) -> list[Answer | Unanswered]:
    """The judge's answers, one a question, with a span of their own."""
    with context.tracer.span("judge", kind="role", item=conversation.id, inputs=[q.id for q in questions]) as span:
        answers = await judge.judge(conversation, questions)
        failed = [answer for answer in answers if isinstance(answer, Unanswered)]
        span.outputs([f"{len(answers) - len(failed)} answered"])
        if failed:
            span.failed(f"{len(failed)} unanswered, the first: {failed[0].outcome}: {failed[0].detail}")
    context.store.put(answer_rows(context.run, conversation, questions, answers, judge.fingerprint))
    return answers
