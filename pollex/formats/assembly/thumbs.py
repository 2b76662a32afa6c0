"""Choice of the score that is the thumb, and the label of several thumbs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pollex.conversations.conversation import BOUNDS, Label
from pollex.conversations.logs import ScoreKind
from pollex.errors import BadInput, WrongUse, spelled
from pollex.formats.assembly.pieces import PAIR, Score
from pollex.formats.fields import ReadOptions
from pollex.formats.labels import Verdicts
from pollex.text import count

NAMES = frozenset(
    [
        "userfeedback",
        "feedback",
        "userscore",
        "userrating",
        "thumb",
        "thumbs",
        "thumbsup",
        "thumbsupdown",
        "userthumb",
        "userthumbs",
        "vote",
        "uservote",
        "like",
        "likes",
        "reaction",
        "satisfaction",
        "usersatisfaction",
        "helpful",
        "userhelpful",
        "upvote",
        "likedislike",
        "userreaction",
        "humanfeedback",
        "feedbackscore",
        "chatfeedback",
        "messagefeedback",
        "responsefeedback",
        "thumbsfeedback",
        "customersatisfaction",
        "rating",
        "csat",
    ]
)
"""Names of scores that are a user's thumb, folded to letters."""
PEOPLE = frozenset(["api", "annotation", "human", "app", "ui", "sdk", "external", "user", "presigned", "portal"])
OURS = "pollex"
"""How the names of scores begin that pollex wrote back; they are never thumbs."""


STARS = Verdicts.of(**BOUNDS)
"""What ratings of help desks from 1 to 5 mean, where the user gives no other bounds."""


class Hung(NamedTuple):
    """A thumb where it belongs.

    Attributes:
        place: The index of the turn that it was given for; None for one of the whole conversation.
    """

    place: int | None
    label: Label
    score: Score


def folded(name: str) -> str:
    """Normalize a name for comparison: without case, digits and punctuation."""
    return re.sub(r"[^a-z]", "", name.casefold())


def is_persons(score: Score) -> bool:
    """Return whether a person gave a score, or its source is unknown."""
    return not score.source or score.source == PAIR or folded(score.source) in PEOPLE


def chosen(scores: Sequence[Score], options: ReadOptions) -> tuple[list[Score], list[ScoreKind]]:
    """Return the scores that are thumbs, and counts of the other scores.

    Raises:
        WrongUse: Several names may be the thumb's, or a name's values are ratings.
    """
    try:
        taken = _taken(scores, options)
    except WrongUse:
        if options.labels_needed:
            raise
        taken = []
    kept = set(map(id, taken))
    kinds = Counter((score.name, score.source, id(score) in kept) for score in scores)
    return taken, [ScoreKind(name, source, n, used) for (name, source, used), n in sorted(kinds.items())]


def _taken(scores: Sequence[Score], options: ReadOptions) -> list[Score]:
    pairs = [score for score in scores if score.source == PAIR]
    if pairs and not options.pairs:
        what = "the files have pairs of a chosen and a rejected answer, not thumbs"
        raise WrongUse(what, remedy="to take chosen for a thumb up and rejected for one down", option={"pairs": True})
    ours = [score for score in scores if not folded(score.name).startswith(OURS)]
    taken = _named(ours, options.label_field) if options.label_field else _usual(ours)
    if any(not score.summary for score in taken):
        taken = [score for score in taken if not score.summary]
    _require_thumbs(taken, options)
    return taken


def _named(scores: Sequence[Score], name: str) -> list[Score]:
    """Return the scores with the name that the user gave: people's if there are any."""
    exact = [score for score in scores if name in (score.name, score.source)]
    same = exact or [score for score in scores if score.name and folded(score.name) == folded(name)]
    return [score for score in same if is_persons(score)] or same


def _usual(scores: Sequence[Score]) -> list[Score]:
    people = [score for score in scores if is_persons(score)]
    named = [score for score in people if folded(score.name) in NAMES]
    names = Counter(folded(score.name) for score in named)
    if len(names) > 1:
        shown = Counter(score.name for score in named)
        listed = ", ".join(f"{name!r} ({n})" for name, n in shown.most_common())
        most = shown.most_common(1)[0][0]
        what = f"several scores may be the label: {listed}"
        raise WrongUse(what, remedy="say which", option={"label_field": most})
    return [score for score in people if not score.name] + named


def _require_thumbs(scores: Sequence[Score], options: ReadOptions) -> None:
    """Refuse ratings from 1 to 5 without bounds, where 1 would be a thumb up."""
    if Verdicts.of(options.positive, options.negative).numbers:
        return
    stars = [score for score in scores if not score.rating and abs(_star(score.value)) > 1]
    if stars:
        what = f"the values of {stars[0].name or 'the thumb'!r} are ratings, for example {_star(stars[0].value):g}"
        raise WrongUse(what, remedy="give bounds", option=BOUNDS)


def _star(value: object) -> float:
    """Parse a value as a number; 0 for words, and for what is no finite number."""
    try:
        found = float(value) if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return found if math.isfinite(found) else 0.0


def label_of(score: Score, verdicts: Verdicts) -> Label:
    """Return the label of a score; stars without other bounds by `STARS`.

    Raises:
        BadInput: The value isn't a thumb's.
    """
    if score.rating and not verdicts.numbers:
        return replace(STARS, said=verdicts.said).label(score.value)
    return verdicts.label(score.value)


def latest(scores: Iterable[Score]) -> list[Score]:
    """Keep each person's newest score of one name on one target, and the newest row of each score.

    Where no person is named, the newest of one source counts, since a trace or a message has one user; scores without
    a time and without an id of their own are all kept.
    """
    found: dict[tuple[object, ...], Score] = {}
    for score in scores:
        unnamed = score.key or id(score) if score.at is None or score.target == "conversation" else ("", score.source)
        key = (score.target, score.id, score.message, score.name, score.person or unnamed)
        known = found.get(key)
        if known is None or (score.at or 0) >= (known.at or 0):
            found[key] = score
    return list(found.values())


def agreed(thumbs: Sequence[Hung], how: str | None) -> Label:
    """Return the label of a conversation with these thumbs.

    Raises:
        BadInput: They differ, and nobody said which one counts.
    """
    said = [thumb for thumb in thumbs if thumb.label is not Label.NONE]
    labels = {thumb.label for thumb in said}
    if len(labels) < 2:
        return labels.pop() if labels else Label.NONE
    if how == "worst":
        return Label.NEGATIVE
    if how in ("last", "each"):
        return max(said, key=lambda thumb: (_order(thumb.place), thumb.score.at or 0)).label
    ups = sum(thumb.label is Label.POSITIVE for thumb in said)
    what = f"{count(len(said), 'thumb', 'thumbs')} that differ: {ups} up, {len(said) - ups} down"
    remedy = "say which counts: last, worst, or each, which cuts after every thumbed answer"
    raise BadInput(what, remedy=remedy, option={"thumbs": "last"})


def _order(place: int | None) -> float:
    return float("inf") if place is None else place


def notes(found: Sequence[ScoreKind]) -> list[str]:
    """Describe the score used as thumb, or the scores found if none was."""
    taken = Counter[str]()
    for kind in found:
        if kind.taken:
            taken[kind.name] += kind.scores
    named = [f"labels come from the score {name!r} ({n})" for name, n in sorted(taken.items()) if name]
    if taken or not found:
        return named
    kinds: Mapping[tuple[str, str], int] = {(kind.name, kind.source): kind.scores for kind in found}
    listed = ", ".join(f"{n} {name!r}" + (f" from {source}" if source else "") for (name, source), n in kinds.items())
    return [f"no score is known as a user's thumb: there are {listed}; name the right one: {spelled(label_field=None)}"]
