"""Counts in sentences agree with what stands behind them."""

import pytest

from pollex.text import count


@pytest.mark.parametrize(("n", "said"), [(0, "0 rows are bad"), (1, "1 row is bad"), (2, "2 rows are bad")])
def test_one_is_one_and_all_others_are_many(n: int, said: str) -> None:
    assert f"{count(n, 'row is', 'rows are')} bad" == said
    assert count(n, "run") == {0: "0 runs", 1: "1 run", 2: "2 runs"}[n]
