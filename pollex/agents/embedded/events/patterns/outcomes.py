"""Reports of completed work, and confirmations before it."""

import re
from collections.abc import Iterator

from pollex.agents.embedded.events.patterns.pattern import Exchange, Firing
from pollex.agents.embedded.events.values import DATE, PRICE, TIME, concrete

REFERENCE = re.compile(r"\b(?:reference|confirmation|booking|order|tracking) (?:number|code|id|#)|\bref\b")


def find(x: Exchange) -> Iterator[Firing]:
    """Yield reports and read-backs of one exchange."""
    if x.here.has("done") and not x.here.has("fails", "unavailable"):
        yield from _done(x)
    if x.here.has("confirms") and not x.here.has("fails"):
        yield from _confirms(x)


def _done(x: Exchange) -> Iterator[Firing]:
    own = (x.here, "done")
    yield x.fire("done", own)
    told = [
        one
        for one in x.here.sentences
        if not one.asking and (TIME.search(one.low) or DATE.search(one.low) or PRICE.search(one.low))
    ]
    if REFERENCE.search(x.here.low):
        yield x.fire("done_number", own)
    elif told:
        yield x.fire_at("done_detail", x.here, [x.here.acts["done"], told[0]], 0.9)
    elif not re.search(r"\d", x.here.low):
        yield x.fire("done_bare", own)
    if x.user is not None and x.user.has("accepts"):
        yield x.fire("done_yes", own, (x.user, "accepts"))
    if x.after is None:
        return
    for act in ("corrects", "complains"):
        if act in x.after.acts:
            yield x.fire("done_wrong", (x.after, act), own)
            return
    if x.after.has("asks") and not x.after.has("requests", "leaves") and not REFERENCE.search(x.after.low):
        yield x.fire("done_asked", (x.after, "asks"), own)


def _confirms(x: Exchange) -> Iterator[Firing]:
    own = (x.here, "confirms")
    if x.earlier is not None and x.earlier.has("confirms") and not x.earlier.has("fails"):
        yield x.fire("confirm_twice", own, (x.earlier, "confirms"))
    if x.after is None or x.after.has("accepts"):
        return
    if x.after.has("corrects") and concrete(x.after.low):
        yield x.fire("confirm_wrong", (x.after, "corrects"), own)
    elif x.after.has("changes"):
        yield x.fire("confirm_changed", (x.after, "changes"), own)
