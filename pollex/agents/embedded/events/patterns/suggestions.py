"""Suggestions and proposals of the assistant, and the user's reaction."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pollex.agents.embedded.events.patterns.pattern import Exchange, Firing, Pattern

PATTERNS = (
    Pattern(
        "offer_refused",
        "both",
        -1,
        "The assistant suggests {thing}, and the user turns it down.",
        ("offers", "rejects"),
    ),
    Pattern(
        "offer_other",
        "both",
        -1,
        "The assistant suggests {thing}, and the user asks for a different one.",
        ("offers", "asks_other"),
    ),
    Pattern(
        "offer_known",
        "both",
        -1,
        "The assistant suggests {thing} that the user already knows.",
        ("offers", "knows_already"),
    ),
    Pattern(
        "offer_against",
        "both",
        -1,
        "The assistant suggests {thing} that goes against what the user asked for, and the user says so.",
        ("offers", "complains"),
        proven=False,
    ),
    Pattern(
        "offer_next_taken",
        "both",
        +1,
        "The user wants a different {bare}, and takes the next one that the assistant suggests.",
        ("asks_other", "offers", "accepts"),
    ),
    Pattern(
        "offer_no_next",
        "assistant",
        -1,
        "The user wants a different {bare}, and the assistant has no other.",
        ("asks_other", "none_found", "fails"),
        proven=False,
    ),
    Pattern(
        "offer_first",
        "assistant",
        +1,
        "The assistant answers the first request for {thing} with a concrete suggestion, without asking back.",
        ("requests", "offers"),
    ),
    Pattern(
        "ask_first",
        "assistant",
        0,
        "The assistant answers the first request for {thing} with questions alone.",
        ("requests", "asks_back"),
        proven=False,
    ),
    Pattern(
        "ask_indifferent",
        "both",
        -1,
        "The assistant asks for a preference on {thing}, and the user has none.",
        ("asks_back", "doesnt_mind"),
        proven=False,
    ),
    Pattern(
        "picks_for_user",
        "both",
        +1,
        "The user has no preference on {thing}, and the assistant picks one.",
        ("doesnt_mind", "offers"),
        proven=False,
    ),
    Pattern(
        "asks_on",
        "assistant",
        -1,
        "The user has no preference on {thing}, and the assistant keeps asking in place of picking one.",
        ("doesnt_mind", "asks_back"),
    ),
    Pattern(
        "pushed",
        "both",
        -1,
        "The assistant proposes to {deed}, and the user doesn't want that.",
        ("proposes", "rejects"),
    ),
    Pattern(
        "pushed_again",
        "assistant",
        -1,
        "The assistant proposes to {deed} again right after the user said no.",
        ("proposes", "rejects"),
        proven=False,
    ),
    Pattern(
        "pushed_past_question",
        "both",
        -1,
        "The assistant proposes to {deed}, but the user still has questions.",
        ("proposes", "asks"),
        proven=False,
    ),
    Pattern(
        "many_options",
        "assistant",
        0,
        "The assistant says how many {things} there are and names none of them.",
        ("offers",),
        proven=False,
    ),
    Pattern(
        "proposal_taken",
        "both",
        +1,
        "The assistant proposes to {deed}, and the user agrees.",
        ("proposes", "accepts"),
        rate=True,
    ),
    Pattern(
        "offer_taken",
        "both",
        +1,
        "The assistant suggests {thing}, and the user takes it.",
        ("offers", "accepts"),
        rate=True,
    ),
)

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
