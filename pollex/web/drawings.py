"""Small drawings that only the application has, as SVG with classes of the style sheets."""

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from pollex.reports.svg import Axis, choose_ticks, format_tick, make_element, make_svg
from pollex.web.by_class import AnswersByClass
from pollex.web.filters import Histogram

DRAWING_WIDTH = 360
HISTOGRAM_HEIGHT = 64
SCALE_HEIGHT = 18


def draw_histogram(
    name: str,
    counted: Histogram,
    marks: Sequence[tuple[str, float]] = (),
) -> Markup:
    """Draw the distribution of a figure: all conversations pale, those found filled."""
    low = float(counted.edges[0])
    high = float(counted.edges[-1])
    # pixels: values from left to right, counts from bottom to top
    across = Axis(low, high, 4, DRAWING_WIDTH - 4)
    up = Axis(0, float(counted.all.max() or 1), HISTOGRAM_HEIGHT, 6)
    # a bar for each bin with anything in it: of all rows, and over it of those that a filter leaves
    bars = []
    bins = list(pairwise(counted.edges.tolist()))
    for kind, counts in (("bar-rest", counted.all), ("bar-share", counted.found)):
        for (left, right), n in zip(bins, counts.tolist(), strict=False):
            if n:
                width = max(across(right) - across(left) - 1, 0.5)
                x = across(left) + 0.5
                bars.append(
                    make_element(
                        "rect",
                        x=x,
                        y=up(n),
                        width=width,
                        height=HISTOGRAM_HEIGHT - up(n),
                        class_=kind,
                    )
                )

    labels = []
    for value in choose_ticks(low, high, 6):
        labels.append(
            make_element(
                "text",
                format_tick(value),
                x=across(value),
                y=HISTOGRAM_HEIGHT + 14,
                text_anchor="middle",
                class_="tick",
            )
        )

    # marks outside of the range of the figure are left out
    lines = []
    for words, at in marks:
        if low <= at <= high:
            lines.append(
                make_element(
                    "line",
                    make_element("title", words),
                    x1=across(at),
                    x2=across(at),
                    y1=2,
                    y2=HISTOGRAM_HEIGHT,
                    class_="theta",
                )
            )

    axis = make_element(
        "line",
        x1=4,
        x2=DRAWING_WIDTH - 4,
        y1=HISTOGRAM_HEIGHT,
        y2=HISTOGRAM_HEIGHT,
        class_="axis",
    )
    title = f"{name}: {int(counted.found.sum())} of {int(counted.all.sum())} conversations"
    return make_svg(
        title,
        bars,
        axis,
        labels,
        lines,
        width=DRAWING_WIDTH,
        height=HISTOGRAM_HEIGHT + SCALE_HEIGHT,
    )


def draw_scale(
    netsat: float,
    theta: float,
    lower: float | None,
    upper: float | None,
    reach: float,
) -> Markup:
    """Draw a NetSAT on its scale, with θ and the uncertainty window.

    Args:
        reach: The scale goes from −`reach` to `reach`.
    """
    across = Axis(-reach, reach, 10, DRAWING_WIDTH - 10)
    # a window that is open on a side reaches to the end of the scale
    left = across(-reach if lower is None else lower)
    right = across(reach if upper is None else upper)
    tick_labels = []
    for value in choose_ticks(-reach, reach, 6):
        tick_labels.append(
            make_element(
                "text",
                format_tick(value),
                x=across(value),
                y=46,
                text_anchor="middle",
                class_="tick",
            )
        )
    parts = [
        make_element("rect", x=left, y=8, width=max(right - left, 1), height=24, class_="window"),
        make_element("line", x1=10, x2=DRAWING_WIDTH - 10, y1=20, y2=20, class_="axis"),
        make_element("line", x1=across(theta), x2=across(theta), y1=6, y2=34, class_="theta"),
        tick_labels,
        make_element(
            "circle",
            cx=across(netsat),
            cy=20,
            r=6,
            class_="positive" if netsat > theta else "negative",
        ),
    ]
    where = "above" if netsat > theta else "not above"

    return make_svg(
        f"NetSAT {netsat:.1f}, {where} θ {theta:.1f}",
        parts,
        width=DRAWING_WIDTH,
        height=50,
    )


def draw_distribution(
    probabilities: Sequence[float],
    options: Sequence[str],
    chosen: int,
    kind: str,
) -> Markup:
    """Draw an answer as bars, one an option; the option that was picked is outlined."""
    wide = 120 / max(len(probabilities), 1)
    # probabilities may not add up to 1: bars are shares of their sum
    mass = sum(probabilities) or 1.0
    bars = []
    for i, (p, option) in enumerate(zip(probabilities, options, strict=True)):
        bars.append(
            make_element(
                "rect",
                make_element("title", f"{option}: {100 * p / mass:.0f} %"),
                x=i * wide + 1,
                y=24 - 22 * p / mass,
                width=wide - 2,
                height=max(22 * p / mass, 1),
                class_=kind if i == chosen else "bar-share",
            )
        )

    # the same in words, for who can't see the drawing
    share_texts = []
    for p, option in zip(probabilities, options, strict=True):
        share_texts.append(f"{option} {100 * p / mass:.0f} %")
    shares_text = ", ".join(share_texts)
    return make_svg(
        shares_text,
        bars,
        make_element("line", x1=0, x2=120, y1=24, y2=24, class_="axis"),
        width=120,
        height=26,
        class_="share",
    )


def draw_by_class(answers: AnswersByClass) -> Markup:
    """Draw how often each option was chosen: a filled bar for thumbs up, an open one below it for thumbs down."""
    classes = (("thumb up", answers.up, "bar-up"), ("thumb down", answers.down, "bar-down"))
    # options that came with neither thumb are left out
    places = []
    for place in range(len(answers.options)):
        if any(histogram.counts[place] for _, histogram, _ in classes):
            places.append(place)

    shares = {}
    for words, histogram, _ in classes:
        shares[words] = [histogram.counts[place] / (histogram.n or 1) for place in places]
    # one scale for both thumbs, beginning behind the words
    all_shares = []
    for class_shares in shares.values():
        all_shares.extend(class_shares)
    across = Axis(
        0,
        max(all_shares, default=1.0),
        WORDS_WIDTH,
        BARS_WIDTH - 2,
    )
    rows = []
    for row, place in enumerate(places):
        rows.append(
            make_element(
                "text",
                answers.options[place],
                x=WORDS_WIDTH - 6,
                y=OPTION_HEIGHT * row + 12,
                text_anchor="end",
                class_="tick",
            )
        )

    # the bars of both thumbs, one below the other
    bars = []
    for below, (words, _, kind) in enumerate(classes):
        for row, share in enumerate(shares[words]):
            bars.append(
                make_element(
                    "rect",
                    x=WORDS_WIDTH,
                    y=OPTION_HEIGHT * row + 2 + 7 * below,
                    width=across(share) - WORDS_WIDTH,
                    height=6,
                    class_=kind,
                )
            )

    # the same in words, for who can't see the drawing
    class_texts = []
    for words, histogram, _ in classes:
        class_texts.append(
            f"{words}, n = {histogram.n}: "
            + ", ".join(
                f"{answers.options[place]} {100 * share:.0f} %"
                for place, share in zip(places, shares[words], strict=True)
            )
        )
    counts_text = "; ".join(class_texts)
    height = OPTION_HEIGHT * len(places) + 2
    axis = make_element(
        "line",
        x1=WORDS_WIDTH,
        x2=WORDS_WIDTH,
        y1=0,
        y2=height,
        class_="axis",
    )

    return make_svg(
        counts_text,
        rows,
        bars,
        axis,
        width=BARS_WIDTH,
        height=height,
        class_="shares",
    )


BARS_WIDTH, WORDS_WIDTH, OPTION_HEIGHT = 320, 120, 18
"""Width of answers by class, of the words in front, and height of an option."""
