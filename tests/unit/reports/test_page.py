"""The frame of all pages: escaping everywhere, one policy, and names that are missing."""

from pathlib import Path

import pytest
from jinja2 import TemplateNotFound, UndefinedError
from rubric_set_by_hand import rubric_set

from pollex.conversations.conversation import Turn
from pollex.reports.learning import learning_page
from pollex.reports.page import environment, file_of, render
from pollex.reports.transcript import MarkedText, MarkedTurn, marked, marked_turns


def filled(source: str, **data: object) -> str:
    return environment().from_string(source).render(data)


def test_every_text_in_a_template_is_escaped_and_printable() -> None:
    assert filled("<p title='{{ it }}'>{{ it }}</p>", it="<b>'\x1b") == (
        "<p title='&lt;b&gt;&#x27;\\x1b'>&lt;b&gt;&#x27;\\x1b</p>"
    )
    assert filled("{{ 'see ' ~ it }}", it="http://a") == "see http:&#47;&#47;a"
    assert filled("{{ it|short(3) }}", it="<<<<") == "&lt;&lt;…"


def test_a_name_that_is_missing_is_an_error_and_no_gap() -> None:
    with pytest.raises(UndefinedError):
        filled("<p>{{ nothing }}</p>")
    with pytest.raises(TemplateNotFound):
        render("nothing.html")


@pytest.mark.parametrize("name", ["b.json", 'a"><b>&amp; $x.json', "Ü.json"])
def test_a_page_says_which_file_it_was_made_for(tmp_path: Path, name: str) -> None:
    page = tmp_path / "report.html"
    assert file_of(page) is None
    page.write_text(learning_page(rubric_set(), path=name), encoding="utf-8")
    assert file_of(page) == name
    page.write_bytes(b"\xff" * 9000)
    assert file_of(page) is None


def test_quotes_are_marked_where_only_white_space_differs() -> None:
    assert marked("it  works\nnow, thanks", [("works now", "sat"), ("now, thanks", "dsat"), (" ", "sat")]) == (
        MarkedText("it  "),
        MarkedText("works\n", "sat"),
        MarkedText("now", "sat dsat"),
        MarkedText(", thanks", "dsat"),
    )
    assert marked("no such words", [("works", "sat")]) == (MarkedText("no such words"),)
    assert marked("", [("a", "sat")]) == ()


def test_a_list_of_turns_shows_every_character_and_marks_what_is_quoted() -> None:
    turns = marked_turns([Turn(role="user", content="<b>1 & 2</b>"), Turn(role="assistant", content="ok")], {
        0: [("1 & 2", "sat")]
    })  # fmt: skip
    assert turns[1] == MarkedTurn("assistant", (MarkedText("ok"),))
    shown = filled("{% import 'parts.html' as parts %}{{ parts.turn_list(turns, 'c3') }}", turns=turns)
    assert '<p dir="auto">&lt;b&gt;<mark class="sat">1 &amp; 2</mark>&lt;/b&gt;</p>' in shown
    assert '<li id="c3-1" class="turn assistant">' in shown
