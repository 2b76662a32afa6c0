"""What leads and what is marked: headlines, twins, the sentence of an entry, its worth, and rubrics hard to judge."""

from typing import Any

import numpy as np
import pytest
from rubric_set_by_hand import figure, rubric, rubric_set

from pollex.graphs.learn.assemble import (
    is_measure_of_length,
    list_ids_to_check_by_circumstances,
    name_fact_of_source,
)
from pollex.measures.intervals import Figure
from pollex.rubrics.headlines import (
    add_overlaps_with_headlines,
    describe_lack_of_proven_rubrics,
    describe_same_facts,
    describe_side_without_headline,
    explain_why_proven_rubric_is_no_headline,
    find_deed_behind_each_phrase,
    find_earlier_equivalents_of_headlines,
    find_finding_explaining_each_phrase,
    find_findings_of_same_fact,
    list_deeds_in_conversations_of_ending,
    list_headlines,
    list_phrase_rubrics_explained_by_findings,
    list_proven_deeds_outside_headlines,
    list_proven_phrase_rubrics,
    list_rubrics_contradicted_by_thumbs,
    list_rubrics_explained_by_circumstances,
    list_rubrics_of_conversation_endings,
    list_thin_rubrics,
    list_tone_rubrics,
    list_unexpected_rubrics,
    list_unproven_rubrics,
)
from pollex.rubrics.lint import (
    find_lint_in_rubric_answers,
    find_lint_in_rubric_pairs,
    find_lint_in_rubric_sentence,
)
from pollex.rubrics.records import (
    ChosenRubric,
    CircumstanceRecord,
    Family,
    FamilyMember,
    RubricAlone,
    RubricEvidence,
    StandingRecord,
    TwinOverlap,
)
from pollex.rubrics.rubric import Polarity, Quote, Rubric, compute_quote_sort_key
from pollex.rubrics.worth import (
    compute_evidence_of_rubric,
    compute_interval_of_thumb_difference,
    compute_share_with_interval,
    count_thumbs_needed,
    describe_doubt_about_rubric,
    describe_missing_thumbs,
)

UP = np.arange(40) >= 20
BAD = compute_evidence_of_rubric(np.arange(40) < 15, UP)
GOOD = compute_evidence_of_rubric(np.arange(40) >= 25, UP)
NOWHERE = compute_evidence_of_rubric(np.zeros(40, bool), UP)


def event(number: int, pattern: str = "fail_no_way", **changes: Any) -> ChosenRubric:
    whole = {"id": f"event{number}", "source": f"event:{pattern}", "worth": BAD, "tells": "deed"}
    whole |= {"reason_ids": ("reason1", "reason2")}
    return rubric(number, "dsat").model_copy(update=whole | changes)


def listed(*rubrics: ChosenRubric) -> list[list[str]]:
    return [
        [one.id for one in (entry.rubric, *entry.also)] for entry in list_headlines(rubrics, "dsat")
    ]


LESS = compute_evidence_of_rubric(np.arange(40) < 5, UP)
PROVEN, LIKELY, HINT = (StandingRecord(p=p, n=40, by="halvings") for p in (0.01, 0.2, 0.9))


def test_what_restates_the_thumb_is_an_outcome_and_no_headline() -> None:
    gives_up = event(1, "given_up order", tells="outcome", standing=PROVEN)
    left = event(2, "given_up", tells="outcome", standing=HINT)
    sorry = event(4, source="signal:apology", tells="manners", standing=PROVEN, worth=LESS)
    cause = event(3, standing=PROVEN)
    rubrics = gives_up, left, sorry, cause
    assert listed(*rubrics) == [["event3"]]
    assert [rubric.id for rubric in list_rubrics_of_conversation_endings(rubrics)] == [
        "event1",
        "event4",
    ]
    assert [rubric.id for rubric in list_unproven_rubrics(rubrics)] == ["event2"]


def test_a_sentence_is_of_who_does_something_in_its_last_clause() -> None:
    said = {"The user thanks the assistant.": True, "The user gives up after the reply.": True}
    said |= {"The assistant names no other time.": False}
    said |= {"The user asks for a time, and the assistant gives none.": False}
    said |= {"The assistant suggests a bike, and the user takes it.": True}
    said |= {"The assistant asks for what the user has said.": False}
    said |= {"The user is offered another time.": False}
    said |= {"The assistant apologises for the delay.": True}
    assert {
        text: rubric(1, "dsat").model_copy(update={"text": text, "source": "s@1"}).outcome
        for text in said
    } == said


def test_in_a_set_with_a_models_rubrics_these_lead_and_a_built_in_one_only_if_it_is_proven_and_adds_something() -> (
    None
):
    words = "The assistant names no other time."
    model = event(1, source="summarize_dsat@1", text=words, worth=LESS, standing=LIKELY)
    proven = event(2, answered_by="built-in", standing=PROVEN)
    unproven = event(3, answered_by="built-in", standing=LIKELY, yields=True)
    same = event(4, answered_by="built-in", standing=PROVEN, twin_of="event1")
    assert listed(proven, unproven, same, model) == [["event1", "event4"], ["event2"]]
    assert list_unproven_rubrics((proven, unproven, same, model)) == []
    assert [
        one.id for one in list_proven_deeds_outside_headlines((proven, unproven, same, model))
    ] == ["event3"]
    assert "only if it is proven" in explain_why_proven_rubric_is_no_headline(unproven)
    values = np.array(
        [[0.0, 0.0], [10.0, 10.0], [0.0, 0.0], [10.0, 10.0], [0.0, 10.0], [10.0, 10.0]]
    )
    apart = np.zeros(values.shape, dtype=bool)
    assert find_earlier_equivalents_of_headlines([proven, model], apart, values) == {
        "event2": "event1"
    }, "whichever was chosen first"


def test_what_went_the_other_way_stands_apart_and_what_explains_most_thumbs_leads() -> None:
    rubrics = event(1, worth=GOOD), event(2, worth=LESS), event(3), event(4, worth=None)
    assert listed(*rubrics) == [["event3"], ["event2"], ["event4"]]
    tone = event(5, source="signal:need", tells="tone", worth=GOOD)
    assert [one.id for one in list_rubrics_contradicted_by_thumbs((*rubrics, tone))] == [
        "event1",
        "event5",
    ]
    assert not list_tone_rubrics((*rubrics, tone))


def test_proven_and_likely_rubrics_lead_and_hints_stand_apart() -> None:
    rubrics = (
        event(1, standing=HINT),
        event(2, standing=LIKELY),
        event(3, standing=PROVEN),
        event(4),
    )
    assert [one.stands for one in rubrics] == ["hint", "likely", "proven", "unknown"]
    assert listed(*rubrics) == [["event2"], ["event3"], ["event4"]], (
        "a file of before says nothing of its standing"
    )
    assert [one.id for one in list_unproven_rubrics(rubrics)] == ["event1"]


def test_where_nothing_leads_the_thumbs_are_those_that_tested_the_rubrics() -> None:
    data = rubric_set().data
    assert "You have 40 thumbs" in describe_lack_of_proven_rubrics(
        [event(1), event(2, standing=HINT)], data
    )
    assert f"You have {data.thumbs} thumbs" in describe_lack_of_proven_rubrics([event(1)], data)
    missing = count_thumbs_needed(data.down, 0.3) - data.thumbs
    assert (
        f"about {10 * -(-missing // 10):,} more, from different users"
        in describe_lack_of_proven_rubrics([], data)
    )
    assert "enough to see" in describe_missing_thumbs(1504, 0.5)


def test_all_that_is_borne_out_is_checked_by_circumstances_how_people_sound_too() -> None:
    sound = {"source": "signal:short_turns", "tells": "tone"}
    rubrics = [
        event(1, standing=HINT),
        event(2, standing=PROVEN, **sound),
        event(3, standing=HINT, **sound),
        event(4),
    ]
    assert list_ids_to_check_by_circumstances(rubrics) == {"event2", "event4"}


def test_what_is_said_stands_before_how_people_sound_beside_a_circumstance() -> None:
    along = CircumstanceRecord(
        name="length", over_all=0.4, within=Figure(0.1, -0.1, 0.3, 40), turned=False, strata=3
    )
    sound = event(1, standing=PROVEN, source="signal:short_turns", tells="tone", circumstance=along)
    words = phrase(2).model_copy(update={"circumstance": along})
    explained = list_rubrics_explained_by_circumstances([sound, words])
    assert [one.id for one in explained] == ["event2", "event1"]


def test_where_no_act_leads_what_is_borne_out_all_the_same_is_counted_and_nothing_else_named() -> (
    None
):
    data = rubric_set().data
    words = phrase(2)
    ending = event(3, tells="outcome", standing=PROVEN)
    sound = event(4, source="signal:thanks", tells="tone", standing=PROVEN)
    nothing = "No act of the assistant is proven or likely to go along with the thumbs; "
    for rubrics, rest in (
        (
            [words],
            "what is proven or likely stands elsewhere: 1 on what is said (words, which may stand for an act). ",
        ),
        (
            [ending, sound],
            "what is proven or likely stands elsewhere: 1 on how conversations end and 1 on how people sound. ",
        ),
        ([event(1, standing=HINT)], "what stands out is listed as hints, which may well be luck. "),
        ([], "nothing else is, either. "),
    ):
        told = describe_lack_of_proven_rubrics(rubrics, data)
        said = "No act of the assistant leads, but 1 of what it says or how it sounds is proven or likely; "
        assert told.startswith(f"{said if words in rubrics else nothing}{rest}")
    odd = event(1, standing=PROVEN, unexpected=True)
    told = describe_lack_of_proven_rubrics([odd], data)
    assert told.startswith(
        "No act of the assistant is a finding; what is proven or likely stands elsewhere: 1 to check."
    )
    assert "15 points" in describe_missing_thumbs(1000, 0.5)
    assert "about 1,100 more" in describe_missing_thumbs(376, 0.5)  # 1504 − 376 = 1128
    assert count_thumbs_needed(0.5) == 1504  # 3.5 × (1.645 + .842)² × .25 / (.16 × .0225), by hand


def test_deeds_lead_and_tones_stand_apart_whatever_found_them() -> None:
    deeds = event(1, source="signal:pointing"), event(2)
    tones = (
        event(3, source="signal:need", tells="tone"),
        event(4, source="phrase:user:mind"),
        event(5, source="turns:user:3"),
    )
    assert [one for (one,) in listed(*deeds, *tones)] == ["event1", "event2"]
    assert [one.id for one in list_tone_rubrics((*deeds, *tones))] == ["event3", "event4", "event5"]


def test_words_that_labels_bear_out_are_a_list_of_their_own_and_others_are_how_people_sound() -> (
    None
):
    word = event(1, source="phrase:assistant:leider", standing=PROVEN)
    tone = event(2, source="signal:need", tells="tone")
    hint, likely = (
        event(n, source="phrase:user:x", standing=by) for n, by in ((3, HINT), (4, LIKELY))
    )
    turned_round = event(5, source="phrase:user:y", standing=PROVEN, worth=GOOD)
    rubrics = (word, tone, hint, likely, turned_round)
    assert [one.id for one in list_proven_phrase_rubrics(rubrics)] == ["event1", "event4"]
    assert [one.id for one in list_tone_rubrics(rubrics)] == ["event2", "event3"]


def nest(pool: list[ChosenRubric], held: np.ndarray, up: np.ndarray) -> list[ChosenRubric]:
    """Return rubrics with what they stand under, as learning does."""
    beneath = find_earlier_equivalents_of_headlines(pool, held, None)
    borne_out = {plain.id for plain in pool}
    explained = find_finding_explaining_each_phrase(pool, held, up, borne_out)
    beneath = find_deed_behind_each_phrase(pool, held, borne_out, explained) | beneath
    nested = []
    for plain in pool:
        update = {
            "twin_of": beneath.get(plain.id, ""),
            "explained_by": explained.get(plain.id, ""),
        }
        nested.append(plain.model_copy(update=update))
    return list(add_overlaps_with_headlines(nested, held))


def phrase(number: int, side: Polarity = "dsat") -> ChosenRubric:
    worth = BAD if side == "dsat" else GOOD
    return event(
        number, source=f"phrase:assistant:{number}", polarity=side, standing=PROVEN, worth=worth
    )


def test_words_said_where_a_deed_is_done_stand_under_it_and_its_mirror_stands_nowhere() -> None:
    rows = np.arange(200)
    done = rows < 60
    # half of those without the deed are down for other reasons, and the last phrase tells them
    down = (rows < 54) | (rows >= 150)
    held = np.stack(
        [done, done & (rows != 3), ~done, done & (rows < 30), (rows >= 145) | (rows < 3)], axis=1
    )
    there, mirror, part, other = phrase(2), phrase(3, "sat"), phrase(4), phrase(5)
    nested = nest([event(1, standing=PROVEN), there, mirror, part, other], held, ~down)
    assert listed(*nested) == [["event1", "event2"]]
    assert [rubric.id for rubric in list_proven_phrase_rubrics(nested)] == ["event5"]
    assert [rubric.id for rubric in list_phrase_rubrics_explained_by_findings(nested)] == [
        "event3",
        "event4",
    ]
    assert nested[1].overlap is not None
    assert nested[1].overlap.words == "in nearly the same conversations (59 of the 60 of either):"
    words = {rubric.id for rubric in list_proven_phrase_rubrics(nested[1:])}
    assert {"event2", "event5"} <= words, "without the deed they stand by themselves"


def test_a_deed_leads_before_words_that_are_mostly_said_with_it_and_explain_more() -> None:
    rows = np.arange(200)
    done = rows < 40
    # said with most of the deeds, and in other conversations that go wrong, too
    said = (rows >= 5) & (rows < 60)
    down = (rows < 60) | (rows % 4 == 0)
    held = np.stack([done, said, rows >= 150], axis=1)
    nested = nest([event(1, standing=PROVEN), phrase(2), phrase(3)], held, ~down)
    assert listed(*nested) == [["event1", "event2"]]
    assert nested[1].overlap == TwinOverlap(both=35, own=55, twin=40)
    assert [one.id for one in list_proven_phrase_rubrics(nested)] == ["event3"]
    hint = nested[0].model_copy(update={"standing": HINT})
    assert {one.id for one in list_proven_phrase_rubrics([hint, *nested[1:]])} >= {"event2"}


def test_words_that_mirror_two_findings_together_add_nothing_and_those_that_say_more_do() -> None:
    rows = np.arange(240)
    down = (rows < 80) | (rows % 4 == 0)
    held = np.stack([rows < 40, (rows >= 40) & (rows < 100), rows >= 100], axis=1)
    pool = [event(1, standing=PROVEN), phrase(2), phrase(3, "sat")]
    assert [
        rubric.id for rubric in list_phrase_rubrics_explained_by_findings(nest(pool, held, ~down))
    ] == ["event3"]

    # a third thing goes wrong where neither finding holds
    worse = down | ((rows >= 100) & (rows < 130))
    held[100:130, 2] = False
    nested = nest(pool, held, ~worse)
    assert list_phrase_rubrics_explained_by_findings(nested) == []
    assert {rubric.id for rubric in list_proven_phrase_rubrics(nested)} == {"event2", "event3"}


def test_what_measures_length_says_so_and_isnt_compared_within_its_own_length() -> None:
    sources = ("signal:short_messages move", "signal:many_turns", "signal:need", "turns:user:3")
    measures = [is_measure_of_length(event(1, source=source)) for source in sources]
    assert measures == [True, True, False, False]
    figures: dict[str, Any] = {"within": Figure(0.1, -0.1, 0.3, 40), "turned": False, "strata": 3}
    itself = CircumstanceRecord(name="length", over_all=0.4, itself=True, **figures)
    assert str(itself) == "measures the length itself, and says no more than that"


def name_beneath(
    pool: list[ChosenRubric], held: np.ndarray, could_hold: np.ndarray | None = None
) -> list[ChosenRubric]:
    """Return rubrics with the finding that each says otherwise, as learning does."""
    same = find_findings_of_same_fact(
        pool,
        held,
        np.ones_like(held) if could_hold is None else could_hold,
        [name_fact_of_source(rubric.source) for rubric in pool],
    )
    return [rubric.model_copy(update={"same_fact_as": same.get(rubric.id, "")}) for rubric in pool]


def test_a_rubric_and_its_reverse_are_one_entry_that_the_surer_one_leads() -> None:
    rows = np.arange(200)
    strays = event(1, source="signal:irrelevance", tells="tone", standing=LIKELY)
    stays = event(
        2, source="signal:relevance", tells="tone", standing=PROVEN, polarity="sat", worth=GOOD
    )
    other = event(3, source="signal:need", tells="tone", standing=PROVEN)
    held = np.stack([rows < 80, rows >= 84, rows % 2 == 0], axis=1)
    named = name_beneath([strays, stays, other], held)
    assert [rubric.id for rubric in list_tone_rubrics(named)] == ["event2", "event3"]
    assert describe_same_facts(named) == {
        "event2": f"The same fact, or nearly, said otherwise: “{strays.text}” (more often where it goes wrong)"
    }
    without = [named[0], named[2]]
    assert [rubric.id for rubric in list_tone_rubrics(without)] == ["event1", "event3"], (
        "without the one that leads it stands by itself"
    )


def test_what_measures_the_reverse_is_the_same_fact_though_both_hold_in_some_conversations() -> (
    None
):
    rows = np.arange(200)
    held = np.stack([rows < 120, rows >= 80], axis=1)
    for reverse, is_same in (("relevance", True), ("need", False), ("irrelevance", False)):
        pool = [
            event(1, source="signal:irrelevance", tells="tone", standing=PROVEN),
            event(2, source=f"signal:{reverse}", tells="tone", polarity="sat", worth=GOOD),
        ]
        assert (name_beneath(pool, held)[1].same_fact_as == "event1") == is_same
    assert name_fact_of_source("signal:short_messages move") == "signal:long_messages move"


def test_a_deed_leads_words_hints_and_its_reverse_that_hold_in_the_same_conversations() -> None:
    rows = np.arange(200)
    done = rows < 60
    deed = event(1, standing=LIKELY)
    reverse = event(2, standing=PROVEN, polarity="sat", worth=GOOD, tells="outcome")
    hint, tone = event(3, standing=HINT), event(4, source="signal:need", tells="tone")
    held = np.stack([done, ~done, rows < 57, (rows < 58) | (rows == 199)], axis=1)
    pool = name_beneath([tone, hint, reverse, deed], held[:, ::-1])
    assert listed(*pool) == [["event1"]]
    assert list_unproven_rubrics(pool) == []
    assert list_rubrics_of_conversation_endings(pool) == []
    assert list_tone_rubrics(pool) == []
    assert describe_same_facts(pool)["event1"].count("“") == 3


def test_what_is_the_reverse_of_another_wherever_it_could_hold_is_the_same_fact() -> None:
    """Of 80 conversations with a request, 40 are refused, and 40 done; 120 have none."""
    rows = np.arange(200)
    refuses = event(1, standing=PROVEN)
    manages = event(2, standing=HINT, polarity="sat", worth=GOOD)
    held = np.stack([rows < 40, (rows >= 40) & (rows < 80)], axis=1)
    asked = np.stack([rows < 80, rows < 80], axis=1)
    assert name_beneath([refuses, manages], held)[1].same_fact_as == ""
    assert name_beneath([refuses, manages], held, asked)[1].same_fact_as == "event1"


def test_a_side_whose_acts_are_the_reverse_of_the_others_says_so() -> None:
    rows = np.arange(200)
    bad = event(1, standing=PROVEN)
    good = event(2, standing=PROVEN, polarity="sat", worth=GOOD)
    named = name_beneath([bad, good], np.stack([rows < 60, rows >= 60], axis=1))
    assert list_headlines(named, "sat") == []
    assert describe_side_without_headline(named, "sat").endswith(
        "is the reverse of a finding on the other side, and is named there."
    )
    assert describe_side_without_headline(named[1:], "dsat").startswith("No act of the assistant")


def test_what_stands_under_a_headline_says_in_how_many_of_its_conversations_it_holds() -> None:
    for both, own, twin, words in (
        (60, 70, 65, "in nearly the same conversations (60 of the 75 of either):"),
        (30, 31, 70, "in a part of these (30 of the 70):"),
        (40, 65, 77, "in partly the same conversations (40 of its 65):"),
        (38, 38, 38, "in the same 38 conversations:"),
        (0, 0, 0, "in none of these conversations:"),
        (0, 3, 9, "in none of these conversations:"),
    ):
        assert TwinOverlap(both=both, own=own, twin=twin).words == words


def test_a_twin_of_a_twin_is_counted_with_what_it_is_shown_under() -> None:
    rows = np.arange(200)
    held = np.stack([rows < 60, rows < 77, rows < 59], axis=1)
    pool = [
        event(1, standing=PROVEN),
        event(2, standing=PROVEN, twin_of="event1"),
        event(3, standing=PROVEN, twin_of="event2"),
    ]
    first, second, third = add_overlaps_with_headlines(pool, held)
    assert listed(first, second, third) == [["event1", "event2", "event3"]]
    assert first.overlap is None
    assert second.overlap == TwinOverlap(both=60, own=77, twin=60)
    assert third.overlap == TwinOverlap(both=59, own=59, twin=60), "with event1, not event2"


@pytest.mark.parametrize("both", [34, 20])
def test_an_outcome_names_the_finding_that_holds_in_most_of_its_conversations(both: int) -> None:
    cause = event(1, standing=PROVEN)
    ending = event(2, "given_up", tells="outcome", standing=PROVEN)
    rows = np.arange(200)
    held = np.stack([rows < 60, (rows >= 60 - both) & (rows < 100 - both)], axis=1)
    _, ending = add_overlaps_with_headlines([cause, ending], held)
    told = f"In 34 of its 40 conversations, “{cause.text.removesuffix('.')}” holds, too."
    assert ending.entry == (ending.text, told if both == 34 else "")


def test_deeds_in_conversations_that_end_badly_are_habits_to_check_and_no_part_of_the_ending() -> (
    None
):
    asks, user = (
        case(name, f"event:{name}", LESS, 9).model_copy(update={"text": text})
        for name, text in (
            ("asks", "It asks, and the assistant names no time."),
            ("user", "After that, the user has to try again."),
        )
    )
    family = Family(n=26, members=(asks, user, CONFIRMED), worth=WIDE)
    ending = event(
        1,
        text="The assistant gives a negative answer.",
        source="signal:refusal",
        tells="outcome",
        family=family,
        standing=PROVEN,
    )
    assert ending.entry == (ending.text, "")
    habits = list_deeds_in_conversations_of_ending((ending,))
    assert [habit.case.id for habit in habits] == ["confirmed", "asks"]
    assert "The assistant gives a negative answer" in habits[1].figures
    leads = event(2, text=asks.text, standing=PROVEN)
    assert [habit.case.id for habit in list_deeds_in_conversations_of_ending((ending, leads))] == [
        "confirmed"
    ]


def lists_of(rubric: ChosenRubric) -> dict[str, int]:
    """In how many entries of each list a rubric stands."""
    by_name = {
        "leads": list_headlines((rubric,), rubric.polarity),
        "hints": list_unproven_rubrics((rubric,)),
        "outcomes": list_rubrics_of_conversation_endings((rubric,)),
        "said": list_proven_phrase_rubrics((rubric,)),
        "beside": list_proven_deeds_outside_headlines((rubric,)),
        "sounds": list_tone_rubrics((rubric,)),
        "check": list_unexpected_rubrics((rubric,)),
        "thin": list_thin_rubrics((rubric,)),
    }
    return {name: len(entries) for name, entries in by_name.items() if entries}


def answered(commonest: str, share: int) -> RubricAlone:
    return RubricAlone(
        by="signal",
        spread=1.0,
        commonest=commonest,
        share=compute_share_with_interval(share, 100),
        auc=compute_share_with_interval(60, 100),
    )


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"worth": NOWHERE}, "thin"),
        ({"worth": NOWHERE, "tells": "outcome"}, "thin"),
        ({"reason_ids": ("reason1",)}, "thin"),
        ({"reason_ids": ("reason1",), "source": "summarize_dsat@1"}, "leads"),
        ({"source": "signal:stray", "alone": answered("Neutral", 92)}, "thin"),
        ({"source": "signal:stray", "alone": answered("Neutral", 80)}, "leads"),
        ({"source": "signal:hedges", "tells": "tone", "alone": answered("Neutral", 99)}, "thin"),
        ({"source": "summarize_dsat@1", "alone": answered("Agree", 95)}, "thin"),
        ({"source": "summarize_dsat@1", "alone": answered("Never came up", 95)}, "leads"),
        ({"alone": answered("Disagree", 95)}, "leads"),
        ({"source": "phrase:user:x", "alone": answered("Neutral", 95)}, "said"),
        (
            {"source": "phrase:user:x", "alone": answered("Neutral", 95), "standing": HINT},
            "thin",
        ),
    ],
)
def test_what_rests_on_nearly_nothing_is_shown_nowhere(changes: dict[str, Any], place: str) -> None:
    proven = {"standing": PROVEN, "text": "The assistant fails."}
    assert lists_of(event(1, **(proven | changes))) == {place: 1}


@pytest.mark.parametrize("standing", [PROVEN, LIKELY, HINT])
@pytest.mark.parametrize("tells", ["deed", "outcome", "manners"])
def test_what_goes_along_with_the_unexpected_thumb_is_to_be_checked_and_no_finding(
    tells: str, standing: StandingRecord
) -> None:
    odd = event(1, "invented_value", tells=tells, standing=standing, unexpected=True)
    assert lists_of(odd) == {"check": 1}


def test_twins_stand_under_one_entry_without_those_that_went_the_other_way() -> None:
    assert listed(event(1), event(2), event(3, twin_of="event1")) == [
        ["event1", "event3"],
        ["event2"],
    ]
    assert listed(event(1, worth=GOOD), event(2, twin_of="event1")) == [["event2"]]
    assert listed(event(2), event(3, twin_of="event1")) == [["event2"], ["event3"]], (
        "whose twin was removed"
    )


def test_the_same_event_of_any_object_and_of_one_object_are_twins_and_two_objects_are_not() -> None:
    values = np.random.default_rng(0).normal(size=(50, 4))
    apart = np.zeros(values.shape, dtype=bool)
    pool = [
        event(1, 'answer_no {"topic":"hotel"}'),
        event(2, 'answer_no {"topic":"train"}'),
        event(3, "answer_no"),
        event(4, "fail_left"),
    ]
    assert find_earlier_equivalents_of_headlines(pool, apart, values) == {"event3": "event1"}
    first = values[:, 0]
    other = values[:, 1]
    alike = np.stack([first, first + 0.1 * other, first, other], axis=1)
    pool = [
        event(1),
        event(2, "pushed"),
        event(3, "pushed").model_copy(update={"polarity": "sat"}),
        event(4, "asked"),
    ]
    assert find_earlier_equivalents_of_headlines(pool, apart, alike) == {"event2": "event1"}, (
        "of one side and answered alike"
    )
    sounds = [
        event(1, source="signal:thanks", tells="manners"),
        event(2, source="signal:praise", tells="manners"),
    ]
    assert (
        find_earlier_equivalents_of_headlines(sounds, np.ones((9, 2), dtype=bool), np.ones((9, 2)))
        == {}
    ), "how users sound has no twins"


def test_what_holds_in_much_the_same_conversations_is_told_under_the_first() -> None:
    rows = np.arange(40)
    held = np.stack([rows < 20, (rows >= 5) & (rows < 22), (rows >= 15) & (rows < 35)], axis=1)
    pool = [event(1), event(2, "pushed"), event(3, "asked")]
    assert find_earlier_equivalents_of_headlines(pool, held, None) == {"event2": "event1"}, (
        "15 of 22 are of both"
    )
    assert (
        find_earlier_equivalents_of_headlines(
            [pool[0], event(2, "x", polarity="sat")], held[:, :2], None
        )
        == {}
    )


def test_nearly_the_same_words_need_fewer_of_the_same_conversations() -> None:
    rows = np.arange(40)
    held = np.stack([rows < 30, (rows >= 22) & (rows < 34)], axis=1)
    texts = (
        "The assistant makes no proposal when the wanted time is taken.",
        "The assistant makes no other proposal when the wanted time is gone.",
        "The user thanks for a ticket.",
    )
    first, near, other = (event(n, f"{n}", text=text) for n, text in enumerate(texts, 1))
    assert find_earlier_equivalents_of_headlines([first, near], held, None) == {
        "event2": "event1"
    }, "8 of the rarer one's 12"
    assert find_earlier_equivalents_of_headlines([first, other], held, None) == {}


FAILS = ChosenRubric(text="The assistant can't do what is asked.", polarity="dsat")


def of(*members: tuple[str, int], n: int = 51) -> tuple[str, str]:
    found = tuple(FamilyMember(id=text, text=text, among=among) for text, among in members)
    return FAILS.model_copy(update={"family": Family(n=n, members=found)}).entry


@pytest.mark.parametrize("family", [None, Family(n=51, members=())])
def test_a_rubric_without_narrower_forms_is_its_own_sentence(family: Family | None) -> None:
    assert FAILS.model_copy(update={"family": family}).entry == (FAILS.text, "")


def test_what_it_mostly_consists_of_stands_in_the_same_sentence_with_counts() -> None:
    found = of(("It offers nothing in its place.", 32), ("The user gives up.", 20))
    assert " ".join(found) == (
        "The assistant can't do what is asked: mostly “It offers nothing in its place” (32 conversations), "
        "“The user gives up” (20)."
    )


def test_less_than_half_is_not_called_most_and_three_forms_are_enough() -> None:
    assert (
        of(("A.", 10), ("B.", 9), ("C.", 8), ("D.", 7))[1]
        == "among others “A” (10 conversations), “B” (9), “C” (8)."
    )


WIDE = compute_evidence_of_rubric(np.arange(40) < 26, UP)
"""20 of 26 thumbs down, and none elsewhere."""


def case(id_: str, source: str, worth: RubricEvidence, among: int) -> FamilyMember:
    quote = Quote(conversation_id=id_, turn=1, text=f"words of {id_}")
    return FamilyMember(
        id=id_, text=f"It does {id_}.", among=among, quote=quote, source=source, worth=worth
    )


HIDDEN = case("hidden", 'event:fail_no_way {"topic":"train"}', BAD, 15)
CONFIRMED = case(
    "confirmed",
    "event:fail_confirmed",
    compute_evidence_of_rubric((np.arange(40) > 10) & (np.arange(40) < 28), UP),
    16,
).model_copy(update={"within": BAD})
OTHER = case("other", 'event:fail_no_way {"topic":"hotel"}', LESS, 5)


def in_a_family(*members: FamilyMember) -> ChosenRubric:
    family = Family(n=26, members=members, worth=WIDE)
    return event(1, text="The assistant fails.", worth=WIDE, family=family)


def test_an_entry_begins_with_the_case_that_explains_most_thumbs_however_often_another_holds() -> (
    None
):
    entry = in_a_family(CONFIRMED, HIDDEN, OTHER)
    assert entry.lead == HIDDEN
    assert entry.entry == (
        "It does hidden.",
        "This explains most of the wider finding “The assistant fails”.",
    )
    assert entry.best_quotes[0].text == "words of hidden"
    assert [case.id for case in entry.apart] == ["confirmed"], "another event stands by itself"
    assert (
        entry.apart[0].figures
        == "hint: 15 of 15 thumbs down (100 %), of the other 25 it is 5 (20 %)"
    )


def test_a_family_leads_by_itself_where_no_case_explains_most_of_it() -> None:
    entry = in_a_family(CONFIRMED, OTHER)
    assert entry.lead is None
    assert entry.entry == ("The assistant fails.", ""), "what holds in a few is no help"
    assert [case.id for case in entry.apart] == ["confirmed"]


def test_the_worth_of_a_rubric_is_told_with_its_interval() -> None:
    held = np.array([True] * 10 + [False] * 10)
    up = np.array([True] * 9 + [False] + [True] * 5 + [False] * 5)
    found = compute_evidence_of_rubric(held, up)
    assert (found.holds.value, found.down_with.value, found.down_without.value) == (0.5, 0.1, 0.5)
    assert found.down_with.n == 10
    # Wilson's interval of 1 in 10, by hand
    assert found.down_with.low == pytest.approx(0.0179, abs=1e-4)
    assert found.down_with.high == pytest.approx(0.4042, abs=1e-4)
    thrice = compute_evidence_of_rubric(*(np.repeat(each, 3) for each in (held, up, np.arange(20))))
    assert (thrice.down_with.n, thrice.down_with.units) == (30, 10)
    assert (thrice.down_with.low, thrice.down_with.high) == (
        found.down_with.low,
        found.down_with.high,
    ), "users count"
    assert compute_share_with_interval(0, 0).value is None
    assert compute_share_with_interval(0, 0).undefined


def test_the_interval_of_a_difference_agrees_with_newcombe() -> None:
    # his table II, example a
    there = compute_share_with_interval(56, 70)
    elsewhere = compute_share_with_interval(48, 80)
    found = compute_interval_of_thumb_difference(
        RubricEvidence(
            holds=compute_share_with_interval(70, 150), down_with=there, down_without=elsewhere
        )
    )
    assert found == pytest.approx((0.0524, 0.3339), abs=1e-4)


@pytest.mark.parametrize(
    ("with_", "without", "said"),
    [
        ((12, 15), (20, 100), ""),
        ((6, 12), (44, 100), "too few to tell: it holds in 12 of 112"),
        ((41, 100), (38, 100), "no clear difference: it may be chance"),
        ((2, 60), (38, 100), "not confirmed: it went the other way in the 60 where it holds"),
        (
            (1, 3),
            (38, 100),
            "not confirmed: it went the other way in the 3 where it holds, which are too few to tell",
        ),
        ((0, 0), (38, 100), ""),
    ],
)
def test_what_stands_against_a_worth_is_said_in_plain_words(
    with_: tuple[int, int], without: tuple[int, int], said: str
) -> None:
    worth = RubricEvidence(
        holds=compute_share_with_interval(with_[1], with_[1] + without[1]),
        down_with=compute_share_with_interval(*with_),
        down_without=compute_share_with_interval(*without),
    )
    assert describe_doubt_about_rubric(worth, "dsat").startswith(said)
    assert bool(describe_doubt_about_rubric(worth, "dsat")) == bool(said)


def test_many_conversations_of_a_few_users_are_too_few_to_tell() -> None:
    held = np.arange(400) < 200
    few = compute_evidence_of_rubric(
        held, np.arange(400) % 100 < np.where(held, 56, 62), np.arange(400) // 20
    )
    assert describe_doubt_about_rubric(few, "dsat") == "too few to tell: it holds in 200 of 400"


def test_deeds_stand_before_their_occasions_and_surer_detectors_first() -> None:
    asked, done, left, taken = (
        Quote(conversation_id="c", turn=turn, text=part, part=part)
        for turn, part in enumerate(("occasion", "act", "omission", "effect"))
    )
    assert sorted((asked, taken, done, left), key=compute_quote_sort_key) == [
        done,
        left,
        taken,
        asked,
    ]
    sure, unsure = (
        Quote(conversation_id="c", turn=0, text="words", sure=sure) for sure in (0.9, 0.4)
    )
    assert sorted((unsure, sure), key=compute_quote_sort_key) == [sure, unsure]


def said(text: str, source: str = "extract_sat@1") -> list[tuple[str, tuple[str, ...]]]:
    return [
        (mark.why, mark.better)
        for mark in find_lint_in_rubric_sentence(
            Rubric(id="r", text=text, polarity="sat", source=source)
        )
    ]


@pytest.mark.parametrize(
    ("text", "why", "better"),
    [
        (
            "The assistant asks for the date and names the price.",
            "two parts",
            ("The assistant asks for the date.", "The assistant names the price."),
        ),
        ("The assistant recommends films that were seen or disliked.", "two parts", ()),
        ("The assistant describes each film.", "“each”", ("The assistant describes the film.",)),
        (
            "The assistant answers all of the questions.",
            "“all”",
            ("The assistant answers the questions.",),
        ),
        ("The assistant only names titles.", "“only”", ("The assistant names titles.",)),
        (
            "The assistant fails to name a price.",
            "presupposes",
            ("The assistant does not name a price.",),
        ),
        ("The description comes too late for the decision.", "“too late” presupposes", ()),
    ],
)
def test_a_sentence_that_is_hard_to_judge_is_marked(
    text: str, why: str, better: tuple[str, ...]
) -> None:
    ((found, instead),) = said(text)
    assert why in found
    assert instead == better


def test_a_plain_sentence_and_what_a_detector_decides_are_not_marked() -> None:
    for text, source in (
        ("The assistant names the price before it books.", "extract_sat@1"),
        ("The user says “only this and that”.", "extract_sat@1"),
        ("The user chooses between the morning and the evening.", "extract_sat@1"),
        ("The assistant offers another time, and the user takes it.", "event:fail_other_taken"),
    ):
        assert said(text, source) == []


def test_a_rubric_that_tells_nothing_or_rests_on_one_conversation_is_marked() -> None:
    found = rubric_set()
    alone = RubricAlone(
        by="model", spread=0.2, commonest="Neutral", share=figure(0.95), auc=figure(0.5)
    )
    constant: ChosenRubric = rubric(1, "sat").model_copy(update={"alone": alone})
    whys = [
        mark.why
        for mark in find_lint_in_rubric_answers(
            constant, {reason.id: reason for reason in found.reasons}
        )
    ]
    assert whys == [
        "nearly always the same answer: “Neutral” in 95% of 20 conversations",
        "rests on one conversation",
    ]
    rare = constant.model_copy(
        update={"alone": alone.model_copy(update={"by": "event"}), "source": "event:fail_left"}
    )
    assert find_lint_in_rubric_answers(rare, {}) == [], (
        "an event that happens seldom is not hard to judge"
    )


def test_a_pair_is_a_twin_on_one_side_and_a_mirror_across_sides() -> None:
    marks = find_lint_in_rubric_pairs(
        [rubric(1, "sat"), rubric(2, "sat"), rubric(3, "dsat")], [(0, 1), (0, 2)]
    )
    assert [mark.why.split(" of ")[0] for mark in marks] == ["near twin", "mirror"]
    assert [mark.other for mark in marks] == ["rubric1", "rubric1"]
