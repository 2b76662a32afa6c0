"""Requests that failed, and what followed."""

import re
from collections.abc import Iterator

from pollex.agents.embedded.events.patterns.pattern import Exchange, Firing
from pollex.agents.embedded.events.sentences import Move, Sentence
from pollex.agents.embedded.events.values import DATE, TIME, concrete

OTHER_WORDS = re.compile(
    r"\b(?:another|different|other|instead|later|earlier|shorter|longer|alternative|next|available|closest|nearest)\b"
)
ALTERNATIVES = ("offers_other", "offers", "confirms", "proposes", "asks_back")


def failure(move: Move | None, before: Move | None) -> str:
    """Return the act by which a move fails at a request; empty if it doesn't."""
    if move is None:
        return ""
    if "fails" in move.acts:
        return "fails"
    if "unavailable" in move.acts and "done" not in move.acts and before is not None and wants_action(before):
        return "unavailable"
    return ""


def wants_action(move: Move) -> bool:
    """Return whether a user's move asks for an action rather than information."""
    return move.has("accepts") or (move.has("requests", "changes") and not move.has("asks"))


def alternative(here: Move, failed: str) -> str:
    """Return the act by which a failing move offers something else; empty if none."""
    start = here.acts[failed]
    for act in ALTERNATIVES:
        sentence = here.acts.get(act)
        if (
            sentence is None
            or (sentence.turn, sentence.start) < (start.turn, start.start)
            or "anything_else" in sentence.hits
        ):
            continue
        if act in ("offers_other", "offers") or OTHER_WORDS.search(sentence.low) or concrete(sentence.low):
            return act
    return ""


def offered(sentence: Sentence) -> str:
    """Describe what an alternative changes; empty if it names nothing."""
    found = re.search(r"\b(?:another|a different|different|other) ((?:price |star )?[a-z]+)\b", sentence.low)
    if TIME.search(sentence.low) or re.search(
        r"\b(?:another|different|other|later|earlier) (?:time|slot|hour)", sentence.low
    ):
        return "another time"
    if DATE.search(sentence.low) or re.search(r"\b(?:another|different|other) (?:day|date)", sentence.low):
        return "another day"
    noun = found.group(1) if found else ""
    if noun and noun not in (
        "or",
        "one",
        "for",
        "in",
        "at",
        "to",
        "that",
        "i",
        "you",
        "with",
        "option",
        "options",
        "than",
    ):
        return f"another {noun.removesuffix('s')}"
    return "another option"


def find(x: Exchange) -> Iterator[Firing]:
    """Yield failures and recoveries of one exchange."""
    failed = failure(x.here, x.user)
    before = failure(x.earlier, x.moves[x.index - 3] if x.index > 2 else None)
    if failed:
        yield from _failed(x, failed, before)
    elif before and x.earlier is not None and x.user is not None and x.here.has("done") and not x.user.has("rejects"):
        by_user = not alternative(x.earlier, before)
        name = "recovered_by_user" if by_user and x.user.has("changes", "requests") else "recovered"
        if not by_user or name == "recovered_by_user":
            yield x.fire(name, (x.here, "done"), (x.earlier, before))


def _failed(x: Exchange, failed: str, before: str) -> Iterator[Firing]:
    other = alternative(x.here, failed)
    own = (x.here, failed)
    yield x.fire("failed", own)
    if other:
        yield from _with_other(x, failed, other)
    elif not x.here.has("asks_back", "proposes", "offers_other"):
        yield x.fire("fail_no_way", own)
        if x.here.has("anything_else"):
            yield x.fire("fail_else", own, (x.here, "anything_else"))
    after = x.after
    if after is not None and not after.has("accepts", "changes", "requests", "asks", "asks_other"):
        for act in ("gives_up", "leaves"):
            if act in after.acts:
                yield x.fire("fail_left", own, (after, act))
                break
    if after is not None and not other and not after.has("leaves", "gives_up"):
        for act in ("changes", "requests"):
            if act in after.acts and (concrete(after.acts[act].low) or OTHER_WORDS.search(after.acts[act].low)):
                yield x.fire("fail_user_retries", (after, act), own)
                break
    if before and x.earlier is not None:
        yield x.fire("fail_again", own, (x.earlier, before))
    if (
        x.earlier is not None
        and x.earlier.has("confirms")
        and not before
        and x.user is not None
        and not x.user.has("changes", "corrects")
    ):
        yield x.fire("fail_confirmed", own, (x.earlier, "confirms"))


def _with_other(x: Exchange, failed: str, other: str) -> Iterator[Firing]:
    sentence = x.here.acts[other]
    own, way = (x.here, failed), (x.here, other)
    named = concrete(sentence.low) or (other == "offers" and sentence.text[1:] != sentence.text[1:].lower())
    if not named:
        yield x.fire("fail_open_choice", own, way)
        return
    detail = offered(sentence)
    if x.after is None:
        return
    if x.after.has("accepts") and not x.after.has("changes", "rejects"):
        yield x.fire("fail_other_taken", own, way, (x.after, "accepts"), detail=detail)
    for act in ("rejects", "leaves", "gives_up"):
        if act in x.after.acts and "accepts" not in x.after.acts:
            yield x.fire("fail_other_refused", own, way, (x.after, act), detail=detail)
            return
