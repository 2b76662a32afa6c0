"""Many damaged exports of every tool: each ends in conversations or in words."""

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "formats"))
from test_exchange import DAMAGED, Case, each_damaged, read_damaged

CASES_OF = Counter(case.files[0].partition("/")[0] for case in DAMAGED)


@each_damaged
@pytest.mark.parametrize("count", [20, pytest.param(2_000, marks=pytest.mark.nightly)])
@pytest.mark.timeout(900)
def test_many_damaged_exports_end_in_conversations_or_in_words(
    case: Case, tmp_path: Path, count: int
) -> None:
    """`count` variants of each tool's exports, shared among its cases."""
    share = -(-count // CASES_OF[case.files[0].partition("/")[0]])
    for seed in range(1_000, 1_000 + share):
        read_damaged(case, seed, tmp_path)
