"""Gaps that are filled with what is expected: rows with the same gaps go together."""

import numpy as np
import pytest

from pollex.calibration.features import Gaussian
from pollex.measures.arrays import Floats

COLUMNS = 19


def gaussian() -> Gaussian:
    """Columns that go with each other."""
    drawn = np.random.default_rng(0).normal(size=(COLUMNS, COLUMNS))
    return Gaussian(np.arange(COLUMNS) / 10.0, drawn @ drawn.T + np.eye(COLUMNS))


def rows_with_gaps() -> Floats:
    """Some rows have none, some differ in the last column alone, and every pattern comes twice."""
    rng = np.random.default_rng(1)
    gaps = rng.uniform(size=(20, COLUMNS)) < 0.3
    gaps[:3] = False
    gaps[1, -1] = gaps[4, -1] = True
    gaps[5] = gaps[4]
    gaps[5, -1] = False
    rows = rng.normal(size=(2 * len(gaps), COLUMNS))
    rows[np.concatenate([gaps, gaps[::-1]])] = np.nan
    return rows


def test_a_row_is_filled_among_others_as_it_is_alone() -> None:
    rows = rows_with_gaps()
    together = gaussian().filled(rows)
    alone = np.concatenate([gaussian().filled(row[None]).rows for row in rows])
    assert not np.isnan(together.rows).any()
    np.testing.assert_allclose(together.rows, alone, rtol=1e-12)


def test_rows_share_a_pattern_exactly_where_their_gaps_are_the_same() -> None:
    gaps = np.isnan(rows_with_gaps())
    pattern = gaussian().filled(rows_with_gaps()).pattern
    np.testing.assert_array_equal(pattern[:, None] == pattern, (gaps[:, None] == gaps).all(axis=2))


@pytest.mark.parametrize("shape", [(3, 0), (0, 3)])
def test_no_rows_and_no_columns_have_nothing_to_fill(shape: tuple[int, int]) -> None:
    filled = Gaussian(np.zeros(shape[1]), np.eye(shape[1])).filled(np.zeros(shape))
    assert filled.rows.shape == shape
    assert filled.pattern.shape == shape[:1]
