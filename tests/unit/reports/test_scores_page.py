"""The page of scored conversations: the share of good ones, what lowers scores, the worst, a list that filters."""

from dataclasses import replace

import pytest
from pages_read import HOSTILE, Reader, loud
from rubric_set_by_hand import (
    model_that_goes_by_the_second_rubric,
    point_answer,
    rubric,
    rubric_set,
)

from pollex.conversations.conversation import Conversation, Turn
from pollex.reports import scores as page_of_scores
from pollex.reports.scores import ScoreTally, render_scores_page
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score, ScoreColumns

RUBRICS = rubric_set(rubrics=(rubric(1, "sat"), rubric(2, "dsat")))


def scored(number: int, probability: float, sat: int = 4, dsat: int = 0) -> Score:
    return Score(
        conversation_id=f"talk {number}",
        netsat=1.0,
        label="positive",
        confident=probability != 0.5,
        probability=probability,
        decision="positive" if probability >= 0.5 else "negative",
        answers=(point_answer("rubric1", sat, (1,)), point_answer("rubric2", dsat, (1,))),
    )


SCORES = [
    scored(1, 0.9),
    scored(2, 0.8),
    scored(3, 0.5),
    scored(4, 0.1, sat=0, dsat=4),
    scored(5, 0.2, dsat=4),
]


def talk(number: int, words: str = "no") -> Conversation:
    return Conversation(
        id=f"talk {number}",
        turns=(Turn(role="user", content=words), Turn(role="assistant", content="b")),
    )


def tallied(scores: list[Score] = SCORES, rubrics: RubricSet = RUBRICS) -> ScoreTally:
    tally = ScoreTally(rubrics)
    tally.count(ScoreColumns.of(scores, [rubric.id for rubric in RUBRICS.rubrics]))
    return tally


def test_calibrated_probabilities_say_how_sure_each_verdict_is() -> None:
    data = RUBRICS.data.model_copy(update={"training": 60})
    tally = tallied(rubrics=RUBRICS.model_copy(update={"data": data}))
    verdicts = [row.verdict.replace("\N{NO-BREAK SPACE}", " ") for row in tally.worst]
    assert verdicts[0] == "Bad, 90 % sure"
    assert verdicts[4] == "Good, 90 % sure"


def page(words: str = "no", scores: list[Score] = SCORES) -> str:
    return render_scores_page(
        tallied(scores), [talk(n, words) for n in range(1, 6)], "scores.csv", "rubrics.json"
    )


def test_what_sets_bad_conversations_apart_most_comes_first() -> None:
    first, second = tallied().lowering()
    assert (first["rubric"].id, first["bad"].value, first["good"].value) == ("rubric2", 1.0, 0.0)
    assert (second["rubric"].id, second["bad"].value, second["good"].value) == ("rubric1", 0.5, 1.0)
    assert first["gap"] > second["gap"] > 0


def test_where_a_model_gives_the_probability_its_weights_say_what_lowered_a_score() -> None:
    tally = ScoreTally(RUBRICS)
    tally.scorer = replace(tally.scorer, thumb_model=model_that_goes_by_the_second_rubric())
    scores = [scored(1, 0.9, sat=0, dsat=4), scored(2, 0.1, sat=4, dsat=0)]
    tally.count(ScoreColumns.of(scores, [rubric.id for rubric in RUBRICS.rubrics]))
    bad, good = tally.worst
    assert (bad.lowered_by, bad.why, bad.so) == ("rubric2", "rubric2", False)
    assert (good.why, good.so) == ("rubric2", True)
    assert tally.lowering()[0]["rubric"].id == "rubric2"


def test_the_share_of_good_ones_the_worst_first_and_filters_are_told() -> None:
    text = page()
    words = Reader(text).words.replace("\N{NO-BREAK SPACE}", " ")
    assert "About 50 % of 5 conversations are good (95 % interval " in words, "the mean probability"
    assert "60 % are decided to be good" in words
    assert "in doubt" not in words, "one verdict a row: good or bad, how sure, why"
    assert [
        row.verdict.replace("\N{NO-BREAK SPACE}", " ")
        for row in (tallied().worst[place] for place in (0, 4, 2))
    ] == ["Bad, at P(up) 0.10", "Good, at P(up) 0.90", "Good, at P(up) 0.50"], (
        "20 labels calibrate nothing"
    )
    assert "% sure" not in words
    assert [row.why for row in tallied().worst] == [
        "rubric1",
        "rubric2",
        "rubric1",
        "rubric1",
        "rubric1",
    ]
    assert "no evidence of what people like" in words
    assert [row.id for row in tallied().worst] == ["talk 4", "talk 5", "talk 3", "talk 2", "talk 1"]
    assert '<mark class="dsat">b</mark>' in text, "the turns that the lowest answer rests on"
    assert text.count('<tr class="bad by-') == 2
    assert text.count('<tr class="good doubt">') == 1
    assert all(
        f'href="#{name}"' in text and f'id="{name}"' in text
        for name in ("show-bad", "show-good", "by-1", "by-2")
    )
    assert "#show-bad:target tr.good" in text


def test_memory_holds_the_worst_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_of_scores, "MAX_LISTED_CONVERSATIONS", 2)
    tally = tallied()
    assert [row.id for row in tally.worst] == ["talk 4", "talk 5"]
    assert tally.good.n == 5
    words = Reader(render_scores_page(tally, [], "scores.csv", "rubrics.json")).words
    assert "The 2 worst of 5 are listed; scores.csv has all." in words


def test_what_could_not_be_scored_is_counted_and_nothing_scored_is_told() -> None:
    lost = Score(conversation_id="lost", outcome="refused")
    words = Reader(page(scores=[lost])).words
    assert "No conversation could be scored." in words
    assert "1\N{NO-BREAK SPACE}conversation could not be scored" in words


def test_hostile_conversations_make_no_element() -> None:
    for text in HOSTILE[::3]:
        read = Reader(page(text))
        assert loud(read) == set()
        assert read.elements == Reader(page()).elements, text[:80]
