"""Flow of the turns: repeats, relevance, unanswered questions, endings."""

import numpy as np

from pollex.agents.embedded.signals.signal import Signal
from pollex.agents.embedded.view import Floats, View
from pollex.agents.embedded.words import likeness


def user_repeats(view: View) -> Floats:
    """Likeness of each user turn to the most similar earlier one, by words."""
    out = np.zeros(len(view.texts))
    out[view.user] = view.earlier_likeness(view.user)
    return out


def assistant_repeats(view: View) -> Floats:
    """Likeness of each assistant turn to the most similar earlier one, by words."""
    out = np.zeros(len(view.texts))
    out[view.assistant] = view.earlier_likeness(view.assistant)
    return out


def relevance(view: View) -> Floats:
    """Likeness of each reply to the user turn before it, by words."""
    out = np.zeros(len(view.texts))
    for asked, replied in view.replies:
        out[replied] = likeness(view.terms[asked], view.terms[replied])
    return out


def irrelevance(view: View) -> Floats:
    return -relevance(view)


def unanswered_questions(view: View) -> Floats:
    """Mark with 1 each question of the user that is answered by a question."""
    out = np.zeros(len(view.texts))
    for asked, replied in view.replies:
        out[asked] = "?" in view.texts[asked] and view.texts[replied].endswith("?")
    return out


def follow_up(view: View) -> Floats:
    """Compute the likeness of each user turn to the reply before it, by words."""
    out = np.zeros(len(view.texts))
    for before, after in view.followed("assistant", "user"):
        out[after] = likeness(view.terms[before], view.terms[after])
    return out


def last_word(view: View, party: str) -> Floats:
    """Mark the last turn with 1 if it is the party's."""
    out = np.zeros(len(view.texts))
    spoken = view.of("both")
    if len(spoken) and view.roles[spoken[-1]] == party:
        out[spoken[-1]] = 1
    return out


def user_ends(view: View) -> Floats:
    return last_word(view, "user")


def assistant_ends(view: View) -> Floats:
    return last_word(view, "assistant")


def open_end(view: View) -> Floats:
    """Mark the last turn with 1 if it asks something that is never answered."""
    out = np.zeros(len(view.texts))
    spoken = view.of("both")
    if len(spoken) and "?" in view.texts[spoken[-1]][-40:]:
        out[spoken[-1]] = 1
    return out


SIGNALS = [
    Signal("user_repeats", "user", "The user repeats a request.", user_repeats, -1),
    Signal("assistant_repeats", "assistant", "The assistant repeats itself.", assistant_repeats, -1),
    Signal("relevance", "assistant", "The assistant stays with the user's question.", relevance, +1),
    Signal("irrelevance", "assistant", "The assistant strays from the user's words.", irrelevance, -1),
    Signal("unanswered_question", "user", "The user gets a question back for a question.", unanswered_questions, -1),
    Signal("follow_up", "user", "The user builds on the assistant's answer.", follow_up),
    Signal("user_ends", "user", "The user has the last word.", user_ends),
    Signal("assistant_ends", "assistant", "The assistant has the last word.", assistant_ends),
    Signal("open_end", "both", "The user and the assistant end on an open question.", open_end, -1),
]
