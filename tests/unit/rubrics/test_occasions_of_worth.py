"""With whom a rubric's thumbs are compared: with those of its occasion where these are enough."""

import numpy as np
import pytest
from small_logs import conversation

from pollex.graphs.learn.assemble import (
    mark_neutral_evidence,
    reconcile_standings_with_evidence,
)
from pollex.measures.intervals import Figure
from pollex.rubrics.learning.crossfit import Candidates
from pollex.rubrics.learning.material import GivenAnswers
from pollex.rubrics.learning.measured import flag_mostly_neutral_rubrics
from pollex.rubrics.records import ChosenRubric, StandingRecord
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.worth import (
    add_counted_thumbs,
    compute_evidence_of_rubric,
    compute_interval_of_thumb_difference,
    describe_difference_and_test_of_rubric,
    describe_doubt_about_rubric,
    describe_evidence_of_rubric,
    describe_evidence_with_difference,
    describe_reading,
    describe_thumb_shares_of_rubric,
    do_thumbs_contradict_side,
    shrink_evidence_for_rubric_choice,
)
from pollex.selection.multi_split import find_where_rubrics_hold

N = 200
HELD = np.arange(N) < 40
"""Where the assistant couldn't book."""


def thumbs(down_with: int, down_within: int, others: int) -> np.ndarray:
    """Thumbs up where bookings are wanted in the first 60, with so many down; elsewhere 80 of 140 down."""
    up = np.ones(N, dtype=bool)
    up[:down_with] = False
    up[40 : 40 + down_within] = False
    up[40 + others : 40 + others + 80] = False
    return up


def worth(down_with: int = 32, down_within: int = 6, others: int = 20):
    came_up = np.arange(N) < 40 + others
    up = thumbs(down_with, down_within, others)
    return compute_evidence_of_rubric(HELD, up, None, came_up, "the user wants a table")


def test_enough_others_of_the_occasion_lead_whatever_their_thumbs() -> None:
    for down in (0, 10, 20):
        found = worth(down_within=down)
        assert found.compared == "occasion"
        assert (found.down_others.value, found.down_others.n) == (down / 20, 20)
        assert found.came_up is not None
        assert found.came_up.value == 0.3
    assert worth(others=10, down_within=3).compared == "occasion"
    few = worth(others=9, down_within=3)
    assert few.compared == "elsewhere"
    assert few.down_others == few.down_without


def test_ten_conversations_of_one_user_are_not_enough() -> None:
    came_up = np.arange(N) < 60
    users = np.where(np.arange(N) < 40, np.arange(N), np.arange(N) // 20)
    assert (
        compute_evidence_of_rubric(HELD, thumbs(32, 6, 20), users, came_up, "it rains").compared
        == "elsewhere"
    )


def test_the_occasion_is_named_with_counts_of_both_sides_of_it() -> None:
    evidence = worth()
    words = (
        "When the user wants a table (60 of 200 conversations): 32 of 40 thumbs down (80 %) where "
        "this holds, 6 of 20 (30 %) where it doesn't"
    )
    assert describe_evidence_of_rubric(evidence) == f"{words}."
    given = StandingRecord(p=0.01, n=N, by="held-out")
    assert (
        describe_evidence_with_difference(evidence, given)
        == f"{words}; 50 points more (95 % 24 to 68)."
    )
    assert describe_thumb_shares_of_rubric(evidence, given) == (
        "when the user wants a table: 32 of 40 thumbs down (80 %), 6 of 20 (30 %) where it doesn't "
        "hold; 50 points more (95 % 24 to 68)"
    )
    assert describe_difference_and_test_of_rubric(evidence, given).startswith(
        "50 points more (95 % 24 to 68); "
    )
    assert "200 of 250 conversations" in describe_difference_and_test_of_rubric(
        evidence, given, 250
    )


@pytest.mark.parametrize(
    ("p", "by", "clear"),
    [(0.6, "halvings", True), (0.6, "held-out", True), (0.04, "halvings", False)],
)
def test_a_difference_that_was_picked_by_its_size_has_no_interval(p, by, clear) -> None:
    standing = StandingRecord(p=p, n=N, by=by, clear=clear)
    evidence = worth()
    for told in (
        describe_evidence_with_difference(evidence, standing),
        describe_thumb_shares_of_rubric(evidence, standing),
        describe_difference_and_test_of_rubric(evidence, standing),
    ):
        assert "50 points more in these conversations" in told
        assert "95 %" not in told
    hint = ChosenRubric(text="It fails.", polarity="dsat", worth=evidence, standing=standing)
    assert "So it has no interval." in describe_reading([hint])[-1]
    plain = hint.model_copy(update={"standing": StandingRecord(p=0.01, n=N, by="all")})
    assert "no interval" not in " ".join(describe_reading([plain]))


def test_the_levels_of_a_models_rubrics_are_said_to_count_the_choice_alone() -> None:
    standing = StandingRecord(p=0.01, n=N, by="halvings")
    by_model = ChosenRubric(
        text="It fails.", polarity="dsat", source="summarize_dsat@1", standing=standing
    )
    assert "luck in the choice alone" in " ".join(describe_reading([by_model]))
    tested = by_model.model_copy(
        update={"standing": standing.model_copy(update={"by": "held-out"})}
    )
    built_in = by_model.model_copy(update={"source": "event:fails"})
    for other in (tested, built_in):
        assert "luck in the choice" not in " ".join(describe_reading([other]))


def test_a_difference_ends_at_100_points() -> None:
    wide = worth().model_copy(update={"gap": Figure(0.5, 0.03, 1.07, N), "compared": "elsewhere"})
    assert describe_evidence_with_difference(wide, None).endswith("(95 % 3 to 100).")


def test_an_occasion_that_always_comes_up_is_none() -> None:
    always = compute_evidence_of_rubric(
        HELD, thumbs(32, 6, 20), None, np.ones(N, bool), "the user asks"
    )
    assert always == compute_evidence_of_rubric(HELD, thumbs(32, 6, 20))
    assert "the user asks" not in describe_thumb_shares_of_rubric(always, None)


@pytest.mark.parametrize("side", ["dsat", "sat"])
def test_counts_stay_plain_and_only_the_expected_difference_is_shrunk(side: str) -> None:
    up = thumbs(32, 6, 20) if side == "dsat" else ~thumbs(32, 6, 20)
    plain = compute_evidence_of_rubric(HELD, up)
    counted = add_counted_thumbs(plain, HELD, up, np.arange(N), None)
    shrunk = shrink_evidence_for_rubric_choice(counted, side, p=0.04, passed=0.05)
    counts, difference = describe_thumb_shares_of_rubric(shrunk, None).split("; ")
    down = 32 if side == "dsat" else 8
    rest = 86 if side == "dsat" else 74
    assert counts.startswith(f"{down} of 40 thumbs down (")
    assert f"elsewhere {rest} of 160 (" in counts
    assert difference.startswith("expected ")
    assert f"points {'more' if side == 'dsat' else 'fewer'} (95 % " in difference
    assert int(difference.split()[1]) < 26, "the counts differ by 26 points"


def test_counts_are_of_all_conversations_though_few_of_them_tested_it() -> None:
    up = thumbs(32, 6, 20)
    few = np.arange(N) % 2 == 0
    tested = compute_evidence_of_rubric(HELD[few], up[few])
    counted = add_counted_thumbs(tested, HELD, up, np.arange(N), None)
    words = describe_thumb_shares_of_rubric(counted, None)
    assert words.startswith("32 of 40 thumbs down (80 %), elsewhere 86 of 160 (54 %); ")


@pytest.mark.parametrize(("of_occasion", "compared"), [(60, "occasion"), (45, "elsewhere")])
def test_those_of_the_same_occasion_are_counted_in_all_conversations_too(
    of_occasion: int, compared: str
) -> None:
    up = thumbs(32, 6, 20)
    came_up = np.arange(N) < of_occasion
    few = np.arange(N) % 4 == 0
    tested = compute_evidence_of_rubric(HELD[few], up[few], None, came_up[few])
    assert tested.compared == "elsewhere", "only five of the occasion test it"
    counted = add_counted_thumbs(tested, HELD, up, np.arange(N), came_up)
    words = describe_thumb_shares_of_rubric(counted, None)
    assert counted.compared == compared
    if compared == "occasion":
        assert words.startswith("where it could happen: 32 of 40 thumbs down (80 %), ")
        assert " of 20 (30 %) where it doesn't hold" in words
    else:
        assert "where it could happen, only 5 are without it" in words


def test_counts_of_all_that_go_the_other_way_contradict_a_rubric_that_few_conversations_test() -> (
    None
):
    up = thumbs(down_with=20, down_within=20, others=20)
    came_up = np.arange(N) < 60
    few = np.isin(np.arange(N), [0, 1, 2, 100, 150])
    tested = compute_evidence_of_rubric(HELD[few], up[few])
    assert not do_thumbs_contradict_side(tested, "dsat")
    counted = add_counted_thumbs(tested, HELD, up, np.arange(N), came_up)
    assert do_thumbs_contradict_side(counted, "dsat")
    assert describe_doubt_about_rubric(counted, "dsat").startswith(
        "not confirmed: it went the other way in the 40 where it holds"
    )


def test_too_few_of_the_occasion_are_told_and_an_occasion_without_words_too() -> None:
    assert describe_evidence_of_rubric(worth(others=4, down_within=1)) == (
        "Holds in 40 of 200 conversations: 32 of 40 thumbs down (80 %); elsewhere 81 of 160 (51 %), "
        "which are all others: when the user wants a table, only 4 are without it, too few to "
        "compare with."
    )
    assert (
        "(50 %), which are all others: each of the 40 times when the user wants a table, it held."
        in describe_evidence_of_rubric(worth(others=0, down_within=0))
    )
    judged = compute_evidence_of_rubric(HELD, thumbs(32, 6, 20), None, np.arange(N) < 60)
    assert describe_evidence_of_rubric(judged).startswith(
        "Where it could happen (60 of 200 conversations): 32 of 40"
    )


def test_what_is_no_different_within_its_occasion_is_in_doubt_though_it_differs_elsewhere() -> None:
    same = worth(down_within=16)
    assert (
        compute_interval_of_thumb_difference(compute_evidence_of_rubric(HELD, thumbs(32, 16, 20)))[
            0
        ]
        > 0
    ), "all others are another thing"
    assert describe_doubt_about_rubric(same, "dsat") == "no clear difference: it may be chance"
    rubric = Rubric(id="no-table", text="It couldn't book.", polarity="dsat")
    standing = StandingRecord(p=0.01, n=N, by="halvings")
    standings, worths = reconcile_standings_with_evidence(
        [rubric], {rubric.id: standing}, {rubric.id: same}
    )
    assert standings[rubric.id].word == "likely", "a step lower: never proven where unclear"
    assert worths[rubric.id] == same


@pytest.mark.parametrize(("labels", "word"), [(50, "hint"), (25, "proven")])
def test_what_only_labels_without_counts_bear_out_is_a_hint(labels: int, word: str) -> None:
    # 1 of 1 thumbs down where it holds, 1 of 24 elsewhere
    held = np.arange(25) < 1
    up = ~np.isin(np.arange(25), (0, 1))
    evidence = compute_evidence_of_rubric(held, up)
    evidence = add_counted_thumbs(evidence, held, up, np.arange(25), None)
    rubric = Rubric(id="no-table", text="It couldn't book.", polarity="dsat")
    standing = StandingRecord(p=0.01, n=labels, by="halvings")
    standings, _ = reconcile_standings_with_evidence(
        [rubric], {rubric.id: standing}, {rubric.id: evidence}
    )
    assert standings[rubric.id].word == word


def test_counts_of_fewer_conversations_that_show_it_too_keep_the_standing() -> None:
    plain = compute_evidence_of_rubric(HELD, thumbs(32, 6, 20))
    rubric = Rubric(id="no-table", text="It couldn't book.", polarity="dsat")
    standing = StandingRecord(p=0.01, n=2 * N, by="halvings")
    standings, _ = reconcile_standings_with_evidence(
        [rubric], {rubric.id: standing}, {rubric.id: plain}
    )
    assert standings[rubric.id].word == "proven"


def test_what_holds_by_neutral_answers_alone_is_a_hint_and_says_so() -> None:
    conversations = [conversation(("u", "Hi"), id_=str(number)) for number in range(4)]
    last_word = Rubric(id="last", text="It has the last word.", polarity="dsat")
    fails = Rubric(id="fails", text="It couldn't book.", polarity="dsat")
    table = GivenAnswers("expected")
    for turns in conversations:
        # a little above the middle, and clearly above it
        table.distributions[turns.id] = {
            "last": (0.0, 0.1, 0.7, 0.2, 0.0),
            "fails": (0.0, 0.1, 0.2, 0.7, 0.0),
        }
        table.values[turns.id] = {"last": 5.25, "fails": 6.5}
    neutral = flag_mostly_neutral_rubrics(table, conversations, [last_word, fails])
    assert neutral == {"last": True, "fails": False}

    plain = compute_evidence_of_rubric(HELD, thumbs(32, 6, 20))
    worths = mark_neutral_evidence({"last": plain, "fails": plain}, neutral)
    standing = StandingRecord(p=0.01, n=N, by="halvings")
    standings, worths = reconcile_standings_with_evidence(
        [last_word, fails], {"last": standing, "fails": standing}, worths
    )
    assert (standings["last"].word, standings["fails"].word) == ("hint", "proven")
    assert describe_evidence_of_rubric(worths["last"]).startswith(
        "Answers lean to it, most of them still “Neutral”, in 40 of 200 conversations"
    )
    assert describe_evidence_of_rubric(worths["fails"]).startswith("Holds in 40 of 200")


def test_shares_of_an_occasion_are_corrected_for_the_choice_as_those_of_all_others() -> None:
    plain = worth()
    found = shrink_evidence_for_rubric_choice(plain, "dsat", 0.02, 0.05)
    moved = found.down_without.value - plain.down_without.value
    assert moved > 0
    assert found.down_within.value == pytest.approx(plain.down_within.value + moved)
    assert found.down_within.high - found.down_within.low > (
        plain.down_within.high - plain.down_within.low
    )
    assert not do_thumbs_contradict_side(found, "dsat")


def test_a_rubric_whose_occasion_never_came_up_holds_nowhere_that_its_value_is_high() -> None:
    values = np.array([[9.0], [9.0], [1.0]])
    came_up = np.array([[True], [False], [True]])
    assert find_where_rubrics_hold(values, came_up)[:, 0].tolist() == [True, False, False]
    rubric = Rubric(id="taken", text="The user takes it.", polarity="sat")
    pool = Candidates([], [rubric], values, np.ones_like(came_up), {}, came_up)
    assert pool.held[:, 0].tolist() == [True, False, False]
    assert pool.only(np.array([0])).held[:, 0].tolist() == [True, False, False]
