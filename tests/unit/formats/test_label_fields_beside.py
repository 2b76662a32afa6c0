"""Further signals beside the label: each from a field of its own, shown and never summed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs, read_rows
from pollex.rubrics.worth import signal_in_words, signal_share

TURNS = [{"role": "user", "content": "Friday, please."}, {"role": "assistant", "content": "Booked for Saturday."}]


def test_the_label_is_one_and_others_are_kept_apart() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "thumb": "up", "retried": True, "stars": 2},
        {"id": "b", "thumb": "down", "retried": 0, "stars": 5, "used": {"copied": "yes"}},
        {"id": "c", "thumb": "up", "retried": 3, "stars": None},
    ]
    signals = ("retried:down", "stars", "used.copied:up")
    options = ReadOptions(label_field="thumb", signals=signals)
    found = list(read_rows([{"messages": TURNS, **row} for row in rows], options=options))
    assert [one.label.value for one in found] == ["positive", "negative", "positive"]
    assert [one.signals for one in found] == [
        {"retried:down": True, "stars": True},
        {"retried:down": False, "stars": False, "used.copied:up": True},
        {"retried:down": True},
    ]


def test_a_value_that_tells_nothing_is_told_with_file_and_line_and_a_field_that_is_not_there_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{"id": str(n), "messages": TURNS, "thumb": "up", "retried": value} for n, value in enumerate([True, "hm"])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    logs = read_logs(path, options=ReadOptions(label_field="thumb", signals=("retried:down",)))
    assert [one.signals for one in logs] == [{"retried:down": True}, {}]
    assert f"a value of 'retried' is neither yes nor no, and was left out: {path}:2" in logs.notes
    with pytest.raises(BadInput, match="no row has the field of label_field='copied'"):
        read_logs(path, options=ReadOptions(label_field="thumb", signals=("copied:up",)))


def test_scores_of_an_export_are_signals_beside_its_thumb(tmp_path: Path) -> None:
    trace = {"id": "t", "sessionId": "a", "timestamp": "2026-01-01T00:00:00Z", "input": "Hello", "output": "Good day"}
    rows: list[dict[str, Any]] = [{**trace, "bookmarked": False, "public": False}]
    told = {"source": "API", "dataType": "NUMERIC", "traceId": "t"}
    rows += [
        {**told, "id": "1", "name": "user-feedback", "value": 1},
        {**told, "id": "2", "name": "retried", "value": 1},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (one,) = read_logs(path, options=ReadOptions(signals=("retried:down",)))
    assert (one.label.value, one.signals) == ("positive", {"retried:down": True})


def test_a_signal_is_told_as_a_ratio_with_its_shares() -> None:
    held = np.arange(50) < 20
    happened = np.isin(np.arange(50), [0, 1, 2, 3, 4, 5, 6, 7, 20, 21, 22, 23, 24, 25])
    told = signal_in_words(signal_share("retried:down", held, happened))
    assert told == "also 2.0 times as many “retried”: 40 % of 20, 20 % of 30 elsewhere"
    assert signal_in_words(signal_share("stars", ~held & held, happened)) == ""
