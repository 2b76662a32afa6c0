"""Headline lists: twins under one entry, what went the other way in a list of its own."""

from typing import Any

import numpy as np
from rubric_set_by_hand import rubric

from pollex.rubrics.headlines import headlines, hints_of, sounds_of, sounds_worth, turned, twins
from pollex.rubrics.records import ChosenRubric, StandingRecord
from pollex.rubrics.worth import worth_of

UP = np.arange(40) >= 20
BAD = worth_of(np.arange(40) < 15, UP)
GOOD = worth_of(np.arange(40) >= 25, UP)
NOWHERE = worth_of(np.zeros(40, bool), UP)


def event(number: int, pattern: str = "fail_left", **changes: Any) -> ChosenRubric:
    whole = {"id": f"event{number}", "source": f"event:{pattern}", "worth": BAD}
    return rubric(number, "dsat").model_copy(update=whole | changes)


def listed(*rubrics: ChosenRubric) -> list[list[str]]:
    return [[one.id for one in (entry.rubric, *entry.also)] for entry in headlines(rubrics, "dsat")]


LESS = worth_of(np.arange(40) < 5, UP)
PROVEN, LIKELY, HINT = (StandingRecord(p=p, n=40, by="halvings") for p in (0.01, 0.2, 0.9))


def test_what_went_the_other_way_stands_apart_and_what_explains_most_thumbs_leads() -> None:
    rubrics = event(1, worth=GOOD), event(2, worth=LESS), event(3), event(4, worth=None)
    assert listed(*rubrics) == [["event3"], ["event2"], ["event4"]]
    assert [one.id for one in turned(rubrics)] == ["event1"]


def test_proven_and_likely_rubrics_lead_and_hints_stand_apart() -> None:
    rubrics = event(1, standing=HINT), event(2, standing=LIKELY), event(3, standing=PROVEN), event(4)
    assert [one.stands for one in rubrics] == ["hint", "likely", "proven", "unknown"]
    assert listed(*rubrics) == [["event2"], ["event3"], ["event4"]], "a file of before says nothing of its standing"
    assert [one.id for one in hints_of(rubrics)] == ["event1"]


def test_deeds_lead_and_tones_stand_apart_whatever_found_them() -> None:
    deeds = event(1, source="signal:apology"), event(2, source="rate:done")
    tones = event(3, source="signal:thanks"), event(4, source="phrase:user:mind"), event(5, source="turns:user:3")
    assert [one for (one,) in listed(*deeds, *tones)] == ["event1", "event2"]
    assert [one.id for one in sounds_of((*deeds, *tones))] == ["event3", "event4", "event5"]


def test_words_that_held_up_are_worth_a_look_and_tones_are_for_scores() -> None:
    word, tone = event(1, source="phrase:assistant:leider"), event(2, source="signal:user_thanks")
    assert sounds_worth([word, tone]).startswith("and 1 of them")
    unproven = [event(3, source="phrase:x", worth=worth) for worth in (GOOD, NOWHERE, None)]
    assert sounds_worth([tone, *unproven]) == "but give nothing to act on"


def test_twins_stand_under_one_entry_without_those_that_went_the_other_way() -> None:
    assert listed(event(1), event(2), event(3, twin_of="event1")) == [["event1", "event3"], ["event2"]]
    assert listed(event(1, worth=GOOD), event(2, twin_of="event1")) == [["event2"]]
    assert listed(event(2), event(3, twin_of="event1")) == [["event2"], ["event3"]], "whose twin was removed"


def test_the_same_event_of_any_object_and_of_one_object_are_twins_and_two_objects_are_not() -> None:
    values = np.random.default_rng(0).normal(size=(50, 4))
    pool = [
        event(1, 'answer_no {"topic":"hotel"}'),
        event(2, 'answer_no {"topic":"train"}'),
        event(3, "answer_no"),
        event(4, "fail_left"),
    ]
    assert twins(pool, values) == {"event3": "event1"}
    first, other = values[:, 0], values[:, 1]
    alike = np.stack([first, first + 0.1 * other, first, other], axis=1)
    pool = [event(1), event(2, "pushed"), event(3, "pushed").model_copy(update={"polarity": "sat"}), event(4, "asked")]
    assert twins(pool, alike) == {"event2": "event1"}, "of one side and answered alike"
    sounds = [event(1, source="signal:thanks"), event(2, source="signal:praise")]
    assert twins(sounds, np.ones((9, 2)) * np.arange(9)[:, None]) == {}, "how users sound has no twins"
