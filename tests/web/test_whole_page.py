"""The frame that all pages have."""

from __future__ import annotations

from pathlib import Path

import pytest

from pollex.web.markup import tag
from pollex.web.page import SHARED, file_of, whole_page


def test_a_title_and_text_can_be_no_markup() -> None:
    page = whole_page("a </title><script>", ["<b>", tag("p", "x")])
    assert "<script>" not in page
    assert "<title>a &lt;/title&gt;&lt;script&gt;</title>" in page
    assert "<body>\n&lt;b&gt;\n<p>x</p>\n</body>" in page


@pytest.mark.parametrize("name", ["b.json", 'a"><b>&amp; $x.json', "Ü.json", ""])
def test_a_page_says_which_file_it_tells_of(tmp_path: Path, name: str) -> None:
    page = tmp_path / "report.html"
    assert file_of(page) is None
    page.write_text(whole_page("t", [], file=name), encoding="utf-8")
    assert file_of(page) == (name or None)
    page.write_bytes(b"\xff" * 9000)
    assert file_of(page) is None


@pytest.mark.parametrize("own", ["calibration.css", "grades.css"])
def test_a_page_has_the_shared_styles_and_its_own(own: str) -> None:
    plain, styled = whole_page("t", []), whole_page("t", [], own)
    assert SHARED == "report.css"
    shared = plain[plain.index("<style>") + 7 : plain.index("</style>")]
    assert len(shared) > 1000
    assert shared in styled
    assert len(styled) > len(plain)
