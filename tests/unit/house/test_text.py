"""Untrusted text on a terminal, and counts in sentences."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollex.text import escape_controls, format_count


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("a\x9b31mb", r"a\x9b31mb"),
        ("user\u202egnp.exe", r"user\u202egnp.exe"),
        ("a\u200bb\ufeffc", r"a\u200bb\ufeffc"),
        ("a\nb\r\tc\x00", r"a\nb\r\tc\x00"),
        ("a\u2028b", r"a\u2028b"),
        ("\ud83d", r"\ud83d"),
        ("\U000e0041", r"\U000e0041"),
        ("Grüße, 世界, שלום 👍🏽 – a\u00a0b", "Grüße, 世界, שלום 👍🏽 – a\u00a0b"),
    ],
)
def test_controls_and_unseen_characters_become_visible_escapes(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_line_breaks_are_kept_where_asked_for_but_not_carriage_returns() -> None:
    assert escape_controls("a\n\tb\rc\x1b", keep_lines=True) == "a\n\tb\\rc\\x1b"


@pytest.mark.parametrize(
    ("limit", "shown"), [(5, "abcde"), (4, "abc…"), (1, "…"), (0, ""), (None, "abcde")]
)
def test_long_text_ends_in_an_ellipsis(limit: int | None, shown: str) -> None:
    assert escape_controls("abcde", limit) == shown


@given(st.text(alphabet=st.characters()), st.integers(0, 30))
def test_nothing_but_printable_characters_within_the_limit_comes_out(text: str, limit: int) -> None:
    shown = escape_controls(text, limit)
    assert len(shown) <= limit
    assert all(c.isprintable() or unicodedata.category(c) == "Zs" for c in shown)
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("n", "said"), [(0, "0 rows are bad"), (1, "1 row is bad"), (2, "2 rows are bad")]
)
def test_one_is_one_and_all_others_are_many(n: int, said: str) -> None:
    assert f"{format_count(n, 'row is', 'rows are')} bad" == said
    assert format_count(n, "run") == f"{n} run" + "s" * (n != 1)
