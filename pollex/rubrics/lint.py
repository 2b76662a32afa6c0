"""Checks for rubrics that are hard to judge, with better words if possible.

A rubric that is an event, a signal or a phrase is exempt from marks on words: a detector decides
it, not its sentence.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Reason, Rubric
from pollex.rubrics.worth import is_rubric_nearly_constant

_QUOTED_PATTERN = re.compile(r"[\"“][^\"“”]*[\"”]")
_CONJUNCTION_PATTERN = re.compile(r"\b(?:and|or|but|as well as)\b", re.IGNORECASE)
_NOT_JOINING_PATTERN = re.compile(
    r"\b(?:between\b[^.]*?\band|more or less|and so on|or so)\b",
    re.IGNORECASE,
)
_TWO_CLAUSES_PATTERN = re.compile(
    r"(?P<who>The \w+) (?P<first>.+?),? (?:and|but|or) (?:(?P=who) )?(?P<second>\w+s\b.*)",
    re.IGNORECASE,
)
_ABSOLUTE_WORD_PATTERN = re.compile(
    r"\b(?:each|every|all|only|always|any|none|never|everything|nothing)\b",
    re.IGNORECASE,
)
_PRESUPPOSITION_PATTERN = re.compile(
    r"\b(?:too (?!many\b|much\b)\w+|again|still|anymore|any more|no longer|finally|despite|although|though|because"
    r"|fails? to|manages? to|stops? \w+ing|instead of|realizes? that|regrets? that|unnecessar\w+|wrongly|correctly)\b",
    re.IGNORECASE,
)
_BETTER_WORDINGS = (
    (
        re.compile(
            r"\b(?:only|always|finally|still|again|unnecessarily|wrongly|correctly) ", re.IGNORECASE
        ),
        "",
    ),
    (re.compile(r"\b(?:each|every) (?:of the )?", re.IGNORECASE), "the "),
    (re.compile(r"\ball (?:of )?(?:the )?", re.IGNORECASE), "the "),
    (re.compile(r"\bfails to\b", re.IGNORECASE), "does not"),
    (re.compile(r"\bfail to\b", re.IGNORECASE), "do not"),
    (re.compile(r"\bthe (its|their|his|her|your|these|those)\b", re.IGNORECASE), r"\1"),
)


@dataclass(frozen=True)
class LintMark:
    """One thing that makes a rubric hard to judge.

    Attributes:
        why: In words.
        better: Words in place of the rubric's, one for each that it should become; none where
            nothing better is known.
        other: Id of the rubric that it says the same as, or the reverse of.
    """

    id: str
    why: str
    better: tuple[str, ...] = ()
    other: str = ""


def find_lint_in_rubric_sentence(rubric: Rubric) -> list[LintMark]:
    """Return the marks on a rubric's sentence."""
    # a detector decides these, not their words
    if rubric.source.startswith(("event:", "rate:", "signal:", "phrase:")):
        return []

    # quoted words say nothing of the sentence around them
    text = _QUOTED_PATTERN.sub("“…”", rubric.text)
    marks = []
    # an “and” that joins no two statements is no fault
    if joined := _CONJUNCTION_PATTERN.search(_NOT_JOINING_PATTERN.sub("", text)):
        why = f"two parts, joined by “{joined.group()}”: a conversation may bear out one of them"
        marks.append(LintMark(rubric.id, why, split_sentence_into_two_statements(rubric.text)))

    if every := _ABSOLUTE_WORD_PATTERN.search(text):
        marks.append(
            LintMark(
                rubric.id,
                f"“{every.group()}”: one exception decides it",
                _suggest_better_wordings(rubric.text),
            )
        )

    if presumed := _PRESUPPOSITION_PATTERN.search(text):
        why = f"“{presumed.group()}” presupposes something that may not have come up"
        marks.append(LintMark(rubric.id, why, _suggest_better_wordings(rubric.text)))

    return marks


def split_sentence_into_two_statements(text: str) -> tuple[str, ...]:
    """Split a sentence with two verbs into two statements; none if unclear."""
    # both halves have the subject that stands once
    clauses = _TWO_CLAUSES_PATTERN.fullmatch(text.rstrip("."))
    if clauses:
        return tuple(
            f"{clauses['who']} {clauses[part].strip(' ,')}." for part in ("first", "second")
        )
    return ()


def _suggest_better_wordings(text: str) -> tuple[str, ...]:
    # each pattern takes the words that the one before it left
    better = text
    for pattern, instead in _BETTER_WORDINGS:
        better = pattern.sub(instead, better)

    # the first word may be gone: spaces and the capital are put right
    better = " ".join(better.split())
    better = better[:1].upper() + better[1:]
    return (better,) if better != text else ()


def find_lint_in_rubric_answers(
    rubric: ChosenRubric, reasons: Mapping[str, Reason]
) -> list[LintMark]:
    """Return the marks on what a rubric's answers were and what it rests on.

    Args:
        reasons: Of the set, by id.
    """
    marks = []
    seldom = rubric.source.startswith(("event:", "rate:"))  # what happens seldom can be judged
    if not seldom and (alone := rubric.alone) is not None and is_rubric_nearly_constant(alone):
        share = f"{alone.share.value:.0%} of {alone.share.n} conversations"
        marks.append(
            LintMark(
                rubric.id,
                f"nearly always the same answer: “{alone.commonest}” in {share}",
            )
        )

    # conversations that its reasons are of
    behind = set()
    for id_ in rubric.reason_ids:
        if id_ in reasons:
            behind.add(reasons[id_].conversation_id)

    if len(behind) == 1:
        marks.append(LintMark(rubric.id, "rests on one conversation"))

    return marks


def find_lint_in_rubric_pairs(
    rubrics: Sequence[Rubric], alike: Sequence[tuple[int, int]]
) -> list[LintMark]:
    """Mark pairs of rubrics with the same meaning, or with an opposite one.

    Args:
        alike: Places of rubrics whose texts are near.
    """
    marks = []
    for first, second in ((rubrics[i], rubrics[j]) for i, j in alike):
        if first.polarity == second.polarity:
            kind = "near twin"
        else:
            kind = "mirror"

        marks.append(
            LintMark(
                second.id,
                f"{kind} of “{first.text}”: keep the better one",
                other=first.id,
            )
        )

    return marks
