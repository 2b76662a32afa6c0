"""Evidence for a rubric: marks on the turns that support it.

A rubric's `source` says where to look: `event:…` and `rate:…` for that event, `signal:NAME` at that
signal, `phrase:PARTY:WORDS` for those words, anything else at the likeness of turns to the rubric's
quotes, or to its own text when it has none.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.patterns import PATTERNS_BY_NAME
from pollex.agents.embedded.events.signal import make_event_signal, parse_event_source
from pollex.agents.embedded.signals import SIGNALS_BY_NAME, Signal, SignalParty, make_word_signal
from pollex.agents.embedded.view import (
    OMISSION_MARK,
    ConversationView,
    ExampleTexts,
    Floats,
    Indices,
)
from pollex.rubrics.records import JudgedBy
from pollex.rubrics.rubric import ANSWERED_BY_DISTILLED_JUDGE, Quote, Rubric, WhatRubricTells


def find_evidence_signal(rubric: Rubric, embedder: Embedder) -> Signal:
    """Return the signal that marks evidence for this rubric."""
    # from the most exact detector to the least: what none knows is compared by vectors
    kind, _, rest = rubric.source.partition(":")
    if kind == "signal" and rest in SIGNALS_BY_NAME:
        return SIGNALS_BY_NAME[rest]
    if signal_of_event := make_event_signal(rubric.source, rubric.text):
        return signal_of_event
    if kind == "phrase" and rest.partition(":")[2].strip():
        return make_phrase_signal(*parse_phrase_source(rubric.source))
    if kind == "turns":  # the cluster was found by vectors; its turns are known by their words
        return Signal(
            rubric.source,
            find_party_of_rubric(rubric),
            rubric.text,
            make_marks_by_shared_words(rubric),
        )

    marks = make_marks_by_likeness(rubric, embedder)
    return Signal(
        rubric.source or rubric.id,
        find_party_of_rubric(rubric),
        rubric.text,
        marks,
        vectors=True,
    )


def contradicts_usual_side(rubric: Rubric) -> bool:
    """Return whether a rubric's side differs from the usual one of its source."""
    kind, _, rest = rubric.source.partition(":")
    if kind == "signal":
        signal = SIGNALS_BY_NAME.get(rest)
    else:
        signal = make_event_signal(rubric.source, rubric.text)

    # a source that may be on either side is never unexpected
    return signal is not None and signal.lean * rubric.sign < 0


def get_detector_description(source: str) -> WhatRubricTells:
    """Return what the detector of a source tells of; empty where there is none."""
    kind, _, rest = source.partition(":")
    if kind == "signal" and rest in SIGNALS_BY_NAME:
        return SIGNALS_BY_NAME[rest].kind

    event_of_source = parse_event_source(source)
    if event_of_source:
        return PATTERNS_BY_NAME[event_of_source.event.pattern].kind
    return ""


def describe_basis_of_judgment(rubric: Rubric, *, model: bool = False) -> JudgedBy:
    """Say by what a rubric is judged; see `find_evidence_signal`.

    Args:
        model: Whether a model answers it.
    """
    kind, _, rest = rubric.source.partition(":")
    if model or rubric.answered_by == ANSWERED_BY_DISTILLED_JUDGE:
        return "model" if model else "distilled"
    if kind == "signal" and rest in SIGNALS_BY_NAME:
        return "signal"
    if parse_event_source(rubric.source):
        return "event"
    if kind == "phrase" and rest.partition(":")[2].strip():
        return "words"
    return "likeness"


UNSPACED_SCRIPT_REGEX = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
"""A letter of a script that writes words without spaces between them."""


def parse_phrase_source(source: str) -> tuple[SignalParty, str]:
    """Return who says which phrase, by a source."""
    _, party, phrase = source.split(":", 2)
    return ("assistant" if party == "assistant" else "user"), phrase


@lru_cache(maxsize=1024)
def make_phrase_signal(party: SignalParty, phrase: str) -> Signal:
    """Make a signal that marks turns with the phrase's words in a row."""
    # other signs may stand between the words, but no letters around them
    pattern = r"\W+".join(re.escape(word) for word in phrase.split())
    # where no spaces part words, letters do stand around a phrase
    if not UNSPACED_SCRIPT_REGEX.search(phrase):
        pattern = rf"(?<!\w){pattern}(?!\w)"

    statement = f"The {party} says “{phrase}”."
    return make_word_signal(
        f"phrase:{party}:{phrase}",
        party,
        statement,
        pattern,
        # a turn that lacks the first word can't match
        holds=phrase.split(maxsplit=1)[0].lower(),
    )


def make_marks_by_shared_words(rubric: Rubric) -> Callable[[ConversationView], Floats]:
    """Mark turns by the words that they share with the nearest quote from another conversation."""
    party = find_party_of_rubric(rubric)
    # comments are no turns, and aren't compared with any
    quotes = []
    for quote in rubric.quotes:
        if not quote.of_comment:
            quotes.append(quote)

    quoted = frozenset(quote.conversation_id for quote in quotes)

    # a conversation's own quotes would find themselves
    @lru_cache(maxsize=16)
    def examples(without: str) -> ExampleTexts:
        return ExampleTexts(
            [q.text for q in quotes if q.conversation_id != without] or [rubric.text]
        )

    def marks(view: ConversationView) -> Floats:
        conversation_id = view.conversation.id
        others = examples(conversation_id if conversation_id in quoted else "")
        out = np.zeros(len(view.texts))
        for turn in view.places(party):
            out[turn] = others.nearest(view.texts[turn])

        return out

    return marks


def make_marks_by_likeness(
    rubric: Rubric, embedder: Embedder
) -> Callable[[ConversationView], Floats]:
    """Mark turns by cosine to the nearest quote from another conversation."""
    quotes = [quote for quote in rubric.quotes if not quote.of_comment]
    party = find_party_of_rubric(rubric)

    def marks(view: ConversationView) -> Floats:
        other_quotes = []
        for quote in quotes:
            if quote.conversation_id != view.conversation.id:
                other_quotes.append(quote.text)

        examples = other_quotes or [rubric.text]
        turns = view.of(party)
        out = np.zeros(len(view.texts))
        if len(turns):
            # highest cosine to any
            out[turns] = (view.vectors[turns] @ embedder.embed(examples).T).max(axis=1)

        return out

    return marks


def find_party_of_rubric(rubric: Rubric) -> SignalParty:
    """Whose turns the rubric's text is about: the party named first."""
    kind, _, rest = rubric.source.partition(":")
    if kind == "turns":
        return "assistant" if rest.startswith("assistant") else "user"

    named = re.search(r"\b(user|assistant)\b", rubric.text, re.IGNORECASE)
    if not named:
        return "both"
    if named.group(1).lower() == "assistant":
        return "assistant"
    return "user"


def quote_strongest_turns(
    view: ConversationView,
    signal: Signal,
    marks: Floats,
    most: int = 2,
) -> tuple[Quote, ...]:
    """Quote the turns with the strongest marks, around the place where the signal occurs."""
    turn_quotes = []
    for turn in choose_strongest_turns(marks, view.of(signal.party), most):
        turn_quotes.append(
            Quote(
                conversation_id=view.conversation.id,
                turn=turn,
                text=cut_excerpt_around(
                    view.texts[turn], locate_signal_in_turn(view, signal, turn)
                ),
            )
        )

    return tuple(turn_quotes)


def choose_strongest_turns(
    marks: Floats | Sequence[float],
    turns: Indices | Sequence[int],
    most: int,
) -> list[int]:
    """Return the turns with the highest marks, in order; of equal marks, the last turns."""
    marked = sorted([int(turn) for turn in turns if marks[turn] != 0])
    if len(marked) <= most:
        return marked
    # marks that are all alike choose nothing: the last turns tell how it ended
    if len({marks[turn] for turn in marked}) == 1:
        return marked[-most:]

    # rounded, so that the last digits of a sum don't choose
    ranked = sorted([(-round(float(marks[turn]), 6), -turn) for turn in marked])
    return sorted([-turn for _, turn in ranked[:most]])


def locate_signal_in_turn(view: ConversationView, signal: Signal, turn: int) -> int:
    """Return the position of the signal in a turn; 0 for signals of whole turns."""
    match = None
    if signal.pattern:
        match = signal.pattern.search(view.texts[turn])
    return match.start() if match else 0


MAX_QUOTE_CHARS = 240
_SENTENCE_END_REGEX = re.compile(r"[.!?]\s|\n")


def cut_excerpt_around(text: str, at: int = 0) -> str:
    """Return a turn, or an excerpt around position `at` of a long one."""
    # on the side of the cut that the signal is on
    cut = text.rfind(OMISSION_MARK, 0, at)
    start = cut + len(OMISSION_MARK) if cut >= 0 else 0
    part = text[start:].partition(OMISSION_MARK)[0]
    at = at - start
    if len(part) <= MAX_QUOTE_CHARS:
        return part.strip()

    # from a sentence's beginning, else a word's, at most half a quote before the signal
    near = max(0, at - MAX_QUOTE_CHARS // 2)
    sentences = []
    for match in _SENTENCE_END_REGEX.finditer(part, near, at):
        sentences.append(match.end())

    if sentences:
        begin = sentences[-1]
    else:
        begin = near and max(near, part.find(" ", near, at) + 1)

    quote = part[begin : begin + MAX_QUOTE_CHARS]
    # a word that is cut off is left out
    if begin + MAX_QUOTE_CHARS < len(part) and " " in quote[MAX_QUOTE_CHARS // 2 :]:
        quote = quote[: quote.rfind(" ")]

    return quote.strip()
