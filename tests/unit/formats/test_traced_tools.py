"""Exports of tracing tools: each kind holds the same three conversations, and is read to them."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from traced import SETS
from traced.talks import COMMENTS, LABELS, Files, expected

from pollex.conversations.logs import Logs
from pollex.errors import BadInput
from pollex.formats.log_shapes.spans import turns_of_event
from pollex.formats.read_logs import read_logs


def written(files: Files, folder: Path) -> list[Path]:
    for name, rows in files.items():
        path = folder / name
        if path.suffix == ".json":
            path.write_text(json.dumps(rows), encoding="utf-8")
        elif path.suffix == ".csv":
            with path.open("w", newline="", encoding="utf-8") as file:
                table = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
                table.writeheader()
                table.writerows(
                    {k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()} for row in rows
                )
        else:
            lines = path.with_suffix(".jsonl")
            lines.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            if path.suffix == ".parquet":
                duckdb.execute(f"COPY (FROM read_json('{lines}', sample_size = -1)) TO '{path}'")
                lines.unlink()
    return [folder / name for name in files]


def faults(logs: Logs, lost: frozenset[str] = frozenset()) -> list[str]:
    """What is other than it was said."""
    found, seen = [], []
    for conversation in logs:
        turns = [(turn.role, turn.content) for turn in conversation.turns if turn.role != "system"]
        talk = next((one for one in LABELS if expected(one)[-1] in turns or expected(one)[0] == turns[0]), None)
        if talk is None:
            found.append(f"unknown {conversation.id}: {turns}")
            continue
        seen.append(talk)
        wanted = expected(talk)
        if "calls" in lost:
            wanted, turns = (
                [turn for turn in said if turn[0] != "tool" and "[tool call" not in turn[1]] for said in (wanted, turns)
            )
        if "results" in lost:  # joined by the tool in its own way
            wanted, turns = ([turn for turn in said if turn[0] != "tool"] for said in (wanted, turns))
        if "image" in lost:
            wanted = [(role, words.replace("\n[image]", "")) for role, words in wanted]
        if turns != wanted:
            found.append(f"{talk} has {turns}")
        if conversation.label.value != LABELS[talk]:
            found.append(f"{talk} is {conversation.label.value}")
        if talk in COMMENTS and "comment" not in lost and COMMENTS[talk] not in str(conversation.feedback):
            found.append(f"{talk} has the comment {conversation.feedback}")
    return found + [f"{seen} are there"] * (sorted(seen) != sorted(LABELS))


@pytest.mark.parametrize("name", SETS)
def test_a_kind_of_export_is_read_to_the_conversations_that_went_into_it(name: str, tmp_path: Path) -> None:
    files: dict[str, Any] = dict(SETS[name])
    lost = frozenset(files.pop("lost", ()))
    assert faults(read_logs(written(files, tmp_path)), lost) == []


def test_a_prompt_in_one_text_is_told_by_the_roles_before_its_messages() -> None:
    said = turns_of_event("gen_ai.content.prompt", {"gen_ai.prompt": "system: Be brief.\nuser: Hello,\nuser 7 here"})
    assert [(turn.role, turn.content) for turn in said] == [("system", "Be brief."), ("user", "Hello,\nuser 7 here")]


LISTINGS: dict[str, dict[str, Any]] = {
    "with their bodies": {"request_id": "1", "request_path": "/v1", "signed_body_url": "https://bodies.test/1"},
    "chat-messages": {"id": "1", "user_feedback_stats": {}, "admin_feedback_stats": {}, "message_count": 2},
    "get_spans_dataframe": {"trace_id": "1", "project_id": "p", "start_time": "", "spans": [{"span_id": "2"}]},
    "threads.search": {"thread_id": "1", "checkpoint_id": "2", "checkpoint": {"channel_versions": {"messages": 1}}},
    "trace.to_json": {"trace_id": "1", "trace_metadata": {}, "request_preview": "…", "state": "OK"},
}
"""By a part of the remedy, rows of lists without words."""


@pytest.mark.parametrize("remedy", LISTINGS)
def test_a_list_without_words_is_refused_with_what_to_export_instead(remedy: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=re.escape(remedy)):
        read_logs(written({"list.json": {"data": [LISTINGS[remedy]]}}, tmp_path))
