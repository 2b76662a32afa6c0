"""Filters of a list of conversations, and how many rows each further filter leaves."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.web.lens import RunColumns

HISTOGRAM_BINS = 40
MAX_GROUP_CHOICES = 8
"""Groups that can be chosen: those with the most conversations."""


@dataclass(frozen=True)
class FacetValue:
    """One value of a facet, with the number of rows that it would leave."""

    value: str
    words: str
    count: int


FACETS: dict[str, tuple[str, str, dict[int, tuple[str, str]]]] = {
    "thumb": ("Thumb", "label", {1: ("up", "up"), 0: ("down", "down"), -1: ("none", "none")}),
    "predicted": (
        "Label by NetSAT",
        "predicted",
        {1: ("up", "up"), 0: ("down", "down"), -1: ("none", "no score")},
    ),
    "decision": (
        "Verdict",
        "decided",
        {1: ("up", "good"), 0: ("down", "bad"), -1: ("none", "none")},
    ),
    "certain": (
        "Certainty",
        "certain",
        {1: ("yes", "outside the window"), 0: ("no", "inside the window")},
    ),
    "guaranteed": (
        "With a guarantee",
        "guaranteed",
        {1: ("yes", "outside that window"), 0: ("no", "inside it")},
    ),
    "differs": ("Thumb and verdict", "differs", {1: ("yes", "differ"), 0: ("no", "agree")}),
    "answered": ("Answers", "answered", {1: ("yes", "to all rubrics"), 0: ("no", "some missing")}),
}
"""Name in the address to title, column, and code to value and words."""

WORDS_BY_FLAG = {
    "too_large": "too large",
    "surrogates": "broken characters",
    "nul": "NUL characters",
    "bidi": "text that changes its direction",
    "zero_width": "invisible characters",
}
"""What is odd about a text, and how it is said."""

WORDS_BY_SIDE = {
    "train": "learned from",
    "test": "held out",
    "": "not used",
}


def make_mask(lens: RunColumns, name: str, value: str) -> Bools:
    """Return the rows that have a value of a facet, side, group or flag `[row]`."""
    if name in FACETS:
        _, column, codes = FACETS[name]
        # no row has the code None, so that an unknown value leaves nothing
        code = next(
            (code for code, (known_value, _) in codes.items() if known_value == value),
            None,
        )
        return np.asarray(getattr(lens, column) == code, dtype=bool)
    if name == "flag":
        return lens.flagged.get(value, np.zeros(len(lens), dtype=bool))

    # a row that was neither learned from nor held out has an empty side
    value_sought = "" if (name, value) == ("side", "none") else value
    return np.fromiter(
        (entry == value_sought for entry in getattr(lens, f"{name}s")),
        bool,
        len(lens),
    )


def mask_range(values: Floats, low: float | None, high: float | None) -> Bools:
    """Return the rows whose figure lies in a range `[row]`; a missing one is in none."""
    inside = ~np.isnan(values)
    if low is not None:
        inside &= values >= low
    if high is not None:
        inside &= values <= high

    return inside


def combine_masks(masks: dict[str, Bools], n: int, *, but: str = "") -> Bools:
    """Return the rows that all masks leave, one of them left out `[row]`."""
    left = np.ones(n, dtype=bool)
    for name, mask in masks.items():
        if name != but:
            left &= mask
    return left


def count_choices(lens: RunColumns, masks: dict[str, Bools]) -> dict[str, list[FacetValue]]:
    """Count, for every facet, the rows that each value would leave beside the other facets."""
    histograms = {}
    for name, (_, column, codes) in FACETS.items():
        # without the facet's own filter, so that its other values have their counts
        values = getattr(lens, column)[combine_masks(masks, len(lens), but=name)]
        histograms[name] = [
            FacetValue(value, words, int((values == code).sum()))
            for code, (value, words) in codes.items()
        ]

    sides = _count_names(*lens.side_codes, combine_masks(masks, len(lens), but="side"))
    side_options = []
    for side, words in WORDS_BY_SIDE.items():
        if sides[side]:
            side_options.append(FacetValue(side or "none", words, sides[side]))
    histograms["side"] = side_options
    groups = _count_names(*lens.group_codes, combine_masks(masks, len(lens), but="group"))
    # one more, as rows without a group may be among the largest
    most = [(name, count) for name, count in groups.most_common(MAX_GROUP_CHOICES + 1) if name][
        :MAX_GROUP_CHOICES
    ]
    histograms["group"] = [FacetValue(name, name, count) for name, count in most if count]
    # a facet with one value left narrows nothing
    useful_histograms = {}
    for name, options in histograms.items():
        if sum(option.count > 0 for option in options) > 1:
            useful_histograms[name] = options
    histograms = useful_histograms
    # a flag is a warning, and stays where it is the only one
    left = combine_masks(masks, len(lens), but="flag")
    flags = []
    for flag, mask in lens.flagged.items():
        flags.append(
            FacetValue(
                flag,
                WORDS_BY_FLAG.get(flag, flag),
                int((mask & left).sum()),
            )
        )

    return histograms | ({"flag": flags} if flags else {})


def _count_names(names: Sequence[str], codes: Ints, left: Bools) -> Counter[str]:
    # code −1 counts in the first place, under the empty name
    counts = np.bincount(codes[left] + 1, minlength=len(names) + 1).tolist()
    return Counter(dict(zip(["", *names], counts, strict=True)))


@dataclass(frozen=True)
class Histogram:
    """Counts of a figure by interval, among all rows and among those found."""

    edges: Floats
    all: Ints
    found: Ints


def make_histogram(values: Floats, mask: Bools) -> Histogram | None:
    """Count a column's values in bins of equal width; None if there are none."""
    # values that are all the same have no range to divide
    is_known = ~np.isnan(values)
    if not is_known.any() or (low := float(values[is_known].min())) == (
        high := float(values[is_known].max())
    ):
        return None

    edges = np.linspace(low, high, HISTOGRAM_BINS + 1)
    return Histogram(
        edges,
        np.histogram(values[is_known], edges)[0],
        np.histogram(values[is_known & mask], edges)[0],
    )
