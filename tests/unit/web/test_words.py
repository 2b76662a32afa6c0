"""Durations and code fences as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollex.reports.transcript import Piece
from pollex.web.words import dollars, duration, fences


@pytest.mark.parametrize(
    ("ms", "words"),
    [(820, "820 ms"), (4230, "4.2 s"), (200_000, "3 min 20 s"), (7_500_000, "2 h 5 min"), (None, "unknown")],
)
def test_durations_are_short(ms: float | None, words: str) -> None:
    assert duration(ms).replace("\N{NO-BREAK SPACE}", " ") == words


def test_a_cost_that_is_not_known_is_not_guessed() -> None:
    assert [dollars(amount) for amount in (None, 0.01234, 1234.5)] == ["unknown", "$0.0123", "$1,234.50"]


def test_code_between_fences_is_told_from_prose() -> None:
    cut = fences([Piece("Look:\n```py\nx = "), Piece("1", "sat"), Piece("\n```\nDone")])
    assert [part.code for part in cut] == [False, True, False]
    assert [piece.text for piece in cut[1].pieces] == ["```py", "\nx = ", "1", "\n", "```"]


@given(st.lists(st.text(st.sampled_from("`\na "), max_size=20), max_size=4))
def test_no_character_is_lost_between_prose_and_code(texts: list[str]) -> None:
    pieces = [Piece(text) for text in texts]
    assert "".join(piece.text for part in fences(pieces) for piece in part.pieces) == "".join(texts)
