"""Suggestions and proposals of the assistant, and the user's reaction."""

import re
from collections.abc import Iterator

from pollex.agents.embedded.events.patterns.pattern import Exchange, Firing

COUNT = re.compile(r"\b(?:\d+|several|many|multiple|a lot of|lots of|quite a few|plenty of|a number of|various)\b")
NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][\w']+|[A-Z]{2}\d{2,}")


def find(x: Exchange) -> Iterator[Firing]:
    """Yield suggestions and proposals of one exchange."""
    if x.here.has("offers") and not x.here.has("fails", "none_found", "unavailable", "done"):
        yield from _offer(x)
    if x.here.has("asks_back"):
        yield from _asks(x)
    if x.here.has("proposes") and not x.here.has("fails", "offers_other"):
        yield from _proposes(x)
    if x.user is not None and "asks_other" in x.user.acts and x.here.has("none_found", "fails"):
        yield x.fire(
            "offer_no_next", (x.here, "none_found" if x.here.has("none_found") else "fails"), (x.user, "asks_other")
        )


def _offer(x: Exchange) -> Iterator[Firing]:
    own = (x.here, "offers")
    counted = COUNT.search(x.here.acts["offers"].low) and not NAME.search(x.here.text)
    if counted and x.here.has("asks_back", "offers_other"):
        yield x.fire("many_options", own)
        return
    concrete = next((one for one in x.here.sentences if "offers" in one.hits and NAME.search(one.text)), None)
    if x.opening and concrete and x.user is not None and x.user.has("requests") and not x.here.has("asks_back"):
        yield x.fire_at("offer_first", x.here, [concrete], 0.85)
    if x.user is not None and "doesnt_mind" in x.user.acts:
        yield x.fire("picks_for_user", own, (x.user, "doesnt_mind"))
    if x.after is None:
        return
    for act, name in (("knows_already", "offer_known"), ("complains", "offer_against"), ("asks_other", "offer_other")):
        if act in x.after.acts:
            yield x.fire(name, own, (x.after, act))
            return
    if x.after.has("rejects") and not x.here.has("proposes", "confirms", "asks_back", "anything_else", "offers_other"):
        yield x.fire("offer_refused", own, (x.after, "rejects"))
    if x.after.has("accepts") and not x.here.has("proposes", "anything_else"):
        yield x.fire("offer_taken", own, (x.after, "accepts"))
        if x.user is not None and "asks_other" in x.user.acts:
            yield x.fire("offer_next_taken", own, (x.user, "asks_other"), (x.after, "accepts"))


def _asks(x: Exchange) -> Iterator[Firing]:
    own = (x.here, "asks_back")
    if x.opening and x.user is not None and x.user.has("requests") and not x.here.has("offers", "proposes"):
        yield x.fire("ask_first", own, (x.user, "requests"))
    if x.after is not None and "doesnt_mind" in x.after.acts:
        yield x.fire("ask_indifferent", own, (x.after, "doesnt_mind"))
    if x.user is not None and "doesnt_mind" in x.user.acts and not x.here.has("offers", "proposes", "offers_other"):
        yield x.fire("asks_on", own, (x.user, "doesnt_mind"))


def _proposes(x: Exchange) -> Iterator[Firing]:
    own = (x.here, "proposes")
    again = x.earlier is not None and x.earlier.has("proposes") and x.user is not None and x.user.has("rejects")
    if again and x.earlier is not None and x.user is not None and not x.user.has("accepts", "requests"):
        verbs = [one.acts["proposes"].hits["proposes"].detail for one in (x.here, x.earlier)]
        if verbs[0] == verbs[1]:
            yield x.fire("pushed_again", own, (x.user, "rejects"))
    if x.after is None:
        return
    if x.after.has("rejects") and not x.after.has("accepts"):
        yield x.fire("pushed", own, (x.after, "rejects"))
    elif x.after.has("accepts"):
        yield x.fire("proposal_taken", own, (x.after, "accepts"))
    elif x.after.has("asks") and not x.after.has("requests"):
        yield x.fire("pushed_past_question", own, (x.after, "asks"))
