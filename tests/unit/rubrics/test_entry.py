"""The sentence that leads: what is borne out, and of what it mostly consists."""

import pytest

from pollex.rubrics.records import ChosenRubric, Family, Member

FAILS = ChosenRubric(text="The assistant can't do what is asked.", polarity="dsat")


def of(*members: tuple[str, int], n: int = 51) -> tuple[str, str]:
    found = tuple(Member(id=text, text=text, among=among) for text, among in members)
    return FAILS.model_copy(update={"family": Family(n=n, members=found)}).entry


@pytest.mark.parametrize("family", [None, Family(n=51, members=())])
def test_a_rubric_without_narrower_forms_is_its_own_sentence(family: Family | None) -> None:
    assert FAILS.model_copy(update={"family": family}).entry == (FAILS.text, "")


def test_what_it_mostly_consists_of_stands_in_the_same_sentence_with_counts() -> None:
    found = of(("It offers nothing in its place.", 32), ("The user gives up.", 20))
    assert " ".join(found) == (
        "The assistant can't do what is asked: mostly “It offers nothing in its place” (32 of 51), "
        "“The user gives up” (20)."
    )


def test_less_than_half_is_not_called_most_and_three_forms_are_enough() -> None:
    assert of(("A.", 10), ("B.", 9), ("C.", 8), ("D.", 7))[1] == "among others “A” (10 of 51), “B” (9), “C” (8)."
