"""Splits and folds: who must stay together, how evenly labels are dealt, and when it can't be done."""

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.conversations.splits import assign_folds, find_dependent_blocks, split_conversations
from pollex.errors import BadLabels, WrongUse

P = Label.POSITIVE
N = Label.NEGATIVE
U = Label.NONE


def conversation(
    id_: str, label: Label, group: str | None = None, text: str | None = None
) -> Conversation:
    return Conversation(
        id=id_, turns=(Turn(role="user", content=text or id_),), label=label, group=group
    )


def log_of(positive: int, negative: int, unlabeled: int = 0) -> list[Conversation]:
    labels = [P] * positive + [N] * negative + [U] * unlabeled
    return [conversation(f"c{number:04d}", label) for number, label in enumerate(labels)]


def counts(side: Sequence[Conversation]) -> list[int]:
    found = Counter(c.label for c in side)
    return [found[P], found[N], found[U]]


def ids(side: Sequence[Conversation]) -> list[str]:
    return [c.id for c in side]


def test_a_split_or_folds_that_can_not_be_are_refused_with_counts() -> None:
    for fraction in (-0.1, 1, float("nan")):
        with pytest.raises(WrongUse):
            split_conversations(log_of(5, 5), fraction, seed=0)
    for log in ([], log_of(9, 0), log_of(0, 9), log_of(0, 0, 9), log_of(1, 9)):
        with pytest.raises(
            BadLabels, match=f"{counts(log)[0]} positive and {counts(log)[1]} negative"
        ):
            split_conversations(log, 0.5, seed=0)
    tied = [conversation(str(n), P if n < 6 else N, group="g" if n < 6 else "h") for n in range(12)]
    with pytest.raises(BadLabels, match="6 positive and 6 negative in 2 blocks"):
        split_conversations(tied, 0.5, seed=0)
    with pytest.raises(WrongUse):
        assign_folds(log_of(5, 5), 1, seed=0)
    with pytest.raises(BadLabels, match="each of 5 folds: 4 positive"):
        assign_folds(log_of(4, 9), 5, seed=0)


@pytest.mark.parametrize(
    ("fraction", "train", "test"),
    [(0.5, [150, 20, 50], [150, 20, 50]), (0.2, [240, 32, 80], [60, 8, 20])],
)
def test_every_label_has_its_share_on_both_sides(
    fraction: float, train: list[int], test: list[int]
) -> None:
    # 20 % of 300, 40 and 100 are 60, 8 and 20.
    done = split_conversations(log_of(300, 40, 100), fraction, seed=3)
    assert (counts(done.train), counts(done.test)) == (train, test)
    few = split_conversations(log_of(98, 2), 0.05, seed=0)
    assert counts(few.train)[1] == counts(few.test)[1] == 1, "also where a share rounds to nothing"
    none = split_conversations(log_of(3, 0), 0, seed=0)
    assert (ids(none.train), none.test) == (ids(log_of(3, 0)), ())


def test_folds_are_even_and_keep_the_order_of_the_conversations() -> None:
    log = log_of(50, 15)
    dealt = assign_folds(log, 5, seed=1)
    assert dealt.shape == (65,)
    assert [
        counts([c for c, fold in zip(log, dealt, strict=True) if fold == n]) for n in range(5)
    ] == [[10, 3, 0]] * 5


def test_groups_and_equal_texts_stay_together_over_several_steps() -> None:
    # a and b share a group, b and c a text, c and d a group: all four are tied; e is alone.
    log = [
        conversation("a", P, group="1"),
        conversation("b", P, group="1", text="same"),
        conversation("c", N, group="2", text="same"),
        conversation("d", N, group="2"),
        conversation("e", N),
    ]
    assert sorted(find_dependent_blocks(log)) == [[0, 1, 2, 3], [4]]


def test_the_split_does_not_depend_on_the_order_of_rows() -> None:
    log = [
        conversation(str(n), P if n % 3 else N, group=str(n // 4), text=str(n % 80))
        for n in range(90)
    ]
    shuffled = [log[n] for n in np.random.default_rng(0).permutation(90)]
    assert split_conversations(log, 0.4, seed=5) == split_conversations(shuffled, 0.4, seed=5)
    by_id = dict(zip(ids(log), assign_folds(log, 3, seed=5), strict=True))
    assert by_id == dict(zip(ids(shuffled), assign_folds(shuffled, 3, seed=5), strict=True))
    assert len({tuple(ids(split_conversations(log, 0.4, seed).test)) for seed in (0, 1, 2, 0)}) == 3


@pytest.mark.parametrize("seed", range(5))
def test_a_few_labels_more_leave_nearly_all_conversations_on_their_side(seed: int) -> None:
    log = log_of(300, 100)
    fewer = [log[i] for i in sorted(np.random.default_rng(seed).choice(400, 395, replace=False))]
    before = split_conversations(fewer, 0.5, seed)
    after = split_conversations(log, 0.5, seed)
    # Of each label a boundary moves by half of what was added at most, and by one for rounding.
    assert len(set(ids(before.train)) & set(ids(after.test))) <= 5 / 2 + 2
    assert len(set(ids(before.test)) & set(ids(after.train))) <= 5 / 2 + 2
    dealt = dict(zip(ids(fewer), assign_folds(fewer, 5, seed), strict=True))
    again = dict(zip(ids(log), assign_folds(log, 5, seed), strict=True))
    assert sum(dealt[id_] != again[id_] for id_ in dealt) <= 4 * (5 + 2)


def test_every_conversation_is_held_out_about_as_often_as_any_other() -> None:
    log = log_of(20, 20)
    held_out = Counter(
        id_ for seed in range(100) for id_ in ids(split_conversations(log, 0.5, seed).test)
    )
    # 100 throws of probability ½ have a standard deviation of 5; five of them are 25.
    assert all(25 < held_out[c.id] < 75 for c in log)


block = st.lists(st.sampled_from([P, N]), min_size=1, max_size=4)


@given(st.lists(block, min_size=1, max_size=7), st.sampled_from([0.1, 0.5, 0.8]), st.integers(0, 3))
def test_a_split_is_found_exactly_where_one_exists(
    groups: list[list[Label]], fraction: float, seed: int
) -> None:
    log = [
        conversation(f"{g}-{n}", label, group=str(g))
        for g, labels in enumerate(groups)
        for n, label in enumerate(labels)
    ]
    possible = any(
        all(
            {label for g, labels in enumerate(groups) if sides[g] == side for label in labels}
            == {P, N}
            for side in (0, 1)
        )
        for sides in itertools.product((0, 1), repeat=len(groups))
    )
    try:
        done = split_conversations(log, fraction, seed)
    except BadLabels:
        assert not possible
        return
    assert possible
    assert sorted(ids(done.train) + ids(done.test)) == sorted(ids(log))
    assert not {c.group for c in done.train} & {c.group for c in done.test}
    assert min(counts(done.train)[:2] + counts(done.test)[:2]) > 0


def test_what_a_queue_preferred_and_what_is_tied_to_it_is_never_held_out() -> None:
    log = log_of(20, 20)
    tied = [
        one.model_copy(update={"group": "anna"}) if one.id in ("c0003", "c0030") else one
        for one in log
    ]
    queued = [
        one.model_copy(update={"metadata": {"drawn": "unsure"}}) if one.id == "c0003" else one
        for one in tied
    ]
    dealt = [split_conversations(queued, 0.5, seed) for seed in range(8)]
    assert all({"c0003", "c0030"} <= set(ids(each.train)) for each in dealt)
    assert {tuple(counts(each.test)) for each in dealt} == {(9, 9, 0)}  # of 19 each
