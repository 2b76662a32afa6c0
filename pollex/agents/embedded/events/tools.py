"""Agents with tools: calls that fail, are repeated or take what nobody said, and results that the reply leaves."""

import json
import re
from collections.abc import Iterable, Iterator

from pollex.agents.embedded.events.patterns import Chars, Exchange, Firing
from pollex.agents.embedded.events.sentences import Called, lower_case, stem

ERROR = re.compile(
    r"\b(?:error|exception|failed|failure|timed? ?out|traceback|not found|forbidden|unauthorized|bad "
    r"request|service unavailable)\b|\b(?:status|code)\W{1,4}[45]\d\d\b"
)
FINE = re.compile(r"\b(?:no errors?|0 errors|errors?\W{1,4}(?:null|none|0|\[\]|false)|without errors?)\b")
TOLD = ("fails", "apologizes", "none_found", "doesnt_know", "unavailable", "refuses", "says_no")
VALUE = re.compile(r"[A-Za-z]{4,}|\d[\d.,:]*\d|\d")
REPEATED = 3


def failing(result: str) -> bool:
    low = result[:2000].lower()
    return bool(ERROR.search(low)) and not FINE.search(low)


def tools(x: Exchange) -> Iterator[Firing]:
    """Yield tool calls of one exchange."""
    if not x.here.tools and not x.here.calls:
        return
    yield from _calls(x)
    names = [called.call.name for called in x.here.calls]
    for name in dict.fromkeys(names):
        if names.count(name) >= REPEATED and x.here.sentences:
            yield x.fire_at("tool_repeated", x.here, x.here.sentences[-1:], 0.95, detail=f"`{name}`")
    if x.here.tools and x.here.sentences and names:
        yield from _results(x, names[-1])


def _calls(x: Exchange) -> Iterator[Firing]:
    """Yield calls whose arguments are the same again, or hold what nobody said before."""
    known = {(one.call.name, one.call.normalized): one for one in x.earlier.calls} if x.earlier else {}
    for called in x.here.calls:
        key, mark = (called.call.name, called.call.normalized), Chars(called.turn, called.start, called.end)
        if not called.call.arguments:
            continue
        if (before := known.get(key)) is not None:
            marks = (mark, Chars(before.turn, before.start, before.end))
            yield Firing("tool_again", 0.95, mark, marks, x.index, f"`{called.call.name}`")
        known[key] = called
        if is_unsaid(called, x):
            yield Firing("tool_unsaid", 0.85, mark, (mark,), x.index, f"`{called.call.name}`")


def _results(x: Exchange, last: str) -> Iterator[Firing]:
    """Yield results that failed, that the reply passes over, or that lack a number of the reply."""
    result = next((one for one in reversed(x.here.tools) if one.failed or failing(one.text)), x.here.tools[-1])
    detail = f"`{result.call or last}`"
    mark = (Chars(result.turn, 0, min(len(result.text), 120)),)
    if result.failed or failing(result.text):
        if result is x.here.tools[-1]:
            name = "tool_fails_told" if x.here.has(*TOLD) or ERROR.search(x.here.low) else "tool_fails_hidden"
            yield x.fire_at(name, x.here, x.here.sentences[-2:], 0.85, mark, detail)
        return
    if x.here.turns[-1] > result.turn and ignored(result.text, x.here.text):
        yield x.fire_at("tool_ignored", x.here, x.here.sentences[-2:], 0.8, mark, detail)
        return
    given: set[str] | None = None
    for sentence in x.here.sentences:
        if sentence.turn > result.turn and (numbers := set(TOLD_NUMBER.findall(sentence.low))):
            given = numbers_in(_before(x, sentence.turn)) if given is None else given
            if any(not numbers_in([number]) & given for number in numbers):
                yield x.fire_at("tool_invented", x.here, [sentence], 0.8, detail=detail)
                return


TOLD_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?<=\d\d)(?![\d.]*\))")
"""A number that says something: not the place in a list."""
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_WORDS = re.compile(r"[^\W\d_]{3,}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_SPOKEN_DAY = re.compile(
    r"\b(?:to(?:day|night|morrow)|(?:mon|tues|wednes|thurs|fri|satur|sun)day|next|this|now|weekend)\b"
)
_SPELLED = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_PLAIN = frozenset({"0", "1"})
"""Numbers that arguments have though nobody says them."""


def numbers_in(texts: Iterable[str]) -> set[str]:
    """Return the numbers of some texts, also rounded, and of hours the afternoon's."""
    found = set[str]()
    for text in texts:
        for number in _NUMBER.findall(text):
            value = float(number.replace(",", ""))
            found |= {f"{value:.12g}", str(int(value)), str(round(value))}
            if 1 <= value <= 12 and value.is_integer():
                found.add(str(int(value) + 12))
    return found


def is_unsaid(called: Called, x: Exchange) -> bool:
    """Return whether an argument has a value of which nothing was said before, by anybody or by a tool."""
    try:
        values = list(_values(json.loads(called.call.arguments)))
    except (ValueError, RecursionError):
        return False
    if not values:
        return False
    texts = [lower_case(text) for text in _before(x, called.turn)]
    said = " ".join(texts)
    stems = {stem(word) for word in _WORDS.findall(said)}
    numbers = numbers_in(texts) | {str(n) for n, word in enumerate(_SPELLED) if word in stems}
    for value in values:
        if _DATE.search(value) and _SPOKEN_DAY.search(said):
            continue
        words, own = {stem(word) for word in _WORDS.findall(value.lower())}, numbers_in([value])
        if (words or (own and not own & _PLAIN)) and not words & stems and not own & numbers:
            return True
    return False


def _values(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _values(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _before(x: Exchange, turn: int) -> Iterator[str]:
    for move in x.moves[: x.index + 1]:
        if move is not x.here:
            yield move.text
        yield from (one.text for one in move.tools if one.turn < turn)
        yield from (one.call.arguments for one in move.calls if one.turn < turn)
    yield from (sentence.text for sentence in x.here.sentences if sentence.turn < turn)


def ignored(result: str, reply: str) -> bool:
    """Return whether a reply shares no value with a result that has at least three."""
    given = set(VALUE.findall(lower_case(result)))
    return len(given) >= 3 and not given & set(VALUE.findall(lower_case(reply)))
