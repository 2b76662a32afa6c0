"""HTML from functions: what isn't markup is escaped."""

from __future__ import annotations

from pollex.web.markup import Markup, escape, join, tag


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "a < b", Markup("<b>c</b>")) == "<p>a &lt; b<b>c</b></p>"


def test_attributes_are_escaped_and_named_for_html() -> None:
    made = tag("td", class_='"><b>', data_column="it's", hidden=True, title=None, draggable=False, x=1.50)
    assert made == '<td class="&quot;&gt;&lt;b&gt;" data-column="it&#x27;s" hidden x="1.5"></td>'


def test_void_elements_have_no_end() -> None:
    assert tag("br") == "<br>"


def test_none_is_left_out_and_lists_are_joined() -> None:
    assert join(["a", None, ["b", [Markup("<i>")]]], " & ") == "a &amp; b<i>"


def test_adding_text_to_markup_escapes_it() -> None:
    assert Markup("<p>") + "<" == "<p>&lt;"
    assert isinstance(Markup("<p>") + Markup("</p>"), Markup)


def test_two_slashes_read_the_same_but_are_no_address() -> None:
    assert escape("a//b") == "a&#47;&#47;b"
    assert escape("a///b") == "a&#47;&#47;/b"


def test_escaping_cuts_before_it_escapes() -> None:
    assert escape("<<<<", 2) == "&lt;…"
