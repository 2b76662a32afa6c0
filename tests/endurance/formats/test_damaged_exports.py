"""Thousands of damaged exports of every format: each ends in conversations or in words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "formats"))
from test_exchange import Case, each_case, read_damaged


@each_case
@pytest.mark.parametrize("count", [100, pytest.param(2_000, marks=pytest.mark.nightly)])
@pytest.mark.timeout(900)
def test_many_damaged_exports_end_in_conversations_or_in_words(case: Case, tmp_path: Path, count: int) -> None:
    for seed in range(1_000, 1_000 + count):
        read_damaged(case, seed, tmp_path)
