"""The deduplicator on a model: embeddings find candidates, the model decides which are the same."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.roles import find_connected_components
from pollex.agents.llm.asker import ModelRole, PromptAsker
from pollex.agents.llm.parsing import read_numbers
from pollex.agents.roles import Deduplication
from pollex.prompts.prompt import load_prompt
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.merging import merge_rubrics, sort_rubrics_by_reason_count
from pollex.rubrics.rubric import ANSWERED_BY_BUILT_IN_JUDGE, Rubric

MAX_RUBRICS_PER_GROUP = 30
_SIMILARITY_THRESHOLD_STEP = 0.03


class LlmDeduplicator(ModelRole):
    """Removes rubrics that the model finds equivalent to another, keeping the best supported.

    A built-in rubric is shown beside one of the model's that has nearly its words, never beside
    another built-in one. Of a group that the model gives no usable answer to only such pairs are
    merged: a duplicate does less harm than a lost idea.

    Attributes:
        tally: Groups that stayed whole for want of an answer, by outcome.
    """

    def __init__(self, asker: PromptAsker, embedder: Embedder) -> None:
        self.embedder = embedder
        self.prompt = load_prompt("deduplicate")
        # thresholds with fixed digits, so that fingerprints agree
        cosines = {}
        for name, cosine in asker.settings.facts(["near", "alike"]).items():
            cosines[name] = f"{cosine:.6f}"

        super().__init__(
            asker,
            [self.prompt],
            embedder=embedder.identity,
            **cosines,
        )
        self.tally: Counter[str] = Counter()

    async def deduplicate(self, rubrics: Sequence[Rubric]) -> Deduplication:
        """Return the kept rubrics in their order, with the reasons of those merged into them."""
        calls = []
        for group in self.groups(rubrics):
            if len(group) > 1:
                calls.append(self._alike(group))

        by_group = await asyncio.gather(*calls)
        rubrics_by_id = {rubric.id: rubric for rubric in rubrics}
        merged: dict[str, str] = {}
        # of each set the best supported rubric stays, with the reasons of all
        for same in (same for sets, _ in by_group for same in sets):
            ranked = sort_rubrics_by_reason_count(same)
            rubrics_by_id[ranked[0].id] = merge_rubrics(ranked)
            merged |= {rubric.id: ranked[0].id for rubric in ranked[1:]}

        # a mirror of a rubric that went is one of the rubric that it went into
        pairs = [(first.id, second.id) for _, pairs in by_group for first, second in pairs]
        merged_pairs = []
        for first_id, second_id in pairs:
            merged_pairs.append((merged.get(first_id, first_id), merged.get(second_id, second_id)))

        mirrors = tuple(dict.fromkeys(merged_pairs))
        kept_rubrics = []
        for id_, r in rubrics_by_id.items():
            if id_ not in merged:
                kept_rubrics.append(r)

        return Deduplication(
            kept=tuple(kept_rubrics),
            merged=merged,
            mirrors=mirrors,
        )

    def groups(self, rubrics: Sequence[Rubric]) -> list[list[Rubric]]:
        """Group near rubrics of both sides, at most `MAX_RUBRICS_PER_GROUP` together."""
        if not rubrics:
            return []

        vectors = self.embedder.embed([rubric.text for rubric in rubrics])
        settings = self.asker.settings
        groups: list[list[Rubric]] = []
        for group in group_near_rubrics(vectors, rubrics, settings.near, settings.alike):
            groups.append([rubrics[i] for i in group])

        return groups

    async def _alike(
        self, group: Sequence[Rubric]
    ) -> tuple[list[list[Rubric]], list[list[Rubric]]]:
        """Return sets of one side with the same meaning, and pairs of opposite meaning."""
        items = []
        for i, rubric in enumerate(group, 1):
            items.append({"i": i, "rubric": rubric.text})

        value = await self.asker.value(
            self.prompt,
            items,
            {},
            {"same": list},
            item=group[0].id,
        )
        if isinstance(value, Unanswered):
            # without an answer, only what has nearly the same words is merged
            self.tally[value.outcome] += 1
            return self._of_both(group), []

        # a set that mixes the sides is two sets: rubrics of both sides are never one
        same = []
        for numbers_alike in choose_disjoint_sets(value["same"], len(group)):
            for kind in ("sat", "dsat"):
                rubrics_alike = []
                for i in numbers_alike:
                    if group[i - 1].polarity == kind:
                        rubrics_alike.append(group[i - 1])

                same.append(rubrics_alike)

        pairs = []
        mirrored = value.get("mirrored")
        for numbers_mirrored in choose_disjoint_sets(
            mirrored if isinstance(mirrored, list) else [], len(group)
        ):
            pairs.append([group[i - 1] for i in numbers_mirrored])

        # a mirror is one rubric of each side, and nothing else
        apart = []
        for pair in pairs:
            if len(pair) == 2 and pair[0].polarity != pair[1].polarity:
                apart.append(pair)

        larger_sets = []
        for set_alike in same:
            if len(set_alike) > 1:
                larger_sets.append(set_alike)

        return larger_sets, apart

    def _of_both(self, group: Sequence[Rubric]) -> list[list[Rubric]]:
        """Return sets of one side in which built-in rubrics and the model's are one by their words."""
        vectors = self.embedder.embed([rubric.text for rubric in group])
        sides = np.array([rubric.polarity for rubric in group])
        # the model's own rubrics are never near enough here, only pairs with a built-in one
        near = link_near_rubrics(vectors, group, np.inf, self.asker.settings.alike) & (
            sides[:, None] == sides[None, :]
        )
        sets: list[list[Rubric]] = []
        for component in find_connected_components(near):
            if len(component) > 1:
                sets.append([group[i] for i in component])

        return sets


def link_near_rubrics(
    vectors: npt.NDArray[np.float32],
    rubrics: Sequence[Rubric],
    near: float,
    alike: float,
) -> npt.NDArray[np.bool_]:
    """Tell which pairs of the model's rubrics are `near`, and which of one of them and a built-in one are `alike`.

    Args:
        vectors: [rubric, width], of length 1.
    """
    built_in = np.array(
        [rubric.answered_by == ANSWERED_BY_BUILT_IN_JUDGE for rubric in rubrics],
        dtype=bool,
    )
    # a mixed pair has its own threshold, two built-in rubrics are never linked
    least = np.where(built_in[:, None] != built_in[None, :], alike, near)
    return np.asarray((vectors @ vectors.T >= least) & ~(built_in[:, None] & built_in[None, :]))


def group_near_rubrics(
    vectors: npt.NDArray[np.float32],
    rubrics: Sequence[Rubric],
    near: float,
    alike: float = 1.0,
) -> list[list[int]]:
    """Return connected components of linked pairs, see `link_near_rubrics`.

    Large ones are split by raising the thresholds.
    """
    pending = [(list(range(len(rubrics))), near)]
    groups: list[list[int]] = []
    while pending:
        members, at_least = pending.pop()
        pairs = link_near_rubrics(
            vectors[members],
            [rubrics[i] for i in members],
            at_least,
            max(at_least, alike),
        )
        for group in (
            [members[i] for i in component] for component in find_connected_components(pairs)
        ):
            # small enough to ask about; else linked more tightly; else cut, as nothing parts it
            if len(group) <= MAX_RUBRICS_PER_GROUP:
                groups.append(group)
            elif at_least + _SIMILARITY_THRESHOLD_STEP < 1:
                pending.append((group, at_least + _SIMILARITY_THRESHOLD_STEP))
            else:
                for i in range(0, len(group), MAX_RUBRICS_PER_GROUP):
                    groups.append(group[i : i + MAX_RUBRICS_PER_GROUP])

    return sorted(groups)


def choose_disjoint_sets(sets: Sequence[object], count: int) -> list[list[int]]:
    """Return disjoint sets of two or more of the numbers 1 to `count`."""
    used: set[int] = set()
    disjoint = []
    for named in sets:
        fresh = []
        for i in read_numbers(named, range(1, count + 1)):
            if i not in used:
                fresh.append(i)

        if len(fresh) > 1:
            used.update(fresh)
            disjoint.append(fresh)

    return disjoint
