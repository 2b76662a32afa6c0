"""Reasons and rubrics, with the way back to the turns that they came from."""

import hashlib
import re
from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

Polarity = Literal["sat", "dsat"]

AnsweredBy = Literal["", "built-in", "distilled"]
ANSWERED_BY_BUILT_IN_JUDGE: AnsweredBy = "built-in"
ANSWERED_BY_DISTILLED_JUDGE: AnsweredBy = "distilled"


PERSON_SOURCE = "person"
"""Source of a rubric in a person's own words: its judge looks for evidence for them."""

WhatRubricTells = Literal["", "deed", "outcome", "manners", "tone"]
"""What a rubric tells of: what the assistant does; what came of it, as the thumb says, too; politeness; or how people
sound. Empty where nobody said."""

QuotePart = Literal["occasion", "act", "omission", "effect"]
QUOTE_PARTS: frozenset[str] = frozenset(get_args(QuotePart))


class Quote(BaseModel):
    """Words copied from one turn.

    Attributes:
        conversation_id: Where they stand.
        turn: Index of the turn in the conversation, from 0; −1 for the first comment that was
            written of it, and so on.
        text: Verbatim, but for white space.
        part: What it is in the exchange that proves a reason; None where nobody said.
        marks: The words that decided, each from one position in `text` up to another; empty where
            that isn't known.
        sure: How sure the detector is that showed it, from 0 to 1; None where there is none.
    """

    model_config = ConfigDict(frozen=True)

    conversation_id: str
    turn: int
    text: str
    part: QuotePart | None = None
    marks: tuple[tuple[int, int], ...] = ()
    sure: float | None = None

    @property
    def of_comment(self) -> bool:
        """Whether it is of what the user wrote of the conversation: proof for people, and nothing that a judge sees."""
        return self.turn < 0

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        if self.of_comment:
            return "the user's comment"
        return f"turn {self.turn}"


class Reason(BaseModel):
    """A reason why one conversation was good (`sat`) or bad (`dsat`).

    Attributes:
        id: Hash of all other fields.
        source: Evidence of the reason, for example `signal:thanks`, `phrase`, `turns`, or the
            prompt's name; the same for reasons that say the same about several conversations.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    conversation_id: str
    polarity: Polarity
    text: str
    quotes: tuple[Quote, ...]
    source: str = ""


class Rubric(BaseModel):
    """A plain-language assertion about a conversation.

    Attributes:
        id: Short hash of polarity and text as first written; stays when a person edits the text.
        reason_ids: The reasons it came from, its duplicates' reasons too.
        quotes: What the reasons quote: the judge's examples.
        source: As in `Reason`; `person` for one that was written by hand.
        answered_by: `built-in` or `distilled` where the set's model isn't asked; empty for the
            others.
        tells: What its detector tells of; empty for a model's and a person's, whose sentence says
            it, and in files of before.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    text: str
    polarity: Polarity
    reason_ids: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    source: str = PERSON_SOURCE
    answered_by: AnsweredBy = ""
    tells: WhatRubricTells = ""

    @property
    def sign(self) -> int:
        """What NetSAT multiplies its values by: 1 for satisfaction, −1 for dissatisfaction."""
        return 1 if self.polarity == "sat" else -1

    @property
    def kind(self) -> WhatRubricTells:
        """What it tells of, whoever wrote it."""
        # words and turns are tone, whatever is said of them
        detector = self.source.partition(":")[0]
        if detector in TONE_SOURCE_KINDS:
            return "tone"
        if self.tells and is_built_in_source(self.source):
            return self.tells
        # in files of before, nobody said what a detector tells of
        if detector == "rate":
            return "outcome"
        if detector == "signal":
            return "tone"
        return classify_sentence(self.text)

    @property
    def leads(self) -> bool:
        """Whether it tells of a deed or an outcome, rather than of manners or a tone."""
        return self.kind in ("deed", "outcome")

    @property
    def unsure(self) -> bool:
        """Whether it is a deed whose detector, or whose quotes, aren't known to be right often enough."""
        return self.kind == "deed" and self.source.startswith("rate:")

    @property
    def outcome(self) -> bool:
        """Whether it says how a conversation came out, as the thumb does, and not what brought that about."""
        return self.kind in ("outcome", "manners")


def classify_sentence(text: str) -> WhatRubricTells:
    """Tell whether a sentence is of a deed of the assistant, or of what came of it.

    The subject of its last clause decides: what stands before is the occasion. What the user is
    told or offered is a deed of the assistant, all the same.
    """
    # a sentence without a known subject counts as one of a deed
    subjects = list(_ASSISTANT_SUBJECT_PATTERN.finditer(text))
    if not subjects:
        return "deed"

    # from the last subject on
    clause = text[subjects[-1].start("who") :]
    if subjects[-1]["who"].lower() in ASSISTANT_NOUNS:
        # politeness alone is no deed to act on
        return "outcome" if _MANNERS_PATTERN.match(clause) else "deed"
    return "deed" if _PASSIVE_PATTERN.match(clause) else "outcome"


ASSISTANT_NOUNS = frozenset({"assistant", "agent", "bot", "model", "reply", "answer"})

_ASSISTANT_SUBJECT_PATTERN = re.compile(
    r"(?:^|[,;:] (?:and |but |so |then |there )?)(?:the|an?) "
    r"(?P<who>assistant|agent|bot|model|reply|answer|user|customer|person|conversation)\b",
    re.IGNORECASE,
)
"""Where a clause begins, and who does something in it."""

_PASSIVE_PATTERN = re.compile(
    r"\w+ (?:is|gets) (?:\w+ly )?"
    r"(?:told|offered|given|asked|sent|shown|left|referred|advised|led|promised|refused|charged)\b",
    re.IGNORECASE,
)
"""How a clause goes on whose subject has something done to it."""

_MANNERS_PATTERN = re.compile(
    r"\w+ (?:(?:only|just|politely|warmly) )?"
    r"(?:apologi[sz]es|thanks|says (?:sorry|thanks|goodbye|hello)|wishes|greets|is (?:polite|friendly))\b",
    re.IGNORECASE,
)
"""How a clause goes on that tells of politeness alone."""

TONE_SOURCE_KINDS = ("phrase", "turns")
"""Sources that are words alone: nobody knows what was done or came of it."""

TONE_SOURCE = "tone"
"""Id and source of what the model of the probability reads beside the rubrics: moods and lengths as one number."""

BUILT_IN_SOURCE_KINDS = ("event", "rate", "signal", *TONE_SOURCE_KINDS)
"""Kinds of sources of what is found without a model."""


def is_built_in_source(source: str) -> bool:
    """Tell whether a reason or a rubric was found without a model."""
    kind, colon, _ = source.partition(":")
    return bool(colon) and kind in BUILT_IN_SOURCE_KINDS


MAX_QUOTES_PER_RUBRIC = 12
"""A rubric carries so many quotes as examples; its reasons carry all of them."""


def add_reasons_to_rubric(rubric: Rubric, reasons: Sequence[Reason]) -> Rubric:
    """Return the rubric with the support of further reasons.

    Quotes are kept evenly: one per reason before a second of any; those of detectors, the surest
    and shortest first.
    """
    # a reason that it has already isn't counted again
    new = []
    for reason in reasons:
        if reason.id not in rubric.reason_ids:
            new.append(reason)

    # the first quotes of all reasons, then the second ones, then the third
    ranked: list[Quote] = []
    for rank in range(3):
        for reason in new:
            ranked.extend(reason.quotes[rank : rank + 1])
    update = {
        "reason_ids": (*rubric.reason_ids, *(reason.id for reason in new)),
        "quotes": tuple(
            sorted((*rubric.quotes, *ranked), key=compute_quote_sort_key)[:MAX_QUOTES_PER_RUBRIC]
        ),
    }
    return rubric.model_copy(update=update)


PART_ORDER_DEEDS_FIRST = {
    "act": 0,
    "omission": 0,
    "effect": 1,
    "occasion": 2,
}
"""What a model quoted: the deed proves more than what called for it."""


def compute_quote_sort_key(quote: Quote) -> tuple[float, int]:
    """Sort key of quotes; those without a detector keep their order, deeds before their occasions."""
    if quote.sure is None:
        return (PART_ORDER_DEEDS_FIRST.get(quote.part or "", 0), 0)
    return (-quote.sure, len(quote.text))


def make_content_id(*parts: str) -> str:
    """Twelve hex digits that name `parts`, the same on every machine."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:12]


def has_rubrics_written_by_model(rubrics: Sequence[Rubric]) -> bool:
    """Tell whether a set has rubrics in a model's words: these lead, and built-in ones serve them."""
    return any("@" in rubric.source and not rubric.answered_by for rubric in rubrics)
