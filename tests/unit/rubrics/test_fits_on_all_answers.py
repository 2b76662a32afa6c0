"""θ, window and probability are fitted on all answers; fits that did not see it measure what was held out."""

from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import name_rubric_family
from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.conversations.logs import Logs, flag_positive_labels
from pollex.graphs.context import NullProgress
from pollex.measures.arrays import Bools
from pollex.rubrics.learning.crossfit import assign_held_out_conversations_to_folds
from pollex.rubrics.learning.material import GivenAnswers, Material
from pollex.rubrics.learning.measured import (
    TrainingScores,
    UnseenScores,
    list_merged_families,
    make_data_record,
    make_guaranteed_window_record,
)
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.learning.thumbs import FittedThumbs
from pollex.rubrics.rubric import Polarity, Quote, Reason, Rubric
from pollex.runs.roles import make_embedded_judge_record
from pollex.selection.losses import compute_midpoint_of_class_means
from pollex.selection.threshold import fit_uncertainty_window

RUBRICS = (
    Rubric(id="good", text="It works.", polarity="sat"),
    Rubric(id="bad", text="It fails.", polarity="dsat"),
)
SIZE = 60
"""Conversations of either side."""
CHOSEN: dict[str, Any] = {
    "conversations": [],
    "held_out": None,
    "weights": (1.0, 1.0),
    "chosen": "NetSAT",
}


def side(name: str, up: Bools) -> tuple[Conversation, ...]:
    return tuple(
        Conversation(
            id=f"{name}{number:02}",
            turns=(Turn(role="user", content=f"Hello from {name}{number}."),),
            label=Label.POSITIVE if one else Label.NEGATIVE,
        )
        for number, one in enumerate(up.tolist())
    )


def answered(ids: list[str]) -> GivenAnswers:
    """Answers that have to do with the number of a conversation, and nothing with its thumb."""
    table = GivenAnswers("expected")
    for id_ in ids:
        option = np.random.default_rng(int(id_[1:])).integers(0, 5, 2)
        table.values[id_] = {
            rubric.id: 2.5 * float(n) for rubric, n in zip(RUBRICS, option, strict=True)
        }
        table.distributions[id_] = {
            rubric.id: tuple(float(n == place) for place in range(5))
            for rubric, n in zip(RUBRICS, option, strict=True)
        }
    return table


def made(
    training: Sequence[Conversation], held_out: Sequence[Conversation] = (), **more: Any
) -> Material:
    every = [*training, *held_out]
    return Material(
        logs=Logs(every, counts=Counter(c.label for c in every)),
        training=tuple(training),
        held_out=tuple(held_out),
        settings=LearnSettings(),
        judge_record=make_embedded_judge_record(Embedder()),
        progress=NullProgress(),
        family_of=name_rubric_family,
        **more,
    )


def material(held_out_up: Bools, size: int = SIZE) -> Material:
    training = side("t", np.arange(SIZE) % 2 == 0)
    held_out = side("h", held_out_up[:size])
    table = answered([c.id for c in (*training, *held_out)])
    return made(training, held_out, table=table, kept=RUBRICS, chosen=RUBRICS)


UP = np.arange(SIZE) % 3 > 0


def swapped_within_a_fold() -> tuple[Bools, Bools]:
    """Thumbs of which an up and a down of one fold trade places, and leave all folds as they are; and that fold."""
    dealt = assign_held_out_conversations_to_folds(material(UP))[1]
    for one in np.flatnonzero(UP):
        for other in np.flatnonzero(~UP & (dealt == dealt[one])):
            up = UP.copy()
            up[[one, other]] = up[[other, one]]
            if np.array_equal(assign_held_out_conversations_to_folds(material(up))[1], dealt):
                return up, dealt == dealt[one]
    raise AssertionError("no two trade places")


def measured(
    found: Material, folded: list[float] | None = None
) -> tuple[TrainingScores, UnseenScores, FittedThumbs]:
    fitted = FittedThumbs.of(found, CHOSEN)
    taught = TrainingScores.of(found, {"held_out_scores": folded})
    return taught, UnseenScores.held_out(found, fitted, taught), fitted


def test_thumbs_of_a_fold_change_nothing_of_what_is_said_of_it_but_the_set_and_what_is_said_of_others() -> (
    None
):
    up, mine = swapped_within_a_fold()
    (taught, before, fitted), (again, after, anew) = measured(material(UP)), measured(material(up))
    for name in ("netsat", "theta", "confident", "promised", "probability"):
        assert np.array_equal(getattr(before, name)[mine], getattr(after, name)[mine]), name
    assert not np.isclose(before.probability[~mine], after.probability[~mine]).any()
    assert not np.isclose(before.theta[~mine], after.theta[~mine]).any()
    every = np.ones(2 * SIZE, dtype=bool)
    assert taught.bounds(every).theta != again.bounds(every).theta
    rows = material(UP).answers(material(UP).held_out)
    assert not np.allclose(fitted.model.probability(rows), anew.model.probability(rows))


def test_theta_window_and_probability_of_the_set_are_of_all_answers() -> None:
    found = material(UP)
    taught, unseen, fitted = measured(found)
    netsat = np.append(taught.own[:SIZE], unseen.netsat)
    up = np.append(flag_positive_labels(found.training), UP)
    bounds = taught.bounds(np.ones(2 * SIZE, dtype=bool))
    assert (
        bounds.theta
        == compute_midpoint_of_class_means(netsat, up)
        != compute_midpoint_of_class_means(netsat[:SIZE], up[:SIZE])
    )
    assert bounds.window == fit_uncertainty_window(netsat, up, bounds.theta)
    assert bounds.promised is None  # no score is by rubrics chosen without it
    alone = FittedThumbs.of(material(UP[:0], 0), CHOSEN).model
    assert not np.allclose(
        fitted.model.probability(found.answers(found.held_out)),
        alone.probability(found.answers(found.held_out)),
    )


def test_each_fold_is_rated_by_what_the_others_and_all_that_taught_say() -> None:
    found = material(UP)
    taught, unseen, _ = measured(found, folded=list(range(SIZE)))
    dealt = assign_held_out_conversations_to_folds(found)[1]
    assert sorted(np.unique(dealt)) == [0, 1, 2, 3, 4]
    for number in range(5):
        out = dealt == number
        rest = Material(**{**vars(found), "held_out": tuple(compress(found.held_out, ~out))})
        model = FittedThumbs.of(rest, CHOSEN).model
        assert np.allclose(
            unseen.probability[out],
            model.probability(found.answers(list(compress(found.held_out, out)))),
        )
        known = np.append(np.ones(SIZE, dtype=bool), ~out)
        assert np.all(
            unseen.theta[out]
            == compute_midpoint_of_class_means(taught.own[known], taught.up[known])
        )
    assert taught.honest[:SIZE].tolist() == list(range(SIZE))
    record = make_guaranteed_window_record(
        taught.bounds(np.ones(2 * SIZE, dtype=bool)).promised, unseen
    )
    assert record is not None
    assert (record.n, record.held_out) == (2 * SIZE, SIZE)


def test_too_few_for_folds_are_rated_by_what_training_conversations_alone_say() -> None:
    found = material(np.array([True, False, True]), 3)
    taught, unseen, _ = measured(found)
    alone = FittedThumbs.of(material(UP, 0), CHOSEN).model
    assert np.allclose(unseen.probability, alone.probability(found.answers(found.held_out)))
    assert set(unseen.theta) == {
        compute_midpoint_of_class_means(taught.own[:SIZE], taught.up[:SIZE])
    }
    taught, unseen, fitted = measured(material(UP, 0))
    assert (len(taught.up), len(unseen.netsat), fitted.crossfitted) == (SIZE, 0, {}), (
        "nothing is held out"
    )


def test_a_set_knows_all_conversations_that_it_was_fitted_to() -> None:
    given = material(UP)
    pooled = Material(**{**vars(given), "pool": {"sat": RUBRICS[:1], "dsat": RUBRICS[1:]}})
    taught, held = ({c.text_hash[:16] for c in one} for one in (given.training, given.held_out))
    for found, training, fitted in ((given, set(), taught | held), (pooled, taught, held)):
        record = make_data_record(found, found.training, measured(found)[1])
        assert (set(record.training_hashes), set(record.fitted_hashes)) == (training, fitted)


LOG = [
    Conversation(
        id=id_, turns=(Turn(role="user", content=f"Hello from {id_}."),), label=Label.NEGATIVE
    )
    for id_ in ("a", "b", "c", "d")
]
REASONS = [
    Reason(id=f"r-{c.id}", conversation_id=c.id, polarity="dsat", text="It fails.", quotes=())
    for c in LOG
]


def rubric(id_: str, of: Sequence[str], side: Polarity = "dsat") -> Rubric:
    quotes = tuple(Quote(conversation_id=one, turn=0, text=f"Hello from {one}.") for one in of)
    return Rubric(
        id=id_,
        text=f"{id_}.",
        polarity=side,
        reason_ids=tuple(f"r-{one}" for one in of),
        quotes=quotes,
    )


def families(merged: dict[str, str], holds: dict[str, float]) -> dict[str, list[tuple[str, int]]]:
    """Families of the rubric `fails`, into which others were merged: by its id, each form with its count."""
    narrow = rubric("no room", "ab")
    rare = rubric("no taxi", "c")
    good = rubric("finds it", "d", "sat")
    chosen = rubric("fails", "abcd")
    pool = {"sat": (good,), "dsat": (chosen, narrow, rare)}
    table = GivenAnswers("expected", values={id_: {"fails": value} for id_, value in holds.items()})
    found = list_merged_families(
        made(LOG, table=table, pool=pool, chosen=(chosen,), merged=merged), LOG, REASONS
    )
    return {
        id_: [(one["text"], one["among"]) for one in told["members"]] for id_, told in found.items()
    }


EVERYWHERE = dict.fromkeys("abcd", 10.0)


def test_merged_forms_are_counted_in_the_conversations_of_their_reasons_where_the_rubric_holds() -> (
    None
):
    merged = {"no taxi": "fails", "no room": "fails"}
    assert families(merged, EVERYWHERE) == {"fails": [("no room.", 2), ("no taxi.", 1)]}
    assert families(merged, EVERYWHERE | {"b": 0.0, "c": 0.0}) == {"fails": [("no room.", 1)]}
    assert families({}, EVERYWHERE) == {}
    assert families({"no room": "elsewhere", "finds it": "fails"}, EVERYWHERE) == {}, (
        "nor is a reverse a member"
    )
