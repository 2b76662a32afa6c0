"""A system prompt: its places, what is protected, and the logged turns that it makes."""

import time

import pytest

from pollex.rooms.remedy.services.prompt_text import PromptEdit, PromptText, apply_diff


def test_a_logged_turn_that_another_prompt_made_gives_no_values() -> None:
    assert PromptText("Help {user} on {{ day }}.").values_in("Help Ann tomorrow.") is None
    assert PromptText("{a} and {a}").values_in("one and two") is None


def test_a_logged_turn_gives_the_values_that_it_was_made_with() -> None:
    # digits name no value
    template = PromptText("Help {user} on {{ day }}.\n{user} pays in {0} or \\d{4}.\n")
    values = template.values_in(" Help Ann (VIP) on Monday.\nAnn (VIP) pays in {0} or \\d{4}.")
    assert values == {"user": "Ann (VIP)", "day": "Monday"}
    assert (
        template.rendered(values) == "Help Ann (VIP) on Monday.\nAnn (VIP) pays in {0} or \\d{4}.\n"
    )


def test_a_missing_value_is_never_filled_with_emptiness() -> None:
    assert PromptText("Today is {date}.").rendered({"user": "Ann"}) is None


def test_a_value_that_looks_like_a_place_is_not_filled_again() -> None:
    assert PromptText("{a} {b}").rendered({"a": "{b}", "b": "x"}) == "{b} x"


def test_lines_between_marks_and_lines_of_a_pattern_are_protected() -> None:
    text = PromptText("a\n<!-- keep -->\nb\n<!-- keep -->\nc\nlaw: d", keep=("^law",))
    assert text.protected == ("<!-- keep -->", "b", "<!-- keep -->", "law: d")


@pytest.mark.parametrize(
    ("new", "first"),
    [
        ("{m}b\nmore\n\nb\n{m}", "''"),
        ("{m}b\n\n{m}", "'b'"),
        ("{m}\nb\nb\n{m}", "'b'"),
        ("{m}b\n\nb\n{m}c: d", "'c: d'"),
    ],
    ids=["put inside", "a second one gone", "another order", "one more of a pattern"],
)
def test_what_is_protected_stays_line_by_line(new: str, first: str) -> None:
    mark = "<!-- keep -->\n"
    old = PromptText(f"a\n{mark}b\n\nb\n{mark}", keep=("^c",))
    fault = PromptEdit("x", old, PromptText(f"a\n{new.format(m=mark)}", old.keep)).fault
    assert fault == f"protected lines are changed, the first: {first}"


def test_a_diff_may_end_in_blank_lines() -> None:
    said = "@@ -2,1 +2,2 @@\n Be short.\n+Be kind. \n\n"
    assert (
        apply_diff(PromptText("Book tables.\nBe short.\n"), said, "my.diff")
        == "Book tables.\nBe short.\nBe kind. \n"
    )


def test_a_template_with_many_places_is_matched_in_linear_time() -> None:
    template = PromptText(" ".join(f"a {{p{number}}}" for number in range(30)) + " end")
    begun = time.monotonic()
    assert template.values_in("a " * 100_000) is None
    values = template.values_in("a x " * 29 + "a " + "y " * 100_000 + "end")
    assert values is not None
    assert (values["p0"], len(values["p29"])) == ("x", 199_999)
    assert time.monotonic() - begun < 1
