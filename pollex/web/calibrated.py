"""How far probabilities can be trusted: bands beside what was seen, the worst of the tails, and drift between runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pollex.measures.arrays import Bools, Floats
from pollex.measures.distributions import ReliabilityDiagram, make_reliability_diagrams
from pollex.measures.intervals import Figure
from pollex.rubrics.worth import compute_share_with_interval
from pollex.store.labels import read_opinions, settle_opinions
from pollex.store.store import Store
from pollex.web.lens import RunColumns

MIN_LABELS = 50
"""Labels below which nothing is said."""
MAX_BANDS = 10
MAX_WORST_SHOWN = 10
MAX_SAMPLED_VALUES = 5000
"""Values of a run that drift is computed from."""


@dataclass(frozen=True)
class ProbabilityBand:
    """Labeled conversations whose probability, or NetSAT, lies in a band.

    Attributes:
        predicted: Mean probability.
        seen: Share of thumbs up, with Wilson's interval.
    """

    low: float
    high: float
    predicted: float
    seen: Figure

    @property
    def off(self) -> bool:
        """Whether the interval of what was seen leaves out what was predicted."""
        low = self.seen.low
        high = self.seen.high
        return low is not None and high is not None and not low <= self.predicted <= high


@dataclass(frozen=True)
class SurePredictions:
    """Labeled conversations of a sure prediction, and those of them where the thumb says the contrary.

    Attributes:
        worst: Id and probability, the surest first.
    """

    words: str
    wrong: Figure
    worst: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Subgroup:
    """Labeled conversations of one group."""

    name: str
    predicted: float
    seen: Figure


LabelSource = Literal["log", "person", "adjudicated"]
WORDS_BY_LABEL_SOURCE: dict[LabelSource, str] = {
    "log": "thumbs of the log",
    "person": "people, of conversations drawn at random",
    "adjudicated": "adjudicated",
}


def select_label_source(
    lens: RunColumns,
    store: Store,
    source: LabelSource,
    *,
    by_chance: bool = True,
) -> RunColumns:
    """Return the columns with the labels of one source: of several people the majority's, of a tie none.

    Args:
        by_chance: Of people only the labels of conversations that were drawn at random, as figures
            take them.
    """
    if source == "log":
        return lens

    thumbs = []
    for opinion in read_opinions(store, "thumb"):
        if opinion.source == source:
            thumbs.append(opinion)

    # an adjudicated label counts however its conversation was drawn
    usable_thumbs = []
    for thumb in thumbs:
        if source == "adjudicated" or not by_chance or thumb.drawn == "random":
            usable_thumbs.append(thumb)

    thumb_by_text = settle_opinions(usable_thumbs)
    codes = {}
    for text, thumb in thumb_by_text.items():
        codes[text] = {"up": 1, "down": 0}.get(thumb.value, -1)

    # −1 where nobody gave a thumb, or the votes are tied
    label = np.array([codes.get(text, -1) for text in lens.hashes], dtype=np.int64)
    # orders that were made by the other labels are dropped
    return replace(
        lens,
        label=label,
        version=f"{lens.version}.{source}",
        _orders={},
    )


def mask_usable_rows(lens: RunColumns) -> Bools:
    """Tell which conversations have a thumb, and a probability by what was learned without it `[row]`."""
    is_told = (lens.label >= 0) & ~np.isnan(lens.probability)
    return np.asarray(is_told & lens.unseen)


def draw_reliability_of_run(lens: RunColumns) -> ReliabilityDiagram | None:
    """Return how often a thumb up came at each probability, with band; None for fewer than two labels."""
    rows = np.flatnonzero(mask_usable_rows(lens))
    if len(rows) > MAX_SAMPLED_VALUES:
        rows = np.random.default_rng(0).choice(rows, MAX_SAMPLED_VALUES, replace=False)

    p = lens.probability[rows]
    up = lens.label[rows]
    # probabilities of thumb down and up `[row, 2]`; each row is a text of its own
    diagrams = make_reliability_diagrams(
        np.column_stack([1 - p, p]),
        up,
        np.arange(len(rows)),
        (0.0, 1.0),
    )
    return diagrams[1] if diagrams else None


def make_bands(lens: RunColumns) -> list[ProbabilityBand]:
    """Return the bands of equal width that have a labeled conversation."""
    rows = mask_usable_rows(lens)
    p = lens.probability[rows]
    up = lens.label[rows] == 1
    # a probability of 1 belongs to the last band
    place = np.minimum((p * MAX_BANDS).astype(int), MAX_BANDS - 1)

    bands = []
    for n in np.unique(place).tolist():
        bands.append(_make_band(n / MAX_BANDS, (n + 1) / MAX_BANDS, p[place == n], up[place == n]))

    return bands


def make_score_bands(lens: RunColumns) -> list[ProbabilityBand]:
    """Return at most ten bands of NetSAT with about as many labeled conversations each, the lowest first."""
    usable = mask_usable_rows(lens)
    netsat = lens.netsat[usable]
    p = lens.probability[usable]
    up = lens.label[usable] == 1
    # equal scores share a band, so that there may be fewer than ten
    edges = np.unique(np.quantile(netsat, np.linspace(0, 1, MAX_BANDS + 1)))
    place = np.searchsorted(edges[1:-1], netsat, side="right")
    inside = [place == n for n in np.unique(place).tolist()]

    bands = []
    for rows in inside:
        bands.append(
            _make_band(float(netsat[rows].min()), float(netsat[rows].max()), p[rows], up[rows])
        )

    return bands


def _make_band(
    low: float,
    high: float,
    p: Floats,
    up: Bools,
) -> ProbabilityBand:
    return ProbabilityBand(
        low,
        high,
        float(p.mean()),
        compute_share_with_interval(int(up.sum()), len(up)),
    )


def find_sure_predictions(lens: RunColumns) -> list[SurePredictions]:
    """Return what is surest, below .1 and above .9, with what the thumbs say against it."""
    rows = mask_usable_rows(lens)
    bins = []
    # of each tail: words, rows, the thumb against it, and the sign that sorts the surest first
    for words, inside, against, sign in (
        ("Sure of a thumb down (P below .1)", lens.probability < 0.1, 1, 1),
        ("Sure of a thumb up (P above .9)", lens.probability > 0.9, 0, -1),
    ):
        in_bin = np.flatnonzero(rows & inside)
        wrong = in_bin[lens.label[in_bin] == against]
        order = wrong[np.argsort(sign * lens.probability[wrong], kind="stable")][:MAX_WORST_SHOWN]
        worst = tuple((lens.ids[row], float(lens.probability[row])) for row in order.tolist())
        bins.append(
            SurePredictions(words, compute_share_with_interval(len(wrong), len(in_bin)), worst)
        )

    return bins


def measure_subgroups_of_run(
    lens: RunColumns,
    values: Mapping[str, str] | None = None,
    most: int = 20,
) -> list[Subgroup]:
    """Return the largest groups, each with what was predicted and seen.

    Args:
        values: Of a field, by conversation; None: the groups of the log.
    """
    rows = np.flatnonzero(mask_usable_rows(lens))
    by_group: dict[str, list[int]] = {}
    for row in rows.tolist():
        if (name := lens.groups[row] if values is None else values.get(lens.ids[row])) is not None:
            by_group.setdefault(name, []).append(row)

    largest = sorted(by_group.items(), key=lambda pair: -len(pair[1]))[:most]
    # a group of fewer than five says nothing
    return [
        Subgroup(
            name,
            float(lens.probability[group_rows].mean()),
            compute_share_with_interval(int((lens.label[group_rows] == 1).sum()), len(group_rows)),
        )
        for name, group_rows in largest
        if len(group_rows) >= 5
    ]


def measure_drift(
    lens: RunColumns, others: Sequence[tuple[str, RunColumns]]
) -> list[dict[str, object]]:
    """Compare the probabilities of other runs with those of a run.

    Returns:
        Of each run the stability index of the probability, whether there is more than chance in it,
        and the share whose NetSAT lies outside the range of the run that is shown: probabilities
        there are guesses.
    """
    # SciPy comes with it, and takes a third of a second
    from pollex.measures.drift import measure_stability_of_two_samples

    before = _collect_values(lens)
    drifts: list[dict[str, object]] = []
    for name, other in others:
        after = _collect_values(other)
        if len(before) < MIN_LABELS or len(after) < MIN_LABELS:
            continue
        change = measure_stability_of_two_samples(before, after, np.random.default_rng(0), 200)
        # thumbs of the other run, whether it was learned from them or not
        is_told = (other.label >= 0) & ~np.isnan(other.probability)
        row: dict[str, object] = {
            "run": name,
            "n": int((~np.isnan(other.probability)).sum()),
            "mean": float(after.mean()),
        }
        row |= {
            "seen": compute_share_with_interval(
                int((other.label[is_told] == 1).sum()), int(is_told.sum())
            ),
            "marked": change.marked,
        }
        row |= {"index": Figure(change.value, change.low, change.high, change.after)}
        drifts.append(row | {"outside": measure_share_outside(lens.netsat, other.netsat)})

    return drifts


def measure_share_outside(before: Floats, after: Floats) -> Figure:
    """Compute the share of values beyond all of `before`, with Wilson's interval; NaN is no value."""
    known_before, known_after = (values[~np.isnan(values)] for values in (before, after))
    return compute_share_with_interval(
        int(((known_after < known_before.min()) | (known_after > known_before.max())).sum()),
        len(known_after),
    )


def _collect_values(lens: RunColumns) -> Floats:
    probabilities = lens.probability[~np.isnan(lens.probability)]
    if len(probabilities) <= MAX_SAMPLED_VALUES:
        return probabilities
    return np.random.default_rng(0).choice(probabilities, MAX_SAMPLED_VALUES, replace=False)
