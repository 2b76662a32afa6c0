"""What is shown to a summarizer, batch by batch."""

from itertools import islice

from pollex.agents.llm.pairs import rotate_pairs
from pollex.agents.roles import ContrastingPair, Summary
from pollex.graphs.learn.write_rubrics import list_unused_reasons
from pollex.rubrics.rubric import Quote, Reason, Rubric


def reason(id_: str) -> Reason:
    quote = Quote(conversation_id="c1", turn=0, text="It works now, thank you.")
    return Reason(
        id=id_,
        conversation_id="c1",
        polarity="sat",
        text=f"Reason {id_}.",
        quotes=(quote,),
        source="m",
    )


def test_reasons_under_no_rubric_are_shown_again() -> None:
    first = reason("a")
    second = reason("b")
    third = reason("c")
    made = Rubric(id="r", text="The fix works.", polarity="sat", source="m", reason_ids=("a",))
    answered = Summary(rubrics=(made,), supported={"known": (third,)})
    assert list_unused_reasons([first, second, third], answered) == [second]


def test_each_batch_is_shown_other_pairs() -> None:
    pairs = [ContrastingPair(satisfied=f"up {n}", dissatisfied=f"down {n}") for n in range(3)]
    assert [len(shown) for shown in islice(rotate_pairs(pairs, 2), 3)] == [2, 1, 2]
    assert next(rotate_pairs([], 2)) == ()
