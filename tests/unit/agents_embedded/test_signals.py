"""Signals: what holds for each, what single ones see, and quotes, word for word, from where they are seen."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import conversation, view

from pollex.agents.checks import explain_rubric_refusal, locate_quote_in_conversation
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.patterns import PATTERNS_BY_NAME
from pollex.agents.embedded.evidence import (
    MAX_QUOTE_CHARS,
    choose_strongest_turns,
    cut_excerpt_around,
    find_evidence_signal,
    find_party_of_rubric,
    make_phrase_signal,
    quote_strongest_turns,
)
from pollex.agents.embedded.signals import (
    MARKERS_BY_SIGNAL,
    MEASURE_NAMES,
    SIGNALS_BY_NAME,
    summarize_marks_of_party,
)
from pollex.agents.embedded.view import (
    KEPT_HEAD_CHARS_OF_TURN,
    KEPT_TAIL_CHARS_OF_TURN,
    OMISSION_MARK,
    ConversationView,
    cut_middle_of_text,
)
from pollex.rubrics.rubric import Quote, Rubric

PATTERNED = [signal for signal in SIGNALS_BY_NAME.values() if signal.pattern]

TALK = [
    ("system", "Be brief. Thanks, great, sorry!"),
    ("u", "Could you book a table for 4? I need it."),
    ("a", "Sorry, I can't. Which day would you like?"),
    ("tool", "thanks sorry great 42"),
    ("u", "No, I said tonight. Still the same."),
    ("a", "I have booked it. Anything else?"),
    ("u", "Great, thanks, that's all!"),
]
LONGEST = KEPT_HEAD_CHARS_OF_TURN + KEPT_TAIL_CHARS_OF_TURN
NASTY = [
    "a" * LONGEST,
    " " * LONGEST + "x",
    "\n" * LONGEST + "x",
    "?" * LONGEST + "x",
    "`" + "a" * LONGEST,
    "what a " * (LONGEST // 7),
    "first " * (LONGEST // 6),
    "still " * (LONGEST // 6),
    "at " + "(" * LONGEST,
    "a." * (LONGEST // 2),
    "n't " * (LONGEST // 4),
    "- " * (LONGEST // 2),
    "\ud800\x00\u202e" * (LONGEST // 3),
    "1" * LONGEST + "x",
]


def test_its_statement_is_one_simple_sentence_about_its_party() -> None:
    for signal in SIGNALS_BY_NAME.values():
        named = {
            "user": "The user ",
            "assistant": "The assistant ",
            "both": "The user and the assistant ",
        }
        assert signal.statement.startswith(named[signal.party])
        assert re.fullmatch(r"[A-Z][\w' ]+\.", signal.statement)
        assert not re.search(r"\b(that|which|what|because|or)\b", signal.statement)
        assert len(signal.statement.split()) <= 10
        assert explain_rubric_refusal(signal.statement) == ""
    assert {
        name for name, signal in SIGNALS_BY_NAME.items() if not signal.pattern
    } == MARKERS_BY_SIGNAL.keys()
    measured = MARKERS_BY_SIGNAL.keys() - {"other_language"}
    assert {SIGNALS_BY_NAME[name].kind for name in measured} == {"tone"}


def test_marks_are_finite_and_stay_with_the_signals_party_whatever_is_said(
    embedder: Embedder,
) -> None:
    odd = (
        [("u", "help"), ("a", " ")],
        [("u", ""), ("a", "hello")],
        [("tool", "x"), ("u", "\x00\ud800")],
    )
    for signal in SIGNALS_BY_NAME.values():
        seen = view(embedder, *TALK)
        marks = signal.marks(seen)
        others = np.setdiff1d(np.arange(len(TALK)), seen.of(signal.party))
        assert marks.shape == (len(TALK),)
        assert np.isfinite(marks).all()
        # What both parties do together, such as a number of turns, is counted on the party's turns
        # alone by `measured`.
        assert signal.party == "both" or not marks[others].any()
        empty = ConversationView(conversation(), Embedder())
        assert (
            summarize_marks_of_party(signal.marks(empty), empty.of(signal.party))
            == np.zeros(len(MEASURE_NAMES))
        ).all()
        assert all(np.isfinite(signal.marks(view(embedder, *talk))).all() for talk in odd)


@pytest.mark.timeout(60)
def test_no_text_keeps_the_patterns_busy(embedder: Embedder) -> None:
    for text in NASTY:
        assert len(text) <= LONGEST + 10
        for signal in PATTERNED:
            assert signal.pattern is not None
            signal.pattern.search(text)
    seen = view(embedder, ("u", "start " + "x" * 1_000_000 + " end"))
    assert len(seen.texts[0]) == LONGEST + len(OMISSION_MARK), (
        "of a huge turn the ends are looked at"
    )
    assert (seen.texts[0][:5], seen.texts[0][-3:]) == ("start", "end")


SEEN = [
    ("thanks", "Thank you so much!", "No thanks to anybody"),
    ("agreement", "Yes, please do.", "I said yes yesterday"),
    ("success", "That did the trick.", "It is broken"),
    ("success", "that's it! the build runs.", "that's it, thank you."),
    ("correction", "No, I meant Friday.", "No thank you"),
    ("complaint", "It still does not work", "Let us be still"),
    ("confusion", "What do you mean?", "I know what I want"),
    ("complete", "That's all.", "That's a cat."),
    ("evidence", "   at App.Main(String[] args)", "Meet me at noon"),
    ("apology", "My apologies for that.", "Here you go"),
    ("refusal", "Unfortunately, no rooms are left.", "Your room is ready"),
    ("clarifying_question", "Which version do you use?", "Use version 2."),
    ("steps", "1. Open it\n2. Close it", "Open it in 2024."),
    ("code", "Use `await` here", "Use the old one"),
    ("citation", "According to the docs, yes", "I think so"),
]


def test_it_sees_what_it_is_named_for(embedder: Embedder) -> None:
    for name, says, silent in SEEN:
        signal = SIGNALS_BY_NAME[name]
        role = "u" if signal.party == "user" else "a"
        assert signal.marks(view(embedder, (role, says), (role, silent))).tolist() == [1.0, 0.0], (
            name
        )


def test_a_repeated_request_is_marked_where_it_is_repeated(embedder: Embedder) -> None:
    seen = view(
        embedder,
        ("u", "Book a table for four."),
        ("a", "Done."),
        ("u", "The weather?"),
        ("u", "Book a table for four."),
    )
    marks = SIGNALS_BY_NAME["user_repeats"].marks(seen)
    assert marks[0] == 0
    assert marks[3] == pytest.approx(1, abs=1e-5)
    assert marks[2] < 0.5


def test_a_tool_between_question_and_answer_does_not_part_them(embedder: Embedder) -> None:
    seen = view(embedder, ("u", "What's the time?"), ("tool", "12:00"), ("a", "It is noon."))
    assert seen.replies == [(0, 2)]
    assert not seen.vectors[1].any()


def test_the_four_measures_by_hand() -> None:
    marks = np.array([1.0, 9.0, 0.0, 2.0, 9.0, 3.0])
    # The party's marks are 1, 0, 2, 3: thirds of one turn each.
    assert summarize_marks_of_party(marks, np.array([0, 2, 3, 5])) == pytest.approx(
        [1.5, np.log(7), 3.0, 2.0]
    )
    assert summarize_marks_of_party(-marks, np.array([0, 2, 3, 5])) == pytest.approx(
        [-1.5, -np.log(7), -2.0, -2.0]
    )


@given(st.text(alphabet="ab. \n…?\u3000", max_size=600), st.integers(0, 600))
def test_an_excerpt_is_a_piece_of_its_turn(text: str, at: int) -> None:
    found = cut_excerpt_around(text, min(at, len(text)))
    assert found in text
    assert len(found) <= MAX_QUOTE_CHARS


@pytest.mark.parametrize("at", [0, 300, 2_000, 5_950, 6_010, 7_900])
def test_an_excerpt_of_a_huge_turn_shows_the_place_and_not_the_cut(at: int) -> None:
    words = " ".join(f"w{number}" for number in range(4_000))
    text = cut_middle_of_text(words)
    word = text[text.rfind(" ", 0, at) + 1 :].split(" ", 1)[0]
    found = cut_excerpt_around(text, text.index(word))
    assert word in found
    assert OMISSION_MARK not in found
    assert found in words


def test_quotes_come_from_the_marked_turns_alone_and_keep_their_numbers(embedder: Embedder) -> None:
    talk = [
        ("system", "thanks"),
        ("u", "help"),
        ("a", "here"),
        ("u", "thanks"),
        ("a", "bye"),
        ("u", "thank you"),
    ]
    seen = view(embedder, *talk)
    quotes = quote_strongest_turns(
        seen, SIGNALS_BY_NAME["thanks"], SIGNALS_BY_NAME["thanks"].marks(seen)
    )
    assert [(quote.turn, quote.text) for quote in quotes] == [(3, "thanks"), (5, "thank you")]
    assert (
        quote_strongest_turns(
            seen, SIGNALS_BY_NAME["apology"], SIGNALS_BY_NAME["apology"].marks(seen)
        )
        == ()
    )
    long = "Here is much to read. " * 30 + "Sorry, that was wrong. " + "More to read. " * 30
    seen = view(embedder, ("u", "help"), ("a", long))
    (quote,) = quote_strongest_turns(
        seen, SIGNALS_BY_NAME["apology"], SIGNALS_BY_NAME["apology"].marks(seen)
    )
    assert (quote.text.startswith("Sorry, that was wrong."), quote.turn) == (True, 1), (
        "from where it is seen on"
    )
    assert choose_strongest_turns(np.array([0.0, -0.9, -0.1, -0.5]), np.arange(4), 2) == [2, 3]
    assert choose_strongest_turns(np.array([1.0, 1.0, 1.0]), np.arange(3), 2) == [1, 2]
    assert choose_strongest_turns(np.zeros(3), np.arange(3), 2) == []


def test_every_quote_stands_in_its_turn_whatever_white_space_it_has(embedder: Embedder) -> None:
    talk = conversation(
        ("u", "  help\r\n\tme   now "),
        ("a", "sorry,\n\n\nI   can't\u2028do it"),
        ("u", "\x00thanks\x00"),
    )
    seen = ConversationView(talk, embedder)
    for signal in SIGNALS_BY_NAME.values():
        for quote in quote_strongest_turns(seen, signal, signal.marks(seen)):
            found = locate_quote_in_conversation(talk, quote.text, quote.turn)
            assert found is not None
            assert found.turn == quote.turn


def test_a_phrase_is_found_as_whole_words_in_a_row(embedder: Embedder) -> None:
    signal = make_phrase_signal("user", "need help")
    seen = view(
        embedder,
        ("u", "I NEED, help"),
        ("u", "need a help"),
        ("u", "needhelp"),
        ("u", "unneed helper"),
    )
    assert signal.marks(seen).tolist() == [1, 0, 0, 0]
    odd = make_phrase_signal("user", "c++ (a")
    assert odd.marks(view(embedder, ("u", "so c++ (a thing"))).tolist() == [1]


def test_where_the_evidence_of_a_rubric_comes_from_and_of_which_party_it_is(
    embedder: Embedder,
) -> None:
    thanks = Rubric(
        id="1", text="The user thanks the assistant.", polarity="sat", source="signal:thanks"
    )
    assert find_evidence_signal(thanks, embedder) is SIGNALS_BY_NAME["thanks"]
    phrase = Rubric(
        id="2", text="The assistant says “fee”.", polarity="dsat", source="phrase:assistant:fee"
    )
    assert find_evidence_signal(phrase, embedder).party == "assistant"
    for source in ("person", "", "signal:unknown", "phrase:user:", "extract_sat"):
        rubric = Rubric(id="3", text="The assistant is kind.", polarity="sat", source=source)
        assert find_evidence_signal(rubric, embedder).statement == rubric.text
    for text, source, party in (
        ("The user thanks the assistant.", "person", "user"),
        ("The ASSISTANT listens to the user.", "person", "assistant"),
        ("Things go well.", "person", "both"),
        ("The user likes it.", "turns:assistant:3", "assistant"),
    ):
        assert (
            find_party_of_rubric(Rubric(id="1", text=text, polarity="sat", source=source)) == party
        )


def test_a_conversation_is_not_like_its_own_quotes(embedder: Embedder) -> None:
    quote = Quote(conversation_id="c", turn=0, text="The purple giraffe sings.")
    rubric = Rubric(
        id="1", text="The user is content.", polarity="sat", quotes=(quote,), source="turns:user:0"
    )
    marks = find_evidence_signal(rubric, embedder).marks
    talk = [("u", "The purple giraffe sings."), ("a", "Yes.")]
    own = ConversationView(conversation(*talk, id_="c"), embedder)
    other = ConversationView(conversation(*talk, id_="d"), embedder)
    assert marks(own)[0] < 0.5
    assert marks(other)[0] == pytest.approx(1, abs=1e-5)


def test_a_deed_is_what_the_assistant_does_and_a_success_or_a_failure_alone_is_none() -> None:
    assert {signal.party for signal in SIGNALS_BY_NAME.values() if signal.kind == "deed"} == {
        "assistant"
    }
    rates = {pattern.kind for pattern in PATTERNS_BY_NAME.values() if pattern.rate}
    assert rates == {"outcome"}
