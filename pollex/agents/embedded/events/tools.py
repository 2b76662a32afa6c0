"""Agents with tools: calls that fail, are repeated or take what nobody said, and results that the reply leaves."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from pollex.agents.embedded.events.language import is_negated_in_other_language
from pollex.agents.embedded.events.patterns import Exchange, PatternFiring, TextSpan
from pollex.agents.embedded.events.sentences import (
    Sentence,
    ToolAnswer,
    ToolCallMark,
    lowercase_outside_code,
    stem_word,
)
from pollex.agents.embedded.events.tool_results import (
    SURENESS_OF_BLANK_RESULT,
    SURENESS_OF_EMPTY_RESULT,
    measure_sureness_of_call_failure,
)
from pollex.text import NUMBER_WORDS

FAILURE_ACTS = (
    "fails",
    "none_found",
    "doesnt_know",
    "unavailable",
    "refuses",
    "says_no",
    "takes_back",
)
FAILURE_WORDS_REGEX = re.compile(
    r"\b(?:errors?|fail(?:ed|s|ure)?|timed? ?out|timeouts?|unable|can(?:not|'t)|unfortunately|went wrong|unavailable"
    r"|(?:could|did|does|was|were|is|are|has|have|will|would) ?(?:not|n't)|couldn't|didn't|doesn't|wasn't|won't|isn't"
    r"|no(?:ne|thing)|no (?:luck|results?|answer|response|access|connection|such|other|matching|fitting)"
    r"|not (?:able|possible|available|respond\w*|reach\w*|work\w*)"
    r"|reject\w*|den(?:y|ied)|declin\w*|invalid|expired"
    r"|try (?:it |this |that )?again|(?:a|an|some|the|technical) (?:problem|issue|trouble|difficult\w+|outage))\b"
)
"""Words by which a reply tells that something didn't work."""
VALUE_REGEX = re.compile(r"[A-Za-z]{4,}|\d[\d.,:]*\d|\d")
MIN_REPEATED_CALLS = 3


def find_tool_firings(x: Exchange) -> Iterator[PatternFiring]:
    """Yield what happened with the tools that an exchange has."""
    yield from _find_repeated_and_unsaid_calls(x)
    names = [called.call.name for called in x.here.calls]
    # one tool called many times before a reply, whatever its arguments
    for name in dict.fromkeys(names):
        if names.count(name) >= MIN_REPEATED_CALLS and x.here.sentences:
            yield x.fire_at(
                "tool_repeated",
                x.here,
                x.here.sentences[-1:],
                0.95,
                detail=f"`{name}`",
            )

    if x.here.tools and x.here.sentences:
        yield from _find_failed_and_ignored_results(x, names[-1] if names else "")


def _find_repeated_and_unsaid_calls(x: Exchange) -> Iterator[PatternFiring]:
    """Yield calls whose arguments are the same again, or hold what nobody said before."""
    # calls of the assistant's earlier move, by tool and arguments
    if x.earlier:
        earlier_calls = {}
        for called in x.earlier.calls:
            earlier_calls[called.call.name, called.call.normalized] = called
    else:
        earlier_calls = {}

    for called in x.here.calls:
        key = (called.call.name, called.call.normalized)
        mark = TextSpan(called.turn, called.start, called.end)
        # a call without arguments repeats nothing, and makes nothing up
        if not called.call.arguments:
            continue
        if (before := earlier_calls.get(key)) is not None:
            marks = (mark, TextSpan(before.turn, before.start, before.end))
            yield PatternFiring(
                "tool_again",
                0.95,
                mark,
                marks,
                x.index,
                f"`{called.call.name}`",
            )

        # later calls of this move are compared with it, too
        earlier_calls[key] = called
        if has_unsaid_argument(called, x):
            yield PatternFiring(
                "tool_unsaid",
                0.85,
                mark,
                (mark,),
                x.index,
                f"`{called.call.name}`",
            )


def _find_failed_and_ignored_results(x: Exchange, last: str) -> Iterator[PatternFiring]:
    """Yield results that failed, that the reply passes over, or that lack a number of the reply."""
    # a failure explains whatever else is wrong with the reply
    failed = find_unrepaired_failure(x)
    if failed:
        yield from _find_failed_call(x, *failed, last)
        return

    # the last result is what the reply rests on
    result = x.here.tools[-1]
    named = result.call or last
    if not named or measure_sureness_of_call_failure(result):
        return

    detail = f"`{named}`"
    # the beginning of a result is enough to show it
    mark = (TextSpan(result.turn, 0, min(len(result.text), 120)),)
    if x.here.turns[-1] > result.turn and ignores_tool_result(result.text, x.here.text):
        yield x.fire_at(
            "tool_ignored",
            x.here,
            x.here.sentences[-2:],
            0.8,
            mark,
            detail,
        )
        return

    # numbers said before, collected at the first sentence that has one
    numbers_before: set[str] | None = None
    for sentence in x.here.sentences:
        if sentence.turn > result.turn and (
            numbers := set(REPORTED_NUMBER_REGEX.findall(sentence.low))
        ):
            if numbers_before is None:
                numbers_before = collect_numbers_in_texts(
                    _iterate_texts_before_call(x, sentence.turn)
                )
            if any(not collect_numbers_in_texts([number]) & numbers_before for number in numbers):
                yield x.fire_at(
                    "tool_invented",
                    x.here,
                    [sentence],
                    0.8,
                    detail=detail,
                )
                return


def find_unrepaired_failure(x: Exchange) -> tuple[ToolAnswer, float] | None:
    """Return the surest failure that no later call made up for, and how sure it is; None where there is none.

    Calls that were made together don't make up for each other.
    """
    failed: tuple[ToolAnswer, float] | None = None
    for place, result in enumerate(x.here.tools):
        sure = measure_sureness_of_call_failure(result)
        if not sure or (failed and failed[1] >= sure):
            continue
        later = x.here.tools[place + 1 :]
        # results of calls that were made after this one had failed
        anew = []
        for later_result in later:
            if any(result.turn < call.turn < later_result.turn for call in x.here.calls):
                anew.append(later_result)

        if not any(measure_sureness_of_call_failure(later_result) == 0 for later_result in anew):
            failed = result, sure

    return failed


def _find_failed_call(
    x: Exchange,
    result: ToolAnswer,
    sure: float,
    last: str,
) -> Iterator[PatternFiring]:
    """Yield a call that failed, and whether the reply says so."""
    reply = []
    for sentence in x.here.sentences:
        if sentence.turn > result.turn:
            reply.append(sentence)

    tells_it = reports_failure(reply)
    if sure <= SURENESS_OF_EMPTY_RESULT and (
        tells_it or all(sentence.asking for sentence in reply)
    ):
        return  # nothing was there to be found, and nothing else is said
    # an answer without a word is a failure only where the reply makes something of it
    if sure <= SURENESS_OF_BLANK_RESULT and not claims_deed_or_number(x, reply):
        return

    named = result.call or last
    detail = f"`{named}`" if named else ""
    mark = (TextSpan(result.turn, 0, min(len(result.text), 120)),)
    shown = reply[-2:] or x.here.sentences[-1:]
    yield x.fire_at(
        "tool_fails",
        x.here,
        shown,
        max(sure, MIN_FAILURE_SURENESS),
        mark,
        detail,
    )
    if reply:
        name = "tool_fails_told" if tells_it else "tool_fails_hidden"
        yield x.fire_at(name, x.here, shown, max(sure, MIN_FAILURE_SURENESS), mark, detail)


MIN_FAILURE_SURENESS = 0.85
"""A reply that says something else makes a failure so sure."""


def reports_failure(reply: Sequence[Sentence]) -> bool:
    """Return whether a reply says that something failed; an apology beside a report of success doesn't."""
    hits: set[str] = set()
    for sentence in reply:
        hits.update(sentence.hits)
    if not hits.isdisjoint(FAILURE_ACTS) or ("apologizes" in hits and "done" not in hits):
        return True

    low = " ".join(sentence.low for sentence in reply)
    return bool(FAILURE_WORDS_REGEX.search(low)) or bool(is_negated_in_other_language(low))


def claims_deed_or_number(x: Exchange, reply: Sequence[Sentence]) -> bool:
    """Return whether a reply reports a deed, an offer or a number, which an empty result can't have given."""
    if any(act in sentence.hits for sentence in reply for act in ("done", "offers")):
        return True

    if reply:
        numbers_before = collect_numbers_in_texts(_iterate_texts_before_call(x, reply[0].turn))
    else:
        numbers_before = set()

    numbers = []
    for sentence in reply:
        numbers.extend(REPORTED_NUMBER_REGEX.findall(sentence.low))

    return any(not collect_numbers_in_texts([number]) & numbers_before for number in numbers)


REPORTED_NUMBER_REGEX = re.compile(r"\d[\d,]*(?:\.\d+)?(?<=\d\d)(?![\d.]*\))")
"""A number that says something: not the place in a list."""
_NUMBER_REGEX = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_LONG_WORD_REGEX = re.compile(r"[^\W\d_]{3,}")
_DATE_REGEX = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_DAY_WORDS_REGEX = re.compile(
    r"\b(?:to(?:day|night|morrow)|(?:mon|tues|wednes|thurs|fri|satur|sun)day|next|this|now|weekend)\b"
)
_UNTELLING_NUMBERS = frozenset({"0", "1"})
"""Numbers that arguments have though nobody says them."""


def collect_numbers_in_texts(texts: Iterable[str]) -> set[str]:
    """Return the numbers of some texts, also rounded, and of hours the afternoon's."""
    numbers = set[str]()
    for text in texts:
        for number in _NUMBER_REGEX.findall(text):
            value = float(number.replace(",", ""))
            # as written, cut and rounded: a reply may give any of these
            numbers |= {f"{value:.12g}", str(int(value)), str(round(value))}
            # three o'clock may be 15 in an argument
            if 1 <= value <= 12 and value.is_integer():
                numbers.add(str(int(value) + 12))

    return numbers


def has_unsaid_argument(called: ToolCallMark, x: Exchange) -> bool:
    """Return whether an argument has a value of which nothing was said before, by anybody or by a tool."""
    # arguments that are no JSON can't be compared
    try:
        values = list(_iterate_argument_texts(json.loads(called.call.arguments)))
    except (ValueError, RecursionError):
        return False

    if not values:
        return False

    # all that was said, returned or passed before the call
    texts = [lowercase_outside_code(text) for text in _iterate_texts_before_call(x, called.turn)]
    text_before = " ".join(texts)
    stems = {stem_word(word) for word in _LONG_WORD_REGEX.findall(text_before)}
    spelled_numbers = set()
    for n, word in enumerate(NUMBER_WORDS):
        if word in stems:
            spelled_numbers.add(str(n))

    numbers = collect_numbers_in_texts(texts) | spelled_numbers
    for value in values:
        # a date may stand for a spoken day, with which it shares no word
        if _DATE_REGEX.search(value) and _DAY_WORDS_REGEX.search(text_before):
            continue
        words = {stem_word(word) for word in _LONG_WORD_REGEX.findall(value.lower())}
        value_numbers = collect_numbers_in_texts([value])
        # the value has words or numbers of weight, and none of them occurs before
        if (
            (words or (value_numbers and not value_numbers & _UNTELLING_NUMBERS))
            and not words & stems
            and not value_numbers & numbers
        ):
            return True

    return False


def _iterate_argument_texts(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iterate_argument_texts(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _iterate_texts_before_call(x: Exchange, turn: int) -> Iterator[str]:
    # of the move itself, only what stands before the turn
    for move in x.moves[: x.index + 1]:
        if move is not x.here:
            yield move.text
        for result in move.tools:
            if result.turn < turn:
                yield result.text
        for called in move.calls:
            if called.turn < turn:
                yield called.call.arguments

    for sentence in x.here.sentences:
        if sentence.turn < turn:
            yield sentence.text


def ignores_tool_result(result: str, reply: str) -> bool:
    """Return whether a reply shares no value with a result that has at least three."""
    result_values = set(VALUE_REGEX.findall(lowercase_outside_code(result)))
    return len(result_values) >= 3 and not result_values & set(
        VALUE_REGEX.findall(lowercase_outside_code(reply))
    )
