"""The report's colours: text has the contrast that WCAG 2.1 asks for at level AA, in light and in dark. On a telephone
figures stay whole, and words don't run over one another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pollex.web

WEB = Path(pollex.web.__file__).parent
STYLE = (WEB / "report.css").read_text(encoding="utf-8")
NARROW = STYLE.split("@media (max-width: 46rem) {")[1].split("\n}")[0]
LIGHT, DARK = (
    dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", STYLE, re.S)[:2]
)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_black_on_white_has_the_highest_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("text", ["ink", "muted", "link", "positive", "negative"])
def test_text_can_be_read_on_paper(colours: dict[str, str], text: str) -> None:
    assert contrast(colours[text], colours["paper"]) >= 4.5


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("mark", ["ink", "positive", "negative"])
def test_marks_can_be_seen_on_the_window(colours: dict[str, str], mark: str) -> None:
    assert contrast(colours[mark], colours["window"]) >= 3


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_commands_can_be_read_in_their_box(colours: dict[str, str]) -> None:
    assert contrast(colours["ink"], colours["code"]) >= 4.5


def test_on_a_telephone_what_stands_below_a_figure_wraps_and_the_figure_does_not() -> None:
    # Three columns of 360 pixels take no "too few for an interval" in one line; it ran into the next column.
    assert re.search(r"\.figures td small \{ white-space: normal; \}", NARROW)
    assert "nowrap" not in (WEB / "calibration.css").read_text(encoding="utf-8")
    # 1.043 became 1.04 and, in the next line, 3.
    assert re.search(r"\.tiles \.value \{[^}]*white-space: nowrap", NARROW)
    assert re.search(r"\.tiles div \{[^}]*max-content", NARROW)
