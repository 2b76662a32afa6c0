"""Rubrics that somebody wrote by hand: what is refused, what comes with pollex, and what is in it."""

from pathlib import Path

import pytest

from pollex.agents.checks import refusal
from pollex.errors import BadRubrics
from pollex.rubrics.edits import bundled, read_rubrics


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("rubrics = ", "not valid TOML.* → correct it"),
        ("rubrics = " + "[" * 100_000, "not valid TOML.* → correct it"),
        ("rubrics = " + "9" * 5000, "not valid TOML.* → correct it"),
        ("purpose = 'none'", "rubrics: Field required"),
        ("rubrics = []", "rubrics: List should have at least 1"),
        ('[[rubrics]]\ntext = "The user laughs."', "rubrics.0.polarity: Field required"),
        ('[[rubrics]]\ntext = " "\npolarity = "sat"', "rubrics.0.text"),
        ('[[rubrics]]\ntext = "The user laughs."\npolarity = "good"', "rubrics.0.polarity"),
        ('[[rubrics]]\ntext = "The user laughs."\npolarity = "sat"\nweight = 2', "rubrics.0.weight"),
        ('[[rubrics]]\ntext = "A b."\npolarity = "sat"\n' * 2, "occurs twice"),
    ],
)
def test_a_list_with_a_fault_is_refused_with_its_place(tmp_path: Path, text: str, clause: str) -> None:
    path = tmp_path / "list.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadRubrics, match=clause) as refused:
        read_rubrics(path)
    assert refused.value.where == str(path)


def test_a_mark_of_byte_order_is_no_part_of_a_list_and_what_can_not_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text('[[rubrics]]\ntext = "It helps."\npolarity = "sat"\n', encoding="utf-8-sig")
    assert [rubric.text for rubric in read_rubrics(path)] == ["It helps."]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadRubrics, match=r"can't be read: .* → check the path"):
        read_rubrics(path)
    with pytest.raises(BadRubrics, match="generic, generic_debugging"):
        read_rubrics("nowhere.toml")


def test_bundled_sets_have_ten_rubrics_a_kind_that_learnt_ones_could_be() -> None:
    for name in bundled():
        rubrics = read_rubrics(name)
        assert [sum(rubric.polarity == kind for rubric in rubrics) for kind in ("sat", "dsat")] == [10, 10]
        assert [refusal(rubric.text) for rubric in rubrics] == [""] * 20
        assert all(len(rubric.text.split()) <= 15 for rubric in rubrics)
        assert {rubric.source for rubric in rubrics} == {"person"}
    generic, adapted = ({rubric.text for rubric in read_rubrics(name)} for name in ("generic", "generic_debugging"))
    assert generic & adapted == {"The assistant gives a concise answer."}, "all else is of its domain"
