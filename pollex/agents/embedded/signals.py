"""Signals, visible in single turns, which may speak for or against a conversation; and measures of it from their marks.

The signals are the rows of `signals.toml`. A row without a pattern has its marks from the function
in `MARKERS_BY_SIGNAL`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import copysign, log1p
from pathlib import Path
from typing import Literal

import numpy as np

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.sentences import read_table_rows
from pollex.agents.embedded.view import ConversationView, Floats, Indices, measure_text_likeness
from pollex.conversations.conversation import Conversation
from pollex.rubrics.rubric import WhatRubricTells
from pollex.rubrics.tone import ToneForm

SignalParty = Literal["user", "assistant", "both"]
# classes such as \W, whose letter is no capital to be matched
_CHARACTER_CLASS_REGEX = re.compile(r"\\[A-Z]")
MEASURE_NAMES = ("share", "amount", "ending", "trend")
LAST_TURN_SIGNALS = frozenset({"user_ends", "assistant_ends", "open_end"})
"""Signals that mark the last turn of a conversation, or nothing."""


@dataclass(frozen=True)
class Signal:
    """Something visible in single turns that may speak for or against a conversation.

    Attributes:
        name: Stored in rubric sets; never renamed.
        party: Whose turns carry the mark.
        statement: What is asserted where the signal is strong; one sentence with one verb.
        marks: How strongly each turn carries the signal: [turn] for all turns, 0 where it doesn't.
        lean: What is known of it in general: +1 good, −1 bad, 0 it depends.
        vectors: Whether marks are read from embeddings.
        pattern: What is looked for in a turn, where the signal is that simple; quotes then show it.
        tells: What its row says that it tells of; empty where `kind` follows from the party.
        called: What people call it, in a sentence; empty where that is its statement.
        reverse: The signal whose marks are these with the other sign; empty for most.
    """

    name: str
    party: SignalParty
    statement: str
    marks: Callable[[ConversationView], Floats]
    lean: int = 0
    pattern: re.Pattern[str] | None = None
    vectors: bool = False
    tells: WhatRubricTells = ""
    called: str = ""
    reverse: str = ""

    @property
    def telling_measures(self) -> Floats:
        """Which of its measures may tell anything, 1 or 0 `[measure]`."""
        # a mark on the last turn alone has a share that only tells how many turns there are
        if self.name in LAST_TURN_SIGNALS:
            return np.array([float(name == "ending") for name in MEASURE_NAMES])
        return np.ones(len(MEASURE_NAMES))

    @property
    def kind(self) -> WhatRubricTells:
        """What it tells of: unless the row says so, the assistant's is a deed, the user's an outcome."""
        return self.tells or ("deed" if self.party == "assistant" else "outcome")


def make_word_signal(
    name: str,
    party: SignalParty,
    statement: str,
    pattern: str,
    lean: int = 0,
    holds: str = "",
    tells: WhatRubricTells = "",
) -> Signal:
    """Make a signal for turns that match `pattern` (ignoring case).

    Args:
        holds: In lower case, what a turn that matches holds: most turns don't, and that is found
            out quickly.
    """
    compiled = re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    # Half as long on lower case, which for ASCII is the same.
    if _CHARACTER_CLASS_REGEX.sub("", pattern).islower():
        quick = re.compile(pattern, re.MULTILINE)
    else:
        quick = None

    search = quick.search if quick else compiled.search

    def marks(view: ConversationView) -> Floats:
        # made at the first mark: most signals mark no turn of most conversations
        out: Floats | None = None
        lowered: list[str | None]
        if quick:
            lowered = view.lowered
        else:
            lowered = [None] * len(view.texts)

        for turn in view.places(party):
            low = lowered[turn]
            # beyond ASCII lower case may change a text, so it is searched as it is
            if low is None:
                match = compiled.search(view.texts[turn])
            elif holds in low:
                match = search(low)
            else:
                continue

            if match is not None:
                if out is None:
                    out = np.zeros(len(view.texts))
                out[turn] = 1.0

        return view.silent if out is None else out

    return Signal(
        name,
        party,
        statement,
        marks,
        lean,
        compiled,
        tells=tells,
    )


def summarize_marks_of_party(marks: Floats, turns: Indices) -> Floats:
    """Summarize the marks of one party's turns in four numbers, [4]: see `MEASURE_NAMES`.

    share: mean over the turns. amount: log(1 + sum), with the sum's sign. ending: the highest of
        the last two turns.
    trend: mean of the last third minus mean of the first. All are 0 for a party without turns.
    """
    return np.array(summarize_marks_in_order(marks[turns].tolist()))


def summarize_marks_in_order(x: Sequence[float]) -> tuple[float, float, float, float]:
    """Summarize a party's marks, in order; see `MEASURE_NAMES`."""
    if not x:
        return 0.0, 0.0, 0.0, 0.0

    # a third has one turn at least, so that a single turn has no trend
    third = max(1, round(len(x) / 3))
    total = sum(x)
    return (
        total / len(x),
        # some marks are negative, such as those of short answers
        copysign(log1p(abs(total)), total) if total else 0.0,
        max(x[-2:]),
        (sum(x[-third:]) - sum(x[:third])) / third,
    )


def mark_repeated_turns(view: ConversationView, party: str) -> Floats:
    """Likeness of each turn of a party to its most similar earlier one, by words."""
    out = np.zeros(len(view.texts))
    out[view.of(party)] = view.earlier_likeness(view.of(party))
    return out


def measure_likeness_of_pairs(view: ConversationView, pairs: Sequence[tuple[int, int]]) -> Floats:
    """Likeness of the second turn of each pair to the first, by words."""
    out = np.zeros(len(view.texts))
    for before, after in pairs:
        out[after] = measure_text_likeness(view.terms[before], view.terms[after])
    return out


def mark_unanswered_questions(view: ConversationView) -> Floats:
    """Mark with 1 each question of the user that is answered by a question."""
    out = np.zeros(len(view.texts))
    for asking, replied in view.replies:
        # the mark stands on the question, not on the reply
        out[asking] = "?" in view.texts[asking] and view.texts[replied].endswith("?")
    return out


def mark_last_turn(view: ConversationView, holds: Callable[[int], bool]) -> Floats:
    """Mark the last turn with 1 if something holds of it."""
    out = np.zeros(len(view.texts))
    spoken = view.places("both")
    if spoken and holds(spoken[-1]):
        out[spoken[-1]] = 1

    return out


def mark_replies_in_other_language(view: ConversationView) -> Floats:
    """Mark with 1 each reply in another language than the user's last turn."""
    from pollex.agents.embedded.spoken import list_other_language_replies  # few sets ask for it

    turns = list_other_language_replies(view.texts, view.roles)
    if not turns:
        return view.silent

    out = np.zeros(len(view.texts))
    out[turns] = 1.0
    return out


def measure_turn_lengths(view: ConversationView, party: str, sign: int = 1) -> Floats:
    """Log of the words in each of a party's turns, or its negative."""
    out = np.zeros(len(view.texts))
    turns = view.of(party)
    out[turns] = sign * np.log1p(view.words[turns])

    return out


MARKERS_BY_SIGNAL: dict[str, Callable[[ConversationView], Floats]] = {
    "user_repeats": lambda view: mark_repeated_turns(view, "user"),
    "assistant_repeats": lambda view: mark_repeated_turns(view, "assistant"),
    "relevance": lambda view: measure_likeness_of_pairs(view, view.replies),
    "irrelevance": lambda view: -measure_likeness_of_pairs(view, view.replies),
    "unanswered_question": mark_unanswered_questions,
    "other_language": mark_replies_in_other_language,
    "follow_up": lambda view: measure_likeness_of_pairs(view, view.followed("assistant", "user")),
    "user_ends": lambda view: mark_last_turn(view, lambda turn: view.roles[turn] == "user"),
    "assistant_ends": lambda view: mark_last_turn(
        view, lambda turn: view.roles[turn] == "assistant"
    ),
    "open_end": lambda view: mark_last_turn(view, lambda turn: "?" in view.texts[turn][-40:]),
    # the same mark on each turn: only the amount, which grows with the turns, tells something
    "many_turns": lambda view: np.ones(len(view.texts)),
    "few_turns": lambda view: -np.ones(len(view.texts)),
    "long_answers": lambda view: measure_turn_lengths(view, "assistant"),
    "short_answers": lambda view: measure_turn_lengths(view, "assistant", -1),
    "long_messages": lambda view: measure_turn_lengths(view, "user"),
    "short_messages": lambda view: measure_turn_lengths(view, "user", -1),
}

SIGNALS_BY_NAME = {
    name: make_word_signal(name, **row)
    if "pattern" in row
    else Signal(name, marks=MARKERS_BY_SIGNAL[name], **row)
    for _, name, row in read_table_rows(Path(__file__).with_name("signals.toml"))
}


LENGTH_SIGNALS = frozenset(
    name
    for group, name, _ in read_table_rows(Path(__file__).with_name("signals.toml"))
    if group == "lengths"
)
"""Signals that measure how long and short turns, answers and messages are."""

REVERSED_SIGNALS = {
    name: signal.reverse for name, signal in SIGNALS_BY_NAME.items() if signal.reverse
}
"""Signals by those whose marks are these with the other sign."""

TURN_COMPARING_SIGNALS = frozenset(
    {"user_repeats", "assistant_repeats", "relevance", "irrelevance", "follow_up", "other_language"}
)
"""Signals that compare turns, which costs more than they add here."""


WORDING_SIGNALS = tuple(
    signal for name, signal in SIGNALS_BY_NAME.items() if name not in TURN_COMPARING_SIGNALS
)
"""Signals of words."""


def measure_wording_signals(conversations: Sequence[Conversation]) -> Floats:
    """Measure all signals of words `[conversation, 4 × signal]`; see `MEASURE_NAMES` for the four."""
    # it loads a model only when it is asked
    views = []
    for conversation in conversations:
        views.append(ConversationView(conversation, Embedder()))

    rows = [measure_wording_of_view(view) for view in views]
    # without conversations there is no row that would tell the width
    return np.array(rows, dtype=np.float64).reshape(
        len(rows),
        len(WORDING_SIGNALS) * len(MEASURE_NAMES),
    )


def measure_wording_of_view(view: ConversationView) -> Floats:
    """Measure all signals of words in one conversation `[4 × signal]`."""
    return np.concatenate(
        [
            summarize_marks_of_party(signal.marks(view), view.of(signal.party))
            for signal in WORDING_SIGNALS
        ]
    )


WORDING_TONE_FORM = ToneForm(
    tuple(signal.statement for signal in WORDING_SIGNALS),
    tuple(signal.kind == "tone" for signal in WORDING_SIGNALS),
    measure_wording_signals,
)
"""What tone is made of."""
