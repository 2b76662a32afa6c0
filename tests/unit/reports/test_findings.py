"""What leads the report: rubrics to act on with worth, quote and conversations, then topics, then mistakes."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
from pages_read import HOSTILE, Reader, loud
from rubric_set_by_hand import figure, figures, rubric, rubric_set, scores

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.measures.intervals import Figure
from pollex.reports.learning import (
    list_shown_ids,
    name_conversations_to_read,
    prepare_findings,
    render_learning_page,
)
from pollex.reports.transcript import (
    MAX_QUOTE_CHARACTERS,
    MarkedText,
    cut_text_at_marked_spans,
    trim_quote,
)
from pollex.rubrics.headlines import list_topics_unlike_the_rest
from pollex.rubrics.learning.results import LabelledScore
from pollex.rubrics.lint import LintMark
from pollex.rubrics.records import (
    Baseline,
    ChosenRubric,
    CircumstanceRecord,
    Family,
    FamilyMember,
    Segment,
    StandingRecord,
    TwinOverlap,
)
from pollex.rubrics.rubric import Quote
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import compute_evidence_of_rubric, compute_share_with_interval

HELD = np.arange(20) < 5
UP = np.arange(20) >= 4
WORTH = compute_evidence_of_rubric(HELD, UP)
GIVEN_UP = "The assistant can't book a table, and offers nothing in its place."


def event(
    number: int, text: str = GIVEN_UP, polarity: str = "dsat", **changes: Any
) -> ChosenRubric:
    quotes = tuple(
        Quote(
            conversation_id=f"talk {number}{part}",
            turn=1,
            text="Sorry, it is full.",
            marks=((0, 5),),
            sure=0.9,
        )
        for part in "abcd"
    )
    whole = {
        "text": text,
        "id": f"event{number}",
        "source": "event:fail_no_way",
        "tells": "deed",
        "quotes": quotes,
        "worth": WORTH,
        "reason_ids": (f"reason{number}", f"other{number}"),
    }
    return rubric(number, polarity).model_copy(update=whole | changes)


def talk(id_: str, words: str = "Sorry, it is full.") -> Conversation:
    turns = (
        Turn(role="user", content="A table for two?"),
        Turn(role="assistant", content=f"Hm. {words} Bye."),
    )
    return Conversation(id=id_, turns=turns, label=Label.NEGATIVE)


def whole_page(rubrics: RubricSet, **given: Any) -> str:
    told = given.pop("scores", scores())
    return render_learning_page(
        rubrics,
        told,
        conversations={id_: talk(id_) for id_ in list_shown_ids(rubrics, told)},
        **given,
    )


def before_unfolding(page: str) -> str:
    """The words that stand there before anything is unfolded."""
    body = re.sub("<style>.*?</style>", "", page, flags=re.DOTALL)
    while re.search("<details", body):
        body = re.sub(
            r"<details[^>]*>(?:(?!<details).)*?</details>",
            lambda m: folded(m[0]),
            body,
            flags=re.DOTALL,
        )
    return Reader(body).words


def folded(details: str) -> str:
    found = re.search("<summary>(.*?)</summary>", details, re.DOTALL)
    return found[1] if found else ""


def test_a_rubric_is_told_with_its_worth_its_quote_and_three_conversations_that_are_in_the_page() -> (
    None
):
    page = whole_page(rubric_set(rubrics=(event(1), rubric(2, "sat"))))
    words = Reader(page).words.replace("\N{NO-BREAK SPACE}", " ")
    assert (
        "Holds in 5 of 20 conversations: 4 of 5 thumbs down (80 %); elsewhere 0 of 15 (0 %)."
        in words
    )
    assert "80 points more (95 % 33 to 96); measured on 20" in words
    assert '<mark class="decided">Sorry</mark>, it is full.' in page
    places = re.findall('<a href="#(c-[0-9])">', page)
    assert places == ["c-1", "c-2", "c-3", "c-4"], "the last one is of how it ended"
    assert all(f'id="{place}"' in page for place in places)
    assert page.count('<mark class="dsat">Sorry, it is full.</mark>') == 3
    assert "ot confirmed" not in page


def test_what_users_sound_like_and_a_rubric_whose_words_contradict_its_side_never_lead() -> None:
    found = prepare_findings(rubric_set(rubrics=(event(1), rubric(2, "sat"))), scores(), {})
    assert [one.rubric.id for one in found.leading["dsat"]] == ["event1"]
    assert not found.leading["sat"]
    assert [one.rubric.id for one in found.outcomes] == ["rubric2"], "thanks restate the thumb"
    need = rubric(2, "sat").model_copy(update={"source": "signal:need", "tells": "tone"})
    assert [
        one.rubric.id for one in prepare_findings(rubric_set(rubrics=(need,)), scores(), {}).sounds
    ] == ["rubric2"]
    odd = event(1, unexpected=True)
    with_odd = prepare_findings(rubric_set(rubrics=(odd,)), [], {})
    assert [finding.rubric.id for finding in with_odd.to_check] == ["event1"]
    assert not with_odd.hints
    assert "Not confirmed" in whole_page(rubric_set(rubrics=(event(1, polarity="sat"),))), (
        "it went the other way"
    )


def test_a_near_twin_stands_under_its_rubric_with_its_own_worth_and_quote() -> None:
    narrower = event(2, "The user wants a museum, and the assistant finds none.", twin_of="event1")
    narrower = narrower.model_copy(update={"overlap": TwinOverlap(both=18, own=19, twin=20)})
    found = prepare_findings(rubric_set(rubrics=(event(1), narrower)), [], {}).leading["dsat"]
    assert [(one.rubric.id, [twin.rubric.id for twin in one.also]) for one in found] == [
        ("event1", ["event2"])
    ]
    page = whole_page(rubric_set(rubrics=(event(1), narrower)))
    assert (
        "in nearly the same conversations (18 of the 21 of either): The user wants a museum"
        in " ".join(before_unfolding(page).split())
    )
    assert page.count('<mark class="decided">Sorry</mark>, it is full.') == 2


def test_marks_stand_beside_the_rubric() -> None:
    marks = (
        LintMark("event1", "“each”: one exception decides it", better=("The table is full.",)),
        LintMark("rubric2", "rare"),
    )
    page = whole_page(rubric_set(rubrics=(event(1), rubric(2, "sat"))), marks=marks)
    words = " ".join(Reader(page).words.replace("\N{NO-BREAK SPACE}", " ").split())
    assert "“each”: one exception decides it; better: “The table is full.”" in words
    assert "The user says thanks 2." in words.partition(" rare")[0]


def test_a_full_page_has_at_most_2500_words_before_anything_is_unfolded() -> None:
    long = " ".join(["word"] * 30)
    rubrics = tuple(event(n, long, side) for n, side in enumerate(["sat", "dsat"] * 10))
    segment = Segment(
        topic="tables",
        down=compute_share_with_interval(3, 9),
        rest=compute_share_with_interval(9, 30),
        examples=("a", "b", "c"),
    )
    told = [replace(score, probability=0.01 if score.positive else 0.99) for score in scores()]
    page = whole_page(
        rubric_set(rubrics=rubrics, segments=(segment,) * 20, notes=(long,) * 9), scores=told
    )
    assert 500 < len(before_unfolding(page).split()) < 2500
    assert "Associations" not in page
    assert page.count("need not be what causes them") == 1


def test_topics_are_told_with_share_n_and_conversations() -> None:
    segment = Segment(
        topic="tables",
        down=compute_share_with_interval(6, 10),
        rest=compute_share_with_interval(3, 30),
        examples=("a", "b", "c"),
    )
    page = whole_page(rubric_set(segments=(segment,)))
    words = before_unfolding(page).replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(r"tables\s+60 % of 10\s+10 % of 30", words)
    assert page.count('href="#c-') == 5, "three of the topic, two of how conversations ended"


def test_a_topic_no_more_different_than_by_luck_among_so_many_is_not_listed() -> None:
    apart, alike = (
        Segment(
            topic=name,
            down=compute_share_with_interval(hits, 10),
            rest=compute_share_with_interval(3, 30),
            examples=(),
        )
        for name, hits in (("tables", 6), ("chairs", 2))
    )
    page = before_unfolding(whole_page(rubric_set(segments=(apart, alike))))
    assert "tables" in page
    assert "chairs" not in page
    assert "1\N{NO-BREAK SPACE}other topic: no more different from the rest than by luck" in page
    assert "None of 1\N{NO-BREAK SPACE}topic" in before_unfolding(
        whole_page(rubric_set(segments=(alike,)))
    )
    mild = apart.model_copy(update={"down": compute_share_with_interval(4, 10)})
    assert list_topics_unlike_the_rest([mild]) == [mild]
    assert list_topics_unlike_the_rest([mild, *[alike] * 9]) == [], "one of ten may be luck"


def test_how_sure_a_wrong_prediction_was_needs_calibrated_probabilities() -> None:
    told = [replace(score, positive=False, probability=0.8) for score in scores()]
    data = rubric_set().data
    few, many = (
        Reader(
            render_learning_page(
                rubric_set(data=data.model_copy(update={"training": training})), told
            )
        ).words
        for training in (21, 240)
    )
    assert "though the rubrics expected a thumb up (80" in many
    assert "though the rubrics expected a thumb up:" in few
    # a conversation of the other thumb is no miss, and needn't be one
    assert "they may show what the rubrics miss" in few


def test_the_conversations_that_are_most_wrong_come_first_and_right_ones_not_at_all() -> None:
    told = [
        replace(score, probability=p)
        for score, p in zip(scores()[20:24], (0.3, 0.9, 0.05, 0.2), strict=True)
    ]
    wrong = prepare_findings(rubric_set(), told, {}).wrong
    assert [(score.positive, score.probability) for score, _, _ in wrong] == [
        (True, 0.05),
        (False, 0.9),
        (True, 0.3),
    ]


def test_hostile_conversations_make_no_element() -> None:
    rubrics = rubric_set(rubrics=(event(1), rubric(2, "sat")))
    usual = {tag for tag, _ in Reader(whole_page(rubrics)).elements}
    for text in HOSTILE[::3]:
        texts = {id_: talk(id_, text) for id_ in list_shown_ids(rubrics, scores())}
        read = Reader(render_learning_page(rubrics, scores(), conversations=texts))
        assert loud(read) == set()
        assert {tag for tag, _ in read.elements} <= usual, text[:80]


def test_long_quotes_are_cut_around_the_words_that_decided() -> None:
    quote = Quote(
        conversation_id="a", turn=0, text="x" * 500 + "here" + "y" * 500, marks=((500, 504),)
    )
    text, marks = trim_quote(quote)
    assert len(text) == MAX_QUOTE_CHARACTERS + 2
    assert [text[low:high] for low, high in marks] == ["here"]
    assert text.startswith("…x")
    assert text.endswith("y…")
    assert cut_text_at_marked_spans("it is full", ((6, 10),)) == (
        MarkedText("it is "),
        MarkedText("full", "mark"),
    )
    assert cut_text_at_marked_spans("it", ()) == (MarkedText("it"),)


def test_rubrics_hold_only_where_something_that_happens_is_borne_out() -> None:
    side = figures(Figure(value=0.8, low=0.7, high=0.9, n=60), n=60)
    hint = event(1, standing=StandingRecord(p=0.9, n=60, by="halvings"))

    page = whole_page(rubric_set(rubrics=(hint, rubric(2, "sat")), held_out=side))

    assert "No act of the assistant is proven or likely to go along with the thumbs" in page
    assert "none is proven or likely by itself" in page


def test_what_is_proven_without_being_a_finding_is_not_called_a_hint() -> None:
    side = figures(Figure(value=0.8, low=0.7, high=0.9, n=60), n=60)
    along = CircumstanceRecord(
        name="length", over_all=0.49, within=Figure(0.15, -0.02, 0.32, 60), turned=False, strata=3
    )
    proven = event(1, standing=StandingRecord(p=0.01, n=60, by="halvings"), circumstance=along)
    words = Reader(whole_page(rubric_set(rubrics=(proven,), held_out=side))).words
    assert "a sign to watch, and no act to change. Together" in words
    assert "No act of the assistant is a finding: what differs goes along with the length" in words
    assert "none is proven or likely" not in words
    assert str(along) == (
        "can't be told apart from the length: among conversations that are alike in it, the difference is "
        "+15 points of thumbs down [-2, +32] (over all +49; n = 60)"
    )


def test_the_strongest_hints_stand_with_the_findings_and_nowhere_else() -> None:
    hint = StandingRecord(p=0.9, n=60, by="halvings")
    clear = event(1, standing=hint)
    unclear = event(
        2,
        standing=hint,
        worth=WORTH.model_copy(update={"down_without": compute_share_with_interval(9, 15)}),
    )
    user = event(3, standing=hint, tells="outcome")

    findings = prepare_findings(rubric_set(rubrics=(clear, unclear, user)), [], {})

    assert [finding.rubric.id for finding in findings.strongest["dsat"]] == ["event1"]
    assert [finding.rubric.id for finding in findings.hints] == ["event2", "event3"]


def test_the_first_sentence_says_how_far_to_trust_it() -> None:
    for held_out, ahead, said in (
        (
            Figure(value=0.8, low=0.7, high=0.9, n=60),
            0.1,
            "The rubrics tell a good conversation from a bad one",
        ),
        (Figure(value=0.6, low=0.45, high=0.7, n=60), 0.1, "That may be luck"),
        (
            Figure(value=0.8, low=0.7, high=0.9, n=60),
            -0.2,
            "TF-IDF tells good conversations from bad ones better than the sum of these rubrics does: "
            "20 more of 100 pairs in the right order (95 % interval 15 to 25). What is proven or likely "
            "rests on the thumbs where it holds",
        ),
        (Figure(value=0.7, low=0.52, high=0.86, n=60), 0.1, "may be little better than guessing"),
        (
            Figure(value=None, n=0, undefined="only positive ones"),
            0.1,
            "could not be measured: only positive ones",
        ),
        (None, 0.1, "Nobody knows how far to trust these rubrics"),
    ):
        baseline = Baseline(name="TF-IDF", advantage=figure(ahead, 0.05))
        side = None if held_out is None else figures(held_out, n=60)
        rubrics = (event(1), rubric(2, "sat"))
        page = whole_page(rubric_set(rubrics=rubrics, held_out=side, baselines=(baseline,)))
        assert said in page.replace("\N{NO-BREAK SPACE}", " ")


def judged(id_: str, probability: float, positive: bool = False) -> LabelledScore:
    return LabelledScore(id_, "held_out", positive, 0.0, probability=probability)


def test_where_no_deed_is_proven_the_worst_conversations_are_named_to_read_first() -> None:
    hint = event(1, standing=StandingRecord(p=0.9, n=60, by="halvings"))
    word = event(2, "The user says “great”.", source="phrase:user:great").model_copy(
        update={"standing": StandingRecord(p=0.01, n=60, by="halvings")}
    )
    down = [judged(f"bad {rank}", rank / 10) for rank in (6, 1, 3, 2, 5, 4)]
    judgments = [*down, judged("good", 0.05, positive=True)]
    line = name_conversations_to_read(judgments, at_chance=False)
    assert line.endswith(": bad 1, bad 2, bad 3, bad 4, bad 5")
    assert "these five conversations first" in line
    assert name_conversations_to_read([], at_chance=True) == ""
    assert "this conversation first" in name_conversations_to_read(down[:1], at_chance=False)
    by_chance = name_conversations_to_read(down[:1], at_chance=True)
    assert "worst by the rubrics, which may be no better than chance" in by_chance

    page = whole_page(rubric_set(rubrics=(hint, word)), scores=judgments)
    words = Reader(page).words
    assert "Read these five conversations first" in words
    assert words.index("Read these five") < words.index("What goes wrong", words.index("No act"))
    anchor = re.search('<a href="#(c-[0-9]+)">bad 1</a>', page)
    assert anchor
    assert f'id="{anchor[1]}"' in page
    proven = event(1, standing=StandingRecord(p=0.01, n=60, by="halvings"))
    assert "Read these" not in whole_page(rubric_set(rubrics=(proven,)), scores=judgments)


def test_habits_of_an_ending_are_a_list_of_their_own() -> None:
    quote = Quote(conversation_id="talk 7", turn=1, text="Which other time?")
    asks = FamilyMember(
        id="asks",
        text="The assistant asks for another time without naming one.",
        among=27,
        quote=quote,
        source="event:asks",
    )
    ending = event(
        1,
        "The assistant gives a negative answer.",
        tells="outcome",
        standing=StandingRecord(p=0.01, n=60, by="halvings"),
        family=Family(n=60, members=(asks,)),
    )
    words = Reader(whole_page(rubric_set(rubrics=(ending,)))).words
    assert "Habits to check, unproven" in words
    assert words.count("asks for another time without naming one") == 1
    begin = "in 27 of the 60 labeled conversations with “The assistant gives a negative answer”"
    assert f"{begin}; thumbs there aren't known to differ" in words
    assert "Which other time?" in words
    assert words.index("Habits to check, unproven") < words.index("What came of it")
