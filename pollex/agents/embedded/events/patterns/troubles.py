"""Repetition, contradiction, complaint and giving up."""

import re
from collections.abc import Iterator

from pollex.agents.embedded.events.patterns.pattern import Chars, Exchange, Firing
from pollex.agents.embedded.events.sentences import Move, Sentence

COURTESY = frozenset({"anything_else", "says_bye", "thanks", "apologizes"})
ALIKE = 0.8


OWN_SLIP = re.compile(r"\bsorry,? i (?:meant|mean)\b|\bmy (?:mistake|bad|fault|error)\b|\bi (?:mis\w+|forgot)\b")
OF_THE_REPLY = re.compile(
    r"\b(?:that(?:'s| is| was)(?: not|n't)|not (?:what|the \w+) i|wrong|incorrect|i (?:said|asked for|told)"
    r"|you (?:said|gave|booked|got|picked))\b"
)


def find(x: Exchange) -> Iterator[Firing]:
    """Yield troubles of one exchange."""
    if x.here.has("takes_back"):
        yield x.fire("took_back", (x.here, "takes_back"))
    if x.here.has("refuses") and not x.here.has("anything_else", "offers"):
        yield x.fire("refused", (x.here, "refuses"))
    yield from _repeats(x)
    if x.user is not None and x.user.has("leaves") and not x.user.has("requests", "asks", "changes", "accepts"):
        for act in ("proposes", "asks_back", "offers"):
            if act in x.here.acts and not x.here.has("says_bye", "anything_else", "apologizes"):
                yield x.fire("went_on", (x.here, act), (x.user, "leaves"), sure=0.85)
                break
    if x.after is not None:
        yield from _reaction(x)


def _reaction(x: Exchange) -> Iterator[Firing]:
    after = x.after
    if after is None:
        return
    if after.has("complains"):
        yield x.fire("complained", (after, "complains"))
    if after.has("corrects") and not x.here.has("confirms", "proposes", "offers") and wrong(x.here, after):
        yield x.fire("contradicted", (after, "corrects"))
    if after.has("gives_up"):
        yield x.fire("given_up", (after, "gives_up"))


def wrong(reply: Move, after: Move) -> bool:
    """Return whether a correction is of the reply: a no to its question, or a slip of the user's own, is not."""
    if OWN_SLIP.search(after.low):
        return False
    return not any(one.asking for one in reply.sentences) or bool(OF_THE_REPLY.search(after.low))


def _repeats(x: Exchange) -> Iterator[Firing]:
    if x.user is not None and x.after is not None:
        for one in x.after.sentences:
            if {"requests", "asks"} & one.hits.keys() and (old := twin(one, x.user.sentences)):
                yield x.fire_at("user_repeats", x.after, [one], 0.9, marks=(Chars.of(one), Chars.of(old)))
                break
    if x.earlier is not None:
        for one in x.here.sentences:
            if not COURTESY & one.hits.keys() and not one.asking and (old := twin(one, x.earlier.sentences)):
                yield x.fire_at("same_reply", x.here, [one], 0.9, marks=(Chars.of(one), Chars.of(old)))
                break


def twin(sentence: Sentence, others: list[Sentence]) -> Sentence | None:
    """Return a sentence of nearly the same words; None for short ones."""
    if len(sentence.content) < 3:
        return None
    for other in others:
        if len(sentence.content & other.content) >= ALIKE * len(sentence.content | other.content):
            return other
    return None
