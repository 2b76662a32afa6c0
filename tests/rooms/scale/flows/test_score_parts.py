"""Scores as a folder of parts: rows are those of `pollex score`, and nothing is done or paid twice."""

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from protocol_server import ProtocolServer
from small_log import row, small_log, write_log
from small_runs import Learnt, Pollex

from pollex.conversations.conversation import Conversation, ToolCall, ToolResult, Turn
from pollex.errors import BadInput, LimitReached, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.places import StoragePath
from pollex.formats.read_logs import read_logs
from pollex.formats.scores import iterate_score_rows
from pollex.gateway.budget import Limits
from pollex.graphs.context import NullProgress
from pollex.rooms.scale.services.score_parts import PartsResult, score_in_parts
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import ScoreColumns
from pollex.runs.options import ModelOptions
from pollex.services.scorer import BatchScorer, pack_turns, unpack_turns

UNIT_BYTES = 3000


def into_parts(log: Path | str, rubrics: Path, out: Path | str, **given: Any) -> PartsResult:
    defaults = {
        "engine": "one",
        "unit_bytes": UNIT_BYTES,
        "reading": ReadOptions(),
        "model": ModelOptions(),
    }
    return score_in_parts(
        str(log), rubrics, out=str(out), progress=NullProgress(), **defaults | given
    )


def rows_of(file: Path) -> list[dict[str, Any]]:
    found = duckdb.read_parquet(str(file))
    return [dict(zip(found.columns, values, strict=True)) for values in found.fetchall()]


def test_rows_are_those_of_one_machine_in_the_order_of_the_input(
    pollex: Pollex, learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    assert (
        pollex(
            "score", learnt.log, "--rubrics", learnt.rubrics, "--out", "s.parquet", "--store", store
        ).code
        == 0
    )
    found = into_parts(learnt.log, learnt.rubrics, tmp_path / "parts")
    assert len(found.parts) > 3
    listed = json.loads((tmp_path / "parts" / "manifest.json").read_text(encoding="utf-8"))["parts"]
    files = [tmp_path / "parts" / part["file"] for part in listed]
    assert [row for file in files for row in rows_of(file)] == rows_of(tmp_path / "s.parquet")


def test_the_share_of_good_ones_is_that_of_one_machine(
    pollex: Pollex, learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    options = ("--rubrics", learnt.rubrics, "--out", "whole.jsonl", "--json", "--store", store)
    whole = pollex("score", learnt.log, *options).last
    parts = into_parts(learnt.log, learnt.rubrics, tmp_path / "parts")
    told = parts.as_json()
    assert told["good"] == pytest.approx(whole["good"])
    assert told["decided_good"] == whole["decided_good"]
    assert any("are good, by the mean" in str(line) for line in parts.told())
    again = into_parts(learnt.log, learnt.rubrics, tmp_path / "parts")
    assert again.there == len(parts.parts)
    assert again.as_json()["good"] == told["good"]


def test_row_groups_of_parquet_are_units_too(learnt: Learnt, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason='pip install "pollex[ray]"')
    log = tmp_path / "log.parquet"
    with duckdb.connect() as database:
        database.execute(
            f"COPY (SELECT * FROM read_json('{learnt.log}')) TO '{log}' (FORMAT parquet, ROW_GROUP_SIZE 2048)"
        )
        rows = database.execute("SELECT count(*) FROM read_parquet(?)", [str(log)]).fetchone()
    found = into_parts(log, learnt.rubrics, tmp_path / "parts")
    assert rows == (found.n,)
    assert [part.source for part in found.parts] == [f"{log} row group 0"]


def test_parquet_without_its_package_names_the_extra(
    learnt: Learnt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (log := tmp_path / "log.parquet").touch()
    with pytest.raises(WrongUse, match="parts of Parquet need a package: pyarrow") as refused:
        into_parts(log, learnt.rubrics, tmp_path / "parts")
    assert refused.value.hint == 'pip install "pollex[ray]"'


def test_a_resume_makes_what_is_missing_and_nothing_else_on_any_file_system(
    learnt: Learnt, tmp_path: Path
) -> None:
    first = into_parts(learnt.log, learnt.rubrics, tmp_path)
    gone = tmp_path / first.parts[1].file
    before = gone.read_bytes()
    gone.unlink()
    again = into_parts(learnt.log, learnt.rubrics, tmp_path)
    assert again.there == len(first.parts) - 1
    assert gone.read_bytes() == before
    assert again.parts == first.parts
    bucket = "memory://bucket/scores"
    found = into_parts(learnt.log, learnt.rubrics, bucket)
    assert {part.file for part in found.parts} | {"manifest.json"} <= set(
        StoragePath.at(bucket).names()
    )
    assert into_parts(learnt.log, learnt.rubrics, bucket).there == len(found.parts)


def test_a_bad_row_is_named_and_stops_nothing(learnt: Learnt, tmp_path: Path) -> None:
    log = tmp_path / "bad.jsonl"
    log.write_text(learnt.log.read_text(encoding="utf-8") + '{"id": broken}\n', encoding="utf-8")
    found = into_parts(log, learnt.rubrics, tmp_path / "parts")
    assert not found.lost
    assert not found.complete
    assert [
        (bad.source.startswith(f"{log} from byte"), "not a JSON line" in bad.reason)
        for bad in found.bad_rows
    ] == [(True, True)]


def test_a_table_of_turns_is_not_cut(learnt: Learnt, tmp_path: Path) -> None:
    turns = [
        {
            "conversation_id": f"c{n:03}",
            "role": role,
            "content": f"{role} says a few words on number {n}",
        }
        for n in range(60)
        for role in ("user", "assistant")
    ]
    found = into_parts(
        write_log(tmp_path / "turns.jsonl", turns), learnt.rubrics, tmp_path / "parts"
    )
    assert (len(found.parts), found.n) == (1, 60)
    log = write_log(
        tmp_path / "one.jsonl", [row("only", ["Please book it.", "It is booked.", "Thanks!"])]
    )
    assert into_parts(log, learnt.rubrics, tmp_path / "one").n == 1, "nor one conversation alone"


def test_an_unknown_engine_or_protocol_is_refused(learnt: Learnt, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="no engine is called"):
        into_parts(learnt.log, learnt.rubrics, tmp_path, engine="spark")
    with pytest.raises(WrongUse, match="no file system"):
        into_parts(learnt.log, learnt.rubrics, "nowhere://bucket/scores")


def test_with_a_model_what_was_paid_for_is_found_by_whoever_takes_the_unit_over(
    pollex: Pollex, tmp_path: Path
) -> None:
    log = write_log(tmp_path / "log.jsonl", small_log()[:20])
    with ProtocolServer(script=[{"do": "attentive"}]) as server:
        learned = pollex(
            *("learn", log, "--rubrics-from", "generic", "--out", "generic.json", "--store", "s"),
            *("--model", "m", "--base-url", server.url, "--test-fraction", "0"),
        )
        assert learned.code in (0, 3), learned.err
        given = {"log": log, "rubrics": tmp_path / "generic.json", "out": tmp_path / "parts"}
        few = ModelOptions(base_url=server.url, limits=Limits(max_calls=7, concurrency=1))
        with pytest.raises(LimitReached):
            into_parts(**given, model=few)
        paid = [
            line for file in (tmp_path / "parts" / "ledger").glob("*.jsonl") for line in file.open()
        ]
        assert len(paid) == 7
        whole = into_parts(**given, model=ModelOptions(base_url=server.url))
        assert whole.outcomes == {"scored": 20}
        asked = 20 * 2  # both sides of each conversation
        assert sum(part.calls for part in whole.parts) + 7 == asked
        assert into_parts(**given, model=ModelOptions(base_url=server.url)).parts == whole.parts


def test_rows_are_the_same_whatever_the_batch_and_after_a_journey_to_another_process(
    learnt: Learnt,
) -> None:
    conversations = list(read_logs(learnt.log))[:24]
    scorer = BatchScorer(RubricSet.load(learnt.rubrics))
    whole = list(iterate_score_rows(scorer.scores(conversations), scorer.rubrics))
    assert len({row["id"] for row in whole}) == 24
    assert any(row["netsat"] is not None for row in whole)
    travelled = pickle.loads(pickle.dumps(scorer))
    for size in (1, 7):
        parts = [
            travelled.scores(conversations[start : start + size]) for start in range(0, 24, size)
        ]
        assert [row for part in parts for row in iterate_score_rows(part, scorer.rubrics)] == whole
        assert (
            list(
                iterate_score_rows(
                    pickle.loads(pickle.dumps(ScoreColumns.joined(parts))), scorer.rubrics
                )
            )
            == whole
        )


def test_calls_of_tools_and_their_results_travel_with_their_turns() -> None:
    call = ToolCall(name="book", arguments='{"n": 2}', id="1")
    turns = (
        Turn(role="assistant", content=call.mark, calls=(call,)),
        Turn(role="tool", content="no room", result=ToolResult(id="1", error="full")),
    )
    (travelled,) = unpack_turns(pack_turns([Conversation(id="c", turns=turns)]))
    assert travelled.turns == turns
    assert travelled.text_hash == Conversation(id="c", turns=turns).text_hash


def test_a_damaged_part_is_made_again_and_somebody_elses_manifest_stays(
    learnt: Learnt, tmp_path: Path
) -> None:
    out = tmp_path / "parts"
    into_parts(learnt.log, learnt.rubrics, out)
    facts = sorted(out.glob(".part-*.json"))
    bad_rows = json.loads(facts[3].read_text()) | {"bad_rows": [{"what": 1}]}
    damages = ["{", "[" * 100_000, "[1]", json.dumps(bad_rows)]
    for file, damage in zip(facts, damages, strict=False):
        file.write_text(damage)
    # a part that was cut off
    cut = sorted(out.glob("part-*.parquet"))[0]
    cut.write_bytes(b"")
    again = into_parts(learnt.log, learnt.rubrics, out)
    assert sum(part.rows for part in again.parts) == len(read_logs(learnt.log))
    assert cut.read_bytes()[-4:] == b"PAR1"

    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "manifest.json").write_text('{"name": "my own"}')
    with pytest.raises(WrongUse, match="did not write"):
        into_parts(learnt.log, learnt.rubrics, mine)
    assert (mine / "manifest.json").read_text() == '{"name": "my own"}'
    with pytest.raises(WrongUse, match="nothing can be written"):
        into_parts(learnt.log, learnt.rubrics, "data:x")


def test_an_archive_that_is_damaged_is_told(learnt: Learnt, tmp_path: Path) -> None:
    (tmp_path / "z.zip").write_bytes(b"no archive")
    with pytest.raises(BadInput, match="can't be opened"):
        into_parts(f"zip://log.jsonl::{tmp_path / 'z.zip'}", learnt.rubrics, tmp_path / "parts")
