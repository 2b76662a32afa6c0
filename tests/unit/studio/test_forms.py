"""Contexts of graphs are forms: each field's value is of its type, or the error says what to give."""

from dataclasses import fields
from typing import Any

import pytest

from pollex.errors import WrongUse
from pollex.graphs.context import Context
from pollex.graphs.learn.refit import RefitChoice
from pollex.graphs.learn.state import LearnChoice
from pollex.graphs.score import ScoreContext
from pollex.rooms import list_hooks
from pollex.studio.hooks import StudioGraph
from pollex.studio.use_cases import collect_filled_fields

FORMS = [LearnChoice, RefitChoice, ScoreContext]
FORMS += [graph.build().context_schema for graph in list_hooks(StudioGraph)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [{"a": {"b": 1}}, [[5]], object(), float("nan"), b"x"])
def test_a_value_of_another_type_is_told_with_what_to_give(form: type[Context], value: Any) -> None:
    for field in fields(form):
        with pytest.raises(WrongUse, match=rf"^{field.name} can't be .*give (a|an|true) "):
            collect_filled_fields(form(**{field.name: value}))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("store", 5, "store can't be 5 → give a text"),
        ("logs", ["log.jsonl", 5], "give a text or a list of texts"),
        ("rubrics", "r\0.json", "give a text"),
        ("logs", ["a\0b"], "give a text"),
        ("label_field", "\ud800", "give a text"),
        ("max_bad", "x", "max_bad can't be 'x' → give a whole number"),
        ("max_bad", True, "give a whole number"),
        ("pairs", "yes", "give true or false"),
        ("columns", "a=b", "give an object whose values are texts"),
    ],
)
def test_each_type_has_its_words(field: str, value: Any, words: str) -> None:
    with pytest.raises(WrongUse) as refused:
        collect_filled_fields(ScoreContext(**{field: value}))
    assert words in str(refused.value)


def test_null_is_an_empty_field_and_numbers_may_be_whole() -> None:
    form: Any = {"logs": ["a.jsonl"], "columns": {"role": "who"}, "store": None, "max_bad": None}
    assert collect_filled_fields(ScoreContext(**form)) == {
        "logs": ("a.jsonl",),
        "columns": {"role": "who"},
    }
    assert collect_filled_fields(LearnChoice(test_fraction=0, alpha=1)) == {
        "test_fraction": 0,
        "alpha": 1,
    }
