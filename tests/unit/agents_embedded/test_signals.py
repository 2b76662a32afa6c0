"""What holds for every signal, and what the single ones see."""

import re

import numpy as np
import pytest
from small_logs import conversation, view

from pollex.agents.checks import refusal
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.signals import MARKS, MEASURES, SIGNALS, measured
from pollex.agents.embedded.view import CUT, HEAD, TAIL, View
from pollex.rubrics.rubric import TONES

PATTERNED = [signal for signal in SIGNALS.values() if signal.pattern]

TALK = [
    ("system", "Be brief. Thanks, great, sorry!"),
    ("u", "Could you book a table for 4? I need it."),
    ("a", "Sorry, I can't. Which day would you like?"),
    ("tool", "thanks sorry great 42"),
    ("u", "No, I said tonight. Still the same."),
    ("a", "I have booked it. Anything else?"),
    ("u", "Great, thanks, that's all!"),
]
LONGEST = HEAD + TAIL
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
    for signal in SIGNALS.values():
        named = {"user": "The user ", "assistant": "The assistant ", "both": "The user and the assistant "}
        assert signal.statement.startswith(named[signal.party])
        assert re.fullmatch(r"[A-Z][\w' ]+\.", signal.statement)
        assert not re.search(r"\b(that|which|what|because|or)\b", signal.statement)
        assert len(signal.statement.split()) <= 10
        assert refusal(signal.statement) == ""
    assert {name for name, signal in SIGNALS.items() if not signal.pattern} == MARKS.keys() <= TONES
    assert "apology" not in TONES, "it leads, since words in its quote show the deed"


def test_marks_are_finite_and_stay_with_the_signals_party_whatever_is_said(embedder: Embedder) -> None:
    odd = ([("u", "help"), ("a", " ")], [("u", ""), ("a", "hello")], [("tool", "x"), ("u", "\x00\ud800")])
    for signal in SIGNALS.values():
        seen = view(embedder, *TALK)
        marks = signal.marks(seen)
        others = np.setdiff1d(np.arange(len(TALK)), seen.of(signal.party))
        assert marks.shape == (len(TALK),)
        assert np.isfinite(marks).all()
        # What both parties do together, such as a number of turns, is counted on the party's turns alone by `measured`.
        assert signal.party == "both" or not marks[others].any()
        empty = View(conversation(), Embedder())
        assert (measured(signal.marks(empty), empty.of(signal.party)) == np.zeros(len(MEASURES))).all()
        assert all(np.isfinite(signal.marks(view(embedder, *talk))).all() for talk in odd)


@pytest.mark.timeout(60)
def test_no_text_keeps_the_patterns_busy(embedder: Embedder) -> None:
    for text in NASTY:
        assert len(text) <= LONGEST + 10
        for signal in PATTERNED:
            assert signal.pattern is not None
            signal.pattern.search(text)
    seen = view(embedder, ("u", "start " + "x" * 1_000_000 + " end"))
    assert len(seen.texts[0]) == LONGEST + len(CUT), "of a huge turn the ends are looked at"
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
        signal = SIGNALS[name]
        role = "u" if signal.party == "user" else "a"
        assert signal.marks(view(embedder, (role, says), (role, silent))).tolist() == [1.0, 0.0], name


def test_a_repeated_request_is_marked_where_it_is_repeated(embedder: Embedder) -> None:
    seen = view(
        embedder,
        ("u", "Book a table for four."),
        ("a", "Done."),
        ("u", "The weather?"),
        ("u", "Book a table for four."),
    )
    marks = SIGNALS["user_repeats"].marks(seen)
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
    assert measured(marks, np.array([0, 2, 3, 5])) == pytest.approx([1.5, np.log(7), 3.0, 2.0])
    assert measured(-marks, np.array([0, 2, 3, 5])) == pytest.approx([-1.5, -np.log(7), -2.0, -2.0])
