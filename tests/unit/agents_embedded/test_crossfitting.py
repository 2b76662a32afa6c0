"""Figures of choices that are made anew without each fold: they know nothing of the labels that measure them."""

import numpy as np
import pytest
from small_logs import small_log

from pollex.agents.embedded.clues import StudiedLog
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import name_rubric_family
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs, flag_positive_labels
from pollex.graphs.context import NullProgress
from pollex.measures.arrays import Bools
from pollex.measures.classification import compute_auc
from pollex.rubrics.learning.choice import find_rubrics_contradicted_out_of_sample
from pollex.rubrics.learning.crossfit import (
    NO_CROSS_FITTED_FIGURES_NOTE,
    Candidates,
    CrossFit,
    cross_fit,
    make_candidates,
)
from pollex.rubrics.learning.material import GivenAnswers, Material
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric import Rubric
from pollex.runs.roles import make_embedded_judge_record

OWN = [Rubric(id=f"own{n}", text=f"Own words {n}.", polarity="dsat") for n in range(3)]
OWN_IDS = [one.id for one in OWN]
EVEN = (0.2,) * 5


@pytest.fixture(scope="module")
def study() -> StudiedLog:
    return StudiedLog(sorted(small_log(60), key=lambda c: (c.text_hash, c.id)), Embedder())


def fitted(study: StudiedLog, up: Bools, seed: int = 0, kept: tuple[Rubric, ...] = ()) -> CrossFit:
    return cross_fit(*laid_out(study, up, seed, kept))


def laid_out(
    study: StudiedLog, up: Bools, seed: int = 0, kept: tuple[Rubric, ...] = ()
) -> tuple[Material, Candidates]:
    labels = (Label.POSITIVE if one else Label.NEGATIVE for one in up)
    log: list[Conversation] = [
        one.model_copy(update={"label": label})
        for one, label in zip(study.conversations, labels, strict=True)
    ]
    material = Material(
        logs=Logs(log),
        training=tuple(log),
        held_out=(),
        settings=LearnSettings(seed=seed),
        judge_record=make_embedded_judge_record(Embedder()),
        table=GivenAnswers(
            "expected", distributions={one.id: dict.fromkeys(OWN_IDS, EVEN) for one in log}
        ),
        progress=NullProgress(),
        family_of=name_rubric_family,
        make=lambda _, rows: study.made(up, rows),
        kept=kept,
    )
    pool = make_candidates(study.made(up, np.ones(len(up), dtype=bool)), log, "expected")
    return material, pool


def test_labels_that_mean_something_are_ranked_by_rubrics_that_did_not_see_them(
    study: StudiedLog,
) -> None:
    up = flag_positive_labels(study.conversations)
    fit = fitted(study, up)
    assert compute_auc(fit.above, up) > 0.9
    part = fit.parts[0]
    again = study.made(np.where(part.labeled_out, ~up, up), ~part.labeled_out)
    assert [one.source for one in again.rubrics] == [one.source for one in part.made.rubrics]
    assert np.array_equal(again.answers, part.made.answers), (
        "a fold's own labels change nothing of its scores"
    )


def test_labels_that_mean_nothing_are_ranked_as_by_guessing(study: StudiedLog) -> None:
    """Pools, sides and scales that saw the labels of a fold would rank it better than that."""
    reached = []
    for seed in range(3):
        up = np.random.default_rng(seed).permutation(flag_positive_labels(study.conversations))
        reached.append(compute_auc(fitted(study, up, seed).above, up))
    error = np.std(reached, ddof=1) / len(reached) ** 0.5
    assert np.mean(reached) < 0.5 + 2 * error


def test_folds_choose_from_what_people_left_in_the_pool_and_their_own_rubrics(
    study: StudiedLog,
) -> None:
    up = flag_positive_labels(study.conversations)
    [left, *_] = study.made(up, np.ones(len(up), dtype=bool)).rubrics
    for part in fitted(study, up, kept=(left, *OWN)).parts:
        assert [one.id for one in part.made.rubrics if one.source != left.source] == OWN_IDS
        assert part.weighed.families[-3:] == OWN_IDS, "nothing but their words is known of them"
        assert part.fold.answers.shape == (len(up), len(part.chosen), 5)
    none = fitted(study, up, kept=(left.model_copy(update={"source": "signal:unheard"}),))
    assert (none.parts, none.notes) == ([], [NO_CROSS_FITTED_FIGURES_NOTE])


def test_rubrics_that_went_the_other_way_are_found_by_folds_that_chose_them_and_one_stays(
    study: StudiedLog,
) -> None:
    up = np.random.default_rng(0).permutation(flag_positive_labels(study.conversations))
    material, pool = laid_out(study, up)
    fit = cross_fit(material, pool)
    every = np.arange(len(pool.rubrics))
    turned = find_rubrics_contradicted_out_of_sample(fit, pool, every)
    held, known = fit.held_of(pool.rubrics)
    assert 0 < len(turned) < len(every)
    for column in turned.tolist():
        rows = known[:, column]
        there, elsewhere = (up[rows & mine].mean() for mine in (held[:, column], ~held[:, column]))
        assert there < elsewhere if pool.rubrics[column].polarity == "sat" else there > elsewhere
    assert (
        find_rubrics_contradicted_out_of_sample(fit, pool, turned).tolist() == turned[1:].tolist()
    )
