"""Spans, and looking back at what a run did."""

import asyncio

import pytest

from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation
from pollex.errors import WrongUse
from pollex.rubrics.answers import Answer, Question
from pollex.rubrics.rubric import Rubric
from pollex.store.rows import AnswerRows, make_conversation_rows, make_fact_row, make_rubric_rows
from pollex.store.spans import MAX_ERROR_CHARS, Tracer
from pollex.store.store import Store
from pollex.store.tables import ScoreRow, SpanRow
from pollex.store.traces import (
    SpanBranch,
    build_span_tree,
    collect_conversation_trace,
    find_rubric_provenance,
)


def spans(store: Store) -> list[dict]:
    store.flush()
    return store.rows("SELECT * FROM spans ORDER BY rowid")


async def test_an_error_is_kept_without_the_keys_in_it(store: Store) -> None:
    tracer = Tracer(store, "run", ["hunter2-secret"])
    with pytest.raises(ValueError, match="hunter2"):
        async with tracer.span("judge", kind="role"):
            raise ValueError(
                "hunter2-secret sk-abcdefghijklmnop Bearer abcdef.ghijkl https://me:pw@host/v1?api_key=123456 kept"
            )
    (span,) = spans(store)
    assert span["error"].startswith("ValueError: ")
    assert span["error"].endswith("kept")
    for secret in ("hunter2", "abcdefgh", "abcdef.ghijkl", "me:pw", "123456"):
        assert secret not in span["error"]


async def test_a_cancelled_span_says_so_and_a_long_error_is_cut(store: Store) -> None:
    tracer = Tracer(store, "run")

    async def wait() -> None:
        async with tracer.span("judge", kind="role"):
            await asyncio.sleep(60)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with tracer.span("judge", kind="role") as span:
        span.failed("x" * 10_000)
    assert [row["error"] for row in spans(store)] == ["cancelled", "x" * MAX_ERROR_CHARS]


async def test_tasks_stand_inside_the_span_of_who_made_them_and_not_inside_each_other(
    store: Store,
) -> None:
    tracer = Tracer(store, "run")

    async def one(number: int) -> None:
        async with tracer.span(
            "judge", kind="role", item=f"c{number}", inputs=["r1", "r2"]
        ) as span:
            await asyncio.sleep(0)
            span.outputs(["r1"])

    async with tracer.span("judge_all", kind="node") as node:
        await asyncio.gather(*(one(number) for number in range(3)))
    rows = spans(store)
    assert [row["parent"] for row in rows] == [node.id] * 3 + [None]
    assert rows[0]["inputs"] == '["r1","r2"]'
    assert rows[0]["outputs"] == '["r1"]'
    assert len({row["id"] for row in rows}) == 4


def span(number: str, parent: str | None, name: str, ms: float, error: str = "") -> SpanRow:
    return SpanRow(
        "run", number, parent, name, "role", "", (), (), f"2026-01-01T00:00:0{number}", ms, error
    )


async def test_the_tree_adds_up_what_is_alike_in_each_place(store: Store) -> None:
    await store.write(
        [
            span("3", "1", "judge", 30.0, "late"),
            span("2", "1", "judge", 10.0),
            span("5", "2", "call", 4.0),
            span("6", "3", "call", 5.0, "late"),
            span("4", "1", "extract", 1.0),
            span("1", None, "learn", 50.0),
            span("8", "killed before it ended", "judge", 2.0),
        ]
    )
    calls = SpanBranch("call", "role", count=2, ms=9.0, longest_ms=5.0, errors={"late": 1})
    judged = SpanBranch(
        "judge", "role", count=2, ms=40.0, longest_ms=30.0, errors={"late": 1}, branches=[calls]
    )
    extracted = SpanBranch("extract", "role", count=1, ms=1.0, longest_ms=1.0)
    learnt = SpanBranch(
        "learn", "role", count=1, ms=50.0, longest_ms=50.0, branches=[judged, extracted]
    )
    assert build_span_tree(store, "run") == [
        learnt,
        SpanBranch("judge", "role", count=1, ms=2.0, longest_ms=2.0),
    ]
    assert judged.failed == 1
    assert build_span_tree(store, "another") == []


async def test_a_conversation_shows_everything_that_happened_to_it(
    store: Store,
    conversation: Conversation,
    extraction: Extraction,
    rubric: Rubric,
    question: Question,
    answer: Answer,
) -> None:
    other = conversation.model_copy(update={"id": "other"})
    tracer = Tracer(store, "run")
    for one in (other, conversation):
        store.put(make_conversation_rows("run", [one], side="test"))
        store.put(AnswerRows("run").of(one, [question], [answer], "f"))
        with tracer.span("judge", kind="role", item=one.id, inputs=[rubric.id]) as opened:
            opened.outputs([rubric.id])
    store.put([make_fact_row("run", "extraction", conversation.id, extraction)])
    store.put(make_rubric_rows("run", [rubric, rubric.model_copy(update={"id": "not asked"})]))
    await store.write([ScoreRow("run", conversation.id, 7.5, "positive", True, None)])
    trace = collect_conversation_trace(store, "run", conversation.id)
    assert (trace.conversation, trace.side, trace.extraction) == (conversation, "test", extraction)
    assert (trace.answers, trace.asked) == ({rubric.id: answer}, {rubric.id: rubric.text})
    assert trace.score == ScoreRow("run", conversation.id, 7.5, "positive", True, None)
    (step,) = trace.steps
    assert (step.id, step.inputs, step.outputs) == (opened.id, (rubric.id,), (rubric.id,))


async def test_what_did_not_happen_to_a_conversation_is_missing(
    store: Store, conversation: Conversation
) -> None:
    await store.write(make_conversation_rows("run", [conversation]))
    trace = collect_conversation_trace(store, "run", conversation.id)
    assert (trace.steps, trace.extraction, trace.answers, trace.score) == ((), None, {}, None)
    with pytest.raises(WrongUse, match="used no conversation 'c2'"):
        collect_conversation_trace(store, "run", "c2")


async def test_a_rubric_leads_back_to_its_reasons_and_conversations(
    store: Store, conversation: Conversation, extraction: Extraction, rubric: Rubric
) -> None:
    store.put(
        make_conversation_rows(
            "run", [conversation, conversation.model_copy(update={"id": "other"})]
        )
    )
    store.put([make_fact_row("run", "extraction", conversation.id, extraction)])
    await store.write(make_rubric_rows("run", [rubric]))
    found = find_rubric_provenance(store, "run", rubric.id)
    assert (found.rubric, found.reasons) == (rubric, extraction.reasons)
    assert found.conversations == {conversation.id: conversation}
    with pytest.raises(WrongUse, match="no rubric 'r9'"):
        find_rubric_provenance(store, "run", "r9")
