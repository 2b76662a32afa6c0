"""Quotes: word for word, from the right turn, and where the signal is seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import conversation, view

from pollex.agents.checks import located
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.evidence import (
    LONGEST_QUOTE,
    evidence_of,
    excerpt,
    party_of,
    phrase_signal,
    quotes_from,
    strongest,
)
from pollex.agents.embedded.signals import SIGNALS
from pollex.agents.embedded.view import CUT, View, shortened
from pollex.rubrics.rubric import Quote, Rubric


@given(st.text(alphabet="ab. \n…?\u3000", max_size=600), st.integers(0, 600))
def test_an_excerpt_is_a_piece_of_its_turn(text: str, at: int) -> None:
    found = excerpt(text, min(at, len(text)))
    assert found in text
    assert len(found) <= LONGEST_QUOTE


@pytest.mark.parametrize("at", [0, 300, 2_000, 5_950, 6_010, 7_900])
def test_an_excerpt_of_a_huge_turn_shows_the_place_and_not_the_cut(at: int) -> None:
    words = " ".join(f"w{number}" for number in range(4_000))
    text = shortened(words)
    word = text[text.rfind(" ", 0, at) + 1 :].split(" ", 1)[0]
    found = excerpt(text, text.index(word))
    assert word in found
    assert CUT not in found
    assert found in words


def test_quotes_come_from_the_marked_turns_alone_and_keep_their_numbers(embedder: Embedder) -> None:
    talk = [("system", "thanks"), ("u", "help"), ("a", "here"), ("u", "thanks"), ("a", "bye"), ("u", "thank you")]
    seen = view(embedder, *talk)
    quotes = quotes_from(seen, SIGNALS["thanks"], SIGNALS["thanks"].marks(seen))
    assert [(quote.turn, quote.text) for quote in quotes] == [(3, "thanks"), (5, "thank you")]
    assert quotes_from(seen, SIGNALS["apology"], SIGNALS["apology"].marks(seen)) == ()
    long = "Here is much to read. " * 30 + "Sorry, that was wrong. " + "More to read. " * 30
    seen = view(embedder, ("u", "help"), ("a", long))
    (quote,) = quotes_from(seen, SIGNALS["apology"], SIGNALS["apology"].marks(seen))
    assert (quote.text.startswith("Sorry, that was wrong."), quote.turn) == (True, 1), "from where it is seen on"
    assert strongest(np.array([0.0, -0.9, -0.1, -0.5]), np.arange(4), 2) == [2, 3]
    assert strongest(np.array([1.0, 1.0, 1.0]), np.arange(3), 2) == [1, 2]
    assert strongest(np.zeros(3), np.arange(3), 2) == []


def test_every_quote_stands_in_its_turn_whatever_white_space_it_has(embedder: Embedder) -> None:
    talk = conversation(
        ("u", "  help\r\n\tme   now "), ("a", "sorry,\n\n\nI   can't\u2028do it"), ("u", "\x00thanks\x00")
    )
    seen = View(talk, embedder)
    for signal in SIGNALS.values():
        for quote in quotes_from(seen, signal, signal.marks(seen)):
            found = located(talk, quote.text, quote.turn)
            assert found is not None
            assert found.turn == quote.turn


def test_a_phrase_is_found_as_whole_words_in_a_row(embedder: Embedder) -> None:
    signal = phrase_signal("user", "need help")
    seen = view(embedder, ("u", "I NEED, help"), ("u", "need a help"), ("u", "needhelp"), ("u", "unneed helper"))
    assert signal.marks(seen).tolist() == [1, 0, 0, 0]
    odd = phrase_signal("user", "c++ (a")
    assert odd.marks(view(embedder, ("u", "so c++ (a thing"))).tolist() == [1]


def test_where_the_evidence_of_a_rubric_comes_from_and_of_which_party_it_is(embedder: Embedder) -> None:
    thanks = Rubric(id="1", text="The user thanks the assistant.", polarity="sat", source="signal:thanks")
    assert evidence_of(thanks, embedder) is SIGNALS["thanks"]
    phrase = Rubric(id="2", text="The assistant says “fee”.", polarity="dsat", source="phrase:assistant:fee")
    assert evidence_of(phrase, embedder).party == "assistant"
    for source in ("person", "", "signal:unknown", "phrase:user:", "extract_sat"):
        rubric = Rubric(id="3", text="The assistant is kind.", polarity="sat", source=source)
        assert evidence_of(rubric, embedder).statement == rubric.text
    for text, source, party in (
        ("The user thanks the assistant.", "person", "user"),
        ("The ASSISTANT listens to the user.", "person", "assistant"),
        ("Things go well.", "person", "both"),
        ("The user likes it.", "turns:assistant:3", "assistant"),
    ):
        assert party_of(Rubric(id="1", text=text, polarity="sat", source=source)) == party


def test_a_conversation_is_not_like_its_own_quotes(embedder: Embedder) -> None:
    quote = Quote(conversation_id="c", turn=0, text="The purple giraffe sings.")
    rubric = Rubric(id="1", text="The user is content.", polarity="sat", quotes=(quote,), source="turns:user:0")
    marks = evidence_of(rubric, embedder).marks
    talk = [("u", "The purple giraffe sings."), ("a", "Yes.")]
    own = View(conversation(*talk, id_="c"), embedder)
    other = View(conversation(*talk, id_="d"), embedder)
    assert marks(own)[0] < 0.5
    assert marks(other)[0] == pytest.approx(1, abs=1e-5)
