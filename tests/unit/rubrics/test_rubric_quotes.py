"""Quotes of a rubric: deeds stand before what called for them."""

from pollex.rubrics.rubric import Quote, surest_first


def test_deeds_stand_before_their_occasions_and_surer_detectors_first() -> None:
    asked, done, left, taken = (
        Quote(conversation_id="c", turn=turn, text=part, part=part)
        for turn, part in enumerate(("occasion", "act", "omission", "effect"))
    )
    assert sorted((asked, taken, done, left), key=surest_first) == [done, left, taken, asked]
    sure, unsure = (Quote(conversation_id="c", turn=0, text="words", sure=sure) for sure in (0.9, 0.4))
    assert sorted((unsure, sure), key=surest_first) == [sure, unsure]
