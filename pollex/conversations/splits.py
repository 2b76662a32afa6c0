"""Splits that keep what belongs together on one side.

Conversations of one group, and conversations with the same text, are tied; what is tied, over
several steps too, is one *block* (a connected component), and blocks are dealt to the sides as a
whole. Blocks are taken from the largest to the smallest, in an order drawn from the seed, and each
goes where it best fills the quota of every label. In a log without groups what stands alone is
dealt in runs of that order, one run a side and label: a few labels more move a few conversations to
another side, and not all that come after them. All of it depends on ids, texts and labels alone and
not on the order of rows.
"""

import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pollex.conversations.conversation import DEFAULT_RATING_BOUNDS, Conversation, Label
from pollex.conversations.logs import Logs
from pollex.errors import BadLabels, WrongUse, spell_options

LABEL_ORDER = tuple(Label)
RATED_LABEL_INDICES = [LABEL_ORDER.index(Label.POSITIVE), LABEL_ORDER.index(Label.NEGATIVE)]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Split:
    """Two sides, each ordered by id."""

    train: tuple[Conversation, ...]
    test: tuple[Conversation, ...]


def split_conversations(
    conversations: Sequence[Conversation],
    test_fraction: float,
    seed: int,
) -> Split:
    """Split conversations for learning and measuring, stratified by label.

    What a queue preferred, and what is tied to it, is never held out: figures are of conversations
    as they come.

    Args:
        test_fraction: From 0 (nothing is held out) to less than 1.

    Raises:
        WrongUse: A fraction out of range.
        BadLabels: The two classes can't both be on both sides.
    """
    if not 0 <= test_fraction < 1:
        raise WrongUse(
            f"a test fraction of {test_fraction}",
            hint="give one from 0 to less than 1",
        )

    ordered = sorted(conversations, key=lambda conversation: conversation.id)
    if test_fraction == 0:
        return Split(tuple(ordered), ())

    # what a queue preferred stays in training; the others are dealt
    apart = flag_queue_preferred(ordered)
    free = []
    for conversation, chosen in zip(ordered, apart, strict=True):
        if not chosen:
            free.append(conversation)

    dealt = _assign_bins(
        free,
        np.array([1 - test_fraction, test_fraction]),
        seed,
    )
    sides = np.zeros(len(ordered), dtype=np.int64)
    if dealt is not None:
        sides[~apart] = dealt

    if dealt is None:
        raise BadLabels(
            f"both classes can't be on both sides of a split: {_describe_label_counts(ordered)}",
            hint="add labeled conversations or groups, or hold nothing out",
            option={"test_fraction": 0},
        )

    train = tuple(c for c, side in zip(ordered, sides, strict=True) if side == 0)
    test = tuple(c for c, side in zip(ordered, sides, strict=True) if side == 1)
    return Split(train, test)


def flag_queue_preferred(conversations: Sequence[Conversation]) -> NDArray[np.bool_]:
    """Return whether each conversation is tied to one that a queue preferred, [conversation]."""
    is_preferred = np.zeros(len(conversations), dtype=bool)
    if any(conversation.preferred for conversation in conversations):
        for block in find_dependent_blocks(conversations):
            is_preferred[block] = any(conversations[index].preferred for index in block)
    return is_preferred


def assign_folds(conversations: Sequence[Conversation], k: int, seed: int) -> IntArray:
    """Return the fold of each conversation, [conversation] int from 0 to k − 1.

    Raises:
        WrongUse: Fewer than 2 folds.
        BadLabels: The two classes can't both be in every fold.
    """
    if k < 2:
        raise WrongUse(f"{k} folds", hint="cross-validation needs at least 2")

    dealt = _assign_bins(conversations, np.full(k, 1 / k), seed)
    if dealt is None:
        raise BadLabels(
            f"both classes can't be in each of {k} folds: {_describe_label_counts(conversations)}",
            hint="add labeled conversations or groups, or take fewer folds",
        )

    return dealt


def find_dependent_blocks(conversations: Sequence[Conversation]) -> list[list[int]]:
    """Return indices of dependent conversations, by group or text; each is in one block."""
    # a union-find forest over the conversations, with paths halved on the way
    parent = list(range(len(conversations)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    # the first conversation of each text and of each group ties the others to itself
    first: dict[tuple[str, str], int] = {}
    for index, conversation in enumerate(conversations):
        ties = [("text", conversation.text_hash)]
        if conversation.group is not None:
            ties.append(("group", conversation.group))
        for tie in ties:
            parent[root(index)] = root(first.setdefault(tie, index))

    members: defaultdict[int, list[int]] = defaultdict(list)
    for index in range(len(conversations)):
        members[root(index)].append(index)

    return list(members.values())


def number_dependent_blocks(conversations: Sequence[Conversation]) -> IntArray:
    """Return the number of each conversation's block [conversation]; conversations in a block are dependent."""
    numbers = np.zeros(len(conversations), dtype=np.int64)
    for number, block in enumerate(find_dependent_blocks(conversations)):
        numbers[block] = number
    return numbers


def _assign_bins(
    conversations: Sequence[Conversation],
    shares: FloatArray,
    seed: int,
) -> IntArray | None:
    """Return the bin of each conversation; None if some bin would lack a class.

    Args:
        shares: Of each bin, [bin], summing to 1.
    """
    # labels of each block `[block, label]`, larger blocks first
    tied = sorted(
        find_dependent_blocks(conversations),
        key=lambda block: _make_block_order_key(conversations, block, seed),
    )
    counts = np.zeros((len(tied), len(LABEL_ORDER)), dtype=np.int64)
    for row, block in enumerate(tied):
        for index in block:
            counts[row, LABEL_ORDER.index(conversations[index].label)] += 1

    # the bin of each block, mended where a class is missing somewhere
    in_runs = all(conversation.group is None for conversation in conversations)
    bins = _fill_bins_to_quotas(counts, shares, in_runs)
    if not _fill_missing_classes(bins, counts, shares):
        return None

    dealt = np.zeros(len(conversations), dtype=np.int64)
    for row, block in enumerate(tied):
        dealt[block] = bins[row]

    return dealt


def _make_block_order_key(
    conversations: Sequence[Conversation],
    block: list[int],
    seed: int,
) -> tuple[int, str]:
    name = min(conversations[index].id for index in block)
    return -len(block), hashlib.sha256(f"{seed}:{name}".encode("utf-8", "replace")).hexdigest()


def _fill_bins_to_quotas(counts: IntArray, shares: FloatArray, in_runs: bool) -> IntArray:
    """Assign blocks, [block, label] counts, greedily by squared distance to the quotas.

    A label's weight is the inverse of its frequency, so that the rarer class is split as evenly as
    the other.

    Args:
        in_runs: Whether blocks of one conversation are dealt in runs instead.
    """
    # what each bin still lacks of each label `[bin, label]`
    total = counts.sum(axis=0)
    weight = 1 / np.maximum(total, 1)
    left = shares[:, None] * total
    bins = np.zeros(len(counts), dtype=np.int64)
    greedy = (counts.sum(axis=1) > 1) | (not in_runs)
    # larger blocks go where they bring the counts nearest to the quotas
    for row in np.flatnonzero(greedy):
        block = counts[row]
        gain = (weight * block * (2 * left - block)).sum(axis=1)
        bins[row] = gain.argmax()
        left[bins[row]] -= block

    # single conversations are dealt in runs, label by label
    for label, quotas in enumerate(left.T):
        rows = np.flatnonzero(~greedy & (counts[:, label] > 0))
        bins[rows] = _assign_bins_in_runs(quotas, len(rows))

    return bins


def _assign_bins_in_runs(quotas: FloatArray, n: int) -> IntArray:
    """Return the bin of each of n in order: as many to the first bin as its quota, then to the next."""
    # where each bin's run ends
    filled_up_to = np.cumsum(np.maximum(quotas, 0))
    ends = np.round(filled_up_to * n / max(filled_up_to[-1], 1e-9))
    return np.searchsorted(ends[:-1], np.arange(n), side="right")


def _fill_missing_classes(bins: IntArray, counts: IntArray, shares: FloatArray) -> bool:
    """Move blocks, in place, until each bin has both classes; False if impossible.

    With two bins it always succeeds where it can be done at all: a bin that lacks a class gets it
    from a block that the other can spare, or both trade places over two moves.
    """
    # counts by bin and label `[bin, label]`
    held = np.stack([counts[bins == n].sum(axis=0) for n in range(len(shares))])
    movable = np.flatnonzero(counts[:, RATED_LABEL_INDICES].any(axis=1))
    while lacking := _count_missing_classes(held):
        # of all moves, the one that leaves the fewest gaps, and the smallest distance to the quotas
        moves = []
        for block, side in itertools.product(movable.tolist(), range(len(shares))):
            moved = _move_block_between_bins(held, counts[block], bins[block], side)
            moves.append(
                (_count_missing_classes(moved), _measure_quota_distance(moved, shares), block, side)
            )

        left, _, row, target = min(moves, default=(lacking, 0.0, 0, 0))
        if left >= lacking:
            return False
        held = _move_block_between_bins(held, counts[row], bins[row], target)
        bins[row] = target

    return True


def _count_missing_classes(held: IntArray) -> int:
    return int((held[:, RATED_LABEL_INDICES] == 0).sum())


def _measure_quota_distance(held: IntArray, shares: FloatArray) -> float:
    total = held.sum(axis=0)
    return float(((held - shares[:, None] * total) ** 2 / np.maximum(total, 1)).sum())


def _move_block_between_bins(
    held: IntArray,
    block: IntArray,
    source: int,
    target: int,
) -> IntArray:
    moved = held.copy()
    moved[source] -= block
    moved[target] += block

    return moved


def _describe_label_counts(conversations: Sequence[Conversation]) -> str:
    labels = [conversation.label for conversation in conversations]
    good = labels.count(Label.POSITIVE)
    bad = labels.count(Label.NEGATIVE)
    blocks = len(find_dependent_blocks(conversations))
    return f"{good} positive and {bad} negative in {blocks} blocks of one group or text"


MIN_LABELS_PER_CLASS = 10
"""Conversations of each class, below which nothing is learned."""


def require_enough_labels(
    conversations: Iterable[Conversation], minimum: int = MIN_LABELS_PER_CLASS
) -> None:
    """Raise an error if a class is missing or too small; unscorable ones and a log's repeated texts don't count.

    Raises:
        BadLabels: Says how many there are of each class.
    """
    repeated: dict[str, str] = {}
    lost_labels: list[str] = []
    if isinstance(conversations, Logs):
        repeated = conversations.repeated
        lost_labels = conversations.lost_labels

    # labels of what can be scored, and of what can't
    labels: Counter[Label] = Counter()
    unscorable: Counter[Label] = Counter()
    for conversation in conversations:
        if conversation.id not in repeated:
            (unscorable if conversation.not_scorable else labels)[conversation.label] += 1

    good = labels[Label.POSITIVE]
    bad = labels[Label.NEGATIVE]
    if min(good, bad) >= minimum:
        return

    # what was left out, and why
    lost = unscorable[Label.POSITIVE] + unscorable[Label.NEGATIVE]
    left_out = ""
    if unscorable:
        left_out = f", {unscorable.total()} that can't be scored ({lost} with a label)"

    left_out += f", {len(repeated)} with the text of another one" if repeated else ""
    counts = f"{good} positive, {bad} negative, {labels[Label.NONE]} without a label{left_out}"
    if lost_labels:
        hint = lost_labels[0]
    else:
        hint = _suggest_labeling_hint(good, bad, lost, minimum)

    raise BadLabels(
        f"{_describe_missing_labels(good, bad, lost, minimum)}: {counts}",
        hint=hint,
    )


def _describe_missing_labels(
    good: int,
    bad: int,
    lost: int,
    minimum: int,
) -> str:
    if not good and not bad:
        if lost:
            return "no conversation with a label can be scored"
        return "no conversation has a label"
    if not good or not bad:
        counted = " of conversations that can be scored" if lost else ""
        return f"all labels{counted} are {'negative' if bad else 'positive'}"
    return f"fewer than {minimum} conversations of a class"


def _suggest_labeling_hint(
    good: int,
    bad: int,
    lost: int,
    minimum: int,
) -> str:
    if not good and not bad and not lost:
        example = spell_options(label_field="stars", **DEFAULT_RATING_BOUNDS)
        return f"say where the labels are, and give bounds for ratings: {example}"
    if lost:
        return f"a conversation needs words of a user and of an assistant; add labels until there are {minimum} of each"
    return f"add thumbs until there are {minimum} of each: `pollex label next LOGS --out to-label.jsonl` lists which"
