"""The unit of work of scoring: what comes out doesn't depend on how the work is cut."""

import pickle
from pathlib import Path

from small_runs import Learnt, Pollex

from pollex.conversations.conversation import Conversation, ToolCall, ToolResult, Turn
from pollex.formats.read_logs import read_logs
from pollex.formats.scores import rows
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import ScoreColumns
from pollex.services.scorer import BatchScorer, packed_turns, unpacked_turns


def test_rows_are_the_same_whatever_the_batch_and_after_a_journey_to_another_process(learnt: Learnt) -> None:
    conversations = list(read_logs(learnt.log))[:24]
    scorer = BatchScorer(RubricSet.load(learnt.rubrics))
    whole = list(rows(scorer.scores(conversations), scorer.rubrics))
    assert len({row["id"] for row in whole}) == 24
    assert any(row["netsat"] is not None for row in whole)
    travelled = pickle.loads(pickle.dumps(scorer))
    for size in (1, 7):
        parts = [travelled.scores(conversations[start : start + size]) for start in range(0, 24, size)]
        assert [row for part in parts for row in rows(part, scorer.rubrics)] == whole
        assert list(rows(pickle.loads(pickle.dumps(ScoreColumns.joined(parts))), scorer.rubrics)) == whole


def test_calls_of_tools_and_their_results_travel_with_their_turns() -> None:
    call = ToolCall(name="book", arguments='{"n": 2}', id="1")
    turns = (
        Turn(role="assistant", content=call.mark, calls=(call,)),
        Turn(role="tool", content="no room", result=ToolResult(id="1", error="full")),
    )
    (travelled,) = unpacked_turns(packed_turns([Conversation(id="c", turns=turns)]))
    assert travelled.turns == turns
    assert travelled.text_hash == Conversation(id="c", turns=turns).text_hash


def test_a_resume_writes_the_same_decisions_and_annotators_as_before(
    learnt: Learnt, store: Path, pollex: Pollex, tmp_path: Path
) -> None:
    arguments = ("score", learnt.log, "--rubrics", learnt.rubrics, "--store", store, "--set", "costs=1:9")
    assert pollex(*arguments, "--out", "first.jsonl").code == 0
    assert pollex(*arguments, "--out", "again.jsonl", "--resume").code == 0
    assert (tmp_path / "first.jsonl").read_bytes() == (tmp_path / "again.jsonl").read_bytes()
