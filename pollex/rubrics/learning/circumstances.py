"""Circumstances of conversations: what they are about and when they were had, apart from what happens in them.

A rubric may tell thumbs apart because it comes with short conversations, with one tariff or one
week. Within each of them there is then no difference, and changing what the rubric says would
change no thumb.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import CONVERSATION_TIME_NAMES
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import Figure
from pollex.measures.strata import StratifiedDifference, compare_hit_shares_within_strata
from pollex.rubrics.records import CircumstanceRecord

MIN_CONVERSATIONS_OF_STRATUM = 20
"""Conversations of a stratum of what is a number."""
MAX_BINS_OF_NUMERIC_FIELD = 10
MAX_CATEGORICAL_VALUES = 20
"""Different values of a field, beyond which it names single things."""
MIN_CRAMERS_V_OF_FIELD_RESTATING_THUMB = 0.8
"""Cramér's V with the thumb from which a field says how it came out, and is no circumstance."""
LENGTH_CIRCUMSTANCE_NAMES = ("length", "number of turns")
MAX_METADATA_FIELDS_EXAMINED = 40
MAX_NESTING_DEPTH_OF_METADATA_FIELD = 2

_OUTCOME_FIELD_PATTERN = re.compile(
    "thumb|label|rating|rated|score|csat|nps|feedback|vote|liked|satisf|sentiment|resolved|solved|outcome|escalat"
    "|success|comment|reward|drawn|judge|annotat|split",
    re.IGNORECASE,
)
"""Names of fields that say how a conversation came out, or what was done with it since."""


@dataclass(frozen=True, eq=False)
class Circumstance:
    """A circumstance of some conversations.

    Attributes:
        name: In the words of a sentence: `within each {name}`.
        stratum: Number of each conversation's stratum `[conversation]`.
    """

    name: str
    stratum: Ints


def list_circumstances(
    conversations: Sequence[Conversation],
    topics: Mapping[str, Bools],
    languages: Sequence[str],
    label_field: str = "",
) -> list[Circumstance]:
    """List the circumstances in which conversations differ.

    Args:
        topics: By name, which are about it `[conversation]`.
        languages: Of each conversation.
        label_field: Where thumbs came from.
    """
    # fields are compared with the thumb, to find those that restate it
    up = np.array(
        [conversation.label is Label.POSITIVE for conversation in conversations],
        dtype=bool,
    )
    sizes = []
    for conversation in conversations:
        sizes.append(sum(turn.size for turn in conversation.turns))
    lengths = np.array(
        sizes,
        dtype=np.float64,
    )
    turns = np.array(
        [len(conversation.turns) for conversation in conversations],
        dtype=np.float64,
    )
    circumstances = [
        Circumstance(name, assign_numbers_to_equal_bins(values))
        for name, values in zip(LENGTH_CIRCUMSTANCE_NAMES, (lengths, turns), strict=True)
    ]
    # of several topics the first counts, and 0 is none
    if topics:
        about = np.column_stack([*topics.values()])
        circumstances.append(
            Circumstance(
                "topic",
                np.where(about.any(axis=1), about.argmax(axis=1) + 1, 0),
            )
        )

    # weeks are compared only where every conversation says when it was
    moments = [
        get_conversation_time_as_number(conversation.metadata) for conversation in conversations
    ]
    if (has_moment := [moment is not None for moment in moments]) and all(has_moment):
        circumstances.append(
            Circumstance(
                "week",
                assign_numbers_to_equal_bins(np.array(moments, dtype=np.float64)),
            )
        )

    # circumstances that are names, each value a stratum
    named: dict[str, Sequence[str]] = {
        "language": languages,
        "prompt version": [conversation.prompt for conversation in conversations],
    }
    for path, field_values in list_categorical_fields(conversations, label_field).items():
        named[f"field “{path}”"] = field_values
    for name, values in named.items():
        stratum = assign_numbers_to_values(values)
        # very many values name single things
        if 1 < stratum.max() + 1 <= MAX_CATEGORICAL_VALUES and not does_field_restate_thumb(
            stratum, up
        ):
            circumstances.append(Circumstance(name, stratum))

    # what is the same everywhere explains nothing
    return [circumstance for circumstance in circumstances if circumstance.stratum.max() > 0]


def assign_numbers_to_equal_bins(values: Floats) -> Ints:
    """Put numbers into bins of about as many each `[conversation]`."""
    # so many bins that each has about `MIN_CONVERSATIONS_OF_STRATUM` conversations
    bins = int(np.clip(len(values) // MIN_CONVERSATIONS_OF_STRATUM, 1, MAX_BINS_OF_NUMERIC_FIELD))
    if len(values):
        edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1]))
    else:
        edges = np.zeros(0)

    return np.unique(np.searchsorted(edges, values, side="left"), return_inverse=True)[1].astype(
        np.intp
    )


def assign_numbers_to_values(values: Sequence[str]) -> Ints:
    """Give different values numbers from 0 `[conversation]`."""
    return np.unique(np.array(values, dtype=object).astype(str), return_inverse=True)[1].astype(
        np.intp
    )


def does_field_restate_thumb(stratum: Ints, up: Bools) -> bool:
    """Tell whether a field says what the thumb says, by Cramér's V."""
    n = np.bincount(stratum)
    share = up.mean()
    if not 0 < share < 1:
        return False

    # χ² over n, which is V² where one of the two has two values
    ups = np.bincount(stratum, up, minlength=len(n))
    return bool(
        (np.square(ups - n * share) / (n * share * (1 - share))).sum() / len(up)
        >= MIN_CRAMERS_V_OF_FIELD_RESTATING_THUMB**2
    )


def list_categorical_fields(
    conversations: Sequence[Conversation], label_field: str
) -> dict[str, list[str]]:
    """Return the values of the log's own categorical fields, by path; empty text where a conversation has none."""
    # by path and row, as a field may be missing in some conversations
    by_path: dict[str, dict[int, str]] = {}
    for row, conversation in enumerate(conversations):
        for path, value in _iterate_scalar_metadata_fields(conversation.metadata, ""):
            # a log with very many fields is not searched to its end
            if path in by_path or len(by_path) < MAX_METADATA_FIELDS_EXAMINED:
                by_path.setdefault(path, {})[row] = value

    n = len(conversations)
    fields: dict[str, list[str]] = {}
    for path, values in by_path.items():
        if (
            path != label_field
            and not _OUTCOME_FIELD_PATTERN.search(path)
            and 1 < len(set(values.values())) <= MAX_CATEGORICAL_VALUES
        ):
            fields[path] = [values.get(row, "") for row in range(n)]

    return fields


def _iterate_scalar_metadata_fields(
    values: Mapping[str, object], before: str
) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, str | int | bool):
            yield f"{before}{name}", str(value)
        elif isinstance(value, Mapping) and before.count(".") < MAX_NESTING_DEPTH_OF_METADATA_FIELD:
            yield from _iterate_scalar_metadata_fields(value, f"{before}{name}.")


def get_conversation_time_as_number(metadata: Mapping[str, object]) -> float | None:
    """Return when a conversation was had, as a number that grows with time; None where it doesn't say."""
    # some tools put the log's metadata one level deeper
    inner = metadata.get("metadata")
    places = (metadata, inner if isinstance(inner, Mapping) else {})
    for value in (
        place[name] for place in places for name in CONVERSATION_TIME_NAMES if name in place
    ):
        # of several moments the first: when the conversation began
        if isinstance(value, list) and value:
            first = value[0]
        else:
            first = value

        if isinstance(first, int | float) and not isinstance(first, bool):
            return float(first)
        try:
            return datetime.fromisoformat(str(first)).timestamp()
        except (ValueError, OverflowError, OSError):
            continue

    return None


def find_explaining_circumstance(
    held: Bools,
    up: Bools,
    circumstances: Sequence[Circumstance],
    told_by_others: Bools | None = None,
) -> CircumstanceRecord | None:
    """Return the circumstance that a rubric goes along with, which explains its difference best; None for most.

    An act may make conversations long. Where several rubrics tell of it, each by itself is compared
    with long ones that the others are about, and no difference is left. So a circumstance that
    tells nothing of thumbs beside all of them together explains none of them.

    Args:
        held: Where the rubric holds `[conversation]`.
        up: Thumbs up `[conversation]`.
        told_by_others: Where another finding of its side holds `[conversation]`.
    """
    explaining = []
    for circumstance in circumstances:
        within = compare_hit_shares_within_strata(held, ~up, circumstance.stratum)
        if within is None or not within.explained:
            continue
        if told_by_others is not None:
            together = compare_hit_shares_within_strata(
                held | told_by_others, ~up, circumstance.stratum
            )
            if together is not None and together.strata_tell_nothing:
                continue
        explaining.append((circumstance, within))

    if not explaining:
        return None

    # what turns the difference round comes before what only takes it away
    circumstance, within = min(
        explaining,
        key=lambda pair: (not pair[1].turned, abs(pair[1].value)),
    )
    return make_circumstance_record(circumstance, within, len(up))


def make_circumstance_record(
    circumstance: Circumstance, within: StratifiedDifference, n: int
) -> CircumstanceRecord:
    """Record what a circumstance explains."""
    return CircumstanceRecord(
        name=circumstance.name,
        over_all=within.over_all,
        within=Figure(within.value, within.low, within.high, n),
        turned=within.turned,
        strata=int(circumstance.stratum.max()) + 1,
    )
