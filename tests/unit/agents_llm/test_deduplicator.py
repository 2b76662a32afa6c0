"""The deduplicator on a model: it decides among near rubrics, and can lose none."""

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, asker, rubric

from pollex.agents.embedded.roles import EmbeddedDeduplicator
from pollex.agents.llm.deduplicator import (
    MAX_RUBRICS_PER_GROUP,
    LlmDeduplicator,
    choose_disjoint_sets,
    group_near_rubrics,
)
from pollex.agents.mixed import MixedDeduplicator
from pollex.gateway.calls import RefusedReply
from pollex.rubrics.rubric import Rubric


class Angles:
    """Embeds a text by the number that it ends in, as an angle in degrees."""

    identity = "angles"

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        angles = np.radians([float(text.split()[-1]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def supported(text: str, *reasons: str) -> Rubric:
    return rubric(text).model_copy(update={"reason_ids": reasons})


POOL = [
    supported("A 0", "r1"),
    supported("B 10", "r2", "r3"),
    supported("C 20", "r3", "r4"),
    supported("D 180", "r5"),
    rubric("E 5", "dsat"),
]


def role(door: Scripted) -> LlmDeduplicator:
    return LlmDeduplicator(asker(door, near=0.9), Angles())


async def test_without_a_usable_answer_nothing_is_merged() -> None:
    for reply in (
        RefusedReply(detail="no"),
        "no idea",
        '{"same": "all"}',
        '{"same": [1, "2", null, [3]]}',
    ):
        deduplicator = role(Scripted(otherwise=reply))
        found = await deduplicator.deduplicate(POOL)
        assert (found.kept, found.merged) == (tuple(POOL), {})
        assert isinstance(reply, str) or deduplicator.tally == {"refused": 1}
    door = Scripted()
    assert (await role(door).deduplicate([])).kept == ()
    assert door.history == []


async def test_only_near_rubrics_are_shown_to_the_model_those_of_both_sides() -> None:
    door = Scripted(otherwise='{"same": []}')
    await role(door).deduplicate(POOL)
    data = [call.messages[1]["content"] for call in door.history]
    assert len(data) == 1
    assert [text in data[0] for text in ["A 0", "B 10", "C 20", "D 180", "E 5"]] == [
        True,
        True,
        True,
        False,
        True,
    ]


async def test_the_best_supported_stays_and_inherits_the_reasons_and_a_reverse_is_told_and_kept() -> (
    None
):
    found = await role(Scripted(otherwise=json.dumps({"same": [[3, 1, 2]]}))).deduplicate(POOL)
    assert [kept.text for kept in found.kept] == ["B 10", "D 180", "E 5"]
    assert found.merged == {"sat-A 0": "sat-B 10", "sat-C 20": "sat-B 10"}
    assert set(found.kept[0].reason_ids) == {"r1", "r2", "r3", "r4"}
    found = await role(
        Scripted(otherwise=json.dumps({"same": [], "mirrored": [[2, 4]]}))
    ).deduplicate(POOL)
    assert (found.merged, found.mirrors) == ({}, (("sat-B 10", "dsat-E 5"),)), (
        "answers say which of them is better"
    )
    assert [kept.text for kept in found.kept][-1] == "E 5"
    swapped = json.dumps({"same": [[1, 4]], "mirrored": [[1, 2]]})
    found = await role(Scripted(otherwise=swapped)).deduplicate(POOL)
    assert (found.merged, found.mirrors) == ({}, ())


BOTH = [
    supported("A 0", "r1"),
    supported("B 20", "r2", "r3"),
    *(
        r.model_copy(update={"answered_by": "built-in"})
        for r in (supported("C 2", "b1", "b2"), supported("D 19"))
    ),
    rubric("E 1", "dsat").model_copy(update={"answered_by": "built-in"}),
]
"""A and B are the model's, near enough to be shown to it; C, D and E are built-in, C and E with nearly A's words."""


async def merged(door: Scripted, **settings: float) -> dict[str, str]:
    model = LlmDeduplicator(asker(door, near=0.9, **settings), Angles())
    return dict(
        (
            await MixedDeduplicator(model, EmbeddedDeduplicator(Angles(), 0.999)).deduplicate(BOTH)
        ).merged
    )


async def test_a_models_rubric_and_a_built_in_one_of_its_words_are_one_where_the_model_says_so() -> (
    None
):
    door = Scripted(otherwise=json.dumps({"same": [[1, 3]]}))
    assert await merged(door, alike=0.999) == {"sat-A 0": "sat-C 2"}
    assert len(door.history) == 1
    assert [text in door.history[0].messages[1]["content"] for text in ("C 2", "D 19", "E 1")] == [
        True
    ] * 3
    assert await merged(Scripted(otherwise='{"same": []}'), alike=0.999) == {}
    door = Scripted(otherwise='{"same": []}')
    await merged(door, alike=1)
    assert [text in door.history[0].messages[1]["content"] for text in ("A 0", "B 20", "C 2")] == [
        True,
        True,
        False,
    ]
    undecided = await merged(Scripted(otherwise=RefusedReply(detail="no")), alike=0.999)
    assert undecided == {"sat-A 0": "sat-C 2", "sat-D 19": "sat-B 20"}, "by their words alone"


def test_a_large_group_is_split_until_it_fits() -> None:
    pool = [rubric(f"X {i}") for i in [*range(40), *range(100, 140)]]
    groups = group_near_rubrics(Angles().embed([r.text for r in pool]), pool, 0.5)
    assert sorted(i for group in groups for i in group) == list(range(80))
    assert all(len(group) <= MAX_RUBRICS_PER_GROUP for group in groups)
    same = [rubric(f"X{i} 7") for i in range(70)]
    groups = group_near_rubrics(Angles().embed([r.text for r in same]), same, 0.5)
    assert [len(group) for group in groups] == [30, 30, 10]


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(-2, 12)) | st.integers()))
def test_whatever_a_model_says_no_rubric_is_in_two_sets(sets: list[object]) -> None:
    found = choose_disjoint_sets(sets, 10)
    flat = [i for numbers in found for i in numbers]
    assert len(flat) == len(set(flat))
    assert set(flat) <= set(range(1, 11))
    assert choose_disjoint_sets([[1, 2, 2], [2, 3], [3, 4, 9, 0], [5]], 5) == [[1, 2], [3, 4]]
