"""Words that go along with the thumbs, proven by halves that mined their own."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from pollex.rubrics.learning.words import (
    MAX_PICKED_PHRASES,
    LogPhrases,
    choose_phrases_differing_between_classes,
)

N = 140
PLANTED = np.arange(N) % 3 == 0


def words_of(rng: np.random.Generator, count: int = 300) -> LogPhrases:
    """Phrases by chance, the first where it was planted, the second nearly there, too, but narrower."""
    present = rng.random((N, count)) < rng.uniform(0.05, 0.4, count)
    present[:, 0] = PLANTED
    present[:, 1] = PLANTED & (rng.random(N) < 0.9)
    return LogPhrases([f"phrase:assistant:{n}" for n in range(count)], csr_matrix(present))


def test_planted_words_are_proven_on_their_side_and_stand_for_narrower_ones() -> None:
    rng = np.random.default_rng(0)
    words = words_of(rng)
    up = rng.random(N) < np.where(PLANTED, 0.1, 0.67)
    proofs = words.proofs(up, np.arange(N), rng)
    assert proofs["phrase:assistant:0", False].p < 0.01
    assert proofs["phrase:assistant:0", False].chosen > 0.9
    assert [key for key, proof in proofs.items() if proof.p < 0.05] == [
        ("phrase:assistant:0", False)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_thumbs_that_mean_nothing_prove_no_word(seed: int) -> None:
    rng = np.random.default_rng(seed)
    proofs = words_of(rng).proofs(rng.random(N) < 0.6, np.arange(N), rng)
    assert all(proof.p > 0.05 for proof in proofs.values())


def test_words_of_one_user_prove_nothing_however_often_they_are_said() -> None:
    rng = np.random.default_rng(0)
    words = words_of(rng)
    up = ~PLANTED
    users = np.where(PLANTED, 0, np.arange(N))
    assert words.proofs(up, users, rng).get(("phrase:assistant:0", False), None) is None or all(
        proof.p > 0.05 for proof in words.proofs(up, users, rng).values()
    )


def test_a_few_phrases_are_picked_none_of_them_twice_and_none_where_thumbs_are_all_alike() -> None:
    rng = np.random.default_rng(1)
    words = words_of(rng)
    picked = choose_phrases_differing_between_classes(
        words.present, rng.random(N) < np.where(PLANTED, 0.1, 0.9)
    )
    assert picked[0] == (0, False)
    assert len({column for column, _ in picked}) == len(picked) <= MAX_PICKED_PHRASES
    assert 1 not in {column for column, _ in picked}
    assert words.proofs(np.ones(N, dtype=bool), np.arange(N), rng) == {}
