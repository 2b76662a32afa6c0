"""Documents that an assistant was shown, in the fields of a log's rows, and as a judge sees them."""

from typing import Any

import pytest

from pollex.agents.llm.evidence import collect_evidence_shown_to_judge, cut_texts_to_length
from pollex.conversations.conversation import Conversation, Source
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs_from_rows
from pollex.store.rows import make_conversation_rows, read_conversation_row

TURNS = [
    {"role": "user", "content": "When do trams run?"},
    {"role": "assistant", "content": "Until one [1]."},
]


def read(options: ReadOptions | None = None, **fields: Any) -> Conversation:
    (found,) = read_logs_from_rows([{"id": "a", "messages": TURNS, **fields}], options=options)
    return found


@pytest.mark.parametrize(
    ("fields", "sources"),
    [
        ({"sources": ["Until one."]}, [Source(text="Until one.")]),
        ({"retrieved_contexts": ["A.", "B.", "A."]}, [Source(text="A."), Source(text="B.")]),
        ({"contexts": '["A."]'}, [Source(text="A.")]),
        (
            {"documents": [{"page_content": "A.", "title": "t.md"}]},
            [Source(text="A.", name="t.md")],
        ),
        (
            {"sources": [{"text": "A.", "name": "n", "turn": 1}]},
            [Source(text="A.", name="n", turn=1)],
        ),
        (
            {"retrieved_documents": [[{"document": {"content": "A.", "id": "7"}}]]},
            [Source(text="A.", name="7")],
        ),
        ({"sources": "One text."}, [Source(text="One text.")]),
        ({"documents": "contract.pdf", "sources": []}, []),
        ({"sources": [{"quote": "A."}, 3, None]}, []),
    ],
)
def test_documents_are_found_in_the_fields_that_tools_write(
    fields: Any, sources: list[Source]
) -> None:
    found = read(**fields)
    assert list(found.sources) == sources
    assert bool(found.metadata.keys() & fields.keys()) is not bool(sources), (
        "a field is taken, or left as it is"
    )


DOCUMENTS = [{"page_content": "Trams run until one.", "metadata": {"source": "night.md"}}]
WORDS = {"input": "When do trams run?", "output": "Until one [1]."}
SPAN = {"trace_id": "t", "start_time": "2026-11-02T10:00:00Z", "end_time": "2026-11-02T10:00:01Z"}
LANGSMITH = [
    {
        **SPAN,
        "id": "t",
        "run_type": "chain",
        "inputs": {"input": WORDS["input"]},
        "outputs": {"output": WORDS["output"]},
    },
    {
        **SPAN,
        "id": "r",
        "parent_run_id": "t",
        "run_type": "retriever",
        "inputs": {"query": "trams"},
        "outputs": {"documents": DOCUMENTS},
    },
]
LANGFUSE = [
    {
        "id": "t",
        "timestamp": "2026-11-02T10:00:00Z",
        "projectId": "p",
        "environment": "e",
        **WORDS,
        "observations": [
            {
                "id": "r",
                "type": "RETRIEVER",
                "startTime": "2026-11-02T10:00:00Z",
                "input": "trams",
                "output": DOCUMENTS,
            },
        ],
    },
]
DIFY = [
    {
        "id": "m",
        "conversation_id": "t",
        "query": WORDS["input"],
        "answer": WORDS["output"],
        "created_at": 1795345000,
        "inputs": {},
        "message_files": [],
        "feedback": None,
        "agent_thoughts": [],
        "status": "normal",
        "error": None,
        "retriever_resources": [
            {"position": 1, "document_name": "night.md", "content": "Trams run until one."}
        ],
    },
]


@pytest.mark.parametrize("rows", [LANGSMITH, LANGFUSE, DIFY], ids=["langsmith", "langfuse", "dify"])
def test_what_a_traced_search_found_is_what_the_assistant_was_shown(rows: list[Any]) -> None:
    (found,) = read_logs_from_rows(rows)
    assert [(source.name, source.text) for source in found.sources] == [
        ("night.md", "Trams run until one.")
    ]
    assert [turn.content for turn in found.turns] == [WORDS["input"], WORDS["output"]]


def test_a_column_of_any_name_may_hold_them() -> None:
    found = read(ReadOptions(columns=(("sources", "passages"),)), passages=["A."])
    assert [source.text for source in found.sources] == ["A."]


def test_sources_belong_to_the_text_and_come_back_from_the_store() -> None:
    plain = read()
    found = read(sources=[{"text": "A.", "name": "n", "turn": 1}])
    assert plain.text_hash != found.text_hash
    text, row = make_conversation_rows("r", [found])
    told = (
        vars(row)
        if hasattr(row, "__dict__")
        else {name: getattr(row, name) for name in row.__slots__}
    )
    assert read_conversation_row(told | {"turns": text.turns}).sources == found.sources


def test_a_judge_sees_documents_by_the_numbers_that_replies_cite_and_what_tools_returned_behind_them() -> (
    None
):
    turns = [TURNS[0], {"role": "tool", "content": "23:00 last tram"}, TURNS[1]]
    (found,) = read_logs_from_rows([{"id": "a", "messages": turns, "sources": ["Until one."]}])
    evidence = collect_evidence_shown_to_judge(found, 100)
    assert evidence.without == frozenset()
    assert [item.get("source") for item in evidence.items] == [None, 2, None, 1]
    bare = collect_evidence_shown_to_judge(read(), 100)
    assert (bare.without, [item["i"] for item in bare.items]) == (frozenset({"sources"}), [0, 1])


def test_what_is_over_the_budget_is_cut_and_says_so() -> None:
    assert cut_texts_to_length(["short", "x" * 50, "y" * 50], 25) == [
        {"text": "short"},
        {"text": "x" * 10, "cut": "the first 10 of 50 characters"},
        {"text": "y" * 10, "cut": "the first 10 of 50 characters"},
    ]
    assert cut_texts_to_length(["a", "b"], 2) == [{"text": "a"}, {"text": "b"}]
    assert cut_texts_to_length([], 2) == []
