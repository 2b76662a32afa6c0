"""The order in which labels tell most, as far as people have labeled: see `calibration.active_learning`."""

from __future__ import annotations

import numpy as np

from pollex.calibration.active_learning import rank, vectors_of
from pollex.measures.arrays import Floats, Ints
from pollex.store.labels import THUMB, opinions
from pollex.store.store import Store
from pollex.web.lens import Lens

INFORMATION = "information"
ANEW = 10
"""The order is made anew after so many labels."""

FIRST = 2 * ANEW
"""Conversations that are chosen one after another, so that they are unlike each other."""

QUESTIONS = "SELECT DISTINCT question FROM answers ORDER BY question"
EXPECTED = """
    SELECT conversation, {columns} FROM (
        SELECT conversation, question, arg_max({{'p': probabilities}}, seq) AS said FROM answers
        GROUP BY conversation, question) AS a,
    LATERAL (SELECT list_dot_product(said.p, range(len(said.p))::DOUBLE[]) / nullif(list_sum(said.p), 0) AS expected)
    GROUP BY conversation
"""


def order_of(store: Store, run: str, lens: Lens, sort: str, *, down: bool, waits: bool = True) -> Ints:
    """Return a run's rows sorted by a column, or by how telling a label of each is.

    Args:
        waits: Whether the latest labels have to count; if not, a newer order is made beside, and counts from then on.
    """
    if sort != INFORMATION:
        return lens.order(sort, down=down)
    said = {one.text_hash for one in opinions(store, THUMB)}
    kept = lens.kept if waits else lens.latest
    ranked = kept(INFORMATION, f"{len(said) // ANEW}", lambda: telling(store, run, lens, said))
    rest = np.setdiff1d(np.arange(len(lens)), ranked)
    return np.concatenate([ranked if down else ranked[::-1], rest])


def telling(store: Store, run: str, lens: Lens, said: set[str]) -> Ints:
    """Return the rows that nobody has labeled, the most telling first; those without a probability are none.

    Args:
        said: Hashes of the texts that people have labeled.
    """
    rows = np.flatnonzero(~np.isnan(lens.probability))
    if not len(rows):
        return rows
    p = lens.probability[rows][:, None]
    known = np.array([[lens.hashes[row] in said] for row in rows.tolist()])
    vectors = lens.kept("vectors", "", lambda: vectors_of(answers_of(store, run, lens)))
    return np.asarray(rows[rank(vectors[rows], p * (1 - p), known, FIRST)])


def answers_of(store: Store, run: str, lens: Lens) -> Floats:
    """Return the expected answers `[row, question]`, as places on the scale; NaN without one."""
    questions = [row["question"] for row in store.ask(run, QUESTIONS)]
    if not questions:
        return lens.netsat[:, None]
    columns = ", ".join(f"max(expected) FILTER (question = ?) AS q{place}" for place in range(len(questions)))
    found = np.full((len(lens), len(questions)), np.nan)
    for row in store.ask(run, EXPECTED.format(columns=columns), questions):
        conversation, *expected = row.values()
        if (place := lens.place.get(conversation)) is not None:
            found[place] = [np.nan if value is None else value for value in expected]
    return found
