"""Choice of the score that is the thumb, and the label of several thumbs."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from pollex.conversations.conversation import DEFAULT_RATING_BOUNDS, Label
from pollex.conversations.logs import ScoreKind
from pollex.errors import WrongUse, spell_options
from pollex.formats.assembly.log_parts import (
    SCORE_SOURCE_COLUMN,
    SCORE_SOURCE_PREFERENCE,
    ToolScore,
)
from pollex.formats.feedback import split_signal_option_into_field_and_side
from pollex.formats.fields import ReadOptions
from pollex.formats.labels import (
    BadLabel,
    LabelRules,
    infer_rating_bounds,
    is_usual_thumb,
    normalize_number,
)
from pollex.text import format_count

THUMB_SCORE_NAMES = frozenset(
    (
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
        "positivefeedback",
    )
)
"""Names of scores that are a user's thumb, folded to letters."""
RATING_SCORE_NAMES = frozenset(
    ["rating", "userrating", "csat", "satisfaction", "usersatisfaction", "customersatisfaction"]
)
STAR_SCORE_NAMES = frozenset(["stars", "star", "starrating", "starsrating", "userstars"])
"""Names of scores from 1 to 5, of which 1 is the worst."""
MAX_STARS_OF_RATING = 5
COUNT_COLUMN_NAMES = frozenset(["like", "likes", "upvote", "reaction", "thumbsup"])
"""Names of columns in which a 0 or false isn't the opposite of a thumb up."""
SCORE_SOURCES_MEANING_PERSON = frozenset(
    ["api", "annotation", "human", "app", "ui", "sdk", "external", "user", "presigned", "portal"]
)
POLLEX_SCORE_PREFIX = "pollex"
"""How the names of scores begin that pollex wrote back; they are never thumbs."""


NPS_SCORE_NAMES = frozenset(["nps", "npsscore", "usernps", "netpromoterscore", "netpromoter"])
"""Names of scores from 0 to 10 that say how likely somebody recommends."""
NPS_LABEL_RULES = LabelRules.of(positive=">=9", negative="<=6")
STAR_LABEL_RULES = LabelRules.of(**DEFAULT_RATING_BOUNDS)
"""What ratings of help desks from 1 to 5 mean, where the user gives no other bounds."""


class PlacedThumb(NamedTuple):
    """A thumb where it belongs.

    Attributes:
        place: The index of the turn that it was given for; None for one of the whole conversation.
    """

    place: int | None
    label: Label
    score: ToolScore


def keep_lowercase_letters_of_name(name: str) -> str:
    """Normalize a name for comparison: without case, digits and punctuation."""
    return re.sub(r"[^a-z]", "", name.casefold())


def matches_column_name(path: str, name: str) -> bool:
    """Return whether a column is meant by a name: its whole path or the end of it, without case and punctuation."""
    return normalize_column_path(path) == normalize_column_path(name) or normalize_column_path(
        path
    ).endswith(f".{normalize_column_path(name)}")


@lru_cache(maxsize=4096)
def normalize_column_path(path: str) -> str:
    """Normalize a column's path for comparison: without case and punctuation, but for its dots."""
    return re.sub(r"[\s_-]", "", path.casefold())


def is_from_person(score: ToolScore) -> bool:
    """Return whether a person gave a score, or its source is unknown."""
    return (
        not score.source
        or score.source == SCORE_SOURCE_PREFERENCE
        or keep_lowercase_letters_of_name(score.source) in SCORE_SOURCES_MEANING_PERSON
    )


def choose_thumbs(
    scores: Sequence[ToolScore], options: ReadOptions
) -> tuple[list[ToolScore], list[ScoreKind]]:
    """Return the scores that are thumbs, and counts of the other scores.

    Raises:
        WrongUse: Several names may be the thumb's, or a name's values are ratings.
    """
    try:
        thumb_scores = _select_thumb_scores(scores, options)
    except WrongUse:
        if options.labels_needed:
            raise
        thumb_scores = []

    # by identity: equal scores of other rows aren't among them
    thumb_ids = set(map(id, thumb_scores))
    kinds = Counter((score.name, score.source, id(score) in thumb_ids) for score in scores)
    kinds_of_scores = []
    for (name, source, used), n in sorted(kinds.items()):
        kinds_of_scores.append(ScoreKind(name, source, n, used))

    return _convert_scores_to_star_ratings(thumb_scores), kinds_of_scores


def _select_thumb_scores(scores: Sequence[ToolScore], options: ReadOptions) -> list[ToolScore]:
    pairs = []
    for score in scores:
        if score.source == SCORE_SOURCE_PREFERENCE:
            pairs.append(score)

    if pairs and not options.pairs:
        what = "the files have pairs of a chosen and a rejected answer, not thumbs"
        raise WrongUse(
            what,
            hint="to take chosen for a thumb up and rejected for one down",
            option={"pairs": True},
        )

    # signals and what pollex wrote back are no thumbs
    signals = set()
    for signal in options.signals:
        signals.add(normalize_column_path(split_signal_option_into_field_and_side(signal)[0]))

    scores = [score for score in scores if normalize_column_path(score.name) not in signals]
    columns = []
    for score in scores:
        if score.source == SCORE_SOURCE_COLUMN:
            columns.append(score)

    ours = []
    for score in scores:
        if (
            not keep_lowercase_letters_of_name(score.name).startswith(POLLEX_SCORE_PREFIX)
            and score.source != SCORE_SOURCE_COLUMN
        ):
            ours.append(score)

    # the name that the user gave; else usual names, then a column that is surely a thumb
    if options.label_field:
        thumb_scores = _choose_named_scores(ours, options.label_field) or _choose_named_columns(
            columns, options.label_field
        )
    else:
        thumb_scores = _choose_usual_scores(ours) or _choose_sure_column(columns)

    # rows of single scores say more than their summary
    if any(not score.summary for score in thumb_scores):
        thumb_scores = [score for score in thumb_scores if not score.summary]

    _require_rating_bounds(_convert_scores_to_star_ratings(thumb_scores), options)
    return thumb_scores


def _convert_scores_to_star_ratings(scores: list[ToolScore]) -> list[ToolScore]:
    """Return scores as ratings where their name says that they count stars, and none is above five."""
    stars = []
    for score in scores:
        if keep_lowercase_letters_of_name(score.name) in STAR_SCORE_NAMES:
            stars.append(_parse_star_number(score.value))

    if (
        len(stars) < len(scores)
        or not stars
        or not 1 < max(stars) <= MAX_STARS_OF_RATING
        or min(stars) < 1
    ):
        return scores
    return [score._replace(rating=True) for score in scores]


def _choose_named_scores(scores: Sequence[ToolScore], name: str) -> list[ToolScore]:
    """Return the scores with the name that the user gave: people's if there are any."""
    # the exact name goes before one that differs in case and signs
    exact = []
    for score in scores:
        if name in (score.name, score.source):
            exact.append(score)

    same = exact or [
        score
        for score in scores
        if score.name
        and keep_lowercase_letters_of_name(score.name) == keep_lowercase_letters_of_name(name)
    ]
    return [score for score in same if is_from_person(score)] or same


def _choose_named_columns(columns: Sequence[ToolScore], name: str) -> list[ToolScore]:
    """Return the columns with the name that the user gave: of that whole path if there are any."""
    return [score for score in columns if score.name == name] or [
        column for column in columns if matches_column_name(column.name, name)
    ]


def _choose_sure_column(columns: Sequence[ToolScore]) -> list[ToolScore]:
    """Return the one column that is a thumb by its name and by all of its values; none if in doubt."""
    named = []
    for score in columns:
        if _fold_last_name(score.name) in THUMB_SCORE_NAMES - COUNT_COLUMN_NAMES:
            named.append(score)

    if len({score.name for score in named}) != 1 or not all(
        is_usual_thumb(score.value) for score in named
    ):
        return []

    numbers = {normalize_number(score.value) for score in named} - {""}
    if "-1" in numbers:  # then 0 is no thumb
        named = [score for score in named if normalize_number(score.value) != "0"]

    # both sides, words alone, or ones alone under a name that is no scale's
    scale = _fold_last_name(named[0].name) in RATING_SCORE_NAMES
    both = "1" in numbers and len(numbers) > 1
    if both or not numbers or (numbers == {"1"} and not scale):
        return named
    return []


def _fold_last_name(path: str) -> str:
    return keep_lowercase_letters_of_name(path.removesuffix(".value").rpartition(".")[2])


def _choose_usual_scores(scores: Sequence[ToolScore]) -> list[ToolScore]:
    people = []
    for score in scores:
        if is_from_person(score):
            people.append(score)

    named = []
    for score in people:
        if keep_lowercase_letters_of_name(score.name) in THUMB_SCORE_NAMES | STAR_SCORE_NAMES:
            named.append(score)

    names = Counter(keep_lowercase_letters_of_name(score.name) for score in named)
    if len(names) > 1:
        shown = Counter(score.name for score in named)
        listed = ", ".join(f"{name!r} ({n})" for name, n in shown.most_common())
        most = shown.most_common(1)[0][0]
        what = f"several scores may be the label: {listed}"
        raise WrongUse(what, hint="say which", option={"label_field": most})

    # usual names, else numbers from 0 to 10 under their name, else words for both sides
    named = (
        named or [score for score in people if is_nps_score(score)] or _choose_worded_scores(people)
    )
    # a score without a name is the tool's own thumb
    unnamed = []
    for score in people:
        if not score.name:
            unnamed.append(score)

    return unnamed + named


THUMB_WORDS = frozenset(
    "up down thumbsup thumbsdown like dislike good bad positive negative helpful unhelpful".split()  # noqa: SIM905
)
"""Words that are a person's judgment, folded; pass, correct and the like are as often a rule's."""


def _choose_worded_scores(scores: Sequence[ToolScore]) -> list[ToolScore]:
    """Return the scores of the one name whose values are words for both sides; none where there are two names."""
    words: dict[str, set[str]] = {}
    for score in scores:
        if score.name and score.source != SCORE_SOURCE_COLUMN:
            words.setdefault(score.name, set()).add(
                keep_lowercase_letters_of_name(str(score.value))
            )

    sided = []
    for name, values in words.items():
        if len(values) > 1 and values <= THUMB_WORDS:
            sided.append(name)

    return [score for score in scores if [score.name] == sided]


def is_nps_score(score: ToolScore) -> bool:
    """Return whether a score says from 0 to 10 how likely somebody recommends."""
    return keep_lowercase_letters_of_name(score.name) in NPS_SCORE_NAMES


def _require_rating_bounds(scores: Sequence[ToolScore], options: ReadOptions) -> None:
    """Refuse ratings from 1 to 5 without bounds, where 1 would be a thumb up."""
    # with bounds that the user gave, every number has its meaning
    if LabelRules.of(options.positive, options.negative).numbers:
        return

    rated = []
    for score in scores:
        if not score.rating and not is_nps_score(score):
            rated.append(score)

    # no thumb is above 1 or below -1
    stars = []
    for score in rated:
        if abs(_parse_star_number(score.value)) > 1:
            stars.append(score)

    if stars:
        low, high = infer_rating_bounds(sorted(_parse_star_number(score.value) for score in rated))
        name = stars[0].name or "the thumb"
        example = _parse_star_number(stars[0].value)
        what = f"the values of {name!r} are ratings, for example {example:g}"
        raise WrongUse(
            what,
            hint="give bounds",
            option={"positive": f">={high:g}", "negative": f"<={low:g}"},
        )


def _parse_star_number(value: object) -> float:
    """Parse a value as a number; 0 for words, and for what is no finite number."""
    try:
        if isinstance(value, int | float | str):
            number = float(value)
        else:
            number = 0.0
    except (ValueError, OverflowError):
        return 0.0

    return number if math.isfinite(number) else 0.0


def get_label_of_score(score: ToolScore, verdicts: LabelRules) -> Label:
    """Return the label of a score; stars without other bounds by `STARS`.

    Raises:
        BadInput: The value isn't a thumb's.
    """
    if score.value is None:
        return Label.NONE
    if score.rating and not verdicts.numbers:
        return replace(STAR_LABEL_RULES, said=verdicts.said).label(score.value)
    if is_nps_score(score) and not verdicts.numbers:
        return replace(NPS_LABEL_RULES, said=verdicts.said).label(score.value)
    return verdicts.label(score.value)


def keep_latest_scores(
    scores: Iterable[ToolScore], how: str | None = None
) -> tuple[list[ToolScore], list[str]]:
    """Keep each person's newest score of one name on one target, and the newest row of each score.

    Where no person is named, the newest of one source counts, since a trace or a message has one
    user; scores without a time and without an id of their own are all kept.

    Args:
        how: With `worst` only older rows of the same score are left out.

    Returns:
        The scores, and a note on older ones with another value.
    """
    newest: dict[tuple[object, ...], ToolScore] = {}
    older = Counter[str]()
    for score in scores:
        # whose score on what it is: of equal ones the newest counts
        unnamed = (
            score.key or id(score)
            if score.at is None or score.target == "conversation"
            else ("", score.source)
        )
        who = (score.key or id(score)) if how == "worst" else score.person or unnamed
        key = (score.target, score.id, score.message, score.name, who)
        previous = newest.get(key)
        # a later row of the same score replaces it, and is no older opinion
        if (
            previous is not None
            and previous.value != score.value
            and not (score.key and score.key == previous.key)
        ):
            older[score.name] += 1

        # of equal times the later row counts
        if previous is None or (score.at or 0) >= (previous.at or 0):
            newest[key] = score

    again = []
    for name, n in sorted(older.items()):
        again.append(
            f"{format_count(n, 'score', 'scores')} {name!r} came before another one on the same answer, "
            f"and the newest counts; to count the worst: {spell_options(thumbs='worst')}"
        )

    return list(newest.values()), again


def are_from_several_raters(thumbs: Sequence[PlacedThumb]) -> bool:
    """Return whether several people rated the same thing, each of them once."""
    people = {thumb.score.person for thumb in thumbs}
    return (
        1 < len(people) == len(thumbs)
        and None not in people
        and len({thumb.place for thumb in thumbs}) == 1
    )


def label_conversation(
    thumbs: Sequence[PlacedThumb],
    how: str | None,
    majority: Callable[[Sequence[Label]], Label] | None = None,
) -> Label:
    """Return the label of a conversation with these thumbs.

    Args:
        majority: The label of what several people rated, where nobody said which thumb counts.

    Raises:
        BadInput: They differ, and nobody said which one counts.
    """
    labelled = []
    for thumb in thumbs:
        if thumb.label is not Label.NONE:
            labelled.append(thumb)

    if how is None and majority and are_from_several_raters(labelled):
        return majority([thumb.label for thumb in labelled])

    labels = {thumb.label for thumb in labelled}
    if len(labels) < 2:
        return labels.pop() if labels else Label.NONE
    if how == "worst":
        return Label.NEGATIVE
    # a thumb on the whole conversation comes after those on its turns
    if how in ("last", "each"):
        return max(
            labelled, key=lambda thumb: (_make_place_order_key(thumb.place), thumb.score.at or 0)
        ).label

    ups = sum(thumb.label is Label.POSITIVE for thumb in labelled)
    what = f"{format_count(len(labelled), 'thumb', 'thumbs')} that differ: {ups} up, {len(labelled) - ups} down"
    hint = "say which counts: last, worst, or each, which cuts after every thumbed answer"
    raise BadLabel(what, hint=hint, option={"thumbs": "last"})


def _make_place_order_key(place: int | None) -> float:
    return float("inf") if place is None else place


def describe_thumb_scores(score_kinds: Sequence[ScoreKind]) -> list[str]:
    """Describe the score used as thumb, or the scores found if none was."""
    used_counts = Counter[tuple[str, str]]()
    for kind in score_kinds:
        if kind.taken:
            used_counts["column" if kind.source == SCORE_SOURCE_COLUMN else "score", kind.name] += (
                kind.scores
            )

    named = [
        f"labels come from the {what} {name!r} ({n})"
        for (what, name), n in sorted(used_counts.items())
        if name
    ]
    unused_counts = {}
    for kind in score_kinds:
        if kind.source == SCORE_SOURCE_COLUMN and not kind.taken:
            unused_counts[kind.name] = kind.scores

    named += describe_unused_columns(unused_counts)
    kinds: Mapping[tuple[str, str], int] = {
        (kind.name, kind.source): kind.scores
        for kind in score_kinds
        if kind.source != SCORE_SOURCE_COLUMN
    }
    if used_counts or not kinds:
        return named

    kind_texts = []
    for (name, source), n in kinds.items():
        kind_texts.append(f"{n} {name!r}" + (f" from {source}" if source else ""))

    listed = ", ".join(kind_texts)
    what = f"no score is known as a user's thumb: there are {listed}"
    return [f"{what}; name the right one: {spell_options(label_field=None)}", *named]


MAX_COLUMNS_NAMED = 5
"""How many columns a note names."""


def describe_unused_columns(columns: Mapping[str, int]) -> list[str]:
    """Describe columns that look like feedback and weren't used, by how many rows have them."""
    if not columns:
        return []

    most = sorted(columns.items(), key=lambda column: -column[1])
    shown = ", ".join(f"{name!r:.80} ({n})" for name, n in most[:MAX_COLUMNS_NAMED])
    rest = ""
    if len(most) > MAX_COLUMNS_NAMED:
        rest = f" and {len(most) - MAX_COLUMNS_NAMED} more"

    return [
        f"not used for labels, but named like feedback: {shown}{rest}; to use one: "
        f"{spell_options(label_field=most[0][0])}"
    ]
