"""Turns of a conversation with the words that rubrics quote marked."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pollex.conversations.conversation import Turn
from pollex.rubrics.rubric import Polarity, Quote

WHITE_SPACE_PATTERN = r"\s+"
MAX_TURN_CHARACTERS = 6000
MAX_QUOTE_CHARACTERS = 260
EMPTY_RESULT, EMPTY_TURN = "(empty result)", "(empty)"
"""What stands in place of a turn without a word."""
CHARACTERS_BEFORE_MARK = 80
"""Characters of a long quote that are shown before the words that decided."""


@dataclass(frozen=True)
class MarkedText:
    """A stretch of a text; of a turn `kind` is empty, `sat`, `dsat`, or `sat dsat`."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class MarkedTurn:
    """A turn, cut where marks begin and end."""

    role: str
    parts: tuple[MarkedText, ...]


def mark_turns(
    turns: Sequence[Turn], quotes: Mapping[int, Sequence[tuple[str, Polarity]]]
) -> list[MarkedTurn]:
    """Mark quotes in the turns of a conversation.

    Args:
        quotes: By place of the turn, the quoted words and the kind of their rubric.
    """
    marked = []
    for place, turn in enumerate(turns):
        parts = mark_quotes_in_text(turn.shown, quotes.get(place, ()))
        # a blank line would look like a fault of the page
        if not turn.shown.strip():
            parts = (MarkedText(EMPTY_RESULT if turn.role == "tool" else EMPTY_TURN),)
        marked.append(MarkedTurn(turn.role, parts))

    return marked


def mark_quotes_in_text(
    content: str, quotes: Sequence[tuple[str, Polarity]]
) -> tuple[MarkedText, ...]:
    """Split a text at the borders of quotes, ignoring differences in white space."""
    spans = []
    for words, kind in quotes:
        for span in _find_spans(content, words):
            spans.append((*span, kind))
    return _cut_text_at_spans(
        content,
        spans,
    )


def cut_text_at_marked_spans(text: str, marks: Sequence[tuple[int, int]]) -> tuple[MarkedText, ...]:
    """Cut a text where marks begin and end, each from one position up to another."""
    return _cut_text_at_spans(text, [(low, high, "mark") for low, high in marks])


def _cut_text_at_spans(text: str, spans: Sequence[tuple[int, int, str]]) -> tuple[MarkedText, ...]:
    # each border of a mark cuts the text, also inside another mark
    borders = sorted(
        {0, len(text), *(min(end, len(text)) for low, high, _ in spans for end in (low, high))}
    )
    # `sat` before `dsat`
    marked_texts = []
    for low, high in pairwise(borders):
        marked_texts.append(
            MarkedText(
                text[low:high],
                # `sat` before `dsat`
                " ".join(sorted({kind for a, b, kind in spans if a <= low < b}, reverse=True)),
            )
        )
    return tuple(marked_texts)


def _find_spans(content: str, words: str) -> list[tuple[int, int]]:
    # any white space may stand between the words
    pattern = WHITE_SPACE_PATTERN.join(map(re.escape, words.split()))
    if pattern:
        spans: list[tuple[int, int]] = []
        for match in re.finditer(pattern, content):
            spans.append(match.span())
        return spans

    return []


def shorten_turns(turns: Sequence[Turn]) -> list[Turn]:
    """Cut turns that would make the page heavy."""
    shortened_turns = []
    for turn in turns:
        shortened_turns.append(
            turn
            if len(turn.shown) <= MAX_TURN_CHARACTERS
            else Turn(role=turn.role, content=f"{turn.shown[:MAX_TURN_CHARACTERS]}…")
        )
    return shortened_turns


def trim_quote(
    quote: Quote, limit: int = MAX_QUOTE_CHARACTERS
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Cut a quote that is longer than so many characters to the words around its marks."""
    text = quote.text
    if len(text) <= limit:
        return text, quote.marks

    # a little before the first mark, else from the beginning
    before = min(CHARACTERS_BEFORE_MARK, limit // 3)
    begin = max(0, min((low for low, _ in quote.marks), default=0) - before)
    end = begin + limit
    head = "…" * (begin > 0)
    tail = "…" * (end < len(text))
    # an ellipsis in front moves all marks by one
    shift = begin - len(head)
    marks_inside = []
    for low, high in quote.marks:
        if begin <= low < end:
            marks_inside.append((low - shift, min(high, end) - shift))

    marks = tuple(marks_inside)

    return f"{head}{text[begin:end]}{tail}", marks
