"""Figures of choices that are made anew without each fold: they know nothing of the labels that measure them."""

import numpy as np
import pytest
from small_logs import small_log

from pollex.agents.embedded.clues import StudiedLog
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import family_of
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs, positives
from pollex.graphs.context import NullProgress
from pollex.measures.arrays import Bools
from pollex.measures.classification import auc
from pollex.rubrics.learning.crossfit import Candidates, CrossFit, cross_fit
from pollex.rubrics.learning.material import GivenAnswers, Material
from pollex.rubrics.learning.settings import LearnSettings
from pollex.services.roles import embedded_record


@pytest.fixture(scope="module")
def study() -> StudiedLog:
    return StudiedLog(sorted(small_log(60), key=lambda c: (c.text_hash, c.id)), Embedder())


def fitted(study: StudiedLog, up: Bools, seed: int = 0) -> CrossFit:
    labels = (Label.POSITIVE if one else Label.NEGATIVE for one in up)
    log: list[Conversation] = [
        one.model_copy(update={"label": label}) for one, label in zip(study.conversations, labels, strict=True)
    ]
    material = Material(
        logs=Logs(log),
        training=tuple(log),
        held_out=(),
        settings=LearnSettings(seed=seed),
        judge_record=embedded_record(Embedder()),
        table=GivenAnswers("expected"),
        progress=NullProgress(),
        family_of=family_of,
        make=lambda _, rows: study.made(up, rows),
    )
    return cross_fit(material, Candidates(log, [], np.zeros((len(log), 0)), np.zeros((len(log), 0), dtype=bool), {}))


def test_labels_that_mean_something_are_ranked_by_rubrics_that_did_not_see_them(study: StudiedLog) -> None:
    up = positives(study.conversations)
    fit = fitted(study, up)
    assert auc(fit.above, up) > 0.9
    part = fit.parts[0]
    again = study.made(np.where(part.labeled_out, ~up, up), ~part.labeled_out)
    assert [one.source for one in again.rubrics] == [one.source for one in part.made.rubrics]
    assert np.array_equal(again.answers, part.made.answers), "a fold's own labels change nothing of its scores"


def test_labels_that_mean_nothing_are_ranked_as_by_guessing(study: StudiedLog) -> None:
    """Pools, sides and scales that saw the labels of a fold would rank it better than that."""
    reached = []
    for seed in range(3):
        up = np.random.default_rng(seed).permutation(positives(study.conversations))
        reached.append(auc(fitted(study, up, seed).above, up))
    error = np.std(reached, ddof=1) / len(reached) ** 0.5
    assert np.mean(reached) < 0.5 + 2 * error
