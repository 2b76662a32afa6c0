"""Advice and proposed changes: whether they help, and use what the user showed."""

import re
from collections.abc import Iterator

from pollex.agents.embedded.events.patterns.pattern import Chars, Exchange, Firing
from pollex.agents.embedded.events.sentences import Move, Sentence

BACK = {
    "still_fails": "fix_fails",
    "new_trouble": "fix_new_trouble",
    "rules_out": "fix_ruled_out",
    "knows_already": "fix_known",
}
"""Acts by which a user comes back from advice with trouble, and what each is."""

LISTED = re.compile(r"(?m)^\s*(?:\d+[.)]|[-*•])\s+\S")
NAME = re.compile(r"`([^`\n]{3,80})`|\b([A-Za-z]+(?:[._][A-Za-z]\w+)+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+)\b")
AGREES = re.compile(
    r"^(?:\W*(?:yes|yep|ok|okay|k|oh|ooh|ah|aha|nice|great|perfect|cool|that makes sense|makes sense"
    r"|understood|good|thanks|thank you|excellent|lovely|right)\b)"
)
TROUBLE = re.compile(
    r"\b(?:still|error|exception|fails?|failed|throws?|crash\w*|but|same|wrong|doesn't|didn't|not|no)\b"
)


def names(text: str) -> frozenset[str]:
    """Collect names of code: inline code and words with an inner capital, dot or underscore."""
    return frozenset(a or b for a, b in NAME.findall(text))


def advises(move: Move) -> bool:
    """Return whether a move gives advice: code, instructions, or an explanation with names of code."""
    return move.code or move.has("instructs") or (move.has("explains") and bool(move.names))


def find(x: Exchange) -> Iterator[Firing]:
    """Advice of one exchange."""
    if general_list(x):
        yield x.fire_at("general_list", x.here, advice(x.here), 0.85)
    if x.here.has("offers", "done", "confirms", "anything_else") and not x.here.code:
        return
    if x.here.has("asks_back") and brings_evidence(x):
        yield x.fire("asks_evidence", (x.here, "asks_back"))
    if advises(x.here):
        yield from _first_reply(x)
        yield from _helped(x)


def brings_evidence(x: Exchange) -> bool:
    """Return whether the user answers with code or new names, and without objection."""
    if x.user is None or x.after is None or x.after.has("complains", *BACK):
        return False
    return x.after.code or bool(names(x.after.text) - names(x.user.text))


def general_list(x: Exchange) -> bool:
    """Return whether a reply lists three or more things without using the user's names."""
    if x.user is None or not x.here.sentences or len(LISTED.findall(x.here.text)) < 3:
        return False
    return bool(names(x.user.text)) and not shared(x.user, x.here)


def _first_reply(x: Exchange) -> Iterator[Firing]:
    if x.user is None:
        return
    own = shared(x.user, x.here)
    if own and x.opening and x.here.code:
        name, sentence = own
        at = sentence.text.find(name)
        yield x.fire_at(
            "own_line",
            x.here,
            [sentence],
            0.85,
            (Chars(sentence.turn, sentence.start + at, sentence.start + at + len(name)),),
        )
    if x.here.has("explains") and x.here.code:
        yield x.fire("cause_shown", (x.here, "explains"))


def shared(user: Move, here: Move) -> tuple[str, Sentence] | None:
    """Return a name of the user's own code that the reply uses, with its sentence."""
    given = names(user.text)
    for sentence in here.sentences:
        found = sorted(name for name in names(sentence.text) if name in given or (len(name) > 5 and name in user.text))
        if found:
            return max(found, key=len), sentence
    return None


def advice(move: Move) -> list[Sentence]:
    """Return the sentences that give advice; the first sentence if none is marked."""
    return [one for one in move.sentences if "instructs" in one.hits][:2] or move.sentences[:1]


def _helped(x: Exchange) -> Iterator[Firing]:
    after = x.after
    if after is None:
        return
    yield from _comes_back(x, after)
    if after.has("solves_alone"):
        yield x.fire("solved_alone", (after, "solves_alone"))
    elif after.has(*BACK):
        return
    elif after.has("works_now"):
        yield x.fire("fix_works", (after, "works_now"))
    elif after.has("asks") and agrees(after.sentences[0].low):
        yield x.fire("next_problem", (after, "asks"), sure=0.8)


def _comes_back(x: Exchange, after: Move) -> Iterator[Firing]:
    back = next((act for act in BACK if act in after.acts), "")
    if back:
        yield x.fire("fix_back", (after, back))
        yield x.fire(BACK[back], (after, back))
    if "still_fails" in after.acts and x.user is not None and x.user.has("still_fails"):
        yield x.fire("fix_fails_again", (after, "still_fails"), (x.user, "still_fails"))


def agrees(low: str) -> bool:
    """Return whether a sentence accepts what was said and reports no trouble."""
    return bool(AGREES.search(low)) and not TROUBLE.search(low)
