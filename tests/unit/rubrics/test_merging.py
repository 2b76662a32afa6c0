"""Rubrics of equal text on one side are one before anybody is asked, whoever wrote them."""

from pollex.rubrics.merging import merge_equal_rubrics
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import ANSWERED_BY_BUILT_IN_JUDGE, PERSON_SOURCE, Quote, Rubric


def test_built_in_ones_a_models_and_a_persons_edit_are_one_with_the_reasons_and_quotes_of_all() -> (
    None
):
    text = "The assistant names another time."
    built_in = Rubric(
        id="b",
        text=text,
        polarity="sat",
        source="event:x",
        answered_by=ANSWERED_BY_BUILT_IN_JUDGE,
        reason_ids=("r1", "r2"),
    )
    quote = Quote(conversation_id="c", turn=1, text="How about 4 pm?")
    models = Rubric(
        id="m", text=text.upper(), polarity="sat", reason_ids=("r2", "r3", "r4"), quotes=(quote,)
    )
    draft = Rubric(
        id="d", text="The  assistant names another time", polarity="sat", source=PERSON_SOURCE
    )
    reverse = Rubric(id="o", text=text, polarity="dsat")
    kept, merged = merge_equal_rubrics([built_in, models, draft, reverse])
    assert [rubric.id for rubric in kept] == ["m", "o"], (
        "the best supported one, and the other side"
    )
    assert merged == {"b": "m", "d": "m"}
    assert set(kept[0].reason_ids) == {"r1", "r2", "r3", "r4"}
    assert kept[0].quotes == (quote,)


def test_what_has_no_equal_is_as_it_was() -> None:
    rubrics = [
        ChosenRubric(id=name, text=f"The user says {name}.", polarity="sat") for name in "abc"
    ]
    assert merge_equal_rubrics(rubrics) == (tuple(rubrics), {})


def test_drafts_without_an_id_stay_apart_where_their_texts_differ() -> None:
    drafts = [
        Rubric(id="", text=text, polarity="sat") for text in ("It asks.", "It ends.", "it asks")
    ]
    kept, _ = merge_equal_rubrics(drafts)
    assert [rubric.text for rubric in kept] == ["It asks.", "It ends."]
