"""Further signals beside the label: each from a field of its own, shown and never summed."""

from typing import Any

import numpy as np

from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_rows
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


def test_a_signal_is_told_as_a_ratio_with_its_shares() -> None:
    held = np.arange(50) < 20
    happened = np.isin(np.arange(50), [0, 1, 2, 3, 4, 5, 6, 7, 20, 21, 22, 23, 24, 25])
    told = signal_in_words(signal_share("retried:down", held, happened))
    assert told == "also 2.0 times as many “retried”: 40 % of 20, 20 % of 30 elsewhere"
    assert signal_in_words(signal_share("stars", ~held & held, happened)) == ""
