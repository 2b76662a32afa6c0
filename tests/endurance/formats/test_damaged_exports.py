"""Thousands of damaged exports of every format: each ends in conversations or in words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "formats"))
from test_exchange import Case, each_case, read_damaged

SEEDS = 2_000


@each_case
@pytest.mark.timeout(900)
def test_thousands_of_damaged_exports_end_in_conversations_or_in_words(case: Case, tmp_path: Path) -> None:
    for seed in range(1_000, 1_000 + SEEDS):
        read_damaged(case, seed, tmp_path)
