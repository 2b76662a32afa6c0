"""Long and short: turns, answers, messages."""

import numpy as np

from pollex.agents.embedded.signals.signal import Party, Signal
from pollex.agents.embedded.view import Floats, View


def length(name: str, party: Party, statement: str, sign: int, lean: int = 0) -> Signal:
    """Log of the words in each of a party's turns, or its negative."""

    def marks(view: View) -> Floats:
        out = np.zeros(len(view.texts))
        turns = view.of(party)
        out[turns] = sign * np.log1p(view.words[turns])
        return out

    return Signal(name, party, statement, marks, lean)


def many_turns(view: View) -> Floats:
    return np.ones(len(view.texts))


def few_turns(view: View) -> Floats:
    return -np.ones(len(view.texts))


SIGNALS = [
    Signal("many_turns", "both", "The user and the assistant take many turns.", many_turns),
    Signal("few_turns", "both", "The user and the assistant stop after few turns.", few_turns),
    length("long_answers", "assistant", "The assistant answers at length.", +1),
    length("short_answers", "assistant", "The assistant answers briefly.", -1),
    length("long_messages", "user", "The user writes long messages.", +1),
    length("short_messages", "user", "The user writes short messages.", -1),
]
