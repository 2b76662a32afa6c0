"""The first part of the report: rubrics with worth and quotes, topics, and mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pollex.conversations.conversation import Conversation
from pollex.reports.numbers import SPACE, known
from pollex.reports.transcript import MarkedText, cut, marked_parts, marked_turns
from pollex.rubrics.headlines import headlines, hints_of, sounds_of, sounds_worth, turned
from pollex.rubrics.learning.results import LabelledScore
from pollex.rubrics.lint import Mark
from pollex.rubrics.records import ChosenRubric, Segment
from pollex.rubrics.rubric import Polarity, Quote
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import bounds_in_words, doubt, ends, in_words, percent, signal_in_words

FIRST = 5
"""Rubrics of a side before anything is unfolded."""

EXAMPLES = 3
SEGMENTS = 6
WRONG = 6
LONGEST_QUOTE = 260
AROUND = 80
"""Characters of a long quote that are shown before the words that decided."""


Example = tuple[str, str]
"""A conversation to look at: its id, and its anchor on the page, or empty."""


@dataclass(frozen=True)
class Finding:
    """A rubric as it is told.

    Attributes:
        worth: In words; empty where it wasn't measured.
        bounds: What stands behind it, likewise.
        beside: Further signals, in words.
        doubt: Why its worth can't be relied on; empty where it can.
        quote: The best one, with the words that decided marked.
        source: Where it stands.
        never: How often its occasion never came up, in words; empty where nobody says so.
        marks: What makes it hard to judge.
        also: Near twins, which stand under it.
    """

    rubric: ChosenRubric
    worth: str
    beside: tuple[str, ...]
    bounds: str
    doubt: str
    quote: tuple[MarkedText, ...]
    source: Quote | None
    examples: tuple[Example, ...]
    never: str = ""
    marks: Sequence[Mark] = ()
    also: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Findings:
    """All that leads the page.

    Attributes:
        leading: By side, the deeds and outcomes that labels bear out, most thumbs explained first.
        hints: Those of which too few thumbs can tell.
        turned: Those whose thumbs on held-out conversations went the other way.
        sounds: Those that tell how people sound.
        topics: Segments, those least like the rest first, each with its conversations.
        wrong: The held-out conversations that the set gets most wrong, each with how it begins.
        shown: The conversations that are in the page, as the template takes them.
        sounds_worth: What the second list is good for beside the score.
    """

    leading: Mapping[Polarity, Sequence[Finding]]
    hints: Sequence[Finding]
    turned: Sequence[Finding]
    sounds: Sequence[Finding]
    topics: Sequence[tuple[Segment, tuple[Example, ...]]]
    wrong: Sequence[tuple[LabelledScore, Example, str]]
    shown: Sequence[Mapping[str, object]]
    sounds_worth: str


@dataclass
class Places:
    """Anchors of conversations, in the order in which they are first named, and marks of rubrics by id."""

    texts: Mapping[str, Conversation]
    marks: Mapping[str, Sequence[Mark]] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)

    def example(self, id_: str) -> Example:
        """Make an example of the conversation, with an anchor if its text is known."""
        return id_, self.given.setdefault(id_, f"c-{len(self.given) + 1}") if id_ in self.texts else ""


def findings_of(
    rubrics: RubricSet,
    scores: Sequence[LabelledScore],
    conversations: Mapping[str, Conversation],
    marks: Sequence[Mark] = (),
) -> Findings:
    """Prepare what leads the page.

    Args:
        conversations: Those of `named_in`, by id.
        marks: Of rubrics that are hard to judge.
    """
    ids = dict.fromkeys(mark.id for mark in marks)
    places = Places(conversations, {id_: [mark for mark in marks if mark.id == id_] for id_ in ids})
    leading: dict[Polarity, list[Finding]] = {
        side: [finding(one.rubric, places, also=one.also) for one in headlines(rubrics.rubrics, side)]
        for side in ("dsat", "sat")
    }
    against = [finding(rubric, places) for rubric in turned(rubrics.rubrics)]
    hints = [finding(rubric, places) for rubric in hints_of(rubrics.rubrics)]
    beside = sounds_of(rubrics.rubrics)
    sounds = [finding(rubric, places, examples=0) for rubric in beside]
    topics = [(one, tuple(map(places.example, one.examples))) for one in rubrics.segments[:SEGMENTS]]
    wrong = [
        (one, places.example(id_), conversations[id_].opening if id_ in conversations else "")
        for one, id_ in ((one, one.conversation_id) for one in most_wrong(scores))
    ]
    return Findings(leading, hints, against, sounds, topics, wrong, shown(rubrics, places), sounds_worth(beside))


def finding(
    rubric: ChosenRubric, places: Places, examples: int = EXAMPLES, also: Sequence[ChosenRubric] = ()
) -> Finding:
    """Put a rubric into words."""
    worth, share, never = rubric.worth, rubric.never_came_up, ""
    if share is not None and share.value is not None:
        never = f"Its occasion never came up in {percent(share)} of {share.n} training conversations ({ends(share)})."
    quote = rubric.quotes[0] if rubric.quotes else None
    return Finding(
        rubric=rubric,
        worth=spaced(in_words(worth)) if worth else "",
        bounds=spaced(bounds_in_words(worth)) if worth else "",
        beside=tuple(filter(None, map(signal_in_words, rubric.signals))),
        doubt=spaced(doubt(worth, rubric.polarity)) if worth else "",
        quote=marked_parts(*shortened(quote)) if quote else (),
        source=quote,
        examples=tuple(map(places.example, quoted_in(rubric)[:examples])),
        never=spaced(never),
        marks=places.marks.get(rubric.id, ()),
        also=tuple(finding(twin, places, examples) for twin in also),
    )


def spaced(text: str) -> str:
    """Keep a percentage on one line."""
    return text.replace(" %", f"{SPACE}%")


def quoted_in(rubric: ChosenRubric) -> list[str]:
    """List the conversations that a rubric quotes, that of the best quote first."""
    return list(dict.fromkeys(quote.conversation_id for quote in rubric.quotes))


def shortened(quote: Quote) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Cut a long quote to the words around its marks."""
    text = quote.text
    if len(text) <= LONGEST_QUOTE:
        return text, quote.marks
    begin = max(0, min((low for low, _ in quote.marks), default=0) - AROUND)
    end = begin + LONGEST_QUOTE
    head, tail = "…" * (begin > 0), "…" * (end < len(text))
    shift = begin - len(head)
    marks = tuple((low - shift, min(high, end) - shift) for low, high in quote.marks if begin <= low < end)
    return f"{head}{text[begin:end]}{tail}", marks


def most_wrong(scores: Sequence[LabelledScore]) -> list[LabelledScore]:
    """Return held-out conversations whose thumb was least probable, less probable than the other at least."""
    held_out = [score for score in scores if score.side == "held_out" and known(score.probability)]
    wrong = [score for score in held_out if of_thumb(score) < 0.5]
    return sorted(wrong, key=lambda score: (of_thumb(score), score.conversation_id))[:WRONG]


def of_thumb(score: LabelledScore) -> float:
    """Return the probability of the thumb that was given."""
    probability = score.probability or 0.0
    return probability if score.positive else 1 - probability


def named_in(rubrics: RubricSet, scores: Sequence[LabelledScore]) -> list[str]:
    """List the ids of the conversations that the page shows."""
    quoted = [id_ for rubric in rubrics.rubrics if rubric.headlined for id_ in quoted_in(rubric)[:EXAMPLES]]
    topics = [id_ for segment in rubrics.segments[:SEGMENTS] for id_ in segment.examples]
    return list(dict.fromkeys([*quoted, *topics, *(score.conversation_id for score in most_wrong(scores))]))


def shown(rubrics: RubricSet, places: Places) -> list[Mapping[str, object]]:
    """Prepare the conversations that have an anchor, with the quotes of headline rubrics marked."""
    reasons = {reason.id: reason for reason in rubrics.reasons}
    quotes: dict[str, dict[int, list[tuple[str, Polarity]]]] = {}
    for rubric in rubrics.rubrics:
        behind = [quote for id_ in rubric.reason_ids if id_ in reasons for quote in reasons[id_].quotes]
        for quote in (*rubric.quotes, *behind) if rubric.headlined else ():
            turns = quotes.setdefault(quote.conversation_id, {})
            turns.setdefault(quote.turn, []).append((quote.text, rubric.polarity))
    return [
        {
            "id": id_,
            "place": place,
            "label": places.texts[id_].label.value,
            "turns": marked_turns(cut(places.texts[id_].turns), quotes.get(id_, {})),
            "said_of_it": [one.text for one in places.texts[id_].feedback],
        }
        for id_, place in places.given.items()
    ]
