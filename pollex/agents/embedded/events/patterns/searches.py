"""A search finds nothing."""

import re
from collections.abc import Iterator

from pollex.agents.embedded.events.patterns.pattern import Exchange, Firing
from pollex.agents.embedded.events.sentences import Move

FEATURE = re.compile(
    r"\b(?:does|do|is|are|can|has|have|will|am|if|whether) (?:it|they|this|that|the|there be|i|we|you "
    r"know|he|she|any of)\b"
    r"|\b(?:allow|allowed|offer|serve|accept|include|provide|charge|policy|permitted|available at|have "
    r"(?:a|any|live|free))\b"
)
SEARCH = re.compile(
    r"\b(?:find|looking for|search|recommend|suggest|another|other|any (?:other|good)|are there any"
    r"|what about|how about|instead)\b"
)


def feature_question(move: Move | None) -> bool:
    """Return whether a user asks about a feature or price, without searching for anything."""
    if move is None or "asks" not in move.acts:
        return False
    low = move.acts["asks"].low
    return bool(FEATURE.search(low)) and not SEARCH.search(low)


def found_none(move: Move | None, before: Move | None) -> bool:
    """Return whether a move reports an empty search."""
    return move is not None and "none_found" in move.acts and not feature_question(before)


def find(x: Exchange) -> Iterator[Firing]:
    """Empty searches of one exchange."""
    if not found_none(x.here, x.user) or x.here.has("fails"):
        return
    own = (x.here, "none_found")
    yield x.fire("found_none", own)
    way = next((act for act in ("offers_other", "offers", "proposes") if act in x.here.acts), "")
    if not way and not x.here.has("asks_back", "confirms") and " but " not in x.here.low:
        yield x.fire("none_dead_end", own)
    elif way == "offers_other" and "offers" not in x.here.acts:
        yield x.fire("none_widen", own, (x.here, way))
    if way == "offers" and x.after is not None and x.after.has("accepts"):
        yield x.fire("none_taken", (x.here, way), own, (x.after, "accepts"))
    before = x.moves[x.index - 3] if x.index > 2 else None
    if x.earlier is not None and found_none(x.earlier, before):
        yield x.fire("none_again", own, (x.earlier, "none_found"))
    for act in ("gives_up", "leaves"):
        if x.after is not None and act in x.after.acts and not x.after.has("requests", "asks", "accepts"):
            yield x.fire("none_left", own, (x.after, act))
            return
