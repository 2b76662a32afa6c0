"""Questions of the user and of the assistant: whether they are answered, and were needed."""

import re
from collections.abc import Iterator

from pollex.agents.embedded.events.patterns.pattern import Chars, Exchange, Firing
from pollex.agents.embedded.events.patterns.searches import feature_question
from pollex.agents.embedded.events.sentences import Move, Sentence
from pollex.agents.embedded.events.values import ASKED, wanted

EMPTY = frozenset({"anything_else", "says_bye", "proposes", "asks_back"})
QUESTION = re.compile(
    r"^(?:and|but|so|ok|okay|great|also|well|then)?,? ?(?:what|which|where|when|how|who|does|do (?!you)|is|are|has|have"
    r"|can (?!you|i (?:book|have|get|reserve)))\b.*\?"
)
YES = re.compile(r"^(?:yes|yeah|yep|yup|sure|indeed|of course|absolutely|definitely|certainly)\b")
REPLY = re.compile(
    r"^(?:yes|yeah|yep|no|nope|not|none|there (?:is|are)|it(?:'s| is)|they|unfortunately|sure|you can)\b"
    r"|n't\b|\b(?:does|unable|information|info)\b"
)
LONGEST_FORMULA = 7
"""Content words of a formula such as "Would you like me to book a room for you?", at most."""
BOUND = re.compile(r"\b(?:after|before|by|around|about|until|till|between|from|past|or|either)\s+(?:\w+\s+)?$")
"""What stands before a value that leaves others open: who asks for the exact one asks for something else."""
WAY = re.compile(
    r"\b(?:check(?:ing)? in|return|until|till|up to|out|arriv|leav|depart|start|end|from|back)(?=ing|e\b|ed|s\b|\b)"
)
"""Which end of a trip or stay a time or day is of."""
ALREADY = re.compile(r"\b(?:already|just|i (?:said|told|mentioned|asked|wrote)|as i)\b")


def find(x: Exchange) -> Iterator[Firing]:
    """Yield firings for questions of both parties in one exchange."""
    if x.user is not None and "asks" in x.user.acts and not x.here.has("takes_back"):
        yield from _answers(x, x.user)
    if x.here.has("asks_back"):
        yield from _asks(x)


def _answers(x: Exchange, user: Move) -> Iterator[Firing]:
    question, marks = (user, "asks"), (Chars.of(user.acts["asks"]),)
    feature = feature_question(user)
    if x.here.has("doesnt_know", "refers") and not x.here.has("offers", "done"):
        yield x.fire("answer_unknown", (x.here, "doesnt_know" if x.here.has("doesnt_know") else "refers"), question)
    elif feature and x.here.has("says_no"):
        yield from _no(x, question)
    elif feature and x.here.sentences and YES.search(x.here.sentences[0].low):
        yield x.fire_at("answer_yes", x.here, x.here.sentences[:1], 0.85)
    elif only(x.here.sentences, "asks_back") and not user.has("requests", "accepts", "changes", "asks_other"):
        yield x.fire("question_back", (x.here, "asks_back"), question)
    elif (
        x.here.sentences
        and not any(answers(one, user.acts["asks"]) for one in x.here.sentences)
        and QUESTION.search(user.acts["asks"].low)
        and not user.has("requests", "changes", "asks_other", "leaves", "accepts")
    ):
        yield x.fire_at("question_passed", x.here, x.here.sentences, 0.85, marks)
    asked = wanted(" ".join(one.low for one in user.sentences if "asks" in one.hits))
    missing = [name for name, value in asked if not value.search(x.here.low) and not mentions(name, x.here.low)]
    if missing and user.has("accepts") and len(missing) == len(asked) and x.here.has("done", "fails", "unavailable"):
        yield x.fire_at("question_lost", x.here, x.here.sentences, 0.9, marks, named(missing[0]))
    elif len(asked) == 2 and len(missing) == 1 and not x.here.has("doesnt_know", "refers", "says_no", "asks_back"):
        yield x.fire_at("answer_half", x.here, x.here.sentences, 0.85, marks, named(missing[0]))


def answers(sentence: Sentence, asked: Sentence) -> bool:
    """Return whether a sentence of a reply may answer a question: whatever is no polite formula, or speaks of it."""
    if not EMPTY & sentence.hits.keys() or "fails" in sentence.hits or REPLY.search(sentence.low):
        return True
    return len(sentence.content) > LONGEST_FORMULA or bool(sentence.content & asked.content)


def same_way(asked: str, given: str) -> bool:
    """Return whether a question speaks of the same end of a trip or stay as a value that was given."""
    wanted, told = (set(WAY.findall(low)) for low in (asked, given))
    return wanted == told if wanted else True


def named(slot: str) -> str:
    return f"{'an' if slot[0] in 'aeiou' else 'the'} {slot}"


def mentions(slot: str, low: str) -> bool:
    """Return whether a reply names what was asked for, even if its value isn't recognized."""
    return slot.split(maxsplit=1)[0] in low


def _no(x: Exchange, question: tuple[Move, str]) -> Iterator[Firing]:
    own = (x.here, "says_no")
    if x.here.has("offers_other", "offers", "refers") or " but " in x.here.low or "however" in x.here.low:
        yield x.fire("answer_no_but", own, question)
    elif x.here.has("proposes"):
        yield x.fire("answer_no_pushes", own, (x.here, "proposes"), question)
    else:
        yield x.fire("answer_no", own, question)


def _asks(x: Exchange) -> Iterator[Firing]:
    asking = [one for one in x.here.sentences if "asks_back" in one.hits]
    if x.user is not None:
        for name, question, value in ASKED:
            for one in asking:
                if (
                    question.search(one.low)
                    and (given := value.search(x.user.low))
                    and not BOUND.search(x.user.low[: given.start()])
                    and same_way(one.low, x.user.low)
                    and " or " not in x.user.low[given.end() : given.end() + 5]
                    and not x.here.has("fails", "unavailable", "offers")
                ):
                    marks = span_in_move(x.user, given), Chars.of(one)
                    yield x.fire_at("ask_given", x.here, [one], 0.85, marks=marks, detail=name)
    if x.earlier is not None and (twin := same_question(asking, x.earlier)):
        yield x.fire_at("ask_again", x.here, [twin], 0.9)
    if len(asking) >= 2:
        yield x.fire_at("ask_many", x.here, asking, 0.9)
    if x.after is not None and "complains" in x.after.acts and ALREADY.search(x.after.acts["complains"].low):
        yield x.fire("ask_complaint", (x.after, "complains"), (x.here, "asks_back"))


def same_question(asking: list[Sentence], earlier: Move) -> Sentence | None:
    """Return a question that the assistant already asked in nearly the same words."""
    for one in asking:
        for old in earlier.sentences:
            shared = len(one.content & old.content)
            if "asks_back" in old.hits and shared >= 2 and shared >= 0.75 * len(one.content | old.content):
                return one
    return None


def only(sentences: list[Sentence], act: str) -> bool:
    """Return whether all sentences do one act."""
    return bool(sentences) and all(act in one.hits for one in sentences)


def span_in_move(move: Move, found: re.Match[str]) -> Chars:
    """Map a match in a move's joined sentences back to its turns."""
    offset = 0
    for one in move.sentences:
        if found.start() < offset + len(one.low) + 1:
            start = one.start + found.start() - offset
            return Chars(one.turn, start, start + len(found.group()))
        offset += len(one.low) + 1
    return Chars.of(move.sentences[-1])
