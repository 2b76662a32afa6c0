"""The frame of all pages: escaping, one policy, WCAG's contrast, and figures that stay whole on a telephone."""

import os
import re
from pathlib import Path

import pytest
from rubric_set_by_hand import rubric_set

from pollex.conversations.conversation import Turn
from pollex.reports.learning import render_learning_page
from pollex.reports.page import (
    STYLE_FILE_NAMES,
    make_template_environment,
    read_rubric_file_of_page,
    read_style_sheet,
)
from pollex.reports.transcript import MarkedText, MarkedTurn, mark_quotes_in_text, mark_turns


def filled(source: str, **data: object) -> str:
    return make_template_environment().from_string(source).render(data)


def test_every_text_in_a_template_is_escaped_and_printable() -> None:
    assert filled("<p title='{{ it }}'>{{ it }}</p>", it="<b>'\x1b") == (
        "<p title='&lt;b&gt;&#x27;\\x1b'>&lt;b&gt;&#x27;\\x1b</p>"
    )
    assert filled("{{ 'see ' ~ it }}", it="http://a") == "see http:&#47;&#47;a"
    assert filled("{{ it|short(3) }}", it="<<<<") == "&lt;&lt;…"


@pytest.mark.parametrize("name", ["b.json", 'a"><b>&amp; $x.json', "Ü.json"])
def test_a_page_says_which_file_it_was_made_for(tmp_path: Path, name: str) -> None:
    page = tmp_path / "report.html"
    assert read_rubric_file_of_page(page) is None
    page.write_text(render_learning_page(rubric_set(), path=name), encoding="utf-8")
    assert read_rubric_file_of_page(page) == name
    page.write_bytes(b"\xff" * 9000)
    assert read_rubric_file_of_page(page) is None
    # a pipe that nobody writes into is not waited for
    page.unlink()
    os.mkfifo(page)
    assert read_rubric_file_of_page(page) is None


def test_quotes_are_marked_where_only_white_space_differs() -> None:
    assert mark_quotes_in_text(
        "it  works\nnow, thanks", [("works now", "sat"), ("now, thanks", "dsat"), (" ", "sat")]
    ) == (
        MarkedText("it  "),
        MarkedText("works\n", "sat"),
        MarkedText("now", "sat dsat"),
        MarkedText(", thanks", "dsat"),
    )
    assert mark_quotes_in_text("no such words", [("works", "sat")]) == (
        MarkedText("no such words"),
    )
    assert mark_quotes_in_text("", [("a", "sat")]) == ()


def test_a_list_of_turns_shows_every_character_and_marks_what_is_quoted() -> None:
    turns = mark_turns([Turn(role="user", content="<b>1 & 2</b>"), Turn(role="assistant", content="ok")], {
        0: [("1 & 2", "sat")]
    })  # fmt: skip
    assert turns[1] == MarkedTurn("assistant", (MarkedText("ok"),))
    shown = filled(
        "{% import 'parts.html' as parts %}{{ parts.turn_list(turns, 'c3') }}", turns=turns
    )
    assert '<p dir="auto">&lt;b&gt;<mark class="sat">1 &amp; 2</mark>&lt;/b&gt;</p>' in shown
    assert '<li id="c3-1" class="turn assistant">' in shown


TOKENS, PARTS, REPORT = map(read_style_sheet, STYLE_FILE_NAMES)
LIGHT, DARK = (
    dict(re.findall(r"--([a-z-]+): (#\w{6})", block))
    for block in re.findall(r":root \{(.*?)\}", TOKENS, re.S)
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
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_black_on_white_has_the_highest_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXTS, 4.5), (MARKS, 3.0)], ids=["text", "marks"])
def test_what_stands_on_a_ground_can_be_seen(
    colors: dict[str, str], pairs: dict[str, list[str]], least: float
) -> None:
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
    # Three columns of 360 pixels take no "too few for an interval" in one line; it ran into the
    # next column.
    assert re.search(r"\.figures td small \{ white-space: normal; \}", narrow)
    # 1.043 became 1.04 and, in the next line, 3.
    assert re.search(r"\.tiles \.value \{[^}]*white-space: nowrap", narrow)
    assert re.search(r"\.tiles div \{[^}]*max-content", narrow)
