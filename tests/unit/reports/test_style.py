"""The colors of pages: text and marks have the contrast that WCAG 2.2 asks for at level AA, in light and in dark. On a
telephone figures stay whole, and words don't run over one another."""

import re

import pytest

from pollex.reports.page import STYLES, style_of

TOKENS, PARTS, REPORT = map(style_of, STYLES)
LIGHT, DARK = (
    dict(re.findall(r"--([a-z-]+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", TOKENS, re.S)
)
TEXTS = {
    "paper": ["ink", "muted", "link", "positive", "negative", "bad", "warn"],
    "card": ["ink", "muted", "link", "positive", "negative", "bad", "warn"],
    "code": ["ink"],
    "hover": ["ink", "muted", "link"],
    "soft-positive": ["ink"],
    "soft-negative": ["ink"],
}
MARKS = {"window": ["ink", "positive", "negative"], "paper": ["line"], "card": ["line"]}


def luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_black_on_white_has_the_highest_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXTS, 4.5), (MARKS, 3.0)], ids=["text", "marks"])
def test_what_stands_on_a_ground_can_be_seen(colors: dict[str, str], pairs: dict[str, list[str]], least: float) -> None:
    low = {
        (ground, name): round(found, 2)
        for ground, names in pairs.items()
        for name in names
        if (found := contrast(colors[name], colors[ground])) < least
    }
    assert low == {}


def test_both_schemes_have_the_same_colors_and_styles_use_no_other() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert not re.findall(r"#[0-9a-f]{3,6}\b", PARTS)
    names = set(re.findall(r"--([a-z0-9-]+):", TOKENS))
    assert set(re.findall(r"var\(--([a-z0-9-]+)\)", PARTS + REPORT)) <= names


def test_on_a_telephone_what_stands_below_a_figure_wraps_and_the_figure_does_not() -> None:
    narrow = "".join(re.findall(r"@media \(max-width: 46rem\) \{(.*?)\n\}", PARTS + REPORT, re.S))
    # Three columns of 360 pixels take no "too few for an interval" in one line; it ran into the next column.
    assert re.search(r"\.figures td small \{ white-space: normal; \}", narrow)
    # 1.043 became 1.04 and, in the next line, 3.
    assert re.search(r"\.tiles \.value \{[^}]*white-space: nowrap", narrow)
    assert re.search(r"\.tiles div \{[^}]*max-content", narrow)
