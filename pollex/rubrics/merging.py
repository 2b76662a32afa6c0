"""Rubrics that say the same, made one: those of equal text before anybody is asked, others as a deduplicator finds."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pollex.rubrics.rubric import MAX_QUOTES_PER_RUBRIC, Polarity, Quote, Rubric

RubricT = TypeVar("RubricT", bound=Rubric)


def make_rubric_equality_key(rubric: Rubric) -> tuple[Polarity, str]:
    """Return what two rubrics share whose texts are equal, on one side: case, spaces and a last stop don't count."""
    return rubric.polarity, " ".join(rubric.text.split()).rstrip(".").casefold()


def sort_rubrics_by_reason_count(rubrics: Iterable[RubricT]) -> list[RubricT]:
    """Sort rubrics by number of reasons, most first."""
    return sorted(rubrics, key=lambda rubric: (-len(rubric.reason_ids), rubric.id))


def merge_rubrics(ranked: Sequence[RubricT]) -> RubricT:
    """Give the first rubric the reasons of all, and quotes up to the maximum."""
    # each once, in the order of the ranking
    reason_ids: list[str] = []
    for rubric in ranked:
        reason_ids.extend(rubric.reason_ids)
    reasons = dict.fromkeys(reason_ids)
    all_quotes: list[Quote] = []
    for rubric in ranked:
        all_quotes.extend(rubric.quotes)
    quotes = dict.fromkeys(all_quotes)
    return ranked[0].model_copy(
        update={"reason_ids": tuple(reasons), "quotes": tuple(quotes)[:MAX_QUOTES_PER_RUBRIC]}
    )


def merge_equal_rubrics(rubrics: Sequence[RubricT]) -> tuple[tuple[RubricT, ...], dict[str, str]]:
    """Merge rubrics of equal text on one side, whoever wrote them; the best supported one stays.

    Returns:
        Those that stay, in their order, and by id of each that went the id of the one that it went
        into.
    """
    groups: dict[tuple[Polarity, str], list[RubricT]] = {}
    for rubric in rubrics:
        groups.setdefault(make_rubric_equality_key(rubric), []).append(rubric)

    # the best supported one stays, at its own place and under its id; drafts have no id yet
    stays: dict[int, RubricT] = {}
    merged: dict[str, str] = {}
    place_of = {id(rubric): place for place, rubric in reversed(list(enumerate(rubrics)))}
    for equal in groups.values():
        first, *others = sort_rubrics_by_reason_count(equal)
        stays[place_of[id(first)]] = merge_rubrics([first, *others]) if others else first
        # a rubric that somebody wrote twice in the same words has one id
        merged |= {rubric.id: first.id for rubric in others}

    return tuple(stays[place] for place in sorted(stays)), merged
